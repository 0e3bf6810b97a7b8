"""Whom to give slack: what the counterfactual saves, by hand and in order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from models.domain import Instance, Plan
from planner.risk.lateness import completions, late_cost, tardiness_s
from planner.risk.parallel import Batch, Task, Workers
from planner.risk.replays import Replay, Setting, replay
from planner.risk.slack import SlackStudy, screening, slack_study
from tests.documents import HOUR
from tests.engines.samples import mode
from tests.risk.cases import planned, setting_of


def chain(gap: int = 0) -> tuple[Instance, Plan]:
    """Three in a row on a GPU: one without a due date, one with a light and one with a heavy one; and a fourth on
    another GPU that nobody waits for, without a due date."""
    jobs = [
        {"modes": [mode(2)]},
        {"modes": [mode(1)], "due": 3 * HOUR, "weight": 1.0},
        {"modes": [mode(1)], "due": (4 + gap) * HOUR, "weight": 10.0},
        {"modes": [mode(3)]},
    ]
    runs: Any = [
        [("own1", 0, 2, {0: [0]})],
        [("own1", 2, 3, {0: [0]})],
        [("own1", 3 + gap, 4 + gap, {0: [0]})],
        [("own1", 0, 3, {0: [1]})],
    ]
    return planned(jobs, runs, {("own", 0): [(0, 4 + gap)]})


def made(setting: Setting, number: int = 60) -> tuple[Replay, ...]:
    """Its first replays."""
    return tuple(replay(setting, r) for r in range(number))


def studied(setting: Setting, replays: tuple[Replay, ...], hours: float, candidates: int = 9) -> SlackStudy:
    """In this process."""
    with Workers(setting, 1) as workers:
        return slack_study(setting, replays, hours, candidates, lambda tasks: workers.run(tasks))


def test_slack_for_the_first_saves_what_all_behind_it_are_late_by_it() -> None:
    """In every replay by hand: completions follow from the factors, with the first job's overrun of at most an hour
    taken away."""
    setting = setting_of(*chain(), duration_error=0.5, seed=4)
    replays = made(setting)
    saved = []
    for each in replays:
        f0, f1, f2, _ = each.factors
        total = []
        for first in (f0, max(min(f0, 1.0), f0 - 0.5)):
            end1 = max(2.0, 2 * first) + f1
            end2 = max(3.0, end1) + f2
            total.append(1.0 * max(0.0, end1 - 3.0) + 10.0 * max(0.0, end2 - 4.0))
        saved.append(total[0] - total[1])
    found = {slack.job: slack for slack in studied(setting, replays, 1.0).jobs}
    assert found[0].saves.value == pytest.approx(np.mean(saved))
    assert found[0].own == 0.0
    assert found[0].behind == pytest.approx(found[0].saves.value)
    assert found[0].behind > 0
    assert set(found) == {0, 1, 2}, "nobody waits for the fourth"
    assert found[2].behind == 0.0
    assert found[2].own == pytest.approx(found[2].saves.value)
    assert found[2].own > 0


def test_more_slack_never_saves_less_with_common_random_numbers() -> None:
    """Replay by replay, for each job."""
    setting = setting_of(*chain(), duration_error=0.5, seed=4)
    replays = made(setting, 25)
    base = late_cost(setting.instance, completions(replays)).sum(axis=1)
    for j in range(3):
        before = base
        for hours in (0.1, 0.5, 2.0, 1e3):
            relief = ((j, 3600.0 * hours / setting.orders.overrun_s(j)),)
            again = tuple(replay(setting, r, relief) for r in range(25))
            now = late_cost(setting.instance, completions(again)).sum(axis=1)
            assert (now <= before + 1e-9).all()
            before = now
        overran = np.array([each.factors[j] > 1 for each in replays])
        assert [each.factors[j] for each in again] == [min(1.0, each.factors[j]) for each in replays]
        assert (before < base)[overran].any()


def test_the_screening_is_what_can_be_saved_at_most_where_plans_only_shift() -> None:
    """In every replay, for every job; with a gap before the last job it is more than can be had."""
    for gap in (0, 2):
        setting = setting_of(*chain(gap), duration_error=0.5, seed=8)
        replays = made(setting, 40)
        promised = screening(setting, replays, 0.5)
        base = late_cost(setting.instance, completions(replays)).sum(axis=1)
        for j in range(4):
            relief = ((j, 1800.0 / setting.orders.overrun_s(j)),)
            again = tuple(replay(setting, r, relief) for r in range(40))
            saved = base - late_cost(setting.instance, completions(again)).sum(axis=1)
            assert (saved <= promised[:, j] + 1e-9).all()
            if j == 2:
                assert saved == pytest.approx(promised[:, j]), "nobody is behind the last"
        assert promised[:, 3].sum() == 0.0


def test_a_successor_on_another_gpu_is_behind_too_and_all_that_is_behind_it() -> None:
    """j1 comes after j0, and j2 after j1 on its GPU; j3 has the GPU of j0."""
    jobs: list[Any] = [{"modes": [mode(2)]}, {"modes": [mode(1)], "after": ["j0"]}, *[{"modes": [mode(1)]}] * 2]
    runs: Any = [
        [("own1", 0, 2, {0: [0]})],
        [("own1", 2, 3, {0: [1]})],
        [("own1", 3, 4, {0: [1]})],
        [("own1", 2, 3, {0: [0]})],
    ]
    instance, plan = planned(jobs, runs, {("own", 0): [(0, 4)]})
    behind = setting_of(instance, plan).orders.behind(instance)
    assert behind == ({1, 2, 3}, {2}, set(), set())


def test_only_the_best_candidates_are_replayed_and_what_is_left_is_told() -> None:
    """With what the screening says of it; a stop keeps the jobs that are done."""
    setting = setting_of(*chain(), duration_error=0.5, seed=4)
    replays = made(setting)
    everything = studied(setting, replays, 1.0)
    one = studied(setting, replays, 1.0, candidates=1)
    assert (one.screened, everything.screened) == (3, 3)
    assert everything.others_at_most == 0.0
    assert [slack.saves.value for slack in everything.jobs] == sorted(
        (slack.saves.value for slack in everything.jobs), reverse=True
    )
    means = screening(setting, replays, 1.0).mean(axis=0)
    assert one.jobs[0].job == int(np.argmax(means))
    assert one.others_at_most == pytest.approx(np.sort(means)[-2])

    def stopped(tasks: Any) -> Batch:
        with Workers(setting, 1) as workers:
            return Batch(workers.run(tasks[:-1]).replays, "interrupted")

    cut = slack_study(setting, replays, 1.0, 9, stopped)
    assert cut.stopped == "interrupted"
    assert len(cut.jobs) == 2
    assert cut.others_at_most == pytest.approx(np.sort(means)[-3])


def test_no_overrun_no_slack() -> None:
    """Where estimates hold nothing is replayed again."""
    setting = setting_of(*chain())
    replays = made(setting, 3)

    def never(tasks: Any) -> Batch:
        assert not tasks
        return Batch(())

    assert slack_study(setting, replays, 1.0, 9, never).jobs == ()


def test_lost_value_is_lateness_too() -> None:
    """Of a job that is worth less when it completes later; tardiness below a microsecond is none, rejected jobs are not
    late."""
    jobs = [
        {"modes": [mode(2)], "value": [{"by": 2 * HOUR, "value": 9.0}, {"by": 3 * HOUR, "value": 4.0}]},
        {"modes": [mode(1)], "due": HOUR, "weight": 2.0, "reject_cost": 1.0},
    ]
    instance, _ = planned(jobs, [[("own1", 0, 2, {0: [0]})], None], {("own", 0): [(0, 2)]})
    times = np.array([[2 * HOUR, np.nan], [2.5 * HOUR, HOUR + 1e-7], [4 * HOUR, 2 * HOUR]])
    assert late_cost(instance, times).tolist() == [[0.0, 0.0], [5.0, 0.0], [9.0, 2.0]]
    assert tardiness_s(instance, times)[:, 1].tolist() == [0.0, 0.0, HOUR]


def test_tasks_are_those_of_the_jobs_that_overran() -> None:
    """One for each replay in which a candidate overran, with its relief."""
    setting = setting_of(*chain(), duration_error=0.5, seed=4)
    replays = made(setting, 10)
    asked: list[Task] = []

    def noted(tasks: Any) -> Batch:
        asked.extend(tasks)
        return Batch((), "interrupted")

    assert slack_study(setting, replays, 2.0, 1, noted).jobs == ()
    (job,) = {task.relief[0][0] for task in asked}
    assert {task.index for task in asked} == {r for r, each in enumerate(replays) if each.factors[job] > 1}
    assert {task.relief[0][1] for task in asked} == {2 * HOUR / setting.orders.overrun_s(job)}
