"""Each effect of the problem by itself, on an instance whose optimum is worked out by hand beside it.

Where nothing else is said an owned node with two GPUs costs 1 an hour, a rented one 4, and there are six slots of an
hour (`samples.document`). What is compared is written as sums of what is paid.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from models.check import check
from models.starts import all_starts
from models.storage.tariff import tariff_of
from planner.engines.base import Limits, Progress
from planner.engines.fast.engine import Fast
from planner.engines.search import Search
from planner.solve import solve
from tests.engines.samples import (
    HOUR,
    TO_THE_END,
    Doc,
    cheapest,
    instance_of,
    intervals,
    mode,
    pools,
    running,
    segment,
    share,
    spans,
)

BOTH_GPUS = [mode(2, 2), mode(2, 2, "rent")]
READER = {"dataset": "data", "modes": [mode(2, read_rate=100.0)]}
FAR_READER = {"dataset": "data", "modes": [mode(2, 1, "rent", read_rate=100.0)]}


# --- nodes -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rent", "cost", "where"),
    [
        # Owned for 2 h and rented for 2 h: 2 + 2 * 3.9 = 9.8; in turn on the owned one, 2 h late: 4 + 2 * 3 = 10.
        (3.9, 9.8, ["own", "rent"]),
        # In turn 10; rented 2 + 2 * 4.1 = 10.2.
        (4.1, 10.0, ["own", "own"]),
    ],
)
def test_bursting_only_where_it_pays(rent: float, cost: float, where: list[str]) -> None:
    job = {"modes": BOTH_GPUS, "due": 2 * HOUR, "weight": 3.0}
    plan = cheapest([job, job], cost, pools__1__price=rent)
    assert sorted(pools(plan).values()) == where


def test_idle_gpus_of_a_node_are_paid() -> None:
    # On all four GPUs for 2 h: 2 (8 GPU-hours); on one GPU for 3 h the three others are paid too: 3 (3 GPU-hours).
    job = {"modes": [mode(3, 1), mode(2, 4)]}
    plan = cheapest([job], 2.0, pools__0__gpus_per_node=4)
    assert segment(plan, "j0").mode == "own4"
    # The node is on for 3 h anyhow, so the job takes one GPU for nothing; with all four it would be 5 h.
    plan = cheapest([job, {"modes": [mode(3, 1)]}], 3.0, pools__0__gpus_per_node=4)
    assert segment(plan, "j0").mode == "own1"


def test_a_billing_increment_is_rounded_up() -> None:
    # 2 h in blocks of 3 h: 3 * 4; 4 h: 6 * 4.
    every_3_h = {"pools__1__billing_increment": 3 * HOUR}
    plan = cheapest([{"modes": [mode(2, 1, "rent")]}], 12.0, **every_3_h)
    assert [cost for *_, cost in intervals(plan)] == [pytest.approx(12.0)]
    cheapest([{"modes": [mode(4, 1, "rent")]}], 24.0, **every_3_h)
    # Two of 2 h on both GPUs: a block on each of two nodes, 12 + 12; in turn on one node two blocks too, and late.
    job = {"modes": [mode(2, 2, "rent")], "due": 2 * HOUR, "weight": 0.5}
    plan = cheapest([job, job], 24.0, pools__1__nodes=2, **every_3_h)
    assert set(spans(plan).values()) == {(0, 2)}


def test_a_boot_is_paid_and_waited_for() -> None:
    # Rented from the start, used from 1 h to 3 h: 3 * 4, and 1 h late for 0.5.
    job = {"modes": [mode(2, 1, "rent")], "due": 2 * HOUR, "weight": 0.5}
    plan = cheapest([job], 12.5, pools__1__boot_time=HOUR)
    assert spans(plan) == {"j0": (1, 3)}
    assert [on[2:4] for on in intervals(plan)] == [(0, 3)]
    # A node that is on already: 2 * 4.
    assert spans(cheapest([job], 8.0, pools__1__boot_time=HOUR, pools__1__nodes_on=1)) == {"j0": (0, 2)}


@pytest.mark.parametrize(
    ("weight", "cost", "begin"),
    [
        # From 20:00 on for 2 * 1, completed 2 h after it is due: 2 + 2 * 0.5 = 3; at once 4; from 19:00 3 + 0.5.
        (0.5, 3.0, 2),
        # At once 2 * 2 = 4; from 19:00 3 + 1.5 = 4.5; from 20:00 2 + 3 = 5.
        (1.5, 4.0, 0),
    ],
)
def test_a_night_tariff_is_used_where_waiting_costs_less(weight: float, cost: float, begin: int) -> None:
    night = {"default": 2.0, "windows": [{"since": "20:00", "until": "06:00", "price": 1.0}]}
    job = {"modes": [mode(2)], "due": 2 * HOUR, "weight": weight}
    assert spans(cheapest([job], cost, pools__0__price=night)) == {"j0": (begin, begin + 2)}


def test_a_gang_takes_whole_nodes_at_once() -> None:
    # Two nodes for 1 h.
    gang = {"modes": [mode(1, 4)], "due": HOUR, "weight": 1.0}
    plan = cheapest([gang], 2.0, pools__0__nodes=2)
    assert [(place.node, place.gpus) for place in segment(plan, "j0").places] == [(0, (0, 1)), (1, (0, 1))]
    # One GPU is taken in the first hour, so the gang waits for both nodes: 1 + 2, and 1 h late for 1.
    plan = cheapest([gang, {"modes": [mode(1)], "deadline": HOUR}], 4.0, pools__0__nodes=2)
    assert spans(plan) == {"j0": (1, 2), "j1": (0, 1)}


def test_an_unavailable_window_is_avoided() -> None:
    # From 2 h on: 2, and 2 h late for 1 each = 4; rented at once 8.
    job = {"modes": [mode(2), mode(2, 1, "rent")], "due": 2 * HOUR, "weight": 1.0}
    window = [{"since": HOUR, "until": 2 * HOUR}]
    plan = cheapest([job], 4.0, pools__0__unavailable=window)
    assert (pools(plan), spans(plan)) == ({"j0": "own"}, {"j0": (2, 4)})


# --- GPUs ------------------------------------------------------------------------------------------------


def test_small_jobs_share_a_gpu_as_far_as_memory_goes() -> None:
    one_gpu = {"pools__0__gpus_per_node": 1, "pools__0__slices_per_gpu": 4, "pools__0__gpu_memory": 16.0}
    small = {"modes": [share(2, 0.25, memory=7.0)]}
    # Two: 7 + 7 <= 16 GB, together for 2 h.
    plan = cheapest([small] * 2, 2.0, **one_gpu)
    assert spans(plan)["j0"] == spans(plan)["j1"]
    # Three would take 3 of 4 slices, but 21 GB: the third has the GPU for 2 h more.
    plan = cheapest([small] * 3, 4.0, **one_gpu)
    assert len(set(spans(plan).values())) == 2
    # With 5 GB each all three fit.
    plan = cheapest([{"modes": [share(2, 0.25, memory=5.0)]}] * 3, 2.0, **one_gpu)
    assert len(set(spans(plan).values())) == 1
    assert {segment(plan, job).places[0].gpus for job in ("j0", "j1", "j2")} == {(0,)}


# --- storage ---------------------------------------------------------------------------------------------

CACHE = {
    "sites__0__storage": {
        "tariff": [{"fixed": 0.0, "per_mb_s": 0.01}],
        "cache_capacity": 100.0,
        "cache_price": 0.012,
    }
}
"""100 MB/s cost 1 an hour, 6 in all; 100 GB in the cache 1.2 an hour, 7.2 in all."""


def test_a_cache_is_paid_once_for_all_its_readers() -> None:
    # One reader over the link: 2 + 6; from the cache 2 + 7.2.
    plan = cheapest([READER], 8.0, **CACHE)
    assert not plan.cached
    # Two from the cache: 2 + 7.2; over the link at once 2 + 12, in turn 4 + 6; two caches would make 2 + 14.4.
    plan = cheapest([READER] * 2, 9.2, **CACHE)
    assert [(cached.dataset, cached.fraction) for cached in plan.cached] == [("data", 1.0)]
    assert plan.costs["cache"] == pytest.approx(7.2)
    assert not plan.bandwidth
    assert segment(plan, "j0").cached == segment(plan, "j1").cached == 1.0


def test_a_slow_cache_leaves_more_to_the_link() -> None:
    storage = {"tariff": [{"per_mb_s": 0.01}], "cache_capacity": 50.0, "cache_speed": 200.0}
    half = {"cache_levels": 2, "sites__0__storage": storage}
    # Half cached a MB takes 0.01 s, of which 0.0025 s at the cache: 0.5 / 0.0075 = 66 2/3 MB/s. 2 + 6 * 2/3.
    plan = cheapest([READER], 6.0, **half)
    assert [bought.mb_s for bought in plan.bandwidth] == [pytest.approx(200.0 / 3)]
    assert segment(plan, "j0").cached == 0.5
    # At 100 MB/s the cache is no use to a reader at 100 MB/s, 2 + 6, but is to one at half speed: 33 1/3, 4 + 2.
    storage["cache_speed"] = 100.0
    assert segment(cheapest([READER], 8.0, **half), "j0").cached == 0.0
    plan = cheapest([READER | {"speed_levels": [1.0, 0.5]}], 6.0, **half)
    assert (segment(plan, "j0").cached, segment(plan, "j0").speed) == (0.5, 0.5)


def test_tiers_are_paid_one_after_the_other() -> None:
    tiers = [{"up_to": 100.0, "per_mb_s": 0.01}, {"per_mb_s": 0.001}]
    # At once 2 + 6 * 1.1; in turn 4 + 6.
    cheapest([READER] * 2, 8.6, sites__0__storage={"tiers": tiers})


POWER = {"factor": 0.1, "exponent": 0.5, "up_to": 1000.0, "error": 0.02}
"""100 MB/s cost 1 an hour, 1000 MB/s 3.16."""


def test_a_power_law_is_paid_and_its_chords_are_proven() -> None:
    instance = instance_of([READER], sites__0__storage={"power": POWER})
    tariff = tariff_of(instance.sites[0].storage)
    missed = 6 * float(tariff.price(100.0) - tariff.envelope(100.0))
    assert 1e-3 < missed < 6 * 0.02
    for engine in ("exact", "fast"):
        told: list[Progress] = []
        solution = solve(instance, engine, replace(TO_THE_END, on_progress=told.append))
        plan = solution.plan
        assert check(instance, plan).violations == ()
        # 2 + 6 * 1 is paid; proven is at most what is less by what the chord misses, so it is not called optimal.
        assert plan.costs["bandwidth"] == pytest.approx(6.0)
        assert plan.cost == pytest.approx(8.0)
        assert plan.dual_bound is not None
        assert plan.dual_bound <= 8.0 - missed + 1e-6
        assert engine == "fast" or plan.dual_bound == pytest.approx(8.0 - missed)
        assert plan.status == "feasible"
        assert plan.packing_cost == (pytest.approx(0.0, abs=1e-6) if engine == "exact" else None)
        assert min(progress.incumbent for progress in told if progress.incumbent is not None) == pytest.approx(8.0)


def test_a_power_law_is_exact_at_the_ends_of_its_chords() -> None:
    plan = cheapest([READER], 8.0, sites__0__storage={"power": POWER | {"up_to": 100.0}})
    assert plan.packing_cost == pytest.approx(0.0, abs=1e-6)


def test_a_search_ends_where_only_chords_keep_it_from_a_proof() -> None:
    """The gap asked for is not reached, but nothing better can be found or proven: there is one start for each job."""
    instance = instance_of([READER | {"deadline": 2 * HOUR}] * 2, sites__0__storage={"power": POWER})
    search = Search(all_starts(instance, 6), Limits(time_limit_s=None, gap=1e-4, threads=1))
    fast = Fast(search)
    fast.solve(moves=10**6)
    assert fast._is_settled()
    assert not fast._is_stuck()
    assert not search.is_over()
    assert search.cost == pytest.approx(2 + 6 * 0.1 * 200**0.5)


@pytest.mark.parametrize(
    ("price", "cost", "speed"),
    [
        # Half speed: 4 h of the node and 50 MB/s, 4 + 3; full speed 2 + 6.
        (1.0, 7.0, 0.5),
        # Full speed: 2 * 2 + 6; half speed 4 * 2 + 3.
        (2.0, 10.0, 1.0),
    ],
)
def test_throttling_saves_bandwidth_where_time_is_cheap(price: float, cost: float, speed: float) -> None:
    storage = {"tariff": [{"fixed": 0.0, "per_mb_s": 0.01}]}
    job = READER | {"speed_levels": [1.0, 0.5]}
    plan = cheapest([job], cost, sites__0__storage=storage, pools__0__price=price)
    assert segment(plan, "j0").speed == speed
    assert [bought.mb_s for bought in plan.bandwidth] == [pytest.approx(100.0 * speed)]


def test_a_dataset_is_staged_in_the_cloud_where_it_is_read_long_enough() -> None:
    storage = {"sites__1__storage": {"cache_capacity": 100.0, "cache_price": 0.005}}
    # 2 h at 100 MB/s are 720 GB, 7.2 over the link. Staged: 100 GB for 1, cached for 6 h: 3. So 8 + 1 + 3.
    plan = cheapest([FAR_READER], 12.0, **storage)
    assert [(cached.site, cached.dataset) for cached in plan.cached] == [("cloud", "data")]
    assert plan.costs["transfer"] == pytest.approx(1.0)
    # 1 h is 360 GB: 4 + 3.6 over the link; staged 4 + 4.
    short = {"dataset": "data", "modes": [mode(1, 1, "rent", read_rate=100.0)]}
    plan = cheapest([short], 7.6, **storage)
    assert not plan.cached
    assert plan.costs["transfer"] == pytest.approx(3.6)


# --- jobs ------------------------------------------------------------------------------------------------


def test_a_predecessor_completes_first() -> None:
    first, second = {"modes": [mode(2)]}, {"modes": [mode(1)]}
    # Together on the two GPUs: 2; one after the other: 3.
    cheapest([first, second], 2.0)
    plan = cheapest([first, second | {"after": ["j0"]}], 3.0)
    assert spans(plan)["j1"][0] >= spans(plan)["j0"][1]


@pytest.mark.parametrize(
    ("restart", "cost", "where"),
    [
        # Moved: 2 * 1 + 5 = 7; kept: 2 * 4 = 8.
        (5.0, 7.0, "own"),
        # Kept: 8; moved: 2 + 7 = 9.
        (7.0, 8.0, "rent"),
    ],
)
def test_a_running_job_moves_only_where_it_pays(restart: float, cost: float, where: str) -> None:
    job = {
        "modes": [mode(2), mode(2, 1, "rent")],
        "running": running("rent1", {0: [1]}, "rent", movable=True),
        "restart_cost": restart,
    }
    plan = cheapest([job], cost)
    run = segment(plan, "j0")
    assert (run.pool, run.kept) == (where, where == "rent")
    if run.kept:
        assert [(place.node, place.gpus) for place in run.places] == [(0, (1,))]
    # What is pinned stays, however cheap a move.
    pinned = job | {"running": running("rent1", {0: [1]}, "rent"), "restart_cost": 0.0}
    assert pools(cheapest([pinned], 8.0)) == {"j0": "rent"}


@pytest.mark.parametrize(("reject", "cost", "rejected"), [(2.5, 2.5, ("j0",)), (3.5, 3.0, ())])
def test_a_job_is_rejected_where_that_is_cheaper(reject: float, cost: float, rejected: tuple[str, ...]) -> None:
    # Run for 3 h: 3.
    assert cheapest([{"modes": [mode(3)], "reject_cost": reject}], cost).rejected == rejected


def test_a_hard_deadline_forces_the_dear_choice() -> None:
    # 3 h owned for 3, or 1 h rented for 4, which alone is done within 2 h.
    job = {"modes": [mode(3), mode(1, 1, "rent")]}
    assert pools(cheapest([job], 3.0)) == {"j0": "own"}
    assert pools(cheapest([job | {"deadline": 2 * HOUR}], 4.0)) == {"j0": "rent"}


@pytest.mark.parametrize(
    ("spot", "restart", "cost", "where"),
    [
        # Spot: 2 * 0.25, and 0.25 interruptions an hour for 2 h at 2 each: 0.5 + 1 = 1.5; owned 2.
        (True, 2.0, 1.5, "rent"),
        # Not allowed: 2.
        (False, 2.0, 2.0, "own"),
        # Interruptions at 4 each: 0.5 + 2 = 2.5; owned 2.
        (True, 4.0, 2.0, "own"),
    ],
)
def test_spot_nodes_where_allowed_and_worth_it(spot: bool, restart: float, cost: float, where: str) -> None:
    job = {"modes": [mode(2), mode(2, 1, "rent")], "spot": spot, "restart_cost": restart}
    market = {"pools__1__market": "spot", "pools__1__price": 0.25, "pools__1__interruption_rate": 0.25}
    assert pools(cheapest([job], cost, **market)) == {"j0": where}


@pytest.mark.parametrize(
    ("second", "cost", "where"),
    [
        # Owned, done after 3 h, worth 6 of 10: 3 + 4 = 7; rented, done after 2 h: 8.
        (6.0, 7.0, "own"),
        # Worth but 4: 3 + 6 = 9; rented 8.
        (4.0, 8.0, "rent"),
    ],
)
def test_a_step_of_value_is_weighed(second: float, cost: float, where: str) -> None:
    steps = [{"by": 2 * HOUR, "value": 10.0}, {"by": 4 * HOUR, "value": second}]
    plan = cheapest([{"modes": [mode(3), mode(2, 1, "rent")], "value": steps}], cost)
    assert pools(plan) == {"j0": where}
    assert plan.costs["lost_value"] == pytest.approx(10.0 - second if where == "own" else 0.0)


LINEAR: Doc = {"shape": "linear", "full_until": 2 * HOUR, "zero_at": 4 * HOUR}
STEP: Doc = {"shape": "step", "by": 2 * HOUR}
SIGMOID: Doc = {"shape": "sigmoid", "midpoint": 3 * HOUR, "scale": 1.0}
FAIRNESS: Doc = {"shape": "finish_time_fairness", "fair_time": 2 * HOUR}


@pytest.mark.parametrize(
    ("shape", "worth", "lost"),
    [
        # Owned, done after 3 h: 3 and what is lost; rented, done after 2 h, all earned: 8.
        (LINEAR, 9.0, 4.5), (LINEAR, 11.0, 5.5),
        (STEP, 4.5, 4.5), (STEP, 5.5, 5.5),
        (SIGMOID, 9.0, 4.5), (SIGMOID, 11.0, 5.5),
        (FAIRNESS, 13.5, 4.5), (FAIRNESS, 16.5, 5.5),
    ],
)  # fmt: skip
def test_a_utility_is_weighed(shape: Doc, worth: float, lost: float) -> None:
    job: Doc = {"modes": [mode(3), mode(2, 1, "rent")], "utility": shape | {"worth": worth}}
    plan = cheapest([job], min(3.0 + lost, 8.0))
    assert pools(plan) == {"j0": "own" if lost < 5.0 else "rent"}
    assert plan.costs["lost_value"] == pytest.approx(lost if lost < 5.0 else 0.0, abs=1e-9)


def test_rows_that_dominate_each_other_do_not_both_vanish() -> None:
    """A share of a GPU that is not shared and a whole GPU take the same; one of them must be left."""
    # 3 h of the owned node, in either mode; without them 3 h rented.
    job = {"modes": [share(3, 0.5, memory=4.0), mode(3), mode(3, 1, "rent")]}
    assert pools(cheapest([job], 3.0)) == {"j0": "own"}


def test_of_like_modes_the_one_with_less_memory_is_left() -> None:
    # Either share is half a GPU for 2 h; with 4 GB each both jobs are on the one GPU at once: 2; with 12 GB in turn: 4.
    job = {"modes": [share(2, 0.5, memory=12.0), share(2, 0.4, memory=4.0)]}
    one_gpu = {"pools__0__gpus_per_node": 1, "pools__0__slices_per_gpu": 2, "pools__0__gpu_memory": 16.0}
    plan = cheapest([job, job], 2.0, **one_gpu)
    assert {segment(plan, name).mode for name in ("j0", "j1")} <= {"share 0.4", "share 0.5"}
    assert spans(plan)["j0"] == spans(plan)["j1"]
