"""Small instances by hand, and a look at what a plan does with them."""

from __future__ import annotations

from typing import Any

import pytest

from models.check import check
from models.domain import Instance, Plan, Segment
from planner.engines.base import Limits
from planner.solve import solve
from tests.documents import HOUR, Doc, document

TO_THE_END = Limits(time_limit_s=None, gap=0.0, threads=1)


def instance_of(jobs: list[Doc], **changes: Any) -> Instance:
    """The instance of such a document."""
    return Instance.model_validate(document(jobs, **changes))


def mode(hours: float, gpus: int = 1, pool: str = "own", **fields: Any) -> Doc:
    """A mode on whole GPUs, such as own1."""
    return {"id": f"{pool}{gpus}", "pool": pool, "gpus": gpus, "duration": hours * HOUR} | fields


def share(hours: float, part: float, pool: str = "own", **fields: Any) -> Doc:
    """A mode on a share of a GPU."""
    return {"id": f"share {part:g}", "pool": pool, "share": part, "duration": hours * HOUR} | fields


def running(mode_name: str, places: dict[int, list[int]], pool: str = "own", *, movable: bool = False) -> Doc:
    """Where a job runs already: GPUs by node."""
    where = [{"node": node, "gpus": gpus} for node, gpus in places.items()]
    return {"mode": mode_name, "pool": pool, "movable": movable, "places": where}


def cheapest(jobs: list[Doc], cost: float, **changes: Any) -> Plan:
    """The optimal plan, proven so, which costs what was computed by hand."""
    instance = instance_of(jobs, **changes)
    plan = solve(instance, "exact", TO_THE_END).plan
    assert check(instance, plan).violations == ()
    assert plan.status == "optimal"
    assert plan.cost == pytest.approx(cost, rel=1e-6)
    assert plan.dual_bound == pytest.approx(cost, rel=1e-6)
    return plan


def segment(plan: Plan, job: str) -> Segment:
    """What a job does, which is one stretch."""
    (found,) = (run.segments for run in plan.runs if run.job == job)
    assert len(found) == 1
    return found[0]


def pools(plan: Plan) -> dict[str, str]:
    """The pool of each job that runs."""
    return {run.job: run.segments[0].pool for run in plan.runs}


def spans(plan: Plan) -> dict[str, tuple[int, int]]:
    """First slot and end of each job that runs."""
    return {run.job: (run.segments[0].start_slot, run.segments[0].end_slot) for run in plan.runs}


def intervals(plan: Plan) -> list[tuple[str, int, int, int, float]]:
    """Pool, node, first slot, end and cost of every interval in which a node is on."""
    return sorted((on.pool, on.node, on.start_slot, on.end_slot, on.cost) for on in plan.nodes_on)
