"""What storage comes to in a simulated world: bandwidth and cache by billing periods, transfers as they happen.

A period is as long as a plan pays for (`billed`, else the horizon); the first begins at the start. Bandwidth and cache
are bought when they are first needed and kept to the end of the period, so at each time what is paid is the most of the
period until then: the sum over periods of the integral of P(max of B so far). A period of which nothing is used costs
nothing. So a plan that reads all that it will from the start on costs what it says, and no plan that comes to pass as
it was made costs more.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence

from models.domain import Instance
from models.domain.entities import Site
from models.domain.modes import Mode
from models.storage.reading import is_served
from models.storage.tariff import tariff_of
from planner.simulation.reading import over_link
from planner.simulation.trace import Caching, Stretch

Piece = tuple[float, float, float]
"""An amount from one time to another."""
OVERLAP_S = 1e-3
"""Two that meet for no longer do not meet."""
GB_PER_MB = 1e-3


def storage_costs(
    instance: Instance, stretches: Sequence[Stretch], modes: Sequence[Mode], caches: Sequence[Caching]
) -> dict[str, float]:
    """Money for bandwidth, cache and transfer; `modes` are those of the stretches."""
    links, reads = instance.links, _reads(instance, stretches, modes, caches)
    moved: list[float] = []
    over: dict[str, list[Piece]] = defaultdict(list)
    for site, dataset, mode, (start, end, cached) in reads:
        speed = site.storage.cache_speed
        over[site.id].append((start, end, over_link(mode.read_rate_mb_s, cached, speed)))
        link = links.get((_home(instance, dataset), site.id))
        if link is not None:
            missing = 1.0 - cached if is_served(mode.read_rate_mb_s, speed) else 1.0
            moved.append(link.price * mode.read_rate_mb_s * missing * (end - start) * GB_PER_MB)
    held: dict[str, list[Piece]] = defaultdict(list)
    for cache in caches:
        gb = instance.datasets[instance.dataset_index[cache.dataset]].size * cache.fraction
        held[cache.site].append((cache.since_s, cache.until_s, gb))
    for cache, copied in _copies(caches):
        link = links.get((_home(instance, cache.dataset), cache.site))
        if link is not None:
            moved.append(link.price * instance.datasets[instance.dataset_index[cache.dataset]].size * copied)
    bandwidth, cached_gb = [], []
    for site in instance.sites:
        period_s = _period_s(instance, site)
        if period_s is not None:
            tariff = tariff_of(site.storage)
            bandwidth += [float(tariff.price(most)) * seconds for most, seconds in paid(over[site.id], period_s)]
            cached_gb += [site.storage.cache_price * most * seconds for most, seconds in paid(held[site.id], period_s)]
    return {
        "bandwidth": math.fsum(bandwidth) / 3600.0,
        "cache": math.fsum(cached_gb) / 3600.0,
        "transfer": math.fsum(moved),
    }


def _home(instance: Instance, dataset: str) -> str:
    return instance.datasets[instance.dataset_index[dataset]].home


def _period_s(instance: Instance, site: Site) -> float | None:
    """Length of a billing period; None where nothing is billed."""
    if site.storage.billed is not None:
        return site.storage.billed
    return None if instance.horizon == "auto" else instance.horizon


def _reads(
    instance: Instance, stretches: Sequence[Stretch], modes: Sequence[Mode], caches: Sequence[Caching]
) -> Iterator[tuple[Site, str, Mode, Piece]]:
    """Every time in which a job works and reads, cut where what is cached of its dataset changes; with the fraction."""
    kept: dict[tuple[str, str], list[Caching]] = defaultdict(list)
    for cache in sorted(caches, key=lambda cache: cache.since_s):
        kept[cache.site, cache.dataset].append(cache)
    for stretch, mode in zip(stretches, modes, strict=True):
        if mode.dataset is None or stretch.end_s <= stretch.work_s:
            continue
        site = instance.sites[instance.site_index[instance.pools[mode.pool].site]]
        at = stretch.work_s
        for cache in kept[site.id, mode.dataset]:
            start, end = max(at, cache.since_s), min(stretch.end_s, cache.until_s)
            if start >= end:
                continue
            if at < start:
                yield site, mode.dataset, mode, (at, start, 0.0)
            yield site, mode.dataset, mode, (start, end, cache.fraction)
            at = end
        if at < stretch.end_s:
            yield site, mode.dataset, mode, (at, stretch.end_s, 0.0)


def _copies(caches: Sequence[Caching]) -> Iterator[tuple[Caching, float]]:
    """Each caching with the part of the dataset that is copied then: what was not in the cache just before."""
    before: dict[tuple[str, str], Caching] = {}
    for cache in sorted(caches, key=lambda cache: cache.since_s):
        key = (cache.site, cache.dataset)
        last = before.get(key)
        there = last.fraction if last is not None and last.until_s >= cache.since_s else 0.0
        yield cache, max(0.0, cache.fraction - there)
        before[key] = cache


def paid(pieces: Sequence[Piece], period_s: float) -> Iterator[tuple[float, float]]:
    """Amounts, and for how many seconds each is paid: in each period the most so far, until its end."""
    changes = sorted(
        change
        for start, end, amount in pieces
        if end - start > OVERLAP_S
        for change in ((start, 1, amount), (end - OVERLAP_S, -1, amount))
    )
    level, count, most, at_s, period = 0.0, 0, 0.0, 0.0, 0
    for k, (time_s, sign, amount) in enumerate(changes):
        while (period + 1) * period_s <= time_s:
            yield most, (period + 1) * period_s - at_s
            most, period = level, max(period + 1, 0 if count else int(time_s // period_s))
            at_s = period * period_s
        yield most, time_s - at_s
        at_s, count = time_s, count + sign
        level = level + sign * amount if count else 0.0
        if k + 1 == len(changes) or changes[k + 1][0] > time_s:
            most = max(most, level)
    yield most, (period + 1) * period_s - at_s
