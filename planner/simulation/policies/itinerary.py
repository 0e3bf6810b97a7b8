"""A plan as orders for whoever carries it out: what each job does when and where, what it has to wait for there, and
when each node is to be on. Times are seconds after the start.

The order of a plan is kept as a right-shift repair keeps it (Vieira, Herrmann, Lin: Rescheduling manufacturing systems,
Journal of Scheduling 6, 2003): a run waits for every run that the plan has finish before it on one of its GPUs.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, replace

from models.domain import Instance, Plan, Segment
from models.domain.modes import Mode, modes_of
from models.storage.reading import link_rate
from planner.simulation.nodes import Node
from planner.simulation.state import Allocation

Gpu = tuple[int, int, int]
"""Pool, node and GPU."""
LegId = tuple[int, int]
"""A job and the number of its leg."""


@dataclass(frozen=True)
class Leg:
    """A segment of a job's run."""

    allocation: Allocation
    start_s: float
    length_s: float
    """As planned, in whole slots."""
    is_last: bool
    """Whether it goes on until the job is complete."""
    is_kept: bool
    """Whether it is what the job does already at the start."""
    reads: tuple[tuple[int, float], ...]
    """MB/s that it takes of each of the limits that it reads under."""
    before: tuple[LegId, ...]
    """Legs of other jobs that the plan has end before it begins, on one of its GPUs; the latest first."""

    @property
    def gpus(self) -> frozenset[Gpu]:
        """The GPUs that it holds."""
        return gpus_of(self.allocation)


@dataclass(frozen=True)
class Interval:
    """A time in which a node is to be on, and the legs that are planned there within it."""

    node: Node
    begin_s: float
    end_s: float
    legs: tuple[LegId, ...]


@dataclass(frozen=True)
class Itinerary:
    """A plan as orders; the same for every replay."""

    legs: tuple[tuple[Leg, ...], ...]
    """By job; none for one that is rejected."""
    order: tuple[int, ...]
    """Place of each job in the order of planned starts."""
    intervals: tuple[Interval, ...]
    """In order of their begin."""
    limits_mb_s: tuple[float, ...]
    """What may be read at a time: at each site what was bought, and over each link what it carries."""

    def overrun_s(self, j: int) -> float:
        """Time that a job takes longer for each estimate that it overruns: what is left is done in its last mode."""
        return self.legs[j][-1].allocation.mode.duration_s if self.legs[j] else 0.0

    def behind(self, instance: Instance) -> tuple[frozenset[int], ...]:
        """By job all that wait for it, at once or through others: successors, and jobs after it on its GPUs."""
        direct: list[set[int]] = [set() for _ in self.legs]
        for j, legs in enumerate(self.legs):
            for leg in legs:
                for i, _ in leg.before:
                    direct[i].add(j)
            if legs:
                for name in instance.jobs[j].after:
                    direct[instance.job_index[name]].add(j)
        found: list[frozenset[int]] = [frozenset()] * len(self.legs)
        # Elastic jobs may wait for each other in turn, so this is a search and not a sum over an order.
        for j in range(len(self.legs)):
            seen: set[int] = set()
            open_jobs = [j]
            while open_jobs:
                fresh = direct[open_jobs.pop()] - seen
                seen |= fresh
                open_jobs += fresh
            found[j] = frozenset(seen - {j})
        return tuple(found)


def gpus_of(allocation: Allocation) -> frozenset[Gpu]:
    """The GPUs of an allocation."""
    pool = allocation.mode.pool
    return frozenset((pool, place.node, gpu) for place in allocation.places for gpu in place.gpus)


def itinerary_of(instance: Instance, plan: Plan) -> Itinerary:
    """The orders of a plan that passes its check against the instance; another one raises KeyError or StopIteration."""
    runs = {instance.job_index[run.job]: run for run in plan.runs}
    reading = _Reading(instance, plan)
    bare: dict[LegId, Leg] = {}
    for j, run in runs.items():
        modes = modes_of(instance, instance.jobs[j])
        for k, segment in enumerate(run.segments):
            start_s, end_s = segment.start_slot * plan.slot_s, segment.end_slot * plan.slot_s
            place = _allocation(instance, j, modes, segment)
            is_last = k + 1 == len(run.segments)
            reads = reading.of(j, place.mode, segment.cached)
            bare[j, k] = Leg(place, start_s, end_s - start_s, is_last, segment.kept, reads, ())
    before = _before(bare)
    legs = tuple(
        tuple(_with(bare[j, k], before[j, k]) for k in range(len(runs[j].segments))) if j in runs else ()
        for j in range(len(instance.jobs))
    )
    by_start = sorted(range(len(legs)), key=lambda j: (legs[j][0].start_s if legs[j] else 0.0, j))
    order = [0] * len(legs)
    for rank, j in enumerate(by_start):
        order[j] = rank
    return Itinerary(legs, tuple(order), _intervals(instance, plan, bare), tuple(reading.limits_mb_s))


class _Reading:
    """What runs read, and of what they share."""

    def __init__(self, instance: Instance, plan: Plan):
        self.instance = instance
        bought = {bandwidth.site: bandwidth.mb_s for bandwidth in plan.bandwidth}
        self.limits_mb_s: list[float] = []
        for site in instance.sites:
            storage = site.storage
            is_sold = bool(storage.tariff or storage.points or storage.tiers or storage.power)
            cap = math.inf if storage.bandwidth_cap is None else storage.bandwidth_cap
            self.limits_mb_s.append(bought.get(site.id, 0.0) if is_sold else cap)
        self._links = {}
        for link in instance.network:
            if link.bandwidth is not None:
                self._links[link.source, link.target] = len(self.limits_mb_s)
                self.limits_mb_s.append(link.bandwidth)

    def of(self, j: int, mode: Mode, cached: float) -> tuple[tuple[int, float], ...]:
        """Limits that a run counts against, with its MB/s."""
        name = self.instance.jobs[j].dataset
        if name is None or not mode.read_rate_mb_s:
            return ()
        s = self.instance.site_index[self.instance.pools[mode.pool].site]
        site, home = self.instance.sites[s], self.instance.datasets[self.instance.dataset_index[name]].home
        rate = link_rate(mode.read_rate_mb_s, cached, site.storage.cache_speed)
        link = self._links.get((home, site.id))
        found = [s] if link is None else [s, link]
        return tuple((k, rate) for k in found if rate > 0 and not math.isinf(self.limits_mb_s[k]))


def _allocation(instance: Instance, j: int, modes: tuple[Mode, ...], segment: Segment) -> Allocation:
    pool = instance.pool_index[segment.pool]
    mode = next(
        m for m in modes if (m.name, m.pool) == (segment.mode, pool) and abs(m.speed - segment.speed) < 1e-9
    )  # fmt: skip
    running = instance.jobs[j].running
    if segment.kept and running is not None:
        return Allocation(mode, running.places)  # spelled as the world spells it
    return Allocation(mode, tuple(sorted(segment.places, key=lambda place: place.node)))


def _with(leg: Leg, before: tuple[LegId, ...]) -> Leg:
    return replace(leg, before=before)


def _before(legs: dict[LegId, Leg]) -> dict[LegId, tuple[LegId, ...]]:
    """Of each leg those of other jobs that end before it begins on one of its GPUs, the latest first."""
    on: dict[Gpu, list[LegId]] = defaultdict(list)
    for name, leg in legs.items():
        for gpu in leg.gpus:
            on[gpu].append(name)
    found: dict[LegId, set[LegId]] = {name: set() for name in legs}
    for names in on.values():
        for name in names:
            start_s = legs[name].start_s
            found[name].update(
                other
                for other in names
                if other[0] != name[0] and legs[other].start_s + legs[other].length_s <= start_s
            )
    return {
        name: tuple(sorted(others, key=lambda other: (-legs[other].start_s, other)))
        for name, others in found.items()
    }  # fmt: skip


def _intervals(instance: Instance, plan: Plan, legs: dict[LegId, Leg]) -> tuple[Interval, ...]:
    on: dict[Node, list[LegId]] = defaultdict(list)
    for name, leg in legs.items():
        for place in leg.allocation.places:
            on[leg.allocation.mode.pool, place.node].append(name)
    found = []
    for interval in plan.nodes_on:
        node = (instance.pool_index[interval.pool], interval.node)
        begin_s, end_s = interval.start_slot * plan.slot_s, interval.end_slot * plan.slot_s
        within = tuple(name for name in sorted(on[node]) if begin_s <= legs[name].start_s < end_s)
        found.append(Interval(node, begin_s, end_s, within))
    return tuple(sorted(found, key=lambda interval: (interval.begin_s, interval.node)))
