"""List scheduling: jobs one after the other in some order, each at the start that adds least to the cost.

The fallback that always gives a plan where one is easy to find, the start of the exact engine, and a baseline.
Several orders are tried and then improved by taking a job off and putting it back where it is cheapest now.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

from models.domain.modes import nodes_taken
from models.precedence import precedence_graph
from models.starts import Starts
from models.utilities import times_that_count
from planner.engines import clock, interrupts
from planner.engines.assemble import cost_of
from planner.engines.schedule import Schedule

Order = Callable[[Starts, int], float]


def _shortest(starts: Starts, j: int) -> int:
    return min((starts.rows[r].duration for r in starts.rows_of_job[j]), default=0)


def _largest(starts: Starts, j: int) -> float:
    return max((_size(starts, r) for r in starts.rows_of_job[j]), default=0.0)


def _size(starts: Starts, r: int) -> float:
    row = starts.rows[r]
    return nodes_taken(row.mode, starts.instance.pools[row.pool]) * row.duration


def by_due_date(starts: Starts, j: int) -> float:
    """Earliest due date, deadline or fall of its worth first (EDF)."""
    return min(times_that_count(starts.instance.jobs[j]), default=float("inf"))


def by_slack(starts: Starts, j: int) -> float:
    """Least time between the earliest completion and the due date first."""
    job = starts.instance.jobs[j]
    return by_due_date(starts, j) - job.release - _shortest(starts, j) * starts.instance.slot


def by_weight(starts: Starts, j: int) -> float:
    """Highest price of being late first."""
    return -starts.instance.jobs[j].weight


def by_size(starts: Starts, j: int) -> float:
    """Largest share of a pool's node-time first: the small ones fill what is left."""
    return -_largest(starts, j)


ORDERS: dict[str, Order] = {"due": by_due_date, "slack": by_slack, "weight": by_weight, "size": by_size}


def list_schedule(starts: Starts, order: Order, *, deadline: float | None = None) -> Schedule | None:
    """Every job in the order, after its predecessors and kept runs first; None where a job that must run finds no
    room."""
    schedule = Schedule(starts)
    for j in sequence(starts, order):
        interrupts.safe_point()
        hurry = deadline is not None and clock.now() > deadline
        if not insert(schedule, j, hurry=hurry):
            return None
    return schedule


def insert(schedule: Schedule, j: int, *, hurry: bool = False) -> bool:
    """Schedule a job at its cheapest start, or reject it where that is cheaper; whether the plan is still whole.

    In a hurry only its shortest mode that finds room is looked at.
    """
    reject, earliest = schedule.instance.jobs[j].reject_cost, schedule.ready(j)
    if earliest is None:
        return reject is not None
    step = schedule.shortest(j, earliest) if hurry else schedule.cheapest(j, earliest)
    if step is None or (reject is not None and reject < step.cost):
        return reject is not None
    schedule.put(j, step)
    return True


def sequence(starts: Starts, order: Order) -> list[int]:
    """The jobs by the order, each after its predecessors; jobs that stay where they run come first."""
    graph = precedence_graph(starts.instance)
    waiting = {j: graph.in_degree(j) for j in graph}
    keys = {j: (starts.instance.jobs[j].running is None, order(starts, j), j) for j in graph}
    ready = [keys[j] for j in graph if not waiting[j]]
    heapq.heapify(ready)
    done: list[int] = []
    while ready:
        j = heapq.heappop(ready)[-1]
        done.append(j)
        for k in graph.successors(j):
            waiting[k] -= 1
            if not waiting[k]:
                heapq.heappush(ready, keys[k])
    return done


def best_list_schedule(
    starts: Starts,
    *,
    deadline: float | None = None,
    rounds: int = 3,
    found: Callable[[Schedule], None] = lambda _: None,
) -> Schedule | None:
    """The cheapest over all orders, improved; the work is fixed and `deadline` (of `clock.now`) only cuts it
    short. `found` is told of every schedule that is the best so far and will not change any more."""
    best: Schedule | None = None
    best_cost = float("inf")
    for order in ORDERS.values():
        schedule = list_schedule(starts, order, deadline=deadline)
        if schedule is not None and (cost := cost_of(schedule).cost) < best_cost:
            best, best_cost = schedule, cost
            found(schedule)
        if deadline is not None and clock.now() > deadline and best is not None:
            break
    if best is not None:
        best = best.copy()
        improve(best, rounds=rounds, deadline=deadline)
    return best


def improve(schedule: Schedule, *, rounds: int, deadline: float | None = None) -> None:
    """Take each job off and put it back where it is cheapest now, until a round changes nothing.

    What a job's removal saves is not known to the marginal prices (a peak of bandwidth, the last reader of a cache), so
    each change is judged by the whole cost and taken back where it does not pay.
    """
    cost = cost_of(schedule).cost
    graph = precedence_graph(schedule.instance)
    for _ in range(rounds):
        before = cost
        for j in sorted(schedule.chosen, key=lambda j: (-schedule.chosen[j].cost, j)):
            interrupts.safe_point()
            if any(k in schedule.chosen for k in graph.successors(j)):
                continue  # its successors would have to move with it
            cost = _reinsert(schedule, j, cost)
            if deadline is not None and clock.now() > deadline:
                return
        if cost >= before:
            return


def _reinsert(schedule: Schedule, j: int, cost: float) -> float:
    """Put a job back where it is cheapest now, if that lowers the cost; the cost after."""
    old = schedule.drop(j)
    whole = insert(schedule, j)
    if whole and schedule.chosen.get(j) == old:
        return cost
    new_cost = cost_of(schedule).cost if whole else float("inf")
    if new_cost < cost * (1 - 1e-9):
        return new_cost
    if j in schedule.chosen:
        schedule.drop(j)
    schedule.put(j, old)
    return cost
