"""Pool-level schedules onto nodes: exactly where best fit fails, and repaired where no packing exists."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from models.rentals import NodeRules
from models.starts import Starts, all_starts
from planner.engines import placement
from planner.engines.exact import _repair
from planner.engines.placement import Chosen, Placed, node_cost, place
from planner.engines.schedule import Schedule, Step
from tests.engines.recount import Recount, Taken
from tests.engines.samples import HOUR, Doc, cheapest, instance_of, mode, running, share, spans


def placed(jobs: list[tuple[Doc, int]], **changes: Any) -> tuple[Starts, Chosen, Placed]:
    """Modes and begins of jobs in the owned pool, placed; `said` is what the pool-level schedule pays."""
    starts = all_starts(instance_of([{"modes": [entry]} for entry, _ in jobs], **changes), 6)
    chosen = {j: (starts.rows_of_job[j][0], slot) for j, (_, slot) in enumerate(jobs)}
    return starts, chosen, place(starts, chosen, {0: pool_cost(starts, chosen)}, time_limit_s=None, seed=0)


def pool_cost(starts: Starts, chosen: Chosen) -> float:
    """Slot prices times the nodes that the sum of GPUs needs at least."""
    pool = starts.instance.pools[0]
    rules = NodeRules.of(starts.instance, 0, starts.num_slots)
    cost = 0.0
    for slot in range(starts.num_slots):
        rows = [starts.rows[r] for r, begin in chosen.values() if begin <= slot < begin + starts.rows[r].duration]
        gpus = sum(row.mode.num_nodes * row.mode.slices for row in rows)
        cost += -(-gpus // (pool.gpus_per_node * pool.slices_per_gpu)) * rules.cost(slot, slot + 1)
    return cost


def assert_valid(starts: Starts, chosen: Chosen, schedule: Schedule) -> None:
    """Every run is where and when it was asked for, and the nodes hold them."""
    recount = Recount(starts.instance, 0, starts.num_slots)
    for j, step in schedule.chosen.items():
        assert (step.row, step.slot) == chosen[j]
        run = Taken(starts.rows[step.row], step.slot, step.spot)
        assert recount.fits(run)
        recount.runs.append(run)


# GPUs of the runs on two nodes with five, and their slots:
#
#     j0  2  .11        Best fit puts j1 and j4 on one node, where they share the slots 0-1, and j0 on the other. In
#     j1  2  11.        slot 2 neither has four GPUs for j2. With j1, j3 and j2 on one node, j4 and j0 on the other,
#     j2  4  ..1        all fit: 2, 2 + 1, 4 and 2, 2 + 2, 2 + 2.
#     j3  1  .1.
#     j4  2  111
TIGHT = [(mode(2, 2), 1), (mode(2, 2), 0), (mode(1, 4), 2), (mode(1, 1), 1), (mode(3, 2), 0)]


def test_an_exact_packing_where_best_fit_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    two_of_five = {"pools__0__nodes": 2, "pools__0__gpus_per_node": 5}
    starts, chosen, found = placed(TIGHT, **two_of_five)
    assert found.homeless == ()
    assert_valid(starts, chosen, found.schedule)
    spots = {j: step.spot for j, step in found.schedule.chosen.items()}
    assert spots[1] == spots[2] == spots[3] != spots[0] == spots[4]
    monkeypatch.setattr(placement, "_exactly", lambda *_: None)
    _, _, by_fit = placed(TIGHT, **two_of_five)
    assert len(by_fit.homeless) == 1


def test_fewest_node_hours_where_best_fit_wastes_some() -> None:
    """Every packing of the runs above is on two nodes for 3 h but for slot 0, where one node is enough by its GPUs."""
    # Slot 0: 2 + 2 GPUs, on one node by the sums, on two in the only packing; slots 1-2: 7 and 8 on two.
    starts, chosen, found = placed(TIGHT, pools__0__nodes=2, pools__0__gpus_per_node=5)
    assert pool_cost(starts, chosen) == 1 + 2 + 2
    assert node_cost(found.schedule.pools[0]) == pytest.approx(2 + 2 + 2)


@pytest.mark.parametrize("seed", range(20))
def test_random_packings_are_valid(seed: int) -> None:
    rng = np.random.default_rng(seed)
    jobs: list[tuple[Doc, int]] = []
    for _ in range(8):
        hours = int(rng.integers(1, 4))
        entry = mode(hours, int(rng.integers(1, 7))) if rng.random() < 0.5 else share(hours, 0.5, memory=7.0)
        jobs.append((entry, int(rng.integers(0, 7 - hours))))
    starts, chosen, found = placed(
        jobs,
        pools__0__nodes=3,
        pools__0__slices_per_gpu=2,
        pools__0__gpu_memory=16.0,
    )
    assert_valid(starts, chosen, found.schedule)
    assert set(found.homeless) | set(found.schedule.chosen) == set(range(8))
    assert set(found.homeless).isdisjoint(found.schedule.chosen)
    if not found.homeless:
        assert node_cost(found.schedule.pools[0]) >= pool_cost(starts, chosen) - 1e-9


def test_a_job_without_a_place_is_found_one() -> None:
    """A GPU is free on each of two nodes, two are on none for 2 h: j2 starts later, and what follows it too."""
    jobs: list[Doc] = [
        {"modes": [mode(2)], "running": running("own1", {0: [0]})},
        {"modes": [mode(2)], "running": running("own1", {1: [1]})},
        {"modes": [mode(2, 2)]},
        {"modes": [mode(1)], "after": ["j2"]},
    ]
    starts = all_starts(instance_of(jobs, pools__0__nodes=2), 6)
    chosen = {0: (0, 0), 1: (1, 0), 2: (2, 0), 3: (3, 2)}
    found = place(starts, chosen, {0: 0.0}, time_limit_s=None, seed=0)
    assert found.homeless == (2,)
    assert set(found.schedule.chosen) == {0, 1, 3}
    whole = _repair(found.schedule, found.homeless)
    assert whole is not None
    assert {j: (step.slot, whole.completion(j)) for j, step in whole.chosen.items()} == {
        0: (0, 2),
        1: (0, 2),
        2: (2, 4),
        3: (4, 5),
    }


def test_what_cannot_be_repaired_is_said_so() -> None:
    jobs: list[Doc] = [
        {"modes": [mode(2)], "running": running("own1", {0: [0]})},
        {"modes": [mode(2, 2)], "deadline": 3 * HOUR},
    ]
    starts = all_starts(instance_of(jobs), 6)
    found = place(starts, {0: (0, 0), 1: (1, 0)}, {}, time_limit_s=None, seed=0)
    assert found.homeless == (1,)
    assert _repair(found.schedule, found.homeless) is None


def test_nothing_to_repair() -> None:
    starts = all_starts(instance_of([{"modes": [mode(2)]}]), 6)
    schedule = Schedule(starts)
    schedule.put(0, Step(0, 0, (0,), 0.0))
    assert _repair(schedule, ()) is schedule


def test_the_plan_pays_what_packing_costs() -> None:
    """The sums say that all three run at once; on nodes the last one waits for 2 h at 1 an hour."""
    # Owned nodes 2 * 2, then 2; the pool-level bound alone would be 4 + 0.
    jobs: list[Doc] = [
        {"modes": [mode(2)], "running": running("own1", {0: [0]})},
        {"modes": [mode(2)], "running": running("own1", {1: [1]})},
        {"modes": [mode(2, 2)], "due": 2 * HOUR, "weight": 1.0},
    ]
    plan = cheapest(jobs, 2 * 2 + 2 + 2 * 1.0, pools__0__nodes=2)
    assert spans(plan)["j2"] == (2, 4)
