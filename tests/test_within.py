"""Plans within a budget: never over it, never worse than before, and as good as can be where that is known."""

from __future__ import annotations

import signal
from typing import Any

import numpy as np
import pytest

from models.check import check
from models.domain import Instance
from models.goal import Goal, at_price, service_of, spent_of
from models.reductions import reduce_starts
from models.starts import all_starts
from planner.engines import interrupts
from planner.engines.assemble import cost_of
from planner.engines.base import Limits
from planner.engines.fast.within import Within
from planner.engines.schedule import Schedule
from planner.frontier.budget import solve_for
from planner.frontier.explorer import Explorer
from planner.frontier.sweep import Sweep
from planner.generate import generate
from planner.horizon import num_slots_of
from tests.engines.samples import instance_of, mode
from tests.random_instances import FAMILIES, random_instance

QUICK = Limits(time_limit_s=None, work=100)


def alike(number: int, **changes: Any) -> Instance:
    """Jobs of an hour and a GPU, on a node each at 1 USD, that cost 30 where they do not run."""
    job = {"reject_cost": 30.0, "modes": [mode(1.0, 1, "own")]}
    return instance_of([job] * number, **{"pools__0__gpus_per_node": 1, "pools__0__price": 1.0} | changes)


def full(instance: Instance, price: float) -> Schedule:
    """All jobs that find room, each where it is cheapest, at a price."""
    slots = num_slots_of(instance)
    schedule = Schedule(reduce_starts(all_starts(at_price(instance, "cost", price, slots), slots)))
    for j in range(len(instance.jobs)):
        step = schedule.cheapest(j)
        if step is not None:
            schedule.put(j, step)
    return schedule


def within(schedule: Schedule, most: float, moves: int = 0, stop: bool = False) -> Schedule | None:
    """The best found at the price that the schedule has, which spends no more than that."""
    return Within(schedule.starts, 0).run(schedule, Goal("cost", most).most, 1.0, moves, lambda: stop)


def jobs_of(schedule: Schedule | None) -> list[int]:
    """What runs in a schedule that was found."""
    assert schedule is not None
    return sorted(schedule.chosen)


@pytest.mark.parametrize("engine", ["fast", "auto"])
def test_the_budget_pays_for_some_of_those_that_are_alike(engine: str) -> None:
    """No price tells them apart: at each of them all run or none does."""
    plan = solve_for(alike(6, pools__0__nodes=6), Goal("cost", 3.0), engine, QUICK).plan
    assert len(plan.runs) == 3
    assert plan.cost == pytest.approx(3.0 + 3 * 30.0)
    assert check(alike(6, pools__0__nodes=6), plan).ok


def test_a_frontier_has_them_too() -> None:
    explorer = Explorer(alike(6, pools__0__nodes=6), "cost", "fast", QUICK)
    budgets = Sweep(explorer).run(2, [1.0, 3.0, 4.0])
    values = [row.value for row in explorer.known.rows(budgets)]
    assert values == pytest.approx([1.0 + 5 * 30.0, 3.0 + 3 * 30.0, 4.0 + 2 * 30.0])


def test_what_shares_a_node_is_given_up_together() -> None:
    """One of two on a node saves nothing; both save it. The dear pair stays."""
    jobs = [{"reject_cost": worth, "modes": [mode(1.0, 1, "own")]} for worth in (9.0, 9.0, 5.0, 5.0)]
    instance = instance_of(jobs, pools__0__gpus_per_node=2, pools__0__nodes=2, pools__0__price=2.0)
    schedule = full(instance, 1.0)
    spent = spent_of(cost_of(schedule).costs)
    assert jobs_of(within(schedule, spent / 2)) == [0, 1]


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
    assert jobs_of(within(schedule, spent / 2)) == [0, 1]
    assert jobs_of(within(schedule, 0.0)) == []


def test_what_must_run_stays() -> None:
    job = {"modes": [mode(1.0, 1, "own")]}
    instance = instance_of([job, job | {"reject_cost": 1.0}], pools__0__gpus_per_node=1, pools__0__price=1.0)
    schedule = full(instance, 1.0)
    assert within(schedule, 0.0) is None
    alone = spent_of(cost_of(schedule).costs) / 2
    assert jobs_of(within(schedule, alone)) == [0]


@pytest.mark.parametrize("price", [0.25, 1.0, 4.0])
def test_more_money_is_never_worse_and_never_exceeded(price: float) -> None:
    """Of generated jobs that may all be left out, with storage."""
    made = generate("busy", 12, 6, 1.1, 1, storage=True)
    instance = made.altered(jobs=tuple(job.model_copy(update={"reject_cost": 500.0}) for job in made.jobs))
    schedule = full(instance, price)
    before = cost_of(schedule)
    most = spent_of(before.costs)
    whole = within(schedule, most)
    assert whole is None or len(whole.chosen) >= len(schedule.chosen)
    for part in (0.0, 0.3, 0.7):
        found = within(schedule, part * most)
        assert found is not None
        costs = cost_of(found).costs
        assert spent_of(costs) <= part * most + 1e-6
        assert service_of(costs) <= 500.0 * len(instance.jobs) + 1e-6
        assert bool(found.chosen) == (part > 0)
        better = within(found, part * most, moves=300)
        assert better is None or cost_of(better).cost < cost_of(found).cost
        assert better is None or spent_of(cost_of(better).costs) <= part * most + 1e-6


@pytest.mark.parametrize("family", FAMILIES)
def test_a_search_within_a_budget_keeps_to_it_and_only_tells_of_what_is_better(family: str) -> None:
    """Whatever an instance has: power laws, rentals, caches, precedence, jobs that run already."""
    told = 0
    for seed in range(6):
        instance = random_instance(family, np.random.default_rng(seed))
        schedule = full(instance, 1.0)
        if any(job.reject_cost is None and j not in schedule.chosen for j, job in enumerate(instance.jobs)):
            continue
        costs = cost_of(schedule).costs
        for part, spending in ((0.6, 1.0), (0.9, 0.0), (1.0, 1.0), (1.0, 0.0)):
            most = part * spent_of(costs)
            found = Within(schedule.starts, seed).run(schedule, most, spending, 60, lambda: False)
            if found is None:
                continue
            told += 1
            after = cost_of(found).costs
            assert spent_of(after) <= most * (1 + 1e-9) + 1e-9, (family, seed, part)
            if part == 1.0:
                was = service_of(costs) + spending * spent_of(costs)
                assert service_of(after) + spending * spent_of(after) < was + 1e-9, (family, seed)
    assert told > 0


def test_an_exchange_finds_what_the_most_worth_for_the_money_misses() -> None:
    """Money for the job that is worth most for it, or for two others that are worth more together."""
    jobs = [
        {"reject_cost": worth, "modes": [mode(hours, 1, "own")]}
        for worth, hours in ((70.0, 6.0), (55.0, 5.0), (55.0, 5.0))
    ]
    instance = instance_of(jobs, pools__0__gpus_per_node=1, pools__0__price=1.0, pools__0__nodes=3)
    schedule = full(instance, 1.0)
    mended = within(schedule, 10.0)
    assert jobs_of(mended) == [0]
    assert mended is not None
    assert jobs_of(within(mended, 10.0, moves=100)) == [1, 2]


def test_ctrl_c_keeps_what_is_known() -> None:
    explorer = Explorer(alike(6, pools__0__nodes=6), "cost", "fast", QUICK)
    point = explorer.explore(1.0)
    assert point is not None
    with interrupts.held():
        signal.raise_signal(signal.SIGINT)
        explorer.search_within(point, 3.0, 1.0, moves=1000)
    assert explorer.interrupted
    assert [known.spent for known in explorer.known.points] == [point.spent]


def test_a_stop_leaves_it_as_it_is() -> None:
    schedule = full(alike(4, pools__0__nodes=4), 1.0)
    assert within(schedule, 2.0, stop=True) is None
    assert len(schedule.chosen) == 4
