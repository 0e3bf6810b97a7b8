"""What every engine keeps to, whatever it does inside."""

from __future__ import annotations

import dataclasses
import math
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

from models.check import check
from models.check.report import OPTIMAL_GAP
from models.domain import Instance, Plan
from models.errors import Infeasible, NoPlan
from models.formulation import build_model
from models.starts import all_starts
from planner.engines.base import Limits, Progress, Solution
from planner.engines.exact import _are_plans
from planner.engines.highs import Answer, Compiled
from planner.engines.search import Search
from planner.io.plans import plan_bytes
from planner.solve import ENGINES, solve, versions
from tests.engines.samples import HOUR, TO_THE_END, Doc, instance_of, mode, running, segment, spans
from tests.random_instances import FAMILIES, random_instance

every_engine = pytest.mark.parametrize("engine", ENGINES)

LATE: Doc = {"modes": [mode(2, 2), mode(2, 2, "rent")], "due": 2 * HOUR, "weight": 1.5}
TWO_HOURS: Doc = {"modes": [mode(2)]}


def assert_honest(instance: Instance, solution: Solution, limits: Limits) -> Plan:
    """Everything that a solution claims, held against the instance and against itself."""
    plan = solution.plan
    assert check(instance, plan).violations == ()
    assert plan.seed == limits.seed
    assert plan.versions == versions()
    assert plan.engine in ("list", "fast", "exact")
    assert plan.instance_hash == instance.content_hash
    assert {run.job for run in plan.runs} | set(plan.rejected) == {job.id for job in instance.jobs}
    slack = 1e-6 * max(1.0, plan.cost)
    assert plan.dual_bound is not None
    assert 0.0 <= plan.dual_bound <= plan.cost + slack
    if plan.cost > 0:
        assert plan.gap == pytest.approx((plan.cost - plan.dual_bound) / plan.cost, abs=1e-9)
    else:
        assert plan.gap == 0.0
    if plan.status == "optimal":
        assert plan.cost - plan.dual_bound <= min(limits.gap, OPTIMAL_GAP) * plan.cost + slack
    assert_monotone(solution.trajectory, plan)
    return plan


def assert_monotone(trajectory: tuple[Progress, ...], plan: Plan) -> None:
    """The incumbent never rises, the bound never falls, neither is forgotten, and the last ones are the plan's."""
    slack = 1e-6 * max(1.0, plan.cost)
    incumbent, bound, elapsed = math.inf, -math.inf, 0.0
    for progress in trajectory:
        now = math.inf if progress.incumbent is None else progress.incumbent
        known = -math.inf if progress.dual_bound is None else progress.dual_bound
        assert now <= incumbent + slack
        assert known >= bound - slack
        assert known <= now + slack
        assert progress.elapsed_s >= elapsed
        incumbent, bound, elapsed = now, known, progress.elapsed_s
    assert trajectory
    assert incumbent == pytest.approx(plan.cost, rel=1e-6, abs=1e-6)


def honest_plan(engine: str, instance: Instance, limits: Limits = TO_THE_END) -> Plan:
    """The plan of an engine, after everything it claims was looked at."""
    return assert_honest(instance, solve(instance, engine, limits), limits)


# --- instances at the edge -------------------------------------------------------------------------------


@every_engine
@pytest.mark.parametrize("horizon", [6 * HOUR, "auto"])
def test_no_jobs(engine: str, horizon: Any) -> None:
    plan = honest_plan(engine, instance_of([], horizon=horizon))
    assert (plan.cost, plan.dual_bound, plan.gap, plan.status) == (0.0, 0.0, 0.0, "optimal")
    assert (plan.runs, plan.nodes_on, plan.cached, plan.bandwidth) == ((), (), (), ())


@every_engine
def test_one_job(engine: str) -> None:
    plan = honest_plan(engine, instance_of([TWO_HOURS]))
    assert plan.cost == pytest.approx(2.0)


@every_engine
def test_a_job_that_cannot_meet_its_deadline_is_named_with_the_hours_that_it_lacks(engine: str) -> None:
    instance = instance_of([TWO_HOURS, {"modes": [mode(3.5)], "deadline": 2 * HOUR}])
    with pytest.raises(Infeasible) as verdict:
        solve(instance, engine, TO_THE_END)
    # 3.5 h are four slots, two more than the deadline leaves.
    assert any(
        "j1" in reason.jobs and "deadline" in str(reason) and "2 h" in reason.amount for reason in verdict.value.reasons
    )
    assert not any("j0" in reason.jobs for reason in verdict.value.reasons)


@every_engine
def test_jobs_that_stand_in_each_others_way(engine: str) -> None:
    """A heuristic cannot prove it; it must not claim a plan either."""
    job: Doc = {"modes": [mode(2, 2)], "deadline": 2 * HOUR}
    with pytest.raises((Infeasible, NoPlan)) as verdict:
        solve(instance_of([job, job]), engine, TO_THE_END)
    if engine != "fast":
        assert isinstance(verdict.value, Infeasible)
    if isinstance(verdict.value, Infeasible):
        # One more node, or one of them 2 h later, or one left out.
        reasons = {str(reason) for reason in verdict.value.reasons}
        assert "nodes of pool own: 1 more" in reasons
        assert any("2 h later" in reason for reason in reasons)


@every_engine
def test_no_time_at_all(engine: str) -> None:
    limits = Limits(time_limit_s=0.0)
    plan = honest_plan(engine, instance_of([LATE] * 3), limits)
    assert plan.engine != "exact"
    # What is not found in no time is not found, and not said to be impossible.
    job: Doc = {"modes": [mode(2, 2)], "deadline": 2 * HOUR}
    with pytest.raises(NoPlan, match="--time-limit"):
        solve(instance_of([job, job]), engine, limits)


def no_list_finds_it() -> Instance:
    """Feasible, but j0, which is first by every order, is cheapest where alone j1 can run."""
    # j0 from 2 h on costs 1 + 1 and 1.5 h of delay at 0.1; j1 needs the slots 2-3 or 3-4.
    first: Doc = {"modes": [mode(2, 2)], "due": 2.5 * HOUR, "weight": 0.1}
    second: Doc = {"modes": [mode(2, 2)], "release": 2 * HOUR, "deadline": 5 * HOUR}
    return instance_of([first, second], pools__0__price=[9, 9, 1, 1, 9, 9])


@every_engine
def test_a_plan_that_no_list_finds(engine: str) -> None:
    # j0 at once for 9 + 9, j1 from 2 h on for 1 + 1.
    plan = honest_plan(engine, no_list_finds_it())
    assert plan.cost == pytest.approx(20.0)


@every_engine
def test_all_prices_zero(engine: str) -> None:
    jobs = [LATE | {"weight": 0.0}] * 3
    plan = honest_plan(engine, instance_of(jobs, pools__0__price=0.0, pools__1__price=0.0))
    assert (plan.cost, plan.dual_bound, plan.gap, plan.status) == (0.0, 0.0, 0.0, "optimal")


@every_engine
def test_everything_identical(engine: str) -> None:
    # Eight GPUs for eight jobs, or fewer nodes in turn: 16 GPU-hours at 0.5.
    plan = honest_plan(engine, instance_of([TWO_HOURS] * 8, pools__0__nodes=4))
    assert plan.cost == pytest.approx(8.0)
    assert plan.status == "optimal"


@every_engine
def test_all_due_at_once(engine: str) -> None:
    # Nobody can be in time: owned at once 2 h late, and after that 4 h late; or rented at once.
    jobs = [{"modes": [mode(2, 2), mode(2, 2, "rent")], "due": 0.0, "weight": 1.0}] * 3
    plan = honest_plan(engine, instance_of(jobs))
    # 2 + 2 each owned, in turn: 6 of the node, 2 + 4 + 6 late = 18. With one rented for 8: 4 + 2 + 4 + 8 + 2 = 20.
    assert plan.cost >= 18.0 - 1e-6
    if engine != "fast":
        assert plan.cost == pytest.approx(18.0)


@every_engine
def test_the_horizon_just_fits(engine: str) -> None:
    plan = honest_plan(engine, instance_of([{"modes": [mode(2, 2)]}] * 3))
    assert sorted(spans(plan).values()) == [(0, 2), (2, 4), (4, 6)]
    assert plan.cost == pytest.approx(6.0)


@every_engine
def test_no_capacity_for_hours(engine: str) -> None:
    closed = [{"since": 0.0, "until": 3 * HOUR}, {"since": 5 * HOUR, "until": 6 * HOUR}]
    plan = honest_plan(engine, instance_of([TWO_HOURS] * 2, pools__0__unavailable=closed))
    assert set(spans(plan).values()) == {(3, 5)}


@every_engine
def test_a_pool_without_nodes(engine: str) -> None:
    either: Doc = {"modes": [{"id": "any", "gpu": "A", "gpus": 1, "duration": 2 * HOUR}]}
    instance = instance_of([either], pools__1__nodes=0, pools__1__gpu="A", pools__1__price=0.0)
    assert segment(honest_plan(engine, instance), "j0").pool == "own"


@every_engine
def test_everything_rejected(engine: str) -> None:
    plan = honest_plan(engine, instance_of([TWO_HOURS | {"reject_cost": 0.0}] * 2))
    assert (plan.rejected, plan.cost, plan.status) == (("j0", "j1"), 0.0, "optimal")


@every_engine
def test_an_open_horizon(engine: str) -> None:
    instance = instance_of([{"modes": [mode(20, 2)]}] * 2, horizon="auto")
    plan = honest_plan(engine, instance)
    assert plan.num_slots >= 40
    assert plan.cost == pytest.approx(40.0)


def test_an_unknown_engine_is_refused() -> None:
    with pytest.raises(ValueError, match="none of auto, exact, fast"):
        solve(instance_of([]), "slow")


# --- claims ----------------------------------------------------------------------------------------------


@every_engine
@pytest.mark.parametrize("family", FAMILIES)
def test_claims_of_random_plans(engine: str, family: str) -> None:
    plans = 0
    for seed in range(1000, 1006):
        instance = random_instance(family, np.random.default_rng(seed))
        # What is infeasible, or not found by a list, claims nothing; test_agreement holds it against the oracle.
        with suppress(Infeasible, NoPlan):
            honest_plan(engine, instance, Limits(gap=0.0, seed=seed, threads=1))
            plans += 1
    assert plans >= 4


@every_engine
@pytest.mark.parametrize("family", FAMILIES)
def test_the_same_seed_gives_the_same_plan(engine: str, family: str) -> None:
    instance = random_instance(family, np.random.default_rng(1000))
    limits = Limits(time_limit_s=None, gap=0.0, seed=7)
    assert plan_bytes(solve(instance, engine, limits).plan) == plan_bytes(solve(instance, engine, limits).plan)


@every_engine
def test_a_wide_gap_is_reached_but_is_not_optimal(engine: str) -> None:
    """The gap asked for ends the search; only a plan that is within 0.01 % of its bound is called optimal."""
    # The list finds 15 and proves 6, a gap of 60 %.
    limits = Limits(time_limit_s=None, gap=0.7)
    plan = honest_plan(engine, instance_of([LATE] * 3), limits)
    assert plan.gap is not None
    assert OPTIMAL_GAP < plan.gap <= 0.7
    assert plan.status == "feasible"


@every_engine
def test_progress_is_told_as_it_is_kept(engine: str) -> None:
    told: list[Progress] = []
    limits = dataclasses.replace(TO_THE_END, on_progress=told.append)
    solution = solve(instance_of([LATE] * 3), engine, limits)
    assert tuple(told) == solution.trajectory
    assert all(isinstance(progress.phase, str) and progress.phase for progress in told)


def test_a_bound_that_was_shown_is_not_taken_back() -> None:
    """HiGHS shows lower bounds again where it starts anew."""
    search = Search(all_starts(instance_of([TWO_HOURS]), 6), TO_THE_END)
    for bound in (1.0, 1.5, 1.2):
        search.report("HiGHS", 2.0, bound)
    assert [progress.dual_bound for progress in search.trajectory] == [1.0, 1.5, 1.5]


@pytest.mark.parametrize(
    ("storage", "expected"),
    [
        ({"tariff": [{"per_mb_s": 0.01}]}, True),
        ({"power": {"factor": 0.1, "exponent": 1.0, "up_to": 400.0}}, True),
        ({"power": {"factor": 0.1, "exponent": 0.5, "up_to": 400.0}}, False),
    ],
)
def test_what_a_plan_costs_by_chords_is_not_shown_as_its_cost(storage: Doc, expected: bool) -> None:
    """With an index for every node the incumbents of HiGHS are plans, and cost what it says but for power laws."""
    starts = all_starts(instance_of([TWO_HOURS], sites__0__storage=storage), 6)
    pools = frozenset(range(len(starts.instance.pools)))
    assert _are_plans(build_model(starts, pools), starts, pools) == expected
    assert not _are_plans(build_model(starts), starts, frozenset())


def test_what_only_counts_nodes_is_not_shown_as_a_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    """While the nodes of one pool have an index in the model, and those of the other do not, HiGHS finds no plans."""
    # In both pools 4 and 7 of ten GPUs are taken on two nodes for 2 h, so that 7 more fit by the sums alone; j4 begins
    # after 2 h, 2 h late: 2 * 2 + 2 * 2 for the four, 2 for j4, and 2 * 10.
    jobs: list[Doc] = [
        {
            "modes": [mode(2, gpus, pool)],
            "running": running(f"{pool}{gpus}", {node: list(range(gpus))}, pool),
        }
        for pool in ("own", "rent")
        for node, gpus in ((0, 4), (1, 7))
    ]
    jobs.append({"modes": [mode(2, 7), mode(2, 7, "rent")], "due": 2 * HOUR, "weight": 10.0})
    ten = {"nodes": 2, "price": 1.0, "gpus_per_node": 10}
    instance = instance_of(jobs, **{f"pools__{p}__{name}": value for p in (0, 1) for name, value in ten.items()})
    solve_mip = Compiled.solve

    def solve_and_tell(self: Compiled, **options: Any) -> Answer:
        answer = solve_mip(self, **options)
        if options.get("on_progress"):
            options["on_progress"](answer.objective, answer.dual_bound)  # as HiGHS does at times just before its end
        return answer

    monkeypatch.setattr(Compiled, "solve", solve_and_tell)
    plan = honest_plan("exact", instance)
    assert plan.cost == pytest.approx(4 + 4 + 2 + 20)
