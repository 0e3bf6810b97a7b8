"""CBA against enumeration and against a mixed-integer programme; its baselines; what a GB and a MB/s are worth."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.errors import Infeasible
from models.storage.baselines import BASELINES, baseline
from models.storage.cba import CacheProblem, allocate, closed_form, curve, marginal_values
from models.storage.tariff import Tariff
from tests.storage.cases import by_enumeration, by_milp, cost, need, problems

LUSTRE = Tariff(((0.16, 0.001), (0.15, 0.62 / 600)), 1200.0)


def optimum(problem: CacheProblem, *, whole: bool) -> float:
    """Cost of the optimum, proven and within its limits; infinite where there is none."""
    try:
        found = allocate(problem, whole=whole)
    except Infeasible:
        return math.inf
    best = found.allocation
    cached = tuple(best.cached)
    assert found.is_proven
    assert best.cost == pytest.approx(cost(problem, cached), rel=1e-7, abs=1e-7)
    rounding = 1e-6 * (1 + math.fsum(problem.demand))
    assert best.bandwidth_mb_s == pytest.approx(need(problem, cached), abs=rounding)
    assert sum(0 < h < 1 for h in cached) <= (0 if whole else 1)
    return best.cost


@settings(max_examples=400, deadline=None)
@given(problems(), st.booleans())
def test_it_is_the_optimum_of_enumeration(problem: CacheProblem, whole: bool) -> None:
    assert optimum(problem, whole=whole) == pytest.approx(by_enumeration(problem, whole=whole), rel=1e-6, abs=1e-7)


@settings(max_examples=200, deadline=None)
@given(problems(most=10, is_fast=True).filter(lambda p: p.tariff.power is None), st.booleans())
def test_it_is_the_optimum_of_the_programme(problem: CacheProblem, whole: bool) -> None:
    if math.isfinite(problem.tariff.cap) and not by_enumeration_is_clear(problem, whole):
        return
    assert optimum(problem, whole=whole) == pytest.approx(by_milp(problem, whole=whole), rel=1e-5, abs=1e-5)


def by_enumeration_is_clear(problem: CacheProblem, whole: bool) -> bool:
    """Whether it is not a matter of tolerances if a solution exists at all."""
    less = replace(problem, tariff=replace(problem.tariff, cap=problem.tariff.cap * (1 - 1e-5)))
    more = replace(problem, tariff=replace(problem.tariff, cap=problem.tariff.cap * (1 + 1e-5)))
    return math.isinf(optimum(less, whole=whole)) == math.isinf(optimum(more, whole=whole))


@settings(max_examples=300, deadline=None)
@given(problems(most=8), st.booleans())
def test_no_baseline_is_cheaper(problem: CacheProblem, whole: bool) -> None:
    """Nor does one cache a part of a dataset where none may be."""
    least = optimum(problem, whole=whole)
    for name in BASELINES:
        allocation = baseline(problem, name, whole=whole)
        if allocation is not None:
            assert math.isfinite(least)
            assert allocation.cost >= least - 1e-7 * (1 + least), name
            assert not whole or set(allocation.cached) <= {0.0, 1.0}, name


@pytest.mark.parametrize(
    ("name", "parts", "wholes"),
    [
        ("all_bandwidth", [0, 0, 0], [0, 0, 0]),
        ("all_cache", [2 / 3, 2 / 3, 2 / 3], [1, 0, 1]),
        ("uniform", [7 / 15, 7 / 15, 1], [0, 0, 1]),
        ("greedy_pool", [1, 0.4, 0], [1, 0, 1]),
        ("largest_beneficiary", [1, 0.4, 0], [1, 0, 1]),
        ("threshold_by_job", [0, 1, 0], [0, 1, 0]),
        ("threshold_shared", [1, 0.4, 0], [1, 0, 0]),
    ],
)
def test_rules_by_hand(name: str, parts: list[float], wholes: list[float]) -> None:
    """A cache of 140 GB at 0.004; MB/s at 0.01: 30 of them pay for less than 100 GB, 59 for more, 2 not for 10."""
    readers = ((30.0, 30.0), (59.0,), (2.0,))
    problem = CacheProblem(np.array([100.0, 100.0, 10.0]), readers, Tariff(((0.0, 0.01),)), 0.004, 140.0)
    assert list(BASELINES[name](problem, False)) == pytest.approx(parts)
    assert list(BASELINES[name](problem, True)) == wholes


@settings(max_examples=300, deadline=None)
@given(problems(most=8), st.randoms(use_true_random=False))
def test_no_other_fractions_are_cheaper(problem: CacheProblem, draw: object) -> None:
    """Not even several in part at once."""
    least = optimum(problem, whole=False)
    rng = np.random.default_rng(draw.getrandbits(32))  # type: ignore[attr-defined]
    for _ in range(50):
        cached = np.clip(rng.uniform(-0.5, 1.5, len(problem.sizes)), 0, 1)
        found = cost(problem, tuple(cached))
        assert found == least or found >= least - 1e-7 * (1 + least)


@settings(max_examples=200, deadline=None)
@given(problems(most=8).filter(lambda p: p.tariff.power is None))
def test_the_closed_form_is_the_optimum_without_limits(problem: CacheProblem) -> None:
    free = replace(problem, cache_capacity=math.inf, tariff=replace(problem.tariff, cap=math.inf))
    assert closed_form(free) == pytest.approx(optimum(free, whole=False), rel=1e-9, abs=1e-9)


@settings(max_examples=100, deadline=None)
@given(problems(most=8))
def test_whole_datasets_cost_no_less(problem: CacheProblem) -> None:
    assert optimum(problem, whole=True) >= optimum(problem, whole=False) - 1e-9


@settings(max_examples=100, deadline=None)
@given(problems(most=6))
def test_marginal_values_are_what_more_of_it_saves(problem: CacheProblem) -> None:
    try:
        best = allocate(problem)
    except Infeasible:
        return
    worth = marginal_values(problem, best)
    larger = replace(problem, cache_capacity=problem.cache_capacity + 1)
    wider = replace(problem, tariff=replace(problem.tariff, cap=problem.tariff.cap + 1))
    assert worth.cache_gb == pytest.approx(best.allocation.cost - by_enumeration(larger, whole=False), abs=1e-5)
    assert worth.bandwidth_mb_s == pytest.approx(best.allocation.cost - by_enumeration(wider, whole=False), abs=1e-5)


def test_by_hand() -> None:
    """Two readers of ImageNet share its cache; a language model is not worth one.

    At 0.002 an hour for a MB/s the 146 GB cost 0.0146 and save 0.348; the 950 GB cost 0.095 and save 0.02.
    """
    problem = CacheProblem(np.array([146.0, 950.0]), ((87.0, 87.0), (10.0,)), Tariff(((0.0, 0.002),)), 1e-4, 2000.0)
    best = allocate(problem).allocation
    assert list(best.cached) == [1.0, 0.0]
    assert best.cost == pytest.approx(0.0146 + 0.02)
    assert best.bandwidth_mb_s == pytest.approx(10.0)


def test_several_local_minima() -> None:
    """The curve over prefixes falls, rises and falls again: a fixed price is saved at its end only."""
    problem = CacheProblem(
        np.array([100.0, 1000.0, 1000.0]), ((200.0,), (50.0,), (40.0,)), Tariff(((0.15, 0.001),)), 1e-4, 1e5
    )
    costs = curve(problem).cost
    assert list(costs) == pytest.approx([0.44, 0.25, 0.30, 0.21])
    assert allocate(problem).allocation.cost == pytest.approx(0.21)


def test_a_reader_faster_than_the_cache_reads_past_it() -> None:
    problem = CacheProblem(np.array([100.0]), ((300.0, 50.0),), Tariff(((0.0, 0.01),)), 1e-4, 1e3, cache_speed=200.0)
    best = allocate(problem).allocation
    assert best.bandwidth_mb_s == pytest.approx(300.0)
    assert best.cached[0] == 1.0


def test_a_slow_cache_serves_a_part_badly() -> None:
    """Half of the items from a cache at 200 MB/s take 1/400 of a second a MB, half of 1/100 are left: b = 66.7."""
    problem = CacheProblem(np.array([100.0]), ((100.0,),), Tariff(((0.0, 0.01),)), 0.0, 50.0, cache_speed=200.0)
    best = allocate(problem).allocation
    assert best.cached[0] == pytest.approx(0.5)
    assert best.bandwidth_mb_s == pytest.approx(200 / 3)


def test_what_would_do_is_said_where_nothing_does() -> None:
    problem = CacheProblem(np.array([100.0, 100.0]), ((300.0,), (200.0,)), Tariff((), 150.0), 1e-4, 100.0)
    with pytest.raises(Infeasible, match="200 MB/s, and 150 MB/s are sold") as failure:
        allocate(problem)
    assert [str(reason) for reason in failure.value.reasons] == [
        "bandwidth sold: 200 MB/s instead of 150",
        "cache capacity: 200 GB instead of 100",
    ]


def test_a_thousand_datasets() -> None:
    """Beyond what can be enumerated the bound is still one, and says so."""
    rng = np.random.default_rng(3)
    sizes, rates = rng.lognormal(5, 1, 1000), rng.lognormal(4, 1, 1000)
    tariff = Tariff(((0.0, 0.002), (0.15, 0.001), (0.6, 0.0004)), float(rates.sum()))
    problem = CacheProblem(sizes, tuple((float(f),) for f in rates), tariff, 1e-5, float(sizes.sum()) / 3)
    part, whole = allocate(problem), allocate(problem, whole=True)
    assert part.is_proven
    assert part.allocation.cost <= whole.allocation.cost
    assert whole.bound <= whole.allocation.cost <= whole.bound * 1.01
