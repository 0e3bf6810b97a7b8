"""What of each dataset is cached where: the choices, and the cheapest of them that fits the caches.

The jobs of a dataset are priced for each choice together, so a cache is paid once whoever reads it. Which choices fit
a cache together is a multiple-choice knapsack: solved by dynamic programming over sizes rounded down to a
thousandth of the cache, so what it says is a bound, and nearly always the truth.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from planner.engines.fast.compiled import compiled
from planner.engines.fast.table import Table

MOST_CHOICES = 64
UNITS = 1000

Choice = tuple[tuple[int, int], ...]
"""(site, level) of each copy of a dataset."""


@dataclass(frozen=True, eq=False)
class Cachable:
    """A dataset that can be cached, and the jobs that may read it."""

    dataset: int
    jobs: np.ndarray
    choices: tuple[Choice, ...]
    sizes: np.ndarray
    """GB of each choice at each site, shape (choices, S)."""
    costs: np.ndarray
    """Money for each choice."""


class Cachings:
    """All datasets that can be cached."""

    def __init__(self, table: Table):
        self.table = table
        rows, store = table.rows, table.storage
        sites: dict[int, dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
        for r in np.flatnonzero(rows.level > 0):
            sites[int(rows.dataset[r])][int(rows.site[r])].add(int(rows.level[r]))
        index = table.instance.dataset_index
        jobs: dict[int, set[int]] = defaultdict(set)
        for j, job in enumerate(table.instance.jobs):
            if job.dataset is not None:
                jobs[index[job.dataset]].add(j)
        self.free: list[int] = []
        """Jobs of datasets with too many choices: each of them may read at whatever level it likes, for nothing."""
        self.datasets: list[Cachable] = []
        for d in sorted(sites):
            options = [[None, *((s, level) for level in sorted(levels))] for s, levels in sorted(sites[d].items())]
            if int(np.prod([len(option) for option in options])) > MOST_CHOICES:
                self.free += sorted(jobs[d])
                continue
            choices = [tuple(pair for pair in choice if pair is not None) for choice in itertools.product(*options)]
            sizes = np.zeros((len(choices), len(store.hours)))
            costs = np.zeros(len(choices))
            for c, choice in enumerate(choices):
                for s, level in choice:
                    sizes[c, s] += store.cache_size[s, d, level]
                    costs[c] += store.cache_cost[s, d, level]
            self.datasets.append(Cachable(d, np.array(sorted(jobs[d]), dtype=np.int64), tuple(choices), sizes, costs))
        cached = {d for cachable in self.datasets for d in cachable.jobs.tolist()} | set(self.free)
        self.alone = np.array([j for j in range(table.num_jobs) if j not in cached], dtype=np.int64)
        self.sites = sorted({s for cachable in self.datasets for choice in cachable.choices for s, _ in choice})

    def best(
        self, values: list[np.ndarray], fixed: dict[int, int], prices: np.ndarray
    ) -> tuple[float, tuple[int, ...]]:
        """A lower bound on the sum of values over choices that fit the caches, and the choices that it makes.

        `values[k]` are those of the choices of dataset k, `fixed` the choices that are made already, `prices` those of
        a GB in the cache of each site.
        """
        if not values:
            return 0.0, ()
        open_values = [value if k not in fixed else _only(value, fixed[k]) for k, value in enumerate(values)]
        capacity = self.table.storage.cache_capacity
        capacity = np.where(np.isfinite(capacity), capacity, 0.0)
        priced = self._at(open_values, prices)
        chosen = tuple(int(np.argmin(value)) for value in priced)
        total = sum(float(value[c]) for value, c in zip(priced, chosen, strict=True)) - float(prices @ capacity)
        for s in self.sites:
            if np.isfinite(self.table.storage.cache_capacity[s]):
                # The other sites at their prices, this one as it is.
                others = prices.copy()
                others[s] = 0.0
                packed, fitting = self._packed(self._at(open_values, others), s)
                packed -= float(others @ capacity)
                if packed >= total:
                    total, chosen = packed, fitting
        return total, chosen

    def _at(self, values: list[np.ndarray], prices: np.ndarray) -> list[np.ndarray]:
        """Values with what their caches pay at prices for a GB at each site."""
        return [value + cachable.sizes @ prices for value, cachable in zip(values, self.datasets, strict=True)]

    def _packed(self, values: list[np.ndarray], s: int) -> tuple[float, tuple[int, ...]]:
        unit = float(self.table.storage.cache_capacity[s]) * (1 + 1e-9) / UNITS
        most = max(len(value) for value in values)
        padded, weight = np.full((len(values), most), np.inf), np.zeros((len(values), most), dtype=np.int64)
        for k, (value, cachable) in enumerate(zip(values, self.datasets, strict=True)):
            sizes = cachable.sizes[:, s]
            padded[k, : len(value)] = value
            weight[k, : len(value)] = np.floor(sizes / unit) if unit > 0 else np.where(sizes > 0, UNITS + 1, 0)
        chosen = np.zeros(len(values), dtype=np.int64)
        return float(_knapsack(padded, weight, chosen)), tuple(chosen.tolist())


@compiled
def _knapsack(values: np.ndarray, weight: np.ndarray, chosen: np.ndarray) -> float:
    """The least sum of one value of each row whose weights are at most `UNITS` together, infinite where there is none,
    and into `chosen` which they are."""
    number = len(values)
    least, made = np.zeros(UNITS + 1), np.zeros((number, UNITS + 1), dtype=np.int64)
    for k in range(number):
        before = least.copy()
        least[:] = math.inf
        for c in range(values.shape[1]):
            w = weight[k, c]
            if values[k, c] == math.inf:
                continue
            for room in range(w, UNITS + 1):
                value = before[room - w] + values[k, c]
                if value < least[room]:
                    least[room], made[k, room] = value, c
    room = UNITS
    for k in range(number - 1, -1, -1):
        chosen[k] = made[k, room]
        if least[UNITS] < math.inf:
            room -= weight[k, chosen[k]]
    return float(least[UNITS])


def _only(values: np.ndarray, c: int) -> np.ndarray:
    only = np.full_like(values, np.inf)
    only[c] = values[c]
    return only
