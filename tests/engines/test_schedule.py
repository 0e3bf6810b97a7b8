"""A schedule under construction: its sums, its prices, and the GPUs that its runs are given."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np
import pytest

from models.domain import Instance
from models.starts import Row, Starts, all_starts
from planner.engines.assemble import assign_gpus, cost_of
from planner.engines.policies.listing import ORDERS, insert, list_schedule
from planner.engines.schedule import Schedule, Step
from planner.horizon import num_slots_of
from tests.engines.samples import HOUR, Doc, instance_of, mode, running, share
from tests.random_instances import FAMILIES, random_instance


def starts_of(instance: Instance) -> Starts:
    """Every start of an instance."""
    return all_starts(instance, num_slots_of(instance))


def row_of(starts: Starts, job: int, name: str, *, kept: bool = False, level: int = 0) -> int:
    """The row of a job in a mode."""
    (found,) = (
        r
        for r in starts.rows_of_job[job]
        if (starts.rows[r].mode.name, starts.rows[r].kept, starts.rows[r].level) == (name, kept, level)
    )
    return found


def sums(schedule: Schedule) -> list[Any]:
    """Every number that a schedule keeps."""
    found: list[Any] = [sorted(schedule.chosen.items())]
    for timeline in schedule.pools:
        arrays = [timeline.whole, timeline.slices, timeline.memory, timeline.paid, timeline.count]
        arrays += [array for array in (timeline.cores, timeline.ram) if array is not None]
        found += [np.round(array.astype(float), 6).tolist() for array in arrays]
    for storage in schedule.storage:
        found += [np.round(storage.used, 6).tolist(), sorted(storage.levels.items()), round(storage.cache_free, 6)]
        found.append(sorted((dataset, count) for dataset, count in storage.readers.items() if count))
    found += [np.round(used, 6).tolist() for used, _ in schedule.links.values()]
    return found


# --- sums ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
def test_put_and_drop_keep_every_sum(family: str) -> None:
    """After any steps a schedule is as one that was made of its runs anew, and empty when all are dropped."""
    for seed in range(25):
        starts = starts_of(random_instance(family, np.random.default_rng(seed)))
        draw = random.Random(seed)
        schedule = Schedule(starts)
        for _ in range(12):
            j = draw.randrange(len(starts.instance.jobs))
            if j in schedule.chosen:
                schedule.drop(j)
            elif (step := schedule.cheapest(j, draw.choice((0, 0, 2)))) is not None:
                schedule.put(j, step)
            anew = Schedule(starts)
            for i, step in schedule.chosen.items():
                anew.put(i, step)
            assert sums(schedule) == sums(anew), (family, seed)
        for j in list(schedule.chosen):
            schedule.drop(j)
        assert sums(schedule) == sums(Schedule(starts)), (family, seed)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_price_of_a_step_is_what_it_adds(family: str) -> None:
    """Exactly, where nodes are paid by the slot; boots and blocks are estimated."""
    steps = 0
    for seed in range(25):
        starts = starts_of(random_instance(family, np.random.default_rng(seed)))
        schedule = Schedule(starts)
        if not all(timeline.rules.is_plain for timeline in schedule.pools):
            continue
        for j in range(len(starts.instance.jobs)):
            if starts.instance.jobs[j].after or (step := schedule.cheapest(j)) is None:
                continue
            before = cost_without_rejection(schedule)
            schedule.put(j, step)
            assert cost_without_rejection(schedule) - before == pytest.approx(step.cost, abs=1e-6), (family, seed)
            steps += 1
    assert steps > 25


def cost_without_rejection(schedule: Schedule) -> float:
    """What the runs cost; jobs that are not yet scheduled cost nothing here."""
    return sum(value for name, value in cost_of(schedule).costs.items() if name != "rejection")


# --- what is allowed -------------------------------------------------------------------------------------


def is_offered(schedule: Schedule, r: int, slot: int) -> bool:
    """Whether a row may start in a slot."""
    return schedule.offer(r, np.array([slot])) is not None


def test_bandwidth_links_and_caches_are_kept() -> None:
    reader: Doc = {"dataset": "data", "modes": [mode(2, read_rate=100.0), mode(2, 1, "rent", read_rate=100.0)]}
    starts = starts_of(
        instance_of(
            [reader] * 3,
            cache_levels=2,
            pools__0__nodes=3,
            pools__1__nodes=3,
            sites__0__storage={"bandwidth_cap": 150.0, "cache_capacity": 60.0},
            network__0__bandwidth=100.0,
        )
    )
    schedule = Schedule(starts)
    schedule.put(0, Step(row_of(starts, 0, "own1"), 0, (0,), 0.0))
    # 100 of 150 MB/s are taken in slots 0-1: 100 more from 2 h on, 50 more (half from the cache) at once.
    own = row_of(starts, 1, "own1")
    assert [is_offered(schedule, own, slot) for slot in range(4)] == [False, False, True, True]
    half = row_of(starts, 1, "own1", level=1)
    assert is_offered(schedule, half, 0)
    # Across the link 100 of 100 MB/s in slots 1-2.
    schedule.put(1, Step(row_of(starts, 1, "rent1"), 1, (0,), 0.0))
    far = row_of(starts, 2, "rent1")
    assert [is_offered(schedule, far, slot) for slot in range(5)] == [False, False, False, True, True]
    # The whole dataset of 100 GB does not fit the cache of 60, so there is no such row.
    assert {row.level for row in starts.rows if row.site == 0} == {0, 1}


def test_a_dataset_has_one_level_at_a_site() -> None:
    reader: Doc = {"dataset": "data", "modes": [mode(2, read_rate=100.0)]}
    starts = starts_of(instance_of([reader] * 2, cache_levels=2, sites__0__storage={"cache_capacity": 100.0}))
    schedule = Schedule(starts)
    schedule.put(0, Step(row_of(starts, 0, "own1", level=1), 0, (0,), 0.0))
    offered = [is_offered(schedule, row_of(starts, 1, "own1", level=level), 0) for level in (0, 1, 2)]
    assert offered == [True, True, False]
    schedule.drop(0)
    assert is_offered(schedule, row_of(starts, 1, "own1", level=2), 0)


KEPT: Doc = {"id": "kept", "running": running("now", {0: [1]}, movable=True)}
NOW: Doc = {"id": "now"}


@pytest.mark.parametrize(
    ("kept", "other", "spot", "changes"),
    [
        # Both GPUs taken whole, while it ran elsewhere.
        (share(2, 0.5), mode(2, 2), (0,), {"pools__0__slices_per_gpu": 2}),
        # The memory of its GPU: 10 + 10 of 16 GB.
        (
            share(2, 0.5, memory=10.0),
            share(2, 0.5, memory=10.0),
            (0, 1),
            {"pools__0__slices_per_gpu": 2, "pools__0__gpu_memory": 16.0},
        ),
        # Both GPUs, whole.
        (mode(2), mode(2, 2), (0,), {}),
        # A GPU is free, but 5 + 5 of 8 cores.
        (mode(2, cpu_cores=5), mode(2, cpu_cores=5), (0,), {"pools__0__cpu_cores": 8}),
        # A GPU is free, but 40 + 40 of 64 GB of RAM.
        (mode(2, ram=40.0), mode(2, ram=40.0), (0,), {"pools__0__ram": 64.0}),
    ],
)
def test_a_running_job_goes_back_to_its_place_only_if_it_is_free(
    kept: Doc, other: Doc, spot: tuple[int, ...], changes: dict[str, Any]
) -> None:
    """A movable job may have been moved, and something else put where it was."""
    jobs = [KEPT | {"modes": [kept | NOW]}, {"modes": [other | {"id": "other"}]}]
    starts = starts_of(instance_of(jobs, **changes))
    stay = row_of(starts, 0, "now", kept=True)
    schedule = Schedule(starts)
    assert is_offered(schedule, stay, 0)
    schedule.put(1, Step(row_of(starts, 1, "other"), 1, spot, 0.0))
    assert not is_offered(schedule, stay, 0)
    schedule.drop(1)
    schedule.put(1, Step(row_of(starts, 1, "other"), 2, spot, 0.0))
    assert is_offered(schedule, stay, 0)


def test_of_equal_costs_the_earliest_completion_wins() -> None:
    starts = starts_of(instance_of([{"modes": [mode(3), mode(3, 2)], "release": HOUR}]))
    step = Schedule(starts).cheapest(0)
    assert step is not None
    assert step.slot == 1
    assert Schedule(starts).cheapest(0, earliest=4) is None


# --- GPUs ------------------------------------------------------------------------------------------------


def assert_gpus_do_not_overlap(schedule: Schedule) -> None:
    """Counts what each GPU carries in each slot, and compares places with the spots that were planned."""
    instance = schedule.instance
    slices: Counter[tuple[int, int, int, int]] = Counter()
    places = assign_gpus(schedule)
    assert set(places) == set(schedule.chosen)
    for j, step in schedule.chosen.items():
        for segment, there in zip(step.segments, places[j], strict=True):
            row = schedule.starts.rows[segment.row]
            pool = instance.pools[row.pool]
            nodes = segment.spot[:1] if row.mode.is_small and pool.slices_per_gpu > 1 else segment.spot
            assert [place.node for place in there] == sorted(nodes)
            for place in there:
                assert len(set(place.gpus)) == len(place.gpus) == num_gpus(row, pool.gpus_per_node)
                for gpu in place.gpus:
                    for slot in range(segment.slot, schedule.end(segment)):
                        part = row.mode.slices if row.mode.is_small else pool.slices_per_gpu
                        slices[row.pool, place.node, gpu, slot] += part
            running_at = instance.jobs[j].running
            if row.kept and running_at is not None:
                kept_at = sorted((p.node, tuple(sorted(p.gpus))) for p in running_at.places)
                assert [(p.node, p.gpus) for p in there] == kept_at
    for (p, _, gpu, _), taken in slices.items():
        assert taken <= instance.pools[p].slices_per_gpu
        assert gpu < instance.pools[p].gpus_per_node


def num_gpus(row: Row, gpus_per_node: int) -> int:
    """GPUs that a run takes on each of its nodes."""
    return gpus_per_node if row.mode.is_gang else max(1, row.mode.gpus)


@pytest.mark.parametrize("family", FAMILIES)
def test_no_gpu_is_given_twice(family: str) -> None:
    for seed in range(25):
        starts = starts_of(random_instance(family, np.random.default_rng(seed)))
        for order in ORDERS.values():
            schedule = list_schedule(starts, order)
            if schedule is not None:
                assert_gpus_do_not_overlap(schedule)


def test_no_gpu_is_given_twice_on_a_full_node() -> None:
    """Runs of one to three GPUs and shares fill a node of four, all at random begins."""
    for seed in range(30):
        draw = random.Random(seed)
        hours = [draw.randint(1, 3) for _ in range(14)]
        modes = [share(h, 0.5) if draw.random() < 0.5 else mode(h, draw.randint(1, 3)) for h in hours]
        jobs: list[Doc] = [{"modes": [entry]} for entry in modes]
        starts = starts_of(instance_of(jobs, pools__0__gpus_per_node=4, pools__0__slices_per_gpu=2))
        schedule = Schedule(starts)
        for j in range(len(jobs)):
            insert(schedule, j)
        assert len(schedule.chosen) > 5
        assert_gpus_do_not_overlap(schedule)


def test_runs_that_share_a_gpu_one_after_the_other_keep_it() -> None:
    # Shares at 0-2 and 1-3 on one GPU are a chain; the whole GPU at 0-3 has the other.
    jobs: list[Doc] = [{"modes": [share(2, 0.5)]}, {"modes": [share(2, 0.5)]}, {"modes": [mode(3)]}]
    starts = starts_of(instance_of(jobs, pools__0__slices_per_gpu=2))
    schedule = Schedule(starts)
    schedule.put(0, Step(0, 0, (0, 0), 0.0))
    schedule.put(1, Step(1, 1, (0, 0), 0.0))
    schedule.put(2, Step(2, 0, (0,), 0.0))
    places = assign_gpus(schedule)
    assert places[0] == places[1] != places[2]
