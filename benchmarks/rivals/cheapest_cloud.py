"""Everything in the cloud: each job by itself on its cheapest rented nodes that meet its due date.

No node is shared, neither at the same time nor within a rental, so this is what running each job alone would cost. A
job that meets its due date in no cloud mode takes the one that adds least; where the quota is used up, or no cloud mode
exists, it goes where it is cheapest, on owned nodes too.
"""

from __future__ import annotations

import numpy as np

from benchmarks.rivals.attempt import Attempt, Outcome
from benchmarks.rivals.occupancy import Occupancy
from models.domain import Instance
from models.rentals import NodeRules
from models.starts import Row, Starts
from planner.engines.policies.listing import by_due_date, insert, sequence
from planner.engines.schedule import Schedule, Step
from planner.engines.timeline import Spot


def solve(instance: Instance, time_limit_s: float, threads: int, seed: int) -> Outcome:
    """Each job alone in the cloud."""
    attempt = Attempt("cheapest_cloud", instance, time_limit_s, threads, seed)
    attempt.first(_rent)
    return attempt.outcome()


def _rent(starts: Starts) -> Schedule | None:
    schedule, occupancy = Schedule(starts), Occupancy(starts)
    instance = starts.instance
    cloud = {
        p for p, pool in enumerate(instance.pools) if instance.sites[instance.site_index[pool.site]].kind == "cloud"
    }
    for j in sequence(starts, by_due_date):
        earliest, step = schedule.ready(j), None
        if instance.jobs[j].running is None and earliest is not None:
            step = _alone(schedule, occupancy, j, earliest, cloud)
        if step is not None:
            schedule.put(j, step)
        elif not insert(schedule, j):
            return None
        if j in schedule.chosen:
            occupancy.note(schedule.chosen[j])
    return schedule


def _alone(schedule: Schedule, occupancy: Occupancy, j: int, earliest: int, cloud: set[int]) -> Step | None:
    """The cheapest start of a job in the cloud on nodes that nothing else uses; on time where there is one."""
    best: tuple[bool, float, int] | None = None
    found: Step | None = None
    job, slot_s = schedule.instance.jobs[j], schedule.instance.slot
    due = float("inf") if job.due is None else job.due / slot_s + 1e-9
    for r in schedule.starts.rows_of_job[j]:
        row = schedule.starts.rows[r]
        slots = row.slots[row.slots >= earliest]
        if row.pool not in cloud or row.kept or not len(slots):
            continue
        # What storage adds, and whether there is room in it, is asked of the schedule; its nodes are not taken.
        step = schedule.offer(r, slots)
        if step is None:
            continue
        for slot in dict.fromkeys((int(slots[0]), step.slot)):
            spot = _empty_nodes(occupancy, schedule.pools[row.pool].rules, row, slot)
            offered = step if slot == step.slot else schedule.offer(r, np.array([slot]))
            if spot is None or offered is None:
                continue
            rent = _rent_cost(schedule.pools[row.pool].rules, row, slot)
            k = int(row.slots.searchsorted(slot))
            cost = float(row.costs[k]) + row.mode.num_nodes * rent
            key = (slot + row.duration > due, cost, slot + row.duration)
            if best is None or key < best:
                best, found = key, Step(r, slot, spot, cost)
    return found


def _rent_cost(rules: NodeRules, row: Row, slot: int) -> float:
    """A node's rental for one run, boot and whole billing increments included."""
    return rules.cost(max(0, slot - rules.boot), slot + row.duration)


def _empty_nodes(occupancy: Occupancy, rules: NodeRules, row: Row, slot: int) -> Spot | None:
    """Nodes that are free during the run, and so long before and after that no rental is shared."""
    apart = rules.boot + rules.block + 1
    free = occupancy.most_taken(row.pool, slot - apart, slot + row.duration + apart) == 0
    nodes = np.flatnonzero(free & occupancy.open_nodes(row, slot))[: row.mode.num_nodes].tolist()
    if len(nodes) < row.mode.num_nodes:
        return None
    return (nodes[0], 0) if occupancy.shares_gpu(row) else tuple(nodes)
