"""CBA where datasets have prices of their own, or links limits: linear programmes, solved by HiGHS.

The least of several lines is the least of what each comes to by itself, so one programme a line is exact; with whole
datasets the fractions are integers. A power law is followed by chords: the chord of a stretch is no dearer than it, and
the stretch with the least bound is cut where the programme buys, until nothing cheaper than the best allocation found
is left. In a programme the need falls in proportion to what is cached. Beside a cache of finite speed it falls less at
first: then what is found for parts of datasets is a bound, and the allocation need not reach it.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
from scipy.optimize import linprog

from models.storage.problem import ROUNDING, Allocation, CacheProblem
from models.storage.transfers import Crossed

MOST_PROGRAMMES, MOST_NODES = 500, 20_000
"""Solved of a power law at most, and looked at by the solver in each with whole datasets."""
TOLERANCE = 1e-6
"""Part of a cost that the solver leaves open."""
_SCALE = 1e3
"""What costs come to in a programme, so that the solver's absolute tolerances are small beside them."""
_OPTIONS = {
    "primal_feasibility_tolerance": 1e-10,
    "dual_feasibility_tolerance": 1e-10,
    "mip_rel_gap": 1e-9,
    "mip_max_nodes": MOST_NODES,
}


@dataclass(frozen=True)
class _Stretch:
    """alpha + beta B for bandwidths B from `low` to `high`, MB/s."""

    alpha: float
    beta: float
    low: float
    high: float


def cheapest_by_lines(problem: CacheProblem, *, whole: bool) -> tuple[list[Allocation], float]:
    """The cheapest allocations under each line, some of which rounding may not allow, and a bound on the cost of all.

    The bound is infinite where none is cheaper than the best of those found, but for the solver's tolerance.
    """
    everything = math.fsum(problem.demand)
    found: list[Allocation] = []
    queue: list[tuple[float, int, _Stretch, float]] = []
    number, best, lost = count(), math.inf, math.inf

    def solve(stretch: _Stretch) -> None:
        nonlocal best
        value, cached, mb_s = _solved(problem, stretch, whole)
        if cached is not None:
            found.append(problem.allocation(cached))
            best = min(best, found[-1].cost if problem.allows(found[-1]) else math.inf)
        if math.isfinite(value):
            heapq.heappush(queue, (value, next(number), stretch, mb_s))

    for stretch in _stretches(problem, min(problem.tariff.cap, everything)):
        solve(stretch)
    while queue and queue[0][0] < best * (1 - TOLERANCE):
        value, _, stretch, mb_s = heapq.heappop(queue)
        is_inside = stretch.low + ROUNDING * everything < mb_s < stretch.high - ROUNDING * everything
        if problem.tariff.power is None or not is_inside or next(number) > MOST_PROGRAMMES:
            lost = min(lost, value)
            continue
        solve(_chord(problem, stretch.low, mb_s))
        solve(_chord(problem, mb_s, stretch.high))
    return found, lost


def _stretches(problem: CacheProblem, most: float) -> list[_Stretch]:
    if problem.tariff.power is not None:
        return [_chord(problem, 0.0, most)]
    return [_Stretch(alpha, beta, 0.0, most) for alpha, beta in problem.tariff.lines or ((0.0, 0.0),)]


def _chord(problem: CacheProblem, low: float, high: float) -> _Stretch:
    first, last = (float(problem.tariff.price(mb_s)) for mb_s in (low, high))
    beta = (last - first) / (high - low) if high > low else 0.0
    return _Stretch(first - beta * low, beta, low, high)


def _solved(problem: CacheProblem, stretch: _Stretch, whole: bool) -> tuple[float, np.ndarray | None, float]:
    """A bound on the cost where the bandwidth has this price and is within the stretch, infinite where none is enough;
    the fractions that come to it, shape (n,), and the MB/s that they need; no fractions where none were found."""
    base, unit = _Base.of(problem, whole), max(math.fsum(problem.demand), 1e-300)
    # The bandwidth, as a part of all that is read, is the last variable.
    costs = np.append(problem.costs[base.datasets] * base.most, stretch.beta * unit)
    rows = np.column_stack([np.vstack([base.cache, base.links]), np.zeros(len(base.cache) + len(base.links))])
    rows = np.vstack([rows, np.append(-problem.served[base.datasets] * base.most / unit, -1.0)])
    limits = np.concatenate([base.cache_limit, base.link_limits, [-1.0]])
    top = (stretch.low / unit, stretch.high * (1 + ROUNDING / 2) / unit)
    size = _SCALE / max(float(np.abs(costs).sum()), 1e-300)
    answer = base.solved(costs * size, rows, limits, [top])
    if answer.status == 2:
        return math.inf, None, 0.0
    value = answer.mip_dual_bound if whole and len(base.datasets) else answer.fun
    constant = stretch.alpha + problem.always_crossing + math.fsum(problem.crossing)
    value = -math.inf if value is None else constant + float(value) / size
    if answer.x is None:
        return value, None, 0.0
    return value, base.fractions(answer.x), float(answer.x[-1]) * unit


def least_excess(problem: CacheProblem, *, whole: bool) -> np.ndarray:
    """By how many MB/s the bandwidth sold and the limit of each link would have to be higher, in all at least, shape
    (1 + number of links,); 0 where they suffice if the need falls in proportion to what is cached."""
    base, unit = _Base.of(problem, whole), max(math.fsum(problem.demand), 1e-300)
    sold = -problem.served[base.datasets] * base.most / unit
    cap = min(problem.tariff.cap, unit) * (1 + ROUNDING / 2) / unit - 1.0
    # A row counts MB/s as part of what it limits, the excess as part of all that is read.
    scale = unit / np.array([unit, *(max(_read_across(problem, link), 1e-300) for link in problem.links)])
    rows = np.column_stack([np.vstack([sold, base.links]), np.diag(-scale)])
    rows = np.vstack([rows, np.column_stack([base.cache, np.zeros((len(base.cache), len(scale)))])])
    limits = np.concatenate([[cap], base.link_limits, base.cache_limit])
    costs = np.append(np.zeros(len(base.datasets)), np.full(len(scale), _SCALE))
    answer = base.solved(costs, rows, limits, [(0.0, None)] * len(scale))
    return np.zeros(len(scale)) if answer.x is None else np.asarray(answer.x[len(base.datasets) :] * unit)


def _read_across(problem: CacheProblem, link: Crossed) -> float:
    return math.fsum(problem.demand[list(link.datasets)])


@dataclass(frozen=True, eq=False)
class _Base:
    """What all programmes of a problem have in common. Variables are fractions of the most of each dataset that the
    cache holds, then those of one programme."""

    problem: CacheProblem
    whole: bool
    datasets: np.ndarray
    """Those of which something can be cached, shape (m,)."""
    most: np.ndarray
    """Fraction of each that the cache holds, shape (m,)."""
    cache: np.ndarray
    """Row of the cache's capacity, if it has one; shape (0 or 1, m)."""
    cache_limit: np.ndarray
    links: np.ndarray
    """What is read across each link, as part of what would be if nothing were cached, shape (links, m)."""
    link_limits: np.ndarray

    @classmethod
    def of(cls, problem: CacheProblem, whole: bool) -> _Base:
        """Limits are as much wider as rounding allows, so that what meets them is within them."""
        wider, capacity = 1 + ROUNDING / 2, problem.cache_capacity
        most = np.minimum(1.0, capacity / problem.sizes[problem.order])
        most = np.floor(most + ROUNDING / 2) if whole else np.where(most > ROUNDING, most, 0.0)
        datasets, most = problem.order[most > 0], most[most > 0]
        is_limited = math.isfinite(capacity) and len(datasets) > 0
        cache = problem.sizes[datasets] * most / (capacity if is_limited else 1.0)
        links = np.zeros((len(problem.links), len(datasets)))
        limits = np.zeros(len(problem.links))
        for k, link in enumerate(problem.links):
            read = max(_read_across(problem, link), 1e-300)
            links[k] = np.where(np.isin(datasets, link.datasets), -problem.served[datasets] * most / read, 0.0)
            limits[k] = min(link.mb_s, 2 * read) * wider / read - 1.0
        return cls(
            problem,
            whole,
            datasets,
            most,
            cache[None][: int(is_limited)],
            np.full(int(is_limited), wider),
            links,
            limits,
        )

    def solved(
        self, costs: np.ndarray, rows: np.ndarray, limits: np.ndarray, bounds: list[tuple[float, float | None]]
    ) -> Any:
        """scipy's answer; the bounds are those of the variables that come after the fractions."""
        m = len(self.datasets)
        integrality = np.append(np.full(m, int(self.whole)), np.zeros(len(bounds)))
        return linprog(
            costs, rows, limits, bounds=[*[(0.0, 1.0)] * m, *bounds], integrality=integrality, options=_OPTIONS
        )

    def fractions(self, values: np.ndarray) -> np.ndarray:
        """Of all datasets, without what the solver's tolerance leaves of 0 and 1; shape (n,)."""
        parts = np.clip(values[: len(self.datasets)], 0.0, 1.0) * self.most
        near = np.round(parts)
        cached = np.zeros(len(self.problem.sizes))
        cached[self.datasets] = near if self.whole else np.where(np.abs(parts - near) < ROUNDING / 10, near, parts)
        return cached
