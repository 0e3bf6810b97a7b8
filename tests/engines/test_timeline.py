"""The timeline of a pool's nodes, against a plain recount."""

from __future__ import annotations

import math
import random
import tracemalloc

import numpy as np
import pytest

from models.rentals import cheapest_intervals
from models.starts import Row, Starts, all_starts
from planner.engines.timeline import FEWEST_ROWS, PoolTimeline, window_any, window_sum
from planner.horizon import num_slots_of
from tests.engines.recount import Recount, Taken
from tests.engines.samples import HOUR, instance_of, mode, share
from tests.random_instances import random_instance


def rows_of(starts: Starts, p: int) -> list[Row]:
    """The rows of a pool; those of jobs that stay where they are have no choice of a node."""
    return [row for row in starts.rows if row.pool == p and not row.kept]


@pytest.mark.parametrize("family", ["compute", "mixed", "contended", "odd"])
def test_offers_equal_a_recount(family: str) -> None:
    """Runs are put on and taken off at random; each offer is the cheapest place that there is, or there is none."""
    offers = refusals = 0
    for seed in range(40):
        instance = random_instance(family, np.random.default_rng(seed))
        draw = random.Random(seed)
        starts = all_starts(instance, num_slots_of(instance))
        for p in range(len(instance.pools)):
            timeline, recount = PoolTimeline(instance, p, starts.num_slots), Recount(instance, p, starts.num_slots)
            rows = rows_of(starts, p)
            for _ in range(25 if rows else 0):
                if recount.runs and draw.random() < 0.25:
                    gone = recount.runs.pop(draw.randrange(len(recount.runs)))
                    timeline.take(gone.row, gone.slot, gone.spot, -1)
                    continue
                row = draw.choice(rows)
                offer = timeline.offer(row.mode, row.slots)
                k = draw.randrange(len(row.slots))
                slot = int(row.slots[k])
                found = [Taken(row, slot, spot) for spot in recount.spots(row.mode)]
                found = [run for run in found if recount.fits(run)]
                assert math.isfinite(offer.cost[k]) == bool(found), (family, seed, p)
                if not found:
                    refusals += 1
                    continue
                offers += 1
                run = Taken(row, slot, offer.spot(k))
                assert recount.fits(run), (family, seed, p)
                if timeline.rules.is_plain:
                    cost = min(recount.added_cost(other) for other in found)
                    assert offer.cost[k] == pytest.approx(cost, abs=1e-9), (family, seed, p)
                    assert recount.added_cost(run) == pytest.approx(cost, abs=1e-9), (family, seed, p)
                timeline.take(row, slot, run.spot)
                recount.runs.append(run)
            assert_same(timeline, recount)
    assert offers > 200
    assert refusals > 20


def assert_same(timeline: PoolTimeline, recount: Recount) -> None:
    """What is busy and what is paid."""
    for node in range(timeline.pool.nodes):
        busy = [recount.is_busy(node, slot) for slot in range(recount.num_slots)]
        assert timeline.busy(node).tolist() == busy
        assert timeline.count[node] == sum(node in recount.nodes_of(run) for run in recount.runs)
        paid = np.zeros(recount.num_slots, dtype=bool)
        for begin, end in cheapest_intervals(timeline.rules, node, np.array(busy)):
            paid[begin : timeline.rules.billed_end(begin, end)] = True
        assert timeline.paid[node].tolist() == paid.tolist()


def test_windows_equal_loops() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        values = rng.integers(0, 3, size=(2, 9))
        duration = int(rng.integers(1, 6))
        slots = np.arange(0, 9 - duration + 1)
        for node in range(2):
            windows = [values[node, t : t + duration] for t in slots]
            assert window_sum(values, slots, duration)[node].tolist() == [window.sum() for window in windows]
            assert window_any(values > 1, slots, duration)[node].tolist() == [(w > 1).any() for w in windows]


def timeline_of(jobs: list[dict[str, object]], **changes: object) -> tuple[PoolTimeline, list[Row]]:
    """The owned pool, and the rows of its jobs."""
    instance = instance_of(jobs, **changes)
    return PoolTimeline(instance, 0, 6), list(all_starts(instance, 6).rows)


def test_a_node_that_is_paid_is_taken_first() -> None:
    timeline, (row,) = timeline_of([{"modes": [mode(2)]}], pools__0__nodes=3)
    timeline.take(row, 1, (2,))
    offer = timeline.offer(row.mode, np.arange(5))
    # At 1 an hour: two hours on the node that is on, half, not at all, half, and two hours again.
    assert offer.cost.tolist() == [1.0, 0.0, 1.0, 2.0, 2.0]
    assert [offer.spot(k) for k in range(3)] == [(2,), (2,), (2,)]


def test_a_shared_gpu_that_empties_needs_a_free_gpu_to_go_on() -> None:
    """A node with one GPU: a share runs in slots 0-1, a whole GPU in slots 2-3; a share of 3 h has no room."""
    timeline, rows = timeline_of(
        [{"modes": [share(2, 0.5)]}, {"modes": [mode(2)]}, {"modes": [share(3, 0.5)]}],
        pools__0__gpus_per_node=1,
        pools__0__slices_per_gpu=2,
    )
    timeline.take(rows[0], 0, (0, 0))
    timeline.take(rows[1], 2, (0,))
    offer = timeline.offer(rows[2].mode, np.arange(4))
    assert np.isfinite(offer.cost).tolist() == [False, False, False, False]
    timeline.take(rows[1], 2, (0,), -1)
    assert timeline.offer(rows[2].mode, np.arange(4)).cost.tolist() == [1.0, 2.0, 3.0, 3.0]


def test_boots_and_blocks_are_in_the_price() -> None:
    """A boot of an hour and blocks of 3 h: a run of an hour on a node that is off pays 3, on one that is on nothing."""
    timeline, (row,) = timeline_of(
        [{"modes": [mode(1)]}], pools__0__boot_time=HOUR, pools__0__billing_increment=3 * HOUR
    )
    assert timeline.offer(row.mode, row.slots).cost.tolist() == [3.0] * 5
    timeline.take(row, 1, (0,))
    # On from 0, usable from 1, paid until 3.
    assert timeline.paid[0].tolist() == [True, True, True, False, False, False]
    assert timeline.offer(row.mode, np.array([1, 2])).cost.tolist() == [0.0, 0.0]
    timeline.take(row, 1, (0,), -1)
    assert not timeline.paid.any()


def test_a_gang_finds_no_room_where_nodes_are_too_few() -> None:
    timeline, rows = timeline_of([{"modes": [mode(2, 4)]}, {"modes": [mode(1)]}], pools__0__nodes=2)
    timeline.take(rows[1], 1, (0,))
    assert np.isfinite(timeline.offer(rows[0].mode, np.arange(5)).cost).tolist() == [False, False, True, True, True]


def test_a_quota_of_a_million_nodes_takes_little_memory() -> None:
    quota = 1_000_000
    job: dict[str, object] = {"modes": [mode(2)]}
    small = instance_of([job], pools__0__nodes=5, pools__0__ram="1 TB", pools__0__cpu_cores=64)
    large = instance_of([job], pools__0__nodes=quota, pools__0__ram="1 TB", pools__0__cpu_cores=64)
    row = all_starts(large, 300).rows[0]
    tracemalloc.start()
    timeline, same = PoolTimeline(large, 0, 300), PoolTimeline(small, 0, 300)
    for node in (0, 1, 3):
        for one in (timeline, same):
            one.take(row, 7, (node,))
    offer, expected = timeline.offer(row.mode, row.slots), same.offer(row.mode, row.slots)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert offer.cost.tolist() == expected.cost.tolist()
    assert [nodes.tolist() for nodes in offer.nodes] == [nodes.tolist() for nodes in expected.nodes]
    assert peak < 200e6  # an array of a byte a node and slot would take 300 MB


def test_a_node_beyond_those_looked_at_so_far() -> None:
    timeline, (row,) = timeline_of([{"modes": [mode(2)]}], pools__0__nodes=3 * FEWEST_ROWS)
    last = 3 * FEWEST_ROWS - 1
    assert not timeline.busy(last).any()
    timeline.take(row, 1, (0,))
    timeline.take(row, 2, (last,))
    assert timeline.busy(0).tolist() == [False, True, True, False, False, False]
    assert timeline.busy(last).tolist() == [False, False, True, True, False, False]
    assert timeline.on == {0: [(1, 3)], last: [(2, 4)]}
    timeline.take(row, 2, (last,), -1)
    assert timeline.on == {0: [(1, 3)]}
    assert not timeline.paid[last].any()
