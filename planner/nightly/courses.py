"""What a plan does with each job, by the clock and by place, never by slot: two plans rarely begin at one moment."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from models.domain import Instance, Plan, Run
from planner.history.records import late_jobs

SAME_S = 1.0
"""Moments that differ by no more are the same."""


class Change(StrEnum):
    """One way in which a job is planned otherwise than before."""

    NEW = "new"
    COMPLETED = "completed"
    WITHDRAWN = "withdrawn"
    REJECTED = "rejected"
    ACCEPTED = "accepted"
    LATE = "late"
    IN_TIME = "in time"
    EARLIER = "earlier"
    LATER = "later"
    ENDS_EARLIER = "ends earlier"
    ENDS_LATER = "ends later"
    POOL = "pool"
    MODE = "mode"
    NODES = "nodes"
    SPLIT = "split"
    """An elastic job changes, or pauses, at other times or another number of times."""


@dataclass(frozen=True)
class Stretch:
    """A job on fixed GPUs for a time."""

    mode: str
    pool: str
    speed: float
    places: tuple[tuple[int, tuple[int, ...]], ...]
    """(node, its GPUs)."""
    start: datetime
    end: datetime


@dataclass(frozen=True)
class Course:
    """What a plan does with a job; without stretches it is rejected."""

    stretches: tuple[Stretch, ...] = ()
    completion: datetime | None = None
    tardiness_h: float = 0.0

    @property
    def start(self) -> datetime | None:
        """When it starts; None where it is rejected."""
        return self.stretches[0].start if self.stretches else None

    def document(self) -> dict[str, Any]:
        """The same for machines."""
        listed = [
            {
                "mode": stretch.mode,
                "pool": stretch.pool,
                "speed": stretch.speed,
                "places": [{"node": node, "gpus": list(gpus)} for node, gpus in stretch.places],
                "start": stretch.start.isoformat(),
                "end": stretch.end.isoformat(),
            }
            for stretch in self.stretches
        ]
        completion = None if self.completion is None else self.completion.isoformat()
        state = "runs" if self.stretches else "rejected"
        return {"state": state, "completion": completion, "tardiness_h": self.tardiness_h, "stretches": listed}


def course_of(run: Run) -> Course:
    """A run of a plan, by the clock."""
    stretches = tuple(
        Stretch(
            mode=segment.mode,
            pool=segment.pool,
            speed=segment.speed,
            places=tuple(sorted((place.node, tuple(sorted(place.gpus))) for place in segment.places)),
            start=datetime.fromisoformat(segment.start),
            end=datetime.fromisoformat(segment.end),
        )
        for segment in run.segments
    )
    return Course(stretches, datetime.fromisoformat(run.completion), run.tardiness_h)


@dataclass(frozen=True)
class JobChange:
    """A job that is planned otherwise, and why, as far as facts say it."""

    job: str
    changes: tuple[Change, ...]
    before: Course | None
    after: Course | None
    reasons: tuple[str, ...] = ()

    def document(self) -> dict[str, Any]:
        """The same for machines."""
        return {
            "job": self.job,
            "changes": [str(change) for change in self.changes],
            "before": None if self.before is None else self.before.document(),
            "after": None if self.after is None else self.after.document(),
            "reasons": list(self.reasons),
        }


@dataclass(frozen=True)
class Side:
    """One of the two plans."""

    plan: Plan
    instance: Instance | None
    """None where it cannot be read any more; then less can be said of causes."""
    name: str
    courses: dict[str, Course] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Work out once what the plan does with each job."""
        courses = {run.job: course_of(run) for run in self.plan.runs}
        object.__setattr__(self, "courses", courses | {name: Course() for name in self.plan.rejected})

    def document(self) -> dict[str, Any]:
        """What the plan comes to, for machines."""
        plan = self.plan
        return {
            "folder": self.name,
            "start": plan.start,
            "currency": plan.currency,
            "cost": plan.cost,
            "dual_bound": plan.dual_bound,
            "gap": plan.gap,
            "jobs": len(self.courses),
            "late_jobs": len(late_jobs(plan)),
            "rejected_jobs": len(plan.rejected),
        }
