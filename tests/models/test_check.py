"""The checker: valid plans pass, every kind of fault is caught by its name, and nothing makes it raise."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

import models.check
from models.check import RULES, Report, check
from models.check.facts import Facts, read
from models.check.money import price_hours, tariff
from models.check.storage import bandwidth_cap
from models.domain import COST_TERMS, Instance, Plan, Site
from tests.models.plans import CASES, START, make_instance, make_plan, on, run
from tests.models.test_check_goals import FALSE_CLAIMS
from tests.models.worths import WORTHS, instance_worth

Change = dict[str, Any]
"""New values by path, such as runs.0.segments.0.pool; a function is given the old value."""


def changed(plan: Plan, changes: Change) -> Plan:
    """The plan with some of its fields replaced."""
    document = plan.model_dump(mode="json")
    for path, value in changes.items():
        *steps, last = [int(step) if step.isdigit() else step for step in path.split(".")]
        record: Any = document
        for step in steps:
            record = record[step]
        record[last] = value(record[last]) if callable(value) else value
    return Plan.model_validate(document)


def moved(case: str, index: int, first: int, end: int) -> Change:
    """A run in other slots, its instants with it."""
    other = run(CASES[case].instance, "", "", "", (first, end), {})
    at = f"runs.{index}"
    fields = ("start_slot", "end_slot", "start", "end")
    return {
        **{f"{at}.segments.0.{field}": getattr(other.segments[0], field) for field in fields},
        f"{at}.completion": other.completion,
    }


def switched(case: str, index: int, first: int, end: int) -> Change:
    """A node-on interval in other slots, its instants with it."""
    other = on(CASES[case].instance, "", 0, (first, end), 0.0)
    return {f"nodes_on.{index}.{field}": getattr(other, field) for field in ("start_slot", "end_slot", "start", "end")}


def without(index: int) -> Callable[[list[Any]], list[Any]]:
    """A list without one of its items."""
    return lambda items: [*items[:index], *items[index + 1 :]]


def twice(items: list[Any]) -> list[Any]:
    """A list with its first item a second time."""
    return [*items, items[0]]


def without_term(costs: dict[str, float]) -> dict[str, float]:
    """Costs without the last term."""
    return dict(list(costs.items())[:-1])


def kinds(report: Report) -> set[str]:
    """The kinds of violation of a report."""
    return {violation.kind for violation in report.violations}


@pytest.mark.parametrize("name", CASES)
def test_a_valid_plan_passes(name: str) -> None:
    case = CASES[name]
    report = check(case.instance, case.plan)
    assert report.violations == ()
    assert report.ok
    assert report.cost == pytest.approx(case.plan.cost, rel=1e-12)
    assert list(report.costs) == list(COST_TERMS)
    assert report.costs == pytest.approx(case.plan.costs, rel=1e-12)


@pytest.mark.parametrize("name", WORTHS)
def test_lost_value_is_that_by_hand(name: str) -> None:
    worth, by_hour = WORTHS[name]
    instance = instance_worth(worth)
    for edge, left in by_hour.items():
        made = run(instance, "j0", "own1", "own", (edge - 1, edge), {0: [0]})
        report = check(instance, make_plan(instance, {}, num_slots=12, runs=(made,)))
        assert report.costs["lost_value"] == pytest.approx((8.0 if worth else 0.0) - left, rel=1e-12, abs=1e-12), edge


S = "runs.0.segments.0"
# (case, what is changed, every kind that must be reported and no other)
CORRUPTIONS: list[tuple[str, Change, set[str]]] = [
    # The plan as a whole
    ("gang", {"instance_hash": "0" * 64}, {"other-instance"}),
    ("gang", {"currency": "USD"}, {"currency"}),
    ("gang", {"start": "2026-01-12T18:00:00Z"}, {"instant"}),
    ("gang", {"slot_s": 3600.0}, {"slot-length"}),
    ("gang", {"num_slots": 13}, {"num-slots"}),
    ("order", {"num_slots": 10**18}, {"num-slots"}),
    ("empty", {"num_slots": -1}, {"num-slots"}),
    # Names
    ("gang", {"runs.1.job": "nobody"}, {"unknown-job", "job-missing", "term-cost", "total-cost"}),
    ("order", {"rejected": ["third", "nobody"]}, {"unknown-job"}),
    ("choices", {f"{S}.pool": "nowhere"}, {"unknown-pool"}),
    ("choices", {f"{S}.mode": "2xA"}, {"unknown-mode"}),
    ("choices", {f"{S}.pool": "other"}, {"mode-elsewhere"}),
    ("choices", {f"{S}.speed": 0.5}, {"unknown-speed"}),
    ("choices", {"nodes_on.0.pool": "nowhere"}, {"unknown-pool", "node-off", "term-cost", "total-cost"}),
    ("choices", {"nodes_on.0.node": 1}, {"unknown-node", "node-off", "term-cost", "total-cost"}),
    ("choices", {"nodes_on.0.node": -1}, {"unknown-node", "node-off", "term-cost", "total-cost"}),
    ("reading", {"cached.1.site": "nowhere"},
     {"unknown-site", "cached-claim", "term-cost", "total-cost", "bandwidth-short", "link-short"}),
    ("reading", {"cached.0.dataset": "nothing"},
     {"unknown-dataset", "cached-claim", "term-cost", "total-cost", "bandwidth-short"}),
    ("listed", {"bandwidth.0.site": "nowhere"}, {"unknown-site", "bandwidth-short"}),
    # Each job once
    ("gang", {"runs": without(1)}, {"job-missing", "term-cost", "total-cost"}),
    ("order", {"rejected": []}, {"job-missing", "term-cost", "total-cost", "bound-above-cost"}),
    ("choices", {"runs": twice}, {"job-twice", "gpu-overused", "bandwidth-short"}),
    ("order", {"rejected": ["third", "fourth"]}, {"job-twice", "not-rejectable"}),
    ("order", {"rejected": twice}, {"job-twice"}),
    ("gang", {"runs": without(1), "rejected": ["solo"]}, {"not-rejectable", "term-cost", "total-cost"}),
    ("choices", {"runs.0.segments": twice}, {"segments"}),
    ("choices", {"runs.0.segments": []}, {"segments"}),
    # Modes
    ("choices", {f"{S}.pool": "small", "nodes_on.0.pool": "small"}, {"mode-unfit"}),
    ("choices", {f"{S}.pool": "spot", "nodes_on.0.pool": "spot",
                 "costs.node_hours": 0.0, "costs.rental": 1.0}, {"spot-forbidden"}),
    ("choices", {f"{S}.pool": "unlinked", "nodes_on.0.pool": "unlinked",
                 "costs.node_hours": 0.0, "costs.rental": 1.0}, {"data-unreachable"}),
    # Time
    ("choices", {f"{S}.end_slot": 2}, {"duration", "instant"}),
    ("shares", moved("shares", 1, 0, 4), {"duration", "instant"}),
    ("order", moved("order", 0, 0, 2), {"release", "node-off"}),
    ("order", moved("order", 0, 3, 5), {"deadline", "predecessor", "gpu-overused"}),
    ("order", moved("order", 1, 2, 4),
     {"predecessor", "gpu-overused", "tardiness-claim", "term-cost", "total-cost", "bound-above-cost"}),
    ("order", {"runs": without(0)}, {"job-missing", "predecessor-not-run"}),
    ("order", {"num_slots": 5},
     {"beyond-horizon", "interval-range", "node-off", "node-cost", "term-cost", "total-cost",
      "bound-above-cost"}),
    ("listed", moved("listed", 0, 3, 5), {"beyond-horizon", "node-off"}),
    ("listed", moved("listed", 0, -1, 1), {"slot-range"}),
    ("listed", {f"{S}.start_slot": 10**12}, {"slot-range"}),
    ("listed", {f"{S}.end_slot": 10**5000}, {"duration", "instant"}),
    ("listed", {f"{S}.start": "2026-01-12T20:00:00"}, {"instant"}),
    ("listed", {f"{S}.end": "2026-01-12T23:00:00+01:00"}, {"instant"}),
    ("listed", {"runs.0.completion": "tomorrow"}, {"instant"}),
    ("listed", {"nodes_on.0.end": "2026-01-12T22:00:01+01:00"}, {"instant"}),
    ("gang", {"runs.0.tardiness_h": 0.9}, {"tardiness-claim"}),
    ("gang", {"runs.1.tardiness_h": 1.0}, {"tardiness-claim"}),
    ("worths", moved("worths", 1, 2, 3), {"gpu-overused", "term-cost", "total-cost"}),
    ("worths", {"rejected": [], "costs.rejection": 0.0, "cost": 18.25}, {"job-missing"}),
    # Running jobs
    ("running", {f"{S}.kept": False}, {"kept-flag"}),
    ("running", {"runs.1.segments.0.kept": True}, {"kept-flag"}),
    ("running", {"runs.3.segments.0.kept": False}, {"kept-flag"}),
    ("running", moved("running", 0, 1, 4), {"running-moved", "kept-flag", "node-off"}),
    ("running", {"runs.3.segments.0.places.0.node": 0},
     {"running-moved", "kept-flag", "gpu-overused", "node-booting", "spot-forbidden", "term-cost",
      "total-cost"}),
    ("running", {"costs.restart": 0.0}, {"term-cost"}),
    # Places
    ("gang", {f"{S}.places": without(1)}, {"node-count"}),
    ("gang", {f"{S}.places.1.node": 0}, {"node-twice"}),
    ("gang", {f"{S}.places.1.node": 3}, {"unknown-node"}),
    ("gang", {f"{S}.places.1.gpus": [0, 1]}, {"gpu-count"}),
    ("gang", {f"{S}.places.1.gpus": [0, 1, 2, 4]}, {"unknown-gpu"}),
    ("gang", {"runs.1.segments.0.places.0.gpus": [1, 1]}, {"gpu-twice"}),
    ("gang", {"runs.1.segments.0.places.0.gpus": [0, 1, 2]}, {"gpu-count"}),
    ("gang", {f"{S}.slices": 4}, {"slices-claim"}),
    ("shares", {"runs.2.segments.0.slices": 1}, {"slices-claim"}),
    ("shares", {f"{S}.places.0.gpus": [0]}, {"gpu-overused", "gpu-memory"}),
    ("shares", moved("shares", 3, 1, 3), {"gpu-memory"}),
    ("shares", moved("shares", 1, 3, 8), {"cpu-cores", "ram"}),
    ("gang", moved("gang", 1, 5, 6), {"gpu-overused", "cpu-cores"}),
    # Nodes that are on
    ("gang", {"nodes_on": without(1)}, {"node-off", "term-cost", "total-cost", "bound-above-cost"}),
    ("gang", switched("gang", 1, 1, 6), {"node-booting"}),
    ("gang", switched("gang", 1, 0, 5), {"node-off"}),
    ("running", switched("running", 0, 1, 3), {"node-booting", "node-cost", "term-cost", "total-cost"}),
    ("gang", switched("gang", 1, 6, 6),
     {"interval-range", "node-off", "term-cost", "total-cost", "bound-above-cost"}),
    ("gang", switched("gang", 1, -1, 6), {"interval-range"}),
    ("gang", {"nodes_on.1.end_slot": 10**12},
     {"interval-range", "instant", "node-cost", "term-cost", "total-cost"}),
    ("choices", {"nodes_on": twice}, {"interval-overlap", "term-cost", "total-cost"}),
    ("gang", {"nodes_on.1.node": 0}, {"interval-overlap", "node-off"}),
    ("gang", {"nodes_on.1.node": 0, **switched("gang", 1, 7, 12)}, {"interval-touches", "node-off"}),
    ("order", {**switched("order", 1, 3, 6), "nodes_on.1.cost": 3.0, "costs.node_hours": 7.0, "cost": 25.0,
               "status": "feasible", "gap": 1 / 25}, {"node-unavailable"}),
    # Storage
    ("reading", {"cached": twice}, {"cached-twice"}),
    ("reading", {"cached.0.fraction": 0.6, f"{S}.cached": 0.6},
     {"cache-level", "term-cost", "total-cost"}),
    ("reading", {"cached.0.fraction": 0.75, f"{S}.cached": 0.75},
     {"cache-capacity", "term-cost", "total-cost"}),
    ("reading", {"cached.0.fraction": 1.5},
     {"cache-fraction", "cached-claim", "bandwidth-short", "term-cost", "total-cost"}),
    ("reading", {"cached": lambda cached: [*cached, {"site": "far", "dataset": "text", "fraction": 1.0}]},
     {"cache-unreachable"}),
    ("reading", {f"{S}.cached": 0.25}, {"cached-claim", "bandwidth-short"}),
    ("reading", {f"{S}.cached": 0.0}, {"bandwidth-short"}),
    ("gang", {f"{S}.cached": 1.0}, {"cached-claim"}),
    ("reading", {"bandwidth.0.mb_s": 199.0}, {"bandwidth-short", "term-cost", "total-cost"}),
    ("reading", {"bandwidth": []}, {"bandwidth-short", "term-cost", "total-cost"}),
    ("reading", {"bandwidth": twice}, {"bandwidth-twice"}),
    ("listed", {"bandwidth.0.mb_s": -50.0}, {"bandwidth-amount", "bandwidth-short"}),
    ("reading", {"bandwidth.0.mb_s": 1001.0}, {"bandwidth-cap", "term-cost", "total-cost"}),
    ("reading", {"bandwidth.1.mb_s": 301.0}, {"bandwidth-cap", "term-cost", "total-cost"}),
    ("reading", {"runs.3.segments.0.cached": 0.0, "bandwidth.1.mb_s": 140.0},
     {"link-short", "term-cost", "total-cost"}),
    # What would do if caches served at any speed: 50 + 200 at the lab, 75 in the sky.
    ("serving", {"bandwidth.0.mb_s": 250.0, "costs.bandwidth": 29.0, "cost": 44.4}, {"bandwidth-short"}),
    ("serving", {"bandwidth.1.mb_s": 75.0}, {"bandwidth-short", "term-cost", "total-cost"}),
    ("serving", {"runs.1.segments.0.cached": 0.5}, {"cache-speed"}),
    ("serving", {"runs.2.segments.0.cached": 0.0},
     {"bandwidth-short", "link-short", "term-cost", "total-cost"}),
    ("serving", {"bandwidth.0.mb_s": 401.0}, {"bandwidth-cap", "term-cost", "total-cost"}),
    ("serving", {"bandwidth.1.mb_s": 901.0}, {"bandwidth-cap", "term-cost", "total-cost"}),
    # The power law less a part that its chords may miss.
    ("serving", {"costs.bandwidth": 29.95, "cost": 45.35}, {"term-cost", "total-cost"}),
    # Money and certificate
    ("gang", {"nodes_on.0.cost": 42.0}, {"node-cost"}),
    ("gang", {"costs.energy": 0.41}, {"term-cost"}),
    ("gang", {"costs": without_term}, {"term-missing"}),
    ("gang", {"costs.tips": 1.0}, {"term-unknown"}),
    ("gang", {"cost": 102.0}, {"total-cost", "gap-claim"}),
    ("gang", {"dual_bound": 103.0, "gap": (102.4 - 103.0) / 102.4}, {"bound-above-cost"}),
    ("gang", {"gap": 0.09}, {"gap-claim"}),
    ("gang", {"gap": None}, {"gap-claim"}),
    ("gang", {"dual_bound": None}, {"gap-claim"}),
    ("gang", {"status": "optimal"}, {"not-optimal"}),
    ("order", {"dual_bound": None, "gap": None}, {"optimal-without-bound"}),
    ("empty", {"dual_bound": -1.0}, {"gap-claim", "not-optimal"}),
    ("gang", {"packing_cost": -1e308}, {"packing-cost"}),
    ("gang", {"packing_cost": -0.01}, {"packing-cost"}),
    ("gang", {"packing_cost": 102.5}, {"packing-cost"}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "changes", "expected"), CORRUPTIONS)
def test_a_corrupt_plan_is_caught(name: str, changes: Change, expected: set[str]) -> None:
    case = CASES[name]
    report = check(case.instance, changed(case.plan, changes))
    assert kinds(report) == expected
    assert not report.ok


def test_every_kind_in_the_code_is_tested() -> None:
    tested = set().union(*(expected for _, _, expected in CORRUPTIONS))
    assert set(_kinds_in_code()) == tested | {kind for _, kind in FALSE_CLAIMS}


def _kinds_in_code() -> Iterator[str]:
    for file in Path(models.check.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id in ("violation", "_wrong", "_fit")
                and isinstance(node.args[0], ast.Constant)
            ):
                yield str(node.args[0].value)


# What a plan may say otherwise without becoming wrong: labels, measured things, and what is paid for unused.
FREE = ("format", "instance", "engine", "seed", "versions", "packing_cost")
HARMLESS = {("order", "num_slots"), ("empty", "num_slots"), ("empty", "budget"), ("listed", "bandwidth.0.mb_s"),
            *(("choices", f"bandwidth.{k}.mb_s") for k in range(3))}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_no_field_can_be_changed_unseen(name: str) -> None:
    case = CASES[name]
    unseen = []
    for path, value in _leaves(case.plan.model_dump(mode="json")):
        if path.split(".")[0] in FREE or (name, path) in HARMLESS:
            continue
        for other in _others(value):
            if other == value:
                continue
            try:
                plan = changed(case.plan, {path: other})
            except ValidationError:
                continue
            if check(case.instance, plan).ok:
                unseen.append((path, value, other))
    # A free GPU of the same node is as good as another.
    assert [change for change in unseen if ".places." not in change[0]] == []


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict | list) and value:
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, inner in items:
            yield from _leaves(inner, f"{path}.{key}" if path else str(key))
    else:
        yield path, value


def _others(value: Any) -> tuple[Any, ...]:
    match value:
        case bool():
            return (not value,)
        case int():
            return value + 1, value - 1
        case float():
            return value + 0.01, value - 0.01, 0.5 * value + 0.25
        case str():
            return value + "x", "", "optimal"
        case None:
            return 0.0, 0.5
        case _:
            return ()


LABELS = st.sampled_from(["", "p", "job", "first", "1xP100", "lab", "sky", "images", "\u2028\ud800", START, "x" * 999])
VALUES = (
    st.none() | st.booleans() | LABELS
    | st.integers(-3, 12)
    | st.sampled_from([10**9, -(10**9), 10**12, 2**53, 2**63, 10**400, -(10**400), 10**5000])
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from([0.0, -0.0, 5e-324, 1e308, -1e308, 0.5])
    | st.lists(st.integers(0, 5), max_size=3)
)  # fmt: skip


@given(
    name=st.sampled_from(sorted(CASES)),
    edits=st.lists(st.tuples(st.integers(0, 10**6), st.sampled_from(["set", "drop", "twice"]), VALUES), max_size=6),
)
@settings(max_examples=400, deadline=None)
@example(name="gang", edits=[])
def test_no_plan_makes_it_raise(name: str, edits: list[tuple[int, str, Any]]) -> None:
    case = CASES[name]
    plan = case.plan
    for which, action, value in edits:
        document = plan.model_dump(mode="python")
        _edit(document, which, action, value)
        try:
            plan = Plan.model_validate(document)
        except ValidationError:
            continue
    report = check(case.instance, plan)
    assert isinstance(report, Report)
    assert report.ok == (report.violations == ())
    assert all(str(violation) for violation in report.violations)


def _edit(document: dict[str, Any], which: int, action: str, value: Any) -> None:
    """Set, drop or double one of the fields and items of a document."""
    spots: list[tuple[Any, Any]] = []

    def collect(record: Any) -> None:
        for key in record if isinstance(record, dict) else range(len(record)):
            spots.append((record, key))
            if isinstance(record[key], tuple):
                record[key] = list(record[key])
            if isinstance(record[key], dict | list):
                collect(record[key])

    collect(document)
    record, key = spots[which % len(spots)]
    if action == "set":
        record[key] = value
    elif action == "drop":
        del record[key]
    elif isinstance(record, list):
        record.append(record[key])


@pytest.mark.parametrize("field", ["cost", "dual_bound", "gap", "slot_s"])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_not_a_number_is_never_right(field: str, value: float) -> None:
    case = CASES["gang"]
    assert not check(case.instance, case.plan.model_copy(update={field: value})).ok


def test_bandwidth_that_is_not_a_number_is_caught() -> None:
    case = CASES["listed"]
    nothing = case.plan.bandwidth[0].model_copy(update={"mb_s": math.nan})
    report = check(case.instance, case.plan.model_copy(update={"bandwidth": (nothing,)}))
    assert kinds(report) == {"bandwidth-amount", "bandwidth-short"}


def test_amounts_and_sentences_are_for_people() -> None:
    case = CASES["gang"]
    report = check(case.instance, changed(case.plan, {"costs.energy": 0.9}))
    [violation] = report.violations
    assert violation.amount == pytest.approx(0.5)
    assert str(violation) == "costs: energy: claims a cost of 0.9 where it comes to 0.4 EUR [term-cost]"


def test_money_is_compared_with_tolerance() -> None:
    case = CASES["gang"]
    assert check(case.instance, changed(case.plan, {"cost": 102.4 * (1 + 5e-7)})).ok
    assert not check(case.instance, changed(case.plan, {"cost": 102.4 * (1 + 2e-6)})).ok


def test_the_same_instant_may_be_written_in_another_zone() -> None:
    case = CASES["listed"]
    changes = {"start": "2026-01-12T17:00:00Z", f"{S}.start": "2026-01-12T19:00:00Z"}
    assert check(case.instance, changed(case.plan, changes)).ok


def test_nodes_on_beyond_need_are_allowed_and_paid() -> None:
    case = CASES["choices"]
    idle = on(case.instance, "small", 0, (0, 2), 2.0)
    costs = {**case.plan.costs, "node_hours": 3.0}
    plan = case.plan.model_copy(update={"nodes_on": (*case.plan.nodes_on, idle), "cost": 3.0, "costs": costs})
    assert check(case.instance, plan).violations == ()


def test_a_billed_tail_does_not_occupy_the_node() -> None:
    instance = make_instance(
        slot="1h", horizon="4h", sites=[{"id": "sky", "kind": "cloud"}],
        pools=[{"id": "p", "site": "sky", "gpu": "A", "gpus_per_node": 1, "nodes": 1, "price": 1,
                "billing_increment": "3h", "unavailable": [{"since": "1h", "until": "2h"}]}],
        jobs=[{"id": name, "modes": [{"pool": "p", "gpus": 1, "duration": "1h"}]} for name in "ab"],
    )  # fmt: skip
    plan = make_plan(
        instance,
        {"rental": 6.0},
        num_slots=4,
        runs=(
            run(instance, "a", "1xp", "p", (0, 1), {0: [0]}),
            run(instance, "b", "1xp", "p", (2, 3), {0: [0]}),
        ),
        nodes_on=(on(instance, "p", 0, (0, 1), 3.0), on(instance, "p", 0, (2, 3), 3.0)),
    )
    assert check(instance, plan).violations == ()


def test_a_movable_job_pays_its_restart_unless_it_is_kept() -> None:
    instance = make_instance(
        slot="1h", horizon="4h", sites=[{"id": "lab", "kind": "on_prem"}],
        pools=[{"id": "p", "site": "lab", "gpu": "A", "gpus_per_node": 2, "nodes": 1, "price": 1,
                "boot_time": "1h"}],
        jobs=[{"id": "a", "restart_cost": 7, "speed_levels": [1, 0.5],
               "modes": [{"pool": "p", "gpus": 1, "duration": "2h"}],
               "running": {"mode": "1xp", "pool": "p", "movable": True,
                           "places": [{"node": 0, "gpus": [1]}]}}],
    )  # fmt: skip
    kept = run(instance, "a", "1xp", "p", (0, 2), {0: [1]}, kept=True)
    throttled = run(instance, "a", "1xp", "p", (0, 4), {0: [1]}, speed=0.5)
    stays = make_plan(instance, {"node_hours": 2.0}, 4, runs=(kept,), nodes_on=(on(instance, "p", 0, (0, 2), 2.0),))
    slows = make_plan(
        instance, {"node_hours": 4.0, "restart": 7.0}, 4,
        runs=(throttled,), nodes_on=(on(instance, "p", 0, (0, 4), 4.0),),
    )  # fmt: skip
    restarts = make_plan(
        instance, {"node_hours": 2.0, "restart": 7.0}, 4,
        runs=(run(instance, "a", "1xp", "p", (0, 2), {0: [1]}),),
        nodes_on=(on(instance, "p", 0, (0, 2), 2.0),),
    )  # fmt: skip
    assert check(instance, stays).violations == ()
    assert check(instance, slows).violations == ()
    assert check(instance, restarts).violations == ()


def _facts(**tables: Any) -> Facts:
    instance: Instance = make_instance(
        sites=[{"id": "lab", "kind": "on_prem"}],
        pools=[
            {
                "id": "p",
                "site": "lab",
                "gpu": "A",
                "gpus_per_node": 1,
                "nodes": 1,
                **tables.pop("pool", {"price": 1}),
            }
        ],
        **tables,
    )
    return read(instance, make_plan(instance, {}, num_slots=0))


@pytest.mark.parametrize(
    ("first", "end", "expected"),
    [
        (0, 4, 4 * 2.0),  # 18:00 to 22:00
        (4, 12, 8 * 1.0),  # 22:00 to 06:00, over midnight
        (11, 13, 1.0 + 2.0),
        (0, 24, 13 * 2.0 + 8 * 1.0 + 3 * 5.0),
        (24, 48, 13 * 2.0 + 8 * 1.0 + 3 * 5.0),
        (0, 24 * 365, 365 * (13 * 2.0 + 8 * 1.0 + 3 * 5.0)),
        (13, 18, 5.0 * 3 + 2.0 * 2),  # 07:00 to 12:00: the window at 5 from 07:00 to 10:00
    ],
)
def test_daily_windows_hold_every_day(first: int, end: int, expected: float) -> None:
    windows = [
        {"since": "22:00", "until": "06:00", "price": 1},
        {"since": "07:00", "until": "10:00", "price": 5},
        {"since": "05:00", "until": "08:00", "price": 5},  # 05:00 and 07:00 are taken; 06:00 is left
        {"since": "06:00", "until": "07:00", "price": 99},
    ]
    price = {"default": 2, "windows": windows}
    expected += 3.0 * _days_with_six(first, end)
    facts = _facts(slot="1h", pool={"price": price})
    assert price_hours(facts, facts.pools["p"].price, first, end) == pytest.approx(expected)


def _days_with_six(first: int, end: int) -> int:
    """How often the hour from 06:00, at 5 instead of 2, is among the slots after 18:00."""
    return sum((18 + slot) % 24 == 6 for slot in range(first, end))


def test_a_slot_across_a_window_has_the_average_price() -> None:
    facts = _facts(
        slot="7h",
        pool={"price": {"default": 1, "windows": [{"since": "23:00", "until": "24:00", "price": 8}]}},
    )
    price = facts.pools["p"].price
    assert price_hours(facts, price, 0, 1) == pytest.approx(6 * 1 + 1 * 8)
    assert price_hours(facts, price, 1, 2) == pytest.approx(7 * 1)


def test_a_list_of_prices_goes_on_with_its_last() -> None:
    facts = _facts(slot="30m", horizon="90m", pool={"price": [1, 2, 4]})
    price = facts.pools["p"].price
    assert price_hours(facts, price, 0, 3) == pytest.approx(3.5)
    assert price_hours(facts, price, 2, 5) == pytest.approx(6.0)
    assert price_hours(facts, price, 7, 9) == pytest.approx(4.0)


PIECES = {"tariff": [{"fixed": 1, "per_mb_s": 0.1}, {"fixed": 6, "per_mb_s": 0}]}
ONE_POINT = {"points": [{"mb_s": 100, "price": 3}]}
TIERS = {"tiers": [{"up_to": 100, "per_mb_s": 0.01}, {"up_to": 300, "per_mb_s": 0.005}, {"per_mb_s": 0.001}]}
CAPPED_TIERS = {"tiers": [{"up_to": 100, "per_mb_s": 0.01}, {"up_to": 200, "per_mb_s": 0.005}]}
POWER = {"power": {"factor": 0.25, "exponent": 0.5, "up_to": 900}}
POINTS = {"points": [{"mb_s": 100, "price": 3}, {"mb_s": 200, "price": 5}, {"mb_s": 400, "price": 6}]}


@pytest.mark.parametrize(
    ("storage", "mb_s", "expected"),
    [
        ({}, 500.0, 0.0),
        (PIECES, 0.0, 0.0),
        (PIECES, 10.0, 2.0),
        (PIECES, 90.0, 6.0),
        (ONE_POINT, 50.0, 1.5),
        (POINTS, 50.0, 2.0),
        (POINTS, 200.0, 5.0),
        (POINTS, 300.0, 5.5),
        (TIERS, 0.0, 0.0),
        (TIERS, 50.0, 0.5),
        (TIERS, 200.0, 1.5),
        (TIERS, 1000.0, 2.7),
        (CAPPED_TIERS, 150.0, 1.25),
        (POWER, 0.0, 0.0),
        (POWER, 4.0, 0.5),
        (POWER, 400.0, 5.0),
    ],
)
def test_the_tariff_is_read_however_it_is_written(storage: dict[str, Any], mb_s: float, expected: float) -> None:
    site = Site.model_validate({"id": "s", "kind": "cloud", "storage": {**storage, "billed": "1h"}})
    assert tariff(site, mb_s) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("changes", "most"),
    [({}, math.inf), ({"bandwidth_cap": 300}, 300.0), (POINTS, 400.0), (POINTS | {"bandwidth_cap": 300}, 300.0),
     (TIERS, math.inf), (CAPPED_TIERS, 200.0), (CAPPED_TIERS | {"bandwidth_cap": 300}, 200.0), (POWER, 900.0)],
)  # fmt: skip
def test_the_most_that_is_sold_is_the_least_of_what_the_tariff_says(changes: dict[str, Any], most: float) -> None:
    assert bandwidth_cap(Site.model_validate({"id": "s", "kind": "cloud", "storage": changes})) == most


def test_every_rule_says_what_it_holds() -> None:
    assert all(rule.__doc__ and len(rule.__doc__) > 20 for rule in RULES)
    assert len(set(RULES)) == len(RULES)
