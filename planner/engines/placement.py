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
# Rows of the model that say nothing where all starts are known, and nothing true where a job has several.
OF_STARTS = ("each_job_starts_once", "predecessors_complete_first", "cached_readers_need_the_cache")


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
    numbers: dict[int, list[int]] = defaultdict(list)
    for j, k in sorted(stretches):
        numbers[j].append(k)
    homeless: list[int] = []
    for j, segments in numbers.items():
        if all((j, k) in spots for k in segments):
            _put(schedule, j, [_step(starts, stretches[j, k], spots[j, k]) for k in segments])
        else:
            homeless.append(j)
    for j in homeless[:]:
        if _split(schedule, j, [(stretches[j, k], spots.get((j, k))) for k in numbers[j]]):
            homeless.remove(j)
    return Placed(schedule, tuple(homeless))


def _step(starts: Starts, stretch: Stretch, spot: Spot) -> Step:
    r, slot, length = stretch
    return Step(r, slot, spot, 0.0, length if starts.rows[r].is_piece else None)


def _put(schedule: Schedule, j: int, steps: list[Step]) -> None:
    """Schedule a run; what goes on in its mode on the same GPUs is one segment."""
    joined: list[Step] = []
    for step in steps:
        before = joined[-1] if joined else None
        goes_on = before is not None and before.length is not None and schedule.end(before) == step.slot
        if before is not None and goes_on and (before.row, before.spot) == (step.row, step.spot):
            joined[-1] = replace(before, length=schedule.length(before) + schedule.length(step))
        else:
            joined.append(step)
    schedule.put(j, replace(joined[-1], earlier=tuple(joined[:-1])))


def _split(schedule: Schedule, j: int, segments: list[tuple[Stretch, Spot | None]]) -> bool:
    """Put a job that may change, its segments without a place in parts that have one, each as long as it can be; whether
    there are such, and no more changes by it than there may be."""
    elastic = schedule.instance.jobs[j].elastic
    if elastic is None or any(not schedule.starts.rows[r].is_piece for (r, _, _), _ in segments):
        return False
    steps: list[Step] = []
    for (r, slot, length), spot in segments:
        if spot is not None:
            steps.append(_step(schedule.starts, (r, slot, length), spot))
            continue
        end = slot + length
        while slot < end:
            offers = (schedule.offer_segment(r, slot, part) for part in range(end - slot, 0, -1))
            step = next((step for step in offers if step is not None), None)
            if step is None:
                return False
            steps.append(step)
            slot = schedule.end(step)
    _put(schedule, j, steps)
    if elastic.changes is None or schedule.changes(schedule.chosen[j]) <= elastic.changes:
        return True
    schedule.drop(j)
    return False


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
    exact = _exactly(starts, p, stretches, time_limit_s, seed)
    if exact is None:
        return best
    timeline = PoolTimeline(starts.instance, p, starts.num_slots)
    for item, spot in exact.items():
        r, slot, length = stretches[item]
        timeline.take(starts.rows[r], slot, spot, length=length)
    return exact if (0, node_cost(timeline)) < best_key else best


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


def _exactly(
    starts: Starts, p: int, stretches: dict[Item, Stretch], time_limit_s: float | None, seed: int
) -> dict[Item, Spot] | None:
    """The cheapest placement of a pool by HiGHS; None where the model is too large or has no answer in time."""
    items = sorted(stretches)
    fixed = starts.with_rows([_fixed(starts, stretches[item]) for item in items])
    context = Context(fixed, frozenset({p}))
    if num_places(context, p) > EXACT_PLACES:
        return None
    model = build_model(fixed, frozenset({p}), frozenset(j for j, _ in items))
    if len({(r, t) for r, t, _ in model.PLACE}) < len(model.START):
        return None  # no node can be used throughout a segment: its slots may be on several
    for start in model.START:
        model.x[start].fix(1)
    for rule in OF_STARTS:
        getattr(model, rule).deactivate()
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
    spots: dict[Item, Spot] = {}
    sharing = starts.instance.pools[p].slices_per_gpu > 1
    for r, item in enumerate(items):
        nodes = tuple(sorted(taken[r]))
        spots[item] = (nodes[0], gpu.get(r, 0)) if fixed.rows[r].mode.is_small and sharing else nodes
    return spots


def _fixed(starts: Starts, stretch: Stretch) -> Row:
    """A row with one start, of a segment too: a run of its slots."""
    r, slot, length = stretch
    row = starts.rows[r]
    if not row.is_piece:
        return row.only(row.slots == slot)
    mode = replace(row.mode, duration=length)
    return replace(row, mode=mode, slots=np.array([slot]), is_piece=False)
