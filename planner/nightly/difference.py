"""What has changed from one plan to the next, job by job: by the clock and by place, never by slot.

Two plans rarely begin at the same moment, so slots do not compare. Of a job that runs now, or has run, what it has done
is past: it is compared by how it goes on.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from models.domain import COST_TERMS, Instance, Plan, Run
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


@dataclass(frozen=True)
class Difference:
    """Everything that has changed."""

    before: Side
    after: Side
    jobs: tuple[JobChange, ...]
    same: tuple[str, ...]
    """Jobs that are planned as before."""

    @property
    def counts(self) -> dict[Change, int]:
        """Jobs by kind of change; a job may count for several."""
        return {kind: number for kind in Change if (number := sum(kind in change.changes for change in self.jobs)) > 0}

    @property
    def num_replanned(self) -> int:
        """Jobs of both plans that are planned otherwise."""
        return sum(change.before is not None and change.after is not None for change in self.jobs)

    @property
    def are_comparable(self) -> bool:
        """Whether the costs of the two are in the same currency."""
        return self.before.plan.currency == self.after.plan.currency

    def costs(self) -> list[tuple[str, float, float]]:
        """Each cost term of either plan, before and after."""
        old, new = self.before.plan.costs, self.after.plan.costs
        terms = dict.fromkeys([*(term for term in COST_TERMS if term in old or term in new), *old, *new])
        return [(term, old.get(term, 0.0), new.get(term, 0.0)) for term in terms]

    def document(self) -> dict[str, Any]:
        """The difference for machines."""
        return {
            "format": "burstplan-difference/1",
            "before": self.before.document(),
            "after": self.after.document(),
            "counts": {str(kind): number for kind, number in self.counts.items()} | {"same": len(self.same)},
            "costs": [{"term": term, "before": old, "after": new} for term, old, new in self.costs()],
            "jobs": [change.document() for change in self.jobs],
            "same": list(self.same),
        }


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


def changes_of(
    before: Course, after: Course, now: datetime | None, is_late: tuple[bool, bool] = (False, False)
) -> tuple[Change, ...]:
    """In which ways a job of both plans is planned otherwise; none: it is planned as before.

    `now` is given for a job that runs or has run: what it did before then is past, and only how it goes on is compared,
    all of it: an elastic job may do the same at the end and yet something else on the way.
    """
    if not before.stretches or not after.stretches:
        if bool(before.stretches) == bool(after.stretches):
            return ()
        return (Change.REJECTED,) if before.stretches else (Change.ACCEPTED,)
    found = []
    if is_late[0] != is_late[1]:
        found.append(Change.LATE if is_late[1] else Change.IN_TIME)
    old, new = (course.stretches if now is None else _rest(course, now) for course in (before, after))
    shifted = _shifted(old[0].start, new[0].start, Change.EARLIER, Change.LATER) if old and new else []
    found += shifted or _shifted(before.completion, after.completion, Change.ENDS_EARLIER, Change.ENDS_LATER)
    old = old or before.stretches[-1:]
    if not _have_same_edges(old, new):
        found.append(Change.SPLIT)
    if _in_turn(stretch.pool for stretch in old) != _in_turn(stretch.pool for stretch in new):
        found.append(Change.POOL)
    modes = (_in_turn((stretch.mode, stretch.speed) for stretch in side) for side in (old, new))
    if next(modes) != next(modes):
        found.append(Change.MODE)
    is_elsewhere = Change.POOL in found or len(old) != len(new)
    if not is_elsewhere and [stretch.places for stretch in old] != [stretch.places for stretch in new]:
        found.append(Change.NODES)
    return tuple(found)


def _rest(course: Course, now: datetime) -> tuple[Stretch, ...]:
    """The stretches of a course from now on; none of one that should be over by now."""
    return tuple(
        replace(stretch, start=max(stretch.start, now))
        for stretch in course.stretches
        if (stretch.end - now).total_seconds() > SAME_S
    )


def _in_turn(values: Iterable[Any]) -> list[Any]:
    """What follows on each other, repetitions left out."""
    return [value for value, _ in itertools.groupby(values)]


def _have_same_edges(old: Sequence[Stretch], new: Sequence[Stretch]) -> bool:
    """Whether stretches follow each other in the same way; that all of them are earlier or later is said by the start,
    that the last ends otherwise by the completion."""
    if len(old) != len(new):
        return False
    edges = []
    for stretches in (old, new):
        moments = [moment for stretch in stretches for moment in (stretch.start, stretch.end)][:-1]
        edges.append([(moment - moments[0]).total_seconds() for moment in moments])
    return all(abs(was - now) <= SAME_S for was, now in zip(*edges, strict=True))


def _shifted(before: datetime | None, after: datetime | None, earlier: Change, later: Change) -> list[Change]:
    if before is None or after is None or abs((after - before).total_seconds()) <= SAME_S:
        return []
    return [later if after > before else earlier]


def difference(
    before: Side,
    after: Side,
    complete: frozenset[str],
    running: frozenset[str],
    paused: frozenset[str] = frozenset(),
) -> Difference:
    """The difference from one plan to the next; of the jobs of the first, some are complete, run now, or have run and
    are paused."""
    from planner.nightly.causes import Causes

    now = datetime.fromisoformat(after.plan.start)
    late = [set(late_jobs(side.plan)) for side in (before, after)]
    jobs: list[JobChange] = []
    same: list[str] = []
    for name in [*after.courses, *(name for name in before.courses if name not in after.courses)]:
        old, new = before.courses.get(name), after.courses.get(name)
        if old is not None and new is not None:
            since = now if name in running or name in paused else None
            changes = changes_of(old, new, since, (name in late[0], name in late[1]))
        elif old is None:
            changes = (Change.NEW,)
        else:
            changes = (Change.COMPLETED,) if name in complete else (Change.WITHDRAWN,)
        if changes:
            jobs.append(JobChange(name, changes, old, new))
        else:
            same.append(name)
    causes = Causes(before, after, frozenset(change.job for change in jobs), running, paused)
    explained = [
        JobChange(change.job, change.changes, change.before, change.after, causes.of(change)) for change in jobs
    ]
    return Difference(before, after, tuple(explained), tuple(same))
