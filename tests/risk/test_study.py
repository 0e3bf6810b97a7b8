"""What the replays of a plan say, where the answer is known: a lognormal, a delay that goes on, no chance at all."""

from __future__ import annotations

import json
import math
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

from models.domain import Instance, Plan
from models.errors import NoPlan
from planner.risk.parallel import Batch, Task, Workers
from planner.risk.replays import calm, replay
from planner.risk.statistics import Chance, Mean, Spread
from planner.risk.study import Ask, Risk, study
from planner.simulation.chance import Options
from tests.documents import HOUR
from tests.engines.samples import mode
from tests.risk.cases import planned, setting_of


def risk_of(case: tuple[Instance, Plan], replays: int = 400, candidates: int = 3, **options: Any) -> Risk:
    """The risk of a plan, in this process."""
    found = study(*case, Ask(Options(**options), replays=replays, candidates=candidates))
    assert found is not None
    return found


def alone(due_h: float, weight: float = 6.0) -> tuple[Instance, Plan]:
    """One job of two hours."""
    jobs = [{"modes": [mode(2)], "due": due_h * HOUR, "weight": weight}]
    return planned(jobs, [[("own1", 0, 2, {0: [0]})]], {("own", 0): [(0, 2)]})


def row(gap: int = 0, due_h: float = 4.0) -> tuple[Instance, Plan]:
    """One job of two hours without a due date, and one behind it on the GPU, so many hours after it."""
    jobs = [{"modes": [mode(2)]}, {"modes": [mode(2)], "due": due_h * HOUR, "weight": 6.0}]
    runs: Any = [[("own1", 0, 2, {0: [0]})], [("own1", 2 + gap, 4 + gap, {0: [0]})]]
    return planned(jobs, runs, {("own", 0): [(0, 4 + gap)]})


@pytest.mark.parametrize("due_h", [2.0, 2.5, 3.0])
def test_the_chance_of_one_job_is_that_of_the_lognormal(due_h: float) -> None:
    """P(2 h * exp(sigma Z) <= due) = Phi(ln(due / 2 h) / sigma), within four standard deviations of the binomial; its
    mean tardiness is the lognormal's stop-loss premium."""
    sigma, n = 0.3, 2000
    found = risk_of(alone(due_h), n, 0, duration_error=sigma, seed=5)
    normal = NormalDist()
    z = math.log(due_h / 2.0) / sigma
    expected = normal.cdf(z)
    (job,) = found.jobs
    assert job.in_time is not None
    assert abs(job.in_time.share - expected) < 4 * math.sqrt(expected * (1 - expected) / n)
    assert job.in_time.interval[0] < expected < job.in_time.interval[1]
    late_h = 2.0 * math.exp(sigma**2 / 2) * normal.cdf(sigma - z) - due_h * (1 - expected)
    assert job.tardiness_h.mean.interval is not None
    low, high = job.tardiness_h.mean.interval
    assert low < late_h < high
    assert job.late_cost.value == pytest.approx(6.0 * job.tardiness_h.mean.value)


def test_where_there_is_no_chance_all_is_as_planned() -> None:
    """To the cent, and to the last replay."""
    case = row(due_h=3.5)
    found = risk_of(case, 20)
    assert found.cost == Spread(Mean(case[1].cost, (case[1].cost, case[1].cost)), *[case[1].cost] * 3)
    assert {term: spread.mean.value for term, spread in found.terms.items()} == found.planned
    assert sum(found.undisturbed.costs) == case[1].cost
    assert [job.completion_s.p50 / HOUR for job in found.jobs] == [2.0, 4.0]
    assert found.jobs[1].in_time == Chance(0, 20)
    assert found.jobs[1].planned_tardiness_h == 0.5
    assert found.all_in_time.times == 0
    assert found.slack is not None
    assert found.slack.jobs == ()


def test_deadlines_are_judged_beside_due_dates() -> None:
    """Never missed as planned; missed in just those replays in which the job completes later."""
    jobs = [{"modes": [mode(2)], "due": 2 * HOUR, "deadline": 3 * HOUR}]
    case = planned(jobs, [[("own1", 0, 2, {0: [0]})]], {("own", 0): [(0, 2)]})
    assert risk_of(case, 10).jobs[0].before_deadline == Chance(10, 10)
    found = risk_of(case, 100, duration_error=0.5)
    in_time = sum(made.completions_s[0] <= 3 * HOUR for made in found.replays)
    assert 50 < in_time < 100
    assert found.jobs[0].before_deadline == Chance(in_time, 100)
    assert found.jobs[0].in_time == Chance(sum(made.completions_s[0] <= 2 * HOUR for made in found.replays), 100)


def test_a_delay_goes_on_to_the_job_behind_unless_there_is_a_gap() -> None:
    """Without a gap the second completes at 2 h (max(1, f0) + f1); with five hours of it the first does not matter."""
    found = risk_of(row(due_h=5.0), 300, 0, duration_error=0.4, seed=2)
    for made in found.replays:
        first, second = made.factors
        assert made.completions_s[1] == pytest.approx(HOUR * (2 * max(1.0, first) + 2 * second))
    apart = risk_of(row(5, 10.0), 300, 0, duration_error=0.4, seed=2)
    for made in apart.replays:
        assert made.completions_s[1] == pytest.approx(HOUR * (max(7.0, 2 * made.factors[0]) + 2 * made.factors[1]))
    assert apart.jobs[1].late_cost.value < found.jobs[1].late_cost.value


def test_the_worlds_of_a_seed_are_the_same_for_every_plan() -> None:
    """Common random numbers: what is drawn depends on seed and index alone; other seeds are other worlds."""
    first = [replay(setting_of(*row(), duration_error=0.4, seed=3), r).factors for r in range(6)]
    second = [replay(setting_of(*row(5), duration_error=0.4, seed=3), r).factors for r in range(6)]
    other = [replay(setting_of(*row(), duration_error=0.4, seed=4), r).factors for r in range(6)]
    assert first == second
    assert len({*first, *other}) == 12


def spot(rate: float) -> tuple[Instance, Plan]:
    """A job of four hours on a spot node, due in time, whose restart costs 3."""
    jobs = [{"modes": [mode(4, 1, "rent")], "spot": True, "restart_cost": 3.0, "due": 4 * HOUR, "weight": 1.0}]
    return planned(
        jobs, [[("rent1", 0, 4, {0: [0]})]], {("rent", 0): [(0, 4)]},
        pools__1__market="spot", pools__1__interruption_rate=rate,
    )  # fmt: skip


def test_spot_nodes_are_taken_back_at_their_rate() -> None:
    """Never at 0; at 0.5 an hour 2 times in four hours of work, each at the price of a restart; the more the later."""
    still, wild = (risk_of(spot(rate), 400, 0, restart_s=600.0, seed=1) for rate in (0.0, 0.5))
    assert still.cost.mean.value == still.plan.cost
    assert still.jobs[0].in_time == Chance(400, 400)
    number = np.array([made.interruptions for made in wild.replays])
    # Restarts take 1/6 h each, so what is interrupted lasts 4 h and a sixth of an hour for each.
    assert number.mean() == pytest.approx(2.0 / (1 - 0.5 / 6), abs=4 * number.std() / 20)
    assert wild.terms["restart"].mean.value == pytest.approx(3.0 * number.mean())
    assert wild.jobs[0].in_time == Chance(int((number == 0).sum()), 400)
    undisturbed = calm(setting_of(*spot(5.0)))
    assert undisturbed.interruptions == 0
    assert sum(undisturbed.costs) == pytest.approx(16.0)
    # Of what is expected the plan knows the restarts of the planned hours.
    assert wild.planned["interruption"] == pytest.approx(0.5 * 4 * 3.0)


def test_failures_are_counted_and_cost() -> None:
    """More failures, fewer jobs in time; the seed gives the same again."""
    few, many, again = (risk_of(row(), 100, 0, mtbf_h=mtbf, repair_h=2.0, seed=9) for mtbf in (100.0, 5.0, 5.0))
    assert sum(made.failures for made in many.replays) > sum(made.failures for made in few.replays)
    assert many.all_in_time.share < few.all_in_time.share
    assert many.replays == again.replays


def test_the_interval_of_wilson_is_his() -> None:
    """By hand for 8 of 10, and at the ends: it keeps a width where nothing ever happened."""
    low, high = Chance(8, 10).interval
    assert (low, high) == (pytest.approx(0.4901625), pytest.approx(0.9433178))
    assert Chance(0, 100).interval == (0.0, pytest.approx(0.0369935))
    assert Chance(100, 100).interval == (pytest.approx(0.9630065), 1.0)


def test_the_mean_has_an_interval_from_two_values_on() -> None:
    """1.96 standard errors about it."""
    assert Mean.of(np.array([3.0])) == Mean(3.0, None)
    made = Mean.of(np.array([1.0, 3.0]))
    assert made == Mean(2.0, (pytest.approx(2 - 1.959964), pytest.approx(2 + 1.959964)))
    assert made.less(2.0).value == 0.0
    assert Mean.of(np.full(300, 3.8)) == Mean(3.8, (3.8, 3.8))


def test_the_document_is_complete_and_plain() -> None:
    """Numbers of JSON only, and what is asked of a plan in it."""
    document = risk_of(row(), 30, 3, duration_error=0.4).document()
    text = json.dumps(document, allow_nan=False)
    assert json.loads(text) == document
    assert document["status"] == "ok"
    assert document["replays"] == document["replays_asked"] == 30
    assert document["cost"]["mean"] == pytest.approx(sum(term["mean"] for term in document["costs"].values()))
    assert document["cost"]["extra"]["mean"] == pytest.approx(document["cost"]["mean"] - document["cost"]["planned"])
    assert [job["in_time"] is None for job in document["jobs"]] == [True, False]
    assert {job["job"] for job in document["slack"]["jobs"]} == {"j0", "j1"}


@pytest.mark.parametrize("stop", ["interrupted", "worker died"])
def test_what_is_stopped_says_what_there_is(monkeypatch: pytest.MonkeyPatch, stop: Any) -> None:
    """Of the replays, and of the jobs that were tried with slack; nothing at all is told apart."""
    whole = Workers.run
    left = [12]

    def stopped(self: Workers, tasks: list[Task], *rest: Any) -> Batch:
        made = whole(self, tasks[: left[0]], *rest)
        return Batch(made.replays, stop)

    monkeypatch.setattr(Workers, "run", stopped)
    found = risk_of(row(), 40, duration_error=0.4)
    assert len(found.replays) == 12
    assert found.slack is None
    assert found.document()["status"] == {"interrupted": "interrupted", "worker died": "incomplete"}[stop]
    left[0] = 0
    ask = Ask(Options(), replays=5)
    if stop == "interrupted":
        assert study(*row(), ask) is None
    else:
        with pytest.raises(NoPlan, match="worker process died"):
            study(*row(), ask)
