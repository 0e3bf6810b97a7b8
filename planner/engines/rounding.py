"""From the LP relaxation to a schedule: jobs whose start the LP is surest of first, each at the start it likes
best that still has room on the nodes; the rest where they are cheapest."""

from __future__ import annotations

from collections import defaultdict

from models.starts import Starts
from planner.engines.policies.listing import improve, insert, sequence
from planner.engines.schedule import Schedule

Weights = dict[tuple[int, int], float]
"""x of the LP by (row, slot), without the zeros."""


def round_starts(starts: Starts, weights: Weights, *, deadline: float | None = None) -> Schedule | None:
    """A schedule guided by the LP, improved; None where a job that must run finds no room. Elastic jobs run in one
    segment: pieces of the LP say little of which go together."""
    liked: dict[int, list[tuple[float, int, int]]] = defaultdict(list)
    for (r, t), weight in weights.items():
        if not starts.rows[r].is_piece:
            liked[starts.rows[r].job].append((-weight, t, r))
    for candidates in liked.values():
        candidates.sort()
    order = sequence(starts, lambda _, j: liked[j][0][0] if liked[j] else 0.0)
    schedule = Schedule(starts)
    for j in order:
        if not _put_where_liked(schedule, j, liked[j]) and not insert(schedule, j):
            return None
    improve(schedule, rounds=5, deadline=deadline)
    return schedule


def _put_where_liked(schedule: Schedule, j: int, liked: list[tuple[float, int, int]]) -> bool:
    ready = schedule.ready(j)
    if ready is None:
        return False
    for _, t, r in liked:
        if t >= ready:
            row = schedule.starts.rows[r]
            step = schedule.offer(r, row.slots[row.slots == t])
            if step is not None:
                schedule.put(j, step)
                return True
    return False
