"""The table of fast against exact counts what it says, and sees a plan above a bound."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.elastic import Elastic
from benchmarks.welfare_exact import Pair, table

PAIR = Pair(Elastic(16, "welfare", "power", "small", 8, 1), 0.5, 90.0, 120.0, 100.0, 100.0)


def test_a_plan_above_the_other_engines_bound_is_told() -> None:
    assert PAIR.contradiction is None
    assert replace(PAIR, fast=100.0).contradiction is None
    assert "the plan of fast" in str(replace(PAIR, fast=100.1).contradiction)
    assert "the plan of exact" in str(replace(PAIR, fast_bound=99.9).contradiction)


def test_a_pair_is_proven_by_the_better_plan_and_the_lower_bound() -> None:
    assert PAIR.is_proven
    assert PAIR.short == 1 - 0.9
    assert PAIR.gap == 0.25
    assert not replace(PAIR, exact_bound=110.0).is_proven
    assert replace(PAIR, exact_bound=110.0, fast_bound=100.0).is_proven


def test_the_table_counts_by_size_and_budget() -> None:
    better = replace(PAIR, fast=100.0, exact=90.0, exact_bound=130.0)
    *_, line = table([PAIR, better])
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert cells == ["8", "16", "50%", "2", "1", "1", "5.00%", "10.00%", "20.83%", "25.00%", "1", "1"]
