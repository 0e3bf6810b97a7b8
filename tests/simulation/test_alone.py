"""What jobs would do alone: known answers, that all at once is the least of sums, and that a plan only gets cheaper."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.domain import Instance
from planner.simulation.policies.alone import Courses
from planner.simulation.policies.menu import ModeTable
from planner.simulation.policies.retime import opened, retimed
from planner.simulation.policies.timetable import Timetable
from planner.simulation.state import Assignment, Decision, State
from tests.simulation.states import HOUR, instance_of, mode_of, on, state_of
from tests.simulation.states import faults as faults_of

HOME = {"id": "home", "kind": "on_prem", "energy_price": 1.0}
CLOUD = {"id": "cloud", "kind": "cloud", "energy_price": 1.5}
FREE = {"price": 0.0, "gpu_power": 1.0}
JOB: dict[str, Any] = {
    "modes": [{"gpu": "A", "gpus": 1, "duration": 4 * HOUR}, {"gpu": "A", "gpus": 4, "duration": 1.5 * HOUR}],
    "due": 2.25 * HOUR,
    "weight": 1000.0,
}
"""Small costs 4, large 6; small for x hours and large until due: x / 4 + (2.25 - x) / 1.5 = 1, so x = 1.2, at 5.4."""


def made(jobs: list[dict[str, Any]], pool: dict[str, Any] | None = None, **head: Any) -> Instance:
    return instance_of([FREE | (pool or {})], jobs, **({"sites": [HOME, CLOUD]} | head))


def courses(state: State) -> Courses:
    return Courses(state, ModeTable())


def together(state: State) -> list[tuple[int, int, float, float | None]] | None:
    found = courses(state).together()
    return None if found is None else [_row(a) for a in found]


def _row(a: Assignment) -> tuple[int, int, float, float | None]:
    end = None if a.end_s is None else round(a.end_s / HOUR, 6)
    return a.job, a.allocation.mode.gpus, round(a.start_s / HOUR, 6), end


def _cost(state: State, assignments: Any) -> float:
    """By the definition, without a look at the code: GPU-hours at their price, restarts, tardiness."""
    total, last, moves = 0.0, dict[int, float](), dict[int, int]()
    states = {job.job: job for job in state.jobs}
    for a in assignments:
        pool = state.instance.pools[a.allocation.mode.pool]
        total += (a.end_s - a.start_s) / HOUR * a.allocation.mode.busy_gpus * (1.5 if pool.site == "cloud" else 1.0)
        is_kept = a.job not in last and a.allocation == states[a.job].running and a.start_s <= state.now_s
        is_first = a.job not in last and not states[a.job].has_run
        moves[a.job] = moves.get(a.job, 0) + (not is_kept and not is_first)
        last[a.job] = max(last.get(a.job, 0.0), a.end_s)
    for j, end in last.items():
        record = state.instance.jobs[j]
        late = 0.0 if record.due is None else max(0.0, end - record.due)
        total += moves[j] * record.restart_cost + record.weight * late / HOUR
    return total


# --- known answers ----------------------------------------------------------------------------------------------


def test_a_job_alone_is_small_and_then_large() -> None:
    assert together(state_of(made([JOB]))) == [(0, 1, 0.0, 1.2), (0, 4, 1.2, 2.25)]
    assert together(state_of(made([JOB | {"due": 4 * HOUR}]))) == [(0, 1, 0.0, 4.0)]
    assert together(state_of(made([JOB | {"due": None, "weight": 0.0}]))) == [(0, 1, 0.0, 4.0)]
    assert together(state_of(made([JOB | {"due": HOUR}]))) == [(0, 4, 0.0, 1.5)]
    # An hour late costs 1, and an hour of being late saves 4 / 5 and less.
    assert together(state_of(made([JOB | {"weight": 0.5}]))) == [(0, 1, 0.0, 4.0)]


def test_a_change_takes_its_time_and_its_money() -> None:
    # x / 4 + (2.25 - x - 1/6) / 1.5 = 1, so x = 14/15: 1 x + 4 (2.25 - x) = 6.2, which is more than 6.
    assert together(state_of(made([JOB]), restart_s=600.0)) == [(0, 4, 0.0, 1.5)]
    # Half a minute: x = (2.25 - 1/120 - 1.5) / 0.625 at 9 - 3 x = 5.44.
    change = round((0.75 - 1 / 120) / 0.625, 6)
    assert together(state_of(made([JOB]), restart_s=30.0)) == [(0, 1, 0.0, change), (0, 4, change, 2.25)]
    assert together(state_of(made([JOB | {"restart_cost": 0.5}]))) == [(0, 1, 0.0, 1.2), (0, 4, 1.2, 2.25)]
    assert together(state_of(made([JOB | {"restart_cost": 0.7}]))) == [(0, 4, 0.0, 1.5)]


def test_a_running_job_stays_where_that_is_no_dearer() -> None:
    instance = made([JOB | {"due": 4 * HOUR}], {"nodes": 3})
    small = on(mode_of(instance, 0, 1), 2, 3)
    found = courses(state_of(instance, {0: small})).together()
    assert found is not None
    assert [a.allocation for a in found] == [small]
    lost = courses(state_of(instance, {0: small}, down=((0, 2),))).together()
    assert lost is not None
    assert lost[0].allocation.places[0].node == 0
    # It runs large and has time: to be small from now on would save 2, less what a restart costs.
    large = on(mode_of(instance, 0, 4), 1, 0, 1, 2, 3)
    assert together(state_of(instance, {0: large})) == [(0, 1, 0.0, 4.0)]
    costly = instance.altered(jobs=(instance.jobs[0].model_copy(update={"restart_cost": 3.0}),))
    assert together(state_of(costly, {0: large})) == [(0, 4, 0.0, 1.5)]


def test_a_running_job_may_go_on_and_then_be_slower() -> None:
    # A restart takes half an hour. Small at once it would be late; large throughout costs 6. Large for x hours and
    # small then: x / 1.5 + (4 - 0.5 - x) / 4 = 1, so x = 0.3 at 4 * 0.3 + 3.7 = 4.9.
    instance = made([JOB | {"due": 4 * HOUR}])
    large = on(mode_of(instance, 0, 4), 0, 0, 1, 2, 3)
    assert together(state_of(instance, {0: large}, restart_s=1800.0)) == [(0, 4, 0.0, 0.3), (0, 1, 0.3, 4.0)]


def test_work_that_is_left_counts_and_so_does_what_a_job_has_outlived() -> None:
    instance = made([JOB])
    assert together(state_of(instance, remaining={0: 0.5})) == [(0, 1, 0.0, 2.0)]
    outlived = together(state_of(instance, remaining={0: 0.0}))
    assert outlived is not None
    assert 0 < (outlived[0][3] or 0.0) < 0.1


def test_all_at_once_only_where_all_fit() -> None:
    three = [JOB | {"due": 4 * HOUR}] * 3
    one_gpu = three[0] | {"modes": [JOB["modes"][0]]}
    found = together(state_of(made(three)))
    assert found == [(j, 1, 0.0, 4.0) for j in range(3)]
    assert together(state_of(made([one_gpu] * 3, {"gpus_per_node": 2}))) is None
    # Both would be large from 1.2 on.
    assert together(state_of(made([JOB, JOB]))) is None
    assert together(state_of(made([JOB, JOB], {"nodes": 2}))) is not None
    assert together(state_of(made([JOB, JOB], {"nodes": 2}), down=((0, 1),))) is None


def test_shares_meet_on_a_gpu_up_to_its_slices_and_memory() -> None:
    share = {"modes": [{"gpu": "A", "share": 0.5, "duration": HOUR, "memory": 20}], "due": HOUR, "weight": 1.0}
    one = {"gpus_per_node": 1, "slices_per_gpu": 2, "gpu_memory": 40}
    assert together(state_of(made([share] * 2, one))) is not None
    assert together(state_of(made([share] * 3, one))) is None
    assert together(state_of(made([share] * 2, one | {"gpu_memory": 30}))) is None


def test_rented_gpus_count_at_their_price_and_only_where_they_may() -> None:
    pools = [FREE | {"gpus_per_node": 1}, FREE | {"site": "cloud", "gpus_per_node": 1}]
    two = [{"modes": [{"gpu": "A", "gpus": 1, "duration": HOUR}], "due": HOUR, "weight": 1.0}] * 2
    instance = instance_of(pools, two, sites=[HOME, CLOUD])
    # Each alone would be on the owned one, and there the second would have to wait.
    assert together(state_of(instance)) is None
    mine = state_of(instance_of(pools[:1], two[:1], sites=[HOME, CLOUD]), may_burst=False)
    assert together(mine) == [(0, 1, 0.0, 1.0)]
    rented = instance_of(pools[1:], two[:1], sites=[HOME, CLOUD])
    assert together(state_of(rented)) == [(0, 1, 0.0, 1.0)]
    assert courses(state_of(rented, may_burst=False)).together() is None


CHEAP_NIGHT = {"default": 1.0, "windows": [{"since": "01:00", "until": "05:00", "price": 0.5}]}
NOT_APT: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "a node costs": ({"price": 1.0}, {}, {}),
    "a node boots": ({"boot_time": 600.0}, {}, {}),
    "a node closes": ({"unavailable": [{"since": 90 * HOUR, "until": 91 * HOUR}]}, {}, {}),
    "cores count": ({"cpu_cores": 8}, {"modes": [{**JOB["modes"][0], "cpu_cores": 1}]}, {}),
    "memory counts": ({"ram": 64}, {"modes": [{**JOB["modes"][0], "ram": 1}]}, {}),
    "energy has hours": ({}, {}, {"sites": [HOME | {"energy_price": CHEAP_NIGHT}, CLOUD]}),
    "a gang": ({"nodes": 2}, {"modes": [{"gpu": "A", "gpus": 8, "duration": HOUR}]}, {}),
    "a deadline": ({}, {"deadline": 9 * HOUR}, {}),
    "a worth": ({}, {"utility": {"shape": "step", "worth": 9.0, "by": 2.2 * HOUR}, "reject_cost": 0.0}, {}),
    "a rejection": ({}, {"reject_cost": 5.0}, {}),
    "few changes": ({}, {"elastic": {"changes": 1}}, {}),
}


@pytest.mark.parametrize("case", NOT_APT)
def test_it_is_for_costs_of_jobs_only(case: str) -> None:
    pool, job, head = NOT_APT[case]
    instance = made([JOB | job], pool, **head)
    assert courses(state_of(instance)).together() is None
    found = courses(state_of(instance))
    plan = (Assignment(0, on(mode_of(instance, 0, 1), 0, 0), 0.0, 4 * HOUR),) if case != "a gang" else ()
    assert found.settled(plan) == plan


def test_jobs_that_may_not_be_moved_or_wait_for_others_are_left_to_the_plan() -> None:
    instance = made([JOB | {"due": 4 * HOUR}])
    here = on(mode_of(instance, 0, 4), 0, 0, 1, 2, 3)
    assert courses(state_of(instance, {0: here}, fixed=(0,))).together() is None
    line = made([JOB | {"due": 4 * HOUR}, JOB | {"after": ["job0"]}], {"nodes": 2})
    assert courses(state_of(line)).together() is None
    # When the first is complete the second is a job like any other.
    assert together(state_of(line, complete=(0,))) == [(1, 1, 0.0, 1.2), (1, 4, 1.2, 2.25)]
    # The first of two is not made slower, because the second's start is not seen here.
    plan = (Assignment(0, here, 0.0, 1.5 * HOUR),)
    assert courses(state_of(line)).settled(plan) == plan


# --- beside a plan ----------------------------------------------------------------------------------------------


def test_a_planned_job_takes_its_own_course_where_there_is_room() -> None:
    instance = made([JOB | {"due": 4 * HOUR}, JOB | {"due": 4 * HOUR}], {"nodes": 2})
    large = on(mode_of(instance, 0, 4), 0, 0, 1, 2, 3)
    plan = [
        Assignment(0, large, 0.0, 1.5 * HOUR),
        Assignment(1, on(mode_of(instance, 1, 4), 1, 0, 1, 2, 3), 0.0, 1.5 * HOUR),
    ]
    found = courses(state_of(instance)).settled(plan)
    assert sorted(_row(a) for a in found) == [(0, 1, 0.0, 4.0), (1, 1, 0.0, 4.0)]
    # On one node of two GPUs, of which the other is taken, there is none.
    narrow = made([JOB | {"due": 4 * HOUR, "modes": [JOB["modes"][0]]}] * 2, {"gpus_per_node": 1})
    plan = [
        Assignment(0, on(mode_of(narrow, 0, 1), 0, 0), 0.0, 4 * HOUR),
        Assignment(1, on(mode_of(narrow, 1, 1), 0, 0), 4 * HOUR, 8 * HOUR),
    ]
    assert list(courses(state_of(narrow)).settled(plan)) == plan


def test_what_one_leaves_another_takes() -> None:
    # The first is large for no reason; only when it is small has the second the GPUs to be in time.
    instance = made([JOB | {"due": 4 * HOUR}, JOB | {"due": 4 * HOUR, "modes": [JOB["modes"][0]]}])
    plan = [
        Assignment(0, on(mode_of(instance, 0, 4), 0, 0, 1, 2, 3), 0.0, 1.5 * HOUR),
        Assignment(1, on(mode_of(instance, 1, 1), 0, 0), 1.5 * HOUR, 5.5 * HOUR),
    ]
    found = courses(state_of(instance)).settled(plan)
    assert sorted(_row(a) for a in found) == [(0, 1, 0.0, 4.0), (1, 1, 0.0, 4.0)]


def test_a_timetable_gives_back_what_it_took() -> None:
    instance = made([JOB], {"gpus_per_node": 4})
    state = state_of(instance)
    large = mode_of(instance, 0, 4)
    table = Timetable(state)
    taken = Assignment(0, on(mode_of(instance, 0, 1), 0, 2), HOUR, 2 * HOUR)
    table.add(taken)
    assert table.fit(large, 0.0, 1.5 * HOUR) is None
    assert table.fit(large, 0.0, HOUR) == table.fit(large, 2 * HOUR, 3 * HOUR) == on(large, 0, 0, 1, 2, 3)
    assert not table.has_room(on(large, 0, 0, 1, 2, 3), 0.0, 9 * HOUR)
    table.remove(taken)
    assert table.fit(large, 0.0, 1.5 * HOUR) is not None
    endless = replace(taken, end_s=None)
    table.add(endless)
    assert table.fit(large, 90 * HOUR, 91 * HOUR) is None


# --- on generated states ----------------------------------------------------------------------------------------

HOURS = st.floats(0.2, 6.0)


@st.composite
def _states(draw: st.DrawFn) -> tuple[State, list[Assignment]]:
    """A state of jobs one after the other on a node or two, and such a plan."""
    jobs = []
    for _ in range(draw(st.integers(1, 4))):
        small, by = draw(HOURS), draw(st.floats(1.0, 5.0))
        modes = [
            {"gpu": "A", "gpus": 1, "duration": small * HOUR},
            {"gpu": "A", "gpus": 4, "duration": small * HOUR / by},
        ]
        due = draw(st.none() | HOURS.map(lambda h: h * HOUR))
        weight = 0.0 if due is None else draw(st.floats(0.0, 20.0))
        jobs.append(
            {"modes": modes, "due": due, "weight": weight, "restart_cost": draw(st.sampled_from((0.0, 0.0, 0.3)))}
        )
    instance = made(jobs, {"nodes": draw(st.integers(1, 2))})
    begun = {j: draw(st.floats(0.1, 1.0)) for j in range(len(jobs)) if draw(st.booleans())}
    running = {}
    if draw(st.booleans()):
        running[0] = on(mode_of(instance, 0, 1), 0, 0)
    state = state_of(instance, running, remaining=begun, restart_s=draw(st.sampled_from((0.0, 0.0, 300.0))))
    plan, free = [], [0.0] * instance.pools[0].nodes
    for j in range(len(jobs)):
        stays = j in running
        node = 0 if stays else draw(st.integers(0, len(free) - 1))
        size = 1 if stays else draw(st.sampled_from((1, 4)))
        there = running[j] if stays else on(mode_of(instance, j, size), node, *range(size))
        idle = state.restart_s if not stays and j in begun else 0.0
        end = free[node] + idle + begun.get(j, 1.0) * there.mode.duration_s
        plan.append(Assignment(j, there, free[node], end))
        free[node] = end
    return state, plan


@settings(max_examples=150)
@given(made_state=_states())
def test_a_plan_only_gets_cheaper_and_stays_possible(made_state: tuple[State, list[Assignment]]) -> None:
    state, plan = made_state
    assert faults_of(state, Decision(opened(plan))) == []
    timed = retimed(state, plan)
    found = courses(state).settled(timed)
    assert {a.job for a in found} == {a.job for a in plan}
    assert _cost(state, found) <= _cost(state, timed) + 1e-6
    assert faults_of(state, Decision(opened(found))) == []


@settings(max_examples=150)
@given(made_state=_states())
def test_all_at_once_is_no_dearer_than_any_plan(made_state: tuple[State, list[Assignment]]) -> None:
    state, plan = made_state
    found = courses(state).together()
    if found is None:
        return
    assert faults_of(state, Decision(opened(found))) == []
    for other in (plan, courses(state).settled(plan), retimed(state, plan)):
        assert _cost(state, found) <= _cost(state, other) + 1e-6
