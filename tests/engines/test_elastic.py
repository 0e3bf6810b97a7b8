"""Elastic jobs, end to end: the engines against every plan of tiny instances, and rules that hold of any."""

from __future__ import annotations

import itertools
import math
import random
from typing import Any

import numpy as np
import pytest

from models.check import check
from models.domain import Elastic, Instance, Plan
from models.errors import Infeasible, NoPlan
from models.starts import all_starts
from planner.engines.base import Limits
from planner.engines.replay import schedule_of
from planner.solve import solve
from tests.brute_elastic import elastic_optimum, num_plans
from tests.engines.samples import HOUR, TO_THE_END, Doc, instance_of, mode, running
from tests.random_instances import FAMILIES, random_instance

WORK = Limits(time_limit_s=None, work=150, gap=0.0, threads=1)
MOST_PLANS = 30_000


def tiny(seed: int) -> Instance:
    """Two jobs or three on two GPUs, with due dates that ask for both for a part of the time."""
    draw = random.Random(seed)
    jobs: list[Doc] = []
    for _ in range(draw.choice((1, 2))):
        hours = draw.uniform(2, 4)
        jobs.append({
            "modes": [mode(hours, 1), mode(hours / draw.choice((1.5, 2.0)), 2)],
            "due": draw.uniform(0.5, 1.0) * hours * HOUR,
            "weight": draw.choice((0.5, 3.0)),
            "restart_cost": draw.choice((0.0, 0.2)),
            "elastic": {"changes": draw.choice((0, 1, 2))},
        } | ({"reject_cost": 6.0} if draw.random() < 0.3 else {}))  # fmt: skip
    jobs.append({"modes": [mode(1, 1)], "release": draw.randint(0, 3) * HOUR, "weight": 1.0, "due": 3 * HOUR})
    if draw.random() < 0.4:
        jobs[0]["running"] = running("own1", {0: [0]}, movable=True)
    if draw.random() < 0.3:
        jobs[0]["after" if "running" not in jobs[0] else "spot"] = ["j1"] if "running" not in jobs[0] else False
    return instance_of(
        jobs, horizon=5 * HOUR, pools__0__price=draw.choice((0.0, 1.0)), pools__0__gpu_power=1.0,
        sites__0__energy_price=0.5,
    )  # fmt: skip


def some_elastic(family: str, seed: int) -> Instance:
    """A random tiny instance in which some jobs may change."""
    draw = random.Random(seed)
    instance = random_instance(family, np.random.default_rng(seed), "tiny")
    jobs = []
    for job in instance.jobs:
        changes: dict[str, Any] = {"restart_cost": draw.choice((0.0, 0.5))}
        if draw.random() < 0.6:
            changes["elastic"] = Elastic(changes=draw.choice((0, 1, 2)))
        jobs.append(job.model_copy(update=changes))
    return instance.altered(jobs=tuple(jobs))


def instances(family: str, number: int) -> list[Instance]:
    """So many that can be enumerated."""
    found: list[Instance] = []
    seed = 0
    while len(found) < number:
        instance = tiny(seed) if family == "tiny" else some_elastic(family, seed)
        if num_plans(instance, MOST_PLANS) <= MOST_PLANS:
            found.append(instance)
        seed += 1
    return found


def solved(instance: Instance, engine: str, limits: Limits) -> Plan | None:
    """The checked plan; None where there is none, which the exact engine proves."""
    try:
        plan = solve(instance, engine, limits).plan
    except Infeasible:
        return None
    except NoPlan:
        if engine == "exact":
            raise
        return None
    assert check(instance, plan).violations == ()
    return plan


@pytest.mark.parametrize("family", [*FAMILIES, "tiny"])
def test_bound_optimum_and_plan_are_in_order(family: str) -> None:
    """bound <= optimum <= plan for the fast engine, which may find none where hardly any fits; the exact one finds the
    optimum, and proves it."""
    gaps, missed = [], 0
    for k, instance in enumerate(instances(family, 30 if family == "tiny" else 12)):
        optimum = elastic_optimum(instance)
        for engine, limits in (("fast", WORK), ("exact", TO_THE_END)):
            plan = solved(instance, engine, limits)
            case = (family, k, engine)
            if engine == "fast" and optimum is not None:
                missed += plan is None
            else:
                assert (plan is None) == (optimum is None), case
            if plan is None or optimum is None:
                continue
            assert plan.dual_bound is not None
            assert plan.dual_bound <= optimum * (1 + 1e-6) + 1e-9, case
            assert plan.cost >= optimum * (1 - 1e-6) - 1e-9, case
            if engine == "exact":
                assert plan.cost == pytest.approx(optimum, rel=1e-6, abs=1e-9), case
                assert plan.dual_bound == pytest.approx(optimum, rel=1e-6, abs=1e-9), case
            else:
                gaps.append(plan.cost / optimum - 1 if optimum else 0.0)
    assert np.mean(gaps) < 0.01
    assert missed <= 1


def test_jobs_that_may_not_change_run_in_one_segment() -> None:
    """With `changes: 0` the optimum is that of the instance without `elastic`."""
    for seed in range(8):
        instance = tiny(seed)
        never = instance.altered(
            jobs=tuple(
                job if job.elastic is None else job.model_copy(update={"elastic": Elastic(changes=0)})
                for job in instance.jobs
            )
        )
        rigid = instance.altered(jobs=tuple(job.model_copy(update={"elastic": None}) for job in instance.jobs))
        one, other = solved(never, "exact", TO_THE_END), solved(rigid, "exact", TO_THE_END)
        if any(job.running is not None for job in instance.jobs):
            continue  # one that runs would have to stay
        assert one is not None
        assert other is not None
        assert one.cost == pytest.approx(other.cost, rel=1e-6), seed


def test_more_changes_and_cheaper_ones_cost_no_more() -> None:
    """The plans that are allowed grow, and cost less."""
    for seed in range(6):
        instance, costs = tiny(seed), []
        for changes, restart in ((0, 0.4), (1, 0.4), (2, 0.4), (2, 0.1), (None, 0.0)):
            update = {"elastic": Elastic(changes=changes), "restart_cost": restart}
            jobs = [job if job.elastic is None else job.model_copy(update=update) for job in instance.jobs]
            plan = solved(instance.altered(jobs=tuple(jobs)), "exact", TO_THE_END)
            costs.append(math.inf if plan is None else plan.cost)
        assert all(b <= a * (1 + 1e-6) for a, b in itertools.pairwise(costs)), (seed, costs)


def test_a_plan_of_several_segments_is_taken_up_again() -> None:
    """As a schedule over the same starts, which costs the same."""
    modes = [mode(10, 1), mode(5.5, 2)]
    instance = instance_of(
        [{"modes": modes, "due": 6 * HOUR, "weight": 100.0, "elastic": {}}],
        pools__0__price=0.0, pools__0__gpu_power=1.0, sites__0__energy_price=1.0,
    )  # fmt: skip
    plan = solved(instance, "exact", TO_THE_END)
    assert plan is not None
    assert plan.cost == pytest.approx(11.0)
    (run,) = plan.runs
    assert sorted(segment.mode for segment in run.segments) == ["own1", "own2"]
    schedule = schedule_of(plan, all_starts(instance, 6))
    assert schedule is not None
    assert schedule.chosen[0].begin == run.segments[0].start_slot
    again = solve(instance, "fast", WORK, start=plan).plan
    assert again.cost == pytest.approx(11.0)
