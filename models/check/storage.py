"""Rules on storage: caches, bandwidth bought, links between sites."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator

from models.check.facts import Facts
from models.check.nodes import Claim, peak
from models.check.report import BANDWIDTH_RELATIVE, QUANTITY_RELATIVE, Violation, is_above, total, violation
from models.domain.entities import Site


def caches_hold_whole_levels(facts: Facts) -> Iterator[Violation]:
    """A dataset is cached by a multiple of 1/L, where it is at home or a link leads."""
    levels = facts.instance.cache_levels
    for (site, dataset), fraction in facts.cached.items():
        where = f"dataset {dataset} at site {site}"
        if abs(fraction * levels - round(fraction * levels)) > QUANTITY_RELATIVE * levels:
            message = f"the fraction {fraction:g} of it is cached, which is no multiple of 1/{levels}"
            yield violation("cache-level", where, message, fraction)
        if fraction > 0 and not facts.is_reached(dataset, site):
            message = f"is cached where no link leads from its home, {facts.datasets[dataset].home}"
            yield violation("cache-unreachable", where, message)


def caches_are_large_enough(facts: Facts) -> Iterator[Violation]:
    """sum of size * fraction <= cache_capacity at every site."""
    held: dict[str, list[float]] = defaultdict(list)
    for (site, dataset), fraction in facts.cached.items():
        held[site].append(facts.datasets[dataset].size * fraction)
    for site, sizes in held.items():
        capacity = facts.sites[site].storage.cache_capacity
        if is_above(total(sizes), capacity):
            message = f"{total(sizes):g} GB are cached where the cache holds {capacity:g} GB"
            yield violation("cache-capacity", f"site {site}", message, total(sizes) - capacity)


def runs_read_what_is_cached(facts: Facts) -> Iterator[Violation]:
    """A run reads from the cache nothing, or the fraction of its dataset that is in the site's cache; nothing if it is
    at least as fast as the cache."""
    for use in facts.uses:
        site, claimed = use.site.id, use.segment.cached
        true = facts.cached.get((site, use.job.dataset or ""), 0.0)
        if not min(abs(claimed), abs(claimed - true)) <= QUANTITY_RELATIVE:
            message = f"reads the fraction {claimed:g} from the cache at {site}, which holds {true:g} of it"
            yield violation("cached-claim", use.where, message, claimed - true)
        if claimed > QUANTITY_RELATIVE and use.is_too_fast:
            rate, most = use.rate_mb_s, use.site.storage.cache_speed or 0.0
            message = f"reads {rate:g} MB/s from the cache at {site}, which gives a reader {most:g} MB/s"
            yield violation("cache-speed", use.where, message, rate - most)


def bandwidth_bought_is_for_sale(facts: Facts) -> Iterator[Violation]:
    """B is no more than the site's cap, nor than the last point or tier of its tariff, nor than a power law goes."""
    for site, mb_s in facts.bought.items():
        most = bandwidth_cap(facts.sites[site])
        if is_above(mb_s, most, BANDWIDTH_RELATIVE):
            message = f"{mb_s:g} MB/s are bought where there are {most:g} MB/s"
            yield violation("bandwidth-cap", f"site {site}", message, mb_s - most)


def bandwidth_cap(site: Site) -> float:
    """Most bandwidth that a site sells, MB/s; infinite where there is no limit."""
    storage = site.storage
    ends = [storage.bandwidth_cap, *(point.mb_s for point in storage.points[-1:])]
    ends += [tier.up_to for tier in storage.tiers[-1:]]
    ends += [] if storage.power is None else [storage.power.up_to]
    return min((end for end in ends if end is not None), default=math.inf)


def bandwidth_bought_suffices(facts: Facts) -> Iterator[Violation]:
    """In every slot the runs at a site read over its link no more than B together."""
    reading: dict[str, list[Claim]] = defaultdict(list)
    for use in facts.uses:
        if use.link_rate_mb_s > 0:
            reading[use.site.id].append((use.start, use.end, use.link_rate_mb_s))
    for site, claims in reading.items():
        need, slot = peak(claims)
        bought = facts.bought.get(site, 0.0)
        if is_above(need, bought, BANDWIDTH_RELATIVE):
            message = f"{need:g} MB/s are read in slot {slot} where {bought:g} MB/s are bought"
            yield violation("bandwidth-short", f"site {site}", message, need - bought)


def links_between_sites_suffice(facts: Facts) -> Iterator[Violation]:
    """In every slot the runs that read across a link read no more than its bandwidth together."""
    reading: dict[tuple[str, str], list[Claim]] = defaultdict(list)
    for use in facts.uses:
        if use.home is not None and use.home != use.site.id and use.link_rate_mb_s > 0:
            reading[use.home, use.site.id].append((use.start, use.end, use.link_rate_mb_s))
    for (source, target), claims in reading.items():
        link = facts.links.get((source, target))
        if link is None or link.bandwidth is None:
            continue
        need, slot = peak(claims)
        if is_above(need, link.bandwidth, BANDWIDTH_RELATIVE):
            where = f"link from {source} to {target}"
            message = f"{need:g} MB/s are read in slot {slot} where it carries {link.bandwidth:g} MB/s"
            yield violation("link-short", where, message, need - link.bandwidth)
