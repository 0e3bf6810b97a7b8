"""A plan carried out, by hand: at its times, in its order, and what is done when it cannot be so."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from models.check.replay import replay as check_of
from models.domain import Instance, Plan
from planner.risk.replays import TERMS, calm, replay
from planner.simulation.chance import Chance, Options
from planner.simulation.policies.followed import Followed
from planner.simulation.policies.itinerary import itinerary_of
from planner.simulation.run import simulate
from planner.simulation.trace import Trace
from tests.documents import HOUR
from tests.engines.samples import mode, running, share
from tests.risk.cases import planned, setting_of, solved

CASES = settings(max_examples=60)


def followed(case: tuple[Instance, Plan], *, early: bool = False, **options: Any) -> Trace:
    """What comes of a plan in a world; the check has passed it."""
    instance, plan = case
    policy = Followed(itinerary_of(instance, plan), early)
    trace = simulate(instance, policy, Options(asks_at_start=True, **options)).trace
    assert check_of(instance, trace) == ()
    return trace


def spans(trace: Trace) -> list[tuple[str, float, float]]:
    """Job, begin and end of each stretch, in hours, in order of their ends."""
    return [(s.job, round(s.start_s / HOUR, 6), round(s.end_s / HOUR, 6)) for s in trace.stretches]


Fate = Callable[..., None]


@pytest.fixture
def fate(monkeypatch: pytest.MonkeyPatch) -> Fate:
    """Say what is drawn: factors by job, and of nodes the hours from one failure (or loss of a spot node) to the
    next."""

    def say(factors: dict[int, float] | None = None, losses: dict[tuple[int, int], list[float]] | None = None) -> None:
        given = {node: iter(waits) for node, waits in (losses or {}).items()}
        monkeypatch.setattr(Chance, "factor", lambda _, j: (factors or {}).get(j, 1.0))
        monkeypatch.setattr(Chance, "wait_s", lambda _, node: HOUR * next(given.get(node, iter(())), 1e6))

    return say


ONE = [{"modes": [mode(2)]}]


def test_a_job_starts_when_it_is_planned_to_and_no_earlier() -> None:
    """Although its GPU is free from the start; the node is on as planned, and the cost is the plan's."""
    case = planned(ONE, [[("own1", 3, 5, {0: [1]})]], {("own", 0): [(3, 5)]})
    trace = followed(case)
    assert spans(trace) == [("j0", 3.0, 5.0)]
    assert [(p.start_s / HOUR, p.end_s / HOUR) for p in trace.powers] == [(3.0, 5.0)]
    assert trace.cost == case[1].cost == 2.0


def test_it_may_start_early_where_that_is_said() -> None:
    """As soon as there is room, in the order of the plan: the second still waits for the first."""
    runs: Any = [[("own1", 3, 5, {0: [1]})], [("own1", 6, 8, {0: [1]})]]
    trace = followed(planned(ONE * 2, runs, {("own", 0): [(3, 8)]}), early=True)
    assert spans(trace) == [("j0", 0.0, 2.0), ("j1", 2.0, 4.0)]


ROW: Any = [[("own1", 0, 2, {0: [0]})], [("own1", 2, 4, {0: [0]})], [("own1", 5, 7, {0: [0]})]]


def test_what_is_late_shifts_what_is_behind_it_and_no_more(fate: Fate) -> None:
    """Half an hour late, so the next one is; an hour of slack before the third takes it up."""
    fate({0: 1.25})
    case = planned(ONE * 3, ROW, {("own", 0): [(0, 7)]})
    assert spans(followed(case)) == [("j0", 0.0, 2.5), ("j1", 2.5, 4.5), ("j2", 5.0, 7.0)]


def test_what_is_done_early_brings_nothing_forward(fate: Fate) -> None:
    """Starts are kept; the node goes off when the last is done, and not when it was planned to."""
    fate({0: 0.5, 2: 0.75})
    trace = followed(planned(ONE * 3, ROW, {("own", 0): [(0, 7)]}))
    assert spans(trace) == [("j0", 0.0, 1.0), ("j1", 2.0, 4.0), ("j2", 5.0, 6.5)]
    assert [(p.start_s / HOUR, p.end_s / HOUR) for p in trace.powers] == [(0.0, 6.5)]


def test_delays_go_on_through_predecessors_and_the_order_on_a_gpu_is_kept(fate: Fate) -> None:
    """j1 waits for its predecessor on another GPU; j2, planned after j1 on the same GPU, waits for it although the GPU
    is free; j3 on yet another GPU waits for nobody."""
    fate({0: 2.0})
    jobs = [*ONE, {"modes": [mode(1)], "after": ["j0"]}, {"modes": [mode(1)]}, {"modes": [mode(1)]}]
    runs: Any = [
        [("own1", 0, 2, {0: [0]})],
        [("own1", 2, 3, {0: [1]})],
        [("own1", 3, 4, {0: [1]})],
        [("own1", 2, 3, {1: [0]})],
    ]
    trace = followed(planned(jobs, runs, {("own", 0): [(0, 4)], ("own", 1): [(2, 3)]}, pools__0__nodes=2))
    assert spans(trace) == [("j3", 2.0, 3.0), ("j0", 0.0, 4.0), ("j1", 4.0, 5.0), ("j2", 5.0, 6.0)]


def test_a_node_boots_before_what_is_planned_there_and_stays_on_over_a_gap() -> None:
    """Half an hour of boot in the slot before; two runs with an hour between them in one interval."""
    jobs = [{"modes": [mode(1, 1, "rent")], "release": HOUR}, {"modes": [mode(1, 1, "rent")]}]
    runs: Any = [[("rent1", 1, 2, {0: [0]})], [("rent1", 3, 4, {0: [0]})]]
    case = planned(jobs, runs, {("rent", 0): [(0, 4)]}, pools__1__boot_time=1800.0)
    trace = followed(case)
    assert spans(trace) == [("j0", 1.0, 2.0), ("j1", 3.0, 4.0)]
    assert all(stretch.work_s == stretch.start_s for stretch in trace.stretches)
    assert [(p.start_s / HOUR, p.end_s / HOUR) for p in trace.powers] == [(0.0, 4.0)]
    assert trace.cost == case[1].cost == 16.0


def test_a_node_boots_before_the_first_job_has_arrived() -> None:
    """Nobody is there at the start, and the node is on from then, so that the job is not late."""
    jobs = [{"modes": [mode(1, 1, "rent")], "release": HOUR}]
    case = planned(jobs, [[("rent1", 1, 2, {0: [0]})]], {("rent", 0): [(0, 2)]}, pools__1__boot_time=HOUR)
    made = calm(setting_of(*case))
    assert made.completions_s == (2 * HOUR,)
    assert sum(made.costs) == case[1].cost == 8.0


def test_a_rented_node_is_paid_for_longer_where_the_job_takes_longer(fate: Fate) -> None:
    """Two hours are two increments, two and a half are three."""
    fate({0: 1.25})
    case = planned(
        [{"modes": [mode(2, 1, "rent")]}], [[("rent1", 0, 2, {0: [0]})]], {("rent", 0): [(0, 2)]},
        pools__1__billing_increment=HOUR,
    )  # fmt: skip
    assert case[1].cost == 8.0
    assert followed(case).costs["rental"] == pytest.approx(12.0)


def test_from_a_node_that_fails_a_job_goes_to_one_that_nobody_needs(fate: Fate) -> None:
    """Node 0 fails at 1 h with half of the work done. Node 1 is planned for j1 from 2 h on, node 2 for nobody: that is
    where it goes, for the hour that is left and ten minutes of restart."""
    fate(losses={(0, 0): [1.0]})
    runs: Any = [[("own2", 0, 2, {0: [0, 1]})], [("own2", 2, 4, {1: [0, 1]})]]
    case = planned([{"modes": [mode(2, 2)]}] * 2, runs, {("own", 0): [(0, 2)], ("own", 1): [(2, 4)]}, pools__0__nodes=3)
    trace = followed(case, mtbf_h=50.0, restart_s=600.0)
    assert [(s.job, s.places[0].node) for s in trace.stretches] == [("j0", 0), ("j0", 2), ("j1", 1)]
    assert spans(trace) == [("j0", 0.0, 1.0), ("j0", 1.0, pytest.approx(2.166667)), ("j1", 2.0, 4.0)]


def test_a_job_that_is_elsewhere_keeps_nobody_waiting_and_no_node_on(fate: Fate) -> None:
    """j0, which takes nine hours for six, leaves node 0 for node 1 at 1 h. Node 0 is repaired at 1.5 h and off until j1
    starts there as planned. At 8 h j0 loses node 1, too, finds its own in use and goes to node 2."""
    fate({0: 1.5}, {(0, 0): [1.0], (0, 1): [8.0]})
    jobs = [{"modes": [mode(6, 2)]}, {"modes": [mode(3, 2)]}]
    runs: Any = [[("own2", 0, 6, {0: [0, 1]})], [("own2", 7, 10, {0: [0, 1]})]]
    case = planned(jobs, runs, {("own", 0): [(0, 6), (7, 10)]}, pools__0__nodes=3)
    trace = followed(case, mtbf_h=50.0, repair_h=0.5)
    assert sorted((s.job, s.places[0].node, s.start_s / HOUR, s.end_s / HOUR) for s in trace.stretches) == [
        ("j0", 0, 0.0, 1.0),
        ("j0", 1, 1.0, 8.0),
        ("j0", 2, 8.0, 9.0),
        ("j1", 0, 7.0, 10.0),
    ]
    assert [(p.start_s / HOUR, p.end_s / HOUR) for p in trace.powers if p.node == 0] == [(0.0, 1.0), (7.0, 10.0)]


def test_where_no_node_is_free_it_waits_for_the_repair_and_those_behind_it_wait_too(fate: Fate) -> None:
    """Node 1 is busy; node 0 is back after two hours."""
    fate(losses={(0, 0): [1.0]})
    runs: Any = [[("own2", 0, 2, {0: [0, 1]})], [("own2", 0, 6, {1: [0, 1]})], [("own2", 2, 4, {0: [0, 1]})]]
    jobs = [{"modes": [mode(hours, 2)]} for hours in (2, 6, 2)]
    case = planned(jobs, runs, {("own", 0): [(0, 4)], ("own", 1): [(0, 6)]}, pools__0__nodes=2)
    trace = followed(case, mtbf_h=50.0, repair_h=2.0)
    assert sorted(spans(trace)) == [("j0", 0.0, 1.0), ("j0", 3.0, 4.0), ("j1", 0.0, 6.0), ("j2", 4.0, 6.0)]


def test_a_gang_that_loses_a_node_goes_to_two_that_are_free(fate: Fate) -> None:
    """Both of its nodes are left."""
    fate(losses={(0, 1): [1.0]})
    case = planned(
        [{"modes": [mode(2, 4)]}], [[("own4", 0, 2, {0: [0, 1], 1: [0, 1]})]],
        {("own", 0): [(0, 2)], ("own", 1): [(0, 2)]}, pools__0__nodes=3,
    )  # fmt: skip
    trace = followed(case, mtbf_h=50.0)
    assert [[place.node for place in s.places] for s in trace.stretches] == [[0, 1], [0, 2]]
    assert spans(trace) == [("j0", 0.0, 1.0), ("j0", 1.0, 2.0)]


def test_a_spot_node_that_is_taken_back_is_rented_anew_at_once(fate: Fate) -> None:
    """What is done is kept; the restart costs what the job says."""
    fate(losses={(1, 0): [0.5, 1.0]})
    case = planned(
        [{"modes": [mode(2, 1, "rent")], "spot": True, "restart_cost": 0.5}],
        [[("rent1", 0, 2, {0: [0]})]], {("rent", 0): [(0, 2)]},
        pools__1__market="spot", pools__1__interruption_rate=0.1,
    )  # fmt: skip
    trace = followed(case)
    assert spans(trace) == [("j0", 0.0, 0.5), ("j0", 0.5, 1.5), ("j0", 1.5, 2.0)]
    assert trace.costs["restart"] == 1.0
    assert case[1].costs["interruption"] == pytest.approx(0.1 * 2 * 0.5)
    assert trace.costs["interruption"] == 0.0, "that was its expectation"


def test_who_is_late_does_not_run_into_a_window_where_there_is_another_node(fate: Fate) -> None:
    """Node 0 is closed from 4 h on: planned to be done by then, and late. On node 1 it takes as long as it needs;
    where there is no node 1 it starts nevertheless, is stopped, and goes on afterwards."""
    fate({0: 1.5})
    jobs = [{"modes": [mode(2, 2)]}, {"modes": [mode(2, 2)]}]
    runs: Any = [[("own2", 0, 2, {0: [0, 1]})], [("own2", 2, 4, {0: [0, 1]})]]
    for nodes, expected in ((2, [("j0", 0, 3), ("j1", 3, 5)]), (1, [("j0", 0, 3), ("j1", 3, 4), ("j1", 6, 7)])):
        windows = [{"since": 4 * HOUR, "until": 6 * HOUR, "nodes": [0]}]
        case = planned(jobs, runs, {("own", 0): [(0, 4)]}, pools__0__nodes=nodes, pools__0__unavailable=windows)
        assert spans(followed(case)) == expected


def test_shares_of_a_gpu_do_not_wait_for_each_other(fate: Fate) -> None:
    """Two at a time as planned; the third has the place of the first, and waits for it alone."""
    fate({0: 1.5, 1: 2.0})
    jobs = [{"modes": [share(2, 0.5)]}, {"modes": [share(4, 0.5)]}, {"modes": [share(1, 0.5)]}]
    runs: Any = [[("share 0.5", 0, 2, {0: [0]})], [("share 0.5", 1, 5, {0: [0]})], [("share 0.5", 2, 3, {0: [0]})]]
    trace = followed(planned(jobs, runs, {("own", 0): [(0, 5)]}, pools__0__slices_per_gpu=2))
    assert spans(trace) == [("j0", 0.0, 3.0), ("j2", 3.0, 4.0), ("j1", 1.0, 9.0)]


def test_jobs_that_run_already_stay_or_move_as_planned() -> None:
    """The first stays; the second is stopped, and starts elsewhere an hour later."""
    jobs = [
        {"modes": [mode(2)], "running": running("own1", {0: [0]})},
        {"modes": [mode(2)], "running": running("own1", {0: [1]}, movable=True), "restart_cost": 0.5},
    ]
    runs: Any = [[("own1", 0, 2, {0: [0]})], [("own1", 1, 3, {0: [1]})]]
    case = planned(jobs, runs, {("own", 0): [(0, 3)]})
    trace = followed(case)
    assert spans(trace) == [("j1", 0.0, 0.0), ("j0", 0.0, 2.0), ("j1", 1.0, 3.0)]
    assert trace.costs["restart"] == case[1].costs["restart"] == 0.5
    assert trace.cost == case[1].cost


def test_rejected_jobs_are_not_run() -> None:
    """At their price, and whoever is behind them is not kept waiting."""
    case = planned([{"modes": [mode(1)], "reject_cost": 7.0}, *ONE], [None, [("own1", 0, 2, {0: [0]})]],
                   {("own", 0): [(0, 2)]})  # fmt: skip
    trace = followed(case)
    assert trace.rejected == ("j0",)
    assert trace.cost == case[1].cost == 9.0


def test_a_job_that_runs_and_may_not_be_moved_can_be_rejected_nevertheless() -> None:
    """It is stopped at once, and never started again."""
    jobs = [{"modes": [mode(1)], "running": running("own1", {0: [0]}), "reject_cost": 7.0}, *ONE]
    trace = followed(planned(jobs, [None, [("own1", 0, 2, {0: [0]})]], {("own", 0): [(0, 2)]}))
    assert spans(trace) == [("j0", 0.0, 0.0), ("j1", 0.0, 2.0)]
    assert trace.rejected == ("j0",)
    assert trace.cost == 9.0


def test_an_elastic_job_changes_when_it_has_had_the_time_of_a_segment(fate: Fate) -> None:
    """Half on one GPU in two hours, a pause of an hour, the rest on two in one: 25 % longer, all of that in the last
    mode: 40 % are done in the first, and 60 % of two hours and a half are an hour and a half."""
    jobs = [{"modes": [mode(4, 1), mode(2, 2)], "elastic": {}, "restart_cost": 0.25}]
    runs: Any = [[("own1", 0, 2, {0: [0]}), ("own2", 3, 4, {0: [0, 1]})]]
    case = planned(jobs, runs, {("own", 0): [(0, 4)]})
    trace = followed(case)
    assert spans(trace) == [("j0", 0.0, 2.0), ("j0", 3.0, 4.0)]
    assert trace.cost == case[1].cost
    fate({0: 1.25})
    late = followed(case)
    assert spans(late) == [("j0", 0.0, 2.0), ("j0", 3.0, 4.5)]
    assert late.stretches[0].work == pytest.approx(0.4)


def test_an_interruption_does_not_give_a_segment_its_time_again(fate: Fate) -> None:
    """Two hours on one GPU, of which one is before the node is lost and one after its repair; then on two GPUs, half an
    hour late."""
    fate(losses={(0, 0): [1.0]})
    jobs = [{"modes": [mode(4, 1), mode(2, 2)], "elastic": {}}]
    case = planned(jobs, [[("own1", 0, 2, {0: [0]}), ("own2", 2, 3, {0: [0, 1]})]], {("own", 0): [(0, 3)]})
    trace = followed(case, mtbf_h=50.0, repair_h=0.5)
    assert spans(trace) == [("j0", 0.0, 1.0), ("j0", 1.5, 2.5), ("j0", 2.5, 3.5)]
    assert [stretch.mode for stretch in trace.stretches] == ["own1", "own1", "own2"]


def readers(cap: float, **changes: Any) -> tuple[Instance, Plan]:
    """Two that read 10 MB/s each and do not overlap, on GPUs of their own: 15 MB/s are bought for both."""
    jobs = [{"modes": [mode(2, read_rate=10.0)], "dataset": "data"}] * 2
    runs: Any = [[("own1", 0, 2, {0: [0]})], [("own1", 2, 4, {0: [1]})]]
    storage = {"tariff": [{"per_mb_s": 0.01}], "billed": 10 * HOUR}
    return planned(
        jobs, runs, {("own", 0): [(0, 4)]}, bandwidth=[("home", cap)], sites__0__storage=storage, **changes
    )  # fmt: skip


def test_who_reads_waits_for_bandwidth_and_storage_costs_what_is_planned(fate: Fate) -> None:
    """The first is late: with 15 MB/s the second waits for it, with 20 MB/s it does not. It pays for 10 h."""
    fate({0: 1.5})
    for cap, second in ((15.0, 3.0), (20.0, 2.0)):
        case = readers(cap)
        assert case[1].costs["bandwidth"] == pytest.approx(0.1 * cap)
        made = replay(setting_of(*case), 0)
        assert made.completions_s == (3.0 * HOUR, (second + 2) * HOUR)
        assert made.costs[TERMS.index("bandwidth")] == case[1].costs["bandwidth"]
    assert sum(calm(setting_of(*case)).costs) == pytest.approx(case[1].cost)


FAMILIES = st.sampled_from(("compute", "contended", "mixed", "odd", "storage"))


@CASES
@given(family=FAMILIES, seed=st.integers(0, 10**6))
def test_where_nothing_goes_wrong_a_plan_costs_what_it_says(family: str, seed: int) -> None:
    """Term by term, for modes that take whole slots; but for the expected interruptions, which do not come, and for
    jobs that run at the start and are moved: their old nodes are billed until then."""
    case = solved(family, seed)
    assume(case is not None)
    assert case is not None
    instance, plan = case
    kept = {run.job for run in plan.runs if run.segments[0].kept}
    assume(all(job.running is None or job.id in kept for job in instance.jobs))
    made = calm(setting_of(instance, plan, seed=1, duration_error=0.5, mtbf_h=3.0))
    for term, cost in zip(TERMS, made.costs, strict=True):
        if term != "interruption":
            assert cost == pytest.approx(plan.costs[term], abs=1e-9), term


@settings(max_examples=30)
@given(seed=st.integers(0, 10**6))
def test_an_elastic_plan_costs_no_more_than_it_says(seed: int) -> None:
    """Progress is rounded down in a plan, so that its last segments may be longer than they need be."""
    case = solved("contended", seed, elastic=True)
    assume(case is not None)
    assert case is not None
    assert sum(calm(setting_of(*case)).costs) <= case[1].cost + 1e-9


@CASES
@given(family=FAMILIES, seed=st.integers(0, 10**6), early=st.booleans(), elastic=st.booleans())
def test_whatever_happens_every_job_completes_and_the_check_agrees(
    family: str, seed: int, early: bool, elastic: bool
) -> None:
    """Every job that is not rejected, at costs that the check recounts (a replay raises where it does not), and the
    same again."""
    case = solved(family, seed, elastic=elastic)
    assume(case is not None)
    assert case is not None
    instance, plan = case
    setting = setting_of(
        instance, plan, early=early, seed=seed, duration_error=0.5, mtbf_h=4.0, repair_h=1.5, restart_s=300.0
    )
    made = replay(setting, 3)
    for job, at in zip(instance.jobs, made.completions_s, strict=True):
        assert math.isnan(at) == (job.id in plan.rejected)
    assert repr(replay(setting, 3)) == repr(made)
