"""The checker's own reckoning of money: prices over time, tariffs, lost value."""

from __future__ import annotations

import math
from typing import Any

import pytest

from models.check import check
from models.check.facts import Facts, read
from models.check.money import price_hours, tariff
from models.check.storage import bandwidth_cap
from models.domain import Instance, Site
from tests.models.hand import make_instance, make_plan, run
from tests.models.worths import WORTHS, instance_worth


@pytest.mark.parametrize("name", WORTHS)
def test_lost_value_is_that_by_hand(name: str) -> None:
    worth, by_hour = WORTHS[name]
    instance = instance_worth(worth)
    for edge, left in by_hour.items():
        made = run(instance, "j0", "own1", "own", (edge - 1, edge), {0: [0]})
        report = check(instance, make_plan(instance, {}, num_slots=12, runs=(made,)))
        assert report.costs["lost_value"] == pytest.approx((8.0 if worth else 0.0) - left, rel=1e-12, abs=1e-12), edge


def _facts(**tables: Any) -> Facts:
    instance: Instance = make_instance(
        sites=[{"id": "lab", "kind": "on_prem"}],
        pools=[
            {
                "id": "p",
                "site": "lab",
                "gpu": "A",
                "gpus_per_node": 1,
                "nodes": 1,
                **tables.pop("pool", {"price": 1}),
            }
        ],
        **tables,
    )
    return read(instance, make_plan(instance, {}, num_slots=0))


@pytest.mark.parametrize(
    ("first", "end", "expected"),
    [
        (0, 4, 4 * 2.0),  # 18:00 to 22:00
        (4, 12, 8 * 1.0),  # 22:00 to 06:00, over midnight
        (11, 13, 1.0 + 2.0),
        (0, 24, 13 * 2.0 + 8 * 1.0 + 3 * 5.0),
        (24, 48, 13 * 2.0 + 8 * 1.0 + 3 * 5.0),
        (0, 24 * 365, 365 * (13 * 2.0 + 8 * 1.0 + 3 * 5.0)),
        (13, 18, 5.0 * 3 + 2.0 * 2),  # 07:00 to 12:00: the window at 5 from 07:00 to 10:00
    ],
)
def test_daily_windows_hold_every_day(first: int, end: int, expected: float) -> None:
    windows = [
        {"since": "22:00", "until": "06:00", "price": 1},
        {"since": "07:00", "until": "10:00", "price": 5},
        {"since": "05:00", "until": "08:00", "price": 5},  # 05:00 and 07:00 are taken; 06:00 is left
        {"since": "06:00", "until": "07:00", "price": 99},
    ]
    price = {"default": 2, "windows": windows}
    expected += 3.0 * _days_with_six(first, end)
    facts = _facts(slot="1h", pool={"price": price})
    assert price_hours(facts, facts.pools["p"].price, first, end) == pytest.approx(expected)


def _days_with_six(first: int, end: int) -> int:
    """How often the hour from 06:00, at 5 instead of 2, is among the slots after 18:00."""
    return sum((18 + slot) % 24 == 6 for slot in range(first, end))


def test_a_slot_across_a_window_has_the_average_price() -> None:
    facts = _facts(
        slot="7h",
        pool={"price": {"default": 1, "windows": [{"since": "23:00", "until": "24:00", "price": 8}]}},
    )
    price = facts.pools["p"].price
    assert price_hours(facts, price, 0, 1) == pytest.approx(6 * 1 + 1 * 8)
    assert price_hours(facts, price, 1, 2) == pytest.approx(7 * 1)


def test_a_list_of_prices_goes_on_with_its_last() -> None:
    facts = _facts(slot="30m", horizon="90m", pool={"price": [1, 2, 4]})
    price = facts.pools["p"].price
    assert price_hours(facts, price, 0, 3) == pytest.approx(3.5)
    assert price_hours(facts, price, 2, 5) == pytest.approx(6.0)
    assert price_hours(facts, price, 7, 9) == pytest.approx(4.0)


PIECES = {"tariff": [{"fixed": 1, "per_mb_s": 0.1}, {"fixed": 6, "per_mb_s": 0}]}
ONE_POINT = {"points": [{"mb_s": 100, "price": 3}]}
TIERS = {"tiers": [{"up_to": 100, "per_mb_s": 0.01}, {"up_to": 300, "per_mb_s": 0.005}, {"per_mb_s": 0.001}]}
CAPPED_TIERS = {"tiers": [{"up_to": 100, "per_mb_s": 0.01}, {"up_to": 200, "per_mb_s": 0.005}]}
POWER = {"power": {"factor": 0.25, "exponent": 0.5, "up_to": 900}}
POINTS = {"points": [{"mb_s": 100, "price": 3}, {"mb_s": 200, "price": 5}, {"mb_s": 400, "price": 6}]}


@pytest.mark.parametrize(
    ("storage", "mb_s", "expected"),
    [
        ({}, 500.0, 0.0),
        (PIECES, 0.0, 0.0),
        (PIECES, 10.0, 2.0),
        (PIECES, 90.0, 6.0),
        (ONE_POINT, 50.0, 1.5),
        (POINTS, 50.0, 2.0),
        (POINTS, 200.0, 5.0),
        (POINTS, 300.0, 5.5),
        (TIERS, 0.0, 0.0),
        (TIERS, 50.0, 0.5),
        (TIERS, 200.0, 1.5),
        (TIERS, 1000.0, 2.7),
        (CAPPED_TIERS, 150.0, 1.25),
        (POWER, 0.0, 0.0),
        (POWER, 4.0, 0.5),
        (POWER, 400.0, 5.0),
    ],
)
def test_the_tariff_is_read_however_it_is_written(storage: dict[str, Any], mb_s: float, expected: float) -> None:
    site = Site.model_validate({"id": "s", "kind": "cloud", "storage": {**storage, "billed": "1h"}})
    assert tariff(site, mb_s) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("changes", "most"),
    [({}, math.inf), ({"bandwidth_cap": 300}, 300.0), (POINTS, 400.0), (POINTS | {"bandwidth_cap": 300}, 300.0),
     (TIERS, math.inf), (CAPPED_TIERS, 200.0), (CAPPED_TIERS | {"bandwidth_cap": 300}, 200.0), (POWER, 900.0)],
)  # fmt: skip
def test_the_most_that_is_sold_is_the_least_of_what_the_tariff_says(changes: dict[str, Any], most: float) -> None:
    assert bandwidth_cap(Site.model_validate({"id": "s", "kind": "cloud", "storage": changes})) == most
