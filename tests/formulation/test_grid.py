"""The time grid: prices and windows, against plain recounts of what the definition says."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models import grid
from models.domain import Instance
from models.domain.entities import Site
from models.domain.prices import EnergyTariff, HourlyTariff
from tests.formulation.cases import HOUR, Doc, instance_of, job

CHECKED = settings(max_examples=100, deadline=None, derandomize=True)
STEP_S = 30


def instance_with(slots: int = 8, pool: Doc | None = None, **fields: Any) -> Instance:
    """An instance with one job, a pool of three nodes and whatever is said."""
    return instance_of("grid", slots, [{"gpus_per_node": 2, "nodes": 3} | (pool or {})], [job("j", 1)], **fields)


def clock(minutes: int) -> str:
    return f"{minutes // 60:02d}:{minutes % 60:02d}"


windows = st.lists(
    st.tuples(st.integers(0, 1439), st.integers(0, 1440), st.sampled_from([0.0, 0.5, 2.0, 7.0])), max_size=3
)


@CHECKED
@given(
    windows,
    st.integers(0, 86400 // STEP_S - 1),
    st.sampled_from([STEP_S, 420, 450, 900, 3600, 5400, 100_800]),
    st.integers(1, 6),
)
def test_price_of_a_slot_is_its_time_average(
    listed: list[tuple[int, int, float]], start: int, slot: int, num_slots: int
) -> None:
    """Against a sum over steps of half a minute, each at the price that the clock shows in its middle."""
    rows = [{"since": clock(a), "until": clock(b), "price": price} for a, b, price in listed if a != b]
    tariff = HourlyTariff.model_validate({"default": 1.0, "windows": rows})
    begin = datetime.fromisoformat("2026-03-28T00:00:00+01:00") + timedelta(seconds=STEP_S * start)
    instance = instance_with(1, start=begin.isoformat(), slot=float(slot), horizon=float(slot))

    def at(moment: datetime) -> float:
        minute = moment.hour * 60 + moment.minute + moment.second / 60
        for a, b, price in listed:
            if (a < b and a <= minute < b) or (b < a and (minute >= a or minute < b)):
                return price
        return 1.0

    steps = slot // STEP_S
    expected = [
        sum(at(begin + timedelta(seconds=t * slot + STEP_S * (k + 0.5))) for k in range(steps)) / steps
        for t in range(num_slots)
    ]
    np.testing.assert_allclose(grid.price_by_slot(instance, tariff, num_slots), expected, rtol=1e-9, atol=1e-9)


def test_a_slot_within_a_window_has_exactly_its_price() -> None:
    tariff = HourlyTariff.model_validate(
        {"default": 0.3, "windows": [{"since": "22:00", "until": "06:00", "price": 0.1}]}
    )
    prices = grid.price_by_slot(instance_with(14), tariff, 14).tolist()
    assert prices == [0.3] * 4 + [0.1] * 8 + [0.3] * 2


def test_the_first_window_that_holds_wins() -> None:
    rows = [{"since": "19:00", "until": "20:00", "price": 5.0}, {"since": "18:00", "until": "21:00", "price": 2.0}]
    tariff = EnergyTariff.model_validate({"default": 1.0, "windows": rows})
    assert grid.price_by_slot(instance_with(4), tariff, 4).tolist() == [2.0, 5.0, 2.0, 1.0]


@pytest.mark.parametrize(
    ("price", "expected"),
    [
        (3.0, [3.0] * 4),
        ((1.0, 2.0), [1.0, 2.0, 2.0, 2.0]),
        ((1.0, 2.0, 3.0, 4.0, 5.0), [1.0, 2.0, 3.0, 4.0]),
        (HourlyTariff(default=6.0), [6.0] * 4),
    ],
)
def test_constant_prices_and_lists(price: Any, expected: list[float]) -> None:
    assert grid.price_by_slot(instance_with(), price, 4).tolist() == expected


def test_money_of_a_slot() -> None:
    """Prices are those of an hour; billed tails go on beyond the horizon."""
    pool = {"price": [1.0, 2.0, 4.0, 8.0], "billing_increment": HOUR, "gpu_power": 0.5}
    instance = instance_with(4, pool, slot=HOUR / 2, horizon=2 * HOUR)
    assert grid.block_slots(instance, instance.pools[0]) == 2
    assert grid.node_prices(instance, instance.pools[0], 4).tolist() == [0.5, 1.0, 2.0, 4.0, 4.0, 4.0]
    site = Site.model_validate({"id": "home", "kind": "on_prem", "energy_price": 0.2})
    np.testing.assert_allclose(grid.energy_prices(instance, site, instance.pools[0], 3), [0.05] * 3)


@pytest.mark.parametrize(("increment", "slots"), [(0.0, 1), (60.0, 1), (HOUR, 1), (2 * HOUR, 2), (24 * HOUR, 24)])
def test_blocks(increment: float, slots: int) -> None:
    instance = instance_with(pool={"billing_increment": increment})
    assert grid.block_slots(instance, instance.pools[0]) == slots


@pytest.mark.parametrize(("boot", "slots"), [(0.0, 0), (1.0, 1), (HOUR, 1), (HOUR * (1 + 1e-10), 1), (HOUR + 1, 2)])
def test_boots(boot: float, slots: int) -> None:
    instance = instance_with(pool={"boot_time": boot})
    assert grid.boot_slots(instance, instance.pools[0]) == slots


def test_releases_and_deadlines_lie_on_edges() -> None:
    instance = instance_with()
    times = (0.0, 0.5 * HOUR, HOUR * (1 - 1e-10), HOUR * (1 + 1e-10), 1.5 * HOUR)
    assert [grid.release_slot(instance, time) for time in times] == [0, 1, 1, 1, 2]
    assert [grid.deadline_slot(instance, time) for time in times] == [0, 0, 1, 1, 1]


gaps = st.lists(
    st.tuples(
        st.integers(0, 18),
        st.integers(1, 9),
        st.one_of(st.none(), st.integers(0, 3), st.lists(st.integers(0, 2), min_size=1, max_size=3, unique=True)),
    ),
    max_size=3,
)


@CHECKED
@given(gaps, st.integers(0, 5), st.integers(0, 3))
def test_windows_take_every_slot_that_they_overlap(listed: list[tuple[int, int, Any]], boot: int, on: int) -> None:
    """Half hours on a grid of hours; a boot of so many half hours before the first use, unless on from the start."""
    half = HOUR / 2
    rows: list[Doc] = []
    for since, length, who in listed:
        nodes = {} if who is None else {"nodes": sorted(who) if isinstance(who, list) else who}
        rows.append({"since": since * half, "until": (since + length) * half} | nodes)
    instance = instance_with(pool={"unavailable": rows, "boot_time": boot * half, "nodes_on": on})
    pool = instance.pools[0]

    def is_available(node: int, slot: int) -> bool:
        for since, length, who in listed:
            taken = range(3) if who is None else who if isinstance(who, list) else range(3 - who, 3)
            if node in taken and since < 2 * slot + 2 and 2 * slot < since + length:
                return False
        return True

    def is_usable(node: int, slot: int) -> bool:
        """Available while it boots and in the slot; or ever since the start, on a node that is on then."""
        boot_slots = -(-boot // 2)
        if node < on and all(is_available(node, t) for t in range(slot + 1)):
            return True
        return slot >= boot_slots and all(is_available(node, t) for t in range(slot - boot_slots, slot + 1))

    expected = [[is_available(node, slot) for slot in range(8)] for node in range(3)]
    assert grid.available(instance, pool, 8).tolist() == expected
    expected = [[is_usable(node, slot) for slot in range(8)] for node in range(3)]
    assert grid.usable(instance, pool, 8).tolist() == expected


def test_nodes_of_running_jobs_are_on_at_the_start() -> None:
    running = {"mode": "2xp0", "pool": "p0", "places": [{"node": 2, "gpus": [0, 1]}]}
    pools = [{"gpus_per_node": 2, "nodes": 4, "nodes_on": 1}]
    instance = instance_of("grid", 4, pools, [job("j", 1, 2, running=running)])
    assert grid.on_at_start(instance, instance.pools[0]).tolist() == [True, False, True, False]


def site_with(**storage: Any) -> Site:
    return Site.model_validate({"id": "s", "kind": "cloud", "storage": storage})


def test_billed_hours_are_those_of_the_plan_unless_stated() -> None:
    instance = instance_with(slot=HOUR / 2, horizon=4 * HOUR)
    assert grid.billed_hours(instance, site_with(), 6) == 3.0
    assert grid.billed_hours(instance, site_with(billed=24 * HOUR), 6) == 24.0
