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
from models.domain.entities import Dataset, Job, Link, Pool, Site, Throughput
from models.domain.instance import Instance
from models.domain.plan import NodeOn, Plan, Run, Segment

# Slots are counted in floats where they meet times; beyond this a float no longer tells one from the next.
MOST_SLOTS = 2**53


@dataclass(frozen=True)
class Way:
    """An entry of a job's table, or one made from its samples and a throughput of its model."""

    name: str
    pool: str | None
    gpu: str | None
    gpus: int | None
    share: float
    duration_s: float
    rate_mb_s: float
    memory_gb: float
    cpu_cores: int
    ram_gb: float

    def is_offered_in(self, pool: Pool) -> bool:
        """Whether it names the pool or its GPU type."""
        return self.pool == pool.id if self.pool is not None else self.gpu == pool.gpu


@dataclass(frozen=True)
class Use:
    """A run of one segment, with what its mode takes by the instance."""

    where: str
    run: Run
    segment: Segment
    job: Job
    pool: Pool
    site: Site
    way: Way
    speed: float
    is_kept: bool
    start: int
    end: int
    """Start and duration: completion is at this slot's edge."""
    num_nodes: int
    gpus_per_node: int
    """GPUs it holds on each of its nodes."""
    slices: int
    """Slices it takes of each of them."""
    busy_gpus: float
    home: str | None
    """Site its data is at home; None: it reads nothing."""
    volume_gb: float
    cached: float
    """Fraction it reads from the cache; what is not in the cache, or asks too much of it, counts as read over the
    link."""
    is_too_fast: bool
    """Whether it reads at least as fast as the cache serves a reader."""
    held: tuple[tuple[int, int], ...]
    """(node, GPU) that it names and that exist."""

    @property
    def rate_mb_s(self) -> float:
        """What it reads in all."""
        return 0.0 if self.home is None else self.way.rate_mb_s * self.speed

    @property
    def link_rate_mb_s(self) -> float:
        """What it reads over the site's link: r (1 - f), in the part 1 - f r / M of its time that the cache leaves."""
        most, missing = self.site.storage.cache_speed, self.rate_mb_s * (1.0 - self.cached)
        return missing if most is None or not self.cached else missing / (1.0 - self.cached * self.rate_mb_s / most)

    @property
    def nodes(self) -> list[int]:
        """Nodes that it names and that exist."""
        return sorted({node for node, _ in self.held})


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


def way_of(facts: Facts, job: Job, name: str) -> Way | None:
    """The first entry of a job of a name; a name is the entry's id, or made such as 2xA100, 0.25xT4, 3xpoolname."""
    for entry in job.modes:
        if name == (entry.id or _made_name(entry.gpus, entry.share, entry.pool or entry.gpu or "")):
            return Way(
                name=name,
                pool=entry.pool, gpu=entry.gpu, gpus=entry.gpus, share=entry.share or 0.0,
                duration_s=entry.duration * (entry.slowdown if entry.gpus is None else 1.0),
                rate_mb_s=entry.read_rate,
                memory_gb=entry.memory or job.memory or 0.0,
                cpu_cores=entry.cpu_cores or job.cpu_cores or 0,
                ram_gb=entry.ram or job.ram or 0.0,
            )  # fmt: skip
    for row in facts.speeds.get(job.model, ()) if job.model is not None else ():
        if name == _made_name(row.gpus, row.share, row.gpu):
            return Way(
                name=name,
                pool=None, gpu=row.gpu, gpus=row.gpus, share=row.share or 0.0,
                duration_s=(job.samples or 0.0) / row.samples_per_s,
                rate_mb_s=row.samples_per_s * (job.sample_size or 0.0) * 1000.0,
                memory_gb=row.memory or job.memory or 0.0,
                cpu_cores=job.cpu_cores or 0,
                ram_gb=job.ram or 0.0,
            )  # fmt: skip
    return None


def _made_name(gpus: int | None, share: float | None, what: str) -> str:
    return f"{gpus}x{what}" if gpus is not None else f"{share:g}x{what}"


def _read_runs(facts: Facts) -> Iterator[Violation]:
    for index, run in enumerate(facts.plan.runs):
        found = _read_run(facts, index, run)
        if isinstance(found, Use):
            facts.uses.append(found)
        else:
            yield found


def _read_run(facts: Facts, index: int, run: Run) -> Use | Violation:
    """The run with what its mode takes, or the first thing that makes it unreadable."""
    job = facts.jobs.get(run.job)
    if job is None:
        return violation("unknown-job", f"runs[{index}]", f"the instance has no job {label(run.job)}")
    where = f"job {job.id}"
    if len(run.segments) != 1:
        message = f"its run has {len(run.segments)} segments where there must be exactly 1"
        return violation("segments", where, message, len(run.segments) - 1)
    segment = run.segments[0]
    pool = facts.pools.get(segment.pool)
    if pool is None:
        return violation("unknown-pool", where, f"the instance has no pool {label(segment.pool)}")
    way = way_of(facts, job, segment.mode)
    if way is None:
        return violation("unknown-mode", where, f"it has no mode {label(segment.mode)}")
    if not way.is_offered_in(pool):
        return violation("mode-elsewhere", where, f"mode {way.name} is not offered in pool {pool.id}")
    is_kept = _is_left_as_it_is(job, segment)
    speeds = (*job.speed_levels, *((1.0,) if is_kept else ()))
    speed = next((level for level in speeds if abs(level - segment.speed) <= QUANTITY_RELATIVE), None)
    if speed is None:
        message = f"speed {segment.speed:g} is not one of its levels"
        return violation("unknown-speed", where, message, segment.speed)
    if not 0 <= segment.start_slot <= facts.num_slots:
        message = f"starts at slot {show(segment.start_slot)} of the {facts.num_slots} slots of the plan"
        return violation("slot-range", where, message, segment.start_slot)
    return _use(facts, where, run, job, pool, way, speed, is_kept)


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


def _use(facts: Facts, where: str, run: Run, job: Job, pool: Pool, way: Way, speed: float, is_kept: bool) -> Use:
    """What a mode takes: models/README.md, Modes."""
    segment = run.segments[0]
    if way.gpus is None:
        num_nodes, gpus_per_node = 1, 1
        slices = math.ceil(way.share * pool.slices_per_gpu - SLOT_ROUNDING)
        busy_gpus = slices / pool.slices_per_gpu
    else:
        num_nodes = -(-way.gpus // pool.gpus_per_node)
        gpus_per_node = way.gpus if num_nodes == 1 else pool.gpus_per_node
        slices, busy_gpus = pool.slices_per_gpu, float(way.gpus)
    duration_s = way.duration_s / speed
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
        where, run, segment, job, pool, facts.sites[pool.site], way, speed, is_kept,
        start=segment.start_slot,
        end=segment.start_slot + max(1, facts.slots_up(duration_s)),
        num_nodes=num_nodes, gpus_per_node=gpus_per_node, slices=slices, busy_gpus=busy_gpus,
        home=facts.datasets[job.dataset].home if job.dataset is not None and reads else None,
        volume_gb=way.rate_mb_s * speed * duration_s / 1000.0 if reads else 0.0,
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
