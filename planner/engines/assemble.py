"""From starts on nodes to a plan: GPU indices, node-on intervals, bought bandwidth, cost by term."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from models import grid
from models.domain import (
    COST_TERMS,
    Bandwidth,
    CachedDataset,
    NodeOn,
    Place,
    Plan,
    Run,
    Segment,
    relative_gap,
)
from models.domain.modes import gpus_on_node, slices_on_gpu
from models.errors import Defect
from models.starts import Row
from planner.engines.base import Status
from planner.engines.schedule import Schedule, Step

# HiGHS proves bounds to about 1e-6 of their value; a bound above a plan by no more than that is the plan's cost.
BOUND_TOLERANCE = 1e-6
BOUND_FLOOR = 1e-9


@dataclass(frozen=True)
class Costed:
    """What a schedule comes to: its cost by term and what it pays for."""

    costs: dict[str, float]
    nodes_on: tuple[NodeOn, ...]
    cached: tuple[CachedDataset, ...]
    bandwidth: tuple[Bandwidth, ...]

    @property
    def cost(self) -> float:
        """The total."""
        return math.fsum(self.costs.values())


Part = tuple[int, int]
"""A job, and the number of a segment of its run."""


@dataclass
class _Item:
    """Something that takes whole GPUs of a node for an interval: a run, or a chain of runs that share a GPU."""

    begin: int
    end: int
    gpus: int
    parts: list[Part] = field(default_factory=list)
    fixed: tuple[int, ...] | None = None


def cost_of(schedule: Schedule) -> Costed:
    """The exact cost of a schedule; jobs that are not in it are rejected."""
    instance = schedule.instance
    costs = dict.fromkeys(COST_TERMS, 0.0)
    parts: dict[str, list[float]] = defaultdict(list)
    for step in schedule.chosen.values():
        for name, value in schedule.terms(step).items():
            parts[name].append(value)
    for j, job in enumerate(instance.jobs):
        if j not in schedule.chosen:
            parts["rejection"].append(math.nan if job.reject_cost is None else job.reject_cost)
    nodes_on = _nodes_on(schedule)
    for interval in nodes_on:
        rented = grid.is_cloud(instance, instance.pool_index[interval.pool])
        parts["rental" if rented else "node_hours"].append(interval.cost)
    cached, bandwidth = _storage(schedule, parts)
    costs |= {name: math.fsum(values) for name, values in parts.items()}
    return Costed(costs, nodes_on, cached, bandwidth)


def _nodes_on(schedule: Schedule) -> tuple[NodeOn, ...]:
    instant = cache(schedule.instance.instant)
    return tuple(
        NodeOn(
            pool=timeline.pool.id,
            node=node,
            start_slot=begin,
            end_slot=end,
            start=instant(begin),
            end=instant(end),
            cost=timeline.rules.cost(begin, end),
        )
        for timeline in schedule.pools
        for node in sorted(timeline.on)
        for begin, end in timeline.on[node]
    )


def _storage(
    schedule: Schedule, parts: dict[str, list[float]]
) -> tuple[tuple[CachedDataset, ...], tuple[Bandwidth, ...]]:
    instance = schedule.instance
    cached, bandwidth = [], []
    for s, storage in enumerate(schedule.storage):
        site = storage.site
        # Peaks are recounted: sums that were added to and taken from drift in their last digits.
        used = np.zeros(schedule.num_slots)
        segments = (segment for step in schedule.chosen.values() for segment in step.segments)
        for segment in sorted(segments, key=lambda segment: (segment.row, segment.slot)):
            row = schedule.starts.rows[segment.row]
            if row.site == s and row.link_rate > 0:
                used[segment.slot : schedule.end(segment)] += row.link_rate
        peak = float(used.max(initial=0.0))
        if peak > 0:
            peak = min(peak, storage.cap)
            bandwidth.append(Bandwidth(site=site.id, mb_s=peak))
            parts["bandwidth"].append(float(storage.bandwidth_cost(np.array([peak]))[0]))
        for d, level in sorted(storage.levels.items()):
            dataset, fraction = instance.datasets[d], level / instance.cache_levels
            cached.append(CachedDataset(site=site.id, dataset=dataset.id, fraction=fraction))
            parts["cache"].append(dataset.size * fraction * site.storage.cache_price * storage.hours)
            if (dataset.home, site.id) in instance.links:
                parts["transfer"].append(dataset.size * fraction * instance.links[dataset.home, site.id].price)
    return tuple(cached), tuple(bandwidth)


def assign_gpus(schedule: Schedule) -> dict[int, tuple[tuple[Place, ...], ...]]:
    """GPU indices for every segment of every run. On each node, items in order of their begin take the lowest GPUs that
    are free; since no more GPUs are asked for at once than there are, they never run out. Kept runs have theirs, and
    begin first."""
    places: dict[Part, list[Place]] = defaultdict(list)
    in_pool: dict[int, list[tuple[Part, Step]]] = defaultdict(list)
    for j, step in schedule.chosen.items():
        for k, segment in enumerate(step.segments):
            in_pool[schedule.starts.rows[segment.row].pool].append(((j, k), segment))
    for p, timeline in enumerate(schedule.pools):
        on_node: dict[int, list[_Item]] = defaultdict(list)
        shared: dict[tuple[int, int], list[tuple[Part, Step]]] = defaultdict(list)
        for part, segment in in_pool[p]:
            row = schedule.starts.rows[segment.row]
            if timeline.shares_gpu(row.mode):
                shared[segment.spot[0], segment.spot[1]].append((part, segment))
                continue
            per_node = gpus_on_node(row.mode, timeline.pool)
            for node in segment.spot:
                fixed = _kept_gpus(schedule, row, node)
                on_node[node].append(_Item(segment.slot, schedule.end(segment), per_node, [part], fixed))
        for (node, _), members in shared.items():
            on_node[node] += _chains(schedule, members)
        for node, items in sorted(on_node.items()):
            _color(items, node, timeline.pool.gpus_per_node, places)
    sorted_places = {part: tuple(sorted(found, key=lambda place: place.node)) for part, found in places.items()}
    return {j: tuple(sorted_places[j, k] for k in range(len(step.segments))) for j, step in schedule.chosen.items()}


def _kept_gpus(schedule: Schedule, row: Row, node: int) -> tuple[int, ...] | None:
    running = schedule.instance.jobs[row.job].running
    if not row.kept or running is None:
        return None
    return next(place.gpus for place in running.places if place.node == node)


def _chains(schedule: Schedule, members: list[tuple[Part, Step]]) -> list[_Item]:
    """Runs on one shared GPU, joined where they overlap in time: each chain needs one GPU throughout."""
    chains: list[_Item] = []
    for part, step in sorted(members, key=lambda member: (member[1].slot, member[0])):
        fixed = _kept_gpus(schedule, schedule.starts.rows[step.row], step.spot[0])
        end = schedule.end(step)
        if chains and step.slot < chains[-1].end:
            chains[-1].end = max(chains[-1].end, end)
            chains[-1].parts.append(part)
            chains[-1].fixed = chains[-1].fixed or fixed
        else:
            chains.append(_Item(step.slot, end, 1, [part], fixed))
    return chains


def _color(items: list[_Item], node: int, num_gpus: int, places: dict[Part, list[Place]]) -> None:
    free_from = [0] * num_gpus
    for item in sorted(items, key=lambda item: (item.begin, item.fixed is None, item.parts)):
        free = [gpu for gpu in range(num_gpus) if free_from[gpu] <= item.begin]
        gpus = item.fixed or tuple(free[: item.gpus])
        if len(gpus) < item.gpus or not set(gpus) <= set(free):
            jobs = [j for j, _ in item.parts]
            raise Defect(f"node {node} has no {item.gpus} GPUs free for job(s) {jobs} in slot {item.begin}")
        for gpu in gpus:
            free_from[gpu] = item.end
        for part in item.parts:
            places[part].append(Place(node=node, gpus=tuple(sorted(gpus))))


def plan_of(
    schedule: Schedule,
    *,
    status: Status,
    engine: str,
    seed: int,
    versions: dict[str, str],
    dual_bound: float | None,
    packing_cost: float | None = None,
) -> Plan:
    """The plan of a schedule with its certificate."""
    instance = schedule.instance
    costed = cost_of(schedule)
    places = assign_gpus(schedule)
    if dual_bound is not None and dual_bound > costed.cost:
        if dual_bound > costed.cost * (1 + BOUND_TOLERANCE) + BOUND_FLOOR:
            raise Defect(f"a dual bound of {dual_bound!r} lies above a plan of {costed.cost!r}")
        dual_bound = costed.cost
    if dual_bound is not None:
        dual_bound = max(0.0, dual_bound)  # no term of the cost is negative
    instant = cache(instance.instant)
    rejected = tuple(job.id for j, job in enumerate(instance.jobs) if j not in schedule.chosen)
    return Plan(
        instance=instance.name,
        instance_hash=instance.content_hash,
        currency=instance.currency,
        start=instance.start.isoformat(),
        slot_s=instance.slot,
        num_slots=schedule.num_slots,
        status=status,
        engine=engine,
        seed=seed,
        versions=versions,
        cost=costed.cost,
        costs=costed.costs,
        dual_bound=dual_bound,
        gap=relative_gap(costed.cost, dual_bound),
        packing_cost=packing_cost,
        runs=tuple(_run(schedule, j, places[j], instant) for j in sorted(schedule.chosen)),
        rejected=rejected,
        nodes_on=costed.nodes_on,
        cached=costed.cached,
        bandwidth=costed.bandwidth,
    )


def _run(schedule: Schedule, j: int, places: tuple[tuple[Place, ...], ...], instant: Callable[[int], str]) -> Run:
    instance = schedule.instance
    job, end = instance.jobs[j], schedule.completion(j)
    late_s = 0.0 if job.due is None else end * instance.slot - job.due
    segments = zip(schedule.chosen[j].segments, places, strict=True)
    tardiness_h = late_s / 3600.0 if late_s > 1e-9 * instance.slot else 0.0
    return Run(
        job=job.id,
        segments=tuple(_segment(schedule, segment, there, instant) for segment, there in segments),
        completion=instant(end),
        tardiness_h=tardiness_h,
    )


def _segment(schedule: Schedule, step: Step, places: tuple[Place, ...], instant: Callable[[int], str]) -> Segment:
    row, end = schedule.starts.rows[step.row], schedule.end(step)
    pool = schedule.instance.pools[row.pool]
    return Segment(
        mode=row.mode.name,
        pool=pool.id,
        speed=row.mode.speed,
        cached=row.cached,
        start_slot=step.slot,
        end_slot=end,
        start=instant(step.slot),
        end=instant(end),
        places=places,
        slices=slices_on_gpu(row.mode, pool),
        kept=row.kept,
    )
