"""The report of a night on one page of HTML, which needs nothing beside it: no scripts, no styles from elsewhere.

Names come from outside. Each passes `_safe`, which makes control characters visible and escapes what HTML would read.
"""

from __future__ import annotations

import html
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import timedelta

from models.domain import COST_TERMS, Instance, Plan
from planner.history.records import RunRecord, late_jobs
from planner.nightly.difference import Difference
from planner.nightly.texts import counts_sentence, course_text, kinds, shown_costs, signed
from planner.report.canvas import Axis, Bar, lanes
from planner.report.facts import Facts
from planner.report.gantt import busy_gpus, last_slot, portions
from planner.report.summary import gap_sentence, jobs_sentence
from planner.report.text import clean, count, hours, money, number

CHANGES_SHOWN, SUFFERING_SHOWN, NOTES_SHOWN, POOLS_SHOWN, LANES_SHOWN = 12, 8, 8, 8, 30
"""What fits on one page, lanes of all pools together; how much is left out is said."""
_WIDTH, _LANE, _LOAD = 1000, 14, 22
_TICKS_H = (1, 2, 3, 6, 12, 24, 48, 168)

_STYLE = """
body { font: 13px/1.4 system-ui, sans-serif; margin: 1.5em auto; max-width: 1040px; color: #1b1f24; background: #fff; }
h1 { font-size: 20px; margin: 0 0 .2em } h2 { font-size: 15px; margin: 1.1em 0 .3em }
table { border-collapse: collapse } td, th { text-align: left; vertical-align: top; padding: .15em 1em .15em 0 }
th { border-bottom: 1px solid #8c959f; font-weight: 600 } td.n, th.n { text-align: right }
dl { display: grid; grid-template-columns: max-content auto; gap: .1em 1em; margin: .6em 0 } dt { color: #57606a }
dd { margin: 0 } .late { color: #b3261e } .dim { color: #57606a } td, dd, li { overflow-wrap: anywhere }
svg { display: block; width: 100%; height: auto } svg text { font: 9px system-ui, sans-serif }
@media print { body { margin: 0; font-size: 10px } @page { size: A4; margin: 12mm } }
"""


def report_html(
    record: RunRecord, plan: Plan, instance: Instance, difference: Difference | None, notes: Sequence[str]
) -> bytes:
    """The page, in UTF-8."""
    facts = Facts(plan, instance)
    title = f"{plan.instance}, {facts.clock.slot(0)}"
    parts = [
        "<!DOCTYPE html>",
        '<html lang="en"><head><meta charset="utf-8">',
        f"<title>{_safe(title)}</title><style>{_STYLE}</style></head><body>",
        f"<h1>{_safe(title)}</h1>",
        _figures(record, facts, difference),
        _notes(notes),
        _suffering(facts),
        _changes(difference),
        _costs(plan, difference),
        _chart(facts),
        "</body></html>",
    ]
    return ("\n".join(part for part in parts if part) + "\n").encode()


def _safe(text: str) -> str:
    return html.escape(clean(text))


def _figures(record: RunRecord, facts: Facts, difference: Difference | None) -> str:
    plan = facts.plan
    rows = [
        ("run", f"{record.number}: {record.status}, {plan.status}"),
        ("cost", money(plan.cost, plan.currency)),
        ("gap", gap_sentence(facts)),
        ("jobs", jobs_sentence(facts)),
        ("changes", "no plan before this one" if difference is None else _changes_in_short(difference)),
        ("times", f"zone {facts.clock.zone}, slots of {hours(plan.slot_s / 3600)}"),
    ]
    return f"<dl>{''.join(f'<dt>{head}</dt><dd>{_safe(text)}</dd>' for head, text in rows)}</dl>"


def _changes_in_short(difference: Difference) -> str:
    return f"since {difference.before.name}: {counts_sentence(difference)}"


def _notes(notes: Sequence[str]) -> str:
    if not notes:
        return ""
    listed = "".join(f"<li>{_safe(note)}</li>" for note in notes[:NOTES_SHOWN])
    return f"<ul>{listed}</ul>{_left_out(len(notes) - NOTES_SHOWN, 'note', 'run.json')}"


def _suffering(facts: Facts) -> str:
    late = [f"{name}, late by {hours(amount)}" for name, amount in late_jobs(facts.plan).items()]
    rows = late + [f"{name}, rejected" for name in facts.plan.rejected]
    if not rows:
        return ""
    listed = "".join(f'<li class="late">{_safe(row)}</li>' for row in rows[:SUFFERING_SHOWN])
    more = len(rows) - SUFFERING_SHOWN
    return f"<h2>Late or rejected</h2><ul>{listed}</ul>{_left_out(more, 'job', 'assignments.csv and plan.json')}"


def _changes(difference: Difference | None) -> str:
    if difference is None or not difference.jobs:
        return ""
    # What moved before what came and went: that is expected.
    ordered = sorted(difference.jobs, key=lambda change: change.before is None or change.after is None)
    rows = []
    for change in ordered[:CHANGES_SHOWN]:
        was, now = (course_text(course, difference) for course in (change.before, change.after))
        rows.append([f"{change.job}: {kinds(change)}", was, now, "; ".join(change.reasons)])
    more = _left_out(len(ordered) - CHANGES_SHOWN, "change", "difference.txt")
    return f"<h2>What has changed</h2>{_table(('job', 'was', 'is', 'because'), rows)}{more}"


def _costs(plan: Plan, difference: Difference | None) -> str:
    if difference is not None and difference.are_comparable:
        head: tuple[str, ...] = ("term", f">{plan.currency} now", ">last plan", ">difference", "what")
        rows = [
            [term, number(now), number(was), signed(now - was), COST_TERMS.get(term, "")]
            for term, was, now in shown_costs(difference)
        ]
        was = difference.before.plan.cost
        rows.append(["total", number(plan.cost), number(was), signed(plan.cost - was), ""])
    else:
        head = ("term", f">{plan.currency}", "what")
        rows = [[term, number(cost), COST_TERMS.get(term, "")] for term, cost in plan.costs.items() if cost]
        rows.append(["total", number(plan.cost), ""])
    return f"<h2>Cost</h2>{_table(head, rows)}"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; a column whose heading starts with > is set to the right."""
    kinds_of = [' class="n"' if heading.startswith(">") else "" for heading in head]
    first = "".join(
        f"<th{kind}>{_safe(heading.lstrip('>'))}</th>" for kind, heading in zip(kinds_of, head, strict=True)
    )
    body = "".join(
        f"<tr>{''.join(f'<td{kind}>{_safe(cell)}</td>' for kind, cell in zip(kinds_of, row, strict=True))}</tr>"
        for row in rows
    )
    return f"<table><tr>{first}</tr>{body}</table>"


def _left_out(more: int, noun: str, where: str) -> str:
    return f'<p class="dim">and {count(more, noun)} more, in {where}</p>' if more > 0 else ""


def _chart(facts: Facts) -> str:
    """The pools over time: how many GPUs are busy, and the jobs."""
    plan = facts.plan
    if not plan.runs:
        return ""
    axis = Axis(facts.clock, last_slot(plan), _WIDTH)
    bars: dict[str, list[Bar]] = defaultdict(list)
    for run in plan.runs:
        for segment in run.segments:
            late = facts.is_late(run) and segment is run.segments[-1]
            bars[segment.pool].append(Bar(segment.start_slot, segment.end_slot, run.job, is_late=late))
    made: list[str] = []
    y = 26
    pools = facts.pools[:POOLS_SHOWN]
    rows_of_pool = [lanes(bars[pool], axis) for pool in pools]
    shown_of_pool = portions([len(rows) for rows in rows_of_pool], LANES_SHOWN)
    for pool, rows, most in zip(pools, rows_of_pool, shown_of_pool, strict=True):
        y = _draw_pool(made, facts, pool, rows, most, axis, y)
    grid = "".join(_ticks(axis, y))
    box = f'<svg viewBox="0 0 {_WIDTH} {y}" role="img" aria-label="jobs over time, by pool">'
    more = _left_out(len(facts.pools) - len(pools), "pool", "plan.json")
    return f"<h2>Jobs by pool</h2>{box}{grid}{''.join(made)}</svg>{more}"


def _draw_pool(made: list[str], facts: Facts, pool: str, rows: list[list[Bar]], most: int, axis: Axis, y: int) -> int:
    """Append a pool's name, load and so many rows of jobs at most; returns where the next one begins."""
    load, is_rented = busy_gpus(facts.plan, pool, axis.num_slots), pool in (facts.cloud_pools or ())
    peak = max(load, default=0)
    kind = "rented" if is_rented else "owned"
    more = len({bar.text for row in rows[most:] for bar in row})
    rest = f", {count(more, 'run')} not drawn" if more else ""
    head = f"{clean(pool)}, {kind}: at most {count(peak, 'busy GPU')}{rest}"
    made.append(f'<text x="0" y="{y}" font-weight="600">{html.escape(head)}</text>')
    y += 4
    points = [f"0,{y + _LOAD}"]
    for slot, busy in enumerate(load):
        level = y + _LOAD - (_LOAD * busy / peak if peak else 0)
        points += [f"{axis.column(slot)},{level:.1f}", f"{axis.column(slot + 1)},{level:.1f}"]
    points.append(f"{_WIDTH},{y + _LOAD}")
    made.append(f'<polygon points="{" ".join(points)}" fill="#d0e3f7"/>')
    y += _LOAD + 3
    for row in rows[:most]:
        for bar in row:
            first, last = axis.span(bar)
            fill = "#f2b8b5" if bar.is_late else "#e9d2f4" if is_rented else "#b7dfc3"
            made.append(
                f'<g><title>{_safe(bar.text)}{", late" if bar.is_late else ""}</title><rect x="{first}" y="{y}" '
                f'width="{max(1, last - first - 1)}" height="{_LANE - 2}" fill="{fill}" stroke="#57606a" '
                f'stroke-width=".5"/>{_label(bar, first, last, y)}</g>'
            )
        y += _LANE
    return y + 16


def _label(bar: Bar, first: int, last: int, y: int) -> str:
    """The name within the bar, as far as there is room: five units a letter."""
    room = (last - first - 4) // 5
    name = clean(bar.text) + (" !" if bar.is_late else "")
    if len(name) > room:
        name = name[: room - 1] + "…" if room > 3 else ""
    return f'<text x="{first + 2}" y="{y + _LANE - 5}">{html.escape(name)}</text>' if name else ""


def _ticks(axis: Axis, height: int) -> Iterable[str]:
    """Lines at round hours, about a dozen, with their times."""
    clock, span_h = axis.clock, axis.num_slots * axis.clock.slot_s / 3600
    step_h = next((step for step in _TICKS_H if span_h / step <= 12), max(1, round(span_h / 12)))
    moment = clock.start.replace(minute=0, second=0, microsecond=0)
    moment -= timedelta(hours=moment.hour % step_h if step_h < 24 else moment.hour)
    while True:
        moment += timedelta(hours=step_h)
        x = axis.column((moment - clock.start).total_seconds() / clock.slot_s)
        if x > _WIDTH:
            return
        if x >= 0:
            shown = f"{moment:%a %H:%M}" if step_h < 24 else f"{moment.day} {moment:%b}"
            yield f'<path d="M{x} 12V{height}" stroke="#d8dee4"/><text x="{x + 2}" y="10">{shown}</text>'
