"""Plans put together by hand, by the clock: job j0 from 18:00 on and so on."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from models.domain import Instance, Plan
from planner.nightly.courses import Side
from planner.nightly.difference import Difference, difference
from tests.engines.samples import instance_of
from tests.nightly.nights import START, hours

Stretches = list[tuple[float, float, dict[str, Any]]]


def stretch(begin: float, end: float, **fields: Any) -> tuple[float, float, dict[str, Any]]:
    """A stretch on GPU 0 of node 0 of the pool own, in hours after the first night's start."""
    return begin, end, fields


def plan(start: float, jobs: dict[str, Stretches], late_h: dict[str, float] | None = None, **fields: Any) -> Plan:
    """A plan that begins so many hours after the first night's start; a job without stretches is rejected."""
    runs = []
    for name, stretches in jobs.items():
        segments = []
        for begin, end, changes in stretches:
            segment = {
                "mode": "own1",
                "pool": "own",
                "places": [{"node": 0, "gpus": [0]}],
                "slices": 1,
                "start_slot": round(begin - start),
                "end_slot": round(end - start),
                "start": hours(begin),
                "end": hours(end),
            }
            segments.append(segment | changes)
        if segments:
            end = max(end for _, end, _ in stretches)
            tardiness = (late_h or {}).get(name, 0.0)
            runs.append({"job": name, "segments": segments, "completion": hours(end), "tardiness_h": tardiness})
    document = {
        "instance": "instance",
        "instance_hash": "x",
        "currency": "USD",
        "start": hours(start),
        "slot_s": 3600.0,
        "num_slots": 48,
        "status": "feasible",
        "engine": "fast",
        "seed": 0,
        "versions": {},
        "cost": 10.0,
        "costs": {"node_hours": 10.0},
        "dual_bound": 9.0,
        "gap": 0.1,
        "runs": runs,
        "rejected": [name for name, stretches in jobs.items() if not stretches],
    }
    return Plan.model_validate(document | fields)


def at(start: float, jobs: list[dict[str, Any]], **changes: Any) -> Instance:
    """An instance that begins so many hours after the first night's start; its times are hours after that."""
    return instance_of(jobs, horizon="auto", start=(START + timedelta(hours=start)).isoformat(), **changes)


def compared(
    before: Plan,
    after: Plan,
    instances: tuple[Instance | None, Instance | None] = (None, None),
    complete: tuple[str, ...] = (),
    running: tuple[str, ...] = (),
    paused: tuple[str, ...] = (),
) -> Difference:
    """The difference of two plans."""
    sides = Side(before, instances[0], "old"), Side(after, instances[1], "new")
    return difference(*sides, frozenset(complete), frozenset(running), frozenset(paused))


def kinds(found: Difference) -> dict[str, list[str]]:
    """In which ways each job is planned otherwise."""
    return {change.job: [kind.value for kind in change.changes] for change in found.jobs}


def reasons(found: Difference, job: str) -> str:
    """Why, as one text."""
    return "; ".join(reason for change in found.jobs if change.job == job for reason in change.reasons)
