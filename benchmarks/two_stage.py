"""The joint plan against two stages: what deciding placement, time and storage together saves.

    python -m benchmarks.two_stage --seeds 5 --time-limit 20     results/two-stage.md
    python -m benchmarks.two_stage --smoke                       one instance, nothing is kept

- *schedule first*: the cheapest plan if reading cost nothing and had no limit; then the cheapest caching and bandwidth
  for exactly these runs.
- *storage first*: CBA at the jobs' cheapest modes says which datasets are cached at which site, and how much bandwidth
  there is; then the cheapest plan with just that, paid whether used or not.
- *storage first, open caches*: the same, but which datasets are in the cache paid for is open until the plan is made.

Every plan is made by the same engine in the same time and passes the checker; the joint plan's gap is beside what it
saves, as a saving below the gap is not proven.
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress

from benchmarks.common import RESULTS, made_by, write_whole
from benchmarks.sets import Case
from models.domain import Instance, Job, ModeEntry, Plan
from models.domain.modes import Mode, modes_of, with_entries
from models.errors import Infeasible, NoPlan
from models.storage.cba import allocate
from models.storage.demand import Demand, demands
from models.storage.problem import Allocation
from models.storage.reading import is_served
from planner.engines.base import Limits
from planner.modes import modes_by
from planner.solve import solve

FREE = {"tariff": (), "points": (), "tiers": (), "power": None}
"""Storage without a tariff."""
FAMILIES = ("mixed", "contended", "busy")
LOADS = (0.5, 0.8, 1.0)
JOBS, NODES = 20, 14


def without_storage(instance: Instance) -> Instance:
    """Reading is free: no tariff, no limits, no prices of links."""
    dry = FREE | {"bandwidth_cap": None, "cache_capacity": 0.0}
    sites = tuple(s.model_copy(update={"storage": s.storage.model_copy(update=dry)}) for s in instance.sites)
    network = tuple(link.model_copy(update={"price": 0.0, "bandwidth": None}) for link in instance.network)
    return instance.altered(sites=sites, network=network)


def with_runs_of(instance: Instance, plan: Plan) -> Instance:
    """Each job in the mode of a plan at its time; caches, bandwidth and nodes are open."""
    runs = {run.job: run.segments[0] for run in plan.runs}
    jobs = []
    for job in instance.jobs:
        segment = runs[job.id]
        (mode,) = (
            mode
            for mode in modes_of(instance, job)
            if (mode.name, instance.pools[mode.pool].id, mode.speed) == (segment.mode, segment.pool, segment.speed)
        )
        times = {"release": segment.start_slot * plan.slot_s, "deadline": segment.end_slot * plan.slot_s}
        entries = (_entry(instance, mode, mode.name, mode.read_rate_mb_s),)
        jobs.append(with_entries(job, entries).model_copy(update=times | {"speed_levels": (1.0,)}))
    return instance.altered(jobs=tuple(jobs), horizon=plan.num_slots * plan.slot_s)


def _entry(instance: Instance, mode: Mode, name: str, read_rate: float) -> ModeEntry:
    """The entry of a mode in its pool, at the mode's speed, with another name and read rate, MB/s."""
    pool = instance.pools[mode.pool]
    return ModeEntry(
        id=name,
        pool=pool.id,
        gpus=mode.gpus or None,
        share=None if mode.gpus else mode.slices / pool.slices_per_gpu,
        duration=mode.duration_s,
        read_rate=read_rate,
        memory=mode.memory_gb or None,
        cpu_cores=mode.cpu_cores or None,
        ram=mode.ram_gb or None,
    )


def schedule_first(instance: Instance, limits: Limits) -> float | None:
    """Cost of the plan; None where the runs need more bandwidth than is sold."""
    first = solve(without_storage(instance), "auto", limits).plan
    try:
        return solve(with_runs_of(instance, first), "auto", limits).plan.cost
    except (Infeasible, NoPlan):
        return None


Bought = dict[str, tuple[Demand, Allocation]]
"""What CBA caches and buys at each site at which it does."""


def bought_first(instance: Instance) -> Bought:
    """CBA at the jobs' cheapest modes, datasets cached wholly.

    Raises Infeasible where the bandwidth sold and the caches do not suffice for all jobs at once, NoPlan where that is
    open.
    """
    found = demands(instance, modes_by(instance, "cheapest"))
    return {demand.site: (demand, allocate(demand.problem, whole=True).allocation) for demand in found}


def sunk_cost(bought: Bought, *, is_open: bool) -> float:
    """Money for cache and bandwidth, and for what is copied into the cache; an open one is filled by the plan."""
    return math.fsum(
        demand.hours * (made.cost - made.transfer_cost + (0.0 if is_open else demand.problem.copying @ made.cached))
        for demand, made in bought.values()
    )


def with_storage(instance: Instance, bought: Bought, *, is_open: bool) -> Instance:
    """With no more bandwidth than was bought, for nothing. The cache is as large as what was to be cached where it is
    open; else what is cached is not read over the link by any job, and nothing else is cached."""
    sites = []
    for site in instance.sites:
        gb, mb_s = 0.0, 0.0
        if site.id in bought:
            gb, mb_s = bought[site.id][1].cached_gb, bought[site.id][1].bandwidth_mb_s
        has = FREE | {"cache_price": 0.0, "bandwidth_cap": mb_s, "cache_capacity": gb if is_open else 0.0}
        sites.append(site.model_copy(update={"storage": site.storage.model_copy(update=has)}))
    jobs = instance.jobs if is_open else tuple(_beside_caches(instance, job, bought) for job in instance.jobs)
    return instance.altered(sites=tuple(sites), jobs=jobs)


def _beside_caches(instance: Instance, job: Job, bought: Bought) -> Job:
    """The job with a read rate of 0 where its dataset is cached whole, as it then takes no part of the bandwidth.

    A mode whose full speed is too fast for the cache reads past it, at its lower speeds too.
    """
    if job.dataset is None:
        return job
    cached = {site for site, (demand, made) in bought.items() if job.dataset in _cached_whole(demand, made)}
    entries = []
    for mode in modes_of(instance, job):
        pool = instance.pools[mode.pool]
        storage = instance.sites[instance.site_index[pool.site]].storage
        is_past = pool.site not in cached or not is_served(mode.read_rate_mb_s, storage.cache_speed)
        if mode.speed == 1.0:
            rate = mode.read_rate_mb_s if is_past else 0.0
            entries.append(_entry(instance, mode, _name_in(mode.name, pool.id), rate))
    if job.running is not None:
        name = _name_in(job.running.mode, job.running.pool)
        job = job.model_copy(update={"running": job.running.model_copy(update={"mode": name})})
    return with_entries(job, tuple(entries))


def _name_in(mode: str, pool: str) -> str:
    """A mode that reads in one pool and not in another is two."""
    return f"{mode} in {pool}"


def _cached_whole(demand: Demand, made: Allocation) -> set[str]:
    return {name for name, part in zip(demand.datasets, made.cached, strict=True) if part == 1.0}


def storage_first(instance: Instance, bought: Bought, limits: Limits, *, is_open: bool) -> float | None:
    """Cost of the plan; None where no plan keeps to what CBA bought."""
    try:
        plan = solve(with_storage(instance, bought, is_open=is_open), "auto", limits).plan
    except (Infeasible, NoPlan):
        return None
    return plan.cost + sunk_cost(bought, is_open=is_open)


def compare(case: Case, limits: Limits) -> tuple[Plan, dict[str, float | None]]:
    """The joint plan, and what the two stages cost either way."""
    instance = case.make()
    costs: dict[str, float | None] = {"schedule first": schedule_first(instance, limits)}
    costs |= dict.fromkeys(("storage first", "storage first, open caches"))
    with suppress(Infeasible, NoPlan):
        bought = bought_first(instance)
        costs["storage first"] = storage_first(instance, bought, limits, is_open=False)
        costs["storage first, open caches"] = storage_first(instance, bought, limits, is_open=True)
    return solve(instance, "auto", limits).plan, costs


def table(cases: list[Case], limits: Limits) -> Iterator[str]:
    """One line for each family and load."""
    yield "| family | load | stages | cases | no plan | saved, median | least | most | joint gap, median | worst |"
    yield "|---|---|---|---|---|---|---|---|---|---|"
    groups: dict[tuple[str, float], list[tuple[Plan, dict[str, float | None]]]] = defaultdict(list)
    for case in cases:
        groups[case.family, case.load].append(compare(case, limits))
    for (family, load), found in groups.items():
        gaps = [plan.gap if plan.gap is not None else math.inf for plan, _ in found]
        for stages in found[0][1]:
            pairs = [(plan.cost, costs[stages]) for plan, costs in found]
            saved = [1 - joint / cost for joint, cost in pairs if cost is not None and cost > 0]
            numbers = "- | - | -"
            if saved:
                numbers = f"{statistics.median(saved):.2%} | {min(saved):.2%} | {max(saved):.2%}"
            none = sum(cost is None for _, cost in pairs)
            yield (
                f"| {family} | {load} | {stages} | {len(found)} | {none} | {numbers} | {statistics.median(gaps):.2%} | "
                f"{max(gaps):.2%} |"
            )


def main() -> None:
    """Run what the arguments ask for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5, metavar="N", help="instances of each family and load")
    parser.add_argument("--time-limit", type=float, default=20.0, metavar="S", help="seconds for each plan")
    parser.add_argument("--smoke", action="store_true", help="one instance, nothing is kept")
    options = parser.parse_args()
    if options.smoke:
        print("\n".join(table([Case("mixed", 6, 12, 0.5, True, 1)], Limits(time_limit_s=3.0))))
        return
    cases = [
        Case(family, JOBS, NODES, load, True, seed)
        for family in FAMILIES
        for load in LOADS
        for seed in range(1, options.seeds + 1)
    ]
    head = (
        f"# The joint plan and two stages\n\n`python -m benchmarks.two_stage --seeds {options.seeds} --time-limit "
        f"{options.time_limit:g}`: {JOBS} jobs on {NODES} nodes with storage. A saving within the joint plan's gap is "
        f"not proven; a negative one is a joint plan that was not found in time. {made_by()}"
    )
    lines = [head, "", *table(cases, Limits(time_limit_s=options.time_limit)), ""]
    write_whole(RESULTS / "two-stage.md", "\n".join(lines))
    print("\n".join(lines))


if __name__ == "__main__":
    main()
