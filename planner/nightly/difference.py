"""What has changed from one plan to the next, job by job. Of a job that runs now, or has run, what it has done is past:
it is compared by how it goes on."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from models.domain import COST_TERMS
from planner.history.records import late_jobs
from planner.nightly.causes import Causes
from planner.nightly.courses import SAME_S, Change, Course, JobChange, Side, Stretch


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
