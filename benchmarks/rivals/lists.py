"""List scheduling in one order, without improvement, and dispatching by pressure.

- `edf`: earliest due date first, each job at the start that adds least to the cost.
- `weight`: highest price of being late first, likewise.
- `pressure`: the published greedy (see `dispatch`).
"""

from __future__ import annotations

from benchmarks.rivals.attempt import Attempt, Outcome
from benchmarks.rivals.dispatch import Shop
from models.domain import Instance
from planner.engines.policies.listing import Order, by_due_date, by_weight, list_schedule


def edf(instance: Instance, time_limit_s: float, threads: int, seed: int) -> Outcome:
    """List scheduling by due date."""
    return _listed(Attempt("edf", instance, time_limit_s, threads, seed), by_due_date)


def weight(instance: Instance, time_limit_s: float, threads: int, seed: int) -> Outcome:
    """List scheduling by weight."""
    return _listed(Attempt("weight", instance, time_limit_s, threads, seed), by_weight)


def _listed(attempt: Attempt, order: Order) -> Outcome:
    attempt.first(lambda starts: list_schedule(starts, order, deadline=attempt.deadline))
    return attempt.outcome()


def pressure(instance: Instance, time_limit_s: float, threads: int, seed: int) -> Outcome:
    """The pressure greedy."""
    attempt = Attempt("pressure", instance, time_limit_s, threads, seed)
    attempt.first(lambda starts: Shop(starts).run())
    return attempt.outcome()
