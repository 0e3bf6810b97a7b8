"""CBA as the knapsack problem that it is where datasets are cached wholly, or caches are of finite speed.

What a set of whole datasets costs depends on its GB and on the MB/s that it serves alone. So, dataset by dataset, only
sets that no other one beats in both are kept (Nemhauser and Ullmann, 1969), whatever the shape of the concave
tariff; and of those only the ones from which, by a Lagrangian bound on the datasets that are left, something cheaper
than what is known can still come. One dataset may be left open in each set: it is cached in part in the end, as much as
the cache holds or as little as the bandwidth sold allows (`cba` says why one is enough, and why at one of these ends).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from models.storage.problem import CacheProblem

CLOSED = -1
MOST_SETS, LEAST_SETS, MOST_KEPT = 5000, 1000, 1_000_000
"""Kept of a step at most, even where datasets are many, and of all steps together otherwise."""


@dataclass(eq=False)
class _Sets:
    """Sets of datasets, by what counts of them; all arrays of shape (k,)."""

    gb: np.ndarray
    served: np.ndarray
    open: np.ndarray
    """Position of the dataset that is cached in part; CLOSED where none is."""
    parent: np.ndarray
    """Index of the set of the step before that it came from."""
    taken: np.ndarray
    """Whether the dataset of this step is in it."""

    def only(self, keep: np.ndarray) -> _Sets:
        return _Sets(self.gb[keep], self.served[keep], self.open[keep], self.parent[keep], self.taken[keep])


@dataclass(eq=False)
class Knapsack:
    """The datasets in their order, the limits, and prices on them under which a bound is good."""

    problem: CacheProblem
    sizes: np.ndarray
    served: np.ndarray
    parts: bool
    """Whether one dataset may be cached in part."""
    constant: np.ndarray
    """By line of the tariff, as the next two: the bound of the set with nothing in it and nothing left to add."""
    gb_price: np.ndarray
    served_price: np.ndarray
    rest: np.ndarray
    """[k, i]: what the datasets from position i on can add to the bound of line k at least, shape (K, n + 1)."""
    alone: np.ndarray
    """[k, i]: what dataset i alone can, shape (K, n)."""

    @classmethod
    def of(cls, problem: CacheProblem, *, parts: bool) -> Knapsack:
        """With the prices of the fractional knapsack of each line."""
        sizes, served = problem.sizes[problem.order], problem.served[problem.order]
        lines = problem.tariff.lines or ((0.0, 0.0),)
        cap = problem.tariff.cap
        all_read = problem.direct + math.fsum(served)
        constant, gb_price, served_price = [], [], []
        for alpha, beta in lines:
            mu, nu = _prices(problem, sizes, served, beta)
            limits = (mu * problem.cache_capacity if mu else 0.0) + (nu * cap if nu else 0.0)
            constant.append(alpha + (beta + nu) * all_read - limits)
            gb_price.append(problem.cache_price + mu)
            served_price.append(beta + nu)
        alone = np.minimum(0.0, np.outer(gb_price, sizes) - np.outer(served_price, served))
        tails = np.cumsum(alone[:, ::-1], axis=1)[:, ::-1]
        rest = np.concatenate([tails, np.zeros((len(lines), 1))], axis=1)
        return cls(
            problem, sizes, served, parts, np.array(constant), np.array(gb_price), np.array(served_price), rest, alone
        )

    def search(self, known: float) -> tuple[list[np.ndarray], float]:
        """Fractions of sets that may be cheaper than `known`, shape (n,) each, and a bound on the cost of all sets.

        A set that is allowed makes what is known cheaper on the way, so that fewer are kept. Where too many would
        be, those with the lowest bounds are, and the bound is that of the others; else it is infinite, as all
        sets were looked at, and the cheapest of those found and known is optimal.
        """
        steps = [_Sets(np.zeros(1), np.zeros(1), np.full(1, CLOSED), np.zeros(1, dtype=int), np.zeros(1, dtype=bool))]
        lost, most = math.inf, min(MOST_SETS, max(LEAST_SETS, MOST_KEPT // max(1, len(self.sizes))))
        for i in range(len(self.sizes)):
            known = min(known, self._cheapest_closed(steps[-1]))
            sets = self._undominated(self._promising(self._grown(steps[-1], i), i + 1, known))
            if len(sets.gb) > most:
                bounds = self._bounds(sets, i + 1)
                kept = np.argsort(bounds, kind="stable")
                lost = min(lost, float(bounds[kept[most]]))
                sets = sets.only(np.sort(kept[:most]))
            steps.append(sets)
        return [cached for index in range(len(steps[-1].gb)) for cached in self._fractions(steps, index)], lost

    def _grown(self, sets: _Sets, i: int) -> _Sets:
        """Each set without dataset i, with it, and with it left open."""
        indices = np.arange(len(sets.gb))
        with_it = indices[np.asarray(self.problem.fits(sets.gb + self.sizes[i]))]
        left_open = indices[sets.open == CLOSED] if self.parts else indices[:0]
        source = np.concatenate([indices, with_it, left_open])
        taken = np.zeros(len(source), dtype=bool)
        taken[len(indices) : len(indices) + len(with_it)] = True
        is_open = np.zeros(len(source), dtype=bool)
        is_open[len(indices) + len(with_it) :] = True
        return _Sets(
            sets.gb[source] + np.where(taken, self.sizes[i], 0.0),
            sets.served[source] + np.where(taken, self.served[i], 0.0),
            np.where(is_open, i, sets.open[source]),
            source,
            taken,
        )

    def _bounds(self, sets: _Sets, i: int) -> np.ndarray:
        """What each set comes to at least, the first i datasets decided, shape (k,)."""
        part = np.where(sets.open == CLOSED, 0.0, self.alone[:, sets.open])
        prices = np.outer(self.gb_price, sets.gb) - np.outer(self.served_price, sets.served)
        return np.asarray(np.min(self.constant[:, None] + prices + part + self.rest[:, i : i + 1], axis=0))

    def _promising(self, sets: _Sets, i: int, known: float) -> _Sets:
        """Those that may come to less than what is known."""
        if math.isinf(known):
            return sets
        return sets.only(self._bounds(sets, i) <= known * (1 + 1e-12))

    def _undominated(self, sets: _Sets) -> _Sets:
        """Without sets that serve no more than one of no more GB with the same dataset open."""
        by = np.lexsort((-sets.served, sets.gb, sets.open))
        rank = np.unique(sets.served, return_inverse=True)[1][by] + (sets.open[by] + 1) * (len(by) + 1)
        keep = np.ones(len(by), dtype=bool)
        keep[1:] = rank[1:] > np.maximum.accumulate(rank)[:-1]
        return sets.only(np.sort(by[keep]))

    def _cheapest_closed(self, sets: _Sets) -> float:
        """Cost of the cheapest of the sets with nothing open, nothing added."""
        problem = self.problem
        left = problem.direct + math.fsum(self.served) - sets.served
        allowed = (sets.open == CLOSED) & np.asarray(problem.is_sold(left)) & np.asarray(problem.fits(sets.gb))
        costs = problem.cache_price * sets.gb + problem.tariff.price(np.maximum(left, 0.0))
        return float(costs[allowed].min(initial=math.inf))

    def _fractions(self, steps: list[_Sets], index: int) -> Iterator[np.ndarray]:
        """A set as fractions of the problem's datasets; of an open one, both ends where they are allowed."""
        problem, last = self.problem, steps[-1]
        cached = np.zeros(len(problem.sizes))
        at = index
        for i in range(len(self.sizes) - 1, -1, -1):
            cached[problem.order[i]] = float(steps[i + 1].taken[at])
            at = int(steps[i + 1].parent[at])
        position = int(last.open[index])
        if position == CLOSED:
            if problem.is_sold(problem.need(cached)):
                yield cached
            return
        d = int(problem.order[position])
        most = min(1.0, (problem.cache_capacity - float(last.gb[index])) / self.sizes[position])
        for part in (most, problem.least_part(cached, d)):
            if 0 < part <= most:
                cached[d] = part
                if problem.is_sold(problem.need(cached)):
                    yield cached.copy()


def _prices(problem: CacheProblem, sizes: np.ndarray, served: np.ndarray, beta: float) -> tuple[float, float]:
    """Prices on a GB of the cache and on a MB/s of the bandwidth sold: the duals of the fractional knapsack where a
    MB/s costs beta. One of them is 0: both limits are met by a prefix of the order."""
    filled = np.cumsum(sizes)
    critical = int(np.searchsorted(filled, problem.cache_capacity, side="right"))
    if critical < len(sizes):
        mu = beta * served[critical] / sizes[critical] - problem.cache_price
        if mu > 0:
            return float(mu), 0.0
    must_serve = problem.direct + math.fsum(served) - problem.tariff.cap
    if must_serve > 0:
        critical = min(int(np.searchsorted(np.cumsum(served), must_serve)), len(sizes) - 1)
        nu = problem.cache_price * sizes[critical] / served[critical] - beta if critical >= 0 else 0.0
        if nu > 0:
            return 0.0, float(nu)
    return 0.0, 0.0
