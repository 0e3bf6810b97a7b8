"""The oracle is right: against enumeration, and against the program's own readings of the page."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from models import grid
from models.check import check
from models.domain.modes import modes_of
from models.storage.tariff import tariff_of
from tests import oracle_reading as reading
from tests.brute import brute_optimum, num_schedules
from tests.oracle import optimal_plan, optimum
from tests.random_instances import FAMILIES, random_instance


def agree(one: float | None, other: float | None) -> bool:
    """Whether two optima are the same, or both say that there is none."""
    if one is None or other is None:
        return one is other
    return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-7)


# --- random instances ------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
def test_the_same_seed_gives_the_same_instance(family: str) -> None:
    first = [random_instance(family, random.Random(seed)).content_hash for seed in range(20)]
    assert first == [random_instance(family, random.Random(seed)).content_hash for seed in range(20)]
    assert len(set(first)) == 20


def test_a_numpy_generator_serves_as_well() -> None:
    first = random_instance("mixed", np.random.default_rng(5))
    assert first.content_hash == random_instance("mixed", np.random.default_rng(5)).content_hash


def test_a_generator_goes_on_to_other_instances() -> None:
    rng = random.Random(1)
    assert len({random_instance("odd", rng).content_hash for _ in range(20)}) == 20


def test_an_unknown_family_is_refused() -> None:
    with pytest.raises(ValueError, match="none of compute, mixed, contended, odd, storage"):
        random_instance("even", random.Random(0))


@pytest.mark.parametrize("family", FAMILIES)
def test_few_instances_are_infeasible(family: str) -> None:
    optima = [optimum(random_instance(family, random.Random(seed))) for seed in range(25)]
    assert optima.count(None) <= 2


# --- against enumeration ---------------------------------------------------------------------------------

MOST_SCHEDULES = 3_000_000
"""More than these take enumeration too long."""


@pytest.mark.parametrize("seed", range(15))
@pytest.mark.parametrize("family", FAMILIES)
def test_the_oracle_equals_enumeration(family: str, seed: int) -> None:
    instance = random_instance(family, random.Random(seed), "tiny")
    assert agree(optimum(instance), brute_optimum(instance))


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_the_oracle_equals_enumeration_on_many(family: str) -> None:
    for seed in range(15, 300):
        instance = random_instance(family, random.Random(seed), "tiny")
        if num_schedules(instance) <= MOST_SCHEDULES:
            assert agree(optimum(instance), brute_optimum(instance)), (family, seed)


# --- against the program's own readings of the same page -------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
def test_the_optimal_plan_passes_the_checker(family: str) -> None:
    for seed in range(25):
        instance = random_instance(family, random.Random(seed))
        plan = optimal_plan(instance)
        if plan is not None:
            assert check(instance, plan).violations == (), (family, seed)


def near(*values: float) -> tuple[float, ...]:
    """Values without the rounding errors of how they were computed."""
    return tuple(round(value, 6) for value in values)


@pytest.mark.parametrize("family", FAMILIES)
def test_modes_are_read_alike(family: str) -> None:
    for seed in range(100):
        instance = random_instance(family, random.Random(seed))
        for job in instance.jobs:
            if job.running is not None and not job.running.movable:
                continue
            modes = {
                (
                    m.name,
                    m.pool,
                    m.speed,
                    m.duration,
                    m.num_nodes,
                    m.busy_gpus,
                    *near(m.read_rate_mb_s, m.volume_gb),
                )
                for m in modes_of(instance, job)
                if job.spot or instance.pools[m.pool].market != "spot"
            }
            ways = {
                (w.entry, w.pool, w.speed, w.slots, w.num_nodes, w.busy_gpus, *near(w.rate_mb_s, w.volume_gb))
                for w in reading.ways(instance, job)
                if not w.is_kept
            }
            assert modes == ways, (family, seed, job.id)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_grid_is_read_alike(family: str) -> None:
    for seed in range(100):
        instance = random_instance(family, random.Random(seed))
        slots = reading.num_slots(instance)
        for pool in instance.pools:
            assert grid.boot_slots(instance, pool) == reading.boot_slots(instance, pool)
            assert grid.block_slots(instance, pool) == reading.block_slots(instance, pool)
            prices = grid.node_prices(instance, pool, slots) / instance.slot_h
            ours = [reading.price_in_slot(instance, pool.price, t) for t in range(len(prices))]
            assert prices == pytest.approx(ours)
            free = grid.available(instance, pool, slots)
            on = grid.on_at_start(instance, pool)
            for node in range(pool.nodes):
                ours_free = [reading.is_available(instance, pool, node, t) for t in range(slots)]
                assert list(free[node]) == ours_free
                assert on[node] == reading.needs_no_boot(instance, pool, node)
        for site in instance.sites:
            for mb_s in (0.0, 1.0, 48.0, 150.0, 400.0):
                if mb_s <= (reading.bandwidth_cap(site) or math.inf):
                    price = float(tariff_of(site.storage).price(mb_s))
                    assert price == pytest.approx(reading.tariff_price(site, mb_s))
