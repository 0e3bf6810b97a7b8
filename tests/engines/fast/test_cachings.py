"""What may be cached together: the choices are no dearer than they can be, and none is made that does not fit."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from planner.engines.fast.cachings import Cachable, Cachings


@dataclass
class Case:
    """Random datasets at two sites, and what their choices are worth."""

    capacity: np.ndarray
    datasets: list[Cachable]
    values: list[np.ndarray]
    fixed: dict[int, int] = field(default_factory=dict)

    @property
    def cachings(self) -> Cachings:
        table: Any = SimpleNamespace(storage=SimpleNamespace(cache_capacity=self.capacity))
        cachings = Cachings.__new__(Cachings)
        cachings.table, cachings.datasets, cachings.sites = table, self.datasets, [0, 1]
        return cachings

    def least(self) -> float:
        """By enumeration."""
        best = math.inf
        for choices in itertools.product(*(range(len(value)) for value in self.values)):
            if any(choices[k] != c for k, c in self.fixed.items()):
                continue
            size = sum((cachable.sizes[c] for cachable, c in zip(self.datasets, choices, strict=True)), np.zeros(2))
            if (size <= self.capacity).all():
                best = min(best, sum(float(value[c]) for value, c in zip(self.values, choices, strict=True)))
        return best


def case_of(rng: np.random.Generator) -> Case:
    """Nothing, one site, or both, of up to four datasets; some choices are made already."""
    number = int(rng.integers(1, 5))
    datasets, values = [], []
    for k in range(number):
        size = float(rng.integers(1, 40))
        choices = ((), ((0, 1),), ((1, 1),), ((0, 1), (1, 1)))
        sizes = np.array([[0, 0], [size, 0], [0, size], [size, size]])
        datasets.append(Cachable(k, np.array([k]), choices, sizes, np.zeros(4)))
        values.append(np.concatenate([[0.0], -rng.uniform(0, 10, 3)]))
    capacity = np.array([rng.integers(0, 60), rng.choice([rng.integers(0, 60), np.inf])], dtype=float)
    fixed = {k: int(rng.integers(4)) for k in range(number) if rng.random() < 0.4}
    return Case(capacity, datasets, values, fixed)


def test_no_choice_that_fits_is_cheaper_at_any_prices() -> None:
    rng = np.random.default_rng(1)
    fits, exact = 0, 0
    for _ in range(400):
        case = case_of(rng)
        least = case.least()
        prices = np.where(np.isfinite(case.capacity), rng.uniform(0, 0.4, 2) * (rng.random(2) < 0.6), 0.0)
        found, chosen = case.cachings.best(case.values, case.fixed, prices)
        assert found <= least + 1e-9
        assert math.isinf(found) or all(chosen[k] == c for k, c in case.fixed.items())
        fits += math.isfinite(least)
        exact += math.isfinite(least) and found == pytest.approx(least)
    assert fits > 200
    assert exact > 150


def test_what_is_too_large_for_any_one_of_the_sites_is_not_chosen() -> None:
    """Sizes in steps of the tenth of a cache, so that nothing is lost by rounding them down."""
    rng = np.random.default_rng(2)
    refused = 0
    for _ in range(300):
        case = case_of(rng)
        case.capacity = np.array([10.0 * rng.integers(0, 4), 40.0])
        for cachable in case.datasets:
            cachable.sizes[:] = np.where(cachable.sizes > 0, 10.0 * rng.integers(1, 5), 0.0)
        case.fixed = {k: int(rng.integers(4)) for k in range(len(case.datasets))}
        is_empty = math.isinf(case.least())
        found, _ = case.cachings.best(case.values, case.fixed, np.zeros(2))
        assert math.isinf(found) == is_empty
        refused += is_empty
    assert refused > 100
