"""Generated instances: the load is met, a seed gives the same bytes, families have what they promise."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from models.domain.modes import modes_of, slots_of
from models.errors import InvalidInput
from planner.generate import FAMILIES, SLOT_S, WINDOW_S, generate, load_of

NAMES = sorted(FAMILIES)


@pytest.mark.parametrize("family", NAMES)
@pytest.mark.parametrize(("jobs", "nodes", "load"), [(50, 300, 0.05), (60, 40, 0.8), (200, 100, 1.0), (8, 3, 0.4)])
def test_the_load_is_met(family: str, jobs: int, nodes: int, load: float) -> None:
    instance = generate(family, jobs, nodes, load, seed=3)
    assert load_of(instance) == pytest.approx(load, rel=0.02)
    assert len(instance.jobs) == jobs
    assert sum(pool.nodes for pool in instance.pools if pool.site == "on-prem") == nodes


@pytest.mark.parametrize("family", NAMES)
def test_the_same_seed_gives_the_same_bytes(family: str) -> None:
    one, two = (generate(family, 40, 30, 0.5, seed=11) for _ in range(2))
    assert one.model_dump_json() == two.model_dump_json()
    given = generate(family, 40, 30, 0.5, seed=np.random.default_rng(11))
    assert given.content_hash == one.content_hash
    assert generate(family, 40, 30, 0.5, seed=12).content_hash != one.content_hash


@pytest.mark.parametrize("family", NAMES)
@pytest.mark.parametrize("nodes", [1, 2, 3, 4, 5, 11, 12, 13])
@pytest.mark.parametrize("jobs", [0, 1, 2, 5])
def test_tiny_ones_are_valid(family: str, jobs: int, nodes: int) -> None:
    instance = generate(family, jobs, nodes, seed=jobs)
    assert len(instance.jobs) == jobs
    assert sum(pool.nodes for pool in instance.pools if pool.site == "on-prem") == nodes


@pytest.mark.parametrize("family", NAMES)
def test_times_lie_in_the_window_and_due_dates_are_tight(family: str) -> None:
    instance = generate(family, 200, 100, seed=5)
    assert min(job.release for job in instance.jobs) == 0
    factors = []
    for job in instance.jobs:
        assert job.due is not None
        assert 0 <= job.release < job.due <= WINDOW_S
        fastest = min(mode.duration_s for mode in modes_of(instance, job) if mode.speed == 1.0)
        # Durations and due dates are rounded to a second.
        factors.append((job.due - job.release) / fastest)
        # Alone, each can be on time.
        assert job.due >= job.release + SLOT_S * slots_of(fastest, SLOT_S)
    assert 1.5 - 0.01 < min(factors) < max(factors) < 5.0 + 0.01
    assert max(job.due for job in instance.jobs if job.due) == WINDOW_S


def test_mixed_has_everything() -> None:
    instance = generate("mixed", 300, 100, seed=1)
    modes = [mode for job in instance.jobs for mode in modes_of(instance, job)]
    kinds = {site.id: site.kind for site in instance.sites}
    assert sum(kinds[pool.site] == "on_prem" for pool in instance.pools) == 4
    assert sum(kinds[pool.site] == "cloud" for pool in instance.pools) == 3
    assert {mode.gpus for mode in modes} >= {0, 1, 2, 4, 8, 16, 32, 64}
    assert {mode.slices for mode in modes if mode.is_small} == {1, 2}
    assert any(mode.is_gang for mode in modes)
    assert {mode.speed for mode in modes} == {1.0, 0.75, 0.5}
    readers = [job.dataset for job in instance.jobs if job.dataset is not None]
    assert max(readers.count(dataset.id) for dataset in instance.datasets) > 3
    assert 0 < sum(bool(job.after) for job in instance.jobs) < 30
    hours = sorted(min(m.duration_s for m in modes_of(instance, job)) for job in instance.jobs)
    assert hours[-1] > 4 * hours[len(hours) // 2], "lengths are heavy-tailed"


@pytest.mark.parametrize("family", ["compute", "contended"])
def test_without_storage_nothing_is_read(family: str) -> None:
    instance = generate(family, 100, 40, seed=1)
    assert not instance.datasets
    assert not instance.network
    assert all(mode.read_rate_mb_s == 0 for job in instance.jobs for mode in modes_of(instance, job))


def test_more_gpus_and_newer_ones_are_not_always_faster() -> None:
    instance = generate("compute", 300, 100, seed=1)
    falls = newer_is_slower = False
    for job in instance.jobs:
        times = {(mode.gpu, mode.gpus): mode.duration for mode in job.modes if mode.gpus is not None}
        falls |= any(times.get((gpu, 2 * n), 0) > seconds for (gpu, n), seconds in times.items() if n)
        newer_is_slower |= times.get(("V100", 1), 0) > times.get(("P100", 1), 1e9)
    assert falls
    assert newer_is_slower


@pytest.mark.parametrize(
    ("family", "jobs", "nodes", "load", "part"),
    [
        ("mixde", 5, 5, None, "did you mean mixed?"),
        ("mixed", -1, 5, None, "--jobs"),
        ("mixed", 5, 0, None, "--nodes"),
        ("mixed", 5, 5, 0.0, "--load"),
        ("mixed", 5, 5, float("nan"), "--load"),
        ("mixed", 5, 500, 0.9, "out of reach"),
    ],
)
def test_arguments_that_make_no_sense(family: str, jobs: int, nodes: int, load: float | None, part: str) -> None:
    with pytest.raises(InvalidInput) as error:
        generate(family, jobs, nodes, load)
    assert part in str(error.value)


def test_it_does_not_import_pyomo() -> None:
    code = "import sys, planner.generate; sys.exit('pyomo' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
