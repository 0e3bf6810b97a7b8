"""The number of slots of a plan where the instance leaves it open (`horizon: auto`).

Long enough for every job to finish, late if need be: a list schedule is made on a grid that is lengthened until
all jobs find room; the horizon is its end or the last due date, whichever is later, plus once the longest of the
jobs' shortest durations, so that the cheapest plan may be somewhat longer than the first one. A function of the
instance alone.
"""

from __future__ import annotations

import math

from models.domain import MAX_SLOTS, Instance
from models.domain.modes import modes_of
from models.grid import release_slot
from models.starts import all_starts
from planner.engines.policies.listing import by_due_date, list_schedule


def num_slots_of(instance: Instance) -> int:
    """Slots of the plan: those of the stated horizon, or by the rule above."""
    if instance.horizon != "auto":
        return round(instance.horizon / instance.slot)
    shortest = [min((mode.duration for mode in modes_of(instance, job)), default=1) for job in instance.jobs]
    longest = max(shortest, default=1)
    times = [time for job in instance.jobs for time in (job.release, job.due, job.deadline) if time is not None]
    times += [window.until for pool in instance.pools for window in pool.unavailable]
    last = release_slot(instance, max(times, default=0.0))
    boot = max(math.ceil(pool.boot_time / instance.slot) for pool in instance.pools)
    # One job after the other on otherwise empty nodes, each in its slowest mode (bandwidth may rule out the others): no
    # list schedule that finds room at all is longer.
    slowest = [max((mode.duration for mode in modes_of(instance, job)), default=1) for job in instance.jobs]
    serial = min(MAX_SLOTS, last + sum(slowest) + (boot + 1) * (len(instance.jobs) + 1))
    num_slots = last + 2 * longest + boot
    while num_slots < serial:
        schedule = list_schedule(all_starts(instance, num_slots, ignore_deadlines=True), by_due_date)
        if schedule is not None:
            end = max((schedule.completion(j) for j in schedule.chosen), default=1)
            return min(num_slots, max(end, last) + longest)
        num_slots *= 2
    return serial
