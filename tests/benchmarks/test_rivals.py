"""Every rival gives plans that the checker accepts, none below the optimum, and no bound above it."""

from __future__ import annotations

import random

import pytest

from benchmarks.rivals import RIVALS, rival
from benchmarks.rivals.attempt import Attempt
from benchmarks.rivals.dispatch import Shop, swapped_by_weight
from benchmarks.rivals.moves import Change, Desk
from models.check import check
from models.domain import Instance
from models.errors import InvalidInput
from planner.engines.assemble import cost_of
from planner.generate import generate
from tests.engines.samples import HOUR, Doc, instance_of, mode
from tests.oracle import optimum
from tests.random_instances import FAMILIES, random_instance

TINY = (("compute", 1), ("mixed", 2), ("contended", 3))
PROVERS = ("highs_alone", "cpsat")


def tiny(family: str, seed: int) -> tuple[Instance, float]:
    """A random instance and its optimum."""
    instance = random_instance(family, random.Random(seed))
    best = optimum(instance)
    assert best is not None
    return instance, best


@pytest.fixture(scope="module")
def instances() -> list[tuple[Instance, float]]:
    """Three tiny instances with their optima."""
    return [tiny(family, seed) for family, seed in TINY]


@pytest.mark.parametrize("name", RIVALS)
def test_every_rival_makes_plans_and_keeps_to_its_limit(name: str, instances: list[tuple[Instance, float]]) -> None:
    for instance, best in instances:
        outcome = rival(name)(instance, 5.0 if name in PROVERS else 0.5, 1, 7)
        assert outcome.plan is not None, outcome.note
        assert check(instance, outcome.plan).ok
        assert outcome.plan.engine == name
        assert outcome.plan.cost >= best * (1 - 1e-6) - 1e-6
        assert outcome.wall_s < 20
        assert outcome.trajectory
        incumbents = [point.incumbent for point in outcome.trajectory if point.incumbent is not None]
        assert incumbents == sorted(incumbents, reverse=True)
        if name in PROVERS:
            assert outcome.dual_bound is not None
            assert outcome.dual_bound <= best * (1 + 1e-6) + 1e-6
            assert outcome.plan.cost == pytest.approx(best, rel=1e-3)
        else:
            assert outcome.dual_bound is None


@pytest.mark.parametrize("name", PROVERS)
@pytest.mark.parametrize(
    "worth",
    [
        {"value": [{"by": 2 * HOUR, "value": 5.5}]},
        {"utility": {"shape": "linear", "worth": 11.0, "full_until": 2 * HOUR, "zero_at": 4 * HOUR}},
    ],
)
def test_provers_weigh_what_a_job_is_worth(name: str, worth: Doc) -> None:
    """Owned, done after 3 h: 3 and the 5.5 that are lost; rented, done after 2 h: 8."""
    instance = instance_of([{"modes": [mode(3), mode(2, 1, "rent")]} | worth])
    outcome = rival(name)(instance, 5.0, 1, 0)
    assert outcome.plan is not None, outcome.note
    assert (outcome.plan.cost, outcome.dual_bound) == (pytest.approx(8.0, rel=1e-3), pytest.approx(8.0, rel=1e-3))


@pytest.mark.parametrize("name", ["pressure", "cheapest_cloud", "cpsat"])
@pytest.mark.parametrize("has_storage", [False, True])
def test_generated_instances_are_solved(name: str, has_storage: bool) -> None:
    instance = generate("busy", 8, 12, 0.6, seed=1, storage=has_storage)
    outcome = rival(name)(instance, 4.0, 2, 0)
    assert outcome.plan is not None, outcome.note
    assert check(instance, outcome.plan).ok


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("name", PROVERS)
def test_bounds_never_exceed_the_optimum(name: str, family: str) -> None:
    for seed in range(100, 150):
        try:
            instance = random_instance(family, random.Random(seed))
            best = optimum(instance)
        except (AssertionError, InvalidInput):
            continue
        outcome = rival(name)(instance, 5.0, 2, seed)
        if best is None:
            assert outcome.plan is None
            continue
        assert outcome.plan is not None, (seed, outcome.note)
        assert outcome.plan.cost >= best * (1 - 1e-6) - 1e-6, seed
        assert outcome.dual_bound is None or outcome.dual_bound <= best * (1 + 1e-6) + 1e-6, seed


# --- the rules of the greedy -----------------------------------------------------------------------------


def shop_of(instance: Instance) -> Shop:
    """The greedy's set-ups."""
    return Shop(Attempt("test", instance, 10.0, 1, 0).starts())


def test_pressure_decides_who_comes_first_and_the_other_waits() -> None:
    jobs = [
        {"modes": [mode(2, 2)], "due": 9 * HOUR, "weight": 1.0},
        {"modes": [mode(2, 2)], "due": 2 * HOUR, "weight": 1.0},
    ]
    shop = shop_of(instance_of(jobs))
    assert shop.order == [1, 0]
    schedule = shop.run()
    assert schedule is not None
    assert {j: step.slot for j, step in schedule.chosen.items()} == {1: 0, 0: 2}


def test_the_cheapest_set_up_that_is_in_time_else_the_fastest() -> None:
    jobs = [{"modes": [mode(4, 1), mode(3, 2)], "due": 3 * HOUR, "weight": 1.0}]
    shop = shop_of(instance_of(jobs))
    names = [shop.starts.rows[setup.row].mode.name for setup in shop.preferred(0, 0)]
    assert names == ["own2", "own1"]
    # An hour later neither is in time: the fastest comes first.
    assert [shop.starts.rows[setup.row].mode.name for setup in shop.preferred(0, 1)] == ["own2", "own1"]
    relaxed = [{"modes": [mode(4, 1), mode(3, 2)], "due": 9 * HOUR, "weight": 1.0}]
    shop = shop_of(instance_of(relaxed))
    assert shop.starts.rows[shop.preferred(0, 0)[0].row].mode.name == "own1"


def test_swaps_move_each_job_by_one_place_at_most() -> None:
    shop = shop_of(generate("compute", 12, 12, 0.5, seed=1))
    order = swapped_by_weight(shop, random.Random(1))
    assert sorted(order) == sorted(shop.order)
    assert order != shop.order
    assert all(abs(order.index(j) - shop.order.index(j)) <= 1 for j in order)


def test_a_change_that_does_not_pay_is_taken_back() -> None:
    shop = shop_of(generate("busy", 12, 12, 0.8, seed=2, storage=True))
    schedule = shop.run()
    assert schedule is not None
    desk = Desk(schedule)
    before, steps = desk.cost, dict(schedule.chosen)
    draw = random.Random(3)
    for _ in range(60):
        j = draw.choice(sorted(schedule.chosen))
        rows = [draw.choice(schedule.starts.rows_of_job[j])]
        cost = desk.try_changes([Change(j, rows, draw.randrange(schedule.num_slots))])
        assert cost is None or cost < before
        assert cost_of(schedule).cost == pytest.approx(desk.cost)
        if cost is None:
            assert schedule.chosen == steps
        before, steps = desk.cost, dict(schedule.chosen)
