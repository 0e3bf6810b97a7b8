"""Reductions lose no optimum: on random instances, and each removes the starts that it is for."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest

from models.domain import Instance
from models.errors import InvalidInput
from models.reductions import (
    least_cost,
    node_share,
    reduce_starts,
    within_chains,
    within_cutoff,
    without_dominated_modes,
)
from models.starts import Starts, all_starts
from planner.horizon import num_slots_of
from tests import random_features
from tests.formulation.cases import HOUR, Doc, between, instance_of, job
from tests.formulation.solving import assert_at_most, assert_same, every_pool, value
from tests.random_instances import FAMILIES, random_instance

Key = tuple[int, str, int, float, int, bool, int]


def chained(seed: int) -> Instance:
    """A random instance with predecessors, deadlines and jobs that may be rejected."""
    draw = random.Random(seed)
    while True:
        base = random_instance(draw.choice(("compute", "mixed", "contended")), draw, "tiny")
        doc = base.model_dump(mode="json", exclude_unset=True)
        features = [random_features.precedence]
        features += [f for f in (random_features.hard_deadlines, random_features.rejections) if draw.random() < 0.5]
        for feature in features:
            feature(doc, draw)
        try:
            instance = Instance.model_validate(doc)
        except InvalidInput:
            continue
        if any(j.after for j in instance.jobs):
            return instance


def random_starts(family: str, seed: int, size: str = "tiny") -> Starts:
    """Every start of a random instance."""
    if family == "chained":
        instance = chained(seed)
    else:
        instance = random_instance(family, random.Random(seed), "small" if size == "small" else "tiny")
    return all_starts(instance, num_slots_of(instance))


def keys(starts: Starts) -> dict[Key, float]:
    """Every start with its cost, by what it is."""
    return {
        (row.job, row.mode.name, row.pool, row.mode.speed, row.level, row.kept, int(slot)): float(cost)
        for row in starts.rows
        for slot, cost in zip(row.slots, row.costs, strict=True)
    }


def assert_no_optimum_is_lost(starts: Starts) -> None:
    """Each reduction alone, and all together, leave the optimum on nodes as it is, and change no start."""
    nodes = every_pool(starts)
    optimum = value(starts, nodes)
    reductions: dict[str, Callable[[Starts], Starts]] = {
        "chains": within_chains,
        "dominated": without_dominated_modes,
        "all but the cutoff": reduce_starts,
    }
    if optimum is not None:
        above = 1.05 * optimum + 0.5
        reductions |= {
            "cutoff at the optimum": lambda s: within_cutoff(s, optimum),
            "cutoff above": lambda s: within_cutoff(s, above),
            "all": lambda s: reduce_starts(s, optimum),
            "all, from above": lambda s: reduce_starts(s, above),
        }
        assert_at_most(least_cost(starts), optimum)
    every = keys(starts)
    for name, reduce in reductions.items():
        reduced = reduce(starts)
        assert keys(reduced).items() <= every.items(), name
        if reduced.num_starts < starts.num_starts:
            assert_same(value(reduced, nodes), optimum)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("family", [*FAMILIES, "chained"])
def test_no_optimum_is_lost(family: str, seed: int) -> None:
    assert_no_optimum_is_lost(random_starts(family, seed))


@pytest.mark.slow
@pytest.mark.parametrize("block", range(10))
@pytest.mark.parametrize("family", [*FAMILIES, "chained"])
def test_no_optimum_is_lost_of_many(family: str, block: int) -> None:
    for seed in range(1000 + 50 * block, 1050 + 50 * block):
        assert_no_optimum_is_lost(random_starts(family, seed))


@pytest.mark.slow
@pytest.mark.parametrize("block", range(5))
@pytest.mark.parametrize("family", FAMILIES)
def test_no_optimum_is_lost_of_larger_ones(family: str, block: int) -> None:
    for seed in range(2000 + 8 * block, 2008 + 8 * block):
        assert_no_optimum_is_lost(random_starts(family, seed, "small"))


def test_the_random_instances_are_reduced() -> None:
    """Each reduction removes something from many of them, else the tests above show nothing."""
    found: dict[str, int] = dict.fromkeys(("chains", "dominated", "cutoff"), 0)
    for family in (*FAMILIES, "chained"):
        for seed in range(12):
            starts = random_starts(family, seed)
            found["chains"] += within_chains(starts).num_starts < starts.num_starts
            found["dominated"] += without_dominated_modes(starts).num_starts < starts.num_starts
            found["cutoff"] += within_cutoff(starts, least_cost(starts) * 1.2).num_starts < starts.num_starts
    assert all(count >= 8 for count in found.values()), found


# By hand: a node with two GPUs, five slots of an hour.


def starts_of(jobs: list[Doc], slots: int = 5, **pool: object) -> Starts:
    """All starts of some jobs."""
    instance = instance_of("by hand", slots, [{"gpus_per_node": 2, "nodes": 1} | pool], jobs)
    return all_starts(instance, slots)


def slots_of(starts: Starts) -> dict[str, list[list[int]]]:
    """Start slots of each row of each job."""
    return {
        job.id: [starts.rows[r].slots.tolist() for r in starts.rows_of_job[j]]
        for j, job in enumerate(starts.instance.jobs)
    }


def modes(*fields: Doc) -> list[Doc]:
    """Modes of an hour on one GPU, but for what is said; named m0, m1, ..."""
    return [
        {"id": f"m{k}", "pool": "p0", "duration": HOUR} | ({} if "share" in mode else {"gpus": 1}) | mode
        for k, mode in enumerate(fields)
    ]


def names_left(starts: Starts) -> list[tuple[str, int]]:
    """Mode and cache level of each row that is not dominated."""
    return [(row.mode.name, row.level) for row in without_dominated_modes(starts).rows]


def test_a_chain_leaves_room_before_and_after() -> None:
    jobs = [
        job("first", 2, release=HOUR),
        job("second", 1, after=["first"]),
        job("third", 1, after=["second"]),
        job("free", 1),
    ]
    found = slots_of(within_chains(starts_of(jobs)))
    assert found == {"first": [[1]], "second": [[3]], "third": [[4]], "free": [[0, 1, 2, 3, 4]]}


def test_a_chain_goes_by_the_fastest_mode() -> None:
    both = modes({"duration": 3 * HOUR}, {"gpus": 2})
    jobs: list[Doc] = [{"id": "first", "modes": both}, job("second", 1, after=["first"])]
    found = slots_of(within_chains(starts_of(jobs)))
    assert found == {"first": [[0, 1], [0, 1, 2, 3]], "second": [[1, 2, 3, 4]]}


def test_a_deadline_bounds_the_predecessors() -> None:
    jobs = [job("first", 1), job("second", 2, after=["first"], deadline=4 * HOUR)]
    assert slots_of(within_chains(starts_of(jobs))) == {"first": [[0, 1]], "second": [[1, 2]]}


def test_a_successor_that_may_be_rejected_bounds_nothing() -> None:
    jobs = [job("first", 1), job("second", 4, after=["first"], reject_cost=1.0)]
    assert slots_of(within_chains(starts_of(jobs))) == {"first": [[0, 1, 2, 3, 4]], "second": [[1]]}


def test_what_cannot_follow_has_no_start() -> None:
    jobs = [job("first", 3, reject_cost=1.0), job("second", 3, after=["first"], reject_cost=1.0)]
    assert slots_of(within_chains(starts_of(jobs))) == {"first": [[0, 1, 2]], "second": []}


@pytest.mark.parametrize(
    ("fields", "left"),
    [
        (({}, {"duration": 2 * HOUR}), ["m0"]),
        (({"duration": 2 * HOUR}, {}), ["m1"]),
        (({}, {"gpus": 2}), ["m0"]),  # more GPUs and no faster
        (({"duration": 2 * HOUR}, {"gpus": 2}), ["m0", "m1"]),
        (({"cpu_cores": 2}, {"cpu_cores": 4}), ["m0"]),
        (({"ram": 8.0}, {"ram": 4.0}), ["m1"]),
        (({}, {}), ["m0"]),  # of equals the first
        (({"memory": 20.0}, {"memory": 10.0}), ["m0"]),  # on a whole GPU memory is no matter
        (({"memory": 10.0}, {"memory": 20.0}), ["m0"]),
        (({"duration": 0.9 * HOUR}, {}), ["m0"]),  # both an hour on the grid
        (({"share": 0.5, "memory": 20.0}, {"share": 0.5, "memory": 10.0}), ["m1"]),
        (({"share": 0.5}, {}), ["m0"]),
        (({"share": 1.0, "memory": 8.0}, {}, {}), ["m0"]),
        (({"share": 0.5, "cpu_cores": 3}, {"cpu_cores": 2}), ["m0", "m1"]),
    ],
)
def test_dominated_modes(fields: tuple[Doc, ...], left: list[str]) -> None:
    record: Doc = {"id": "j", "modes": modes(*fields)}
    starts = starts_of([record], slices_per_gpu=2, gpu_memory=32.0, cpu_cores=8, ram=64.0)
    assert [name for name, _ in names_left(starts)] == left
    assert_same(value(without_dominated_modes(starts), every_pool(starts)), value(starts, every_pool(starts)))


def test_a_mode_in_another_pool_dominates_nothing() -> None:
    pools: list[Doc] = [{"gpus_per_node": 1, "nodes": 1, "price": 9.0}, {"gpus_per_node": 1, "nodes": 1}]
    record: Doc = {"id": "j", "modes": modes({}, {"pool": "p1", "duration": 2 * HOUR})}
    assert len(names_left(all_starts(instance_of("by hand", 3, pools, [record]), 3))) == 2


def test_a_kept_run_neither_dominates_nor_is_dominated() -> None:
    """The job runs in its shorter mode; moved, it has no use for the longer one, but staying is another matter."""
    running = {"mode": "m0", "pool": "p0", "places": [{"node": 0, "gpus": [0]}], "movable": True}
    record: Doc = {"id": "j", "modes": modes({}, {"duration": 2 * HOUR}), "running": running, "restart_cost": 1.0}
    left = without_dominated_modes(starts_of([record])).rows
    assert [(row.mode.name, row.kept) for row in left] == [("m0", True), ("m0", False)]


def test_a_mode_with_fewer_starts_dominates_nothing() -> None:
    """Of all starts the better mode has every one of the worse; of starts that were thinned out before, perhaps not."""
    starts = starts_of([{"id": "j", "modes": modes({}, {"duration": 2 * HOUR})}])
    better, worse = starts.rows
    thinned = starts.with_rows([better.only(better.slots != 2), worse])
    assert names_left(starts) == [("m0", 0)]
    assert names_left(thinned) == [("m0", 0), ("m1", 0)]


@pytest.mark.parametrize(
    ("rates", "left"),
    [
        ((50.0, 60.0), [("m0", 0), ("m0", 1)]),
        # The slower one needs less bandwidth; wholly from the cache neither needs any.
        ((60.0, 50.0), [("m0", 0), ("m0", 1), ("m1", 0)]),
    ],
)
def test_a_slower_reader_is_kept_where_it_needs_less_bandwidth(
    rates: tuple[float, float], left: list[tuple[str, int]]
) -> None:
    fields = modes({"read_rate": rates[0]}, {"read_rate": rates[1], "duration": 2 * HOUR})
    sites = [{"id": "home", "kind": "on_prem", "storage": {"cache_capacity": 100.0}}]
    instance = instance_of(
        "by hand", 5, [{"gpus_per_node": 2, "nodes": 1}], [{"id": "j", "modes": fields, "dataset": "d"}],
        sites=sites, datasets=[{"id": "d", "size": 60.0, "home": "home"}],
    )  # fmt: skip
    assert names_left(all_starts(instance, 5)) == left


def test_a_cutoff_bounds_tardiness_and_prices() -> None:
    """The late job costs 1 an hour of the node and 2 an hour of tardiness; the other at least an hour of half a node.

    With a plan at 4 known, the first has 3.5 left: it may be an hour late, not two.
    """
    jobs = [job("late", 1, 2, due=HOUR, weight=2.0), job("other", 1, **between(0, 2))]
    starts = starts_of(jobs)
    assert least_cost(starts) == pytest.approx(1.5)
    assert slots_of(within_cutoff(starts, 4.0))["late"] == [[0, 1]]
    assert slots_of(within_cutoff(starts, 3.4999))["late"] == [[0]]
    assert slots_of(within_cutoff(starts, 3.5))["late"] == [[0, 1]], "at the cutoff itself a start is kept"


def test_a_rejection_counts_as_the_least_cost() -> None:
    jobs = [job("cheap", 1, 2, reject_cost=0.25), job("other", 1, 2)]
    starts = starts_of(jobs)
    assert least_cost(starts) == pytest.approx(1.25)
    assert slots_of(within_cutoff(starts, 1.9))["cheap"] == []
    assert slots_of(within_cutoff(starts, 2.0))["cheap"] == [[0, 1, 2, 3, 4]]


def test_node_share_is_the_part_of_the_nodes_over_the_run() -> None:
    prices = [1.0, 2.0, 4.0, 8.0, 16.0]
    starts = starts_of([job("half", 2, 1), job("gang", 2, 3)], price=prices, nodes=2)
    half, gang = (node_share(starts, row) for row in starts.rows)
    np.testing.assert_allclose(half, [1.5, 3.0, 6.0, 12.0])
    np.testing.assert_allclose(gang, [6.0, 12.0, 24.0, 48.0])


def test_nothing_is_cut_where_a_job_has_no_start() -> None:
    starts = starts_of([job("impossible", 6), job("other", 1)])
    assert within_cutoff(starts, 0.0) is starts
