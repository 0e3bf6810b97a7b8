"""The frontier on a page: for each budget what is spent, what it brings, and what is proven of it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from planner.frontier.tradeoff import Row
from planner.report.canvas import Canvas
from planner.report.fitted import Cell, Column, fitted
from planner.report.text import number, share

BAR = 25
UNSURE = 0.01
"""Part of what the cheapest plan spends, beyond which it is said that a cheaper one may exist."""


def ends(cheapest: float, least: float | None, currency: str) -> Iterator[RenderableType]:
    """What is known of the smallest budget, from which the others are counted."""
    proven = "unknown what the least is" if least is None else f"no plan spends less than {number(least)} {currency}"
    yield Text(f"the cheapest plan found spends {number(cheapest)} {currency}; {proven}")
    if least is None or cheapest - least > UNSURE * cheapest:
        yield Text("a cheaper one may exist: a longer --time-limit looks further, --budgets sets budgets", "yellow")


def page(instance: str, currency: str, objective: str, rows: Sequence[Row], canvas: Canvas) -> Iterator[RenderableType]:
    """What `planner frontier` prints: a table with a bar for each budget."""
    yield Text.assemble(
        ("frontier of  ", "dim"), (canvas.name(instance), "bold"), f", objective {objective}, {currency}"
    )
    yield Text("")
    worth = objective == "welfare"
    what = ("welfare", "no more than") if worth else ("cost", "no less than")
    columns = (
        Column(">budget"),
        Column(">spent", 1),
        Column(">tardiness", 4),
        Column(">rejected", 3),
        Column(f">{what[0]}"),
        Column(f">{what[1]}", 2),
        Column(">gap"),
        Column("", 5, is_bar=True),
    )
    most = max((row.value for row in rows if row.value is not None), default=0.0)
    yield fitted("What a budget brings", columns, [_cells(row, most, canvas) for row in rows], canvas)


def _cells(row: Row, most: float, canvas: Canvas) -> list[Cell]:
    """A row as it is shown; the longest bar is that of `most`."""
    if row.value is None:
        note = "below the cheapest plan" if row.is_infeasible else "no plan found"
        return [number(row.budget), "-", "", "", "-", "", "-", Text(note, style="dim")]
    length = round(BAR * row.value / most) if most > 0 and math.isfinite(row.value) else 0
    return [
        number(row.budget),
        number(row.spent or 0.0),
        f"{row.tardiness_h or 0.0:,.1f} h",
        str(row.rejected),
        number(row.value),
        "unknown" if row.bound is None else number(row.bound),
        share(row.gap),
        Text(canvas.pick("█", "#") * length, style="cyan"),
    ]
