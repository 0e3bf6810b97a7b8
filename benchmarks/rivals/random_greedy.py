"""Randomised greedy: the pressure greedy over and over, each time with a somewhat other order, set-ups drawn from the
best 5 % and nodes from the best 20 %, until the time is over; the cheapest schedule is kept."""

from __future__ import annotations

import random

from benchmarks.rivals.attempt import Attempt, Outcome
from benchmarks.rivals.dispatch import Shop, swapped_by_weight
from models.domain import Instance
from models.starts import Starts
from planner.engines.schedule import Schedule


def solve(instance: Instance, time_limit_s: float, threads: int, seed: int) -> Outcome:
    """Iterations of the randomised greedy for the time given."""
    attempt = Attempt("random_greedy", instance, time_limit_s, threads, seed)
    shop = opened(attempt)
    draw = random.Random(seed)
    while shop is not None and not attempt.is_over():
        schedule = shop.run(swapped_by_weight(shop, draw), draw, attempt.is_over)
        if schedule is not None:
            attempt.offer(schedule)
    return attempt.outcome()


def opened(attempt: Attempt) -> Shop | None:
    """The set-ups on the first grid on which the greedy, not randomised, finds room; its schedule is offered."""
    shops: list[Shop] = []

    def greedy(starts: Starts) -> Schedule | None:
        shops.append(Shop(starts))
        return shops[-1].run()

    return None if attempt.first(greedy) is None else shops[-1]
