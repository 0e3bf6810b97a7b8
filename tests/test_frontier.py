"""Budgets and welfare: bound <= optimum <= plan against every plan there is, and the exact engine at the optimum."""

from __future__ import annotations

import math
import random
import signal
from typing import Any

import pytest

from models.check import check
from models.domain import Instance
from models.errors import Infeasible, InvalidInput, NoPlan
from models.goal import Goal, Objective, at_price, most_welfare, spending_alone, spent_of, welfare_of
from planner.engines.base import Limits, Progress
from planner.frontier.budget import solve_for
from planner.frontier.explorer import Explorer
from planner.frontier.sweep import Sweep
from planner.generate import generate
from planner.horizon import num_slots_of
from planner.solve import solve
from tests.brute import num_schedules
from tests.documents import HOUR
from tests.engines.samples import instance_of, mode
from tests.fronts import Front
from tests.random_instances import random_instance

MOST_SCHEDULES = 4000
WORK = Limits(time_limit_s=None, work=200, gap=1e-7)
SHAPES: tuple[dict[str, Any], ...] = (
    {"shape": "linear", "worth": 40.0, "full_until": 2 * HOUR, "zero_at": 8 * HOUR},
    {"shape": "step", "worth": 30.0, "by": 3 * HOUR},
    {"shape": "sigmoid", "worth": 50.0, "midpoint": 3 * HOUR, "scale": HOUR},
    {"shape": "finish_time_fairness", "worth": 20.0, "fair_time": 2 * HOUR},
)


def tiny(seed: int, objective: str) -> Instance | None:
    """A random instance whose plans can be listed; where welfare is asked for its jobs are worth something, and some
    need not run."""
    draw = random.Random(seed)
    instance = random_instance(draw.choice(("compute", "mixed", "contended", "odd")), draw, "tiny")
    if not 0 < num_schedules(instance) <= MOST_SCHEDULES:
        return None
    if objective == "cost":
        return instance
    document = instance.model_dump(mode="json", exclude_none=True, exclude={"pools", "sites"})
    jobs = [job | {"utility": draw.choice(SHAPES), "reject_cost": 1.0} for job in document["jobs"]]
    for job in jobs:
        job.pop("value", None)
        if draw.random() < 0.3:
            job.pop("reject_cost")
    changed = Instance.model_validate({**document, "jobs": jobs, "pools": instance.pools, "sites": instance.sites})
    return changed if num_schedules(changed) <= MOST_SCHEDULES else None


def budgets_of(front: Front, draw: random.Random) -> list[float]:
    """One in the middle of what plans spend, one that is what a plan spends, one below the cheapest."""
    spent = sorted({round(amount, 9) for amount, _ in front.points})
    middle = (spent[0] + spent[-1]) / 2
    return [middle, draw.choice(spent) + 1e-7, spent[0] * 0.9 - 1e-3]


def agree(seed: int, objective: Objective, engine: str) -> bool:
    """Whether there was something to compare; a difference fails."""
    instance = tiny(seed, objective)
    if instance is None:
        return False
    front = Front(instance, objective)
    if not front.points:
        return False
    for budget in budgets_of(front, random.Random(seed)):
        if budget < 0:
            continue
        optimum = front.best(budget)
        try:
            plan = solve_for(instance, Goal(objective, budget), engine, WORK).plan
        except Infeasible:
            assert optimum is None
            continue
        except NoPlan:
            assert engine == "fast"  # which may miss the few plans of a small budget, and prove nothing
            continue
        assert optimum is not None
        assert check(instance, plan).ok
        assert spent_of(plan.costs) <= budget + 1e-6
        if objective == "cost":
            value, bound = plan.cost, plan.dual_bound
        else:
            assert plan.welfare is not None
            assert plan.welfare == pytest.approx(welfare_of(instance, plan))
            value = most_welfare(instance) - plan.welfare
            bound = None if plan.welfare_bound is None else most_welfare(instance) - plan.welfare_bound
        slack = 1e-6 * (1 + abs(optimum))
        assert bound is None or bound <= optimum + slack
        assert optimum <= value + slack
        if engine == "auto":
            assert value == pytest.approx(optimum, rel=1e-5, abs=1e-5)
            assert bound == pytest.approx(optimum, rel=1e-4, abs=1e-4)
    return True


@pytest.mark.parametrize("engine", [pytest.param("auto", marks=pytest.mark.slow), "fast"])
@pytest.mark.parametrize("objective", ["cost", "welfare"])
def test_plans_and_bounds_against_all_plans(objective: Objective, engine: str) -> None:
    assert sum(agree(seed, objective, engine) for seed in range(6)) >= 1


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
@pytest.mark.parametrize("engine", ["auto", "fast"])
@pytest.mark.parametrize("objective", ["cost", "welfare"])
def test_many_plans_and_bounds_against_all_plans(objective: Objective, engine: str, part: int) -> None:
    assert sum(agree(1000 + 40 * part + k, objective, engine) for k in range(40)) >= 4


def two_jobs() -> Instance:
    """Two jobs that each take an hour of the one owned node, or of a rented one; both want to be done in an hour."""
    step = {"shape": "step", "worth": 10.0, "by": HOUR}
    job = {"due": HOUR, "weight": 8.0, "utility": step, "modes": [mode(1.0, 1, "own"), mode(1.0, 1, "rent")]}
    return instance_of([job, job | {"utility": step | {"worth": 7.0}}], pools__0__gpus_per_node=1)


def test_priced_copies_cost_what_they_say() -> None:
    """price * spent + service, term by term, of the same plan."""
    instance = two_jobs()
    plan = solve(instance).plan
    num_slots = num_slots_of(instance)
    for price in (0.0, 0.5, 3.0):
        priced = at_price(instance, "cost", price, num_slots)
        costs = check(priced, plan.model_copy(update={"instance_hash": priced.content_hash})).costs
        spent = spent_of(plan.costs)
        assert math.fsum(costs.values()) == pytest.approx(price * spent + plan.cost - spent)
        alone = check(spending_alone(instance, num_slots), plan).costs
        assert math.fsum(alone.values()) == pytest.approx(spent)


def test_the_hash_of_a_priced_copy_is_its_own() -> None:
    instance = two_jobs()
    num_slots = num_slots_of(instance)
    hashes = {at_price(instance, "cost", price, num_slots).content_hash for price in (2.0, 3.0)}
    assert len(hashes | {instance.content_hash}) == 3


def test_no_worth_no_welfare() -> None:
    with pytest.raises(InvalidInput, match="no welfare"):
        Explorer(instance_of([{"modes": [mode(1.0)]}]), "welfare")


def test_the_smallest_budget_is_named() -> None:
    instance = two_jobs()
    cheapest = Front(instance, "cost").least_spent
    with pytest.raises(Infeasible) as failure:
        solve_for(instance, Goal("cost", cheapest / 2), "auto", WORK)
    assert f"{cheapest:.10g} USD is enough" in str(failure.value.reasons[0])


def test_welfare_without_a_budget_earns_all_that_can_be_earned() -> None:
    instance = two_jobs()
    plan = solve_for(instance, Goal("welfare"), "auto", WORK).plan
    least = Front(instance, "welfare").best()
    assert least is not None
    assert plan.welfare == pytest.approx(17.0 - least)
    assert plan.welfare_bound == pytest.approx(plan.welfare)


def test_more_budget_is_never_worse() -> None:
    explorer = Explorer(two_jobs(), "welfare", "fast", WORK)
    rows = explorer.known.rows(Sweep(explorer).run(6))
    values = [row.value for row in rows if row.value is not None]
    assert len(values) == 6
    assert values == sorted(values)
    assert all(row.bound is not None and row.value is not None and row.value <= row.bound + 1e-9 for row in rows)
    assert all(row.spent is not None and row.spent <= row.budget + 1e-9 for row in rows)


def test_points_are_what_their_plans_come_to() -> None:
    """Those that were only passed on the way of a solve too."""
    passed = 0
    for price in (1.0, 3.0, 9.0):
        instance = generate("busy", 12, 6, 1.1, 1, storage=True)
        explorer = Explorer(instance, "cost", "fast", Limits(time_limit_s=None, work=100))
        found = explorer.explore(price)
        for point in explorer.known.points:
            costs = check(instance, point.plan).costs
            assert point.spent == pytest.approx(spent_of(costs))
            assert point.service == pytest.approx(math.fsum(costs.values()) - spent_of(costs), abs=1e-6)
            passed += point is not found
    assert passed


def test_the_frontier_ends_where_money_buys_nothing_more() -> None:
    """Also where the cheapest plan runs nothing and spends nothing."""
    job = {"reject_cost": 0.0, "utility": SHAPES[1] | {"worth": 5000.0}, "modes": [mode(1.0, 1, "rent")]}
    instance = instance_of([job] * 3, pools__1__price=1000.0)
    explorer = Explorer(instance, "welfare", "fast", WORK)
    rows = explorer.known.rows(Sweep(explorer).run(4))
    assert (rows[0].spent, rows[0].value) == (0.0, 0.0)
    assert rows[-1].value == pytest.approx(15_000.0)
    assert rows[-1].spent == pytest.approx(Front(instance, "welfare").spent_at_best)


def one_after_the_other() -> Instance:
    """Two jobs on one node, one of which is late: by an hour, or by as much more as the node stands free between."""
    job = {"due": HOUR, "weight": 8.0, "modes": [mode(1.0, 1, "own")]}
    return instance_of([job, job], pools__0__gpus_per_node=1, pools__0__nodes=1)


@pytest.mark.parametrize("engine", ["auto", "fast"])
def test_the_cheapest_plan_serves_as_well_as_one_can_for_so_little(engine: str) -> None:
    instance = one_after_the_other()
    front = Front(instance, "cost")
    explorer = Explorer(instance, "cost", engine, WORK)
    row = explorer.known.rows(Sweep(explorer).run(1))[0]
    assert row.spent == pytest.approx(front.least_spent)
    assert row.value == pytest.approx(front.best(front.least_spent))


def test_a_solve_begins_with_the_plan_that_it_is_given() -> None:
    """Without time for anything else it is that plan, at the prices of the solve."""
    instance = generate("busy", 12, 6, 1.1, 1, storage=True)
    known = solve(instance, "fast", Limits(time_limit_s=None, work=300)).plan
    priced = at_price(instance, "cost", 2.0, num_slots_of(instance))
    again = solve(priced, "fast", Limits(time_limit_s=None, work=0), known).plan
    assert again.cost <= known.cost + spent_of(known.costs) + 1e-6
    assert again.cost < solve(priced, "fast", Limits(time_limit_s=None, work=0)).plan.cost


def test_budgets_are_told_apart_and_enough() -> None:
    explorer = Explorer(one_after_the_other(), "cost", "fast", WORK)
    budgets = Sweep(explorer).run(8)
    assert len(set(budgets)) == len(budgets)
    assert all(row.spent is not None for row in explorer.known.rows(budgets))


def test_asked_budgets_have_dents_filled() -> None:
    """Between its corners a frontier of two jobs is all dent: no price reaches it."""
    instance = two_jobs()
    front = Front(instance, "welfare")
    explorer = Explorer(instance, "welfare", "auto", WORK)
    budgets = [front.least_spent * 0.5, 2.5, 3.5, 5.0]
    rows = explorer.known.rows(Sweep(explorer).run(8, budgets))
    assert [row.is_infeasible for row in rows] == [True, False, False, False]
    for row in rows[1:]:
        optimum = front.best(row.budget)
        assert optimum is not None
        assert row.value == pytest.approx(17.0 - optimum)
        assert row.bound == pytest.approx(17.0 - optimum, abs=1e-4)


def test_a_stop_between_solves_keeps_the_plan() -> None:
    """It comes while nothing is solved: the next solve may not forget it."""
    since = []

    def stop(progress: Progress) -> None:
        if progress.incumbent is not None:
            since.append(progress)
        if len(since) == 1:
            signal.raise_signal(signal.SIGINT)

    limits = Limits(time_limit_s=None, work=20, gap=0.0, on_progress=stop)
    plan = solve_for(two_jobs(), Goal("cost", 3.5), "fast", limits).plan
    assert plan.status == "interrupted"
    assert len(since) == 1


def test_what_has_no_plan_at_all_is_proven_so() -> None:
    """The fast engine alone proves nothing of it."""
    job = {"deadline": HOUR, "modes": [mode(1.0, 1, "own")]}
    instance = instance_of([job, job], pools__0__gpus_per_node=1, pools__0__nodes=1)
    with pytest.raises(Infeasible):
        Sweep(Explorer(instance, "cost", "fast", WORK)).run(3)
