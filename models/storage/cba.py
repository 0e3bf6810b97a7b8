"""CBA: which datasets to cache and how much bandwidth to buy, so that no job waits for its data, at the lowest cost.

Jobs at given GPU counts read at fixed rates, all at once and for ever (steady state). Every epoch reads each item once
in a new order, so a cached fraction h of a dataset is the hit ratio of its readers. With F[d] the rate at which all
readers of dataset d read together:

    minimise  sum over d: price[d] size[d] h[d]  +  P(sum over d: need[d](h[d]))
    with      sum over d: size[d] h[d] <= cache_capacity,  sum over d: need[d](h[d]) <= cap of the tariff,  0 <= h <= 1

    need[d](h) = F[d] (1 - h), or where a reader gets no more than M from the cache
    need[d](h) = sum over its readers of f (1 - h) / (1 - h f / M); readers with f >= M read past the cache

The price of a dataset is that of the cache. For one that is at home elsewhere it is more by its copy's way to the
site and less by what its readers then do not read across (so it may be negative), and the link from its home may
limit the sum of the need of all datasets from there (`transfers`).

P is concave and does not fall, need is concave and does not rise. Hence:

- Without the limits an optimum caches whole datasets: those with price[d] size[d] <= beta F[d], beta the slope of P at
  the optimum, so the first few in the order of F[d] / (price[d] size[d]), the most first (`curve`: all of them are
  tried, as their cost has several local minima). For P = min_k (alpha_k + beta_k B) the same is
  min_k (alpha_k + sum over d: min(price[d] size[d], beta_k F[d])) (`closed_form`).
- With one price, under the limits at most one dataset is cached in part: of two, what one gains at equal GB the other
  loses, and the need, concave in this, is no more at one of the ends. With M infinite it is the next one in the order,
  as only the GB and the MB/s in all matter, and the first in the order save the most MB/s with any GB. Otherwise (a
  finite M under limits, or whole datasets only) it is a knapsack problem, solved exactly in `subsets`.
- With several prices, or limits of links, it is a linear programme for each line of P, solved in `programme`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from models.errors import Clash, Infeasible, NoPlan
from models.storage.problem import ROUNDING, Allocation, CacheProblem
from models.storage.programme import cheapest_by_lines, least_excess
from models.storage.subsets import Knapsack
from models.storage.tariff import Tariff


@dataclass(frozen=True, eq=False)
class Curve:
    """Nothing cached, the first dataset of the order, the first two, and so on, whether they fit or not; arrays of
    shape (number of datasets in the order + 1,). Money is per hour."""

    problem: CacheProblem
    cached_gb: np.ndarray
    bandwidth_mb_s: np.ndarray
    cache_cost: np.ndarray
    bandwidth_cost: np.ndarray
    transfer_cost: np.ndarray

    @property
    def cost(self) -> np.ndarray:
        """Cache, bandwidth and transfers together."""
        return self.cache_cost + self.bandwidth_cost + self.transfer_cost

    @cached_property
    def is_allowed(self) -> np.ndarray:
        """Where cache, bandwidth and links are within their limits."""
        problem = self.problem
        allowed = np.asarray(problem.fits(self.cached_gb) & problem.is_sold(self.bandwidth_mb_s))
        for link in problem.links:
            mb_s = [problem.crosses(link, self.cached(k)) for k in range(len(allowed))]
            allowed &= np.array(mb_s) <= link.mb_s * (1 + ROUNDING)
        return allowed

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
    copied = np.concatenate([[0.0], np.cumsum(problem.copying[order])])
    crossing = problem.crossing.sum() - np.concatenate([[0.0], np.cumsum(problem.crossing[order])])
    transfers = problem.always_crossing + copied + np.maximum(0.0, crossing)
    return Curve(problem, gb, mb_s, problem.cache_price * gb, problem.tariff.price(mb_s), transfers)


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
    is_plain = problem.transfers is None
    found = _at_the_limits(problem, prefixes) if is_plain and not whole else []
    if prefixes.is_allowed.any():
        k = int(np.argmin(np.where(prefixes.is_allowed, prefixes.cost, np.inf)))
        found.append(problem.allocation(prefixes.cached(k)))
    lost = math.inf
    if not is_plain:
        tried, lost = cheapest_by_lines(problem, whole=whole)
        if math.isfinite(problem.cache_speed) and not whole:
            tried += cheapest_by_lines(problem, whole=True)[0]
        found += [allocation for allocation in tried if problem.allows(allocation)]
    elif math.isfinite(problem.cache_speed) or whole:
        knapsack = Knapsack.of(problem, parts=not whole)
        sets, lost = knapsack.search(min((allocation.cost for allocation in found), default=math.inf))
        found += [problem.allocation(cached) for cached in sets]
    if not found:
        found = [_of_least_bandwidth(problem, prefixes, whole, lost)]
    best = min(found, key=lambda allocation: (allocation.cost, allocation.cached_gb))
    return Optimum(best, max(float(prefixes.cost[cheapest]), min(lost, best.cost)))


def _of_least_bandwidth(problem: CacheProblem, prefixes: Curve, whole: bool, lost: float) -> Allocation:
    """The allocation that needs the least bandwidth, where nothing was found that needs little enough."""
    if problem.links:
        raise _too_little(problem, whole)
    by_need = replace(problem, tariff=Tariff(((0.0, 1.0),)), cache_price=0.0, transfers=None)
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


def _too_little(problem: CacheProblem, whole: bool) -> Exception:
    """What to raise where nothing was found that keeps to the limits of links and of the bandwidth sold: by how much
    they would have to be wider, in all at least."""
    excess = least_excess(problem, whole=whole)
    limits = [("bandwidth sold", problem.tariff.cap), *((f"link from {c.source}", c.mb_s) for c in problem.links)]
    reasons = [
        Clash(what, f"{limit + more:g} MB/s instead of {limit:g}", way="more bandwidth")
        for (what, limit), more in zip(limits, excess, strict=True)
        if more > ROUNDING * math.fsum(problem.demand)
    ]
    if not reasons:
        return NoPlan("no caching was found with which the bandwidth that is sold and the links suffice")
    said = " and ".join(map(str, reasons))
    return Infeasible(f"with the cache there is the readers need more than is sold and links carry: {said}", reasons)


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

    min over lines of alpha + beta direct + sum over d: min(price[d] size[d], beta served[d]), or all cached and
    nothing bought; and what crosses if nothing is cached.
    """
    costs = [
        alpha + beta * problem.direct + math.fsum(np.minimum(problem.costs, beta * problem.served))
        for alpha, beta in problem.tariff.lines or ((0.0, 0.0),)
    ]
    if problem.bandwidth(problem.direct) == 0:
        costs.append(math.fsum(problem.costs[problem.served > 0]))
    return problem.always_crossing + math.fsum(problem.crossing) + min(costs)


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
