"""Schedulers under a budget: their order of steps, what they may spend, and what the tables say of them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from benchmarks.elastic import HORIZON, HOUR, Elastic, mean_completion_h
from benchmarks.mixes import Mix
from benchmarks.schedulers import SCHEDULERS, Ladder, Scheduler, Shop, cached_levels, rounded_to_levels, steps_of
from benchmarks.welfare import contradictions, run
from benchmarks.welfare_tables import Found, text_of
from models.check import check
from models.domain.modes import Mode
from models.goal import spent_of, welfare_of
from models.storage.baselines import BASELINES
from models.storage.problem import CacheProblem
from models.storage.tariff import Tariff

PLENTY = 1e9


def ladder(job: int, release: float, hours: dict[int, float], fair_h: float) -> Ladder:
    """Hours by GPUs."""
    modes = tuple(
        Mode(f"{g}", 0, 1.0, g, 1, g, float(g), math.ceil(3 * h), h * HOUR, 0.0, 0.0, 0, 0.0) for g, h in hours.items()
    )
    return Ladder(job, release, modes, fair_h * HOUR)


LADDERS = (
    ladder(0, 0.0, {1: 8.0, 2: 4.5, 4: 2.5}, 4.5),  # long, scales well
    ladder(1, 0.0, {1: 2.0, 2: 1.5, 4: 1.2}, 1.5),  # short, scales badly
    ladder(2, 60.0, {2: 6.0, 4: 3.2}, 3.2),  # wide, came last
)
STEPS = {
    # Jobs 0 and 1 have a GPU each, then all have 2, and the first of equals goes on.
    "fair_share": [0, 1, 2, 0, 1, 0],
    "shortest_first": [1, 2, 0, 1, 1, 0],  # no GPUs for job 2
    # A GPU adds 0.78 to job 0, then 0.71 each; 0.44 to job 2; 0.33 to job 1.
    "marginal_throughput": [0, 1, 2, 0, 0, 1],
    # Ratios 1.88 (job 2), 1.78 (job 0) and 1.33 (job 1); then 1 (job 0).
    "ftf_greedy": [2, 0, 1, 2, 0, 1],
}


@pytest.mark.parametrize("name", SCHEDULERS)
def test_each_scheduler_has_its_order(name: str) -> None:
    assert steps_of(LADDERS, SCHEDULERS[name], 8) == STEPS[name]


def test_no_raise_takes_more_gpus_than_there_are() -> None:
    assert steps_of(LADDERS, SCHEDULERS["shortest_first"], 5) == [1, 2, 0, 1]
    assert steps_of(LADDERS, SCHEDULERS["shortest_first"], 3) == [1, 2, 0]


@pytest.fixture(scope="module")
def shop() -> Shop:
    """A tiny cluster whose cache holds a tenth of the data."""
    return Shop(Elastic(16, "completion", "power", "tight", 8, 1).make())


@pytest.mark.parametrize("name", SCHEDULERS)
def test_rivals_keep_to_the_budget_and_use_it(shop: Shop, name: str) -> None:
    scheduler, instance = Scheduler(shop, name), shop.instance
    everything = scheduler.paid(len(scheduler.steps), "threshold_shared")
    assert everything.spent > 0
    for part in (0.0, 0.4, 1.0):
        for rule in BASELINES:
            plan = scheduler.within(part * everything.spent, rule)
            assert check(instance, plan).ok
            assert plan.budget == part * everything.spent
            assert spent_of(plan.costs) <= plan.budget * (1 + 1e-6) + 1e-6
            assert plan.welfare == pytest.approx(welfare_of(instance, plan))
    assert scheduler.within(0.0, "all_bandwidth").runs == ()
    whole = scheduler.within(PLENTY, "all_bandwidth")
    assert whole.welfare is not None
    assert whole.welfare >= scheduler.lay(len(scheduler.steps)).welfare > 0
    few = scheduler.paid(2, "all_cache")
    within = scheduler.within(few.spent, "all_cache")
    assert within.welfare is not None
    assert within.welfare >= few.laid.welfare


def test_what_is_spent_is_what_the_plan_costs(shop: Shop) -> None:
    """Storage is reckoned apart from the plan, as it would take too long to make all of them."""
    scheduler = Scheduler(shop, "shortest_first")
    for rule in ("all_bandwidth", "greedy_pool"):
        paid = scheduler.paid(4, rule)
        assert spent_of(scheduler.within(paid.spent, rule).costs) == pytest.approx(paid.spent)


def test_rules_of_storage_cache_what_they_say(shop: Shop) -> None:
    schedule = Scheduler(shop, "fair_share").lay(len(shop.ladders)).schedule
    assert not any(cached_levels(shop.instance, schedule, "all_bandwidth").values())
    levels = cached_levels(shop.instance, schedule, "greedy_pool")
    gb = sum(shop.instance.datasets[d].size * level for d, level in levels.items())
    assert 0 < gb <= shop.instance.sites[0].storage.cache_capacity


def test_fractions_are_rounded_to_levels_that_fit() -> None:
    problem = CacheProblem(np.array([10.0, 20.0]), ((1.0,), (1.0,)), Tariff(), cache_capacity=18.0)
    exact = np.array([0.7, 0.5])
    assert rounded_to_levels(exact, problem, 4).tolist() == [3, 2]
    assert rounded_to_levels(exact, problem, 10).tolist() == [7, 5]
    # 4 of 4 levels of the first and 1 of the second would do as well; what loses most is rounded up first.
    assert rounded_to_levels(np.array([0.9, 0.45]), problem, 4).tolist() == [3, 2]


def test_average_completion_time_is_welfare_turned_round(shop: Shop) -> None:
    instance = shop.instance
    left = [(HORIZON - job.release) / HOUR for job in instance.jobs]
    scheduler = Scheduler(shop, "shortest_first")
    everything = scheduler.paid(len(scheduler.steps), "all_cache").spent
    seen = set()
    for part in (0.0, 0.3, 0.6, 1.0):
        plan = scheduler.within(part * everything, "all_cache")
        expected = (math.fsum(left) - welfare_of(instance, plan)) / len(left)
        assert mean_completion_h(instance, plan) == pytest.approx(expected)
        seen.add(round(expected, 3))
    assert len(seen) > 2


def test_both_kinds_have_the_same_jobs() -> None:
    one, other = (Elastic(16, kind, "list", "half", 1, 3).make() for kind in ("welfare", "completion"))
    assert [(job.id, job.release, job.modes) for job in one.jobs] == [
        (job.id, job.release, job.modes) for job in other.jobs
    ]
    asked = sum(reader.gpus for reader in Mix(32, "mixed", "list", "half", 3).readers())
    assert asked == 32


def test_a_rival_above_the_bound_is_told() -> None:
    record = run(Elastic(16, "welfare", "list", "half", 1, 1), "fast", 0.3, (2.0,))
    (entry,) = record["budgets"]
    assert len(entry["rivals"]) == len(SCHEDULERS) * len(BASELINES)
    assert contradictions(record) == []
    entry["rivals"]["fair_share+uniform"]["welfare"] = entry["ours"]["bound"] * 1.01
    (told,) = contradictions(record)
    assert "fair_share+uniform" in told


def made_up(kind: str, ours: Found, rivals: dict[str, Found]) -> dict[str, Any]:
    """A record with a single budget; rivals that are not named come to half of ours, in twice the time."""
    half = {"welfare": ours["welfare"] / 2, "mean_h": ours["mean_h"] * 2}
    others = {f"{name}+{rule}": half for name in SCHEDULERS for rule in BASELINES} | rivals
    entry = {"part": 0.5, "ours": {**ours, "gap": 0.01}, "rivals": others}
    return {"kind": kind, "node": 1, "gpus": 50, "most_welfare": 100.0, "time_limit_s": 1.0, "budgets": [entry]}


def test_tables_count_where_a_rival_is_better() -> None:
    ours = {"welfare": 60.0, "mean_h": 5.0}
    better, worse = {"welfare": 80.0, "mean_h": 4.0}, {"welfare": 20.0, "mean_h": 10.0}
    rivals = {f"{name}+{rule}": worse for name in SCHEDULERS for rule in BASELINES}
    for kind, shown in (("welfare", "3.00"), ("completion", "50.0%")):
        text = text_of([made_up(kind, ours, rivals)], "made")
        assert "better than ours in 0 of 1 cases" in text
        assert "against the best rival: 1 of 1 at 50%" in text
        assert f"| 1 | 50 | 50% | 1 | 60.0% | 1.00% | 1.00% | {shown} | {shown} | {shown} | 1 of 1 |" in text
    for kind, shown in (("welfare", "0.75"), ("completion", "-25.0%")):
        text = text_of([made_up(kind, ours, {"ftf_greedy+uniform": better})], "made")
        assert "better than ours in 1 of 1 cases" in text
        assert "against the best rival: 0 of 1 at 50%" in text
        assert f"| 1 | ftf_greedy | {shown} | {shown} | {shown} | 0 of 1 |" in text
