"""CBA: which datasets to cache and how much bandwidth to buy, so that no job waits for its data, at the lowest cost.

Jobs at given GPU counts read at fixed rates, all at once and for ever (steady state). Every epoch reads each item once
in a new order, so a cached fraction h of a dataset is the hit ratio of its readers. With F[d] the rate at which all
readers of dataset d read together:

    minimise  cache_price sum over d: size[d] h[d]  +  P(sum over d: need[d](h[d]))
    with      sum over d: size[d] h[d] <= cache_capacity,  sum over d: need[d](h[d]) <= cap of the tariff,  0 <= h <= 1

    need[d](h) = F[d] (1 - h), or where a reader gets no more than M from the cache
    need[d](h) = sum over its readers of f (1 - h) / (1 - h f / M); readers with f >= M read past the cache

P is concave and does not fall, need is concave and does not rise. Hence:

- Without the limits an optimum caches whole datasets: the first few in the order of F[d] / size[d], the most first
  (`curve`: all of them are tried, as their cost has several local minima). For P = min_k (alpha_k + beta_k B) the
  same is min_k (alpha_k + sum over d: min(cache_price size[d], beta_k F[d])) (`closed_form`).
- Under the limits at most one dataset is cached in part: of two, what one gains at equal GB the other loses, and the
  need, concave in this, is no more at one of the ends. With M infinite it is the next one in the order, as only
  the GB and the MB/s in all matter, and the first in the order save the most MB/s with any GB.
- Otherwise (a finite M under limits, or whole datasets only) it is a knapsack problem, solved exactly in `subsets`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from models.errors import Clash, Infeasible, NoPlan
from models.storage.reading import is_served, link_rate
from models.storage.subsets import Knapsack
from models.storage.tariff import Tariff

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

    def __post_init__(self) -> None:
        if len(self.sizes) != len(self.readers):
            raise ValueError("one list of readers for each dataset")
        if (np.asarray(self.sizes) <= 0).any():
            raise ValueError("a dataset without a size")

    @cached_property
    def demand(self) -> np.ndarray:
        """MB/s that the readers of each dataset read together, shape (n,)."""
        return np.array([math.fsum(rates) for rates in self.readers], dtype=float)

    @cached_property
    def served(self) -> np.ndarray:
        """The part of `demand` that a cache can serve: that of readers slower than it, shape (n,)."""
        speed = self.cache_speed
        return np.array([math.fsum(f for f in rates if is_served(f, speed)) for rates in self.readers], dtype=float)

    @cached_property
    def direct(self) -> float:
        """MB/s that have to be read over the link whatever is cached."""
        return max(0.0, math.fsum(self.demand) - math.fsum(self.served))

    @cached_property
    def order(self) -> np.ndarray:
        """Datasets that a cache can serve, by `served` / size, the highest first."""
        density = self.served / self.sizes
        return np.array([d for d in np.argsort(-density, kind="stable") if self.served[d] > 0], dtype=int)

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
        gb, mb_s = float(self.sizes @ cached), self.need(cached)
        return Allocation(
            np.asarray(cached, dtype=float), gb, mb_s, self.cache_price * gb, float(self.tariff.price(mb_s))
        )

    def allows(self, allocation: Allocation) -> bool:
        """Whether the cache holds so much, and so much bandwidth is sold."""
        return bool(self.fits(allocation.cached_gb) and self.is_sold(allocation.bandwidth_mb_s))

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

    @property
    def cost(self) -> float:
        """Cache and bandwidth together."""
        return self.cache_cost + self.bandwidth_cost


@dataclass(frozen=True, eq=False)
class Curve:
    """Nothing cached, the first dataset of the order, the first two, and so on, whether they fit or not; arrays of
    shape (number of datasets in the order + 1,). Money is per hour."""

    problem: CacheProblem
    cached_gb: np.ndarray
    bandwidth_mb_s: np.ndarray
    cache_cost: np.ndarray
    bandwidth_cost: np.ndarray

    @property
    def cost(self) -> np.ndarray:
        """Cache and bandwidth together."""
        return self.cache_cost + self.bandwidth_cost

    @cached_property
    def is_allowed(self) -> np.ndarray:
        """Where cache and bandwidth are within their limits."""
        return np.asarray(self.problem.fits(self.cached_gb) & self.problem.is_sold(self.bandwidth_mb_s))

    def cached(self, k: int) -> np.ndarray:
        """Fractions of prefix k, shape (n,)."""
        fractions = np.zeros(len(self.problem.sizes))
        fractions[self.problem.order[:k]] = 1.0
        return fractions


@dataclass(frozen=True)
class Optimum:
    """The best allocation found, and what no allocation can be cheaper than."""

    allocation: Allocation
    bound: float
    """Money per hour; the cost itself but for rounding, unless there were too many sets of datasets to look at."""

    @property
    def is_proven(self) -> bool:
        """Whether nothing is cheaper."""
        return self.allocation.cost <= self.bound * (1 + ROUNDING) + 1e-12


def curve(problem: CacheProblem) -> Curve:
    """All prefixes; without limits the cheapest of them is optimal."""
    order = problem.order
    gb = np.concatenate([[0.0], np.cumsum(problem.sizes[order])])
    # From the end, so that nothing is left where all is cached.
    left = problem.direct + np.concatenate([np.cumsum(problem.served[order][::-1])[::-1], [0.0]])
    mb_s = problem.bandwidth(left)
    return Curve(problem, gb, mb_s, problem.cache_price * gb, problem.tariff.price(mb_s))


def allocate(problem: CacheProblem, *, whole: bool = False) -> Optimum:
    """The cheapest caching and bandwidth; with `whole` no dataset is cached in part.

    Raises Infeasible where the bandwidth that is sold and the cache do not suffice, with what would; NoPlan where
    it was found for none of many sets of datasets that they do, and not proven either.
    """
    prefixes = curve(problem)
    cheapest = int(np.argmin(prefixes.cost))
    if prefixes.is_allowed[cheapest]:
        best = problem.allocation(prefixes.cached(cheapest))
        return Optimum(best, best.cost)
    found = [] if whole else _at_the_limits(problem, prefixes)
    if prefixes.is_allowed.any():
        k = int(np.argmin(np.where(prefixes.is_allowed, prefixes.cost, np.inf)))
        found.append(problem.allocation(prefixes.cached(k)))
    lost = math.inf
    if math.isfinite(problem.cache_speed) or whole:
        knapsack = Knapsack.of(problem, parts=not whole)
        sets, lost = knapsack.search(min((allocation.cost for allocation in found), default=math.inf))
        found += [problem.allocation(cached) for cached in sets]
    if not found:
        found = [_of_least_bandwidth(problem, prefixes, whole, lost)]
    best = min(found, key=lambda allocation: (allocation.cost, allocation.cached_gb))
    return Optimum(best, max(float(prefixes.cost[cheapest]), min(lost, best.cost)))


def _of_least_bandwidth(problem: CacheProblem, prefixes: Curve, whole: bool, lost: float) -> Allocation:
    """The allocation that needs the least bandwidth, where nothing was found that needs little enough."""
    by_need = replace(problem, tariff=Tariff(((0.0, 1.0),)), cache_price=0.0)
    least = allocate(by_need, whole=whole)
    if problem.is_sold(least.allocation.bandwidth_mb_s):
        return problem.allocation(least.allocation.cached)
    if math.isfinite(lost) and problem.is_sold(least.bound):
        raise NoPlan("too many sets of datasets: none was found with which the bandwidth that is sold suffices")
    need, cap = least.bound, problem.tariff.cap
    reasons = [Clash("bandwidth sold", f"{need:g} MB/s instead of {cap:g}", way="more bandwidth")]
    enough = np.flatnonzero(problem.is_sold(prefixes.bandwidth_mb_s))
    if len(enough):
        gb = f"{prefixes.cached_gb[enough[0]]:g} GB instead of {problem.cache_capacity:g}"
        reasons.append(Clash("cache capacity", gb, way="more cache"))
    raise Infeasible(f"with the cache there is the readers need {need:g} MB/s, and {cap:g} MB/s are sold", reasons)


def _at_the_limits(problem: CacheProblem, prefixes: Curve) -> list[Allocation]:
    """Prefixes with a part of the next dataset: as much as the cache still holds, as little as the bandwidth sold asks
    for. Only one prefix comes into question for each."""
    found = []
    full = int(np.searchsorted(prefixes.cached_gb, problem.cache_capacity, side="right")) - 1
    short = int(np.argmax(problem.is_sold(prefixes.bandwidth_mb_s))) - 1
    for k in {full, short} & set(range(len(problem.order))):
        d = int(problem.order[k])
        cached = prefixes.cached(k)
        most = min(1.0, (problem.cache_capacity - float(prefixes.cached_gb[k])) / float(problem.sizes[d]))
        for part in (most, problem.least_part(cached, d)):
            if 0 < part <= most:
                cached[d] = part
                found.append(problem.allocation(cached.copy()))
    return [allocation for allocation in found if problem.allows(allocation)]


def closed_form(problem: CacheProblem) -> float:
    """The least cost an hour without limits on cache and bandwidth, for a tariff of lines.

    min over lines of alpha + beta direct + sum over d: min(cache_price size[d], beta served[d]), or all cached and
    nothing bought.
    """
    whole = problem.cache_price * problem.sizes
    costs = [
        alpha + beta * problem.direct + math.fsum(np.minimum(whole, beta * problem.served))
        for alpha, beta in problem.tariff.lines or ((0.0, 0.0),)
    ]
    if problem.bandwidth(problem.direct) == 0:
        costs.append(math.fsum(whole[problem.served > 0]))
    return min(costs)


@dataclass(frozen=True)
class Marginal:
    """What more of something would save an hour."""

    cache_gb: float
    """Of one more GB of cache capacity."""
    bandwidth_mb_s: float
    """Of one more MB/s that is sold."""
    price_of_mb_s: float
    """What the last MB/s bought costs an hour; 0 where none is."""


def marginal_values(problem: CacheProblem, best: Optimum, *, whole: bool = False) -> Marginal:
    """What one more GB of cache and one more MB/s of the cap would save an hour, each by solving again."""
    tariff = problem.tariff
    larger = replace(problem, cache_capacity=problem.cache_capacity + 1.0)
    wider = replace(problem, tariff=replace(tariff, cap=tariff.cap + 1.0))
    cost = best.allocation.cost
    mb_s = best.allocation.bandwidth_mb_s
    return Marginal(
        max(0.0, cost - allocate(larger, whole=whole).allocation.cost),
        max(0.0, cost - allocate(wider, whole=whole).allocation.cost),
        tariff.marginal(mb_s) if mb_s > 0 else 0.0,
    )
