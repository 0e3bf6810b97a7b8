"""Operators choose what they say, moves that are undone leave nothing behind, and the same work gives the same plan."""

from __future__ import annotations

import random
from itertools import pairwise

import numpy as np
import pytest

from models.reductions import reduce_starts
from models.starts import all_starts
from planner.engines.assemble import cost_of
from planner.engines.base import Limits
from planner.engines.fast.certificate import Certificate
from planner.engines.fast.construct import best_construction, place_starts, round_weights
from planner.engines.fast.guide import Guide
from planner.engines.fast.improve import Improve
from planner.engines.fast.occupancy import Occupancy
from planner.engines.fast.operators import (
    Bandwidth,
    Caching,
    Ejection,
    Exchange,
    Gathering,
    Neighbours,
    Operator,
    Packing,
    Regrets,
    Window,
)
from planner.engines.fast.table import Table
from planner.generate import generate
from planner.horizon import num_slots_of
from planner.io.plans import plan_bytes
from planner.solve import solve
from tests.engines.samples import HOUR, Doc, instance_of, mode


class Stage:
    """A plan of a generated instance, ready to be searched."""

    def __init__(self, family: str = "mixed", jobs: int = 20, nodes: int = 12, load: float | None = None):
        self.instance = generate(family, jobs, nodes, load, seed=4)
        starts = reduce_starts(all_starts(self.instance, num_slots_of(self.instance)))
        self.table = Table.of(starts)
        self.certificate = Certificate(self.table)
        self.guide = Guide(self.certificate.pricing, self.certificate.lowest.prices)
        self.occupancy = Occupancy(self.table)
        self.occupancy.set_prices(self.guide.priced)
        best = best_construction(self.occupancy, self.guide)
        assert best is not None
        self.occupancy.restore(best)

    def operators(self) -> dict[str, Operator]:
        return {
            "neighbours": Neighbours(),
            "window": Window(),
            "ejection": Ejection(self.guide),
            "regrets": Regrets(self.guide),
            "packing": Packing(self.guide),
            "gathering": Gathering(self.guide),
            "caching": Caching(self.occupancy),
            "bandwidth": Bandwidth(),
        }


@pytest.fixture(scope="module")
def stage() -> Stage:
    return Stage()


@pytest.mark.parametrize(
    "name", ["neighbours", "window", "ejection", "regrets", "packing", "gathering", "caching", "bandwidth"]
)
def test_an_operator_names_each_job_once_and_most_of_them_change_something(stage: Stage, name: str) -> None:
    occupancy, operator, draw = stage.occupancy, stage.operators()[name], random.Random(1)
    tried = changed = 0
    for _ in range(60):
        before = occupancy.snapshot()
        occupancy.mark()
        jobs = operator.choose(occupancy, draw)
        assert len(set(jobs)) == len(jobs)
        assert set(jobs) <= set(range(stage.table.num_jobs))
        tried += bool(jobs)
        occupancy.drop(jobs)
        occupancy.recreate(stage.table.after_predecessors(jobs), tries=8, blink=0.1)
        occupancy.suppose_nothing()
        changed += bool(
            (occupancy.row != before.chosen["row"]).any() or (occupancy.slot != before.chosen["slot"]).any()
        )
        occupancy.undo()
        assert occupancy.cost == pytest.approx(before.cost, rel=1e-12)
        assert (occupancy.state.chosen == before.chosen).all()
        assert (occupancy.state.aims["row"] == -1).all()
    occupancy.commit()
    assert tried > 30
    assert changed > 3


def test_a_window_runs_at_one_time_in_one_pool(stage: Stage) -> None:
    rows, draw = stage.table.rows, random.Random(2)
    for _ in range(50):
        jobs = np.array(Window().choose(stage.occupancy, draw), dtype=int)
        if not len(jobs):
            continue
        row, slot = stage.occupancy.row[jobs], stage.occupancy.slot[jobs]
        assert len(set(rows.pool[row].tolist())) == 1
        assert slot.max() < (slot + rows.duration[row]).min()


def test_the_job_that_is_ejected_for_comes_first_and_regrets_its_place(stage: Stage) -> None:
    draw = random.Random(3)
    regret = stage.guide.regret(stage.occupancy)
    firsts = [jobs[0] for _ in range(50) if (jobs := Ejection(stage.guide).choose(stage.occupancy, draw))]
    assert firsts
    assert all(regret[j] > 0 for j in firsts)


def test_packing_keeps_the_starts_of_all_but_one(stage: Stage) -> None:
    """Jobs of one pool that run at some time of one of them, in the order in which they are to start."""
    occupancy, rows, draw = stage.occupancy, stage.table.rows, random.Random(6)
    guests = 0
    for _ in range(80):
        jobs = Packing(stage.guide).choose(occupancy, draw)
        assert jobs
        row, slot = (occupancy.state.aims[jobs][name] for name in ("row", "slot"))
        assert (occupancy.state.aims["row"] >= 0).sum() == len(jobs)
        occupancy.suppose_nothing()
        assert (rows.job[row] == jobs).all()
        assert len(set(rows.pool[row].tolist())) == 1
        assert sorted(slot) == slot.tolist()
        assert all(
            wide >= next_one or begin < after
            for (begin, wide), (after, next_one) in pairwise(zip(slot.tolist(), rows.width[row].tolist(), strict=True))
        )
        end = slot + rows.duration[row]
        assert any(((slot < end[k]) & (end > slot[k])).all() for k in range(len(jobs)))
        is_guest = (row != occupancy.row[jobs]) | (slot != occupancy.slot[jobs])
        assert is_guest.sum() <= 1
        for k in np.flatnonzero(is_guest):
            mine = stage.guide.listed(jobs[k])
            assert ((stage.guide.row[mine] == row[k]) & (stage.guide.slot[mine] == slot[k])).any()
        guests += int(is_guest.sum())
    assert 10 < guests < 80


def test_gathering_aims_at_what_one_node_has_room_for(stage: Stage) -> None:
    """Starts that jobs would like better than theirs, in one pool, together no wider than the nodes of one of them."""
    occupancy, table, guide, draw = stage.occupancy, stage.table, stage.guide, random.Random(8)
    rows, pools, regret = table.rows, table.pools, stage.guide.regret(stage.occupancy)
    gathered = 0
    for _ in range(80):
        jobs = Gathering(guide).choose(occupancy, draw)
        row, slot = (occupancy.state.aims[jobs][name] for name in ("row", "slot"))
        occupancy.suppose_nothing()
        if not jobs:
            continue
        gathered += len(jobs) > 1
        assert (regret[jobs] > 0).all()
        assert (rows.job[row] == jobs).all()
        (p,) = set(rows.pool[row].tolist())
        end, room = slot + rows.duration[row], pools.node_slices[p] * rows.num_nodes[row].max()
        for t in range(slot.min(), end.max()):
            assert rows.width[row[(slot <= t) & (end > t)]].sum() <= room
    assert gathered > 10


def test_jobs_open_a_node_together_that_is_worth_it_to_none_alone() -> None:
    """Four jobs of an hour and a GPU fill the only node, which costs more than any two of them are worth."""
    jobs: list[Doc] = [{"modes": [mode(1)], "reject_cost": 3.0}] * 4
    table = Table.of(reduce_starts(all_starts(instance_of(jobs, pools__0__gpus_per_node=4, pools__0__price=8.0), 6)))
    guide = Guide(Certificate(table).pricing, Certificate(table).lowest.prices)
    occupancy = Occupancy(table)
    occupancy.set_prices(guide.priced)
    for operator, cost in ((Neighbours(), 12.0), (Gathering(guide), 8.0)):
        loop = Improve(occupancy, [(operator, 1.0)], 0)
        loop.run(200, 1e-6, 1e-6)
        assert occupancy.cost == pytest.approx(cost)


def test_an_exchange_takes_what_runs_for_what_does_not_within_what_is_allowed() -> None:
    """What is put back one by one never exceeds it; without room for anything else nothing is exchanged."""
    stage = Stage("busy", 20, 10, 1.1)
    occupancy, draw, operator = stage.occupancy, random.Random(2), Exchange(stage.guide)
    assert (occupancy.row >= 0).all()
    assert operator.choose(occupancy, draw) == []
    runs = np.flatnonzero(occupancy.row >= 0).tolist()
    occupancy.drop(runs[::2])
    occupancy.allow(occupancy.spent * 1.1)
    before, changed = occupancy.row >= 0, 0
    for _ in range(200):
        occupancy.mark()
        jobs = operator.choose(occupancy, draw)
        assert len(set(jobs)) == len(jobs)
        assert before[jobs].any()
        assert not before[jobs].all()
        occupancy.drop(jobs)
        occupancy.recreate(stage.table.after_predecessors(jobs), tries=8)
        occupancy.suppose_nothing()
        assert occupancy.spent <= occupancy.allowed * (1 + 1e-9)
        changed += bool(((occupancy.row >= 0) != before).any())
        occupancy.undo()
    assert changed > 20


def test_caching_moves_the_readers_of_one_dataset(stage: Stage) -> None:
    draw, instance = random.Random(4), stage.instance
    operator = Caching(stage.occupancy)
    for _ in range(20):
        jobs = operator.choose(stage.occupancy, draw)
        stage.occupancy.suppose_nothing()
        assert len({instance.jobs[j].dataset for j in jobs}) == 1


def test_regret_is_what_a_start_costs_more_than_the_cheapest(stage: Stage) -> None:
    guide, occupancy = stage.guide, stage.occupancy
    regret = guide.regret(occupancy)
    for j in range(stage.table.num_jobs):
        mine = guide.listed(j)
        same = (guide.row[mine] == occupancy.row[j]) & (guide.slot[mine] == occupancy.slot[j])
        if same.any():
            assert regret[j] == pytest.approx(guide.cost[mine][same][0] - guide.cost[mine][0], rel=1e-9, abs=1e-9)


def test_a_rejected_job_regrets_what_that_costs_more_than_to_run() -> None:
    jobs: list[Doc] = [{"modes": [mode(1)], "reject_cost": cost} for cost in (0.1, 9.0)]
    table = Table.of(reduce_starts(all_starts(instance_of(jobs), 6)))
    certificate = Certificate(table)
    guide, occupancy = Guide(certificate.pricing, certificate.lowest.prices), Occupancy(table)
    assert guide.regret(occupancy) == pytest.approx(np.maximum(0.0, [0.1, 9.0] - guide.least))
    assert guide.regret(occupancy)[1] > 8.0


def test_the_search_never_ends_dearer_and_its_cost_is_the_recount() -> None:
    stage = Stage("contended", 20, 12, 0.8)
    before = stage.occupancy.cost
    loop = Improve(stage.occupancy, [(operator, 1.0) for operator in stage.operators().values()], 0)
    loop.run(400, 0.002, 1e-6)
    after = stage.occupancy.cost
    assert after < before
    assert after == pytest.approx(loop.best.cost, rel=1e-12)
    assert after == pytest.approx(cost_of(stage.occupancy.to_schedule()).cost, rel=1e-9)


def test_the_lp_is_rounded_to_its_own_starts_where_there_is_room(stage: Stage) -> None:
    snapshot = stage.occupancy.snapshot()
    weights = {(int(row), int(slot)): 1.0 for row, slot in zip(stage.occupancy.row, stage.occupancy.slot, strict=True)}
    assert round_weights(stage.occupancy, stage.guide, weights)
    assert (stage.occupancy.row == snapshot.chosen["row"]).all()
    assert (stage.occupancy.slot == snapshot.chosen["slot"]).all()
    stage.occupancy.restore(snapshot)


def test_whole_nodes_keep_their_starts_where_there_are_enough_in_each_slot() -> None:
    """Random runs on whole nodes, at most so many at a time as there are nodes; some are placed already, and others
    have no start given."""
    most_full = 0
    for seed in range(30):
        draw = random.Random(seed)
        num_slots, nodes = 24, draw.randint(1, 6)
        taken, slots = np.zeros(num_slots, dtype=int), []
        jobs: list[Doc] = []
        for _ in range(60):
            width, duration = draw.randint(1, nodes), draw.randint(1, 8)
            begin = draw.randint(0, num_slots - duration)
            if taken[begin : begin + duration].max() + width <= nodes:
                taken[begin : begin + duration] += width
                jobs.append({"modes": [mode(duration, 2 * width)]})
                slots.append(begin)
        most_full += int((taken == nodes).sum())
        jobs += [{"modes": [mode(1)], "reject_cost": 1.0}] * 2
        instance = instance_of(jobs, pools__0__nodes=nodes, horizon=num_slots * HOUR)
        table = Table.of(all_starts(instance, num_slots))
        occupancy, certificate = Occupancy(table), Certificate(table)
        guide = Guide(certificate.pricing, certificate.lowest.prices)
        starts = {j: (table.starts.rows_of_job[j][0], slot) for j, slot in enumerate(slots)}
        if draw.random() < 0.5:  # two of those that start first
            for j in sorted(starts, key=lambda j: starts[j][1])[:2]:
                found = occupancy.find(*starts[j])
                assert found is not None
                occupancy.put(j, *starts[j], found.nodes)
        assert place_starts(occupancy, guide, starts)
        assert occupancy.slot[: len(slots)].tolist() == slots, seed
        assert occupancy.missing == 0
    assert most_full > 200


def test_where_there_is_no_room_for_a_start_another_one_is_found() -> None:
    table = Table.of(all_starts(instance_of([{"modes": [mode(1, 2)]}] * 2), 6))
    occupancy, certificate = Occupancy(table), Certificate(table)
    guide = Guide(certificate.pricing, certificate.lowest.prices)
    assert place_starts(occupancy, guide, {0: (0, 1), 1: (1, 1)})
    assert occupancy.slot[0] == 1
    assert occupancy.slot[1] != 1
    # What runs stays where it is.
    there = occupancy.slot.tolist()
    assert place_starts(occupancy, guide, {0: (0, 5), 1: (1, 4)})
    assert occupancy.slot.tolist() == there


def test_the_same_work_gives_the_same_plan() -> None:
    instance = generate("mixed", 12, 12, seed=2)
    limits = Limits(time_limit_s=None, work=300, gap=0.0, seed=5)
    first, second = (plan_bytes(solve(instance, "fast", limits).plan) for _ in range(2))
    assert first == second
