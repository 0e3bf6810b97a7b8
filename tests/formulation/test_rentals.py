"""On-intervals of a node: the cheapest of all covers, found by trying every one of them."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.rentals import NodeRules, cheapest_intervals
from tests.formulation.cases import CASES

Cover = list[tuple[int, int]]


def rules_of(block: int, boot: int, prices: list[float], available: list[bool], is_on: bool) -> NodeRules:
    """The rules of a pool of one node; prices go on beyond the horizon with the last one."""
    listed = np.array([*prices, *[prices[-1]] * block])
    return NodeRules(block, boot, listed, np.array([available]), np.array([is_on]))


def covers(rules: NodeRules, busy: list[bool], first: int = 0) -> Iterator[Cover]:
    """Every set of on-intervals that the definition allows from a slot on: booted where busy, apart, available."""
    if not any(busy[first:]):
        yield []
    for begin in range(first, len(busy)):
        if any(busy[first:begin]):
            return
        boot = 0 if begin == 0 and rules.on_at_start[0] else rules.boot
        for end in range(begin + 1, len(busy) + 1):
            if not rules.available[0][end - 1]:
                break
            if any(busy[begin : min(end, begin + boot)]):
                break
            if end < len(busy) and busy[end]:
                continue  # a busy slot is in this interval, or after a slot in which the node is off
            for rest in covers(rules, busy, end + 1):
                yield [(begin, end), *rest]


def billed(rules: NodeRules, cover: Cover) -> float:
    """Whole blocks from the begin of each interval, slot by slot."""
    total = 0.0
    for begin, end in cover:
        blocks = -(-(end - begin) // rules.block)
        total += sum(float(rules.price[t]) for t in range(begin, begin + blocks * rules.block))
    return total


@st.composite
def nodes(draw: st.DrawFn) -> tuple[NodeRules, list[bool]]:
    """Rules and busy slots of a node."""
    slots = draw(st.integers(1, 8))
    block, boot = draw(st.integers(1, 4)), draw(st.integers(0, 2))
    prices = draw(st.lists(st.integers(0, 9), min_size=slots, max_size=slots))
    available = draw(st.lists(st.sampled_from([True, True, True, False]), min_size=slots, max_size=slots))
    wanted = draw(st.lists(st.booleans(), min_size=slots, max_size=slots))
    busy = [want and free for want, free in zip(wanted, available, strict=True)]
    return rules_of(block, boot, [float(p) for p in prices], available, draw(st.booleans())), busy


@settings(max_examples=300, deadline=None, derandomize=True)
@given(nodes())
def test_cheapest_of_every_cover(case: tuple[NodeRules, list[bool]]) -> None:
    rules, busy = case
    possible = list(covers(rules, busy))
    if not possible:
        with pytest.raises(ValueError, match="no on-intervals"):
            cheapest_intervals(rules, 0, np.array(busy))
        return
    found = cheapest_intervals(rules, 0, np.array(busy))
    assert found in possible
    assert billed(rules, found) == pytest.approx(min(billed(rules, cover) for cover in possible), abs=1e-9)
    assert math.fsum(rules.cost(*interval) for interval in found) == pytest.approx(billed(rules, found), abs=1e-9)


def intervals(rules: NodeRules, busy: str) -> Cover:
    return cheapest_intervals(rules, 0, np.array([c == "x" for c in busy]))


def test_a_plain_node_is_on_while_busy() -> None:
    rules = rules_of(1, 0, [1.0] * 6, [True] * 6, False)
    assert rules.is_plain
    assert intervals(rules, "x.xx.x") == [(0, 1), (2, 4), (5, 6)]
    assert intervals(rules, "......") == []


def test_it_boots_before() -> None:
    rules = rules_of(1, 2, [1.0] * 6, [True] * 6, False)
    assert intervals(rules, "..x...") == [(0, 3)]
    assert intervals(rules, "...x..") == [(1, 4)]


def test_it_needs_no_boot_where_it_is_on() -> None:
    rules = rules_of(1, 2, [1.0] * 6, [True] * 6, True)
    assert intervals(rules, "x.....") == [(0, 1)]
    assert intervals(rules, ".x....") == [(0, 2)]


def test_it_stays_on_where_a_boot_costs_more() -> None:
    assert intervals(rules_of(1, 1, [1.0] * 7, [True] * 7, False), ".x.x...") == [(0, 4)]
    assert intervals(rules_of(1, 1, [1.0] * 7, [True] * 7, False), ".x....x") == [(0, 2), (5, 7)]


def test_a_block_begins_where_prices_are_low() -> None:
    """A block of three from slot 2 would take in the dear slots 3 and 4; from slot 1 only one of them; from 0 none."""
    rules = rules_of(3, 0, [1.0, 1.0, 1.0, 9.0, 9.0, 9.0, 1.0], [True] * 7, False)
    assert intervals(rules, "..x....") == [(0, 3)]
    assert rules.cost(0, 3) == 3.0
    assert rules.cost(2, 3) == 19.0
    assert rules.billed_end(2, 6) == 8


def test_it_is_off_where_it_is_unavailable() -> None:
    rules = rules_of(2, 1, [1.0] * 7, [True, True, True, False, True, True, True], False)
    assert intervals(rules, ".x...x.") == [(0, 2), (4, 6)]
    with pytest.raises(ValueError, match="no on-intervals"):
        intervals(rules, ".x..x..")


def test_rules_are_those_of_the_pool() -> None:
    rules = NodeRules.of(CASES["rental"].instance, 0, 4)
    assert (rules.block, rules.boot, rules.is_plain) == (2, 1, False)
    assert rules.price.tolist() == [3.0] * 6
    assert rules.available.tolist() == [[True] * 4, [True, False, True, True]]
    assert rules.on_at_start.tolist() == [False, False]
