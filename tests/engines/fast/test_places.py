"""Places that the fast search offers, by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from models.domain import Instance
from models.starts import all_starts
from planner.engines.fast.occupancy import Occupancy
from planner.engines.fast.table import Table
from tests.engines.fast.walks import occupancy_of
from tests.engines.samples import HOUR, Doc, instance_of, mode, running, share


def test_of_equal_cost_the_fullest_node_and_the_tightest_gap() -> None:
    jobs: list[Doc] = [
        {"modes": [mode(2, 2)]},
        {"modes": [mode(2, 1)]},
        {"modes": [mode(2, 1)]},
        {"modes": [mode(1, 8)]},
    ]
    changes = {"pools__0__nodes": 4, "pools__0__gpus_per_node": 4, "pools__0__price": 0.0}
    occupancy = occupancy_of(instance_of(jobs, **changes))
    occupancy.put(0, 0, 0, [2])
    occupancy.put(1, 1, 0, [1])
    found = occupancy.find(2, 0)
    assert found is not None
    assert found.nodes.tolist() == [2]
    # Two nodes of slots 2-5, rather than two that are idle throughout.
    gang = occupancy.find(3, 3)
    assert gang is not None
    assert sorted(gang.nodes.tolist()) == [1, 2]


def test_a_cheaper_node_before_a_fuller_one_before_the_first() -> None:
    """GPUs taken on four nodes with four: the run of an hour in slot 1 pays for node 0 and for node 2, which is fuller;
    node 1 and node 3 are paid, and node 3 is the fuller one of them."""
    taken = {0: [(0, 1)], 1: [(1, 1)], 2: [(0, 3)], 3: [(1, 2)]}
    jobs: list[Doc] = [{"modes": [mode(1, gpus)]} for runs in taken.values() for _, gpus in runs]
    jobs += [{"modes": [mode(1, 1)]}, {"modes": [mode(2, 1)]}]
    occupancy = occupancy_of(instance_of(jobs, pools__0__nodes=4, pools__0__gpus_per_node=4))
    for node, ((slot, _),) in taken.items():
        occupancy.put(node, node, slot, [node])
    found, long = occupancy.find(4, 1), occupancy.find(5, 0)
    assert found is not None
    assert (found.nodes.tolist(), found.delta) == ([3], 0.0)
    # Two hours cost one more on each of them.
    assert long is not None
    assert (long.nodes.tolist(), long.delta) == ([2], 1.0)


def test_nodes_and_links_have_room_for_so_much() -> None:
    """Two runs at a time, by GPU memory, cores, RAM, a link between sites; and gangs on nodes that are available."""
    two: list[Doc] = [{"modes": [share(1, 0.25)], "memory": 5.0, "cpu_cores": 3, "ram": 4.0}] * 3
    one_node: Doc = {"pools__0__nodes": 1, "pools__0__gpus_per_node": 1, "pools__0__slices_per_gpu": 4}
    for limit in ({"gpu_memory": 14.9}, {"cpu_cores": 8}, {"ram": 11.9}):
        changes = one_node | {f"pools__0__{name}": value for name, value in limit.items()}
        assert runs_at_once(instance_of(two, **changes)) == 2
    assert runs_at_once(instance_of(two, **one_node)) == 3
    across: list[Doc] = [{"dataset": "data", "modes": [mode(1, 1, "rent", read_rate=50.0)]}] * 3
    for bandwidth, number in ((149.0, 2), (150.0, 3)):
        link: Doc = {"pools__1__nodes": 3, "network__0__bandwidth": bandwidth}
        assert runs_at_once(instance_of(across, **link)) == number
    closed = [{"since": 0.0, "until": HOUR, "nodes": [1]}]
    gang: list[Doc] = [{"modes": [mode(1, 4)]}]
    for nodes, number in ((2, 0), (3, 1)):
        assert runs_at_once(instance_of(gang, pools__0__nodes=nodes, pools__0__unavailable=closed)) == number


def runs_at_once(instance: Instance) -> int:
    """How many jobs, one after the other, find room in slot 0, in their first row or any other."""
    occupancy = occupancy_of(instance)
    for j, rows in enumerate(occupancy.table.starts.rows_of_job):
        for r in rows:
            # Starts are known to be none where too few nodes can be used; the state is to know it too.
            occupancy.facts.rows["first"][r] = 0
            if (found := occupancy.find(r, 0)) is not None:
                occupancy.put(j, r, 0, found.nodes, found.gpu)
                break
    return int((occupancy.row >= 0).sum())


def test_starts_that_are_left_out_are_not_found() -> None:
    starts = all_starts(instance_of([{"modes": [mode(1)]}]), 6)
    some = starts.with_rows([starts.rows[0].only(np.array([False, True, False, False, True, False]))])
    occupancy = Occupancy(Table.of(some))
    assert [slot for slot in range(6) if occupancy.find(0, slot) is not None] == [1, 4]
    occupancy.put(0, 0, 1, [0])
    occupancy.drop([0])
    assert occupancy.recreate([0])
    assert occupancy.slot[0] == 1


def test_shares_join_a_shared_gpu() -> None:
    jobs: list[Doc] = [{"modes": [share(2, 0.25)]}, {"modes": [share(3, 0.5)]}, {"modes": [mode(1, 1)]}]
    occupancy = occupancy_of(instance_of(jobs, pools__0__slices_per_gpu=4, pools__0__nodes=2))
    occupancy.put(0, 0, 0, [1], 1)
    found = occupancy.find(1, 0)
    assert found is not None
    assert (found.nodes.tolist(), found.gpu) == ([1], 1)
    occupancy.put(1, 1, 0, found.nodes, found.gpu)
    assert occupancy.state.taken[1].tolist() == [1, 1, 1, 0, 0, 0]


def test_a_kept_run_has_its_own_place() -> None:
    jobs: list[Doc] = [
        {"modes": [mode(2, 1)], "running": running("own1", {1: [0]}, movable=True), "restart_cost": 1.0},
        {"modes": [mode(2, 2)]},
    ]
    occupancy = occupancy_of(instance_of(jobs, pools__0__nodes=2))
    kept = next(r for r, row in enumerate(occupancy.table.starts.rows) if row.kept)
    found = occupancy.find(kept, 0)
    assert found is not None
    assert found.nodes.tolist() == [1]
    occupancy.put(1, occupancy.table.starts.rows_of_job[1][0], 1, [1])
    assert occupancy.find(kept, 0) is None


def test_a_kept_share_has_its_own_gpu() -> None:
    jobs: list[Doc] = [
        {"modes": [share(2, 0.5)], "running": running("share 0.5", {0: [1]}, movable=True)},
        {"modes": [share(1, 0.75)]},
    ]
    occupancy = occupancy_of(instance_of(jobs, pools__0__slices_per_gpu=4))
    kept = next(r for r, row in enumerate(occupancy.table.starts.rows) if row.kept)
    other = occupancy.table.starts.rows_of_job[1][0]
    for gpu, delta in ((0, 1.0), (1, None)):
        # Of the two hours one is paid by the other run; on the same GPU there is no room.
        occupancy.put(1, other, 0, [0], gpu)
        found = occupancy.find(kept, 0)
        assert (None if found is None else (found.gpu, found.delta)) == (None if delta is None else (1, delta))


def test_suppositions_change_offers_and_not_the_cost() -> None:
    reader: Doc = {"dataset": "data", "modes": [mode(2, read_rate=100.0)]}
    storage: Doc = {"cache_capacity": 100.0, "cache_price": 0.01, "tariff": [{"fixed": 1.0, "per_mb_s": 0.01}]}
    occupancy = occupancy_of(instance_of([reader] * 2, sites__0__storage=storage | {"bandwidth_cap": 300.0}))
    plain, cached = (r for r in occupancy.table.starts.rows_of_job[0])
    size, hours = occupancy.table.instance.datasets[0].size, occupancy.table.storage.hours[0]

    def delta(row: int) -> float:
        found = occupancy.find(row, 0)
        return math.inf if found is None else found.delta

    # Two hours of a node at 1, and bandwidth or cache for the whole plan.
    read, cache = 2.0 + hours * (1.0 + 0.01 * 100.0), 2.0 + hours * 0.01 * size
    assert [delta(plain), delta(cached)] == pytest.approx([read, cache])
    occupancy.bought[0] = 150.0
    assert delta(plain) == pytest.approx(2.0)
    occupancy.bought[0] = 50.0
    assert delta(plain) == pytest.approx(2.0 + hours * 0.01 * 50.0)
    occupancy.bought[0], occupancy.limit[0] = 0.0, 99.0
    assert delta(plain) == math.inf
    occupancy.suppose_nothing()
    occupancy.cache_is_paid[0, 0] = True
    assert delta(cached) == pytest.approx(2.0)
    found = occupancy.find(cached, 0)
    assert found is not None
    before = occupancy.cost
    occupancy.put(0, cached, 0, found.nodes)
    assert occupancy.cost - before == pytest.approx(cache)
    occupancy.drop([0])
    for level, allowed in ((-2, [True, True]), (0, [True, False]), (1, [True, True])):
        occupancy.allowed_level[0, 0] = level
        assert [delta(row) < math.inf for row in (plain, cached)] == allowed
