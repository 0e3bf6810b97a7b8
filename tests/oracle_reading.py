"""models/README.md read a second time: what the oracle knows of ways to run, nodes, prices and storage.

Nothing here comes from `models` but the plain records, so that the program's own reading (grid, modes) has
something to be compared with. Written to be checked by eye against the page, not to be fast.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache

from models.domain.entities import Job, ModeEntry, Pool, Site
from models.domain.instance import Instance
from models.domain.prices import EnergyTariff, HourlyTariff, Price

EPSILON = 1e-9
"""In slots: what counts as on the edge."""

Place = tuple[int, tuple[int, ...]]
"""A node and the GPUs of it that are taken."""


@dataclass(frozen=True)
class Way:
    """One way to run one job: an entry in a pool at a speed, or, for a running job, staying where it is."""

    entry: str
    pool: int
    speed: float
    slots: int
    rate_mb_s: float
    volume_gb: float
    num_nodes: int
    gpus_on_node: int
    """Whole GPUs on each of its nodes; 0 for a share."""
    share_slices: int
    """Slices of one GPU; 0 for whole GPUs."""
    busy_gpus: float
    memory_gb: float
    cpu_cores: int
    ram_gb: float
    stays_on: tuple[Place, ...] = ()
    """The places of a running job that is kept; empty for every other way."""

    @property
    def is_kept(self) -> bool:
        """Whether a running job stays where it is."""
        return bool(self.stays_on)


def num_slots(instance: Instance) -> int:
    """T; the oracle wants it stated."""
    assert not isinstance(instance.horizon, str), "the oracle needs a stated horizon"
    return round(instance.horizon / instance.slot)


# --- ways to run -----------------------------------------------------------------------------------------


def entries(instance: Instance, job: Job) -> list[tuple[str, ModeEntry]]:
    """The named entries of a job, from its table or its model's throughputs."""
    listed = list(job.modes)
    for row in instance.throughputs:
        if job.model is not None and row.model == job.model:
            assert job.samples is not None
            listed.append(
                ModeEntry(
                    gpu=row.gpu,
                    gpus=row.gpus,
                    share=row.share,
                    duration=job.samples / row.samples_per_s,
                    read_rate=row.samples_per_s * 1000.0 * (job.sample_size or 0.0),
                    memory=row.memory,
                )
            )
    named = []
    for entry in listed:
        size = f"{entry.share:g}" if entry.gpus is None else str(entry.gpus)
        named.append((entry.id or f"{size}x{entry.pool or entry.gpu}", entry))
    return named


def ways(instance: Instance, job: Job) -> list[Way]:
    """Every way to run a job. A pinned running job has one; a movable one has staying besides all others."""
    found = []
    for name, entry in entries(instance, job):
        for index, pool in enumerate(instance.pools):
            if pool.id != entry.pool and pool.gpu != entry.gpu:
                continue
            runs_in_pool = job.running is not None and job.running.pool == pool.id
            if job.running is not None and runs_in_pool and job.running.mode == name:
                places = tuple((place.node, tuple(sorted(place.gpus))) for place in job.running.places)
                found.append(_way(instance, job, name, entry, index, 1.0, places))
            if job.running is not None and not job.running.movable:
                continue
            if pool.market == "spot" and not job.spot:
                continue
            if _fits(entry, job, pool) and _can_read(instance, job, entry, pool):
                found += [_way(instance, job, name, entry, index, speed, ()) for speed in job.speed_levels]
    return found


def _needs(entry: ModeEntry, job: Job) -> tuple[float, int, float]:
    """Memory on each GPU, cores and RAM on each node: the entry's, else the job's, else nothing."""
    memory = job.memory if entry.memory is None else entry.memory
    cores = job.cpu_cores if entry.cpu_cores is None else entry.cpu_cores
    ram = job.ram if entry.ram is None else entry.ram
    return memory or 0.0, cores or 0, ram or 0.0


def _fits(entry: ModeEntry, job: Job, pool: Pool) -> bool:
    memory, cores, ram = _needs(entry, job)
    if pool.nodes == 0 or (entry.gpus or 1) > pool.gpus_per_node * pool.nodes:
        return False
    limits = ((memory, pool.gpu_memory), (cores, pool.cpu_cores), (ram, pool.ram))
    return all(limit is None or need <= limit for need, limit in limits)


def _can_read(instance: Instance, job: Job, entry: ModeEntry, pool: Pool) -> bool:
    if job.dataset is None or entry.read_rate == 0:
        return True
    home = home_of(instance, job.dataset)
    return home == pool.site or any(a.source == home and a.target == pool.site for a in instance.network)


def _way(
    instance: Instance,
    job: Job,
    name: str,
    entry: ModeEntry,
    index: int,
    speed: float,
    places: tuple[Place, ...],
) -> Way:
    pool = instance.pools[index]
    memory, cores, ram = _needs(entry, job)
    seconds = entry.duration / speed
    share_slices, gpus_on_node, num_nodes = 0, 0, 1
    if entry.gpus is None:
        assert entry.share is not None
        seconds *= entry.slowdown
        share_slices = math.ceil(entry.share * pool.slices_per_gpu - EPSILON)
        busy = share_slices / pool.slices_per_gpu
    else:
        busy = float(entry.gpus)
        gpus_on_node = entry.gpus
        if entry.gpus > pool.gpus_per_node:
            num_nodes, gpus_on_node = -(-entry.gpus // pool.gpus_per_node), pool.gpus_per_node
    rate = 0.0 if job.dataset is None else entry.read_rate * speed
    return Way(
        entry=name,
        pool=index,
        speed=speed,
        slots=max(1, math.ceil(seconds / instance.slot - EPSILON)),
        rate_mb_s=rate,
        volume_gb=rate * seconds / 1000.0,
        num_nodes=num_nodes,
        gpus_on_node=gpus_on_node,
        share_slices=share_slices,
        busy_gpus=busy,
        memory_gb=memory,
        cpu_cores=cores,
        ram_gb=ram,
        stays_on=places,
    )


def starts(instance: Instance, job: Job, way: Way) -> list[int]:
    """Slots at which a way may start: released, complete by deadline and horizon; 0 alone for a kept run."""
    last = num_slots(instance) - way.slots
    if job.deadline is not None:
        last = min(last, math.floor(job.deadline / instance.slot + EPSILON) - way.slots)
    if way.is_kept:
        return [0] if last >= 0 else []
    return [t for t in range(last + 1) if t >= job.release / instance.slot - EPSILON]


def placements(instance: Instance, way: Way) -> Iterator[tuple[Place, ...]]:
    """Every set of GPUs that a way could take: whole nodes, whole GPUs of a node, or one GPU for a share."""
    if way.is_kept:
        yield way.stays_on
        return
    pool = instance.pools[way.pool]
    gpus = range(pool.gpus_per_node)
    if way.num_nodes > 1:
        for nodes in itertools.combinations(range(pool.nodes), way.num_nodes):
            yield tuple((node, tuple(gpus)) for node in nodes)
    else:
        for node in range(pool.nodes):
            for taken in itertools.combinations(gpus, max(1, way.gpus_on_node)):
                yield ((node, taken),)


# --- nodes -----------------------------------------------------------------------------------------------


def boot_slots(instance: Instance, pool: Pool) -> int:
    """Slots at the beginning of an interval in which the node cannot be used."""
    return max(0, math.ceil(pool.boot_time / instance.slot - EPSILON))


def block_slots(instance: Instance, pool: Pool) -> int:
    """Slots in a billing block."""
    return max(1, round(pool.billing_increment / instance.slot))


def needs_no_boot(instance: Instance, pool: Pool, node: int) -> bool:
    """Whether a node is on at the start."""
    if node < pool.nodes_on:
        return True
    running = [job.running for job in instance.jobs if job.running is not None]
    return any(place.node == node for where in running if where.pool == pool.id for place in where.places)


def is_available(instance: Instance, pool: Pool, node: int, slot: int) -> bool:
    """Whether no unavailable window of the node overlaps the slot."""
    for window in pool.unavailable:
        if window.nodes is None:
            is_meant = True
        elif isinstance(window.nodes, int):
            is_meant = node >= pool.nodes - window.nodes
        else:
            is_meant = node in window.nodes
        begins, ends = window.since / instance.slot, window.until / instance.slot
        if is_meant and begins < slot + 1 - EPSILON and ends > slot + EPSILON:
            return False
    return True


@lru_cache(maxsize=100_000)
def _slot_price(price: Price, begin_s: float, length_s: float) -> float:
    """Time average of daily windows over a slot that begins so many seconds after a midnight."""
    assert isinstance(price, HourlyTariff | EnergyTariff)
    day = 86400.0
    cuts = {begin_s, begin_s + length_s}
    for midnight in range(math.floor(begin_s / day), math.ceil((begin_s + length_s) / day) + 1):
        for clock in (0.0, *(w.since for w in price.windows), *(w.until for w in price.windows)):
            if begin_s < midnight * day + clock < begin_s + length_s:
                cuts.add(midnight * day + clock)
    points = sorted(cuts)
    total = 0.0
    for a, b in itertools.pairwise(points):
        middle = (a + b) / 2 % day
        value = price.default
        for window in price.windows:
            over_midnight = window.until < window.since
            after, before = middle >= window.since, middle < window.until
            if (after or before) if over_midnight else (after and before):
                value = window.price
                break
        total += value * (b - a)
    return total / length_s


def price_in_slot(instance: Instance, price: Price, slot: int) -> float:
    """Average price over one slot; the last entry of a list goes on."""
    if isinstance(price, tuple):
        return price[min(slot, len(price) - 1)]
    if isinstance(price, HourlyTariff | EnergyTariff):
        midnight = instance.start.replace(hour=0, minute=0, second=0, microsecond=0)
        begin = (instance.start - midnight) / timedelta(seconds=1) + slot * instance.slot
        return _slot_price(price, begin, instance.slot)
    return float(price)


def interval_cost(instance: Instance, pool: Pool, begin: int, end: int) -> float:
    """What a node costs that is on from `begin` to `end`: whole blocks from `begin`, at each slot's price."""
    block = block_slots(instance, pool)
    billed = -(-(end - begin) // block) * block
    hours = instance.slot / 3600.0
    return math.fsum(price_in_slot(instance, pool.price, t) * hours for t in range(begin, begin + billed))


# --- storage ---------------------------------------------------------------------------------------------


def home_of(instance: Instance, dataset: str) -> str:
    """The site at which a dataset is at home."""
    return next(d.home for d in instance.datasets if d.id == dataset)


def link_rate(site: Site, rate: float, cached: float) -> float:
    """What a run takes of a site's link: an item in the cache takes 1 / cache_speed, one on the link 1 / b, and
    1 / rate on average; a run that is no slower than the cache has to be read in full."""
    if site.storage.cache_speed is None:
        return rate * (1.0 - cached)
    assert cached == 0.0 or rate < site.storage.cache_speed
    if cached in (0.0, 1.0):
        return rate * (1.0 - cached)
    return (1.0 - cached) / (1.0 / rate - cached / site.storage.cache_speed)


def can_use_cache(site: Site, rate: float) -> bool:
    """Whether a run reads more slowly than the cache serves it."""
    return site.storage.cache_speed is None or rate < site.storage.cache_speed


def tariff_lines(site: Site, exact_at: Iterable[float] = ()) -> list[tuple[float, float]]:
    """(alpha, beta) of the lines whose minimum is the tariff per hour; none where bandwidth is free.

    Those of a power law are its chords between the amounts at which they are to be exact, and lie below it elsewhere.
    """
    storage = site.storage
    points = [(p.mb_s, p.price) for p in storage.points]
    if storage.power is not None:
        law = storage.power
        if law.exponent in (0.0, 1.0):
            return [(law.factor, 0.0) if law.exponent == 0.0 else (0.0, law.factor)]
        amounts = sorted({law.up_to, *(b for b in exact_at if EPSILON < b < law.up_to)})
        points = [(0.0, 0.0), *((b, law.factor * b**law.exponent) for b in amounts)]
    if storage.tiers:
        points = [(0.0, 0.0)]
        for tier in storage.tiers:
            end = points[-1][0] + 1.0 if tier.up_to is None else tier.up_to
            points.append((end, points[-1][1] + tier.per_mb_s * (end - points[-1][0])))
    if not points:
        return [(p.fixed, p.per_mb_s) for p in storage.tariff]
    if len(points) == 1:
        points = [(0.0, 0.0), *points]
    lines = []
    for (b0, p0), (b1, p1) in itertools.pairwise(points):
        slope = (p1 - p0) / (b1 - b0)
        lines.append((p0 - slope * b0, slope))
    return lines


def tariff_price(site: Site, mb_s: float) -> float:
    """P(B) an hour."""
    law = site.storage.power
    if law is not None:
        return law.factor * mb_s**law.exponent if mb_s > EPSILON else 0.0
    lines = tariff_lines(site)
    return min(a + b * mb_s for a, b in lines) if lines and mb_s > EPSILON else 0.0


def bandwidth_cap(site: Site) -> float | None:
    """The most bandwidth that can be bought; None where there is no limit."""
    caps = [p.mb_s for p in site.storage.points[-1:]]
    caps += [tier.up_to for tier in site.storage.tiers[-1:] if tier.up_to is not None]
    caps += [] if site.storage.power is None else [site.storage.power.up_to]
    if site.storage.bandwidth_cap is not None:
        caps.append(site.storage.bandwidth_cap)
    return min(caps) if caps else None


def chord_error(instance: Instance) -> float:
    """The most that chords as coarse as instances allow may be below their power laws, in money; 0 without any."""
    return math.fsum(
        law.error * law.factor * law.up_to**law.exponent * billed_hours(instance, site)
        for site in instance.sites
        if (law := site.storage.power) is not None and 0.0 < law.exponent < 1.0
    )


def billed_hours(instance: Instance, site: Site) -> float:
    """Hours for which bandwidth and cache are paid."""
    seconds = site.storage.billed
    return (num_slots(instance) * instance.slot if seconds is None else seconds) / 3600.0
