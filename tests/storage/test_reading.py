"""What a reader takes of the link beside a cache of finite speed, and which levels it may read at."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.starts import all_starts
from models.storage.reading import is_served, link_rate
from tests.engines.samples import instance_of, mode

CHECKED = settings(max_examples=300, deadline=None, derandomize=True)
speeds = st.floats(1e-3, 1e5)


@CHECKED
@given(speeds, st.floats(0.0, 1.0), st.floats(0.001, 0.999))
def test_a_reader_keeps_its_rate(most: float, cached: float, part: float) -> None:
    """The time of an item: of the cached ones at the cache, of the others on the link."""
    rate = part * most
    taken = link_rate(rate, cached, most)
    assert rate * (1 - cached) * (1 - 1e-12) <= taken <= rate * (1 + 1e-12)
    time = cached / most + ((1 - cached) / taken if cached < 1 else 0.0)
    assert time == pytest.approx(1 / rate) if cached < 1 else time <= 1 / rate


@CHECKED
@given(speeds, st.floats(0.0, 1.0))
def test_without_a_limit_it_is_what_is_not_cached(rate: float, cached: float) -> None:
    assert link_rate(rate, cached, None) == rate * (1 - cached)


@CHECKED
@given(speeds, st.lists(st.floats(0.0, 1.0), min_size=2, max_size=2), st.floats(0.001, 0.999))
def test_more_in_the_cache_is_less_on_the_link(most: float, cached: list[float], part: float) -> None:
    less, more = sorted(cached)
    assert link_rate(part * most, more, most) <= link_rate(part * most, less, most) * (1 + 1e-12)


def test_the_limit_is_below_the_speed_of_the_cache() -> None:
    assert is_served(99.0, 100.0)
    assert not is_served(100.0, 100.0)
    assert is_served(1e9, None)


def test_a_reader_that_is_no_slower_than_the_cache_has_no_level_in_it() -> None:
    """At full speed 100 MB/s; half of it, of which a cached half leaves 25 / (1 - 25/100)."""
    jobs = [{"dataset": "data", "modes": [mode(2, read_rate=100.0)], "speed_levels": [1.0, 0.5]}]
    instance = instance_of(jobs, cache_levels=2, sites__0__storage={"cache_capacity": 100.0, "cache_speed": 100.0})
    rates = {(row.mode.speed, row.level): row.link_rate for row in all_starts(instance, 6).rows}
    assert rates == {(1.0, 0): 100.0, (0.5, 0): 50.0, (0.5, 1): pytest.approx(25 / 0.75), (0.5, 2): 0.0}
