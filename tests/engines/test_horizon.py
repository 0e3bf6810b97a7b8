"""The open horizon: long enough for every job, and a function of the instance alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from models.domain import Instance
from models.errors import InvalidInput
from models.starts import all_starts
from planner.engines.policies.listing import ORDERS, list_schedule
from planner.horizon import num_slots_of
from planner.solve import solve
from tests.engines.samples import HOUR, TO_THE_END, Doc, cheapest, instance_of, mode, running
from tests.random_instances import random_instance


def opened(family: str, seed: int) -> Instance:
    """A random instance with an open horizon and nothing that the horizon could forbid."""
    document = random_instance(family, np.random.default_rng(seed)).model_dump(mode="json", exclude_defaults=True)
    document["horizon"] = "auto"
    for site in document["sites"]:
        site.setdefault("storage", {}).update(billed=6 * HOUR, bandwidth_cap=1000.0)
        site["storage"].pop("points", None)
    for link in document.get("network", ()):
        link.pop("bandwidth", None)
    for job in document["jobs"]:
        job.pop("deadline", None)
        job.pop("reject_cost", None)
    return Instance.model_validate(document)


@pytest.mark.parametrize("family", ["compute", "mixed", "contended"])
def test_every_job_finishes(family: str) -> None:
    for seed in range(15):
        instance = opened(family, seed)
        plan = solve(instance, "auto", TO_THE_END).plan
        assert len(plan.runs) == len(instance.jobs), (family, seed)
        assert plan.num_slots == num_slots_of(instance)


@pytest.mark.parametrize("family", ["compute", "mixed", "contended"])
def test_it_is_a_function_of_the_instance(family: str) -> None:
    for seed in range(15):
        instance, same = opened(family, seed), opened(family, seed)
        assert num_slots_of(instance) == num_slots_of(same)
        renamed = instance.model_copy(update={"name": "other"})
        assert num_slots_of(renamed) == num_slots_of(instance)


def test_a_stated_horizon_is_kept() -> None:
    assert num_slots_of(instance_of([])) == 6
    assert num_slots_of(instance_of([{"modes": [mode(1)]}], slot=HOUR / 2)) == 12


def test_no_jobs_need_a_slot() -> None:
    assert num_slots_of(instance_of([], horizon="auto")) >= 1


def test_it_reaches_to_the_last_due_date() -> None:
    # A job of 2 h that is due in 30 h: it may wait for a low price until then.
    job: Doc = {"modes": [mode(2)], "due": 30 * HOUR, "weight": 100.0}
    night = {"default": 5.0, "windows": [{"since": "22:00", "until": "24:00", "price": 1.0}]}
    assert num_slots_of(instance_of([job], horizon="auto")) >= 30
    plan = cheapest([job], 2 * 1.0, horizon="auto", pools__0__price=night)
    assert plan.runs[0].segments[0].start_slot in (4, 28)


@pytest.mark.parametrize(
    "worth",
    [
        {"value": [{"by": 30 * HOUR, "value": 100.0}]},
        {"utility": {"shape": "step", "worth": 100.0, "by": 30 * HOUR}},
        {"utility": {"shape": "linear", "worth": 100.0, "full_until": 30 * HOUR, "zero_at": 31 * HOUR}},
        {"utility": {"shape": "linear", "worth": 0.5, "full_until": 0.0, "zero_at": 30 * HOUR}},
        {"utility": {"shape": "sigmoid", "worth": 100.0, "midpoint": 30 * HOUR, "scale": 1.0}},
        {"utility": {"shape": "finish_time_fairness", "worth": 100.0, "fair_time": 30 * HOUR}},
    ],
)
def test_it_reaches_to_where_a_worth_falls(worth: Doc) -> None:
    # A job of 2 h may wait for the low price from 22 h to 24 h, long after a list would have run it.
    price = {"pools__0__price": {"default": 5.0, "windows": [{"since": "16:00", "until": "18:00", "price": 1.0}]}}
    instance = instance_of([{"modes": [mode(2)]} | worth], horizon="auto", **price)
    assert num_slots_of(instance) >= 30
    plan = solve(instance, "exact", TO_THE_END).plan
    assert plan.runs[0].segments[0].start_slot == 22


READER: Doc = {"dataset": "data", "speed_levels": [1.0, 0.1]}


@pytest.mark.parametrize(
    ("job", "cost", "changes"),
    [
        # Three jobs in turn on one node.
        ({"modes": [mode(20, 2)]}, 20.0, {}),
        # The node is away from 8 h to 20 h, so 9 h begin at 20 h.
        ({"modes": [mode(9)]}, 9.0, {"pools__0__unavailable": [{"since": 8 * HOUR, "until": 20 * HOUR}]}),
        ({"modes": [mode(2)], "release": 100 * HOUR}, 2.0, {}),
        # It boots for 12 h.
        ({"modes": [mode(2)]}, 14.0, {"pools__0__boot_time": 12 * HOUR}),
        # Only throttled to a tenth does it fit the bandwidth: 20 h.
        (
            READER | {"modes": [mode(2, read_rate=100.0)]},
            20.0,
            {"sites__0__storage": {"bandwidth_cap": 15.0, "billed": HOUR}},
        ),
        # Or the link: 20 h at 4, and 720 GB at 0.01.
        (READER | {"modes": [mode(2, 1, "rent", read_rate=100.0)]}, 80.0 + 7.2, {"network__0__bandwidth": 15.0}),
        # It stays in its slow mode, though it has a fast one.
        ({"modes": [mode(1), mode(10, 2)], "running": running("own2", {0: [0, 1]})}, 10.0, {}),
    ],
)
def test_a_job_that_takes_long_finishes(job: Doc, cost: float, changes: dict[str, Any]) -> None:
    assert len(cheapest([job], cost, horizon="auto", **changes).runs) == 1


def test_many_jobs_in_turn() -> None:
    plan = cheapest([{"modes": [mode(20, 2)]}] * 3, 60.0, horizon="auto")
    assert plan.num_slots >= 60


def test_a_list_finds_room_in_it() -> None:
    for seed in range(15):
        instance = opened("contended", seed)
        starts = all_starts(instance, num_slots_of(instance))
        assert list_schedule(starts, ORDERS["due"]) is not None


def test_more_slots_than_can_be_planned_are_a_fault_and_not_a_proof() -> None:
    """A slot of a second and jobs of days: the mend is a longer slot, not a verdict of infeasible."""
    instance = instance_of([{"modes": [mode(30)]}, {"modes": [mode(30)]}], horizon="auto", slot=1.0)
    with pytest.raises(InvalidInput, match="lengthen slot"):
        num_slots_of(instance)


def test_a_mistyped_year_does_not_lengthen_the_plan_by_it() -> None:
    """Due dates count for a week beyond the list schedule at most."""
    instance = instance_of([{"modes": [mode(2)], "due": 4 * 365 * 86400.0, "weight": 1.0}], horizon="auto")
    assert num_slots_of(instance) <= 7 * 86400 / instance.slot + 10
