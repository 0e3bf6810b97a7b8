"""Local search on the greedy's schedule, by the published neighbourhoods.

Swaps of two jobs' places (pool, GPUs, time): a tardy job with one that is expensive, a tardy one with one of low
pressure, a postponed one with one that ran when it could have begun. Other set-ups for one job: a faster one, twice the
GPUs, half of them. Each in turn until none of them helps; then anew from a randomised greedy's schedule.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator

from benchmarks.rivals.attempt import Attempt, Outcome
from benchmarks.rivals.dispatch import Shop, swapped_by_weight
from benchmarks.rivals.moves import Change, Desk
from benchmarks.rivals.random_greedy import opened
from models.domain import Instance
from models.domain.modes import nodes_taken
from planner.engines.schedule import Schedule

NEAREST = 10
"""Partners that are tried for each job of a swap."""


def solve(instance: Instance, time_limit_s: float, threads: int, seed: int) -> Outcome:
    """Local search from the greedy, then from randomised ones."""
    attempt = Attempt("local_search", instance, time_limit_s, threads, seed)
    shop = opened(attempt)
    draw = random.Random(seed)
    schedule = None if attempt.best is None else attempt.best.copy()
    while shop is not None and not attempt.is_over():
        if schedule is not None:
            descend(schedule, shop, attempt)
        schedule = shop.run(swapped_by_weight(shop, draw), draw, attempt.is_over)
    return attempt.outcome()


def descend(schedule: Schedule, shop: Shop, attempt: Attempt, is_over: Callable[[], bool] | None = None) -> float:
    """Improve a schedule in place until no move helps or the time is over; what is best is offered. Its cost."""
    desk = Desk(schedule)
    stop = is_over or attempt.is_over
    improved = True
    while improved and not stop():
        improved = False
        for changes in _moves(desk, shop):
            if stop():
                break
            if desk.try_changes(changes) is not None:
                improved = True
                break
    attempt.offer(schedule, desk.cost)
    return desk.cost


def _moves(desk: Desk, shop: Shop) -> Iterator[list[Change]]:
    """All moves from the schedule as it is, neighbourhood by neighbourhood."""
    schedule = desk.schedule
    free = [j for j in schedule.chosen if not schedule.starts.rows[schedule.chosen[j].row].kept]
    tardy = sorted((j for j in free if _late(desk, shop, j) > 0), key=lambda j: -_late(desk, shop, j))
    expensive = sorted(free, key=lambda j: -_run_cost(desk, j))
    relaxed = sorted(free, key=shop.pressure)
    for partners in (expensive, relaxed):
        for a in tardy:
            yield from (_swap(desk, a, b) for b in partners[:NEAREST] if a != b)
    for a in sorted(free, key=lambda j: -_waited(desk, shop, j)):
        if _waited(desk, shop, a) <= 0:
            break
        begin = shop.setups[a][0].first
        running = [b for b in free if schedule.chosen[b].slot <= begin < schedule.completion(b)]
        yield from (_swap(desk, a, b) for b in sorted(running, key=shop.pressure)[:NEAREST] if a != b)
    for j in itertools.chain(tardy, expensive):
        yield from _other_setups(desk, j)


def _late(desk: Desk, shop: Shop, j: int) -> float:
    """Weighted slots of tardiness."""
    late = desk.schedule.completion(j) - shop.due[j]
    return max(0.0, late) * desk.schedule.instance.jobs[j].weight


def _waited(desk: Desk, shop: Shop, j: int) -> int:
    """Slots from its first start to the one that it has."""
    return desk.schedule.chosen[j].slot - min(setup.first for setup in shop.setups[j])


def _run_cost(desk: Desk, j: int) -> float:
    """Cost of its run by itself, nodes as their part."""
    step = desk.schedule.chosen[j]
    row = desk.starts.rows[step.row]
    pool = desk.schedule.instance.pools[row.pool]
    price = float(desk.schedule.pools[row.pool].rules.price[step.slot])
    return nodes_taken(row.mode, pool) * price * row.duration + float(row.costs[row.slots.searchsorted(step.slot)])


def _swap(desk: Desk, a: int, b: int) -> list[Change]:
    """Each takes the other's pool, GPUs and time, or as near to them as it can."""
    steps = desk.schedule.chosen
    return [
        Change(a, _like(desk, a, steps[b].row), steps[b].slot),
        Change(b, _like(desk, b, steps[a].row), steps[a].slot),
    ]


def _like(desk: Desk, j: int, r: int) -> list[int]:
    """The rows of a job in the pool of a row, on as many GPUs where it has such."""
    rows, wanted = desk.starts.rows, desk.starts.rows[r]
    there = [k for k in desk.starts.rows_of_job[j] if rows[k].pool == wanted.pool and not rows[k].kept]
    same = [k for k in there if rows[k].mode.gpus == wanted.mode.gpus]
    return same or there


def _other_setups(desk: Desk, j: int) -> Iterator[list[Change]]:
    """A faster one anywhere, twice the GPUs, half of them."""
    step = desk.schedule.chosen[j]
    rows, now = desk.starts.rows, desk.starts.rows[step.row]
    own = [r for r in desk.starts.rows_of_job[j] if not rows[r].kept]
    faster = [r for r in own if rows[r].duration < now.duration]
    here = [r for r in own if rows[r].pool == now.pool]
    double = [r for r in here if now.mode.gpus and rows[r].mode.gpus == 2 * now.mode.gpus]
    half = [r for r in here if rows[r].mode.gpus and 2 * rows[r].mode.gpus == now.mode.gpus]
    for choice in (faster, double, half):
        if choice:
            yield [Change(j, choice, 0)]
