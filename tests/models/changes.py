"""Plans with something changed, for the tests of the checker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from models.check import Report
from models.domain import Plan
from tests.models.hand import on, run, segment
from tests.models.plans import CASES

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
    """A run of one segment in other slots, its instants with it."""
    completion = run(CASES[case].instance, "", "", "", (first, end), {}).completion
    return stretched(case, index, 0, first, end) | {f"runs.{index}.completion": completion}


def stretched(case: str, index: int, k: int, first: int, end: int) -> Change:
    """A segment of a run in other slots, its instants with it."""
    other = segment(CASES[case].instance, "", "", (first, end), {})
    fields = ("start_slot", "end_slot", "start", "end")
    return {f"runs.{index}.segments.{k}.{field}": getattr(other, field) for field in fields}


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
