"""A nightly run and what it planned, as the history and the plan folders keep it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any

from pydantic import Field

from models.domain import Instance, Plan
from models.domain.fields import Entity

_LATE_H = 1e-9  # tardiness below this is a rounding error of the recorded hours


class Status(StrEnum):
    """What became of a run."""

    RUNNING = "running"
    PLANNED = "planned"
    KEPT = "kept"
    INTERRUPTED = "interrupted"
    INFEASIBLE = "infeasible"
    NO_PLAN = "no_plan"
    INVALID = "invalid"
    UNWRITABLE = "unwritable"
    FAILED = "failed"
    CRASHED = "crashed"


MEANINGS: dict[Status, str] = {
    Status.RUNNING: "under way",
    Status.PLANNED: "a plan was written",
    Status.KEPT: "the last plan was kept: within the limits no better one was found",
    Status.INTERRUPTED: "stopped by a signal; the best plan by then was written, if there was one",
    Status.INFEASIBLE: "no plan exists",
    Status.NO_PLAN: "no plan was found within the limits",
    Status.INVALID: "an input had faults",
    Status.UNWRITABLE: "a file could not be written",
    Status.FAILED: "a defect of the program",
    Status.CRASHED: "cut off without a word: killed, or the machine went down",
}


class RunRecord(Entity):
    """One run. What is not known, or never came to be, is none."""

    number: int = Field(ge=1)
    key: str = Field(min_length=1, max_length=64, description="random: tells the runs of several histories apart")
    started: str = Field(description="ISO 8601, UTC")
    ended: str | None = None
    status: Status = Status.RUNNING
    reason: str | None = Field(None, description="why there is no plan")
    pid: int | None = None
    instance: str | None = None
    instance_hash: str | None = None
    plan_start: str | None = None
    currency: str | None = None
    plan_status: str | None = None
    engine: str | None = None
    seed: int | None = None
    cost: float | None = None
    dual_bound: float | None = None
    gap: float | None = None
    jobs: int | None = None
    late: int | None = None
    rejected: int | None = None
    burst: int | None = None
    last: str | None = Field(None, description="name of the plan folder that it was compared with")
    changed: int | None = Field(None, description="jobs of both plans that are planned otherwise than in the last")
    added: int | None = Field(None, description="jobs that the last plan did not have")
    removed: int | None = Field(None, description="jobs that only the last plan had: complete, or withdrawn")
    wall_s: float | None = None
    folder: str | None = Field(None, description="name of its folder within plans/")
    is_gone: bool = Field(False, description="its folder was there and is not any more")


class JobEntry(Entity):
    """What a run planned for a job, and what of it is otherwise than in the plan before."""

    job: str
    state: str = Field(description="planned, rejected, completed or withdrawn")
    mode: str | None = Field(None, description="of several stretches those of all, in order")
    pool: str | None = Field(None, description="the same")
    nodes: str | None = Field(None, description="the same")
    start: str | None = None
    completion: str | None = None
    tardiness_h: float | None = None
    changes: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()


def entries_of(plan: Plan, difference: Mapping[str, Any] | None) -> Iterator[JobEntry]:
    """An entry for each job of a plan, then for each that only the plan before had.

    `difference` is the document of the changes since that plan (`burstplan-difference/1`); None: there was none.
    """
    listed = [] if difference is None else difference["jobs"]
    told = {entry["job"]: (tuple(entry["changes"]), tuple(entry["reasons"])) for entry in listed}
    for run in plan.runs:
        changes, reasons = told.pop(run.job, ((), ()))
        segments = run.segments
        yield JobEntry(
            job=run.job,
            state="planned",
            mode=_joined(segment.mode for segment in segments),
            pool=_joined(segment.pool for segment in segments),
            nodes=_joined(" ".join(str(place.node) for place in segment.places) for segment in segments),
            start=segments[0].start if segments else None,
            completion=run.completion,
            tardiness_h=run.tardiness_h,
            changes=changes,
            reasons=reasons,
        )
    for name in plan.rejected:
        changes, reasons = told.pop(name, ((), ()))
        yield JobEntry(job=name, state="rejected", changes=changes, reasons=reasons)
    for name, (changes, reasons) in told.items():
        state = "completed" if "completed" in changes else "withdrawn"
        yield JobEntry(job=name, state=state, changes=changes, reasons=reasons)


def _joined(parts: Iterator[str]) -> str:
    return "; ".join(parts)


def late_jobs(plan: Plan) -> dict[str, float]:
    """Hours of tardiness of each job that is late, the latest first."""
    late = {run.job: run.tardiness_h for run in plan.runs if run.tardiness_h > _LATE_H}
    return dict(sorted(late.items(), key=lambda item: -item[1]))


def burst_jobs(plan: Plan, instance: Instance) -> tuple[str, ...]:
    """Jobs that run on rented nodes."""
    cloud = {site.id for site in instance.sites if site.kind == "cloud"}
    pools = {pool.id for pool in instance.pools if pool.site in cloud}
    return tuple(run.job for run in plan.runs if any(segment.pool in pools for segment in run.segments))
