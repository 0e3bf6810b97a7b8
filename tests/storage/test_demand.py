"""From an instance to caching problems: modes by rule or from a plan, readers by site and dataset."""

from __future__ import annotations

import math

import pytest

from models.domain import Instance
from models.errors import InvalidInput
from models.storage.demand import demands
from planner.modes import modes_by, modes_in, run_cost
from planner.solve import solve
from tests.documents import HOUR
from tests.report.samples import sample_plan

READER = {
    "dataset": "images",
    "modes": [
        {"pool": "owned", "gpus": 1, "duration": 4 * HOUR, "read_rate": 50.0},
        {"pool": "owned", "gpus": 2, "duration": 3 * HOUR, "read_rate": 70.0},
        {"pool": "rented", "gpus": 4, "duration": 1 * HOUR, "read_rate": 200.0},
    ],
}


def instance() -> Instance:
    """Two readers of one dataset, one of another, one that reads nothing; nodes of four GPUs here and there."""
    other = {"dataset": "texts", "modes": [{"pool": "owned", "gpus": 1, "duration": HOUR, "read_rate": 5.0}]}
    mute = {"modes": [{"pool": "owned", "gpus": 1, "duration": HOUR}]}
    jobs = [READER, READER | {"speed_levels": [1.0, 0.5]}, other, mute]
    return Instance.model_validate(
        {
            "currency": "USD",
            "start": "2026-01-12T18:00:00+00:00",
            "slot": HOUR,
            "horizon": 12 * HOUR,
            "sites": [
                {
                    "id": "here",
                    "kind": "on_prem",
                    "storage": {
                        "tariff": [{"per_mb_s": 0.01}],
                        "cache_capacity": 150.0,
                        "cache_price": 0.001,
                        "bandwidth_cap": 400.0,
                    },
                },
                {"id": "there", "kind": "cloud"},
            ],
            "pools": [
                {"id": "owned", "site": "here", "gpu": "A", "gpus_per_node": 4, "nodes": 2, "price": 4.0},
                {"id": "rented", "site": "there", "gpu": "B", "gpus_per_node": 4, "nodes": 2, "price": 20.0},
            ],
            "datasets": [
                {"id": "texts", "size": 10.0, "home": "here"},
                {"id": "images", "size": 100.0, "home": "here"},
            ],
            "network": [{"source": "here", "target": "there"}],
            "jobs": [{"id": f"job{k}", **job} for k, job in enumerate(jobs)],
        }
    )


@pytest.mark.parametrize(
    ("rule", "gpus"), [("cheapest", [1, 1, 1, 1]), ("fastest", [4, 4, 1, 1]), ("smallest", [1, 1, 1, 1])]
)
def test_modes_by_rule(rule: str, gpus: list[int]) -> None:
    """One GPU for four hours costs 4, two for three 6, four rented for one 20."""
    modes = modes_by(instance(), rule)  # type: ignore[arg-type]
    assert [mode.gpus if mode else None for mode in modes] == gpus
    assert all(mode is not None and mode.speed == 1.0 for mode in modes)


def test_what_a_run_costs_alone() -> None:
    problem = instance()
    mode = modes_by(problem, "fastest")[0]
    assert mode is not None
    assert run_cost(problem, mode) == pytest.approx(20.0)


def test_readers_are_gathered_by_site_and_dataset() -> None:
    problem = instance()
    (here,) = demands(problem, modes_by(problem, "cheapest"))
    assert (here.site, here.datasets) == ("here", ("texts", "images"))
    assert here.readers == (("job2",), ("job0", "job1"))
    assert here.problem.readers == ((5.0,), (50.0, 50.0))
    assert list(here.problem.sizes) == [10.0, 100.0]
    assert (here.problem.cache_capacity, here.problem.cache_price, here.problem.tariff.cap) == (150.0, 0.001, 400.0)
    assert math.isinf(here.problem.cache_speed)
    assert [d.site for d in demands(problem, modes_by(problem, "fastest"))] == ["here", "there"]


def test_modes_of_a_plan_at_full_speed() -> None:
    problem = instance()
    plan = solve(problem).plan
    modes = modes_in(problem, plan)
    chosen = {run.job: run.segments[0] for run in plan.runs}
    assert [mode.name if mode else None for mode in modes] == [chosen[job.id].mode for job in problem.jobs]
    assert all(mode is None or mode.speed == 1.0 for mode in modes)


def test_a_plan_of_another_instance_is_refused() -> None:
    problem = instance()
    plan = sample_plan(problem).model_copy(update={"instance_hash": "0" * 64})
    with pytest.raises(InvalidInput, match="another instance"):
        modes_in(problem, plan)
