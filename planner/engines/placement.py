"""Placement: a pool-level schedule (starts, without nodes) onto nodes, with few node-hours.

First by best fit in several orders; where that costs more than the pool-level schedule says and the pool is small
enough, exactly: the formulation's own placement rows with the starts fixed. What still finds no place is left to
the caller to repair.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
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

# Beyond this many variables the exact placement of a pool takes longer than it can save.
EXACT_PLACES = 20_000
EXACT_SECONDS = 20.0


@dataclass(frozen=True)
class Placed:
    """A schedule on nodes, and the jobs of each pool that found no place."""

    schedule: Schedule
    homeless: tuple[int, ...]


def place(
    starts: Starts, chosen: Chosen, node_costs: dict[int, float], *, time_limit_s: float | None, seed: int
) -> Placed:
    """Nodes for every start. `node_costs` says, by pool, what the pool-level schedule pays for nodes: a placement that
    costs no more cannot be bettered."""
    schedule = Schedule(starts)
    homeless: list[int] = []
    by_pool: dict[int, list[int]] = defaultdict(list)
    for j, (r, _) in chosen.items():
        by_pool[starts.rows[r].pool].append(j)
    for p in sorted(by_pool):
        spots = _place_pool(starts, p, {j: chosen[j] for j in by_pool[p]}, node_costs.get(p, 0.0), time_limit_s, seed)
        for j in sorted(by_pool[p]):
            r, slot = chosen[j]
            if j in spots:
                schedule.put(j, Step(r, slot, spots[j], 0.0))
            else:
                homeless.append(j)
    return Placed(schedule, tuple(homeless))


def _place_pool(
    starts: Starts, p: int, chosen: Chosen, target: float, time_limit_s: float | None, seed: int
) -> dict[int, Spot]:
    best: dict[int, Spot] = {}
    best_key = (len(chosen) + 1, float("inf"))
    for order in _orders(starts, chosen):
        spots, cost = _best_fit(starts, p, chosen, order)
        key = (len(chosen) - len(spots), cost)
        if key < best_key:
            best, best_key = spots, key
        if key <= (0, target * (1 + 1e-7)):
            return best
    exact = _exactly(starts, p, chosen, time_limit_s, seed)
    if exact is None:
        return best
    timeline = PoolTimeline(starts.instance, p, starts.num_slots)
    for j, spot in exact.items():
        timeline.take(starts.rows[chosen[j][0]], chosen[j][1], spot)
    return exact if (0, node_cost(timeline)) < best_key else best


def _orders(starts: Starts, chosen: Chosen) -> list[list[int]]:
    """Kept runs first, then by begin with the widest or the longest first, by size, and by end."""

    def row(j: int) -> Row:
        return starts.rows[chosen[j][0]]

    def width(j: int) -> int:
        return row(j).mode.num_nodes * row(j).mode.slices

    def slot(j: int) -> int:
        return chosen[j][1]

    keys: list[Any] = [
        lambda j: (not row(j).kept, slot(j), -width(j), -row(j).duration, j),
        lambda j: (not row(j).kept, slot(j), -row(j).duration, -width(j), j),
        lambda j: (not row(j).kept, -width(j), slot(j), -row(j).duration, j),
        lambda j: (not row(j).kept, -width(j) * row(j).duration, slot(j), j),
        lambda j: (not row(j).kept, -row(j).duration, slot(j), j),
    ]
    return [sorted(chosen, key=key) for key in keys]


def _best_fit(starts: Starts, p: int, chosen: Chosen, order: list[int]) -> tuple[dict[int, Spot], float]:
    schedule = Schedule(starts)
    spots: dict[int, Spot] = {}
    for j in order:
        r, slot = chosen[j]
        row = starts.rows[r]
        if row.kept:
            step = schedule.offer(r, np.zeros(1, dtype=int))
            spot = None if step is None else step.spot
        else:
            offer = schedule.pools[p].offer(row.mode, np.array([slot]))
            spot = offer.spot(0) if np.isfinite(offer.cost[0]) else None
        if spot is not None:
            schedule.pools[p].take(row, slot, spot)
            spots[j] = spot
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
