"""The fallback: list schedules improved by ruin and recreate, and the sum of what each job costs at least as a
bound."""

from __future__ import annotations

from functools import partial

from models.reductions import least_cost, reduce_starts
from models.starts import has_impossible_job
from planner.engines.policies.listing import best_list_schedule
from planner.engines.ruin import Ruin
from planner.engines.schedule import Schedule
from planner.engines.search import ProvenInfeasible, Search

# Iterations of ruin and recreate after each way to a schedule: a few seconds at 50 jobs on 300 nodes.
ITERATIONS = 300
ITERATIONS_PER_JOB = 6


def solve_by_list(search: Search) -> None:
    """The fallback: a list schedule, and the sum of what each job costs at least as its bound."""
    search.report("list scheduling")
    deadline = search.deadline(0.5, least_s=0.1)
    search.raise_bound(least_cost(search.starts))
    starts = reduce_starts(search.starts)
    schedule = best_list_schedule(starts, deadline=deadline, found=partial(search.offer, engine="list"))
    if schedule is not None:
        search.offer(schedule, "list")
        improve_on_nodes(search, schedule, "list")
    elif has_impossible_job(search.starts):
        raise ProvenInfeasible(frozenset())
    search.report("list scheduling")


def improve_on_nodes(search: Search, schedule: Schedule, engine: str) -> None:
    """Ruin and recreate from a schedule, for a fixed number of iterations or a quarter of the time that is left."""
    if search.is_over():
        return
    iterations = min(ITERATIONS, ITERATIONS_PER_JOB * len(schedule.instance.jobs))
    deadline = search.deadline(0.25)
    schedule = schedule.copy()  # what was offered stays whole if this is interrupted
    Ruin(schedule, search.limits.seed).run(iterations, deadline=deadline)
    search.offer(schedule, engine)
