"""List schedules: their orders, and plans that pass the check."""

from __future__ import annotations

import time

import numpy as np
import pytest

from models.check import check
from models.domain import Plan
from models.starts import Starts, all_starts
from planner.engines.assemble import cost_of, plan_of
from planner.engines.fast.certificate import Certificate
from planner.engines.fast.construct import orders
from planner.engines.fast.guide import Guide
from planner.engines.fast.table import Table
from planner.engines.policies.listing import ORDERS, best_list_schedule, improve, list_schedule, sequence
from planner.engines.rounding import round_starts
from planner.engines.schedule import Schedule
from planner.horizon import num_slots_of
from tests.engines.samples import HOUR, Doc, instance_of, mode, running
from tests.random_instances import FAMILIES, random_instance


def plan(schedule: Schedule) -> Plan:
    """The plan of a schedule, without a bound."""
    return plan_of(schedule, status="feasible", engine="list", seed=0, versions={}, dual_bound=None)


def random_starts(family: str, seed: int) -> Starts:
    """Every start of a random instance."""
    instance = random_instance(family, np.random.default_rng(seed))
    return all_starts(instance, num_slots_of(instance))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("family", FAMILIES)
def test_every_order_gives_plans_that_pass_the_check(family: str, order: str) -> None:
    found = 0
    for seed in range(20):
        starts = random_starts(family, seed)
        schedule = list_schedule(starts, ORDERS[order])
        if schedule is not None:
            found += 1
            assert check(starts.instance, plan(schedule)).violations == (), (family, seed)
    assert found >= 15


@pytest.mark.parametrize("family", FAMILIES)
def test_the_best_list_is_no_dearer_than_any(family: str) -> None:
    for seed in range(20):
        starts = random_starts(family, seed)
        schedules = [list_schedule(starts, order) for order in ORDERS.values()]
        costs = [cost_of(schedule).cost for schedule in schedules if schedule is not None]
        best = best_list_schedule(starts)
        assert (best is None) == (not costs), (family, seed)
        if best is not None:
            assert cost_of(best).cost <= min(costs) + 1e-9, (family, seed)
            assert check(starts.instance, plan(best)).violations == (), (family, seed)


@pytest.mark.parametrize("family", FAMILIES)
def test_rounding_any_weights_gives_a_plan_that_passes_the_check(family: str) -> None:
    for seed in range(10):
        starts = random_starts(family, seed)
        rng = np.random.default_rng(seed)
        every = [(r, int(t)) for r, row in enumerate(starts.rows) for t in row.slots]
        weights = {start: float(rng.random()) for start in every if rng.random() < 0.3}
        schedule = round_starts(starts, weights)
        if schedule is not None:
            assert check(starts.instance, plan(schedule)).violations == (), (family, seed)


# --- orders ----------------------------------------------------------------------------------------------

JOBS: list[Doc] = [
    # Due at 5 h with 4 h of slack and a weight of 1; two GPU-hours of a node with two.
    {"modes": [mode(1, 2)], "due": 5 * HOUR, "weight": 1.0},
    # A deadline at 4 h, 1 h of slack, no weight; 3 GPU-hours.
    {"modes": [mode(3)], "deadline": 4 * HOUR},
    # Due at 6 h, 2 h of slack after its release, 2 an hour; 4 GPU-hours.
    {"modes": [mode(2, 2)], "release": 2 * HOUR, "due": 6 * HOUR, "weight": 2.0},
    # Never due.
    {"modes": [mode(1)]},
]


@pytest.mark.parametrize(
    ("order", "expected"),
    [("due", [1, 0, 2, 3]), ("slack", [1, 2, 0, 3]), ("weight", [2, 0, 1, 3]), ("size", [2, 1, 0, 3])],
)
def test_orders(order: str, expected: list[int]) -> None:
    starts = all_starts(instance_of(JOBS), 6)
    assert sequence(starts, ORDERS[order]) == expected


def test_a_fall_of_worth_is_a_due_date() -> None:
    jobs: list[Doc] = [
        {"modes": [mode(1)]},
        {"modes": [mode(1)], "due": 4 * HOUR, "weight": 1.0},
        {"modes": [mode(1)], "utility": {"shape": "step", "worth": 1.0, "by": 3 * HOUR}},
        {"modes": [mode(1)], "value": [{"by": 2 * HOUR, "value": 1.0}]},
        {"modes": [mode(1)], "utility": {"shape": "finish_time_fairness", "worth": 1.0, "fair_time": HOUR}},
    ]
    starts = all_starts(instance_of(jobs), 6)
    assert sequence(starts, ORDERS["due"]) == [4, 3, 2, 1, 0]
    certificate = Certificate(Table.of(starts))
    first, *_ = orders(certificate.table, Guide(certificate.pricing, certificate.lowest.prices))
    assert first == [4, 3, 2, 1, 0]


@pytest.mark.parametrize("order", ORDERS)
def test_orders_keep_precedence_and_put_running_jobs_first(order: str) -> None:
    chained = [JOBS[0] | {"after": ["j3"]}, JOBS[1] | {"after": ["j0"]}, JOBS[2], JOBS[3]]
    stays: Doc = {"modes": [mode(1)], "running": running("own1", {0: [0]})}
    starts = all_starts(instance_of([*chained, stays]), 6)
    found = sequence(starts, ORDERS[order])
    assert found[0] == 4
    assert sorted(found) == list(range(5))
    assert found.index(3) < found.index(0) < found.index(1)


@pytest.mark.parametrize("order", ORDERS)
def test_a_job_after_two_others_comes_once_and_last(order: str) -> None:
    starts = all_starts(instance_of([JOBS[3] | {"after": ["j1", "j2"]}, *JOBS[:2]]), 6)
    found = sequence(starts, ORDERS[order])
    assert sorted(found) == [0, 1, 2]
    assert found[-1] == 0


def test_a_successor_of_a_rejected_job_is_rejected() -> None:
    jobs: list[Doc] = [
        {"modes": [mode(3)], "reject_cost": 1.0},
        {"modes": [mode(1)], "reject_cost": 10.0, "after": ["j0"]},
    ]
    schedule = list_schedule(all_starts(instance_of(jobs), 6), ORDERS["due"])
    assert schedule is not None
    assert not schedule.chosen
    # One that must run makes the list fail.
    must = [jobs[0], {"modes": [mode(1)], "after": ["j0"]}]
    assert list_schedule(all_starts(instance_of(must), 6), ORDERS["due"]) is None


def test_improving_pays_or_leaves_things_as_they_are() -> None:
    # The first is put on the rented node at 4 an hour; taken off and put back it costs 1 an hour.
    starts = all_starts(instance_of([{"modes": [mode(2, 1, "rent"), mode(2)]}]), 6)
    schedule = Schedule(starts)
    rent = next(r for r, row in enumerate(starts.rows) if row.mode.name == "rent1")
    step = schedule.offer(rent, np.array([0]))
    assert step is not None
    schedule.put(0, step)
    improve(schedule, rounds=3)
    assert cost_of(schedule).cost == pytest.approx(2.0)
    before = schedule.chosen[0]
    improve(schedule, rounds=3)
    assert schedule.chosen[0] == before


def test_a_deadline_cuts_it_short_but_leaves_a_plan() -> None:
    starts = random_starts("mixed", 3)
    schedule = best_list_schedule(starts, deadline=time.monotonic() - 1.0)
    assert schedule is not None
    assert check(starts.instance, plan(schedule)).violations == ()
