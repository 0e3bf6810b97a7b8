"""With an index for every node the model has the optimum of plans on nodes, as the oracle proves it."""

from __future__ import annotations

import random

import pytest

from models.domain import Instance
from models.starts import all_starts
from planner.horizon import num_slots_of
from tests.brute_elastic import elastic_optimum
from tests.formulation.cases import CASES, HOUR, OPTIMA, between, instance_of, job
from tests.formulation.solving import assert_at_most, assert_same, every_pool, value
from tests.oracle import optimum
from tests.oracle_reading import chord_error
from tests.random_instances import FAMILIES, random_instance


def indexed(instance: Instance) -> float | None:
    """Optimum of the model with indices for all nodes."""
    starts = all_starts(instance, num_slots_of(instance))
    return value(starts, every_pool(starts))


def assert_agreed(instance: Instance) -> None:
    """The optimum is the oracle's, but for what the chords of power laws miss."""
    found, best = indexed(instance), optimum(instance)
    assert_at_most(found, best)
    assert_at_most(best, None if found is None else found + chord_error(instance))


@pytest.mark.parametrize("name", CASES)
def test_the_oracle_agrees_on_the_cases(name: str) -> None:
    instance = CASES[name].instance
    is_elastic = any(job.elastic is not None for job in instance.jobs)
    assert_same(elastic_optimum(instance) if is_elastic else optimum(instance), OPTIMA[name])
    assert_same(indexed(CASES[name].instance), OPTIMA[name])


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("family", FAMILIES)
def test_the_oracle_agrees(family: str, seed: int) -> None:
    assert_agreed(random_instance(family, random.Random(400 + seed), "tiny"))


@pytest.mark.slow
@pytest.mark.parametrize("block", range(10))
@pytest.mark.parametrize("family", FAMILIES)
def test_the_oracle_agrees_on_many(family: str, block: int) -> None:
    for seed in range(4000 + 30 * block, 4030 + 30 * block):
        assert_agreed(random_instance(family, random.Random(seed), "tiny"))


def phases() -> Instance:
    """Blocks of three hours; slot 9 is dear. The first job runs in slot 0, the second from 4 to 8. In slot 3 the node
    is unavailable, so it is on anew from slot 4, and pays for slots 4 to 9."""
    pool = {
        "gpus_per_node": 1, "nodes": 1, "price": [0.0] * 9 + [100.0], "billing_increment": 3 * HOUR,
        "unavailable": [{"since": 3 * HOUR, "until": 4 * HOUR}],
    }  # fmt: skip
    jobs = [job("first", 1, **between(0, 1)), job("second", 4, **between(4, 8))]
    return instance_of("phases", 10, [pool], jobs)


def test_blocks_in_an_old_phase_never_raise_the_bound() -> None:
    assert optimum(phases()) == pytest.approx(100.0)
    assert_at_most(indexed(phases()), 100.0)


def test_blocks_in_an_old_phase_are_no_plan() -> None:
    assert_same(indexed(phases()), optimum(phases()))
