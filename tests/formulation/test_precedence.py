"""Earliest starts and latest completions along chains: by hand, and against every order of starts that is possible."""

from __future__ import annotations

import itertools

import pytest

from models.precedence import earliest_starts, latest_completions, precedence_graph, topological_order
from models.starts import Starts, all_starts
from tests.formulation.cases import HOUR, Doc, instance_of, job
from tests.formulation.test_reductions import random_starts


def starts_of(jobs: list[Doc], slots: int = 8) -> Starts:
    """All starts of some jobs on a node with eight GPUs."""
    return all_starts(instance_of("by hand", slots, [{"gpus_per_node": 8, "nodes": 1}], jobs), slots)


def test_order_and_graph() -> None:
    jobs = [job("d", 1, after=["b", "c"]), job("b", 1, after=["a"]), job("c", 1, after=["a"]), job("a", 1)]
    instance = starts_of(jobs).instance
    assert topological_order(instance) == [3, 1, 2, 0]
    assert sorted(precedence_graph(instance).edges) == [(1, 0), (2, 0), (3, 1), (3, 2)]


def test_without_predecessors_the_order_is_that_of_the_instance() -> None:
    assert topological_order(starts_of([job("z", 1), job("a", 1), job("m", 1)]).instance) == [0, 1, 2]


def test_the_longest_chain_counts() -> None:
    jobs = [
        job("a", 1),
        job("long", 3, after=["a"]),
        job("short", 1, after=["a"]),
        job("end", 2, after=["long", "short"]),
    ]
    starts = starts_of(jobs)
    assert earliest_starts(starts) == [0, 1, 1, 4]
    assert latest_completions(starts) == [3, 6, 6, 8]


def test_releases_and_deadlines_count() -> None:
    jobs = [job("a", 1, release=2 * HOUR), job("b", 1, after=["a"], deadline=5 * HOUR), job("c", 1, after=["b"])]
    starts = starts_of(jobs)
    assert earliest_starts(starts) == [2, 3, 4]
    assert latest_completions(starts) == [4, 5, 8]


def test_the_fastest_mode_counts() -> None:
    fast = {"id": "fast", "pool": "p0", "gpus": 4, "duration": HOUR}
    first = job("a", 3)
    first["modes"].append(fast)
    starts = starts_of([first, job("b", 1, after=["a"])])
    assert earliest_starts(starts) == [0, 1]
    assert latest_completions(starts) == [7, 8]


def test_successors_that_may_be_rejected_bound_nothing() -> None:
    jobs = [job("a", 1), job("b", 4, after=["a"], reject_cost=0.0), job("c", 2, after=["a"])]
    assert latest_completions(starts_of(jobs)) == [6, 8, 8]


def test_a_job_without_starts_leaves_none_to_its_successors() -> None:
    jobs = [job("a", 9, reject_cost=1.0), job("b", 1, after=["a"], reject_cost=1.0), job("c", 1, reject_cost=1.0)]
    starts = starts_of(jobs)
    assert earliest_starts(starts)[1] == 8
    assert earliest_starts(starts)[2] == 0


def everything_possible(starts: Starts) -> list[dict[int, tuple[int, int]]]:
    """(start, completion) of each job that runs, for every choice of starts that respects the predecessors alone."""
    jobs = starts.instance.jobs
    choices: list[list[tuple[int, int] | None]] = []
    for j, record in enumerate(jobs):
        rows = [starts.rows[r] for r in starts.rows_of_job[j]]
        found: set[tuple[int, int]] = {(int(t), int(t) + row.duration) for row in rows for t in row.slots}
        choices.append([*sorted(found), *([None] if record.reject_cost is not None else [])])
    plans = []
    for plan in itertools.product(*choices):
        times = {j: times for j, times in enumerate(plan) if times is not None}
        if all(
            starts.instance.job_index[name] in times and times[starts.instance.job_index[name]][1] <= begin
            for j, (begin, _) in times.items()
            for name in jobs[j].after
        ):
            plans.append(times)
    return plans


@pytest.mark.parametrize("seed", range(25))
def test_no_possible_start_lies_outside(seed: int) -> None:
    starts = random_starts("chained", 300 + seed)
    earliest, latest = earliest_starts(starts), latest_completions(starts)
    for plan in everything_possible(starts):
        for j, (begin, end) in plan.items():
            assert earliest[j] <= begin
            assert end <= latest[j]


@pytest.mark.parametrize("seed", range(25))
def test_they_are_met_where_modes_have_one_length(seed: int) -> None:
    """With one duration a job and no gaps between its starts the first and last possible ones are found exactly."""
    starts = random_starts("chained", 300 + seed)
    rows = [[starts.rows[r] for r in indices] for indices in starts.rows_of_job]
    shortest = starts.with_rows([min(found, key=lambda row: row.duration) for found in rows if found])
    if any(len(row.slots) != row.slots[-1] - row.slots[0] + 1 for row in shortest.rows):
        pytest.skip("a job has gaps between its starts")
    possible = everything_possible(shortest)
    earliest, latest = earliest_starts(shortest), latest_completions(shortest)
    for j in {j for plan in possible for j in plan}:
        assert earliest[j] == min(plan[j][0] for plan in possible if j in plan)
        if all(record.reject_cost is None for record in shortest.instance.jobs):
            assert latest[j] == max(plan[j][1] for plan in possible if j in plan)
