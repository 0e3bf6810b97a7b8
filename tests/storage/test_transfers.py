"""CBA where datasets are at home elsewhere: against enumeration, a mixed-integer programme, and the joint model."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.domain import Instance
from models.domain.modes import modes_of
from models.errors import Infeasible, NoPlan
from models.storage.baselines import BASELINES, baseline
from models.storage.cba import allocate, closed_form
from models.storage.demand import demands
from models.storage.problem import CacheProblem
from models.storage.tariff import Tariff, chords
from models.storage.transfers import Crossed, Transfers
from planner.engines.base import Limits
from planner.solve import solve
from tests.documents import HOUR
from tests.storage.cases import away, by_enumeration, by_milp, cost

STORAGE = ("bandwidth", "cache", "transfer")


def optimum(problem: CacheProblem, *, whole: bool) -> float:
    """Cost of the optimum, proven and within its limits; infinite where there is none."""
    try:
        found = allocate(problem, whole=whole)
    except Infeasible:
        return math.inf
    best = found.allocation
    assert found.is_proven
    assert best.cost == pytest.approx(cost(problem, tuple(best.cached)), rel=1e-7, abs=1e-7)
    assert not whole or set(best.cached) <= {0.0, 1.0}
    return best.cost


@settings(max_examples=120, deadline=None)
@given(away())
def test_whole_datasets_as_by_enumeration(problem: CacheProblem) -> None:
    """Whatever the tariff and the speed of the cache."""
    assert optimum(problem, whole=True) == pytest.approx(by_enumeration(problem, whole=True), rel=1e-6, abs=1e-7)


@settings(max_examples=120, deadline=None)
@given(away(most=8, is_fast=True).filter(lambda p: p.tariff.power is None), st.booleans())
def test_it_is_the_optimum_of_the_programme(problem: CacheProblem, whole: bool) -> None:
    assert optimum(problem, whole=whole) == pytest.approx(by_milp(problem, whole=whole), rel=1e-5, abs=1e-5)


@settings(max_examples=40, deadline=None)
@given(away(is_fast=True).filter(lambda p: p.tariff.power is not None))
def test_a_power_law_is_followed_between_its_chords(problem: CacheProblem) -> None:
    """Chords are no dearer, and cheaper by no more than a part of 1e-3 of its highest price."""
    assert problem.tariff.power is not None
    up_to = max(1.0, 2 * math.fsum(problem.demand))
    fine = replace(problem, tariff=Tariff(chords(*problem.tariff.power, up_to, 1e-3), problem.tariff.cap))
    found, least, most = optimum(problem, whole=False), by_milp(fine, whole=False), float(problem.tariff.price(up_to))
    assert found == least or -1e-6 * (1 + least) <= found - least <= 1e-3 * most + 1e-6 * (1 + least)


@settings(max_examples=100, deadline=None)
@given(away(), st.booleans(), st.randoms(use_true_random=False))
def test_the_bound_is_one(problem: CacheProblem, whole: bool, draw: object) -> None:
    """No other fractions are cheaper, nor any rule, whether the optimum is proven or not."""
    try:
        bound = allocate(problem, whole=whole).bound
    except Infeasible:
        bound = math.inf
    except NoPlan:
        return
    rng = np.random.default_rng(draw.getrandbits(32))  # type: ignore[attr-defined]
    for _ in range(30):
        cached = np.clip(rng.uniform(-0.5, 1.5, len(problem.sizes)), 0, 1)
        other = cost(problem, tuple(np.round(cached) if whole else cached))
        assert other == bound or other >= bound - 1e-6 * (1 + abs(bound))
    for name in BASELINES:
        allocation = baseline(problem, name, whole=whole)
        if allocation is not None:
            assert allocation.cost >= bound - 1e-6 * (1 + bound), name
            assert not whole or set(allocation.cached) <= {0.0, 1.0}, name


@settings(max_examples=100, deadline=None)
@given(away(most=8).filter(lambda p: p.tariff.power is None))
def test_the_closed_form_is_the_optimum_without_limits(problem: CacheProblem) -> None:
    assert problem.transfers is not None
    free = replace(
        problem,
        cache_capacity=math.inf,
        tariff=replace(problem.tariff, cap=math.inf),
        transfers=replace(problem.transfers, links=()),
    )
    assert closed_form(free) == pytest.approx(optimum(free, whole=False), rel=1e-9, abs=1e-9)


def test_by_hand() -> None:
    """Both cost 0.1 in the cache and save 0.1 of bandwidth each; the second is read across for 0.5, and copied for 0.2.

    The third is read across for less than its copy costs.
    """
    problem = CacheProblem(
        np.array([100.0, 100.0, 100.0]),
        ((50.0,), (25.0, 25.0), (50.0,)),
        Tariff(((0.0, 0.002),)),
        0.001,
        transfers=Transfers(np.array([0.0, 0.2, 0.2]), ((0.0,), (0.3, 0.2), (0.15,))),
    )
    assert list(problem.costs) == pytest.approx([0.1, -0.2, 0.15])
    best = allocate(problem).allocation
    assert best.cached[1:].tolist() == [1.0, 0.0]
    assert best.transfer_cost == pytest.approx(0.2 + 0.15)
    assert best.cost == pytest.approx(0.1 + 0.1 + 0.2 + (0.1 + 0.15))


def test_what_is_read_past_the_cache_crosses_whatever_is_cached() -> None:
    problem = CacheProblem(
        np.array([10.0]),
        ((300.0, 50.0),),
        Tariff(),
        cache_speed=200.0,
        transfers=Transfers(np.array([0.1]), ((3.0, 0.5),)),
    )
    best = allocate(problem).allocation
    assert best.cached.tolist() == [1.0]
    assert best.transfer_cost == pytest.approx(3.1)


def test_two_in_part_at_two_limits() -> None:
    """A cache of 150 GB, and 60 of 200 MB/s for sale: the cheaper copy alone would not serve enough."""
    problem = CacheProblem(
        np.array([100.0, 100.0]),
        ((80.0,), (120.0,)),
        Tariff(((0.0, 0.0),), 60.0),
        transfers=Transfers(np.array([0.1, 1.0]), ((0.0,), (0.0,))),
        cache_capacity=150.0,
    )
    best = allocate(problem)
    assert best.is_proven
    assert best.allocation.cached.tolist() == pytest.approx([1.0, 0.5])
    tight = replace(problem, cache_capacity=130.0, tariff=replace(problem.tariff, cap=70.0))
    assert allocate(tight).allocation.cached.tolist() == pytest.approx([0.65, 0.65])


def test_a_power_law_is_cut_on_both_sides() -> None:
    """Two of three fit. By the chord up to 100 MB/s it is best to leave 24 for 2.4; by the law they cost 4.9."""
    law = Tariff(chords(1.0, 0.5, 100.0, 0.01), 100.0, (1.0, 0.5))
    transfers = Transfers(np.array([1.0, 3.0, 0.001]), ((0.0,),) * 3)
    problem = CacheProblem(np.ones(3), ((75.0,), (24.0,), (1.0,)), law, 0.0, 2.0, math.inf, transfers)
    best = allocate(problem, whole=True)
    assert best.is_proven
    assert best.allocation.cached.tolist() == [1.0, 1.0, 0.0]
    assert best.allocation.cost == pytest.approx(4.0 + 1.0)


def test_a_link_that_is_too_narrow_is_said() -> None:
    """20 GB of the second save 10 MB/s of either, of the first 16 MB/s of the bandwidth alone."""
    transfers = Transfers(np.zeros(2), ((0.0,), (0.0,)), (Crossed("far", (1,), 30.0),))
    problem = CacheProblem(
        np.array([100.0, 100.0]), ((80.0,), (50.0,)), Tariff((), 80.0), 0.0, 20.0, math.inf, transfers
    )
    with pytest.raises(Infeasible) as failure:
        allocate(problem)
    assert [str(reason) for reason in failure.value.reasons] == [
        "bandwidth sold: 120 MB/s instead of 80",
        "link from far: 40 MB/s instead of 30",
    ]
    wide = replace(problem, cache_capacity=100.0)
    best = allocate(wide).allocation
    assert best.bandwidth_mb_s <= 80.0 + 1e-6
    assert wide.crosses(wide.links[0], best.cached) <= 30.0 + 1e-6


# --- from instances, against the joint model -------------------------------------------------------------


def readers_elsewhere(draw: random.Random) -> Instance:
    """Jobs in one mode each that all run throughout, at a site to which some of their data has to come."""
    slots, names = draw.randint(2, 6), ["near", "far", "farther"]
    storage: dict[str, Any] = {
        "tariff": [{"per_mb_s": 0.002}, {"fixed": 0.1, "per_mb_s": 0.0005}],
        "cache_capacity": draw.choice((0.0, 150.0, 300.0, 1000.0)),
        "cache_price": draw.choice((0.0, 0.0002, 0.001)),
        "bandwidth_cap": draw.choice((None, 400.0)),
        "cache_speed": draw.choice((None, None, 90.0)),
        "billed": draw.choice((None, 24 * HOUR)),
    }
    modes = [
        {"pool": "owned", "gpus": 1, "duration": slots * HOUR - draw.choice((0, 900)), "read_rate": rate}
        for rate in (20.0, 50.0, 100.0)
    ]
    prices = (0.0, 0.001, 0.005)
    return Instance.model_validate(
        {
            "currency": "USD",
            "start": "2026-01-12T18:00:00+00:00",
            "slot": HOUR,
            "horizon": slots * HOUR,
            "sites": [
                {"id": "here", "kind": "on_prem", "storage": {k: v for k, v in storage.items() if v is not None}},
                *({"id": name, "kind": "on_prem"} for name in names[1:]),
            ],
            "pools": [{"id": "owned", "site": "here", "gpu": "A", "gpus_per_node": 4, "nodes": 2, "price": 1.0}],
            "datasets": [
                {"id": name, "size": draw.choice((40.0, 100.0, 250.0)), "home": "here" if name == "near" else name}
                for name in names
            ],
            "network": [
                {"source": "far", "target": "here", "price": draw.choice(prices), "bandwidth": 150.0},
                {"source": "farther", "target": "here", "price": draw.choice(prices)},
            ],
            "jobs": [{"id": f"job{k}", "dataset": draw.choice(names), "modes": [draw.choice(modes)]} for k in range(6)],
        }
    )


def studied(instance: Instance) -> tuple[float, float]:
    """What CBA pays an hour at the only site that reads, and for how many hours."""
    (demand,) = demands(instance, [modes_of(instance, job)[0] for job in instance.jobs])
    return allocate(demand.problem, whole=True).allocation.cost, demand.hours


@settings(max_examples=25, deadline=None)
@given(st.randoms(use_true_random=False))
def test_it_is_what_the_joint_model_pays(draw: random.Random) -> None:
    """All jobs at once in the only mode they have, datasets cached wholly: nothing but storage is to be decided."""
    instance = readers_elsewhere(draw)
    try:
        plan = solve(instance, "exact", Limits(gap=0.0)).plan
    except Infeasible:
        with pytest.raises(Infeasible):
            studied(instance)
        return
    cost_h, hours = studied(instance)
    assert cost_h * hours == pytest.approx(sum(plan.costs[term] for term in STORAGE), rel=1e-6, abs=1e-6)
