"""A plan on a page: what it costs, what is proven, which jobs suffer, and when what runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from planner.report.canvas import LATE, Canvas
from planner.report.facts import Facts
from planner.report.gantt import ROWS_SHOWN, View, gantt, left_out
from planner.report.tables import (
    certificate_table,
    cost_table,
    job_table,
    node_table,
    pool_table,
    storage_table,
    stretches_on,
)
from planner.report.text import hours, money, share

NAMES_SHOWN = 8
LANES_SHOWN = 10


def summary(
    facts: Facts,
    canvas: Canvas,
    wall_s: float | None = None,
    out: str | None = None,
    notes: Sequence[str] = (),
) -> Iterator[RenderableType]:
    """What `planner plan` prints."""
    yield _headline(facts, canvas, wall_s, out)
    yield Text("")
    yield cost_table(facts, canvas)
    yield Text("")
    yield from gantt(facts, canvas, "pool", LANES_SHOWN)
    for note in notes:
        yield Text.assemble(("note: ", "bold"), canvas.name(note))


def details(facts: Facts, canvas: Canvas, view: View, max_rows: int | None = ROWS_SHOWN) -> Iterator[RenderableType]:
    """What `planner show` prints; charts and tables up to so many rows."""
    yield certificate_table(facts, canvas)
    yield _suffering(facts, canvas)
    yield Text("")
    yield cost_table(facts, canvas)
    yield Text("")
    yield from gantt(facts, canvas, view, max_rows=max_rows)
    yield Text("")
    if view == "pool":
        yield pool_table(facts, canvas)
    elif view == "node":
        yield node_table(facts, canvas, max_rows)
        yield from left_out(len(stretches_on(facts)) - (max_rows or len(facts.plan.nodes_on)), "line")
    else:
        yield job_table(facts, canvas, max_rows)
        yield from left_out(facts.num_jobs - (max_rows or facts.num_jobs), "job")
    storage = storage_table(facts, canvas)
    if storage is not None:
        yield Text("")
        yield storage
    if facts.instance is None:
        yield Text("\nWithout the instance, rented pools and due dates are not known; give --instance.", style="dim")


def jobs_sentence(facts: Facts) -> str:
    """50 (3 late, 1 rejected, 12 burst to rented nodes, 2 changed as they run)."""
    parts = [f"{len(facts.late)} late", f"{len(facts.plan.rejected)} rejected"]
    if facts.burst is not None:
        parts.append(f"{len(facts.burst)} burst to rented nodes")
    if facts.changed:
        parts.append(f"{len(facts.changed)} changed as they run")
    return f"{facts.num_jobs:,} ({', '.join(parts)})"


def goal_rows(facts: Facts) -> list[tuple[str, str, str]]:
    """Label, text and style of what a plan for welfare or within a budget comes to."""
    plan = facts.plan
    rows = []
    if plan.welfare is not None:
        rows.append(("welfare", money(plan.welfare, plan.currency), "bold"))
    if plan.budget is not None:
        rows.append(("spent", f"{money(facts.spent, plan.currency)} of {money(plan.budget, plan.currency)}", ""))
    if plan.fixed_gpus is not None:
        rows.append(("GPUs", f"as in each job's {plan.fixed_gpus} mode", ""))
    return rows


def gap_sentence(facts: Facts) -> str:
    """What is proven, in words."""
    plan = facts.plan
    such = "" if plan.fixed_gpus is None else " with these GPUs"
    if plan.objective == "welfare":
        if plan.welfare_bound is None:
            return "unknown: no upper bound was found"
        most = money(plan.welfare_bound, plan.currency)
        return f"{share(plan.gap)}: no plan within the budget{such} is worth more than {most}"
    if plan.dual_bound is None:
        return "unknown: no lower bound was found"
    return f"{share(plan.gap)}: no plan{such} can cost less than {money(plan.dual_bound, plan.currency)}"


def _headline(facts: Facts, canvas: Canvas, wall_s: float | None, out: str | None) -> Text:
    plan = facts.plan
    took = "" if wall_s is None else f", {wall_s:.1f} s"
    rows = [
        ("plan of", plan.instance, "bold"),
        ("status", plan.status, LATE if plan.status == "interrupted" else "green"),
        ("cost", money(plan.cost, plan.currency), "bold"),
        *goal_rows(facts),
        ("gap", gap_sentence(facts), ""),
        ("engine", f"{plan.engine}{took}, seed {plan.seed}", ""),
        ("jobs", jobs_sentence(facts), ""),
    ]
    for label, names in (("late", _late_names(facts)), ("rejected", list(plan.rejected))):
        if names:
            rows.append(("", f"{label}: {_some(names)}", LATE))
    if out is not None:
        rows.append(("written to", out, ""))
    # Not folded by us: a path must come out of a terminal or a log in one piece.
    made = Text(no_wrap=True, overflow="ignore")
    for k, (label, text, style) in enumerate(rows):
        made.append("\n" if k else "").append(f"{label:<12}", "dim").append(canvas.name(text), style or None)
    return made


def _suffering(facts: Facts, canvas: Canvas) -> Text:
    lines = [f"jobs: {jobs_sentence(facts)}"]
    if facts.late:
        lines.append(f"late: {_some(_late_names(facts))}")
    if facts.plan.rejected:
        lines.append(f"rejected: {_some(facts.plan.rejected)}")
    return Text("\n".join(canvas.name(line) for line in lines), overflow="fold")


def _late_names(facts: Facts) -> list[str]:
    by_name = {run.job: run.tardiness_h for run in facts.plan.runs}
    return [f"{name} (by {hours(by_name[name])})" for name in facts.late]


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
    return ", ".join(names[:NAMES_SHOWN]) + more
