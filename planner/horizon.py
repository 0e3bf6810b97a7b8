"""The number of slots of a plan where the instance leaves it open (`horizon: auto`).

Long enough for every job to finish, late if need be: a list schedule is made on a grid that is lengthened until
all jobs find room; the horizon is its end, or the last due date or fall of a worth where that is later (but no more
than a week later), plus once the longest of the jobs' shortest durations, so that the cheapest plan may be somewhat
longer than the first one. A function of the instance alone.
"""

from __future__ import annotations

import math

from models.domain import MAX_SLOTS, Instance
from models.domain.modes import modes_of
from models.errors import Fault, InvalidInput
from models.grid import release_slot
from models.starts import all_starts
from models.utilities import times_that_count
from planner.engines.fast.occupancy import Occupancy
from planner.engines.fast.table import Table

WEEK_S = 7 * 86400.0
"""A due date or the like lengthens the plan by no more than this beyond the list schedule: a mistyped year must not."""


def num_slots_of(instance: Instance) -> int:
    """Slots of the plan: those of the stated horizon, or by the rule above."""
    if instance.horizon != "auto":
        return round(instance.horizon / instance.slot)
    shortest = [min((mode.duration for mode in modes_of(instance, job)), default=1) for job in instance.jobs]
    longest = max(shortest, default=1)
    starts_by = [job.release for job in instance.jobs]
    starts_by += [window.until for pool in instance.pools for window in pool.unavailable]
    first = release_slot(instance, max(starts_by, default=0.0))
    last = release_slot(instance, max((time for job in instance.jobs for time in times_that_count(job)), default=0.0))
    boot = max(math.ceil(pool.boot_time / instance.slot) for pool in instance.pools)
    # One job after the other on otherwise empty nodes, each in its slowest mode (bandwidth may rule out the others): no
    # list schedule that finds room at all is longer.
    slowest = [max((mode.duration for mode in modes_of(instance, job)), default=1) for job in instance.jobs]
    serial = first + sum(slowest) + (boot + 1) * (len(instance.jobs) + 1)
    num_slots = first + 2 * longest + boot
    while num_slots < serial:
        end = _end_of_list(instance, _not_too_many(num_slots))
        if end is not None:
            break
        num_slots *= 2
    else:
        end = serial
    return _not_too_many(max(end, min(last, end + math.ceil(WEEK_S / instance.slot))) + longest)


def _end_of_list(instance: Instance, num_slots: int) -> int | None:
    """Where a list schedule ends that takes jobs by due date, each at the cheapest of the earliest starts of its modes;
    None where a job finds no room before the end of the grid."""
    table = Table.of(all_starts(instance, num_slots, ignore_deadlines=True))
    if not len(table.rows.job):
        return None if any(math.isinf(cost) for cost in table.jobs.reject) else 1
    occupancy = Occupancy(table)
    due = [min(times_that_count(job), default=math.inf) for job in instance.jobs]
    order = sorted(range(table.num_jobs), key=lambda j: (instance.jobs[j].running is None, due[j], j))
    if not occupancy.recreate(table.after_predecessors(order), tries=0):
        return None
    runs = occupancy.row >= 0
    return int((occupancy.slot[runs] + table.rows.duration[occupancy.row[runs]]).max(initial=1))


def _not_too_many(num_slots: int) -> int:
    if num_slots > MAX_SLOTS:
        problem = f"would make a plan of more than {MAX_SLOTS} slots, since the horizon is auto"
        raise InvalidInput([Fault(problem, ("slot",), None, "lengthen slot, or state a horizon")])
    return num_slots
