"""Instances from a seed: the families that benchmarks and tests draw from.

    mixed      large and small jobs, shared datasets, storage tariff and cache, throttled speeds, burst pools
    compute    the same jobs and nodes without storage
    contended  without storage; more work than the owned nodes can do in time, tight due dates, cloud dear
    busy       jobs that need some of the GPU types: owned pools are full for hours, and beyond a load of 1 jobs burst
               to the cloud and are late
    headline   few wide jobs, on 8 to 64 GPUs nearly all at once, for hundreds of nodes
    scale      as busy, for thousands of jobs and nodes

Each can be had with or without storage. The same arguments give the same instance, byte for byte. `families` says
what sets them apart, and `hardware` has the tables with the figures.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from models.domain import Instance
from models.domain.modes import modes_of, slots_of
from models.domain.rules import suggest
from models.errors import Fault, InvalidInput
from models.grid import price_by_slot
from planner.families import (
    FAMILIES,
    SLOT_S,
    WINDOW_S,
    Draft,
    Family,
    cheapest_work,
    draft_demanding_job,
    draft_job,
    owned_gpus,
    size_odds,
)
from planner.hardware import (
    BANDWIDTH_TARIFF,
    CACHE_USD_GB_H,
    DATASETS,
    ENERGY_PRICE,
    TRANSFER_USD_GB,
    cluster_pools,
)

_SHORTEST_S = 1200.0
_LOAD_TOLERANCE = 0.02
# Few jobs are drawn anew up to so often until the most that they can make is so many times the load that is asked for:
# nearer to it all lengths would be at their limit. Of many jobs others would make the same.
_FEW_JOBS, _MOST_DRAWS, _EASE = 500, 50, 1.15
_MAX_JOBS, _MAX_NODES = 100_000, 100_000


def generate(
    family: str,
    jobs: int,
    nodes: int,
    load: float | None = None,
    seed: int | np.random.Generator = 0,
    storage: bool | None = None,
) -> Instance:
    """An instance of a family with so many jobs on so many owned nodes (cloud quotas come on top).

    `load` is met within 2 % as `load_of` counts it, by scaling the jobs' lengths; without it the family's own
    holds, or as much of it as so few jobs can make. With fewer than two jobs there is nothing to scale.
    `storage` says whether jobs read datasets, for which bandwidth and cache are paid; without it the family decides.
    Jobs, times and nodes are the same with and without.
    InvalidInput where an argument makes no sense or the load is out of reach.
    """
    _check_arguments(family, jobs, nodes, load)
    rng = seed if isinstance(seed, np.random.Generator) else np.random.default_rng(seed)
    traits = FAMILIES[family]
    has_storage = traits.has_storage if storage is None else storage
    pools = cluster_pools(nodes, traits.quota, traits.cloud_price_factor)
    odds = size_odds(traits, pools, jobs, load if load is not None else traits.load)
    drafts = _drafts(rng, traits, pools, odds, jobs, load)
    _set_times(rng, drafts, traits, pools, load)
    drafts.sort(key=lambda draft: draft.release)
    datasets = _datasets(rng if traits.has_storage else rng.spawn(1)[0], drafts)
    if not has_storage:
        datasets = []
        for unread in drafts:
            unread.dataset = None
    complete = np.array([draft.release + draft.fastest_s for draft in drafts])
    records = [_job_record(rng, index, draft, complete) for index, draft in enumerate(drafts)]
    kind = "" if has_storage == traits.has_storage else "-storage" if has_storage else "-nostorage"
    label = f"-load{load:g}" if load is not None else ""
    number = f"-seed{seed}" if not isinstance(seed, np.random.Generator) else ""
    instance = Instance.model_validate(
        {
            "name": f"{family}-{jobs}x{nodes}{kind}{label}{number}",
            "currency": "USD",
            "start": "2026-01-12T18:00:00+01:00",
            "slot": SLOT_S,
            "horizon": "auto",
            "sites": _sites(has_storage, nodes, drafts, datasets),
            "pools": pools,
            "datasets": datasets,
            "network": _network(has_storage, nodes),
            "jobs": records,
        }
    )
    if load is not None and jobs >= 2 and abs(load_of(instance) / load - 1) > _LOAD_TOLERANCE:
        raise InvalidInput(
            [Fault("cannot be met within 2 %", ("--load",), f"{load:g}", "ask for another, or more jobs")]
        )
    return instance


def _drafts(
    rng: np.random.Generator,
    traits: Family,
    pools: list[dict[str, Any]],
    odds: np.ndarray,
    jobs: int,
    load: float | None,
) -> list[Draft]:
    """The jobs without their times; drawn again where few wide ones happen to leave the load hardly in reach."""
    if not traits.access:
        return [draft_job(rng, traits, pools, odds) for _ in range(jobs)]
    drafts: list[Draft] = []
    for _ in range(_MOST_DRAWS if jobs <= _FEW_JOBS else 1):
        drafts = [draft_demanding_job(rng, traits, pools, odds) for _ in range(jobs)]
        at_most = math.fsum(cheapest_work(draft, pools) / draft.slack for draft in drafts) / owned_gpus(pools)
        if load is None or at_most >= _EASE * load:
            break
    return drafts


class _Owned:
    """The owned pools of an instance, by themselves."""

    def __init__(self, instance: Instance):
        kinds = {site.id: site.kind for site in instance.sites}
        self.slot, self.throughputs = instance.slot, instance.throughputs
        self.pools = tuple(pool for pool in instance.pools if kinds[pool.site] == "on_prem")
        self.is_read_at = instance.is_read_at


def load_of(instance: Instance) -> float:
    """GPU-hours of all jobs, each in its cheapest mode on owned nodes, over the owned GPU-hours in which they
    may run, from the first release to the last due date.

    Cheapest by the price of the part of the node that it takes and its energy at the mean price of a day.
    Times are not rounded to slots. A job without an owned mode counts nothing; 0 where nothing is due.
    """
    owned = _Owned(instance)
    day = max(1, round(86400 / instance.slot))
    cost_per_gpu_h = []
    for pool in owned.pools:
        site = instance.sites[instance.site_index[pool.site]]
        energy = float(price_by_slot(instance, site.energy_price, day).mean())
        price = float(price_by_slot(instance, pool.price, day).mean())
        cost_per_gpu_h.append((price / pool.gpus_per_node, pool.gpu_power * energy))
    gpus = sum(pool.gpus_per_node * pool.nodes for pool in owned.pools)
    work_h = 0.0
    for job in instance.jobs:
        options = []
        for mode in modes_of(owned, job.model_copy(update={"speed_levels": (1.0,)})):
            taken = mode.num_nodes * mode.slices / owned.pools[mode.pool].slices_per_gpu
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


def _set_times(
    rng: np.random.Generator,
    drafts: list[Draft],
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
    work = np.array([cheapest_work(draft, pools) for draft in drafts])
    gpus = owned_gpus(pools)

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


def _datasets(rng: np.random.Generator, drafts: list[Draft]) -> list[dict[str, Any]]:
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


def _sites(has_storage: bool, nodes: int, drafts: list[Draft], datasets: list[dict[str, Any]]) -> list[dict[str, Any]]:
    sites: list[dict[str, Any]] = [
        {"id": "on-prem", "kind": "on_prem", "energy_price": ENERGY_PRICE},
        {"id": "cloud", "kind": "cloud"},
    ]
    if not has_storage:
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


def _network(has_storage: bool, nodes: int) -> list[dict[str, Any]]:
    if not has_storage:
        return []
    # One line of 10 Gbit/s for each hundred nodes begun.
    bandwidth = 1250.0 * math.ceil(nodes / 100)
    return [{"source": "on-prem", "target": "cloud", "price": TRANSFER_USD_GB, "bandwidth": bandwidth}]


def _job_record(rng: np.random.Generator, index: int, draft: Draft, complete: np.ndarray) -> dict[str, Any]:
    """The job as an instance has it; `complete` has for every job the time at which it could be complete."""
    width = max(3, len(str(len(complete))))
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
    if rng.random() < 0.05:
        earlier = np.flatnonzero(complete[:index] <= draft.release)
        if len(earlier):
            record["after"] = [f"job-{int(rng.choice(earlier)) + 1:0{width}d}"]
    return record
