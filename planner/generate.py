"""Instances from a seed: the families that benchmarks and tests draw from.

    mixed      large and small jobs, shared datasets, storage tariff and cache, throttled speeds, burst pools
    compute    the same jobs and nodes without storage
    contended  without storage; more work than the owned nodes can do in time, tight due dates, cloud dear

The same arguments give the same instance, byte for byte. Figures come from the tables in `hardware`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from models.domain import Instance
from models.domain.modes import modes_of, slots_of
from models.domain.rules import suggest
from models.errors import Fault, InvalidInput
from models.grid import price_by_slot
from planner.hardware import (
    BANDWIDTH_TARIFF,
    CACHE_USD_GB_H,
    DATASETS,
    ENERGY_DAY,
    ENERGY_NIGHT,
    ENERGY_PRICE,
    GPU_COUNTS,
    MODEL_CLASSES,
    TRANSFER_USD_GB,
    ModelClass,
    cluster_pools,
)

FamilyName = Literal["mixed", "compute", "contended"]

SLOT_S = 1800.0
WINDOW_S = 96 * SLOT_S
"""From the first release to the last due date."""
_SHORTEST_S = 1200.0
_LOAD_TOLERANCE = 0.02
_MAX_JOBS, _MAX_NODES = 100_000, 100_000


@dataclass(frozen=True)
class Family:
    """What sets one family apart."""

    has_storage: bool
    load: float
    """Load where none is asked for."""
    reach: float
    """Part of the load that the jobs could make at most which the load above may be."""
    slack_power: int
    """Due dates lie at 1.5 + 3.5 u^power times the fastest time, u uniform: the higher, the tighter."""
    size_sigma: float
    """Spread of the lognormal job lengths."""
    cloud_price_factor: float
    quota: float
    """Cloud nodes of each type over owned nodes."""


# In the order of the fields above.
FAMILIES: dict[str, Family] = {
    "mixed": Family(True, 0.4, 0.5, 1, 1.2, 1.0, 0.15),
    "compute": Family(False, 0.4, 0.5, 1, 1.2, 1.0, 0.15),
    "contended": Family(False, 0.9, 0.8, 2, 1.6, 2.0, 0.10),
}

# Fewest GPUs that a job runs on. Most jobs are small, few very large, as in published traces. Where few jobs
# make a high load they are larger: the odds are tilted to the mean size at which _MEAN_H hours make the load,
# within limits. Lengths do the rest.
_FEWEST_GPUS = (1, 2, 4, 8, 16, 32)
_FEWEST_ODDS = (0.50, 0.20, 0.14, 0.10, 0.04, 0.02)
_TILT = (0.8, 1.6)
_MEAN_H = 10.0


def generate(
    family: str, jobs: int, nodes: int, load: float | None = None, seed: int | np.random.Generator = 0
) -> Instance:
    """An instance of a family with so many jobs on so many owned nodes (cloud quotas come on top).

    `load` is met within 2 % as `load_of` counts it, by scaling the jobs' lengths; without it the family's own
    holds, or as much of it as so few jobs can make. With fewer than two jobs there is nothing to scale.
    InvalidInput where an argument makes no sense or the load is out of reach.
    """
    _check_arguments(family, jobs, nodes, load)
    rng = seed if isinstance(seed, np.random.Generator) else np.random.default_rng(seed)
    traits = FAMILIES[family]
    pools = cluster_pools(nodes, traits.quota, traits.cloud_price_factor)
    odds = _size_odds(pools, jobs, load if load is not None else traits.load)
    drafts = [_draft_job(rng, traits, pools, odds) for _ in range(jobs)]
    _set_times(rng, drafts, traits, pools, load)
    drafts.sort(key=lambda draft: draft.release)
    datasets = _datasets(rng, drafts) if traits.has_storage else []
    records = [_job_record(rng, index, draft, drafts) for index, draft in enumerate(drafts)]
    label = f"-load{load:g}" if load is not None else ""
    number = f"-seed{seed}" if not isinstance(seed, np.random.Generator) else ""
    instance = Instance.model_validate(
        {
            "name": f"{family}-{jobs}x{nodes}{label}{number}",
            "currency": "USD",
            "start": "2026-01-12T18:00:00+01:00",
            "slot": SLOT_S,
            "horizon": "auto",
            "sites": _sites(traits, nodes, drafts, datasets),
            "pools": pools,
            "datasets": datasets,
            "network": _network(traits, nodes),
            "jobs": records,
        }
    )
    if load is not None and jobs >= 2 and abs(load_of(instance) / load - 1) > _LOAD_TOLERANCE:
        raise InvalidInput(
            [Fault("cannot be met within 2 %", ("--load",), f"{load:g}", "ask for another, or more jobs")]
        )
    return instance


def load_of(instance: Instance) -> float:
    """GPU-hours of all jobs, each in its cheapest mode on owned nodes, over the owned GPU-hours in which they
    may run, from the first release to the last due date.

    Cheapest by the price of the part of the node that it takes and its energy at the mean price of a day.
    Times are not rounded to slots. A job without an owned mode counts nothing; 0 where nothing is due.
    """
    owned = {site.id: site for site in instance.sites if site.kind == "on_prem"}
    day = max(1, round(86400 / instance.slot))
    cost_per_gpu_h, gpus = {}, 0
    for index, pool in enumerate(instance.pools):
        if pool.site in owned:
            energy = float(price_by_slot(instance, owned[pool.site].energy_price, day).mean())
            price = float(price_by_slot(instance, pool.price, day).mean())
            cost_per_gpu_h[index] = (price / pool.gpus_per_node, pool.gpu_power * energy)
            gpus += pool.gpus_per_node * pool.nodes
    work_h = 0.0
    for job in instance.jobs:
        options = []
        for mode in modes_of(instance, job):
            if mode.speed == 1.0 and mode.pool in cost_per_gpu_h:
                pool = instance.pools[mode.pool]
                taken = mode.num_nodes * mode.slices / pool.slices_per_gpu
                node, energy = cost_per_gpu_h[mode.pool]
                options.append(((taken * node + mode.busy_gpus * energy) * mode.duration_s, taken * mode.duration_s))
        work_h += min(options)[1] / 3600 if options else 0.0
    dues = [job.due for job in instance.jobs if job.due is not None]
    if not dues or not gpus:
        return 0.0
    span_h = (max(dues) - min(job.release for job in instance.jobs)) / 3600
    return work_h / (gpus * span_h) if span_h > 0 else 0.0


def _check_arguments(family: str, jobs: int, nodes: int, load: float | None) -> None:
    faults = []
    if family not in FAMILIES:
        faults.append(Fault("is not a family", ("family",), str(family), suggest(str(family), FAMILIES)))
    if not 0 <= jobs <= _MAX_JOBS:
        faults.append(Fault(f"is not within 0 to {_MAX_JOBS}", ("--jobs",), str(jobs), "choose another number"))
    if not 1 <= nodes <= _MAX_NODES:
        faults.append(Fault(f"is not within 1 to {_MAX_NODES}", ("--nodes",), str(nodes), "choose another number"))
    if load is not None and not (math.isfinite(load) and load > 0):
        faults.append(Fault("is not a number above 0", ("--load",), str(load), "1 fills the owned nodes"))
    if faults:
        raise InvalidInput(faults)


@dataclass
class _Draft:
    """A job before its record: its modes at a fastest time of 1, and the times once they are set."""

    kind: ModelClass
    memory: float
    weight: float
    slack: float
    modes: list[tuple[str, int, float]]
    """(GPU type, GPUs, duration)"""
    shares: tuple[tuple[float, float], ...]
    """(share, slowdown) on every GPU type"""
    dataset: str | None = None
    fastest_s: float = 0.0
    release: float = 0.0
    due: float = 0.0


def _owned_gpus(pools: list[dict[str, Any]]) -> int:
    return sum(pool["gpus_per_node"] * pool["nodes"] for pool in pools if pool["site"] == "on-prem")


def _size_odds(pools: list[dict[str, Any]], jobs: int, load: float) -> np.ndarray:
    """Odds of the fewest GPUs of a job, tilted towards the size that the load asks for."""
    sizes, steps = np.array(_FEWEST_GPUS, dtype=float), np.arange(len(_FEWEST_GPUS))
    wanted = load * _owned_gpus(pools) * WINDOW_S / 3600 / (max(1, jobs) * _MEAN_H)
    low, high = _TILT
    for _ in range(40):
        tilt = (low + high) / 2
        odds = np.array(_FEWEST_ODDS) * tilt**steps
        low, high = (tilt, high) if sizes @ odds / odds.sum() < wanted else (low, tilt)
    return np.asarray(odds / odds.sum())


def _draft_job(rng: np.random.Generator, traits: Family, pools: list[dict[str, Any]], odds: np.ndarray) -> _Draft:
    kind = MODEL_CLASSES[int(rng.integers(len(MODEL_CLASSES)))]
    capacity: dict[str, int] = {}
    for pool in pools:
        capacity[pool["gpu"]] = max(capacity.get(pool["gpu"], 0), pool["gpus_per_node"] * pool["nodes"])
    largest_owned = max(p["gpus_per_node"] * p["nodes"] for p in pools if p["site"] == "on-prem")
    fewest = int(rng.choice(_FEWEST_GPUS, p=odds))
    doublings = int(rng.integers(0, 4))
    is_small, u_weight, u_slack = rng.random() < 0.5, rng.random(), rng.random()
    memory = float(np.round(rng.uniform(1.0, 14.0), 1))
    if kind.scaling is None:
        fewest, doublings = 1, 0
    while fewest > largest_owned:
        fewest //= 2
    counts = [g for g in GPU_COUNTS if fewest <= g <= min(64, fewest << doublings)]
    modes = [(gpu, g, 1.0 / kind.speed_on(gpu, g)) for gpu in capacity for g in counts if g <= capacity[gpu]]
    shortest = min(duration for _, _, duration in modes)
    shares: list[tuple[float, float]] = []
    if fewest == 1 and is_small:
        # Slow-downs as measured: up to 11 % on a quarter and 5 % on a half of a GPU, where memory is enough.
        memory = float(np.round(rng.uniform(1.0, 8.0), 1))
        quarter, half = (float(x) for x in np.round(rng.uniform([1.01, 1.01], [1.11, 1.05]), 3))
        shares = [(0.25, quarter)] if memory <= 4 else []
        shares.append((0.5, half))
    return _Draft(
        kind=kind,
        memory=memory,
        # Being late with a large job costs more, though not in proportion.
        weight=round((4.0 + 16.0 * u_weight) * math.sqrt(fewest), 2),
        slack=1.5 + 3.5 * u_slack**traits.slack_power,
        modes=[(gpu, g, duration / shortest) for gpu, g, duration in modes],
        shares=tuple(shares),
    )


def _set_times(
    rng: np.random.Generator,
    drafts: list[_Draft],
    traits: Family,
    pools: list[dict[str, Any]],
    load: float | None,
) -> None:
    """Lengths by bisection on one factor, to meet the load; releases spread over what the window leaves."""
    if not drafts:
        return
    sizes = rng.lognormal(0.0, traits.size_sigma, len(drafts))
    where = rng.random(len(drafts))
    # The first is released at once, the last due at the end, whatever the factor: the window does not move.
    where[int(where.argmax())] = 1.0
    where[int(where.argmin())] = 0.0
    slack = np.array([draft.slack for draft in drafts])
    longest = WINDOW_S / slack
    work = np.array([_cheapest_work(draft, pools) for draft in drafts])
    gpus = _owned_gpus(pools)

    def lengths(factor: float) -> np.ndarray:
        return np.clip(factor * sizes, _SHORTEST_S, longest)

    def load_at(factor: float) -> float:
        # fsum: the same to the last bit whatever the machine's way of adding.
        return math.fsum(work * lengths(factor)) / (gpus * WINDOW_S)

    low, high = 1.0, 1e12
    target = load
    if target is None:
        target = min(traits.load, traits.reach * load_at(high))
    factor = 2 * 3600.0
    if len(drafts) >= 2:
        if not load_at(low) <= target <= load_at(high):
            problem = f"is out of reach: {len(drafts)} jobs make {load_at(low):.3g} to {load_at(high):.3g}"
            mend = "change it, or the number of jobs or nodes"
            raise InvalidInput([Fault(problem, ("--load",), f"{target:g}", mend)])
        for _ in range(100):
            factor = math.sqrt(low * high)
            low, high = (factor, high) if load_at(factor) < target else (low, factor)
    for draft, length, at in zip(drafts, lengths(factor), where, strict=True):
        seconds = float(length)
        draft.fastest_s = seconds
        draft.release = SLOT_S * math.floor(float(at) * max(0.0, WINDOW_S - seconds * draft.slack) / SLOT_S)
        # On the grid too a job that starts at once is on time: what is late is late for want of nodes.
        patience = max(round(draft.slack * seconds), SLOT_S * slots_of(round(seconds), SLOT_S))
        if at == 1.0:
            draft.release += SLOT_S if (WINDOW_S - draft.release) > 5 * seconds else 0.0
            patience = WINDOW_S - draft.release
        draft.due = draft.release + patience


def _cheapest_work(draft: _Draft, pools: list[dict[str, Any]]) -> float:
    """GPU-seconds in the cheapest owned mode, for a fastest time of 1 s; as `load_of` counts them."""
    # The energy price of a mean hour: eight hours of the day are night.
    energy = (16 * ENERGY_DAY + 8 * ENERGY_NIGHT) / 24
    options = []
    for pool in pools:
        if pool["site"] == "on-prem":
            gpu_h = pool["price"] / pool["gpus_per_node"] + pool["gpu_power"] * energy
            for gpu, gpus, duration in draft.modes:
                if gpu != pool["gpu"] or gpus > pool["gpus_per_node"] * pool["nodes"]:
                    continue
                options.append((gpus * gpu_h * duration, gpus * duration))
                if gpus == 1:
                    options += [(s * slow * gpu_h * duration, s * slow * duration) for s, slow in draft.shares]
    return min(options)[1]


def _datasets(rng: np.random.Generator, drafts: list[_Draft]) -> list[dict[str, Any]]:
    """Datasets that several jobs share, popular ones most; sets each reading job's."""
    readers = [draft for draft in drafts if draft.kind.read_v100_mb_s > 0]
    if not readers:
        return []
    number = max(1, math.ceil(len(readers) / 6))
    odds = 1.0 / np.arange(1, number + 1)
    records = []
    for index in range(number):
        name, size = DATASETS[index % len(DATASETS)]
        copy = index // len(DATASETS)
        # Past the list come versions of its datasets, of other sizes.
        factor = 1.0 if copy == 0 else float(np.round(rng.uniform(0.5, 1.5), 2))
        label = name if copy == 0 else f"{name}-{copy + 1}"
        records.append({"id": label, "size": round(size * factor, 1), "home": "on-prem"})
    for draft in readers:
        draft.dataset = str(records[int(rng.choice(number, p=odds / odds.sum()))]["id"])
    used = {draft.dataset for draft in readers}
    return [record for record in records if record["id"] in used]


def _sites(traits: Family, nodes: int, drafts: list[_Draft], datasets: list[dict[str, Any]]) -> list[dict[str, Any]]:
    sites: list[dict[str, Any]] = [
        {"id": "on-prem", "kind": "on_prem", "energy_price": ENERGY_PRICE},
        {"id": "cloud", "kind": "cloud"},
    ]
    if not traits.has_storage:
        return sites
    slowest = [min(d.kind.read_rate(gpu, gpus) for gpu, gpus, _ in d.modes) for d in drafts if d.dataset is not None]
    # Half of the data fits a cache, so that what to cache is a question; any one dataset does.
    capacity = max([0.5 * sum(d["size"] for d in datasets), *(d["size"] for d in datasets)], default=0.0)
    storage = {
        "tariff": [{"fixed": fixed, "per_mb_s": per_mb_s} for fixed, per_mb_s in BANDWIDTH_TARIFF],
        # A job that cannot be read for at its slowest could never run uncached.
        "bandwidth_cap": math.ceil(max([1200.0, 100.0 * nodes, *slowest])),
        "cache_capacity": math.ceil(capacity),
        "cache_price": CACHE_USD_GB_H,
        "billed": WINDOW_S,
    }
    return [site | {"storage": storage} for site in sites]


def _network(traits: Family, nodes: int) -> list[dict[str, Any]]:
    if not traits.has_storage:
        return []
    # One line of 10 Gbit/s for each hundred nodes begun.
    bandwidth = 1250.0 * math.ceil(nodes / 100)
    return [{"source": "on-prem", "target": "cloud", "price": TRANSFER_USD_GB, "bandwidth": bandwidth}]


def _job_record(rng: np.random.Generator, index: int, draft: _Draft, drafts: list[_Draft]) -> dict[str, Any]:
    width = max(3, len(str(len(drafts))))
    modes: list[dict[str, Any]] = []
    for gpu, gpus, relative in draft.modes:
        rate = {"read_rate": draft.kind.read_rate(gpu, gpus)} if draft.dataset is not None else {}
        duration = float(round(relative * draft.fastest_s))
        modes.append({"gpu": gpu, "gpus": gpus, "duration": duration} | rate)
        if gpus == 1:
            for share, slowdown in draft.shares:
                modes.append({"gpu": gpu, "share": share, "duration": duration, "slowdown": slowdown} | rate)
    record: dict[str, Any] = {
        "id": f"job-{index + 1:0{width}d}",
        "release": draft.release,
        "due": draft.due,
        "weight": draft.weight,
        "memory": draft.memory,
        "modes": modes,
    }
    if draft.dataset is not None:
        record |= {"dataset": draft.dataset, "speed_levels": [1.0, 0.75, 0.5]}
    # Few jobs wait for another: one that could be complete by the release of its successor.
    earlier = [i for i in range(index) if drafts[i].release + drafts[i].fastest_s <= draft.release]
    if rng.random() < 0.05 and earlier:
        record["after"] = [f"job-{int(rng.choice(earlier)) + 1:0{width}d}"]
    return record


assert set(FAMILIES) == set(get_args(FamilyName))
