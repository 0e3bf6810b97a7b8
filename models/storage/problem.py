"""The caching problem of a site, and what an allocation of cache and bandwidth comes to; `cba` solves it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from models.storage.reading import is_served, link_rate
from models.storage.tariff import Tariff
from models.storage.transfers import Crossed, Transfers

ROUNDING = 1e-9
"""Part of a capacity by which it may be exceeded, and of all that is read that counts as nothing."""


@dataclass(frozen=True, eq=False)
class CacheProblem:
    """Datasets with their readers at one site. Money is per hour."""

    sizes: np.ndarray
    """GB of each dataset, shape (n,), positive."""
    readers: tuple[tuple[float, ...], ...]
    """MB/s of each reader of each dataset."""
    tariff: Tariff
    cache_price: float = 0.0
    """Money per GB and hour."""
    cache_capacity: float = math.inf
    """GB."""
    cache_speed: float = math.inf
    """MB/s that one reader gets from the cache at most."""
    transfers: Transfers | None = None
    """What crosses from elsewhere; None where it costs nothing and is not limited."""

    def __post_init__(self) -> None:
        if len(self.sizes) != len(self.readers):
            raise ValueError("one list of readers for each dataset")
        if (np.asarray(self.sizes) <= 0).any():
            raise ValueError("a dataset without a size")
        if self.transfers is not None and [len(money) for money in self.transfers.read] != [*map(len, self.readers)]:
            raise ValueError("one price of reading for each reader")

    @cached_property
    def demand(self) -> np.ndarray:
        """MB/s that the readers of each dataset read together, shape (n,)."""
        return np.array([math.fsum(rates) for rates in self.readers], dtype=float)

    @cached_property
    def served(self) -> np.ndarray:
        """The part of `demand` that a cache can serve: that of readers slower than it, shape (n,)."""
        return self._of_served(self.readers)

    def _of_served(self, amounts: tuple[tuple[float, ...], ...]) -> np.ndarray:
        """Sum of the amounts of the readers of each dataset that a cache can serve, shape (n,)."""
        groups = [zip(*pair, strict=True) for pair in zip(amounts, self.readers, strict=True)]
        return np.array([math.fsum(a for a, f in g if is_served(f, self.cache_speed)) for g in groups], dtype=float)

    @cached_property
    def copying(self) -> np.ndarray:
        """Money per hour for bringing all of each dataset into the cache, shape (n,)."""
        return np.zeros(len(self.sizes)) if self.transfers is None else np.asarray(self.transfers.staged, dtype=float)

    @cached_property
    def read_across(self) -> tuple[tuple[float, ...], ...]:
        """Money per hour for what each reader of each dataset reads across a link if nothing is cached."""
        return tuple((0.0,) * len(rates) for rates in self.readers) if self.transfers is None else self.transfers.read

    @cached_property
    def crossing(self) -> np.ndarray:
        """The same for the readers of each dataset in `served` together, shape (n,)."""
        return self._of_served(self.read_across)

    @cached_property
    def always_crossing(self) -> float:
        """And for all that read past the cache."""
        return max(0.0, math.fsum(map(math.fsum, self.read_across)) - math.fsum(self.crossing))

    @cached_property
    def costs(self) -> np.ndarray:
        """Money per hour for caching all of each dataset: price[d] size[d], shape (n,)."""
        return self.cache_price * self.sizes + self.copying - self.crossing

    @cached_property
    def links(self) -> tuple[Crossed, ...]:
        """Links that carry only so much."""
        return () if self.transfers is None else self.transfers.links

    @cached_property
    def direct(self) -> float:
        """MB/s that have to be read over the link whatever is cached."""
        return max(0.0, math.fsum(self.demand) - math.fsum(self.served))

    @cached_property
    def by_density(self) -> np.ndarray:
        """Datasets that a cache can serve, by `served` / size, the highest first."""
        density = self.served / self.sizes
        return np.array([d for d in np.argsort(-density, kind="stable") if self.served[d] > 0], dtype=int)

    @cached_property
    def order(self) -> np.ndarray:
        """The same by `served` / `costs`: first those that cost nothing or less, the cheapest of equals."""
        if self.transfers is None:
            return self.by_density
        served, costs = self.served[self.by_density], self.costs[self.by_density]
        with np.errstate(over="ignore"):  # next to nothing counts as nothing
            worth = np.divide(served, costs, out=np.full(len(costs), np.inf), where=costs > 0)
        return self.by_density[np.lexsort((costs, -worth))]

    @cached_property
    def _flat(self) -> tuple[np.ndarray, np.ndarray]:
        """Rate and dataset of each reader that the cache can serve."""
        speed = self.cache_speed
        pairs = [(f, d) for d, rates in enumerate(self.readers) for f in rates if f > 0 and is_served(f, speed)]
        return np.array([f for f, _ in pairs], dtype=float), np.array([d for _, d in pairs], dtype=int)

    def need(self, cached: np.ndarray) -> float:
        """MB/s over the link with these fractions cached, shape (n,)."""
        rates, dataset = self._flat
        h = np.asarray(cached, dtype=float)[dataset]
        return float(self.bandwidth(self.direct + math.fsum(link_rate(rates, h, self.cache_speed))))

    def bandwidth(self, mb_s: np.ndarray | float) -> np.ndarray:
        """The same without what rounding has left of nothing, for which a fixed price would be paid."""
        return np.where(mb_s > ROUNDING * math.fsum(self.demand), mb_s, 0.0)

    def allocation(self, cached: np.ndarray) -> Allocation:
        """What these fractions cost; the bandwidth is what they leave to be read."""
        part = np.asarray(cached, dtype=float)
        gb, mb_s = float(self.sizes @ part), self.need(part)
        crossing = self.always_crossing + float(self.copying @ part + self.crossing @ (1 - part))
        return Allocation(part, gb, mb_s, self.cache_price * gb, float(self.tariff.price(mb_s)), crossing)

    def allows(self, allocation: Allocation) -> bool:
        """Whether the cache holds so much, so much bandwidth is sold, and links carry what crosses."""
        return bool(
            self.fits(allocation.cached_gb)
            and self.is_sold(allocation.bandwidth_mb_s)
            and all(self.crosses(link, allocation.cached) <= link.mb_s * (1 + ROUNDING) for link in self.links)
        )

    def crosses(self, link: Crossed, cached: np.ndarray) -> float:
        """MB/s that are read across a link with these fractions cached, shape (n,)."""
        rates, dataset = self._flat
        past = math.fsum((self.demand - self.served)[list(link.datasets)])
        over = link_rate(rates, np.asarray(cached, dtype=float)[dataset], self.cache_speed)
        return past + math.fsum(over[np.isin(dataset, link.datasets)])

    def least_part(self, cached: np.ndarray, d: int) -> float:
        """The least part of dataset d, the others as they are, with which the bandwidth sold suffices; infinite
        where none does."""
        tried = cached.copy()

        def suffices(part: float) -> bool:
            tried[d] = part
            return self.need(tried) <= self.tariff.cap

        if not suffices(1.0):
            return math.inf
        low, high = 0.0, 1.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (low, middle) if suffices(middle) else (middle, high)
        return 1.0 if high > 1 - ROUNDING else high

    def fits(self, gb: np.ndarray | float) -> np.ndarray | bool:
        """Whether the cache holds so much."""
        return gb <= self.cache_capacity * (1 + ROUNDING)

    def is_sold(self, mb_s: np.ndarray | float) -> np.ndarray | bool:
        """Whether so much bandwidth is sold."""
        return mb_s <= self.tariff.cap * (1 + ROUNDING)


@dataclass(frozen=True, eq=False)
class Allocation:
    """What is cached and bought. Money is per hour."""

    cached: np.ndarray
    """Fraction of each dataset, shape (n,)."""
    cached_gb: float
    bandwidth_mb_s: float
    cache_cost: float
    bandwidth_cost: float
    transfer_cost: float = 0.0

    @property
    def cost(self) -> float:
        """Cache, bandwidth and transfers together."""
        return self.cache_cost + self.bandwidth_cost + self.transfer_cost
