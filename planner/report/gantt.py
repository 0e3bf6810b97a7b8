"""Gantt charts of a plan as lines of text: by pool, by node and by job."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import accumulate
from typing import Literal

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from models.domain import NodeOn, Plan, Run, Segment
from planner.report.canvas import FAINT, LATE, Axis, Bar, Canvas, Row, draw_bar, lanes, strip
from planner.report.facts import Facts
from planner.report.text import count, hours, ranges

View = Literal["pool", "node", "job"]


def gantt(facts: Facts, canvas: Canvas, view: View = "pool", max_lanes: int | None = None) -> list[Text]:
    """The chart with its axis and legend; `max_lanes` limits the rows of each pool."""
    plan = facts.plan
    if not plan.runs and not plan.nodes_on:
        return [Text("nothing runs")]
    indent = _label_width(facts, canvas, view)
    axis = Axis(facts.clock, last_slot(plan), max(8, canvas.width - indent))
    lines = axis.lines(canvas, indent)
    if view == "pool":
        lines += _by_pool(facts, canvas, axis, indent, max_lanes)
    elif view == "node":
        lines += _by_node(facts, canvas, axis, indent)
    else:
        lines += _by_job(facts, canvas, axis, indent)
    return [*lines, *_legend(facts, canvas, axis, view)]


def last_slot(plan: Plan) -> int:
    """The edge after which nothing runs and no node is on."""
    ends = [segment.end_slot for run in plan.runs for segment in run.segments]
    return max([*ends, *(interval.end_slot for interval in plan.nodes_on)], default=1)


def busy_gpus(plan: Plan, pool: str, num_slots: int) -> list[int]:
    """GPUs of a pool with a job on them, by slot; a shared GPU counts once."""
    stretches: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    for segment in _segments(plan, pool):
        for place in segment.places:
            for gpu in place.gpus:
                stretches[place.node, gpu].append((segment.start_slot, segment.end_slot))
    change = [0] * (num_slots + 1)
    for spans in stretches.values():
        end = 0
        for first, last in sorted(spans):
            if last > end:
                change[max(first, end)] += 1
                change[last] -= 1
                end = last
    return list(accumulate(change))[:num_slots]


def _segments(plan: Plan, pool: str) -> Iterable[Segment]:
    return (segment for run in plan.runs for segment in run.segments if segment.pool == pool)


def _label_width(facts: Facts, canvas: Canvas, view: View) -> int:
    if view == "job":
        labels = [run.job for run in facts.plan.runs]
    elif view == "node":
        labels = [f"{pool} {'9' * len(str(_last_node(facts.plan, pool)))}" for pool in facts.pools]
    else:
        labels = ["busy GPUs"]
    longest = max((cell_len(canvas.name(label)) for label in labels), default=8)
    return min(longest, max(8, canvas.width // 4)) + 1


def _last_node(plan: Plan, pool: str) -> int:
    nodes = [interval.node for interval in plan.nodes_on if interval.pool == pool]
    return max([*nodes, *(place.node for segment in _segments(plan, pool) for place in segment.places)], default=0)


def _bar(facts: Facts, run: Run, segment: Segment, text: str, detail: str = "") -> Bar:
    is_last = segment is run.segments[-1]
    is_burst = segment.pool in (facts.cloud_pools or ())
    return Bar(segment.start_slot, segment.end_slot, text, detail, facts.is_late(run) and is_last, is_burst)


def _by_pool(facts: Facts, canvas: Canvas, axis: Axis, indent: int, max_lanes: int | None) -> list[Text]:
    lines: list[Text] = []
    for pool in facts.pools:
        bars = [
            _bar(facts, run, segment, run.job)
            for run in facts.plan.runs
            for segment in run.segments
            if segment.pool == pool
        ]
        load = busy_gpus(facts.plan, pool, axis.num_slots)
        lines += [Text(""), _pool_head(facts, canvas, pool, load)]
        lines.append(strip(load, axis, canvas).text(canvas.crop("busy GPUs", indent - 1) + " "))
        rows = lanes(bars, axis)
        shown = rows if max_lanes is None or len(rows) <= max_lanes else rows[: max_lanes - 1]
        for bars_of_row in shown:
            row = Row(axis.columns)
            for bar in bars_of_row:
                draw_bar(row, axis, bar, canvas)
            lines.append(row.text(" " * indent))
        hidden = sum(len(bars_of_row) for bars_of_row in rows[len(shown) :])
        if hidden:
            lines.append(Text(" " * indent + f"and {count(hidden, 'run')} more; `planner show` draws them all", FAINT))
    return lines


def _pool_head(facts: Facts, canvas: Canvas, pool: str, load: list[int]) -> Text:
    peak, busy_h = max(load, default=0), sum(load) * facts.plan.slot_s / 3600
    total = ""
    kind = ""
    if facts.instance is not None and pool in facts.instance.pool_index:
        entry = facts.instance.pools[facts.instance.pool_index[pool]]
        total = f" of {entry.nodes * entry.gpus_per_node}"
        kind = f", {entry.gpu}, {'rented' if pool in (facts.cloud_pools or ()) else 'owned'}"
    nodes = {interval.node for interval in facts.plan.nodes_on if interval.pool == pool}
    line = Text(canvas.name(pool), style="bold")
    line.append(
        f"{canvas.name(kind)}: at most {peak}{total} GPUs busy, {busy_h:,.1f} GPU-hours, "
        f"{count(len(nodes), 'node')} on",
        style="not bold",
    )
    return line


def _by_node(facts: Facts, canvas: Canvas, axis: Axis, indent: int) -> list[Text]:
    lines: list[Text] = []
    dot = canvas.pick("·", ".")
    for pool in facts.pools:
        lines.append(Text(""))
        bars: dict[int, list[Bar]] = defaultdict(list)
        for run in facts.plan.runs:
            for segment in run.segments:
                for place in segment.places if segment.pool == pool else ():
                    bars[place.node].append(_bar(facts, run, segment, run.job, f" ({ranges(place.gpus)})"))
        on: dict[int, list[NodeOn]] = defaultdict(list)
        for interval in facts.plan.nodes_on:
            if interval.pool == pool:
                on[interval.node].append(interval)
        for node in sorted({*bars, *on}):
            rows = lanes(bars[node], axis) or [[]]
            for k, bars_of_row in enumerate(rows):
                row = Row(axis.columns)
                for interval in on[node] if k == 0 else ():
                    first, last = axis.span(Bar(interval.start_slot, interval.end_slot, ""))
                    row.put(first, dot * (last - first), FAINT)
                for bar in bars_of_row:
                    draw_bar(row, axis, bar, canvas)
                suffix = f" {node}"
                label = canvas.crop(pool, min(cell_len(canvas.name(pool)), indent - 1 - len(suffix))) + suffix
                lines.append(row.text(set_cell_size(label if k == 0 else "", indent)))
    return lines


def _by_job(facts: Facts, canvas: Canvas, axis: Axis, indent: int) -> list[Text]:
    lines: list[Text] = []
    instance = facts.instance
    for run in sorted(
        facts.plan.runs,
        key=lambda run: (run.segments[0].start_slot, run.job) if run.segments else (0, run.job),
    ):
        row = Row(axis.columns)
        job = None
        if instance is not None and run.job in instance.job_index:
            job = instance.jobs[instance.job_index[run.job]]
        if job is not None and run.segments:
            release, start = (
                axis.column(job.release / facts.plan.slot_s),
                axis.column(run.segments[0].start_slot),
            )
            row.put(release, canvas.pick("·", ".") * (start - release), FAINT)
        for segment in run.segments:
            draw_bar(row, axis, _bar(facts, run, segment, segment.mode, f" on {segment.pool}"), canvas)
        if job is not None and job.due is not None:
            row.put(
                axis.column(job.due / facts.plan.slot_s),
                canvas.pick("◆", "D"),
                LATE if facts.is_late(run) else "bold",
            )
        lines.append(row.text(canvas.crop(run.job, indent - 1) + " "))
    for name in facts.plan.rejected:
        row = Row(axis.columns)
        row.put(0, "rejected: not run", LATE)
        lines.append(row.text(canvas.crop(name, indent - 1) + " "))
    return lines


def _legend(facts: Facts, canvas: Canvas, axis: Axis, view: View) -> list[Text]:
    owned, burst = canvas.pick("━━", "=="), canvas.pick("┅┅", "~~")
    parts = (
        [f"[{owned}] on owned nodes", f"[{burst}] on rented nodes"]
        if facts.instance is not None
        else [f"[{owned}] running"]
    )
    parts.append(f"[{owned}! late")
    if view == "node":
        parts += [f"{canvas.pick('··', '..')} on", "in brackets: GPUs of the node"]
    if view == "job" and facts.instance is not None:
        parts += [f"{canvas.pick('··', '..')} waiting since release", f"{canvas.pick('◆', 'D')} due"]
    text = "   ".join(parts)
    grid = f"a column is {hours(axis.column_s / 3600)}; times are {facts.clock.zone}"
    return [Text(""), Text(text, FAINT), Text(grid, FAINT)]


__all__ = ["View", "busy_gpus", "gantt", "last_slot"]
