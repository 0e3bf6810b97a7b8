"""The joint plan against two stages: what deciding placement, time and storage together saves.

    python -m benchmarks.two_stage --seeds 5 --time-limit 20     results/two-stage.md
    python -m benchmarks.two_stage --smoke                       one instance, nothing is kept

- *schedule first*: the cheapest plan if reading cost nothing and had no limit; then the cheapest caching and bandwidth
  for exactly these runs.
- *storage first*: CBA at the jobs' cheapest modes; then the cheapest plan with no more bandwidth and cache than that,
  both paid whether used or not (which datasets are cached it may still choose: this favours it).

Every plan is made by the same engine in the same time and passes the checker; the joint plan's gap is beside what it
saves, as a saving below the gap is not proven.
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections import defaultdict
from collections.abc import Iterator

from benchmarks.common import RESULTS, made_by, write_whole
from benchmarks.sets import Case
from models import grid
from models.domain import Instance, ModeEntry, Plan
from models.domain.modes import modes_of
from models.errors import Infeasible, NoPlan
from models.storage.cba import Allocation, allocate
from models.storage.demand import demands
from models.storage.tariff import tariff_of
from planner.engines.base import Limits
from planner.horizon import num_slots_of
from planner.modes import modes_by
from planner.solve import solve

FAMILIES = ("mixed", "contended", "busy")
LOADS = (0.5, 0.8, 1.0)
JOBS, NODES = 20, 14


def without_storage(instance: Instance) -> Instance:
    """Reading is free: no tariff, no limits, no prices of links."""
    dry = {"tariff": (), "points": (), "tiers": (), "power": None, "bandwidth_cap": None, "cache_capacity": 0.0}
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
        entry = ModeEntry(
            id=mode.name,
            pool=segment.pool,
            gpus=mode.gpus or None,
            share=None if mode.gpus else mode.slices / instance.pools[mode.pool].slices_per_gpu,
            duration=mode.duration_s,
            read_rate=mode.read_rate_mb_s,
            memory=mode.memory_gb or None,
            cpu_cores=mode.cpu_cores or None,
            ram=mode.ram_gb or None,
        )
        times = {"release": segment.start_slot * plan.slot_s, "deadline": segment.end_slot * plan.slot_s}
        only = {"modes": (entry,), "model": None, "samples": None, "sample_size": None, "speed_levels": (1.0,)}
        jobs.append(job.model_copy(update=times | only))
    return instance.altered(jobs=tuple(jobs), horizon=plan.num_slots * plan.slot_s)


def schedule_first(instance: Instance, limits: Limits) -> float | None:
    """Cost of the plan; None where the runs need more bandwidth than is sold."""
    first = solve(without_storage(instance), "auto", limits).plan
    try:
        return solve(with_runs_of(instance, first), "auto", limits).plan.cost
    except (Infeasible, NoPlan):
        return None


def storage_first(instance: Instance, limits: Limits) -> float | None:
    """Cost of the plan; None where no plan keeps to what CBA bought."""
    bought: dict[str, Allocation] = {}
    for demand in demands(instance, modes_by(instance, "cheapest")):
        try:
            bought[demand.site] = allocate(demand.problem, whole=True).allocation
        except Infeasible:
            return None
    sites, sunk, num_slots = [], 0.0, num_slots_of(instance)
    for site in instance.sites:
        allocation, hours = bought.get(site.id), grid.billed_hours(instance, site, num_slots)
        gb, mb_s = (0.0, 0.0) if allocation is None else (allocation.cached_gb, allocation.bandwidth_mb_s)
        sunk += hours * (site.storage.cache_price * gb + float(tariff_of(site.storage).price(mb_s)))
        free = {"tariff": (), "points": (), "tiers": (), "power": None, "cache_price": 0.0}
        storage = site.storage.model_copy(update=free | {"bandwidth_cap": mb_s, "cache_capacity": gb})
        sites.append(site.model_copy(update={"storage": storage}))
    try:
        return solve(instance.altered(sites=tuple(sites)), "auto", limits).plan.cost + sunk
    except (Infeasible, NoPlan):
        return None


def compare(case: Case, limits: Limits) -> tuple[Plan, dict[str, float | None]]:
    """The joint plan, and what the two stages cost either way."""
    instance = case.make()
    joint = solve(instance, "auto", limits).plan
    return joint, {"schedule first": schedule_first(instance, limits), "storage first": storage_first(instance, limits)}


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
