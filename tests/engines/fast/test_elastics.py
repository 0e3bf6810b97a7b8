"""Elastic jobs in the fast engine: the pricing of their runs, and the state that holds their segments."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from models.check import check
from models.domain import Instance
from models.domain.entities import Elastic
from planner.engines.assemble import cost_of, plan_of
from planner.engines.fast.compiled import compiled, sources
from planner.engines.fast.occupancy import Occupancy
from planner.engines.fast.run_kernels import Room, Task, cheapest_run, price_work, room_for
from tests.engines.fast.walks import occupancy_of, set_random_prices, total, walk
from tests.engines.samples import HOUR, Doc, instance_of, mode, running
from tests.random_instances import FAMILIES, random_instance


def _entry() -> Callable[..., tuple[float, float, int]]:
    stamp = sources("compiled", "run_kernels")  # so that what is kept on disk is that of these kernels

    @compiled
    def priced_and_made(task: Task, room: Room, best: np.ndarray) -> tuple[float, float, int]:
        """What runs are said to cost at least, and what the run that is made costs."""
        e = price_work(task, room)
        least = math.inf if e < 0 else room.proven[e, 0] + task.late[e]
        return least, cheapest_run(task, room, best), stamp

    return priced_and_made


priced_and_made = _entry()


def cost_of_path(task: Task, path: tuple[int, ...]) -> float:
    """What a run costs; infinite where it cannot be, or where work is left."""
    if math.fsum(task.work[m] for m in path if m >= 0) < 1 - 1e-9:
        return math.inf
    cost, began = 0.0, False
    for t, m in enumerate(path):
        if m < 0:
            continue
        cost += task.cost[m, t]
        if t == 0 or path[t - 1] != m:
            if task.kept[m]:
                cost += math.inf if t > 0 else 0.0
            else:
                cost += task.change if began else task.fresh[t]
        began = True
    return cost + float(task.late[max(t for t, m in enumerate(path) if m >= 0) + 1])


def tasks() -> Iterator[Task]:
    """Some with prices that repeat, some with any."""
    rng = np.random.default_rng(1)
    for k in range(300):
        num_modes, num_slots = int(rng.integers(1, 4)), int(rng.integers(2, 7))
        cost = rng.choice([1.0, 2.0, 5.0, np.inf], p=[0.3, 0.3, 0.3, 0.1], size=(num_modes, num_slots))
        kept = np.zeros(num_modes, dtype=np.bool_)
        kept[0] = rng.random() < 0.3
        change = float(rng.choice([0.0, 0.3, 2.0]))
        late = np.maximum(0.0, np.arange(num_slots + 1) - rng.integers(0, num_slots + 1)) * float(rng.choice([0, 1, 4]))
        yield Task(
            cost + rng.random((num_modes, num_slots)) * (k % 2),
            rng.choice([0.2, 0.35, 0.5, 1.0], size=num_modes),
            kept,
            np.full(num_slots + 1, change if kept[0] else 0.0),
            late,
            change,
            0,
            num_slots,
        )


def test_runs_are_priced_from_below_and_made_at_what_they_cost() -> None:
    """Against every run: least <= optimum <= run; nearly always the run is an optimum."""
    optimal, bounds = [], []
    for task in tasks():
        num_modes, num_slots = task.cost.shape
        best = np.full(num_slots, -1)
        least, made, _ = priced_and_made(task, room_for(num_modes, num_slots), best)
        paths = itertools.product(range(-1, num_modes), repeat=num_slots)
        optimum = min(cost_of_path(task, path) for path in paths if any(m >= 0 for m in path))
        assert math.isinf(optimum) == math.isinf(made)
        if math.isinf(optimum):
            continue
        assert least <= optimum + 1e-9
        assert made == pytest.approx(cost_of_path(task, tuple(best.tolist())), rel=1e-9)
        assert made >= optimum - 1e-9
        optimal.append(made <= optimum + 1e-9)
        bounds.append(least / optimum)
    assert len(optimal) > 200
    assert np.mean(optimal) > 0.97
    assert np.mean(bounds) > 0.97


def test_long_runs_do_all_of_their_work() -> None:
    """Too many to go through: each costs what it is said to, and no less than the bound."""
    rng = np.random.default_rng(2)
    for _ in range(400):
        num_modes, num_slots = int(rng.integers(2, 8)), int(rng.integers(10, 40))
        cost = rng.uniform(0.1, 1.0, (num_modes, 1)) + rng.choice(
            [0.0, 0.3, np.inf], p=[0.6, 0.35, 0.05], size=(1, num_slots)
        )
        late = np.maximum(0.0, np.arange(num_slots + 1.0) - rng.integers(5, num_slots)) * rng.uniform(0.01, 1.0)
        task = Task(
            cost, rng.uniform(0.05, 0.2, num_modes), np.zeros(num_modes, dtype=np.bool_), np.zeros(num_slots + 1), late,
            float(rng.choice([0.0, 0.1])), 0, num_slots,
        )  # fmt: skip
        best = np.full(num_slots, -1)
        least, made, _ = priced_and_made(task, room_for(num_modes, num_slots), best)
        if math.isfinite(made):
            assert made == pytest.approx(cost_of_path(task, tuple(best.tolist())), rel=1e-9)
            assert least <= made * (1 + 1e-9)


def elastic(instance: Instance, draw: random.Random) -> Instance:
    """The same with some jobs that may change."""
    jobs = []
    for job in instance.jobs:
        changes: dict[str, Any] = {"restart_cost": draw.choice((0.0, 0.5))}
        if draw.random() < 0.6:
            changes["elastic"] = Elastic(changes=draw.choice((None, 1, 2)))
        jobs.append(job.model_copy(update=changes))
    return instance.altered(jobs=tuple(jobs))


def pressing(seed: int) -> Instance:
    """Jobs whose due dates ask for many GPUs for a part of the time; some run already, some may be left out."""
    draw = random.Random(seed)
    jobs: list[Doc] = []
    for _ in range(4):
        hours = draw.uniform(3, 8)
        jobs.append({
            "modes": [mode(hours / gpus**0.7, gpus, gpu_pool) for gpu_pool in ("own", "rent") for gpus in (1, 2)],
            "due": draw.uniform(0.5, 0.9) * hours * HOUR,
            "weight": draw.choice((0.5, 3.0)),
            "restart_cost": draw.choice((0.0, 0.0, 0.1)),
            "elastic": draw.choice(({}, {}, {"changes": 1})),
        } | ({"reject_cost": 20.0} if draw.random() < 0.3 else {}))  # fmt: skip
    jobs[0]["running"] = running("own1", {0: [0]}, movable=True)
    return instance_of(
        jobs, slot=HOUR / 2, horizon=12 * HOUR, pools__0__nodes=2, pools__0__price=draw.choice((0.0, 1.0)),
        pools__0__gpu_power=1.0, sites__0__energy_price=0.5, pools__1__price=1.5,
    )  # fmt: skip


def instances(family: str) -> Iterator[tuple[int, Instance]]:
    """Some with elastic jobs."""
    for seed in range(12):
        if family == "pressing":
            yield seed, pressing(seed)
        else:
            yield seed, elastic(random_instance(family, np.random.default_rng(seed)), random.Random(seed))


@pytest.mark.parametrize("family", [*FAMILIES, "pressing"])
def test_cost_is_that_of_the_plan(family: str) -> None:
    """After any changes the cost is that of a recount, the state is that of the same schedule loaded afresh, and what
    runs is a plan that passes the check."""
    checked = changed = 0
    for seed, instance in instances(family):
        occupancy, draw = occupancy_of(instance), random.Random(seed)
        set_random_prices(occupancy, draw)
        for what in walk(occupancy, draw, 10):
            schedule = occupancy.to_schedule()
            case = (family, seed, what)
            assert occupancy.cost == pytest.approx(total(schedule), rel=1e-9, abs=1e-9), case
            same = occupancy_of(instance)
            same.load(schedule)
            assert same.steps() == occupancy.steps(), case
            for name in ("taken", "spacious", "cores", "slices", "readers"):
                assert (getattr(occupancy.state, name) == getattr(same.state, name)).all(), (*case, name)
            assert same.cost == pytest.approx(occupancy.cost, rel=1e-9, abs=1e-9), case
            must = [j for j, job in enumerate(instance.jobs) if job.reject_cost is None and j not in schedule.chosen]
            assert occupancy.missing == len(must), case
            changed += sum(len(step.earlier) for step in schedule.chosen.values())
            if not must and what == "move":
                plan = plan_of(schedule, status="feasible", engine="fast", seed=0, versions={}, dual_bound=None)
                assert check(instance, plan).violations == (), case
                checked += 1
    assert checked > 10
    assert changed > (100 if family == "pressing" else 0) or family == "odd"


def small_then_large() -> Occupancy:
    """One job of 10 GPU-hours on one GPU, of 11 on two, due after 6 hours; only energy is paid for."""
    modes = [mode(10, 1), mode(5.5, 2)]
    jobs = [{"modes": modes, "due": 6 * HOUR, "weight": 100.0, "elastic": {}, "restart_cost": 0.01}]
    return occupancy_of(instance_of(jobs, pools__0__price=0.0, pools__0__gpu_power=1.0, sites__0__energy_price=1.0))


def test_a_job_runs_small_first_and_large_at_the_last_moment() -> None:
    """Which no run of one segment does."""
    occupancy = small_then_large()
    occupancy.recreate([0])
    ((_, step),) = occupancy.steps()
    schedule = occupancy.to_schedule()
    modes = [schedule.starts.rows[segment.row].mode.gpus for segment in step.segments]
    assert sorted(modes) == [1, 2]
    assert schedule.completion(0) * occupancy.table.instance.slot <= 6 * HOUR
    assert cost_of(schedule).costs["restart"] == pytest.approx(0.01)


def test_undo_puts_back_every_segment() -> None:
    """A run of several segments is taken off and put back as it was."""
    occupancy = small_then_large()
    occupancy.recreate([0])
    before, cost = occupancy.steps(), occupancy.cost
    occupancy.mark()
    occupancy.drop([0])
    assert not occupancy.steps()
    assert not occupancy.state.taken.any()
    occupancy.undo()
    assert occupancy.steps() == before
    assert occupancy.cost == cost


def test_a_schedule_with_more_segments_than_there_is_room_for_is_refused() -> None:
    """Rather than cut off."""
    occupancy = small_then_large()
    occupancy.recreate([0])
    schedule = occupancy.to_schedule()
    step = schedule.drop(0)
    schedule.chosen[0] = replace(step, earlier=step.earlier * 20)
    with pytest.raises(ValueError, match="changes more often"):
        occupancy.load(schedule)
