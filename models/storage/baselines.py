"""What else one could cache and buy: the usual rules, each to be compared with the optimum of `cba`.

Each gives fractions to cache; the bandwidth is what they leave to be read. A rule that does not look at the bandwidth
that is sold, or at what links carry, may need more than there is: it has no plan then. Where datasets are to be cached
wholly or not at all each rule does so too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import numpy as np

from models.storage.problem import ROUNDING, Allocation, CacheProblem
from models.storage.reading import is_served

Rule = Callable[[CacheProblem, bool], np.ndarray]
"""From a problem, and whether only whole datasets are cached, to fractions of shape (n,)."""


def all_bandwidth(problem: CacheProblem, _whole: bool) -> np.ndarray:
    """Nothing is cached."""
    return np.zeros(len(problem.sizes))


def all_cache(problem: CacheProblem, whole: bool) -> np.ndarray:
    """Everything that is read is cached; where not all of it fits the same part of each dataset, or whole ones as they
    are listed."""
    if whole:
        return _filled(problem, np.flatnonzero(problem.served > 0), whole)
    is_served = problem.served > 0
    gb = math.fsum(problem.sizes[is_served])
    part = 1.0 if gb <= problem.cache_capacity else problem.cache_capacity / gb
    return np.where(is_served, part, 0.0)


def uniform(problem: CacheProblem, whole: bool) -> np.ndarray:
    """The cache is shared out equally: each dataset has as many GB of it, or all of itself; whole ones only where all
    of it is no more than that."""
    is_served = problem.served > 0
    each = problem.cache_capacity / max(1, int(is_served.sum()))
    parts = np.where(is_served, np.minimum(1.0, each / problem.sizes), 0.0)
    return np.floor(parts + ROUNDING) if whole else parts


def greedy_pool(problem: CacheProblem, whole: bool) -> np.ndarray:
    """The cache is a pool to be filled, whatever it costs: the datasets read most per GB first."""
    return _filled(problem, problem.by_density, whole)


def largest_beneficiary(problem: CacheProblem, whole: bool) -> np.ndarray:
    """The same, those read most first, whatever their size."""
    order = np.argsort(-problem.served, kind="stable")
    return _filled(problem, [d for d in order if problem.served[d] > 0], whole)


def threshold_by_job(problem: CacheProblem, whole: bool) -> np.ndarray:
    """A dataset is cached if it pays for one of its readers alone: its cache, and its copy's way there, cost less than
    the reader's bandwidth at the average price and its way across."""
    price, speed = _average_price(problem), problem.cache_speed
    saved = [
        max((price * f + money for f, money in zip(rates, paid, strict=True) if is_served(f, speed)), default=0.0)
        for rates, paid in zip(problem.readers, problem.read_across, strict=True)
    ]
    costs = problem.cache_price * problem.sizes + problem.copying
    return _filled(problem, [d for d in problem.by_density if costs[d] < saved[d]], whole)


def threshold_shared(problem: CacheProblem, whole: bool) -> np.ndarray:
    """A dataset is cached if it pays for all of its readers together, at the average price."""
    price = _average_price(problem)
    return _filled(problem, [d for d in problem.by_density if problem.costs[d] < price * problem.served[d]], whole)


BASELINES: dict[str, Rule] = {
    "all_bandwidth": all_bandwidth,
    "all_cache": all_cache,
    "uniform": uniform,
    "greedy_pool": greedy_pool,
    "largest_beneficiary": largest_beneficiary,
    "threshold_by_job": threshold_by_job,
    "threshold_shared": threshold_shared,
}


def baseline(problem: CacheProblem, name: str, *, whole: bool = False) -> Allocation | None:
    """What a rule comes to, with `whole` datasets only; None where it needs more bandwidth than is sold, or than links
    carry."""
    allocation = problem.allocation(BASELINES[name](problem, whole))
    return allocation if problem.allows(allocation) else None


def _average_price(problem: CacheProblem) -> float:
    """Money per MB/s and hour, if all is read over the link."""
    everything = math.fsum(problem.demand)
    return float(problem.tariff.price(everything)) / everything if everything > 0 else 0.0


def _filled(problem: CacheProblem, order: Iterable[int], whole: bool) -> np.ndarray:
    """The cache with datasets in this order: each wholly, or as much of it as there is still room for; if whole, those
    passed over that do not fit."""
    cached = np.zeros(len(problem.sizes))
    room = problem.cache_capacity
    for d in order:
        part = min(1.0, room / problem.sizes[d])
        cached[d] = math.floor(part + ROUNDING) if whole else part
        room = max(0.0, room - cached[d] * problem.sizes[d])
    return cached
