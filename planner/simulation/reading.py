"""What jobs that run at one time read: whether sites and links carry it, and what is cached for it by the common rule.

A job holds its part of what a site and a link carry from when it has its GPUs until it leaves them. The common rule,
for every policy that does not say what is to be cached: at each site the cheapest caching for the jobs that run there
now, as if they ran for ever (CBA, `models.storage.cba`), of whole datasets where that will do.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from models.domain import Instance
from models.domain.modes import Mode, modes_of
from models.errors import Infeasible, NoPlan
from models.storage.cba import allocate
from models.storage.demand import demand_at
from models.storage.problem import CacheProblem
from models.storage.reading import is_served, link_rate
from models.storage.tariff import tariff_of

Cached = Mapping[tuple[str, str], float]
"""Fraction by (site, dataset)."""
Readers = Counter[Mode]
"""Modes of the jobs that read at a site, with how many there are of each."""
ROUNDING = 1e-6
"""Part of a limit by which what is read may be above it: as in the check of plans."""
MOST_KEPT = 10_000
"""Sets of readers whose caching is remembered."""
_LEVEL = 1e-9


def is_free(instance: Instance) -> bool:
    """Whether what is read, and what is cached for it, can neither cost anything nor meet a limit."""
    if not any(mode.dataset is not None for job in instance.jobs if job.dataset for mode in modes_of(instance, job)):
        return True
    tariffs = [tariff_of(site.storage) for site in instance.sites]
    are_free = not any(tariff.lines or tariff.power or math.isfinite(tariff.cap) for tariff in tariffs)
    return are_free and not any(link.price or link.bandwidth is not None for link in instance.network)


class Reading:
    """The limits of an instance's sites and links. It remembers what it has worked out."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.is_free = is_free(instance)
        caps = [tariff_of(site.storage).cap for site in instance.sites]
        limited = {link.target for link in instance.network if link.bandwidth is not None}
        self._is_limited = [
            math.isfinite(cap) or site.id in limited for site, cap in zip(instance.sites, caps, strict=True)
        ]
        self._caps = caps
        self._site = [instance.site_index[pool.site] for pool in instance.pools]
        self._best: dict[tuple[int, frozenset[tuple[Mode, int]]], dict[str, float] | None] = {}

    def count(self, mode: Mode, number: int, sites: dict[int, Readers]) -> None:
        """So many more readers in a mode, or fewer, noted where they read."""
        if self.is_free or mode.dataset is None:
            return
        readers = sites[self._site[mode.pool]]
        readers[mode] += number
        if not readers[mode]:
            del readers[mode]

    def at_sites(self, modes: Iterable[Mode]) -> dict[int, Readers]:
        """The readers among some jobs, by site."""
        found: dict[int, Readers] = defaultdict(Counter)
        for mode in modes:
            self.count(mode, 1, found)
        return found

    def bears(self, mode: Mode, beside: Mapping[int, Readers]) -> bool:
        """Whether one more reader can be served beside others, with the caching that is best for all of them."""
        s = self._site[mode.pool]
        if self.is_free or mode.dataset is None or not self._is_limited[s]:
            return True
        return self._best_at(s, beside.get(s, Counter()) + Counter([mode])) is not None

    def best(self, sites: Mapping[int, Readers]) -> dict[tuple[str, str], float] | None:
        """What the common rule caches; None where no caching serves all."""
        found: dict[tuple[str, str], float] = {}
        for s, readers in sites.items():
            cached = self._best_at(s, readers)
            if cached is None:
                return None
            found |= {(self.instance.sites[s].id, dataset): part for dataset, part in cached.items() if part > 0}
        return found

    def shortage(self, sites: Mapping[int, Readers], cached: Cached) -> str | None:
        """Which limit is exceeded with these fractions cached; None where none is."""
        for s, readers in sites.items():
            if not self._is_limited[s]:
                continue
            site, links = self.instance.sites[s], defaultdict(list)
            rates: list[float] = []
            for mode, number in readers.items():
                assert mode.dataset is not None
                part = cached.get((site.id, mode.dataset), 0.0)
                rate = number * over_link(mode.read_rate_mb_s, part, site.storage.cache_speed)
                rates.append(rate)
                home = self.instance.datasets[self.instance.dataset_index[mode.dataset]].home
                links[home].append(rate)
            if math.fsum(rates) > self._caps[s] * (1 + ROUNDING):
                return f"site {site.id} sells {self._caps[s]:g} MB/s, and {math.fsum(rates):g} MB/s would be read there"
            for home, crossing in links.items():
                link = self.instance.links.get((home, site.id))
                most = math.inf if link is None or link.bandwidth is None else link.bandwidth
                if math.fsum(crossing) > most * (1 + ROUNDING):
                    return f"the link from {home} to {site.id} carries {most:g} MB/s of {math.fsum(crossing):g} MB/s"
        return None

    def _best_at(self, s: int, readers: Readers) -> dict[str, float] | None:
        key = (s, frozenset(readers.items()))
        if key not in self._best:
            if len(self._best) >= MOST_KEPT:
                self._best.clear()
            self._best[key] = self._worked_out(s, readers)
        return self._best[key]

    def _worked_out(self, s: int, readers: Readers) -> dict[str, float] | None:
        by_dataset: dict[str, list[tuple[str, Mode]]] = defaultdict(list)
        for mode, number in readers.items():
            assert mode.dataset is not None
            by_dataset[mode.dataset] += [("", mode)] * number
        demand = demand_at(self.instance, self.instance.sites[s], by_dataset)
        parts = _whole(demand.problem) or _in_levels(demand.problem, self.instance.cache_levels)
        return None if parts is None else dict(zip(demand.datasets, parts, strict=True))


def over_link(rate_mb_s: float, cached: float, cache_speed: float | None) -> float:
    """MB/s over a site's link of a reader beside a cache that holds a part of its dataset."""
    return link_rate(rate_mb_s, cached, cache_speed) if is_served(rate_mb_s, cache_speed) else rate_mb_s


def _whole(problem: CacheProblem) -> list[float] | None:
    try:
        return [float(part) for part in allocate(problem, whole=True).allocation.cached]
    except (Infeasible, NoPlan):
        return None


def _in_levels(problem: CacheProblem, levels: int) -> list[float] | None:
    """Where whole datasets do not fit: parts in whole levels, no less than is needed."""
    if levels == 1:
        return None
    try:
        found = allocate(problem).allocation.cached
    except (Infeasible, NoPlan):
        return None
    parts = [min(1.0, math.ceil(part * levels - _LEVEL) / levels) for part in found.tolist()]
    return parts if problem.allows(problem.allocation(found * 0 + parts)) else None
