"""The compiled state of the fast search, against schedules, recounts and the checker."""

from __future__ import annotations

import json
import math
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from models.check import check
from models.domain.plan import SERVICE_TERMS
from models.precedence import precedence_graph
from models.rentals import cheapest_intervals
from planner.engines.assemble import cost_of, plan_of
from planner.engines.fast.compiled import HAS_NUMBA
from planner.engines.fast.occupancy import Occupancy
from tests.engines.fast.walks import added_costs, can_run, occupancy_of, set_random_prices, total, trace, walk
from tests.engines.samples import HOUR, Doc, instance_of, mode
from tests.random_instances import FAMILIES, random_instance

ROOT = Path(__file__).resolve().parents[3]


# --- against the schedule and the checker ------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
def test_cost_is_that_of_the_plan(family: str) -> None:
    """After any changes the cost is that of a recount (of a plan under power laws: no more, and hardly less), and what
    runs is a plan that passes the check."""
    checked = 0
    for seed in range(25):
        instance = random_instance(family, np.random.default_rng(seed))
        occupancy, draw = occupancy_of(instance), random.Random(seed)
        set_random_prices(occupancy, draw)
        for what in walk(occupancy, draw, 12):
            schedule = occupancy.to_schedule()
            case = (family, seed, what)
            assert occupancy.cost == pytest.approx(total(schedule), rel=1e-9, abs=1e-9), case
            beyond = cost_of(schedule).costs["bandwidth"] - float(occupancy.state.sites["cost"].sum())
            assert -1e-9 <= beyond <= occupancy.table.storage.chord_error + 1e-9, case
            lost = sum(
                schedule.terms(step).get(term, 0.0) for step in schedule.chosen.values() for term in SERVICE_TERMS
            )
            left = (job.reject_cost or 0.0 for j, job in enumerate(instance.jobs) if j not in schedule.chosen)
            assert occupancy.service == pytest.approx(lost + sum(left), rel=1e-9, abs=1e-9), case
            must = [j for j, job in enumerate(instance.jobs) if job.reject_cost is None and j not in schedule.chosen]
            assert occupancy.missing == len(must), case
            same = occupancy_of(instance)
            same.load(schedule)
            assert same.steps() == occupancy.steps(), case
            assert_same_sums(occupancy, same, case)
            if not must and what == "move":
                plan = plan_of(schedule, status="feasible", engine="fast", seed=0, versions={}, dual_bound=None)
                assert check(instance, plan).violations == (), case
                checked += 1
    assert checked > 30


def assert_same_sums(one: Occupancy, other: Occupancy, case: Any) -> None:
    """Whatever the state keeps: whole numbers to the last, money and sums up to rounding."""
    runs = one.row >= 0
    assert (one.row == other.row).all(), case
    assert (one.state.chosen[runs] == other.state.chosen[runs]).all(), case
    for j in np.flatnonzero(runs).tolist():
        assert one.nodes_of(j).tolist() == other.nodes_of(j).tolist(), case
    for name in ("taken", "spacious", "cores", "slices", "readers"):
        assert (getattr(one.state, name) == getattr(other.state, name)).all(), (*case, name)
    for name in ("ram", "memory", "bandwidth", "crossing"):
        assert getattr(one.state, name) == pytest.approx(getattr(other.state, name), rel=1e-9, abs=1e-9), (*case, name)
    for name in ("runs", "cost"):
        assert (one.state.nodes[name] == other.state.nodes[name]).all(), (*case, name)
    for name in ("peak", "cost", "cached"):
        assert one.state.sites[name] == pytest.approx(other.state.sites[name], rel=1e-9, abs=1e-9), (*case, name)
    assert (one.state.cached["readers"] == other.state.cached["readers"]).all(), case
    assert (one.state.cached["level"] == other.state.cached["level"]).all(), case
    assert one.cost == pytest.approx(other.cost, rel=1e-9, abs=1e-9), case


@pytest.mark.parametrize("family", FAMILIES)
def test_a_place_is_the_cheapest_and_costs_what_it_adds(family: str) -> None:
    """Against all places there are: the first difference of recounts that is lowest, or none where nothing fits."""
    places = refusals = 0
    for seed in range(40):
        instance = random_instance(family, np.random.default_rng(seed))
        occupancy, draw = occupancy_of(instance), random.Random(seed)
        set_random_prices(occupancy, draw)
        graph = precedence_graph(instance)
        for _ in walk(occupancy, draw, 6):
            rows = occupancy.table.starts.rows
            free = [r for r, row in enumerate(rows) if can_run(occupancy, graph, row.job)]
            for r in draw.sample(free, min(3, len(free))):
                slot = int(draw.choice(rows[r].slots))
                found = occupancy.find(r, slot)
                added = added_costs(occupancy, r, slot)
                case = (family, seed, r, slot)
                assert (found is None) == (not added), case
                if found is None:
                    refusals += 1
                    continue
                places += 1
                pool = rows[r].pool
                spot = (*(found.nodes - occupancy.facts.pools["start"][pool]).tolist(), *gpu_of(found.gpu))
                assert found.delta == pytest.approx(min(added.values()), rel=1e-9, abs=2e-9), case
                assert found.delta == pytest.approx(added[tuple(sorted(spot[: rows[r].mode.num_nodes]))], abs=2e-9), (
                    case
                )
                before = occupancy.cost
                occupancy.mark()
                occupancy.put(rows[r].job, r, slot, found.nodes, found.gpu)
                reject = instance.jobs[rows[r].job].reject_cost or 0.0
                assert occupancy.cost - before == pytest.approx(found.delta - reject, rel=1e-9, abs=1e-9), case
                step = dict(occupancy.steps())[rows[r].job]
                assert (step.row, step.slot, step.spot) == (r, slot, spot), case
                occupancy.undo()
                occupancy.commit()
    assert places > 100
    assert refusals > 5


def gpu_of(gpu: int) -> list[int]:
    """The shared GPU of a spot."""
    return [gpu] if gpu >= 0 else []


@pytest.mark.parametrize("family", FAMILIES)
def test_undo_restores(family: str) -> None:
    changes = 0
    for seed in range(30):
        occupancy, draw = occupancy_of(random_instance(family, np.random.default_rng(seed))), random.Random(seed)
        same = occupancy_of(occupancy.table.instance)
        set_random_prices(occupancy, draw)
        for _ in walk(occupancy, draw, 8):
            same.restore(occupancy.snapshot())
            jobs = draw.sample(range(occupancy.table.num_jobs), draw.randint(1, occupancy.table.num_jobs))
            occupancy.mark()
            for _ in range(2):
                occupancy.drop(jobs)
                occupancy.recreate(jobs, tries=3, blink=0.5)
            changes += int((occupancy.row != same.row).any() or (occupancy.slot != same.slot).any())
            assert set(occupancy.changed()) <= set(jobs)
            if draw.random() < 0.2:
                changed = occupancy.changed().tolist()
                occupancy.refresh()
                assert occupancy.changed().tolist() == changed
            for _ in range(2):
                cost = same.cost
                occupancy.undo()
                assert_same_sums(occupancy, same, (family, seed))
                assert occupancy.cost == pytest.approx(cost, rel=1e-12, abs=1e-12)
                occupancy.drop(jobs[:1])
            occupancy.undo()
            occupancy.commit()
            assert len(occupancy.changed()) == 0
    assert changes > 30


def test_what_makes_no_sense_is_refused() -> None:
    occupancy = occupancy_of(instance_of([{"modes": [mode(1)]}]))
    with pytest.raises(ValueError, match="takes 1 nodes, not 2"):
        occupancy.put(0, 0, 0, [0, 1])
    with pytest.raises(ValueError, match="no mark"):
        occupancy.undo()
    occupancy.mark()
    occupancy.commit()
    with pytest.raises(ValueError, match="no mark"):
        occupancy.undo()


# --- nodes -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(40))
def test_nodes_cost_what_their_cheapest_intervals_cost(seed: int) -> None:
    """Random blocks, boots, prices, windows and busy slots."""
    draw = random.Random(seed)
    slots = 30
    pool: Doc = {
        "pools__0__nodes": 2,
        "pools__0__nodes_on": draw.choice((0, 1, 2)),
        "pools__0__billing_increment": draw.choice((0, 2, 3, 5)) * HOUR,
        "pools__0__boot_time": draw.choice((0, 1, 2, 3)) * HOUR,
        "pools__0__price": [draw.choice((0.0, 0.25, 1.0, 2.0)) for _ in range(slots)],
        "pools__0__unavailable": [
            {
                "since": since * HOUR,
                "until": (since + draw.randint(1, 3)) * HOUR,
                "nodes": draw.choice((None, [0], [1])),
            }
            for since in draw.sample(range(slots), draw.randint(0, 2))
        ],
        "horizon": slots * HOUR,
    }
    jobs: list[Doc] = [{"modes": [mode(draw.choice((1, 1, 2, 4)), 2)]} for _ in range(12)]
    occupancy = occupancy_of(instance_of(jobs, **pool))
    rows = occupancy.table.starts.rows
    for r in range(len(rows)):
        for _ in range(4):
            slot = int(draw.choice(rows[r].slots))
            found = occupancy.find(r, slot)
            added = added_costs(occupancy, r, slot)
            assert (found is None) == (not added)
            if found is None:
                continue
            assert found.delta == pytest.approx(min(added.values()), rel=1e-9, abs=2e-9)
            before = occupancy.cost
            occupancy.put(rows[r].job, r, slot, found.nodes, found.gpu)
            assert occupancy.cost - before == pytest.approx(found.delta, rel=1e-9, abs=1e-9)
            timeline = occupancy.to_schedule().pools[0]
            costs = [
                math.fsum(timeline.rules.cost(*on) for on in cheapest_intervals(timeline.rules, i, timeline.busy(i)))
                for i in range(2)
            ]
            assert occupancy.node_cost[:2].tolist() == pytest.approx(costs, rel=1e-9, abs=1e-9)
            if draw.random() < 0.3:
                occupancy.drop([rows[r].job])
                continue
            break


# --- compiled or not ---------------------------------------------------------------------------------------


@pytest.mark.skipif(not HAS_NUMBA, reason="nothing is compiled")
def test_compiled_and_plain_code_agree_to_the_last_bit() -> None:
    code = "import json; from tests.engines.fast.walks import trace; print(json.dumps(trace(range(12))))"
    environment = {**os.environ, "BURSTPLAN_COMPILED": "0"}
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == trace(range(12))
