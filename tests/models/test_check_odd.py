"""The checker on odd plans: no field is changed unseen, nothing makes it raise, what is harmless passes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from models.check import Report, check
from models.domain import Plan
from tests.models.changes import changed, kinds
from tests.models.hand import START, make_instance, make_plan, on, run
from tests.models.plans import CASES

S = "runs.0.segments.0"
# What a plan may say otherwise without becoming wrong: labels, measured things, and what is paid for unused.
FREE = ("format", "instance", "engine", "seed", "versions", "packing_cost")
HARMLESS = {("order", "num_slots"), ("empty", "num_slots"), ("empty", "budget"), ("listed", "bandwidth.0.mb_s"),
            ("elastic", "bandwidth.1.mb_s"), *(("choices", f"bandwidth.{k}.mb_s") for k in range(3))}  # fmt: skip


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
