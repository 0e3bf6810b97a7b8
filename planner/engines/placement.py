"""Placement: a pool-level schedule (starts, without nodes) onto nodes, with few node-hours.

First by best fit in several orders; where that costs more than the pool-level schedule says and the pool is small
enough, exactly: the formulation's own placement rows with the starts fixed. What still finds no place is left to
the caller to repair.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from models.formulation import build_model
from models.formulation.context import Context
from models.formulation.placement import num_places
from models.rentals import cheapest_intervals
from models.starts import Row, Starts
from planner.engines.highs import Compiled
from planner.engines.schedule import Schedule, Step
from planner.engines.timeline import PoolTimeline, Spot

Chosen = dict[int, tuple[int, int]]
"""For each job its row and slot."""
Stretch = tuple[int, int, int]
"""Row, slot and slots of a segment."""
Changing = dict[int, tuple[Stretch, ...]]
"""For each elastic job its segments, in order of time."""
Item = tuple[int, int]
"""A job, and the number of its segment."""

# Beyond this many variables the exact placement of a pool takes longer than it can save.
EXACT_PLACES = 20_000
EXACT_SECONDS = 20.0


@dataclass(frozen=True)
class Placed:
    """A schedule on nodes, and the jobs of each pool that found no place."""

    schedule: Schedule
    homeless: tuple[int, ...]


def place(
    starts: Starts,
    chosen: Chosen,
    node_costs: dict[int, float],
    *,
    time_limit_s: float | None,
    seed: int,
    changing: Changing | None = None,
) -> Placed:
    """Nodes for every start, and for every segment of the jobs that change. `node_costs` says, by pool, what the
    pool-level schedule pays for nodes: a placement that costs no more cannot be bettered."""
    schedule = Schedule(starts)
    stretches: dict[Item, Stretch] = {(j, 0): (r, slot, starts.rows[r].duration) for j, (r, slot) in chosen.items()}
    for j, segments in (changing or {}).items():
        stretches |= {(j, k): segment for k, segment in enumerate(segments)}
    by_pool: dict[int, list[Item]] = defaultdict(list)
    for item, (r, _, _) in stretches.items():
        by_pool[starts.rows[r].pool].append(item)
    spots: dict[Item, Spot] = {}
    for p in sorted(by_pool):
        there = {item: stretches[item] for item in by_pool[p]}
        spots |= _place_pool(starts, p, there, node_costs.get(p, 0.0), time_limit_s, seed)
    homeless: list[int] = []
    numbers: dict[int, list[int]] = defaultdict(list)
    for j, k in sorted(stretches):
        numbers[j].append(k)
    for j, segments_of_job in numbers.items():
        if any((j, k) not in spots for k in segments_of_job):
            homeless.append(j)
            continue
        steps = [_step(starts, stretches[j, k], spots[j, k]) for k in segments_of_job]
        schedule.put(j, replace(steps[-1], earlier=tuple(steps[:-1])))
    return Placed(schedule, tuple(homeless))


def _step(starts: Starts, stretch: Stretch, spot: Spot) -> Step:
    r, slot, length = stretch
    return Step(r, slot, spot, 0.0, length if starts.rows[r].is_piece else None)


def _place_pool(
    starts: Starts, p: int, stretches: dict[Item, Stretch], target: float, time_limit_s: float | None, seed: int
) -> dict[Item, Spot]:
    best: dict[Item, Spot] = {}
    best_key = (len(stretches) + 1, float("inf"))
    for order in _orders(starts, stretches):
        spots, cost = _best_fit(starts, p, stretches, order)
        key = (len(stretches) - len(spots), cost)
        if key < best_key:
            best, best_key = spots, key
        if key <= (0, target * (1 + 1e-7)):
            return best
    if any(starts.rows[r].is_piece for r, _, _ in stretches.values()):
        return best
    exact = _exactly(starts, p, {j: (r, slot) for (j, _), (r, slot, _) in stretches.items()}, time_limit_s, seed)
    if exact is None:
        return best
    timeline = PoolTimeline(starts.instance, p, starts.num_slots)
    for j, spot in exact.items():
        timeline.take(starts.rows[stretches[j, 0][0]], stretches[j, 0][1], spot)
    return {(j, 0): spot for j, spot in exact.items()} if (0, node_cost(timeline)) < best_key else best


def _orders(starts: Starts, stretches: dict[Item, Stretch]) -> list[list[Item]]:
    """Kept runs first, then by begin with the widest or the longest first, by size, and by end."""

    def row(item: Item) -> Row:
        return starts.rows[stretches[item][0]]

    def width(item: Item) -> int:
        return row(item).mode.num_nodes * row(item).mode.slices

    def slot(item: Item) -> int:
        return stretches[item][1]

    def length(item: Item) -> int:
        return stretches[item][2]

    keys: list[Any] = [
        lambda i: (not row(i).kept, slot(i), -width(i), -length(i), i),
        lambda i: (not row(i).kept, slot(i), -length(i), -width(i), i),
        lambda i: (not row(i).kept, -width(i), slot(i), -length(i), i),
        lambda i: (not row(i).kept, -width(i) * length(i), slot(i), i),
        lambda i: (not row(i).kept, -length(i), slot(i), i),
    ]
    return [sorted(stretches, key=key) for key in keys]


def _best_fit(
    starts: Starts, p: int, stretches: dict[Item, Stretch], order: list[Item]
) -> tuple[dict[Item, Spot], float]:
    schedule = Schedule(starts)
    spots: dict[Item, Spot] = {}
    for item in order:
        r, slot, length = stretches[item]
        row = starts.rows[r]
        if row.is_piece or row.kept:
            step = (
                schedule.offer_segment(r, slot, length) if row.is_piece else schedule.offer(r, np.zeros(1, dtype=int))
            )
            spot = None if step is None else step.spot
        else:
            offer = schedule.pools[p].offer(row.mode, np.array([slot]))
            spot = offer.spot(0) if np.isfinite(offer.cost[0]) else None
        if spot is not None:
            schedule.pools[p].take(row, slot, spot, length=length)
            spots[item] = spot
    return spots, node_cost(schedule.pools[p])


def node_cost(timeline: PoolTimeline) -> float:
    """What the nodes of a pool cost as they are used."""
    rules = timeline.rules
    return float(
        sum(
            rules.cost(begin, end)
            for node in np.flatnonzero(timeline.count)
            for begin, end in cheapest_intervals(rules, int(node), timeline.busy(int(node)))
        )
    )


def _exactly(starts: Starts, p: int, chosen: Chosen, time_limit_s: float | None, seed: int) -> dict[int, Spot] | None:
    """The cheapest placement of a pool by HiGHS; None where the model is too large or has no answer in time."""
    rows = [starts.rows[r].only(starts.rows[r].slots == slot) for r, slot in (chosen[j] for j in sorted(chosen))]
    fixed = starts.with_rows(rows)
    context = Context(fixed, frozenset({p}))
    if num_places(context, p) > EXACT_PLACES:
        return None
    model = build_model(fixed, frozenset({p}), frozenset(chosen))
    for start in model.START:
        model.x[start].fix(1)
    limit = EXACT_SECONDS if time_limit_s is None else min(EXACT_SECONDS, 0.1 * time_limit_s)
    answer = Compiled(model).solve(time_limit_s=limit, gap=1e-9, seed=seed, threads=1)
    if answer.outcome == "interrupted":
        raise KeyboardInterrupt
    if answer.values is None:
        return None
    taken: dict[int, list[int]] = defaultdict(list)
    gpu: dict[int, int] = {}
    for r, t, i in model.PLACE:
        if answer.value(model.y[r, t, i]) > 0.5:
            taken[r].append(i)
    for r, t, i, q in model.GPU:
        if fixed.rows[r].mode.is_small and answer.value(model.g[r, t, i, q]) > 0.5:
            gpu[r] = q
    spots: dict[int, Spot] = {}
    sharing = starts.instance.pools[p].slices_per_gpu > 1
    for r, row in enumerate(fixed.rows):
        nodes = tuple(sorted(taken[r]))
        spots[row.job] = (nodes[0], gpu.get(r, 0)) if row.mode.is_small and sharing else nodes
    return spots
