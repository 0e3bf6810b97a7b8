"""The caches of a simulated world: what is in them as time goes on.

A policy may say what is to be cached; then a dataset comes into the cache when the first job reads it there, and stays
until the policy says otherwise. Else the common rule is followed whenever other jobs run, and what none of them reads
is dropped.
"""

from __future__ import annotations

from collections.abc import Iterable

from models.domain import Instance
from models.domain.modes import Mode
from planner.simulation.reading import Cached, Reading
from planner.simulation.trace import Caching


class Store:
    """What is cached now, and what was."""

    def __init__(self, instance: Instance) -> None:
        self.reading = Reading(instance)
        self.caches: list[Caching] = []
        """Times in which a dataset was cached, in order of their ends."""
        self._aim: Cached | None = None
        self._now: dict[tuple[str, str], float] = {}
        self._since_s: dict[tuple[str, str], float] = {}

    def aim(self, cached: Cached | None) -> None:
        """What a policy wants cached from now on; None: what the common rule says."""
        self._aim = cached

    def shortage(self, modes: Iterable[Mode]) -> str | None:
        """Why jobs cannot all run at once; None where they can."""
        if self.reading.is_free:
            return None
        sites = self.reading.at_sites(modes)
        if self._aim is not None:
            return self.reading.shortage(sites, self._aim)
        return None if self.reading.best(sites) is not None else "whatever is cached, more is read than can be"

    def settle(self, now_s: float, modes: Iterable[Mode]) -> None:
        """Cache what is to be while these jobs run, which have no shortage."""
        if self.reading.is_free:
            return
        sites = self.reading.at_sites(modes)
        if self._aim is None:
            best = self.reading.best(sites)
            assert best is not None, "nothing starts that cannot be served"
        else:
            names = {(self.reading.instance.sites[s].id, str(mode.dataset)) for s in sites for mode in sites[s]}
            best = {key: self._aim.get(key, 0.0) for key in names}
            # What is there already stays if it is still wanted, and no more of it than is.
            best |= {key: min(part, self._aim.get(key, 0.0)) for key, part in self._now.items() if key not in names}
        self._become({key: part for key, part in best.items() if part > 0}, now_s)

    def _become(self, cached: dict[tuple[str, str], float], now_s: float) -> None:
        for key in sorted(self._now):
            if cached.get(key) != self._now[key]:
                part, since_s = self._now.pop(key), self._since_s.pop(key)
                if since_s < now_s:
                    self.caches.append(
                        Caching(site=key[0], dataset=key[1], fraction=part, since_s=since_s, until_s=now_s)
                    )
        for key, part in cached.items():
            if key not in self._now:
                self._now[key], self._since_s[key] = part, now_s

    def close(self, now_s: float) -> None:
        """The end: all caches are emptied."""
        self._become({}, now_s)
