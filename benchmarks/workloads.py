"""Jobs that arrive over time: the workload of a published line of work.

The line of work (Filippini, Ardagna and others: deep-learning training on GPU nodes) replans at every arrival and
completion. Its jobs are drawn from 15 measured types on K80 and M60 GPUs, its nodes are virtual machines of up to 8 of
one type. Rules that are followed here:

- a due date lies U(1, 3) times the fastest time after the submission, a weight is 2 U(0.0015, 0.0075) a second;
- arrivals are Poisson: `contended` with a mean gap of 30,000 / N seconds, `relaxed` 75,000 / N, `high` and `low` with
  the rates 1.3 L / 3 and 1.3 L / 12 where L is the number of GPUs over the mean time on one GPU, `mixed` with both by
  turns;
- 10 jobs a node, seeds 1000 k^2.

Chosen here, because the descriptions leave it open: half of the nodes are K80, half M60; a node is paid for the GPUs
in use (the price list is proportional to them, within one percent), which is written as energy. Under `fifty` 50 jobs
or so are there at a time whatever the nodes, as in the line's claims for 300 nodes. Small jobs take a share of a GPU
by the tables of fractions. Rented nodes of the same types cost `RENT` times as much.

Profiles are read from a folder beside the checkout; nothing of them is kept here.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from models.domain import Instance
from models.domain.modes import modes_of

DATA = Path(__file__).parent.parent.parent / "shared" / "data"

Arrivals = Literal["contended", "relaxed", "high", "mixed", "low", "fifty"]
ARRIVALS: tuple[Arrivals, ...] = get_args(Arrivals)
PRICES = {"K80": 0.56, "M60": 0.62}
"""Money for a GPU and hour: that of the smallest virtual machine."""
GPUS = 8
"""Of a node."""
FIFTY_GAP_S = 3000.0
RENT = 1.5
"""Price of a rented GPU over that of an owned one."""
JOBS_A_NODE = 10
TURN = 10
"""Jobs after which the rate changes under `mixed`."""


@dataclass(frozen=True)
class JobType:
    """A measured type of jobs."""

    name: str
    seconds: dict[tuple[str, int], float]
    """By GPU type and GPUs."""
    memory_gb: float

    @property
    def fastest_s(self) -> float:
        """Time on the best GPUs."""
        return min(self.seconds.values())


@cache
def job_types(folder: Path = DATA / "profiles") -> tuple[JobType, ...]:
    """The 15 types on the GPUs that have a price. Raises FileNotFoundError without the folder."""
    seconds: dict[str, dict[tuple[str, int], float]] = defaultdict(dict)
    memory: dict[str, float] = {}
    with open(folder / "data_2d10d_filtered.csv", encoding="utf-8-sig", newline="") as file:
        for row in csv.DictReader(file):
            if row["GpuType"] in PRICES:
                seconds[row["Jobs"]][row["GpuType"], int(row["GpuNumber"])] = float(row["ExecutionTime"])
                memory[row["Jobs"]] = float(row["Memory"])
    return tuple(JobType(name, seconds[name], memory[name]) for name in sorted(seconds))


@cache
def fractions(folder: Path = DATA / "profiles") -> dict[str, tuple[tuple[float, float, float], ...]]:
    """By GPU type: up to how much memory a share is enough, the share, and its largest slow-down."""
    found: dict[str, list[tuple[float, float, float]]] = defaultdict(list)
    with open(folder / "fractions.csv", encoding="utf-8-sig", newline="") as file:
        for row in csv.DictReader(file):
            found[row["GPUtype"]].append((float(row["Memory"]), float(row["GPUf"]), float(row["inflate_max"])))
    return {gpu: tuple(sorted(rows)) for gpu, rows in found.items()}


@dataclass(frozen=True)
class Workload:
    """One instance of the published workload."""

    nodes: int
    arrivals: Arrivals
    k: int
    """The seed is 1000 k^2."""
    jobs: int | None = None
    """None: 10 a node."""
    small: float = 0.0
    """Part of the jobs that take a share of a GPU or one GPU, and never more."""
    burst: bool = False
    """Whether there are rented nodes, as many as owned ones."""
    pace: float = 1.0
    """How often jobs arrive, over what is said above."""
    slot: float = 1800.0

    @property
    def name(self) -> str:
        """Of the instance."""
        marks = f"{'-small' if self.small else ''}{'-burst' if self.burst else ''}"
        marks += f"-pace{self.pace:g}" if self.pace != 1 else ""
        return f"reference-{self.arrivals}-{self.nodes}{marks}-k{self.k}"

    def make(self) -> Instance:
        """The instance, the same every time."""
        draw = np.random.default_rng(1000 * self.k**2)
        types = job_types()
        num_jobs = JOBS_A_NODE * self.nodes if self.jobs is None else self.jobs
        kinds = ["owned", "rented"] if self.burst else ["owned"]
        jobs, at_s = [], 0.0
        for number in range(num_jobs):
            at_s += float(draw.exponential(self._gap_s(number))) / self.pace
            kind = types[int(draw.integers(len(types)))]
            jobs.append(self._job(number, at_s, kind, kinds, draw))
        return cluster(self.name, jobs, PRICES, self.nodes, kinds, self.slot, slices=4 if self.small else 1)

    def _gap_s(self, number: int) -> float:
        single = [min(kind.seconds[gpu, 1] for gpu in PRICES) for kind in job_types()]
        rate = self.nodes * GPUS / float(np.mean(single))
        high, low = 3 / (1.3 * rate), 12 / (1.3 * rate)
        return {
            "contended": 30_000 / self.nodes,
            "relaxed": 75_000 / self.nodes,
            "high": high,
            "low": low,
            "mixed": low if number // TURN % 2 else high,
            "fifty": FIFTY_GAP_S,
        }[self.arrivals]

    def _job(
        self, number: int, at_s: float, kind: JobType, kinds: Sequence[str], draw: np.random.Generator
    ) -> dict[str, Any]:
        slack, weight = slack_of(draw), weight_of(draw)
        is_small, odds = float(draw.random()) < self.small, draw.random(2)
        modes = list(small_modes(kind, odds) if is_small else large_modes(kind))
        fastest_s = min(mode["duration"] for mode in modes)
        return entry(f"job{number}", at_s, at_s + slack * fastest_s, weight, modes, kinds)


def slack_of(draw: np.random.Generator) -> float:
    """Time from submission to the due date over the fastest time."""
    return float(draw.uniform(1.0, 3.0))


def weight_of(draw: np.random.Generator) -> float:
    """Money for a second of being late."""
    return 2.0 * float(draw.uniform(0.0015, 0.0075))


def entry(
    name: str, at_s: float, due_s: float, weight: float, modes: Sequence[dict[str, Any]], kinds: Sequence[str]
) -> dict[str, Any]:
    """A job as it is written, with every mode in the pools of all kinds of nodes."""
    return {
        "id": name,
        "release": round(at_s, 3),
        "due": round(due_s, 3),
        "weight": round(3600.0 * weight, 6),
        "modes": [
            mode | {"id": f"{mode['id']}-{kind}", "pool": f"{kind}-{mode['pool']}"} for kind in kinds for mode in modes
        ],
    }


def cluster(
    name: str,
    jobs: list[dict[str, Any]],
    prices: dict[str, float],
    nodes: int,
    kinds: Sequence[str],
    slot: float,
    *,
    slices: int = 1,
) -> Instance:
    """An instance of these jobs on nodes of the types that have a price, in equal parts and written as energy; of
    rented nodes there are as many as of owned ones."""
    sites = {
        "owned": {"id": "owned", "kind": "on_prem", "energy_price": 1.0},
        "rented": {"id": "rented", "kind": "cloud", "energy_price": RENT},
    }
    pools = [
        {
            "id": f"{kind}-{gpu}",
            "site": kind,
            "gpu": gpu,
            "gpus_per_node": GPUS,
            "slices_per_gpu": slices,
            "nodes": (nodes + len(prices) - 1 - k) // len(prices),
            "price": 0.0,
            "gpu_power": price,
        }
        for kind in kinds
        for k, (gpu, price) in enumerate(prices.items())
    ]
    return Instance.model_validate(
        {
            "name": name,
            "currency": "USD",
            "start": "2026-01-05T00:00:00Z",
            "slot": slot,
            "horizon": "auto",
            "sites": [sites[kind] for kind in kinds],
            "pools": pools,
            "jobs": jobs,
        }
    )


def large_modes(kind: JobType) -> Iterator[dict[str, Any]]:
    """Every number of GPUs that was measured, by GPU type."""
    for (gpu, gpus), seconds in sorted(kind.seconds.items()):
        yield {"id": f"{gpus}x{gpu}", "pool": gpu, "gpus": gpus, "duration": round(seconds, 3)}


def small_modes(kind: JobType, odds: np.ndarray) -> Iterator[dict[str, Any]]:
    """The least share that the memory fits in, with a slow-down between 1.01 and that of the table; and a whole GPU."""
    for gpu in sorted(PRICES):
        seconds = kind.seconds[gpu, 1]
        yield {"id": f"1x{gpu}", "pool": gpu, "gpus": 1, "duration": round(seconds, 3)}
        for memory, share, most in fractions()[gpu]:
            if kind.memory_gb <= memory:
                slow = 1.01 + (most - 1.01) * float(odds[0])
                yield {"id": f"part-{gpu}", "pool": gpu, "share": share, "duration": round(seconds * slow, 3)}
                break


def alone_cost(instance: Instance) -> float:
    """A lower bound on what any policy can reach in a world of this instance, to the second and not in slots: every job
    by itself with unlimited nodes, its mode changed freely.

    With time L for its work 1, a job's average rate is 1 / L; the least money a second for a rate R is f(R), the lower
    convex hull of the modes' (1 / duration, money a second) and of (0, 0), so the cost is L f(1 / L) and the tardiness.
    As f is piecewise linear that is too, in L, with corners at the durations of the hull and at the due date: the least
    is at one of them. For instances of energy at constant prices only; others raise ValueError.
    """
    total = 0.0
    for job in instance.jobs:
        points = [(0.0, 0.0)]
        for mode in modes_of(instance, job):
            points.append((3600.0 / mode.duration_s, mode.busy_gpus * rate_of(instance, mode.pool)))
        hull = _lower_hull(points)
        times = [1.0 / rate for rate, _ in hull if rate > 0]
        if job.due is not None and job.due > job.release:
            times.append((job.due - job.release) / 3600.0)
        total += min(_cost(hull, hours, job.release / 3600.0, job.due, job.weight) for hours in times)
    return total


def rate_of(instance: Instance, p: int) -> float:
    """Money an hour of a busy GPU of a pool; ValueError where that is not all that it costs."""
    pool = instance.pools[p]
    price = instance.sites[instance.site_index[pool.site]].energy_price
    if pool.price != 0.0 or not isinstance(price, float | int) or pool.boot_time:
        raise ValueError(f"pool {pool.id} has costs that are not of energy at one price")
    return float(price) * pool.gpu_power


def _cost(hull: list[tuple[float, float]], hours: float, release_h: float, due_s: float | None, weight: float) -> float:
    rate = 1.0 / hours
    if rate > hull[-1][0] * (1 + 1e-12):
        return float("inf")
    late = 0.0 if due_s is None else max(0.0, release_h + hours - due_s / 3600.0)
    rates, prices = zip(*hull, strict=True)
    return hours * float(np.interp(rate, rates, prices)) + weight * late


def _lower_hull(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    hull: list[tuple[float, float]] = []
    for x, y in sorted(points):
        if hull and x == hull[-1][0]:
            continue
        while len(hull) > 1 and (hull[-1][0] - hull[-2][0]) * (y - hull[-2][1]) <= (hull[-1][1] - hull[-2][1]) * (
            x - hull[-2][0]
        ):
            hull.pop()
        hull.append((x, y))
    return hull
