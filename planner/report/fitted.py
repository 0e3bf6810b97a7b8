"""Tables of numbers that stay whole on a narrow page: columns that there is no room for are left away instead."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from planner.report.canvas import Canvas
from planner.report.tables import table

LEAST, BETWEEN = 12, 3
"""Cells in which a column of words can be read, and between two columns."""


@dataclass(frozen=True)
class Column:
    """A heading, with > before it over numbers, which are set to the right."""

    heading: str
    rank: int = 0
    """The column of the highest rank is left away first; those of rank 0 never are."""

    is_bar: bool = False
    """Whether its cells are drawn, not written."""

    @property
    def stays_whole(self) -> bool:
        """Whether its cells are never broken."""
        return self.is_bar or self.heading.startswith(">")


Cell = str | Text


def fitted(title: str, columns: Sequence[Column], rows: Sequence[Sequence[Cell]], canvas: Canvas) -> Table:
    """A table no wider than the page; a line below it names what was left away."""
    spans = [_span(column, [row[k] for row in rows], canvas) for k, column in enumerate(columns)]
    kept = list(range(len(columns)))
    while _width([spans[k][0] for k in kept]) > canvas.width and any(columns[k].rank for k in kept):
        kept.remove(max(kept, key=lambda k: columns[k].rank))
    made = table(title, [columns[k].heading for k in kept], canvas)
    spare = canvas.width - _width([spans[k][0] for k in kept])
    for column, k in zip(made.columns, kept, strict=True):
        least, most = spans[k]
        column.width = least + max(0, min(most - least, spare))
        spare -= column.width - least
    for row in rows:
        made.add_row(*(row[k] for k in kept))
    if len(kept) < len(columns):
        left = [column.heading.lstrip(">") for k, column in enumerate(columns) if k not in kept and column.heading]
        made.caption, made.caption_justify = f"no room for: {'; '.join(left)}" if left else None, "left"
    return made


def _width(widths: Sequence[int]) -> int:
    return sum(widths) + BETWEEN * (len(widths) - 1)


def _span(column: Column, cells: Sequence[Cell], canvas: Canvas) -> tuple[int, int]:
    """Least and most width of use."""
    heading = canvas.name(column.heading.lstrip(">"))
    lines = [line for cell in cells for line in str(cell).splitlines()]
    least = max(map(cell_len, lines if column.stays_whole else _words(lines)), default=0)
    if not column.stays_whole:
        least = min(least, LEAST)
    least = max(1, least, *map(cell_len, _words([heading])))
    return least, max(least, cell_len(heading), *map(cell_len, lines))


def _words(lines: Sequence[str]) -> list[str]:
    return [word for line in lines for word in line.split()] or [""]
