"""Path relinking: walks from the best of a pool of elite schedules towards each of the others.

A move gives one job the place (pool, set-up, time) that it has in the schedule walked to; nodes of a pool are alike,
and it takes the best fitting. At every step the cheapest move of a sample is made, even where it costs; the best
schedule on the way is improved by local search and enters the pool in the place of the worst.
"""

from __future__ import annotations

import random
from functools import partial

from benchmarks.rivals.attempt import Attempt, Outcome
from benchmarks.rivals.dispatch import Shop, swapped_by_weight
from benchmarks.rivals.local_search import descend
from benchmarks.rivals.moves import Change, Desk
from benchmarks.rivals.random_greedy import opened
from models.domain import Instance
from planner.engines.schedule import Schedule

ELITE = 10
SAMPLE = 8
"""Moves that are tried at each step of a walk."""
FIRST_PART = 0.5
"""Part of the time in which the pool is filled."""


def solve(instance: Instance, time_limit_s: float, threads: int, seed: int) -> Outcome:
    """Fill the pool by randomised greedy and local search, then relink for the rest of the time."""
    attempt = Attempt("path_relinking", instance, time_limit_s, threads, seed)
    shop = opened(attempt)
    if shop is None or attempt.best is None:
        return attempt.outcome()
    draw = random.Random(seed)
    elite: list[tuple[float, Schedule]] = []
    schedule: Schedule | None = attempt.best.copy()
    while schedule is not None and len(elite) < ELITE and (len(elite) < 2 or not _is_filled(attempt, ELITE)):
        cost = descend(schedule, shop, attempt, partial(_is_filled, attempt, len(elite) + 1))
        elite.append((cost, schedule))
        schedule = shop.run(swapped_by_weight(shop, draw), draw, attempt.is_over)
    while len(elite) > 1 and not attempt.is_over():
        if not _round(elite, shop, attempt, draw):
            fresh = shop.run(swapped_by_weight(shop, draw), draw, attempt.is_over)
            if fresh is not None:
                elite.sort(key=lambda member: member[0])
                elite[-1] = (descend(fresh, shop, attempt), fresh)
    return attempt.outcome()


def _is_filled(attempt: Attempt, members: int) -> bool:
    """Whether the part of the time is over that so many members of the pool may take."""
    return attempt.left_s() <= attempt.time_limit_s * (1 - FIRST_PART * members / ELITE)


def _round(elite: list[tuple[float, Schedule]], shop: Shop, attempt: Attempt, draw: random.Random) -> bool:
    """A walk from the best to each of the others; whether the pool changed."""
    elite.sort(key=lambda member: member[0])
    changed = False
    for _, guide in elite[1:]:
        if attempt.is_over():
            return changed
        walked = _walk(elite[0][1], guide, attempt, draw)
        if walked is None:
            continue
        cost = descend(walked, shop, attempt)
        if cost < elite[-1][0] * (1 - 1e-9) and all(abs(cost - other) > 1e-9 * other for other, _ in elite):
            elite[-1] = (cost, walked)
            elite.sort(key=lambda member: member[0])
            changed = True
    return changed


def _walk(start: Schedule, guide: Schedule, attempt: Attempt, draw: random.Random) -> Schedule | None:
    """The cheapest schedule between two, both ends left out; None where there is none."""
    desk = Desk(start.copy())
    best: Schedule | None = None
    best_cost = float("inf")
    apart = {j for j, step in guide.chosen.items() if _place(desk.schedule, j) != (step.row, step.slot)}
    while len(apart) > 1 and not attempt.is_over():
        sample = draw.sample(sorted(apart), min(SAMPLE, len(apart)))
        costs = {}
        for j in sample:
            cost = _peek(desk, j, guide)
            if cost is not None:
                costs[j] = cost
        if not costs:
            apart -= set(sample)  # no room there, as long as the others are where they are
            continue
        chosen = min(costs, key=lambda j: (costs[j], j))
        desk.try_changes([_towards(guide, chosen)], always=True)
        apart.discard(chosen)
        if desk.cost < best_cost:
            best, best_cost = desk.schedule.copy(), desk.cost
    return best


def _place(schedule: Schedule, j: int) -> tuple[int, int] | None:
    step = schedule.chosen.get(j)
    return None if step is None else (step.row, step.slot)


def _towards(guide: Schedule, j: int) -> Change:
    step = guide.chosen[j]
    return Change(j, [step.row], step.slot, is_exact=True)


def _peek(desk: Desk, j: int, guide: Schedule) -> float | None:
    """The cost after a move, which is taken back; None where there is no room for it."""
    before, old = desk.cost, desk.schedule.chosen.get(j)
    cost = desk.try_changes([_towards(guide, j)], always=True)
    if cost is not None:
        desk.schedule.drop(j)
        if old is not None:
            desk.schedule.put(j, old)
        desk.cost = before
    return cost
