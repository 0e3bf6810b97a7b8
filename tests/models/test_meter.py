"""Prices over time: integrals, and the times between which a price stays as it is."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.grid import Meter
from tests.simulation.states import HOUR, instance_of

DAY = {
    "default": 1.0,
    "windows": [{"since": "20:00", "until": "02:00", "price": 3.0}, {"since": "02:00", "until": "04:00", "price": 1.0}],
}


def meter(price: Any) -> Meter:
    """Of a pool whose instance starts at 18:00."""
    instance = instance_of([{"price": price}], [], slot="1h")
    return Meter(instance, instance.pools[0].price)


@pytest.mark.parametrize(
    ("hours", "since", "until"),
    [(0.0, -16.0, 2.0), (2.0, 2.0, 8.0), (7.9, 2.0, 8.0), (8.0, 8.0, 26.0), (11.0, 8.0, 26.0), (26.5, 26.0, 32.0)],
)
def test_a_price_stays_over_midnight_and_over_windows_that_do_not_change_it(
    hours: float, since: float, until: float
) -> None:
    assert meter(DAY).piece(hours * HOUR) == (since * HOUR, until * HOUR)


def test_a_price_that_never_changes_has_no_end() -> None:
    assert meter(2.0).piece(5.0) == (float("-inf"), float("inf"))
    assert meter({"default": 1.0, "windows": []}).piece(5.0) == (float("-inf"), float("inf"))


def test_a_list_goes_on_with_its_last_entry() -> None:
    instance = instance_of([{"price": [1.0, 2.0, 3.0]}], [], slot="1h", horizon="3h")
    listed = Meter(instance, instance.pools[0].price)
    assert [listed.piece(h * HOUR) for h in (0.5, 1.0, 9.0)] == [(0, HOUR), (HOUR, 2 * HOUR), (2 * HOUR, float("inf"))]


@given(st.floats(0, 400 * HOUR), st.floats(0.01, 1.0))
def test_within_a_piece_the_mean_is_the_price(seconds: float, part: float) -> None:
    day = meter(DAY)
    since, until = day.piece(seconds)
    assert since <= seconds < until
    price = 3600 * day.cost(seconds, seconds + 1.0) if seconds + 1.0 < until else None
    end = seconds + part * (until - seconds)
    if price is not None and end - seconds > 1.0:
        assert 3600 * day.cost(seconds, end) / (end - seconds) == pytest.approx(price, rel=1e-6)
    beyond = 3600 * day.cost(until, until + 1.0)
    assert price is None or abs(beyond - price) > 1.0
