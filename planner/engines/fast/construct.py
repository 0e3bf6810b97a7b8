"""First plans: jobs in some order, each where it is cheapest; or as the LP would have them."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable

from models.utilities import times_that_count
from planner.engines.fast.guide import Guide
from planner.engines.fast.occupancy import Occupancy, Snapshot
from planner.engines.fast.table import Table

# How often a job that found no place is put first, and everything begun anew, for one order.
ATTEMPTS = 30
MOST_PASSES, PUT = 500, 50_000
"""Orders in which starts are packed onto the nodes of a pool: no more than these, and about so many puts in all."""
Weights = dict[tuple[int, int], float]


def orders(table: Table, guide: Guide) -> list[list[int]]:
    """Jobs by due date, by slack, by cost, by size, each after its predecessors."""
    rows, jobs = table.rows, table.instance.jobs
    slot = table.instance.slot
    due, size, slack = [], [], []
    for j, job in enumerate(jobs):
        mine = slice(int(table.jobs.row_start[j]), int(table.jobs.row_start[j + 1]))
        shortest = int(rows.duration[mine].min(initial=1 << 30))
        due.append(min(times_that_count(job), default=math.inf))
        slack.append(due[-1] - job.release - shortest * slot)
        size.append(float((rows.width[mine] * rows.duration[mine]).min(initial=1 << 30)))
    every = range(table.num_jobs)
    keys = (
        lambda j: (jobs[j].running is None, due[j], j),
        lambda j: (jobs[j].running is None, slack[j], j),
        lambda j: (jobs[j].running is None, -guide.least[j], j),
        lambda j: (jobs[j].running is None, -size[j], j),
    )
    return [table.after_predecessors(sorted(every, key=key)) for key in keys]


def construct(occupancy: Occupancy, order: list[int], theta: float, tries: int) -> bool:
    """Run all jobs in an order; whether there was room for each that must run.

    One that finds none goes to the front, before those that took its place.
    """
    table, every = occupancy.table, range(occupancy.table.num_jobs)
    for _ in range(ATTEMPTS):
        occupancy.drop(every)
        if occupancy.recreate(order, theta=theta, tries=tries):
            return True
        homeless = next(j for j in order if occupancy.row[j] < 0 and math.isinf(table.jobs.reject[j]))
        order = table.after_predecessors([homeless, *(j for j in order if j != homeless)])
    return False


def best_construction(occupancy: Occupancy, guide: Guide, stop: Callable[[], bool] = lambda: False) -> Snapshot | None:
    """The cheapest of several constructions, or of those until `stop`; None where none found room for all jobs."""
    best: Snapshot | None = None
    for order in orders(occupancy.table, guide):
        for theta, tries in ((1.0, 1), (0.5, 8)):
            if best is not None and stop():
                return best
            if construct(occupancy, order, theta, tries) and (best is None or occupancy.cost < best.cost):
                best = occupancy.snapshot()
    return best


def round_weights(occupancy: Occupancy, guide: Guide, weights: Weights) -> bool:
    """Put every job at the start that the LP likes best where that has room, the surest first; the rest where they are
    cheapest."""
    rows = occupancy.table.rows
    liked: dict[int, list[tuple[float, int, int]]] = {}
    for (r, t), weight in weights.items():
        liked.setdefault(int(rows.job[r]), []).append((-weight, r, t))
    surest = sorted(liked, key=lambda j: (round(min(liked[j])[0], 3), -guide.least[j], j))
    occupancy.drop(range(occupancy.table.num_jobs))
    for j in occupancy.table.after_predecessors(surest):
        for _, r, t in sorted(liked[j]):
            if _put(occupancy, j, (r, t)):
                break
    return fill(occupancy, guide)


def place_starts(occupancy: Occupancy, guide: Guide, starts: dict[int, tuple[int, int]]) -> bool:
    """Put jobs that do not run at these starts (row, slot), as many as some orders find room for in each pool, and the
    rest where they are cheapest."""
    table = occupancy.table
    rows, open_jobs = table.rows, [j for j in sorted(starts) if occupancy.row[j] < 0]
    by_pool: dict[int, list[int]] = defaultdict(list)
    for j in open_jobs:
        by_pool[int(rows.pool[starts[j][0]])].append(j)
    occupancy.aim(open_jobs, [starts[j][0] for j in open_jobs], [starts[j][1] for j in open_jobs])
    for p in sorted(by_pool):
        occupancy.pack(by_pool[p], min(MOST_PASSES, max(2, PUT // len(by_pool[p]))))
    occupancy.suppose_nothing()
    # What runs after a job that is left out waits until that one is placed.
    occupancy.drop(table.with_successors(j for j in open_jobs if occupancy.row[j] < 0))
    return fill(occupancy, guide)


def _put(occupancy: Occupancy, j: int, start: tuple[int, int]) -> bool:
    """Run a job at a start, on its cheapest nodes; whether it has room."""
    found = occupancy.find(*start)
    if found is not None:
        occupancy.put(j, *start, found.nodes, found.gpu)
    return found is not None


def fill(occupancy: Occupancy, guide: Guide) -> bool:
    """Run what does not run where it is cheapest, the dearest first."""
    left: Iterable[int] = [j for j in range(occupancy.table.num_jobs) if occupancy.row[j] < 0]
    order = occupancy.table.after_predecessors(sorted(left, key=lambda j: (-guide.least[j], j)))
    return occupancy.recreate(order, theta=0.5, tries=8)
