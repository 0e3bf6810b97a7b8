"""Jobs that arrive as in two public traces, read from a folder beside the checkout.

*philly* (Microsoft, CC-BY-4.0): when jobs came, how long they took and on how many GPUs. Nothing is said of other
numbers of GPUs, of due dates or of worth, so a job is given one of the 15 measured types, which says how its time
changes with its GPUs, and a slack and a weight as in the published workload. Jobs of one GPU, nine of ten, take a share
of it or the whole. `JOBS` jobs are drawn from `PHILLY_DAYS` days, five such times in the trace by turns.

*itp* (ElasticFlow, MIT): models, iterations and deadlines; how fast each model is on how many A100 is measured (their
tables, Apache-2.0), up to 64 GPUs on whole nodes. Half of its deadlines are too early for the GPUs that were asked for.
They are due dates here, and weights are as in the published workload. Each of the five files is an instance, of its
`JOBS` jobs from the middle on.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np

from benchmarks.workloads import (
    DATA,
    GPUS,
    PRICES,
    cluster,
    entry,
    job_types,
    large_modes,
    slack_of,
    small_modes,
    weight_of,
)
from models.domain import Instance

JOBS = 100
PHILLY_DAYS = 2.0
SHORTEST_S, LONGEST_S = 300.0, 2 * 86_400.0
"""Shorter jobs are left out, longer ones take so long."""
ITP_FILES = ("195job", "cluster01", "cluster03", "cluster06", "cluster10")
A100 = {"A100": 3.67}
"""Money for a GPU and hour, on demand (prices/gpu_prices.csv)."""


@dataclass(frozen=True)
class TraceWorkload:
    """One instance of a trace."""

    trace: Literal["philly", "itp"]
    nodes: int
    k: int
    """From 1 to 5: which part of the trace."""
    jobs: int = JOBS
    burst: bool = False
    slot: float = 600.0

    @property
    def name(self) -> str:
        """Of the instance."""
        return f"{self.trace}-{self.nodes}{'-burst' if self.burst else ''}-k{self.k}"

    def make(self) -> Instance:
        """The instance, the same every time. Raises FileNotFoundError without the folder."""
        kinds = ["owned", "rented"] if self.burst else ["owned"]
        draw = np.random.default_rng(1000 * self.k**2)
        if self.trace == "philly":
            jobs = [_philly_job(row, kinds, draw) for row in _philly_rows(self.k, self.jobs, draw)]
            return cluster(self.name, jobs, PRICES, self.nodes, kinds, self.slot, slices=4)
        jobs = [_itp_job(row, kinds, draw) for row in _itp_rows(ITP_FILES[self.k - 1], self.jobs)]
        return cluster(self.name, jobs, A100, self.nodes, kinds, self.slot)


# --- philly -----------------------------------------------------------------------------------------------------


@cache
def _philly(folder: Path) -> tuple[tuple[float, float, int], ...]:
    """Submission in seconds, duration and GPUs of the jobs that fit a node and are not too short, in order."""
    with open(folder / "philly_jobs.csv", encoding="utf-8", newline="") as file:
        rows = [
            (datetime.fromisoformat(row["timestamp"]).timestamp(), float(row["duration"]), int(row["num_gpus"]))
            for row in csv.DictReader(file)
        ]
    return tuple(sorted(row for row in rows if row[1] >= SHORTEST_S and 1 <= row[2] <= GPUS))


def _philly_rows(k: int, jobs: int, draw: np.random.Generator) -> Iterator[tuple[int, float, float, int]]:
    rows = _philly(DATA / "traces")
    begin = rows[len(rows) * k // 6][0]
    inside = [row for row in rows if begin <= row[0] < begin + PHILLY_DAYS * 86_400]
    chosen = sorted(draw.choice(len(inside), size=min(jobs, len(inside)), replace=False))
    for number, index in enumerate(chosen):
        at, duration, gpus = inside[int(index)]
        yield number, at - begin, min(duration, LONGEST_S), gpus


def _philly_job(row: tuple[int, float, float, int], kinds: list[str], draw: np.random.Generator) -> dict[str, Any]:
    number, at_s, duration_s, gpus = row
    kind = job_types()[int(draw.integers(len(job_types())))]
    slack, weight, odds = slack_of(draw), weight_of(draw), draw.random(2)
    # The measured times keep their proportions; the best GPU type takes what the trace says for its GPUs.
    sizes = sorted({n for _, n in kind.seconds})
    near = max(n for n in sizes if n <= gpus)
    scale = duration_s / min(kind.seconds[gpu, near] for gpu in PRICES if (gpu, near) in kind.seconds)
    modes = list(small_modes(kind, odds) if gpus == 1 else large_modes(kind))
    modes = [mode | {"duration": round(max(1.0, scale * mode["duration"]), 3)} for mode in modes]
    fastest_s = min(mode["duration"] for mode in modes)
    return entry(f"philly{number}", at_s, at_s + slack * fastest_s, weight, modes, kinds)


# --- itp --------------------------------------------------------------------------------------------------------


@cache
def _rates(folder: Path) -> dict[tuple[str, int], dict[int, float]]:
    """Iterations a second by GPUs, of each model and batch; numbers of GPUs that are not possible are left out."""
    found: dict[tuple[str, int], dict[int, float]] = {}
    for path in sorted(folder.glob("*.csv")):
        with open(path, encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                batch = int(row.pop("global_batch_size"))
                found[path.stem, batch] = {int(n): float(rate) for n, rate in row.items() if rate and float(rate) > 0}
    return found


def _itp_rows(name: str, jobs: int) -> Iterator[tuple[int, dict[str, str], float]]:
    with open(DATA / "traces" / "itp" / f"{name}.csv", encoding="utf-8", newline="") as file:
        rows = sorted(csv.DictReader(file), key=lambda row: float(row["submission_time"]))
    first = max(0, (len(rows) - jobs) // 2)
    begin = float(rows[first]["submission_time"])
    for number, row in enumerate(rows[first : first + jobs]):
        yield number, row, begin


def _itp_job(row: tuple[int, dict[str, str], float], kinds: list[str], draw: np.random.Generator) -> dict[str, Any]:
    number, said, begin = row
    rates = _rates(DATA / "throughput" / "elasticflow_a100")[said["model_name"], int(said["batch_size"])]
    modes = [
        {"id": f"{gpus}xA100", "pool": "A100", "gpus": gpus, "duration": round(int(said["num_iteration"]) / rate, 3)}
        for gpus, rate in rates.items()
    ]
    at_s, due_s = (float(said[column]) - begin for column in ("submission_time", "deadline"))
    return entry(f"itp{number}", at_s, due_s, weight_of(draw), modes, kinds)
