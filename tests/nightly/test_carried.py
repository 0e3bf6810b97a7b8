"""The last plan on tonight's grid: what still holds is where it was, the rest is placed anew, all of it is checked."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from models.check import check
from models.domain import Instance, Plan
from models.errors import Infeasible, NoPlan
from planner.engines.base import Limits
from planner.nightly.carried import Carried, carried
from planner.nightly.now import read_now
from planner.solve import solve
from tests.documents import HOUR
from tests.engines.samples import TO_THE_END, instance_of, mode, share
from tests.nightly.courses import plan as plan_by_hand
from tests.nightly.courses import stretch
from tests.nightly.nights import FEW, JOBS, START, Cluster, state_of
from tests.random_instances import FAMILIES, random_instance


def instance_after(folder: Path, plan: Plan, number: float, jobs: list[dict[str, Any]], **changes: Any) -> Instance:
    """The instance so many hours later, where all went by the plan."""
    state = changes.pop("state", {})
    cluster = Cluster(folder, jobs, **changes)
    at = START + timedelta(hours=number)
    return read_now(cluster.instance, cluster.say(at.isoformat(), **(state_of(plan, at) | state))).instance


def checked(found: Carried | None, instance: Instance) -> Carried:
    """A plan that was carried over, and passes."""
    assert found is not None
    assert check(instance, found.plan).violations == ()
    return found


def clock(plan: Plan) -> dict[str, Any]:
    """Where and when each job runs and completes."""
    return {
        run.job: [(s.mode, s.pool, s.end, [(p.node, p.gpus) for p in s.places]) for s in run.segments]
        for run in plan.runs
    }


@pytest.mark.parametrize("number", [0, 1, 2, 3, 4])
def test_what_goes_by_the_plan_stays_in_it(tmp_path: Path, number: int) -> None:
    first = solve(instance_of(JOBS, horizon="auto"), "fast", FEW).plan
    now = instance_after(tmp_path, first, number, JOBS)
    found = checked(carried(first, now), now)
    assert found.placed == ()
    assert clock(found.plan) == {job: where for job, where in clock(first).items() if job in now.job_index}
    assert found.is_kept_by(found.plan)


def test_a_moment_within_a_slot_moves_what_waits_to_the_next_edge(tmp_path: Path) -> None:
    jobs = [{"modes": [mode(2)]}, {"modes": [mode(2)]}]
    first = solve(instance_of(jobs, horizon="auto"), "fast", FEW).plan
    shifted = first.model_copy(update={"runs": tuple(later(run, 2) for run in first.runs)})
    now = instance_after(tmp_path, shifted, 0.5, jobs)
    found = checked(carried(shifted, now), now)
    assert {run.segments[0].start for run in found.plan.runs} == {(START + timedelta(hours=2.5)).isoformat()}


def later(run: Any, number: float) -> Any:
    """A run so many hours later."""

    def moved(moment: str) -> str:
        return (datetime.fromisoformat(moment) + timedelta(hours=number)).isoformat()

    segments = tuple(s.model_copy(update={"start": moved(s.start), "end": moved(s.end)}) for s in run.segments)
    return run.model_copy(update={"segments": segments, "completion": moved(run.completion)})


def test_what_is_new_or_no_longer_fits_is_placed_anew(tmp_path: Path) -> None:
    first = solve(instance_of(JOBS, horizon="auto"), "fast", FEW).plan
    down = {"down": [{"pool": "own", "nodes": [0], "until": "5h"}]}
    now = instance_after(tmp_path, first, 0, [*JOBS, {"modes": [mode(1)]}], state=down)
    found = checked(carried(first, now), now)
    assert set(found.placed) >= {"j0", "j1", "j4"}
    assert not found.is_kept_by(found.plan)


def test_a_job_that_was_rejected_stays_so(tmp_path: Path) -> None:
    jobs = [*JOBS[:3], {"modes": [mode(2)], "reject_cost": 0.0}]
    first = solve(instance_of(jobs, horizon="auto"), "exact", TO_THE_END).plan
    assert first.rejected == ("j3",)
    now = instance_after(tmp_path, first, 1, jobs)
    found = checked(carried(first, now), now)
    assert found.plan.rejected == ("j3",)
    assert found.is_kept_by(found.plan)


def test_predecessors_still_come_first(tmp_path: Path) -> None:
    """The first of the two takes longer than planned, so the second cannot keep its time."""
    jobs = [{"modes": [mode(2)]}, {"modes": [mode(1)], "after": ["j0"]}]
    first = solve(instance_of(jobs, horizon="auto"), "fast", FEW).plan
    state = state_of(first, START + timedelta(hours=1))
    state["running"][0]["remaining"] = 1.0
    now = instance_after(tmp_path, first, 1, jobs, state=state)
    found = checked(carried(first, now), now)
    assert found.placed == ("j1",)


def test_a_place_that_another_still_has_is_given_up(tmp_path: Path) -> None:
    """The first takes longer than planned; the second was to follow on its node, and takes the other one."""
    jobs = [{"modes": [mode(2)]}, {"modes": [mode(2)]}]
    one_gpu_each: dict[str, Any] = {"pools__0__gpus_per_node": 1, "pools__0__nodes": 2}
    last = plan_by_hand(0, {"j0": [stretch(0, 2)], "j1": [stretch(2, 4)]})
    state = state_of(last, START + timedelta(hours=1))
    state["running"][0]["remaining"] = 1.0
    now = instance_after(tmp_path, last, 1, jobs, state=state, **one_gpu_each)
    found = checked(carried(last, now), now)
    assert found.placed == ("j1",)
    assert [[place.node for place in run.segments[0].places] for run in found.plan.runs] == [[0], [1]]


def test_a_job_that_must_run_and_finds_no_place_is_not_carried(tmp_path: Path) -> None:
    jobs = [{"modes": [mode(2)], "deadline": 5 * HOUR}]
    first = solve(instance_of(jobs, horizon="auto"), "fast", FEW).plan
    now = instance_after(tmp_path, first, 0, jobs, state={"down": [{"pool": "own", "until": "90h"}]})
    assert carried(first, now) is None


def test_shares_of_gpus_keep_theirs(tmp_path: Path) -> None:
    jobs = [{"modes": [share(4, 0.5)]} for _ in range(5)]
    changes: dict[str, Any] = {"pools__0__slices_per_gpu": 2}
    first = solve(instance_of(jobs, horizon="auto", **changes), "fast", FEW).plan
    now = instance_after(tmp_path, first, 2, jobs, **changes)
    found = checked(carried(first, now), now)
    assert found.placed == ()
    assert clock(found.plan) == clock(first)


def test_an_elastic_job_goes_on_as_it_was_to(tmp_path: Path) -> None:
    """Two GPUs are less efficient than one, and one is too slow: it changes on the way."""
    jobs = [{"modes": [mode(8), mode(5, 2)], "elastic": {}, "deadline": 7 * HOUR}]
    changes: dict[str, Any] = {"horizon": 8 * HOUR, "pools__0__price": [2, 2, 2, 2, 2, 2, 1, 1]}
    changes |= {"pools__0__gpus_per_node": 1, "pools__0__nodes": 2}
    first = solve(instance_of(jobs, **changes), "exact", Limits(time_limit_s=None, threads=1)).plan
    (run,) = first.runs
    assert [segment.mode for segment in run.segments] == ["own1", "own2"]
    cluster = Cluster(tmp_path, jobs, **changes)
    for number in (0, 3):
        state: dict[str, Any] = {}
        if number:
            places = [place.model_dump() for place in run.segments[0].places]
            row = {"job": "j0", "mode": "own1", "pool": "own", "places": places, "movable": True}
            state = {"running": [row | {"remaining": 1 - number / 8}]}
        at = (START + timedelta(hours=number)).isoformat()
        now = read_now(cluster.instance, cluster.say(at, **state)).instance
        found = checked(carried(first, now), now)
        assert found.placed == ()
        assert [segment.kept for segment in found.plan.runs[0].segments] == [number > 0, False]
        assert clock(found.plan) == clock(first)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("seed", range(3))
def test_any_plan_is_carried_to_its_own_moment(family: str, seed: int) -> None:
    """Of random instances of every kind: nothing has passed, so all that does not run already is as it was."""
    instance = random_instance(family, np.random.default_rng(40_000 + seed))
    try:
        first = solve(instance, "fast", Limits(time_limit_s=None, work=30, threads=1)).plan
    except (Infeasible, NoPlan):
        return
    found = carried(first, instance)
    if any(job.running is not None for job in instance.jobs):
        assert found is None or check(instance, found.plan).violations == ()
        return
    made = checked(found, instance)
    assert made.placed == ()
    assert (made.plan.runs, made.plan.rejected) == (first.runs, first.rejected)
    assert made.plan.cost == pytest.approx(first.cost)
