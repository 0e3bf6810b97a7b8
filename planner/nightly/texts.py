"""What has changed from one plan to the next, as a page of plain text."""

from __future__ import annotations

from datetime import datetime

from planner.nightly.courses import Change, Course, JobChange
from planner.nightly.difference import Difference
from planner.report.text import clean, count, hours, money, number

_HEADS: dict[Change, str] = {
    Change.NEW: "new",
    Change.COMPLETED: "complete",
    Change.WITHDRAWN: "withdrawn",
    Change.REJECTED: "now rejected",
    Change.ACCEPTED: "no longer rejected",
    Change.LATE: "now late",
    Change.IN_TIME: "now in time",
    Change.EARLIER: "earlier",
    Change.LATER: "later",
    Change.ENDS_EARLIER: "ends earlier",
    Change.ENDS_LATER: "ends later",
    Change.POOL: "other pool",
    Change.MODE: "other mode",
    Change.NODES: "other nodes",
    Change.SPLIT: "changes otherwise",
}


def difference_text(difference: Difference) -> bytes:
    """The difference for people, in UTF-8; names from outside are made fit for a terminal."""
    old, new = difference.before, difference.after
    lines = [
        f"from {clean(old.name)} (begins {old.plan.start})",
        f"to   {clean(new.name)} (begins {new.plan.start})",
        "",
        cost_sentence(difference),
        counts_sentence(difference),
        "",
    ]
    if difference.are_comparable:
        lines += [_row("", "before", "after", "difference")]
        lines += [
            _row(clean(term), number(was), number(now), signed(now - was)) for term, was, now in shown_costs(difference)
        ]
        lines += [_row("total", number(old.plan.cost), number(new.plan.cost), signed(new.plan.cost - old.plan.cost))]
    for change in difference.jobs:
        lines += ["", f"{clean(change.job)}: {kinds(change)}"]
        lines += [f"  was      {course_text(change.before, difference)}"] if change.before is not None else []
        lines += [f"  is       {course_text(change.after, difference)}"] if change.after is not None else []
        lines += [f"  because  {clean(reason)}" for reason in change.reasons]
    return ("\n".join(line.rstrip() for line in lines) + "\n").encode()


def kinds(change: JobChange) -> str:
    """In which ways a job is planned otherwise, in words."""
    return ", ".join(_HEADS[kind] for kind in change.changes)


def cost_sentence(difference: Difference) -> str:
    """What the two plans cost. They are of different nights, so the difference is nothing that was won or lost."""
    old, new = difference.before.plan, difference.after.plan
    return f"cost {money(new.cost, new.currency)}, was {money(old.cost, old.currency)}"


def counts_sentence(difference: Difference) -> str:
    """3 of 18 jobs planned otherwise, 2 new, 4 complete, 1 withdrawn."""
    counts = difference.counts
    both = len(difference.same) + difference.num_replanned
    parts = [f"{difference.num_replanned} of {count(both, 'job')} planned otherwise"]
    for kind in (Change.NEW, Change.COMPLETED, Change.WITHDRAWN):
        if kind in counts:
            parts.append(f"{counts[kind]} {_HEADS[kind]}")
    return ", ".join(parts)


def shown_costs(difference: Difference) -> list[tuple[str, float, float]]:
    """Cost terms that either plan has."""
    return [(term, was, now) for term, was, now in difference.costs() if was or now]


def course_text(course: Course | None, difference: Difference) -> str:
    """2xA100 on dc1-a100 node 3, 12 Jan 18:00 to 23:30; late by 30 min."""
    if course is None:
        return ""
    if not course.stretches:
        return "rejected: not run"
    zone = datetime.fromisoformat(difference.after.plan.start).tzinfo
    parts = []
    for stretch in course.stretches:
        nodes = [str(node) for node, _ in stretch.places]
        where = f"node{'s' if len(nodes) > 1 else ''} {' '.join(nodes)}"
        speed = "" if stretch.speed == 1 else f" at {stretch.speed:g}"
        times = " to ".join(_clock(moment.astimezone(zone)) for moment in (stretch.start, stretch.end))
        parts.append(f"{clean(stretch.mode)}{speed} on {clean(stretch.pool)} {where}, {times}")
    late = f"; late by {hours(course.tardiness_h)}" if course.tardiness_h > 1e-9 else ""
    return "; then ".join(parts) + late


def signed(value: float) -> str:
    """A difference with its sign."""
    return f"{'+' if value > 0 else ''}{number(value)}"


def _clock(moment: datetime) -> str:
    return f"{moment.day} {moment:%b %H:%M}" + (f":{moment:%S}" if moment.second else "")


def _row(*cells: str) -> str:
    return f"{cells[0]:<14}" + "".join(f"{cell:>14}" for cell in cells[1:])
