"""Oracle, enumeration and checker agree with optima that were computed by hand, a rule of the model each."""

from __future__ import annotations

import math
from typing import Any

import pytest

from models.check import check
from models.domain.instance import Instance
from tests.brute import brute_optimum
from tests.documents import HOUR, Doc, document
from tests.oracle import optimal_plan, optimum


def mode(hours: float, gpus: int = 1, pool: str = "own", **fields: Any) -> Doc:
    """A mode on whole GPUs."""
    return {"id": f"{pool}{gpus}", "pool": pool, "gpus": gpus, "duration": hours * HOUR} | fields


def share(hours: float, part: float, **fields: Any) -> Doc:
    """A mode on a share of a GPU."""
    return {"id": "share", "pool": "own", "share": part, "duration": hours * HOUR} | fields


def running(mode_name: str, node: int, gpus: list[int], movable: bool, pool: str = "own") -> Doc:
    """Where a job runs already."""
    return {"mode": mode_name, "pool": pool, "movable": movable, "places": [{"node": node, "gpus": gpus}]}


LATE = {"due": 2 * HOUR, "weight": 1.5}
BOTH_GPUS = [mode(2, 2), mode(2, 2, "rent")]
READER = {"dataset": "data", "modes": [mode(2, read_rate=100.0)]}
SIGMOID = {"shape": "sigmoid", "worth": 8.0, "scale": HOUR / math.log(10000.0)}
TARIFF = [{"fixed": 0.0, "per_mb_s": 0.01}, {"fixed": 0.5, "per_mb_s": 0.005}]

BY_HAND: dict[str, tuple[Doc, float | None]] = {
    "a duration is rounded up": (document([{"modes": [mode(1.5)]}]), 2.0),
    "two on one node": (document([{"modes": [mode(2)]}, {"modes": [mode(2)]}]), 2.0),
    # One after the other the second is 2 h late, on 4 h of the node; or each has a node of its own for 2 h.
    "late rather than rented": (document([LATE | {"modes": BOTH_GPUS}] * 2), 4 + 2 * 1.5),
    "rented rather than late": (document([LATE | {"modes": BOTH_GPUS, "weight": 4.0}] * 2), 2 + 2 * 4.0),
    # Fast on both GPUs: 1 h of the node; slow on one: 3 h.
    "more GPUs finish sooner": (document([{"modes": [mode(1, 2), mode(3)]}]), 1.0),
    "energy of the slices taken": (
        document(
            [{"modes": [share(2, 0.3)]}],
            pools__0__slices_per_gpu=4,
            pools__0__gpu_power=0.5,
            sites__0__energy_price=1.0,
        ),
        2 * 1.0 + 2 * 0.5 * 0.5,
    ),
    # Four halves fit on two GPUs, or, with their memories, just two: then the node is on for 2 * 2 h.
    "shares": (document([{"modes": [share(2, 0.5)]}] * 4, pools__0__slices_per_gpu=2), 2.0),
    "memories of shares": (
        document(
            [{"modes": [share(2, 0.5, memory=10.0)]}] * 4,
            pools__0__slices_per_gpu=2,
            pools__0__gpu_memory=16.0,
        ),
        4.0,
    ),
    "cores of a node": (document([{"modes": [mode(2, cpu_cores=5)]}] * 2, pools__0__cpu_cores=8), 4.0),
    "RAM of a node": (document([{"modes": [mode(2)], "ram": 40.0}] * 2, pools__0__ram=64.0), 4.0),
    # Three GPUs take two nodes of two, and the energy of three.
    "a gang": (
        document(
            [{"modes": [mode(2, 3)]}, {"modes": [mode(1)]}],
            pools__0__nodes=2,
            pools__0__gpu_power=1.0,
            sites__0__energy_price=0.25,
        ),
        2 * 2 + 2 * 3 * 0.25 + 1 * 1.25,
    ),
    # Pinned on different nodes for an hour, so that no node has two free GPUs before.
    "nodes are whole": (
        document(
            [
                {"modes": [mode(1)], "running": running("own1", 0, [0], False)},
                {"modes": [mode(1)], "running": running("own1", 1, [1], False)},
                {"modes": [mode(1, 2)], "due": HOUR, "weight": 2.0},
            ],
            pools__0__nodes=2,
        ),
        1 + 1 + 1 + 2.0,
    ),
    # Boots for 1 h, runs for 1 h, pays for 3 h.
    "boot and blocks": (
        document([{"modes": [mode(1)]}], pools__0__boot_time=HOUR, pools__0__billing_increment=3 * HOUR),
        3.0,
    ),
    "a node that is on needs no boot": (
        document([{"modes": [mode(1)]}], pools__0__boot_time=HOUR, pools__0__nodes_on=1),
        1.0,
    ),
    # On for 2 + 2 h with 1 h between: two blocks of 2 h cost 4; staying on for 5 h would cost three, 6.
    "a node is switched off and on": (
        document(
            [{"modes": [mode(2)], "deadline": 2 * HOUR}, {"modes": [mode(2)], "release": 3 * HOUR}],
            pools__0__billing_increment=2 * HOUR,
        ),
        4.0,
    ),
    # Intervals that touch are one: the second block is slots 2 and 3; one of 1 and 2 would be cheaper.
    "blocks are counted from the beginning": (
        document(
            [
                {"modes": [mode(1)], "deadline": HOUR},
                {"modes": [mode(2)], "release": HOUR, "deadline": 3 * HOUR},
            ],
            pools__0__billing_increment=2 * HOUR,
            pools__0__price=[1, 1, 1, 5, 1, 1],
        ),
        8.0,
    ),
    # Begins at slot 5 for the price, and pays the last price for the two slots beyond the horizon.
    "blocks beyond the horizon": (
        document([{"modes": [mode(1)]}], pools__0__billing_increment=3 * HOUR, pools__0__price=[9, 9, 9, 9, 1, 0.5]),
        3 * 0.5,
    ),
    # 0.25 from 20:30 to 22:00: slot 3 costs 0.25, slot 2 half of 1 and half of 0.25.
    "a price of a time of day": (
        document(
            [{"modes": [mode(2)]}],
            pools__0__price={
                "default": 1.0,
                "windows": [{"since": "20:30", "until": "22:00", "price": 0.25}],
            },
        ),
        0.625 + 0.25,
    ),
    # Slots 0-2 are taken by a window that ends in the middle of slot 2.
    "an unavailable window": (
        document([LATE | {"modes": [mode(2)]}], pools__0__unavailable=[{"since": HOUR / 2, "until": 2.5 * HOUR}]),
        2 + 3 * 1.5,
    ),
    # Together: 200 MB/s, on the second line 1.5 an hour for 6 h. One after the other: 1 an hour, 2 h more.
    "readers one after the other": (document([READER] * 2, sites__0__storage={"tariff": TARIFF}), 6 + 4.0),
    "readers at once": (
        document([READER | LATE] * 2, sites__0__storage={"tariff": TARIFF}),
        6 * 1.5 + 2.0,
    ),
    # Half speed: 4 h, at 50 MB/s for 0.5 an hour.
    "a throttled reader": (
        document([READER | {"speed_levels": [1.0, 0.5]}], sites__0__storage={"tariff": TARIFF[:1]}),
        4 + 6 * 0.5,
    ),
    # 100 GB at 0.01 for 6 h, once for both readers.
    "a shared cache": (
        document(
            [READER] * 2,
            sites__0__storage={"tariff": TARIFF, "cache_capacity": 100.0, "cache_price": 0.01},
        ),
        6.0 + 2.0,
    ),
    # Half a dataset fits: 50 MB/s remain of 100.
    "half in the cache": (
        document(
            [READER],
            cache_levels=2,
            sites__0__storage={"tariff": TARIFF[:1], "cache_capacity": 60.0, "cache_price": 0.005},
        ),
        2 + 6 * 0.5 + 50 * 0.005 * 6,
    ),
    # 100 MB/s in the cheaper tier beside 100 in the first, 1.5 an hour; not one after the other, for lateness.
    "tiers": (
        document(
            [READER | LATE] * 2,
            sites__0__storage={"tiers": [{"up_to": 100.0, "per_mb_s": 0.01}, {"per_mb_s": 0.005}]},
        ),
        6 * 1.5 + 2.0,
    ),
    "tiers up to an end": (document([READER], sites__0__storage={"tiers": [{"up_to": 99.0, "per_mb_s": 0.01}]}), None),
    # One after the other: 1 an hour; at once 0.1 * 200^0.5 = 1.414 and 2 h less, 10.49. By a chord up to 200 MB/s it
    # would be 0.707 an hour.
    "a power law": (
        document([READER] * 2, sites__0__storage={"power": {"factor": 0.1, "exponent": 0.5, "up_to": 200.0}}),
        6 + 4.0,
    ),
    "a power law up to an end": (
        document([READER], sites__0__storage={"power": {"factor": 0.1, "exponent": 0.5, "up_to": 99.0}}),
        None,
    ),
    # Of 0.01 s for a MB, half is fetched from the cache at 200 MB/s: 0.0025 s; the other at 0.5 / 0.0075 = 66 2/3 MB/s.
    "half in a slow cache": (
        document(
            [READER],
            cache_levels=2,
            sites__0__storage={
                "tariff": TARIFF[:1],
                "cache_capacity": 60.0,
                "cache_price": 0.005,
                "cache_speed": 200.0,
            },
        ),
        2 + 6 * 2 / 3 + 50 * 0.005 * 6,
    ),
    "a cache that is no faster than its reader": (
        document([READER], sites__0__storage={"tariff": TARIFF[:1], "cache_capacity": 100.0, "cache_speed": 100.0}),
        2 + 6.0,
    ),
    # Half speed: 4 h, but then all of it comes from the cache.
    "a reader throttled to the cache": (
        document(
            [READER | {"speed_levels": [1.0, 0.5]}],
            sites__0__storage={"tariff": TARIFF[:1], "cache_capacity": 100.0, "cache_speed": 100.0},
        ),
        4.0,
    ),
    "too little bandwidth": (document([READER], sites__0__storage={"bandwidth_cap": 99.0}), None),
    # 0.72 TB across at 0.01 per GB, or the dataset once.
    "data read far from home": (
        document([{"dataset": "data", "modes": [mode(2, 1, "rent", read_rate=100.0)]}]),
        8 + 7.2,
    ),
    "data cached far from home": (
        document(
            [{"dataset": "data", "modes": [mode(2, 1, "rent", read_rate=100.0)]}],
            sites__1__storage={"cache_capacity": 100.0},
        ),
        8 + 1.0,
    ),
    "a network link carries one at a time": (
        document(
            [{"dataset": "data", "modes": [mode(1, 1, "rent", read_rate=100.0)]}] * 2,
            network__0__bandwidth=150.0,
        ),
        8 + 2 * 3.6,
    ),
    # Whoever waits for a rejected job is rejected: 3 + 0.5; running both would cost 1 + 2.5 at the least.
    "rejection of a chain": (
        document(
            [
                {"modes": [mode(2.5)], "reject_cost": 0.5},
                {"modes": [mode(1)], "reject_cost": 3.0, "after": ["j0"]},
            ]
        ),
        3.5,
    ),
    "predecessors": (
        document([{"modes": [mode(1)]}, {"modes": [mode(1)], "after": ["j0"], "due": 0.0, "weight": 1.0}]),
        2 + 2.0,
    ),
    "no plan by the deadline": (document([{"modes": [mode(3)], "deadline": 2 * HOUR}]), None),
    # Kept on the rented node for 8, or moved for 1 and run at home for 4.
    "a running job is moved": (
        document(
            [
                {
                    "modes": [mode(2, 1, "rent"), mode(4)],
                    "running": running("rent1", 0, [1], True, "rent"),
                    "restart_cost": 1.0,
                }
            ]
        ),
        5.0,
    ),
    "a running job is kept at full speed": (
        document(
            [
                {
                    "modes": [mode(2, 1, "rent"), mode(4)],
                    "running": running("rent1", 0, [1], True, "rent"),
                    "restart_cost": 5.0,
                    "speed_levels": [0.5, 1.0],
                }
            ]
        ),
        8.0,
    ),
    "a step of value is lost": (
        document(
            [
                {
                    "modes": [mode(3)],
                    "value": [{"by": 2.5 * HOUR, "value": 5.0}, {"by": 3 * HOUR, "value": 4.0}],
                }
            ]
        ),
        3 + 1.0,
    ),
    # Complete after 3 h, of 2 h to 6 h: a quarter of 8.
    "a linear utility": (
        document(
            [
                {
                    "modes": [mode(3)],
                    "utility": {"shape": "linear", "worth": 8.0, "full_until": 2 * HOUR, "zero_at": 6 * HOUR},
                }
            ]
        ),
        3 + 2.0,
    ),
    # Owned, done after 3 h: 3 + 4.5, since all is lost; rented, done after 2 h: 8.
    "a step of utility": (
        document(
            [
                {
                    "modes": [mode(3), mode(2, 1, "rent")],
                    "utility": {"shape": "step", "worth": 4.5, "by": 2.5 * HOUR},
                }
            ]
        ),
        3 + 4.5,
    ),
    # The first completes at 1 h, where half of 8 is left; the second an hour before its midpoint, where all but a ten-
    # thousandth of 2 is.
    "a sigmoid utility": (
        document(
            [
                {"modes": [mode(1, 2)], "utility": SIGMOID | {"midpoint": 1 * HOUR}},
                {"modes": [mode(1, 2)], "utility": SIGMOID | {"midpoint": 3 * HOUR, "worth": 2.0}},
            ]
        ),
        2 + 4.0 + 2.0 / (1.0 + 10000.0),
    ),
    # Released at 1 h, it waits for the low price and completes at 4 h: 3 h instead of 2 h, so a third of 3 is lost.
    "finish-time fairness": (
        document(
            [
                {
                    "modes": [mode(1)],
                    "release": HOUR,
                    "utility": {"shape": "finish_time_fairness", "worth": 3.0, "fair_time": 2 * HOUR},
                }
            ],
            pools__0__price=[9, 9, 9, 1, 1, 1],
        ),
        1 + 1.0,
    ),
    # It would complete too late to be worth anything. Rejecting it costs what that says, and none of its worth.
    "a job with a worth is rejected": (
        document(
            [
                {
                    "modes": [mode(3)],
                    "utility": {"shape": "step", "worth": 50.0, "by": 2 * HOUR},
                    "reject_cost": 3.5,
                }
            ]
        ),
        3.5,
    ),
    # 0.5 an hour for 2 h, and 0.25 interruptions an hour at 2 each.
    "a spot node": (
        document(
            [{"modes": [mode(2, 1, "rent"), mode(2)], "spot": True, "restart_cost": 2.0}],
            pools__1__market="spot",
            pools__1__price=0.25,
            pools__1__interruption_rate=0.25,
        ),
        2 * 0.25 + 0.25 * 2 * 2.0,
    ),
    # Either of two nodes may be taken back.
    "a gang on spot nodes": (
        document(
            [{"modes": [mode(2, 4, "rent")], "spot": True, "restart_cost": 2.0}],
            pools__1__nodes=2,
            pools__1__market="spot",
            pools__1__interruption_rate=0.25,
        ),
        2 * 2 * 4 + 0.25 * 2 * 2 * 2.0,
    ),
    # Stopping it costs what rejecting it costs, be it pinned or not.
    "a running job is rejected": (
        document(
            [
                {
                    "modes": [mode(2)],
                    "running": running("own1", 0, [1], False),
                    "restart_cost": 1.0,
                    "reject_cost": 0.5,
                }
            ]
        ),
        0.5,
    ),
    "no jobs": (document([]), 0.0),
}


@pytest.mark.parametrize("name", BY_HAND)
def test_the_oracle_finds_what_was_computed_by_hand(name: str) -> None:
    doc, expected = BY_HAND[name]
    instance = Instance.model_validate(doc)
    assert optimum(instance) == (None if expected is None else pytest.approx(expected))
    assert brute_optimum(instance) == (None if expected is None else pytest.approx(expected))
    plan = optimal_plan(instance)
    assert plan is None or check(instance, plan).violations == ()
