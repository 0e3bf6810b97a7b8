"""The storage of a simulated schedule judged anew: what is cached, what is read, and what both cost.

Bandwidth and cache are paid by periods (`billed`, else the horizon, from the start on), at each time for the most that
the period has needed so far; transfers are paid as they happen.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from models.check.money import tariff
from models.check.replay.traced import EDGE_S, Ran, Traced, peak
from models.check.report import BANDWIDTH_RELATIVE, QUANTITY_RELATIVE, Violation, is_above, label, violation
from models.check.storage import bandwidth_cap
from models.domain.entities import Site

Claim = tuple[float, float, float]
"""An amount from one time to another."""


def caches_are_possible(read: Traced) -> Iterator[Violation]:
    """Datasets that exist, where they can be had, by whole levels, once at a time, and no more than a cache holds."""
    held: dict[str, list[Claim]] = defaultdict(list)
    for key, caches in read.caches.items():
        where, levels = f"dataset {label(key[1])} cached at {label(key[0])}", read.instance.cache_levels
        if key[0] not in read.sites or key[1] not in read.datasets:
            yield violation("unknown", where, "the instance has no such site or dataset")
            continue
        dataset = read.datasets[key[1]]
        if dataset.home != key[0] and (dataset.home, key[0]) not in read.links:
            yield violation("cache-unreachable", where, f"no link leads there from its home, {dataset.home}")
        for before, cache in itertools.pairwise(caches):
            if cache.since_s < before.until_s - EDGE_S:
                yield violation("cached-twice", where, f"is cached twice at {cache.since_s:g} s")
        for cache in caches:
            if not cache.since_s <= cache.until_s:
                yield violation("times", where, f"is cached from {cache.since_s:g} to {cache.until_s:g} s")
            if abs(cache.fraction * levels - round(cache.fraction * levels)) > QUANTITY_RELATIVE * levels:
                yield violation("cache-level", where, f"{cache.fraction:g} of it is no multiple of 1/{levels}")
            if not 0 < cache.fraction <= 1 + QUANTITY_RELATIVE:
                yield violation("cache-level", where, f"{cache.fraction:g} of it is cached")
            held[key[0]].append((cache.since_s, cache.until_s, dataset.size * cache.fraction))
    for name, claims in held.items():
        most, capacity = peak(claims), read.sites[name].storage.cache_capacity
        if is_above(most, capacity):
            message = f"{most:g} GB are cached at a time where the cache holds {capacity:g} GB"
            yield violation("cache-capacity", f"site {name}", message, most - capacity)


def what_is_read_is_carried(read: Traced) -> Iterator[Violation]:
    """At no time more than a site sells, or than a link carries."""
    at_site: dict[str, list[Claim]] = defaultdict(list)
    across: dict[tuple[str, str], list[Claim]] = defaultdict(list)
    for ran in read.ran:
        for site, home, claim, _ in _readings(read, ran):
            at_site[site.id].append(claim)
            across[home, site.id].append(claim)
    for name, claims in at_site.items():
        most, cap = peak(claims), bandwidth_cap(read.sites[name])
        if is_above(most, cap, BANDWIDTH_RELATIVE):
            message = f"{most:g} MB/s are read at a time where {cap:g} MB/s are sold"
            yield violation("bandwidth-short", f"site {name}", message, most - cap)
    for (source, target), claims in across.items():
        link = read.links.get((source, target))
        if link is None or link.bandwidth is None:
            continue
        most = peak(claims)
        if is_above(most, link.bandwidth, BANDWIDTH_RELATIVE):
            message = f"{most:g} MB/s are read at a time where it carries {link.bandwidth:g} MB/s"
            yield violation("link-short", f"link from {source} to {target}", message, most - link.bandwidth)


def storage_terms(read: Traced) -> dict[str, list[float]]:
    """Money for bandwidth, cache and transfer."""
    parts: dict[str, list[float]] = defaultdict(list)
    at_site: dict[str, list[Claim]] = defaultdict(list)
    for ran in read.ran:
        for site, home, claim, missing_mb_s in _readings(read, ran):
            at_site[site.id].append(claim)
            link = read.links.get((home, site.id))
            if link is not None:
                parts["transfer"].append(link.price * missing_mb_s * (claim[1] - claim[0]) / 1000.0)
    held: dict[str, list[Claim]] = defaultdict(list)
    for (name, dataset_id), caches in read.caches.items():
        dataset, fraction, until = read.datasets.get(dataset_id), 0.0, -math.inf
        if dataset is None or name not in read.sites:
            continue
        link = read.links.get((dataset.home, name))
        for cache in caches:
            there = fraction if cache.since_s - until <= EDGE_S else 0.0
            if link is not None:
                parts["transfer"].append(link.price * dataset.size * max(0.0, cache.fraction - there))
            fraction, until = cache.fraction, cache.until_s
            held[name].append((cache.since_s, cache.until_s, dataset.size * cache.fraction))
    for site in read.sites.values():
        period = _period_s(read, site)
        if period is not None:
            parts["bandwidth"] += [tariff(site, most) * s / 3600.0 for most, s in _levels(at_site[site.id], period)]
            price = site.storage.cache_price
            parts["cache"] += [price * most * s / 3600.0 for most, s in _levels(held[site.id], period)]
    return parts


def _period_s(read: Traced, site: Site) -> float | None:
    if site.storage.billed is not None:
        return site.storage.billed
    return None if read.instance.horizon == "auto" else read.instance.horizon


def _readings(read: Traced, ran: Ran) -> Iterator[tuple[Site, str, Claim, float]]:
    """Site, home of the data, MB/s over the site's link from one time to another, and those not from the cache; cut
    wherever the cache changes."""
    rate = ran.way.rate_mb_s * ran.claim.speed
    dataset = read.datasets.get(ran.job.dataset or "")
    if dataset is None or rate <= 0 or ran.claim.end_s <= ran.claim.work_s:
        return
    site = read.sites[ran.pool.site]
    caches, serves = read.caches.get((site.id, dataset.id), []), site.storage.cache_speed
    begin, end = ran.claim.work_s, ran.claim.end_s
    cuts = {edge for cache in caches for edge in (cache.since_s, cache.until_s) if begin < edge < end}
    for a, b in itertools.pairwise(sorted({begin, end, *cuts})):
        cached = next((c.fraction for c in caches if c.since_s <= (a + b) / 2 < c.until_s), 0.0)
        if serves is not None and rate >= serves:
            cached = 0.0
        missing = rate * (1.0 - cached)
        over = missing if serves is None else missing / (1.0 - cached * rate / serves)
        if over > 0:
            yield site, dataset.home, (a, b, over), missing


def _levels(claims: Sequence[Claim], period: float) -> Iterator[tuple[float, float]]:
    """The most of a period so far, and for how many seconds it is so; to the end of each period in which there is
    anything."""
    within: dict[int, list[Claim]] = defaultdict(list)
    for start, end, amount in claims:
        last = end - EDGE_S
        if last > start and amount > 0:
            for k in range(int(start // period), int(last // period) + 1):
                within[k].append((max(start, k * period), last, amount))
    for k, some in within.items():
        table: Any = np.array(some)
        begins, ends = table[table[:, 0].argsort()], table[table[:, 1].argsort()]
        begun, over = np.cumsum(begins[:, 2]), np.concatenate([[0.0], np.cumsum(ends[:, 2])])
        at = begins[:, 0]
        level = begun[np.searchsorted(at, at, side="right") - 1] - over[np.searchsorted(ends[:, 1], at, side="left")]
        most = np.maximum.accumulate(level)
        spans = np.diff(np.append(at, (k + 1) * period))
        yield from zip(most.tolist(), spans.tolist(), strict=True)
