"""Gantt charts of a plan as lines of text: by pool, by node and by job."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from typing import Literal

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from models.domain import NodeOn, Plan, Run, Segment
from planner.report.canvas import FAINT, LATE, Axis, Bar, Canvas, Row, draw_bar, lanes, strip
from planner.report.facts import Facts
from planner.report.text import count, hours, ranges

View = Literal["pool", "node", "job"]
ROWS_SHOWN = 500
"""Rows of a chart or table on a page, where not all are asked for: nobody reads on."""


def gantt(
    facts: Facts, canvas: Canvas, view: View = "pool", max_lanes: int | None = None, max_rows: int | None = None
) -> list[Text]:
    """The chart with its axis and legend; `max_lanes` limits the rows of each pool, `max_rows` those of the chart.

    What is left out for it is said.
    """
    plan = facts.plan
    if not plan.runs and not plan.nodes_on:
        return [Text("nothing runs")]
    indent = _label_width(facts, canvas, view)
    axis = Axis(facts.clock, last_slot(plan), max(8, canvas.width - indent))
    lines = axis.lines(canvas, indent)
    if view == "pool":
        lines += _by_pool(facts, canvas, axis, indent, max_lanes, max_rows)
    elif view == "node":
        lines += _by_node(facts, canvas, axis, indent, max_rows)
    else:
        lines += _by_job(facts, canvas, axis, indent, max_rows)
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
    return Bar(
        *(segment.start_slot, segment.end_slot, text, detail),
        is_late=facts.is_late(run) and segment is run.segments[-1],
        is_burst=segment.pool in (facts.cloud_pools or ()),
        run=run.job if len(run.segments) > 1 else None,
        is_change=segment is not run.segments[0],
    )


def _by_pool(
    facts: Facts, canvas: Canvas, axis: Axis, indent: int, max_lanes: int | None, max_rows: int | None
) -> list[Text]:
    lines: list[Text] = []
    bars: dict[str, list[Bar]] = defaultdict(list)
    for run in facts.plan.runs:
        for segment in run.segments:
            bars[segment.pool].append(_bar(facts, run, segment, run.job))
    rows_of_pool = [lanes(bars[pool], axis) for pool in facts.pools]
    shown_of_pool = portions([len(rows) for rows in rows_of_pool], max_rows)
    is_much = sum(len(rows) for rows in rows_of_pool) > (ROWS_SHOWN if max_rows is None else max_rows)
    for pool, rows, most in zip(facts.pools, rows_of_pool, shown_of_pool, strict=True):
        load = busy_gpus(facts.plan, pool, axis.num_slots)
        lines += [Text(""), _pool_head(facts, canvas, pool, load)]
        lines.append(strip(load, axis, canvas).text(canvas.crop("busy GPUs", indent - 1) + " "))
        most = most if max_lanes is None else min(most, max_lanes)
        shown = rows if len(rows) <= most else rows[: most - 1]
        for bars_of_row in shown:
            row = Row(axis.columns)
            for bar in bars_of_row:
                draw_bar(row, axis, bar, canvas)
            lines.append(row.text(" " * indent))
        hidden = {bar.text for bars_of_row in rows[len(shown) :] for bar in bars_of_row}
        lines += left_out(len(hidden), "run", indent, is_much=is_much)
    return lines


def portions(sizes: Sequence[int], most: int | None) -> list[int]:
    """How many rows of each part are shown of so many in all: small parts wholly, the others alike."""
    if most is None or sum(sizes) <= most:
        return list(sizes)
    shown = [0] * len(sizes)
    for rank, k in enumerate(sorted(range(len(sizes)), key=lambda k: (sizes[k], k))):
        # At least two: the line that says what is left out takes the place of one.
        shown[k] = min(sizes[k], max(2, (most - sum(shown)) // (len(sizes) - rank)))
    return shown


def left_out(number: int, noun: str, indent: int = 0, *, is_much: bool = True) -> list[Text]:
    """A line that says how much is not shown, and what shows it; none where there is nothing."""
    if number <= 0:
        return []
    command = "`planner show --all`" if is_much else "`planner show`"
    return [Text(" " * indent + f"and {count(number, noun)} more; {command} draws them all", FAINT)]


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


def _by_node(facts: Facts, canvas: Canvas, axis: Axis, indent: int, max_rows: int | None) -> list[Text]:
    lines: list[Text] = []
    dot = canvas.pick("·", ".")
    bars: dict[tuple[str, int], list[Bar]] = defaultdict(list)
    for run in facts.plan.runs:
        for segment in run.segments:
            for place in segment.places:
                bars[segment.pool, place.node].append(_bar(facts, run, segment, run.job, f" ({ranges(place.gpus)})"))
    on: dict[tuple[str, int], list[NodeOn]] = defaultdict(list)
    for interval in facts.plan.nodes_on:
        on[interval.pool, interval.node].append(interval)
    nodes_of_pool: dict[str, list[int]] = defaultdict(list)
    for pool, node in sorted({*bars, *on}):
        nodes_of_pool[pool].append(node)
    shown_of_pool = portions([len(nodes_of_pool[pool]) for pool in facts.pools], max_rows)
    for pool, most in zip(facts.pools, shown_of_pool, strict=True):
        lines.append(Text(""))
        nodes = nodes_of_pool[pool]
        shown = nodes if len(nodes) <= most else nodes[: most - 1]
        for node in shown:
            rows = lanes(bars[pool, node], axis) or [[]]
            for k, bars_of_row in enumerate(rows):
                row = Row(axis.columns)
                for interval in on[pool, node] if k == 0 else ():
                    first, last = axis.span(Bar(interval.start_slot, interval.end_slot, ""))
                    row.put(first, dot * (last - first), FAINT)
                for bar in bars_of_row:
                    draw_bar(row, axis, bar, canvas)
                suffix = f" {node}"
                label = canvas.crop(pool, min(cell_len(canvas.name(pool)), indent - 1 - len(suffix))) + suffix
                lines.append(row.text(set_cell_size(label if k == 0 else "", indent)))
        lines += left_out(len(nodes) - len(shown), "node", indent)
    return lines


def _by_job(facts: Facts, canvas: Canvas, axis: Axis, indent: int, max_rows: int | None) -> list[Text]:
    lines: list[Text] = []
    instance = facts.instance
    runs, rejected = first_jobs(facts, max_rows)
    for run in runs:
        row, dot = Row(axis.columns), canvas.pick("·", ".")
        job = None
        if instance is not None and run.job in instance.job_index:
            job = instance.jobs[instance.job_index[run.job]]
        if job is not None and run.segments:
            release, start = (
                axis.column(job.release / facts.plan.slot_s),
                axis.column(run.segments[0].start_slot),
            )
            row.put(release, dot * (start - release), FAINT)
        for before, after in pairwise(run.segments):
            pause, goes_on = axis.column(before.end_slot), axis.column(after.start_slot)
            row.put(pause, dot * (goes_on - pause), FAINT)
        for segment in run.segments:
            draw_bar(row, axis, _bar(facts, run, segment, segment.mode, f" on {segment.pool}"), canvas)
        if job is not None and job.due is not None:
            row.put(
                axis.column(job.due / facts.plan.slot_s),
                canvas.pick("◆", "D"),
                LATE if facts.is_late(run) else "bold",
            )
        lines.append(row.text(canvas.crop(run.job, indent - 1) + " "))
    for name in rejected:
        row = Row(axis.columns)
        row.put(0, "rejected: not run", LATE)
        lines.append(row.text(canvas.crop(name, indent - 1) + " "))
    return lines + left_out(facts.num_jobs - len(runs) - len(rejected), "job", indent)


def first_jobs(facts: Facts, most: int | None) -> tuple[list[Run], Sequence[str]]:
    """Runs by their begin and then rejected jobs, so many of them in all."""
    runs = sorted(facts.plan.runs, key=lambda run: (run.segments[0].start_slot if run.segments else 0, run.job))
    if most is None:
        return runs, facts.plan.rejected
    num_runs, num_rejected = portions([len(runs), len(facts.plan.rejected)], most)
    return runs[:num_runs], facts.plan.rejected[:num_rejected]


def _legend(facts: Facts, canvas: Canvas, axis: Axis, view: View) -> list[Text]:
    owned, burst = canvas.pick("━━", "=="), canvas.pick("┅┅", "~~")
    parts = (
        [f"[{owned}] on owned nodes", f"[{burst}] on rented nodes"]
        if facts.instance is not None
        else [f"[{owned}] running"]
    )
    if facts.changed:
        parts.append(f"{canvas.pick('»', '>')}{owned}] after a change")
    parts.append(f"[{owned}! late")
    dots = canvas.pick("··", "..")
    if view == "node":
        parts += [f"{dots} on", "in brackets: GPUs of the node"]
    if view == "job" and facts.instance is not None:
        parts.append(f"{dots} waiting since release{' or paused' if facts.changed else ''}")
        parts.append(f"{canvas.pick('◆', 'D')} due")
    elif view == "job" and facts.changed:
        parts.append(f"{dots} paused")
    text = "   ".join(parts)
    grid = f"a column is {hours(axis.column_s / 3600)}; times are {facts.clock.zone}"
    return [Text(""), Text(text, FAINT), Text(grid, FAINT)]


__all__ = ["ROWS_SHOWN", "View", "busy_gpus", "first_jobs", "gantt", "last_slot", "left_out"]
