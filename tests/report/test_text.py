"""Names from outside cannot command the terminal; numbers say what they are."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.report import text


@given(st.text())
def test_clean_leaves_nothing_that_moves_hides_or_turns(name: str) -> None:
    kinds = {unicodedata.category(char) for char in text.clean(name) if char not in "\u200c\u200d"}
    assert not kinds & {"Cc", "Cf", "Cs", "Zl", "Zp"}


@given(st.text())
def test_clean_for_ascii_is_ascii(name: str) -> None:
    shown = text.clean(name, ascii_only=True)
    assert shown.isascii()
    assert shown == "" or shown.isprintable()


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("job-1", "job-1"),
        ("résumé 名前", "résumé 名前"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("a\x9b2Jb", "a\\x9b2Jb"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
        ("a\nb\rc", "a\\x0ab\\x0dc"),
        ("\udcff", "\\udcff"),
        ("\U000e0041", "\\U000e0041"),
        ("[red]x[/red]", "[red]x[/red]"),
    ],
)
def test_clean_shows_what_it_disarms(name: str, shown: str) -> None:
    assert text.clean(name) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0, "0.00"), (1234.5, "1,234.50"), (0.00123, "0.00123"), (-0.05, "-0.05"), (0.1, "0.10")],
)
def test_small_amounts_keep_their_digits(value: float, shown: str) -> None:
    assert text.number(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "unknown"),
        (0.0, "0 %"),
        (1.7e-16, "0 %"),
        (-1e-12, "0 %"),
        (2e-9, "2e-07 %"),
        (0.0123, "1.23 %"),
        (1e-6, "0.0001 %"),
        (1.0, "100.00 %"),
    ],
)
def test_only_zero_reads_as_zero(value: float | None, shown: str) -> None:
    assert text.share(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0, "0 min"), (0.5, "30 min"), (26.25, "1 d 2 h 15 min"), (0.001, "3.6 s"), (48, "2 d")],
)
def test_hours(value: float, shown: str) -> None:
    assert text.hours(value) == shown


@given(st.sets(st.integers(0, 60)))
def test_ranges_name_exactly_the_indices(indices: set[int]) -> None:
    found: set[int] = set()
    for part in filter(None, text.ranges(indices).split(",")):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    assert found == indices


def test_clock_keeps_the_zone_of_the_start() -> None:
    clock = text.Clock("2026-01-12T18:10:00+01:00", 1800)
    assert clock.slot(12) == "2026-01-13 00:10"
    assert clock.short(12) == "13 Jan 00:10"
    assert clock.zone == "+01:00"
    assert text.Clock("2026-01-12T18:10:00Z", 60).zone == "UTC"
    assert text.Clock("2026-01-12T18:10:00+00:00", 7).slot(1) == "2026-01-12 18:10:07"
