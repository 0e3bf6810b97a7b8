"""What else one could cache and buy: the usual rules, each to be compared with the optimum of `cba`.

Each gives fractions to cache; the bandwidth is what they leave to be read. A rule that does not look at the bandwidth
that is sold may need more than there is: it has no plan then.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import numpy as np

from models.storage.cba import Allocation, CacheProblem
from models.storage.reading import is_served


def all_bandwidth(problem: CacheProblem) -> np.ndarray:
    """Nothing is cached."""
    return np.zeros(len(problem.sizes))


def all_cache(problem: CacheProblem) -> np.ndarray:
    """Everything that is read is cached; the same part of each dataset where not all of it fits."""
    is_served = problem.served > 0
    gb = math.fsum(problem.sizes[is_served])
    part = 1.0 if gb <= problem.cache_capacity else problem.cache_capacity / gb
    return np.where(is_served, part, 0.0)


def uniform(problem: CacheProblem) -> np.ndarray:
    """The cache is shared out equally: each dataset has as many GB of it, or all of itself."""
    is_served = problem.served > 0
    each = problem.cache_capacity / max(1, int(is_served.sum()))
    return np.where(is_served, np.minimum(1.0, each / problem.sizes), 0.0)


def greedy_pool(problem: CacheProblem) -> np.ndarray:
    """The cache is a pool to be filled, whatever it costs: the datasets read most per GB first."""
    return _filled(problem, problem.order)


def largest_beneficiary(problem: CacheProblem) -> np.ndarray:
    """The same, those read most first, whatever their size."""
    order = np.argsort(-problem.served, kind="stable")
    return _filled(problem, [d for d in order if problem.served[d] > 0])


def threshold_by_job(problem: CacheProblem) -> np.ndarray:
    """A dataset is cached if it pays for one of its readers alone: its cache costs less than the reader's bandwidth at
    the average price."""
    price = _average_price(problem)
    fastest = [max((f for f in rates if is_served(f, problem.cache_speed)), default=0.0) for rates in problem.readers]
    return _filled(problem, [d for d in problem.order if _pays(problem, d, price, fastest[d])])


def threshold_shared(problem: CacheProblem) -> np.ndarray:
    """A dataset is cached if it pays for all of its readers together, at the average price."""
    price = _average_price(problem)
    return _filled(problem, [d for d in problem.order if _pays(problem, d, price, problem.served[d])])


BASELINES: dict[str, Callable[[CacheProblem], np.ndarray]] = {
    "all_bandwidth": all_bandwidth,
    "all_cache": all_cache,
    "uniform": uniform,
    "greedy_pool": greedy_pool,
    "largest_beneficiary": largest_beneficiary,
    "threshold_by_job": threshold_by_job,
    "threshold_shared": threshold_shared,
}


def baseline(problem: CacheProblem, name: str) -> Allocation | None:
    """What a rule comes to; None where it needs more bandwidth than is sold."""
    allocation = problem.allocation(BASELINES[name](problem))
    return allocation if problem.allows(allocation) else None


def _average_price(problem: CacheProblem) -> float:
    """Money per MB/s and hour, if all is read over the link."""
    everything = math.fsum(problem.demand)
    return float(problem.tariff.price(everything)) / everything if everything > 0 else 0.0


def _pays(problem: CacheProblem, d: int, price: float, served: float) -> bool:
    return bool(problem.cache_price * problem.sizes[d] < price * served)


def _filled(problem: CacheProblem, order: Iterable[int]) -> np.ndarray:
    """The cache with datasets in this order: each wholly, or as much of it as there is still room for."""
    cached = np.zeros(len(problem.sizes))
    room = problem.cache_capacity
    for d in order:
        cached[d] = min(1.0, room / problem.sizes[d])
        room = max(0.0, room - cached[d] * problem.sizes[d])
    return cached
