"""What a plan says, read against the instance: names resolved, and all that can be derived derived anew.

What cannot be read (an unknown name, a slot before the start) is a violation at once and left out of what the
rules look at, so that no rule meets a record it cannot judge.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone

from models.check.report import QUANTITY_RELATIVE, SLOT_ROUNDING, Violation, as_float, label, show, violation
from models.check.uses import Course, Use, Way, way_of
from models.domain.entities import Dataset, Job, Link, Pool, Site, Throughput
from models.domain.instance import Instance
from models.domain.plan import NodeOn, Plan, Run, Segment

# Slots are counted in floats where they meet times; beyond this a float no longer tells one from the next.
MOST_SLOTS = 2**53


@dataclass(frozen=True)
class On:
    """A node-on interval within the horizon; from `ready` the node can be used."""

    where: str
    claim: NodeOn
    pool: Pool
    site: Site
    start: int
    ready: int
    end: int


@dataclass
class Facts:
    """An instance and a plan, and what the plan comes to by the instance."""

    instance: Instance
    plan: Plan
    sites: dict[str, Site] = field(default_factory=dict)
    pools: dict[str, Pool] = field(default_factory=dict)
    datasets: dict[str, Dataset] = field(default_factory=dict)
    jobs: dict[str, Job] = field(default_factory=dict)
    links: dict[tuple[str, str], Link] = field(default_factory=dict)
    speeds: dict[str, list[Throughput]] = field(default_factory=dict)
    """Throughputs of each model."""
    running_on: set[tuple[str, int]] = field(default_factory=set)
    """(pool, node) of every running job."""
    num_slots: int = 0
    uses: list[Use] = field(default_factory=list)
    courses: list[Course] = field(default_factory=list)
    """Runs all of whose segments are among the uses."""
    on: list[On] = field(default_factory=list)
    cached: dict[tuple[str, str], float] = field(default_factory=dict)
    bought: dict[str, float] = field(default_factory=dict)
    costs: dict[str, float] = field(default_factory=dict)
    """Every cost term recomputed."""
    unreadable: list[Violation] = field(default_factory=list)

    @property
    def slot_h(self) -> float:
        """Length of a slot in hours."""
        return self.instance.slot / 3600.0

    def seconds(self, slot: int) -> float:
        """Time of a slot's beginning after the start."""
        return as_float(slot) * self.instance.slot

    def slots_up(self, seconds: float) -> int:
        """First slot edge no earlier than a time."""
        return math.ceil(self._slots(seconds) - SLOT_ROUNDING)

    def slots_down(self, seconds: float) -> int:
        """Last slot edge no later than a time."""
        return math.floor(self._slots(seconds) + SLOT_ROUNDING)

    def _slots(self, seconds: float) -> float:
        return max(-float(MOST_SLOTS), min(seconds / self.instance.slot, float(MOST_SLOTS)))

    def is_reached(self, dataset: str, site: str) -> bool:
        """Whether a dataset is at home at a site, or a link leads there."""
        home = self.datasets[dataset].home
        return home == site or (home, site) in self.links

    def is_on_at_start(self, pool: Pool, node: int) -> bool:
        """Whether a node needs no boot at slot 0: stated so, or a running job is on it."""
        return node < pool.nodes_on or (pool.id, node) in self.running_on


def read(instance: Instance, plan: Plan) -> Facts:
    """The plan read against the instance."""
    facts = Facts(instance, plan)
    facts.sites = {site.id: site for site in instance.sites}
    facts.pools = {pool.id: pool for pool in instance.pools}
    facts.datasets = {dataset.id: dataset for dataset in instance.datasets}
    facts.jobs = {job.id: job for job in instance.jobs}
    facts.links = {(link.source, link.target): link for link in instance.network}
    for row in instance.throughputs:
        facts.speeds.setdefault(row.model, []).append(row)
    running = [job.running for job in instance.jobs if job.running is not None]
    facts.running_on = {(there.pool, place.node) for there in running for place in there.places}
    facts.num_slots = stated_slots(facts) or max(0, min(plan.num_slots, last_slot(facts)))
    for read_table in (_read_cached, _read_bandwidth, _read_runs, _read_nodes_on, _read_rejected):
        facts.unreadable += read_table(facts)
    return facts


def stated_slots(facts: Facts) -> int | None:
    """T of a stated horizon; None with `horizon: auto`."""
    horizon = facts.instance.horizon
    return None if isinstance(horizon, str) else round(horizon / facts.instance.slot)


def last_slot(facts: Facts) -> int:
    """The last slot that begins at an instant which can be written: calendars end with the year 9999."""
    start = facts.instance.start
    return facts.slots_down((datetime.max.replace(tzinfo=start.tzinfo) - start) / timedelta(seconds=1))


def instant_s(facts: Facts, text: str) -> float | None:
    """Seconds from the instance's start to a written instant; None where it is none, or has no zone."""
    start = facts.instance.start
    offset = start.utcoffset() or timedelta(0)
    try:
        instant = datetime.fromisoformat(text)
        if instant.tzinfo is None:
            return None
        return (instant - start.replace(tzinfo=timezone(offset))) / timedelta(seconds=1)
    except (ValueError, OverflowError):
        return None


def _read_runs(facts: Facts) -> Iterator[Violation]:
    for index, run in enumerate(facts.plan.runs):
        job = facts.jobs.get(run.job)
        if job is None:
            yield violation("unknown-job", f"runs[{index}]", f"the instance has no job {label(run.job)}")
            continue
        where, count = f"job {job.id}", len(run.segments)
        if count == 0 or (count > 1 and job.elastic is None):
            needed = "exactly 1" if job.elastic is None else "at least 1"
            message = f"its run has {count} segments where there must be {needed}"
            yield violation("segments", where, message, count - 1)
            continue
        found = [_read_segment(facts, run, job, k) for k in range(count)]
        uses = tuple(use for use in found if isinstance(use, Use))
        facts.uses += uses
        if len(uses) == count:
            facts.courses.append(Course(where, run, job, uses))
        yield from (fault for fault in found if isinstance(fault, Violation))


def _read_segment(facts: Facts, run: Run, job: Job, index: int) -> Use | Violation:
    """A segment with what its mode takes, or the first thing that makes it unreadable."""
    segment = run.segments[index]
    where = f"job {job.id}" + (f", segment {index + 1}" if len(run.segments) > 1 else "")
    pool = facts.pools.get(segment.pool)
    if pool is None:
        return violation("unknown-pool", where, f"the instance has no pool {label(segment.pool)}")
    way = way_of(job, segment.mode, facts.speeds.get(job.model or "", ()))
    if way is None:
        return violation("unknown-mode", where, f"it has no mode {label(segment.mode)}")
    if not way.is_offered_in(pool):
        return violation("mode-elsewhere", where, f"mode {way.name} is not offered in pool {pool.id}")
    is_kept = index == 0 and _is_left_as_it_is(job, segment)
    speeds = (*job.speed_levels, *((1.0,) if is_kept else ()))
    speed = next((level for level in speeds if abs(level - segment.speed) <= QUANTITY_RELATIVE), None)
    if speed is None:
        message = f"speed {segment.speed:g} is not one of its levels"
        return violation("unknown-speed", where, message, segment.speed)
    if not 0 <= segment.start_slot <= facts.num_slots:
        message = f"starts at slot {show(segment.start_slot)} of the {facts.num_slots} slots of the plan"
        return violation("slot-range", where, message, segment.start_slot)
    if job.elastic is not None and segment.end_slot <= segment.start_slot:
        message = f"ends at slot {show(segment.end_slot)}, no later than it starts, at {show(segment.start_slot)}"
        return violation("slot-range", where, message, segment.end_slot - segment.start_slot)
    return _use(facts, where, run, job, index, pool, way, speed, is_kept)


def _is_left_as_it_is(job: Job, segment: Segment) -> bool:
    """Whether a running job is kept: from slot 0, in its mode, at full speed, on its places."""
    running = job.running
    return (
        running is not None
        # One that may be moved may also be stopped and started again in its place, at its restart cost.
        and (segment.kept or not running.movable)
        and segment.start_slot == 0
        and (segment.mode, segment.pool) == (running.mode, running.pool)
        and abs(segment.speed - 1.0) <= QUANTITY_RELATIVE
        and {(p.node, gpu) for p in segment.places for gpu in p.gpus}
        == {(p.node, gpu) for p in running.places for gpu in p.gpus}
    )


def _use(
    facts: Facts, where: str, run: Run, job: Job, index: int, pool: Pool, way: Way, speed: float, is_kept: bool
) -> Use:
    """What a mode takes: models/README.md, Modes."""
    segment = run.segments[index]
    if way.gpus is None:
        num_nodes, gpus_per_node = 1, 1
        slices = math.ceil(way.share * pool.slices_per_gpu - SLOT_ROUNDING)
        busy_gpus = slices / pool.slices_per_gpu
    else:
        num_nodes = -(-way.gpus // pool.gpus_per_node)
        gpus_per_node = way.gpus if num_nodes == 1 else pool.gpus_per_node
        slices, busy_gpus = pool.slices_per_gpu, float(way.gpus)
    duration_s, slot_s = way.duration_s / speed, facts.instance.slot
    if job.elastic is None:
        length, reading_s = max(1, facts.slots_up(duration_s)), duration_s
    else:
        # A segment of an elastic job is as long as it says, and reads for the whole of its slots.
        length = min(segment.end_slot - segment.start_slot, MOST_SLOTS)
        reading_s = length * slot_s
    reads = job.dataset is not None and way.rate_mb_s > 0
    in_cache = facts.cached.get((pool.site, job.dataset or ""), 0.0)
    serves = facts.sites[pool.site].storage.cache_speed
    too_fast = reads and serves is not None and way.rate_mb_s * speed >= serves
    held = {
        (place.node, gpu)
        for place in segment.places
        for gpu in place.gpus
        if place.node < pool.nodes and gpu < pool.gpus_per_node
    }
    return Use(
        where, index, len(run.segments), segment, job, pool, facts.sites[pool.site], way, speed, is_kept,
        start=segment.start_slot,
        end=segment.start_slot + length,
        work=length * slot_s / duration_s,
        num_nodes=num_nodes, gpus_per_node=gpus_per_node, slices=slices, busy_gpus=busy_gpus,
        home=facts.datasets[job.dataset].home if job.dataset is not None and reads else None,
        volume_gb=way.rate_mb_s * speed * reading_s / 1000.0 if reads else 0.0,
        cached=in_cache if abs(segment.cached - in_cache) <= QUANTITY_RELATIVE and not too_fast else 0.0,
        is_too_fast=too_fast,
        held=tuple(sorted(held)),
    )  # fmt: skip


def _read_nodes_on(facts: Facts) -> Iterator[Violation]:
    for index, claim in enumerate(facts.plan.nodes_on):
        pool = facts.pools.get(claim.pool)
        if pool is None:
            message = f"the instance has no pool {label(claim.pool)}"
            yield violation("unknown-pool", f"nodes_on[{index}]", message)
            continue
        where = f"node {show(claim.node)} of pool {pool.id}"
        if not 0 <= claim.node < pool.nodes:
            message = f"the pool has {pool.nodes} nodes, counted from 0"
            yield violation("unknown-node", where, message, claim.node)
            continue
        span = f"from slot {show(claim.start_slot)} to {show(claim.end_slot)}"
        if not 0 <= claim.start_slot < claim.end_slot <= facts.num_slots:
            message = f"is on {span}, which is not within the {facts.num_slots} slots of the plan"
            yield violation("interval-range", where, message, claim.end_slot - claim.start_slot)
        start, end = max(0, claim.start_slot), min(claim.end_slot, facts.num_slots)
        if start < end:
            needs_boot = start > 0 or not facts.is_on_at_start(pool, claim.node)
            ready = start + (facts.slots_up(pool.boot_time) if needs_boot else 0)
            facts.on.append(On(f"{where} {span}", claim, pool, facts.sites[pool.site], start, ready, end))


def _read_cached(facts: Facts) -> Iterator[Violation]:
    for index, claim in enumerate(facts.plan.cached):
        where = f"cached[{index}]"
        if claim.site not in facts.sites:
            yield violation("unknown-site", where, f"the instance has no site {label(claim.site)}")
            continue
        if claim.dataset not in facts.datasets:
            yield violation("unknown-dataset", where, f"the instance has no dataset {label(claim.dataset)}")
            continue
        where = f"dataset {claim.dataset} at site {claim.site}"
        if (claim.site, claim.dataset) in facts.cached:
            yield violation("cached-twice", where, "is listed twice as cached")
        elif not 0 <= claim.fraction <= 1:
            message = f"the fraction {claim.fraction:g} of it cannot be cached"
            yield violation("cache-fraction", where, message, claim.fraction)
        else:
            facts.cached[claim.site, claim.dataset] = claim.fraction


def _read_bandwidth(facts: Facts) -> Iterator[Violation]:
    for index, claim in enumerate(facts.plan.bandwidth):
        if claim.site not in facts.sites:
            message = f"the instance has no site {label(claim.site)}"
            yield violation("unknown-site", f"bandwidth[{index}]", message)
        elif claim.site in facts.bought:
            yield violation("bandwidth-twice", f"site {claim.site}", "its bandwidth is listed twice")
        elif not 0 <= claim.mb_s < math.inf:
            message = f"{claim.mb_s:g} MB/s is not an amount of bandwidth"
            yield violation("bandwidth-amount", f"site {claim.site}", message, claim.mb_s)
        else:
            facts.bought[claim.site] = claim.mb_s


def _read_rejected(facts: Facts) -> Iterator[Violation]:
    for name, count in Counter(facts.plan.rejected).items():
        if name not in facts.jobs:
            yield violation("unknown-job", "rejected", f"the instance has no job {label(name)}")
        elif count > 1:
            yield violation("job-twice", f"job {name}", f"is rejected {count} times", count - 1)
