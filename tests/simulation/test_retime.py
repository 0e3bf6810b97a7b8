"""Times made exact: known answers, and that they never cost more than the plan's own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.domain import Instance
from models.domain.modes import Mode, modes_of
from planner.simulation.policies import retime
from planner.simulation.policies.planned import SLOTS, slot_of
from planner.simulation.policies.remaining import remaining_of
from planner.simulation.state import Assignment, State
from tests.simulation.states import HOUR, instance_of, mode_of, on, state_of


def retimed(state: State, plan: list[Assignment]) -> tuple[Assignment, ...]:
    return retime.opened(retime.retimed(state, plan))


ENERGY = [{"id": "home", "kind": "on_prem", "energy_price": 1.0}, {"id": "cloud", "kind": "cloud"}]
FREE = {"price": 0.0, "gpu_power": 1.0}
"""A pool whose nodes cost nothing, and whose busy GPUs 1 an hour."""
JOB = {
    "modes": [{"gpu": "A", "gpus": 1, "duration": 4 * HOUR}, {"gpu": "A", "gpus": 4, "duration": 1.5 * HOUR}],
    "due": 2.25 * HOUR,
    "weight": 1000.0,
}
"""Small costs 4, large 6. Small for x hours and large until it is due: x / 4 + (2.25 - x) / 1.5 = 1, so x = 1.2."""


def made(jobs: list[dict[str, Any]], pool: dict[str, Any] | None = None, **head: Any) -> Instance:
    return instance_of([FREE | (pool or {})], jobs, sites=ENERGY, **head)


def small_then_large(instance: Instance, j: int = 0, switch_s: float = HOUR, node: int = 0) -> list[Assignment]:
    small, large = on(mode_of(instance, j, 1), node, 0), on(mode_of(instance, j, 4), node, 0, 1, 2, 3)
    return [Assignment(j, small, 0.0, switch_s), Assignment(j, large, switch_s)]


def times(assignments: tuple[Assignment, ...]) -> list[tuple[int, float, float | None]]:
    return [
        (a.job, round(a.start_s / HOUR, 6), None if a.end_s is None else round(a.end_s / HOUR, 6)) for a in assignments
    ]


def test_a_job_is_small_for_as_long_as_its_due_date_allows() -> None:
    instance = made([JOB])
    found = retimed(state_of(instance), small_then_large(instance))
    assert times(found) == [(0, 0.0, 1.2), (0, 1.2, None)]


def test_a_restart_takes_its_time_from_the_work() -> None:
    # x / 4 + (2.25 - x - 1/6) / 1.5 = 1 where the change takes ten minutes, so x = 14/15.
    instance = made([JOB])
    found = retimed(state_of(instance, restart_s=600.0), small_then_large(instance))
    assert times(found) == [(0, 0.0, round(14 / 15, 6)), (0, round(14 / 15, 6), None)]


def test_a_job_that_stays_needs_no_restart_and_one_that_was_stopped_does() -> None:
    instance = made([JOB])
    plan = small_then_large(instance)
    stays = state_of(instance, {0: plan[0].allocation}, restart_s=600.0)
    assert times(retimed(stays, plan))[0] == (0, 0.0, round(14 / 15, 6))
    waits = state_of(instance, remaining={0: 1.0}, restart_s=600.0)
    # (x - 1/6) / 4 + (2.25 - x - 1/6) / 1.5 = 1, so x = (25/18 - 1/24 - 1) / (5/12) = 5/6.
    assert times(retimed(waits, plan))[0] == (0, 0.0, round(5 / 6, 6))


def test_what_is_not_needed_is_left_out() -> None:
    instance = made([JOB | {"due": 5 * HOUR}])
    assert times(retimed(state_of(instance), small_then_large(instance))) == [(0, 0.0, None)]
    late = made([JOB | {"due": 0.5 * HOUR}])
    found = retimed(state_of(late), small_then_large(late))
    assert [(a.start_s, a.allocation.mode.gpus) for a in found] == [(0.0, 4)]


def test_one_waits_for_the_other_on_its_gpus() -> None:
    # Small for x hours the first costs 6 - x / 2 and ends at 1.5 + 5/8 x: it keeps the second waiting for it where an
    # hour of that costs less than 0.8.
    other = {"modes": [{"gpu": "A", "gpus": 4, "duration": HOUR}], "due": HOUR, "weight": 0.7}
    instance = made([JOB, other])
    plan = [*small_then_large(instance), Assignment(1, on(mode_of(instance, 1, 4), 0, 0, 1, 2, 3), 3 * HOUR)]
    assert times(retimed(state_of(instance), plan)) == [(0, 0.0, 1.2), (0, 1.2, None), (1, 2.25, None)]
    eager = made([JOB, other | {"weight": 0.9}])
    plan = [*small_then_large(eager), Assignment(1, on(mode_of(eager, 1, 4), 0, 0, 1, 2, 3), 3 * HOUR)]
    assert times(retimed(state_of(eager), plan)) == [(0, 0.0, None), (1, 1.5, None)]
    # Where it comes first, the large part begins when it ends.
    plan = [
        *small_then_large(instance, switch_s=2 * HOUR),
        Assignment(1, on(mode_of(instance, 1, 4), 0, 0, 1, 2, 3), 0),
    ]
    plan[0] = replace(plan[0], start_s=HOUR)
    assert times(retimed(state_of(instance), plan))[0] == (1, 0.0, None)
    assert min(start for job, start, _ in times(retimed(state_of(instance), plan)) if job == 0) == 1.0


def test_shares_that_meet_in_the_plan_may_meet() -> None:
    jobs = [{"modes": [{"gpu": "A", "share": 0.5, "duration": h * HOUR}], "due": HOUR, "weight": 1.0} for h in (2, 1)]
    instance = made(jobs, {"slices_per_gpu": 2})
    modes = [_only_mode(instance, 0), _only_mode(instance, 1)]
    plan = [Assignment(0, on(modes[0], 0, 0), 0.0), Assignment(1, on(modes[1], 0, 0), HOUR)]
    assert sorted(retimed(state_of(instance), plan), key=lambda a: a.job) == [replace(a, start_s=0.0) for a in plan]
    whole = made([jobs[0], {"modes": [{"gpu": "A", "gpus": 1, "duration": HOUR}], "due": HOUR, "weight": 1.0}])
    plan = [Assignment(0, on(_only_mode(whole, 0), 0, 0), 0.0), Assignment(1, on(mode_of(whole, 1, 1), 0, 0), 2 * HOUR)]
    assert times(retimed(state_of(whole), plan)) == [(0, 0.0, None), (1, 2.0, None)]


def _only_mode(instance: Instance, j: int) -> Mode:
    return modes_of(instance, instance.jobs[j])[0]


def test_nothing_runs_on_into_a_window() -> None:
    window = {"unavailable": [{"since": 1.1 * HOUR, "until": 1.2 * HOUR}], "nodes": 1}
    instance = made([JOB], window)
    plan = small_then_large(instance)
    plan[1] = replace(plan[1], start_s=1.5 * HOUR)
    found = times(retimed(state_of(instance), plan))
    # Small until the window, then large from its end on: later than 1.2 hours, so that it is late; no earlier start.
    assert found == [(0, 0.0, 1.1), (0, 1.2, None)]


def test_a_start_stays_where_its_price_is() -> None:
    tariff = {"default": 1.0, "windows": [{"since": "19:10", "until": "23:00", "price": 9.0}]}
    sites = [{"id": "home", "kind": "on_prem", "energy_price": tariff}, {"id": "cloud", "kind": "cloud"}]
    instance = instance_of([FREE], [JOB | {"due": None, "weight": 0.0}], sites=sites)
    # From 18:00 on, 70 minutes are cheap, and then nothing is before 23:00.
    plan = [
        Assignment(0, on(mode_of(instance, 0, 1), 0, 0), 0.0, HOUR),
        Assignment(0, on(mode_of(instance, 0, 1), 0, 0), 6 * HOUR),
    ]
    assert times(retimed(state_of(instance), plan)) == [(0, 0.0, round(70 / 60, 6)), (0, 5.0, None)]


def test_a_deadline_holds_and_a_utility_is_not_put_off() -> None:
    free = JOB | {"due": None, "weight": 0.0}
    for extra, last in (({"deadline": 2.25 * HOUR}, 1.2), ({}, None)):
        instance = made([free | extra])
        found = times(retimed(state_of(instance), small_then_large(instance)))
        assert found[0] == (0, 0.0, last)
    worth = {"utility": {"shape": "step", "worth": 9.0, "by": 2.2 * HOUR}, "reject_cost": 0.0}
    instance = made([free | worth])
    found = times(retimed(state_of(instance), small_then_large(instance)))
    # Planned: an hour small is a quarter, the rest takes 1.125 hours large; it is complete at 2.125, and stays so.
    assert found == [(0, 0.0, 1.0), (0, 1.0, None)]


def test_rent_is_for_no_more_increments_than_planned() -> None:
    cloud = [ENERGY[0], ENERGY[1] | {"energy_price": 1.0}]
    pools = [{"site": "cloud", "price": 2.0, "billing_increment": HOUR, "gpu_power": 1.0}]
    instance = instance_of(pools, [JOB | {"due": 3.4 * HOUR}], sites=cloud)
    # An hour small, 1.125 hours large: paid for three hours, so x / 4 + (3 - x) / 1.5 = 1.
    assert times(retimed(state_of(instance), small_then_large(instance))) == [(0, 0.0, 2.4), (0, 2.4, None)]
    # On a node that is on already since half an hour, 2.5 of the three are left.
    state = replace(state_of(instance, now_s=0.5 * HOUR), on_since_s={(0, 0): 0.0})
    plan = [replace(a, start_s=a.start_s + 0.5 * HOUR) for a in small_then_large(instance)]
    plan[0] = replace(plan[0], end_s=1.5 * HOUR)
    assert times(retimed(state, plan))[0] == (0, 0.5, round(0.5 + (2.5 / 1.5 - 1) / (5 / 12), 6))


def test_where_no_times_exist_the_plan_stays() -> None:
    window = {"unavailable": [{"since": 2 * HOUR, "until": 9 * HOUR}], "nodes": 1}
    instance = made([{"modes": [{"gpu": "A", "gpus": 1, "duration": 2 * HOUR}]}], window)
    plan = [Assignment(0, on(mode_of(instance, 0, 1), 0, 0), 0.0)]
    late = state_of(instance, remaining={0: 1.0}, restart_s=600.0)
    assert retimed(late, plan) == tuple(plan)
    assert retimed(late, []) == ()


@settings(max_examples=60)
@given(data=st.data())
def test_it_never_costs_more(data: st.DataObject) -> None:
    hours = st.floats(0.2, 6.0)
    jobs = []
    for _ in range(data.draw(st.integers(1, 4))):
        small, by = data.draw(hours), data.draw(st.floats(1.0, 4.0))
        jobs.append(
            {
                "modes": [
                    {"gpu": "A", "gpus": 1, "duration": small * HOUR},
                    {"gpu": "A", "gpus": 4, "duration": small * HOUR / by},
                ],
                "due": data.draw(hours) * HOUR,
                "weight": data.draw(st.floats(0.0, 20.0)),
            }
        )
    instance = made(jobs, {"nodes": data.draw(st.integers(1, 2))})
    # Each job takes its turn on a node, in slots of ten minutes.
    plan: list[Assignment] = []
    free = [0.0] * instance.pools[0].nodes
    for j in range(len(jobs)):
        node = data.draw(st.integers(0, len(free) - 1))
        own = small_then_large(instance, j, node=node)
        first_s = 600.0 * data.draw(st.integers(1, int(own[0].allocation.mode.duration_s // 600) + 1))
        left = 1.0 - first_s / own[0].allocation.mode.duration_s
        pieces = [replace(own[0], start_s=free[node], end_s=free[node] + first_s if left > 1e-6 else None)]
        end = free[node] + first_s
        if left > 1e-6:
            pieces.append(replace(own[1], start_s=end))
            end += left * own[1].allocation.mode.duration_s
        free[node] = 600.0 * -(-end // 600.0)
        plan += pieces
    state = state_of(instance)
    found = retimed(state, plan)
    assert _cost(state, found) <= _cost(state, plan) + 1e-6
    assert _clash(state, found) is None


def _spans(state: State, assignments: Any) -> list[tuple[Assignment, float, float]]:
    left = {job.job: job.remaining for job in state.jobs}
    spans = []
    for a in assignments:
        seconds = a.allocation.mode.duration_s
        end = min(a.start_s + left[a.job] * seconds, a.end_s if a.end_s is not None else 1e18)
        left[a.job] -= (end - a.start_s) / seconds
        spans.append((a, a.start_s, end))
    assert all(rest <= 1e-6 for rest in left.values())
    return spans


def _cost(state: State, assignments: Any) -> float:
    total, ends = 0.0, dict[int, float]()
    for a, start, end in _spans(state, assignments):
        total += a.allocation.mode.gpus * (end - start) / HOUR
        ends[a.job] = max(ends.get(a.job, 0.0), end)
    jobs = state.instance.jobs
    return total + sum(jobs[j].weight * max(0.0, end - (jobs[j].due or 0.0)) / HOUR for j, end in ends.items())


def _clash(state: State, assignments: Any) -> tuple[int, int] | None:
    spans = _spans(state, assignments)
    for i, (a, a_start, a_end) in enumerate(spans):
        for b, b_start, b_end in spans[i + 1 :]:
            gpus = [{(p.node, gpu) for p in x.allocation.places for gpu in p.gpus} for x in (a, b)]
            if gpus[0] & gpus[1] and min(a_end, b_end) - max(a_start, b_start) > 1e-3:
                return a.job, b.job
    return None


def test_slots_are_no_more_than_needed() -> None:
    jobs = [{"modes": [{"gpu": "A", "gpus": 1, "duration": HOUR}], "due": days * 24 * HOUR} for days in (1, 30)]
    near, far = made(jobs[:1]), made(jobs)
    assert slot_of(state_of(near)) == 600.0
    assert slot_of(state_of(far)) % 600.0 == 0
    assert SLOTS / 2 < 30 * 24 * HOUR / slot_of(state_of(far)) <= SLOTS * 1.1


def test_free_changes_leave_the_modes_on_the_hull() -> None:
    # GPUs over speed: 2 GPUs are above the line from 1 GPU to 4, so taking turns between those is no dearer.
    three = [{"gpu": "A", "gpus": n, "duration": h * HOUR} for n, h in ((1, 4.0), (2, 3.9), (4, 1.5))]
    instance = made([{"modes": three}])
    state = state_of(instance)
    assert sorted(m.gpus or 0 for m in remaining_of(state, 600.0, elastic=True).instance.jobs[0].modes) == [1, 4]
    assert len(remaining_of(state, 600.0).instance.jobs[0].modes) == 3
    costly = replace(state, restart_s=60.0)
    assert len(remaining_of(costly, 600.0, elastic=True).instance.jobs[0].modes) == 3
    runs = state_of(instance, {0: on(mode_of(instance, 0, 2), 0, 0, 1)})
    assert sorted(m.gpus or 0 for m in remaining_of(runs, 600.0, elastic=True).instance.jobs[0].modes) == [1, 2, 4]


@pytest.mark.parametrize("elastic", [False, True])
def test_the_time_of_a_restart_is_worth_gpus_and_tardiness(elastic: bool) -> None:
    instance = made([JOB | {"restart_cost": 2.0}, JOB | {"due": None, "weight": 0.0}])
    left = remaining_of(state_of(instance, restart_s=1800.0), 600.0, elastic=elastic).instance
    # Half an hour of the cheapest mode, at 1, and of being late, at 1000.
    assert left.jobs[0].restart_cost == pytest.approx(2.0 + 0.5 + 500.0)
    assert left.jobs[1].restart_cost == pytest.approx(0.5)
    fixed = remaining_of(state_of(instance, fixed=(0,), restart_s=1800.0), 600.0, elastic=elastic).instance
    assert fixed.jobs[0].restart_cost == 2.0
    free = remaining_of(state_of(instance), 600.0, elastic=elastic).instance
    assert [job.restart_cost for job in free.jobs] == [2.0, 0.0]
    # Of a job that may only stay where it is, in a rented place, what else it might do is nothing.
    rented = made([JOB | {"modes": JOB["modes"][:1]}], {"site": "cloud"})
    there = {0: on(mode_of(rented, 0, 1), 0, 0)}
    stays = remaining_of(state_of(rented, there, restart_s=1800.0, may_burst=False), 600.0, elastic=elastic).instance
    assert stays.jobs[0].restart_cost == pytest.approx(500.0)
