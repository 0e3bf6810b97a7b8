"""The history as tables: the runs with the trend of their cost, one run with what changed, one job through all runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from planner.history.records import MEANINGS, JobEntry, RunRecord, Status
from planner.report.canvas import LATE, Canvas
from planner.report.fitted import Cell, Column, fitted
from planner.report.text import count, hours, money, number, share

_GOOD = {Status.PLANNED, Status.KEPT, Status.RUNNING}
ROWS_SHOWN = 100
"""Changed jobs of a run that are shown; --json has all."""


def runs_table(runs: Sequence[RunRecord], canvas: Canvas) -> Iterator[RenderableType]:
    """Runs, the latest first, and the trend of what their plans cost."""
    if not runs:
        yield Text("no such run")
        return
    most = max((run.cost for run in runs if run.cost is not None), default=0.0)
    columns = (
        *(Column(">run"), Column("status"), Column("plan"), Column(">cost"), Column("", 3, is_bar=True)),
        *(Column(">gap", 4), Column(">jobs", 2), Column(">late"), Column(">rejected", 1)),
        *(Column(">changed", 1), Column(">new", 5), Column("begun (UTC)", 6)),
    )
    yield fitted("Runs", columns, [_run_row(run, most, canvas) for run in runs], canvas)
    for run in runs:
        if run.reason is not None:
            line = f"run {run.number}: {run.reason}"
            yield Text(canvas.name(line), style="dim", no_wrap=True, overflow="ignore")
    yield Text("")
    yield Text(trend_sentence(runs, canvas))


def _run_row(run: RunRecord, most: float, canvas: Canvas) -> list[Cell]:
    place = "" if run.folder is None else f"{run.folder} (gone)" if run.is_gone else run.folder
    bar = "" if run.cost is None or most <= 0 else canvas.pick("█", "#") * max(1, round(10 * run.cost / most))
    return [
        str(run.number),
        Text(run.status.value, style="" if run.status in _GOOD else LATE),
        canvas.name(place),
        "" if run.cost is None else canvas.name(money(run.cost, run.currency or "")),
        bar,
        "" if run.cost is None else share(run.gap),
        *(("" if value is None else str(value)) for value in (run.jobs, run.late, run.rejected)),
        *(("" if value is None else str(value)) for value in (run.changed, run.added)),
        canvas.name(run.started[:19].replace("T", " ")),
    ]


def trend_sentence(runs: Sequence[RunRecord], canvas: Canvas) -> str:
    """How the cost went over runs that are given with the latest first; those in the latest one's currency."""
    planned = [run for run in runs if run.cost is not None]
    if not planned:
        return "none of these runs made a plan"
    currency = planned[0].currency or ""
    costs = [run.cost for run in reversed(planned) if run.cost is not None and run.currency == planned[0].currency]
    steps = canvas.pick("▁▂▃▄▅▆▇█", "_.:-=+*#")
    low, high = min(costs), max(costs)
    line = "".join(steps[round(7 * (cost - low) / (high - low)) if high > low else 0] for cost in costs)
    mean = sum(costs) / len(costs)
    of = f"cost of {count(len(costs), 'plan')} in {currency}"
    text = f"{of}  {line}  least {number(low)}, mean {number(mean)}, most {number(high)}"
    if len(costs) > 1 and costs[-2] > 0:
        text += f"; last {100 * (costs[-1] - costs[-2]) / costs[-2]:+.1f} %"
    return canvas.name(text)


def run_page(run: RunRecord, entries: Sequence[JobEntry], canvas: Canvas) -> Iterator[RenderableType]:
    """One run, and every job that it planned otherwise than the plan before."""
    rows = [
        ("run", f"{run.number}: {run.status.value} ({MEANINGS[run.status]})"),
        ("begun", f"{run.started}" + (f", ended {run.ended}" if run.ended is not None else "")),
    ]
    if run.reason is not None:
        rows.append(("reason", run.reason))
    if run.cost is not None:
        bound = "" if run.dual_bound is None else f", at least {number(run.dual_bound)}, gap {share(run.gap)}"
        rows += [
            ("plan of", f"{run.instance}, begins {run.plan_start}"),
            ("cost", money(run.cost, run.currency or "") + bound),
            ("engine", f"{run.engine}, seed {run.seed}, {run.plan_status}"),
            ("jobs", f"{run.jobs} ({run.late} late, {run.rejected} rejected, {run.burst} burst to rented nodes)"),
            ("folder", f"{run.folder}{' (gone)' if run.is_gone else ''}"),
        ]
        against = "no plan before" if run.last is None else f"since {run.last}: {run.changed} planned otherwise, "
        rows.append(("changes", against if run.last is None else f"{against}{run.added} new, {run.removed} gone"))
    for head, text in rows:
        yield Text.assemble((f"{head:<12}", "dim"), canvas.name(text), no_wrap=True, overflow="ignore")
    changed = [entry for entry in entries if entry.changes]
    for entry in changed[:ROWS_SHOWN]:
        lines = [f"{entry.job}: {', '.join(entry.changes)}"]
        lines += [f"  planned  {place_of(entry)}"] if entry.state == "planned" else []
        lines += [f"  because  {reason}" for reason in entry.reasons]
        yield Text("\n" + "\n".join(canvas.name(line) for line in lines), overflow="fold")
    if len(changed) > ROWS_SHOWN:
        yield Text(f"\nand {count(len(changed) - ROWS_SHOWN, 'job')} more; --json lists them all", style="dim")


def job_table(job: str, rows: Sequence[tuple[RunRecord, JobEntry]], canvas: Canvas) -> Iterator[RenderableType]:
    """What each run planned for a job, the latest first."""
    columns = (Column(">run"), Column("plan", 2), Column("planned"), Column("changes"), Column("because", 1))
    made = [
        [
            str(run.number),
            *(canvas.name(text) for text in (run.folder or "", place_of(entry), ", ".join(entry.changes))),
            _why(entry, canvas),
        ]
        for run, entry in rows
    ]
    yield fitted(f"Job {canvas.name(job)}", columns, made, canvas)


def place_of(entry: JobEntry) -> str:
    """Where and when a job was planned, in a few words."""
    if entry.state != "planned":
        return entry.state
    late = f", late by {hours(entry.tardiness_h)}" if entry.tardiness_h else ""
    return f"{entry.mode} on {entry.pool}, {_minute(entry.start)} to {_minute(entry.completion)}{late}"


def _why(entry: JobEntry, canvas: Canvas) -> str:
    return canvas.name("; ".join(entry.reasons))


def _minute(moment: str | None) -> str:
    return "" if moment is None else moment[:16].replace("T", " ")
