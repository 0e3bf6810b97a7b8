"""The checker on elastic jobs: every segment is judged, the run as a whole once, and no job changes unpaid."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.check import Report, check
from models.domain import Elastic, Instance, Plan, Run
from tests.models.changes import Change, changed, kinds, moved, stretched, without
from tests.models.hand import make_instance, make_plan, on, run, run_of, segment
from tests.models.plans import CASES

COSTS = {"term-cost", "total-cost"}


def halved(segments: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A run whose first segment, of two slots, is two of one."""
    case = CASES["elastic"]
    middle = segment(case.instance, "", "", (1, 2), {})
    before = segments[0] | {"end_slot": 1, "end": middle.start}
    return [before, segments[0] | {"start_slot": 1, "start": middle.start}, *segments[1:]]


# (case, what is changed, every kind that must be reported and no other)
ELASTIC_CORRUPTIONS: list[tuple[str, Change, set[str]]] = [
    # In order
    ("elastic", stretched("elastic", 0, 1, 1, 2), {"segment-order", "node-off"}),
    ("elastic", stretched("elastic", 0, 1, 5, 6), {"segment-order", "node-off"}),
    ("elastic", {"runs.0.segments": lambda segments: [segments[k] for k in (2, 0, 1)]},
     {"segment-order", "instant", "tardiness-claim", *COSTS}),
    ("elastic", stretched("elastic", 0, 1, 3, 3), {"slot-range", *COSTS}),
    ("elastic", stretched("elastic", 0, 1, 3, 2), {"slot-range", *COSTS}),
    ("elastic", {"runs.0.segments": []}, {"segments", *COSTS}),
    # All of the work, not more changes than allowed
    ("elastic", stretched("elastic", 0, 0, 0, 1), {"work-undone", *COSTS}),
    ("elastic", {"runs.0.segments": without(1)}, {"work-undone", *COSTS}),
    ("elastic", stretched("elastic", 1, 0, 7, 8), {"work-undone", *COSTS}),
    ("elastic", {"runs.0.segments": halved}, {"too-many-changes", *COSTS}),
    ("elastic_running", {"runs.0.segments.0.kept": False}, {"too-many-changes", *COSTS}),
    ("elastic_running", {"runs.2.segments.0.kept": False}, {"kept-flag"}),
    ("elastic_running", {"runs.0.segments.0.places.0.gpus": [1], "nodes_on.0.end_slot": 2},
     {"kept-flag", "too-many-changes", "gpu-overused", *COSTS}),
    ("elastic_running", stretched("elastic_running", 0, 0, 1, 2),
     {"kept-flag", "too-many-changes", "work-undone", *COSTS}),
    ("elastic_running", {"runs.0.segments.1.kept": True}, {"kept-flag"}),
    ("elastic_running", {"runs.1.segments.0.kept": True}, {"kept-flag"}),
    ("elastic_running", {"runs.0.segments": lambda segments: segments[::-1]},
     {"segment-order", "kept-flag", "too-many-changes", "instant", *COSTS}),
    ("elastic_running", {"costs.restart": 8.0, "cost": 16.0}, COSTS),
    # One that may not be moved
    ("elastic_running", {"runs.2.segments.0.places.0.gpus": [1]},
     {"running-moved", "kept-flag", "too-many-changes", *COSTS}),
    ("elastic_running", {"runs.2.segments": lambda segments: [*segments, *split(2, 3)]},
     {"running-moved", "too-many-changes", "instant", *COSTS}),
    ("elastic_running", stretched("elastic_running", 2, 0, 0, 1), {"work-undone", "instant"}),
    # Release, deadline and successors by the run, everything else by the segment
    ("elastic", moved("elastic", 1, 5, 7), {"predecessor", "node-off"}),
    ("elastic", {**stretched("elastic", 0, 2, 5, 7), "runs.0.completion": "2026-01-13T01:00:00+01:00",
                 "runs.0.tardiness_h": 2.0}, {"deadline", "predecessor", "node-off", *COSTS}),
    ("elastic", stretched("elastic", 1, 0, 6, 9), {"beyond-horizon", "node-off", "instant", *COSTS}),
    ("elastic", {"runs.1.segments.0.end_slot": 10**5000}, {"beyond-horizon", "node-off", "instant", *COSTS}),
    ("elastic", {"runs.0.completion": "2026-01-12T22:00:00+01:00"}, {"instant"}),
    ("elastic", {"runs.0.tardiness_h": 0.0}, {"tardiness-claim"}),
    ("elastic", {"runs.0.segments.1.pool": "nowhere"}, {"unknown-pool", *COSTS}),
    ("elastic", {"runs.0.segments.1.mode": "two"}, {"unknown-mode", *COSTS}),
    ("elastic", {"runs.0.segments.1.pool": "p"}, {"mode-elsewhere", *COSTS}),
    ("elastic", {"runs.0.segments.2.speed": 0.5}, {"unknown-speed", *COSTS}),
    ("elastic", {"runs.0.segments.2.cached": 0.0}, {"bandwidth-short"}),
    ("elastic", {"runs.0.segments.0.cached": 0.5}, {"cached-claim"}),
    ("elastic", {"runs.0.segments.1.places.0.gpus": [0]}, {"gpu-count"}),
    ("elastic", {"bandwidth.1.mb_s": 19.0}, {"bandwidth-short"}),
    # What follows reads for an hour and a half, but in two slots.
    ("elastic", {"costs.transfer": 0.99, "cost": 26.99}, COSTS),
]  # fmt: skip


def split(first: int, end: int) -> list[dict[str, Any]]:
    """A further segment of the job that may not be moved."""
    return [segment(CASES["elastic_running"].instance, "one", "p", (first, end), {2: [0]}).model_dump(mode="json")]


@pytest.mark.parametrize(("name", "changes", "expected"), ELASTIC_CORRUPTIONS)
def test_a_corrupt_elastic_plan_is_caught(name: str, changes: Change, expected: set[str]) -> None:
    case = CASES[name]
    assert kinds(check(case.instance, changed(case.plan, changes))) == expected


def judged(name: str, changes: Change) -> list[tuple[str, str, float | None]]:
    """Kind, place and amount of each violation but those of costs."""
    report = check(CASES[name].instance, changed(CASES[name].plan, changes))
    return [(v.kind, v.where, v.amount) for v in report.violations if v.kind not in COSTS]


def test_a_segment_is_told_apart_and_a_run_is_judged_once() -> None:
    assert judged("elastic", {"runs.0.tardiness_h": 0.0}) == [("tardiness-claim", "job grows", -1.0)]
    assert judged("elastic", {"runs.0.segments.1.mode": "two"}) == [("unknown-mode", "job grows, segment 2", None)]
    assert judged("elastic", stretched("elastic", 0, 0, 0, 1)) == [("work-undone", "job grows", 0.125)]
    assert judged("elastic", {"runs.0.segments": halved}) == [("too-many-changes", "job grows", 1.0)]
    assert ("segment-order", "job grows, segment 3", 2.0) in judged("elastic", stretched("elastic", 0, 1, 3, 6))
    assert ("work-undone", "job follows", pytest.approx(1 / 3)) in judged("elastic", stretched("elastic", 1, 0, 7, 8))


def with_jobs(instance: Instance, **fields: Any) -> Instance:
    """The instance with some fields of every job replaced."""
    return instance.altered(jobs=tuple(job.model_copy(update=fields) for job in instance.jobs))


def recosted(instance: Instance, plan: Plan) -> Plan:
    """The plan with its true costs and hash, and no bound."""
    true = check(instance, plan)
    truth = {"instance_hash": instance.content_hash, "costs": true.costs, "cost": true.cost, "status": "feasible"}
    return plan.model_copy(update={**truth, "dual_bound": None, "gap": None})


@pytest.mark.parametrize("name", CASES)
def test_a_run_without_changes_is_right_for_an_elastic_job_too(name: str) -> None:
    """Each job of the plans with one segment a run may change, but does not."""
    case = CASES[name]
    instance = with_jobs(case.instance, elastic=Elastic())
    plan = case.plan.model_copy(update={"instance_hash": instance.content_hash})
    assert check(instance, plan).violations == ()


def cut(instance: Instance, made: Run, edge: int) -> Run:
    """A run with the segment that goes on over a slot edge cut in two there."""
    segments = []
    for part in made.segments:
        if not part.start_slot < edge < part.end_slot:
            segments.append(part)
            continue
        instant = instance.instant(edge)
        segments.append(part.model_copy(update={"end_slot": edge, "end": instant}))
        segments.append(part.model_copy(update={"start_slot": edge, "start": instant, "kept": False}))
    return made.model_copy(update={"segments": tuple(segments)})


@given(name=st.sampled_from(sorted(CASES)), edges=st.sets(st.integers(0, 12), max_size=4))
@settings(max_examples=100, deadline=None)
def test_cutting_runs_costs_the_changes_and_nothing_else(name: str, edges: set[int]) -> None:
    case = CASES[name]
    held = {job.id for job in case.instance.jobs if job.running is not None and not job.running.movable}
    instance = with_jobs(case.instance, elastic=Elastic(), restart_cost=1.5)
    whole = recosted(instance, case.plan)
    runs = list(whole.runs)
    for edge in sorted(edges):
        runs = [made if made.job in held else cut(instance, made, edge) for made in runs]
    parts = whole.model_copy(update={"runs": tuple(runs)})
    num_cuts = sum(len(made.segments) for made in runs) - sum(len(made.segments) for made in whole.runs)
    report = check(instance, parts)
    assert kinds(report) == (COSTS if num_cuts else set())
    assert report.costs["restart"] == pytest.approx(whole.costs["restart"] + 1.5 * num_cuts)
    assert report.cost == pytest.approx(whole.cost + 1.5 * num_cuts)
    assert check(instance, recosted(instance, parts)).ok


def plan_with(segments: list[tuple[str, int, int]], **elastic: Any) -> tuple[Instance, Report]:
    """One job with modes of 3 h and of 7 h on a GPU, in segments of (mode, first slot, end); a change costs 1."""
    instance = make_instance(
        slot="1h", horizon="12h", sites=[{"id": "lab", "kind": "on_prem"}],
        pools=[{"id": "p", "site": "lab", "gpu": "A", "gpus_per_node": 1, "nodes": 1, "price": 1}],
        jobs=[{"id": "j", "restart_cost": 1, "elastic": elastic,
               "modes": [{"id": f"m{h}", "pool": "p", "gpus": 1, "duration": f"{h}h"} for h in (3, 7)]}],
    )  # fmt: skip
    made = run_of("j", *(segment(instance, mode, "p", slots, {0: [0]}) for mode, *slots in segments))  # type: ignore[arg-type]
    end = segments[-1][2]
    costs = {"node_hours": float(end), "restart": len(segments) - 1.0}
    plan = make_plan(instance, costs, 12, runs=(made,), nodes_on=(on(instance, "p", 0, (0, end), float(end)),))
    return instance, check(instance, plan)


@pytest.mark.parametrize(
    "segments",
    [
        [("m3", 0, 3)],
        [("m7", 2, 9)],
        [("m3", 0, 1), ("m3", 1, 2), ("m3", 4, 5)],
        # A third of the work is not exact, nor is a seventh.
        [("m3", 0, 1), ("m7", 1, 2), ("m7", 2, 3), ("m7", 3, 5), ("m7", 5, 6)],
        # More than enough is enough.
        [("m3", 0, 4)],
        [("m7", 0, 6), ("m3", 6, 8)],
    ],
)
def test_work_that_is_done_in_parts_is_done(segments: list[tuple[str, int, int]]) -> None:
    assert plan_with(segments)[1].violations == ()


@pytest.mark.parametrize(
    ("segments", "missing"),
    [([("m3", 0, 2)], 1 / 3), ([("m7", 0, 6)], 1 / 7), ([("m3", 0, 1), ("m7", 1, 5)], 2 / 21)],
)
def test_work_that_is_not_done_is_missed(segments: list[tuple[str, int, int]], missing: float) -> None:
    (violation,) = plan_with(segments)[1].violations
    assert (violation.kind, violation.amount) == ("work-undone", pytest.approx(missing))


@pytest.mark.parametrize(("part", "is_done"), [(0.8e-9, True), (2e-9, False)])
def test_a_billionth_of_the_work_is_rounding(part: float, is_done: bool) -> None:
    instance = plan_with([("m3", 0, 3)])[0]
    job = instance.jobs[0]
    modes = tuple(mode.model_copy(update={"duration": 10800 * (1 + part)}) for mode in job.modes)
    longer = instance.altered(jobs=(job.model_copy(update={"modes": modes}),))
    made = cut(longer, run(longer, "j", "m3", "p", (0, 3), {0: [0]}), 1)
    plan = make_plan(longer, {}, 12, runs=(made,), nodes_on=(on(longer, "p", 0, (0, 3), 3.0),))
    assert kinds(check(longer, plan)) - COSTS == (set() if is_done else {"work-undone"})


@pytest.mark.parametrize(("changes", "is_allowed"), [(0, False), (1, True), (2, True), (None, True)])
def test_changes_are_counted_against_those_allowed(changes: int | None, is_allowed: bool) -> None:
    report = plan_with([("m3", 0, 1), ("m3", 1, 3)], changes=changes)[1]
    assert kinds(report) == (set() if is_allowed else {"too-many-changes"})


def test_a_job_that_is_not_elastic_runs_in_one_piece() -> None:
    instance = make_instance(
        slot="1h", horizon="4h", sites=[{"id": "lab", "kind": "on_prem"}],
        pools=[{"id": "p", "site": "lab", "gpu": "A", "gpus_per_node": 1, "nodes": 1, "price": 1}],
        jobs=[{"id": "j", "modes": [{"pool": "p", "gpus": 1, "duration": "2h"}]}],
    )  # fmt: skip
    nodes_on = (on(instance, "p", 0, (0, 2), 2.0),)
    whole = run(instance, "j", "1xp", "p", (0, 2), {0: [0]})
    parts = cut(instance, whole, 1)
    assert check(instance, make_plan(instance, {"node_hours": 2.0}, 4, runs=(whole,), nodes_on=nodes_on)).ok
    report = check(instance, make_plan(instance, {"node_hours": 2.0}, 4, runs=(parts,), nodes_on=nodes_on))
    assert kinds(report) == {"segments"}
