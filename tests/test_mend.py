"""Plans brought near a budget: never over it, never worse than nothing, and as good as can be where jobs are alike."""

from __future__ import annotations

import math
from typing import Any

import pytest

from models.check import check
from models.domain import Instance
from models.domain.plan import SERVICE_TERMS
from models.goal import Goal, at_price, spent_of
from models.starts import all_starts
from planner.engines.assemble import cost_of
from planner.engines.base import Limits
from planner.engines.schedule import Schedule
from planner.frontier.budget import solve_for
from planner.frontier.mend import Mend
from planner.generate import generate
from planner.horizon import num_slots_of
from tests.engines.samples import instance_of, mode

QUICK = Limits(time_limit_s=None, work=100)


def alike(number: int, **changes: Any) -> Instance:
    """Jobs of an hour and a GPU, on a node each at 1 USD, that cost 30 where they do not run."""
    job = {"reject_cost": 30.0, "modes": [mode(1.0, 1, "own")]}
    return instance_of([job] * number, **{"pools__0__gpus_per_node": 1, "pools__0__price": 1.0} | changes)


def full(instance: Instance, price: float) -> Schedule:
    """All jobs that find room, each where it is cheapest, at a price."""
    schedule = Schedule(all_starts(at_price(instance, "cost", price, num_slots_of(instance)), num_slots_of(instance)))
    for j in range(len(instance.jobs)):
        step = schedule.cheapest(j)
        if step is not None:
            schedule.put(j, step)
    return schedule


@pytest.mark.parametrize("engine", ["fast", "auto"])
def test_the_budget_pays_for_some_of_those_that_are_alike(engine: str) -> None:
    """No price tells them apart: at each of them all run or none does."""
    plan = solve_for(alike(6, pools__0__nodes=6), Goal("cost", 3.0), engine, QUICK).plan
    assert len(plan.runs) == 3
    assert plan.cost == pytest.approx(3.0 + 3 * 30.0)
    assert check(alike(6, pools__0__nodes=6), plan).ok


def test_what_shares_a_node_is_given_up_together() -> None:
    """One of two on a node saves nothing; both save it. The dear pair stays."""
    jobs = [{"reject_cost": worth, "modes": [mode(1.0, 1, "own")]} for worth in (9.0, 9.0, 5.0, 5.0)]
    instance = instance_of(jobs, pools__0__gpus_per_node=2, pools__0__nodes=2, pools__0__price=2.0)
    schedule = full(instance, 1.0)
    spent = spent_of(cost_of(schedule).costs)
    assert Mend(schedule, 1.0, Goal("cost", spent / 2), lambda: False).run()
    assert sorted(schedule.chosen) == [0, 1]


def test_followers_go_with_what_they_wait_for() -> None:
    """The first is worth little, but without it the other, worth much, cannot run."""
    job = {"modes": [mode(1.0, 1, "own")]}
    others = [job | {"reject_cost": 10.0}] * 2
    instance = instance_of(
        [job | {"reject_cost": 1.0}, job | {"reject_cost": 50.0, "after": ["j0"]}, *others],
        pools__0__gpus_per_node=1,
        pools__0__price=1.0,
    )
    schedule = full(instance, 1.0)
    assert len(schedule.chosen) == 4
    spent = spent_of(cost_of(schedule).costs)
    assert Mend(schedule, 1.0, Goal("cost", spent / 2), lambda: False).run()
    assert sorted(schedule.chosen) == [0, 1]
    assert Mend(schedule, 1.0, Goal("cost", 0.0), lambda: False).run()
    assert not schedule.chosen


def test_what_must_run_stays() -> None:
    job = {"modes": [mode(1.0, 1, "own")]}
    instance = instance_of([job, job | {"reject_cost": 1.0}], pools__0__gpus_per_node=1, pools__0__price=1.0)
    schedule = full(instance, 1.0)
    assert not Mend(schedule, 1.0, Goal("cost", 0.0), lambda: False).run()
    assert list(schedule.chosen) == [0]


@pytest.mark.parametrize("price", [0.25, 1.0, 4.0])
def test_more_money_is_never_worse_and_never_exceeded(price: float) -> None:
    """Of generated jobs that may all be left out, with storage."""
    made = generate("busy", 12, 6, 1.1, 1, storage=True)
    instance = made.altered(jobs=tuple(job.model_copy(update={"reject_cost": 500.0}) for job in made.jobs))
    most = spent_of(cost_of(full(instance, price)).costs) / price
    for part in (0.0, 0.3, 0.7, 1.0):
        schedule = full(instance, price)
        before = len(schedule.chosen)
        assert Mend(schedule, price, Goal("cost", part * most), lambda: False).run()
        costs = cost_of(schedule).costs
        assert spent_of(costs) / price <= part * most + 1e-6
        assert math.fsum(costs[term] for term in SERVICE_TERMS) <= 500.0 * len(instance.jobs) + 1e-6
        assert bool(schedule.chosen) == (part > 0)
        assert part < 1 or len(schedule.chosen) >= before


def test_a_stop_leaves_it_as_it_is() -> None:
    schedule = full(alike(4, pools__0__nodes=4), 1.0)
    assert not Mend(schedule, 1.0, Goal("cost", 2.0), lambda: True).run()
    assert len(schedule.chosen) == 4
