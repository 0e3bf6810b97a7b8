"""Runs with fixed starts are packed onto nodes: nothing else is moved, and little is left out."""

from __future__ import annotations

import random

import numpy as np
import pytest

from models.starts import all_starts
from planner.engines.fast.occupancy import Occupancy
from planner.engines.fast.table import Table
from tests.engines.fast.walks import occupancy_of, set_random_prices, total
from tests.engines.samples import HOUR, Doc, instance_of, mode
from tests.random_instances import FAMILIES, random_instance

PASSES = 50


@pytest.mark.parametrize("family", FAMILIES)
def test_a_packing_runs_jobs_at_their_aims_or_not_at_all(family: str) -> None:
    packed, left_out = 0, 0
    for seed in range(20):
        occupancy = occupancy_of(random_instance(family, random.Random(seed)))
        rows, jobs = occupancy.table.rows, occupancy.table.jobs
        draw = random.Random(seed)
        if not len(rows.job):
            continue
        set_random_prices(occupancy, draw)
        # Jobs without others before or after them, at any of their starts; every third runs already.
        free = np.flatnonzero((np.diff(jobs.before_start) == 0) & (np.diff(jobs.row_start) > 0)).tolist()
        free = [j for j in free if j not in jobs.before.tolist()]
        occupancy.recreate(free[::3])
        there = {j: (int(occupancy.row[j]), int(occupancy.slot[j])) for j in free[::3]}
        some = [j for j in free if j not in there]
        aims = {}
        for j in some:
            r = draw.randrange(int(jobs.row_start[j]), int(jobs.row_start[j + 1]))
            aims[j] = (r, draw.choice(list(occupancy.table.starts.rows[r].slots)))
        occupancy.aim(some, [aims[j][0] for j in some], [aims[j][1] for j in some])
        occupancy.pack(some, PASSES)
        occupancy.suppose_nothing()
        for j in some:
            assert occupancy.row[j] == -1 or (int(occupancy.row[j]), int(occupancy.slot[j])) == aims[j]
            packed, left_out = packed + int(occupancy.row[j] >= 0), left_out + int(occupancy.row[j] < 0)
            # Who was left out does not fit beside those that were not.
            assert occupancy.row[j] >= 0 or occupancy.find(*aims[j]) is None
        assert all((int(occupancy.row[j]), int(occupancy.slot[j])) == start for j, start in there.items())
        schedule = occupancy.to_schedule()
        assert occupancy.cost == pytest.approx(total(schedule), rel=1e-9, abs=1e-9)
    assert packed > 10


def packed(runs: list[tuple[int, int, int]], nodes: int, passes: int) -> set[int]:
    """Runs (slot, hours, GPUs of a node of four) that are left out of so many nodes."""
    jobs: list[Doc] = [{"modes": [mode(hours, gpus)]} for _, hours, gpus in runs]
    slots = max(slot + hours for slot, hours, _ in runs)
    changes = {"pools__0__nodes": nodes, "pools__0__gpus_per_node": 4, "horizon": slots * HOUR}
    table = Table.of(all_starts(instance_of(jobs, **changes), slots))
    occupancy = Occupancy(table)
    occupancy.aim(
        range(len(runs)), [table.starts.rows_of_job[j][0] for j in range(len(runs))], [run[0] for run in runs]
    )
    occupancy.pack(range(len(runs)), passes)
    return {j for j in range(len(runs)) if occupancy.row[j] < 0}


def test_orders_are_tried_until_all_that_were_cut_from_full_nodes_fit_again() -> None:
    """Each node's hours are cut into runs of one, two or four GPUs, so there is a packing that leaves nothing out."""
    first, last = 0, 0
    for seed in range(40):
        draw = random.Random(seed)
        runs = []
        nodes = 5
        for _ in range(nodes):
            for gpus in draw.choice([(4,), (2, 2), (2, 1, 1), (1, 1, 1, 1)]):
                slot = 0
                while slot < 24:
                    hours = min(24 - slot, draw.randint(2, 9))
                    runs.append((slot, hours, gpus))
                    slot += hours
        draw.shuffle(runs)
        first += len(packed(runs, nodes, 2))
        last += len(packed(runs, nodes, PASSES))
    assert first > 20
    assert last == 0


def test_who_is_left_out_is_worth_the_least() -> None:
    assert packed([(0, 9, 2), (0, 2, 4), (0, 9, 2)], 1, PASSES) == {1}
