"""Tables on narrow pages: numbers stay whole, words fold, and what there is no room for is left away by rank."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from planner.report.canvas import Canvas
from planner.report.fitted import Column, fitted

COLUMNS = (Column("name"), Column(">money an hour"), Column(">GB", 1), Column("what", 2))
ROWS = (
    ("a-dataset-with-a-long-name", "1,234,567.89", "98,765.4 %", "what it is for, in some words"),
    ("b", "0.01", "5", ""),
)


def drawn(width: int) -> str:
    """The table as it is printed."""
    page = io.StringIO()
    Console(file=page, width=width, color_system=None).print(fitted("Table", COLUMNS, ROWS, Canvas(width)))
    return page.getvalue()


@pytest.mark.parametrize(
    ("width", "headings", "left"),
    [
        (120, "name money an hour GB what", ""),
        (60, "name money an hour GB what", ""),
        (45, "name money an hour GB", "no room for: what"),
        (30, "name money an hour", "no room for: GB; what"),
    ],
)
def test_columns_by_width(width: int, headings: str, left: str) -> None:
    said = drawn(width)
    assert all(len(line.rstrip()) <= width for line in said.splitlines())
    assert set(headings.split()) == set(said.split("─")[0].split()) - {"Table"}
    assert "1,234,567.89" in said
    assert ("98,765.4 %" in said) == ("GB" in headings)
    assert left in said
    assert ("no room" in said) == bool(left)


def test_names_fold_and_are_not_cut() -> None:
    said = drawn(30)
    folded = "".join(line[:15].strip() for line in said.splitlines()[4:] if line.strip())
    assert "a-dataset-with-a-long-name" in folded
