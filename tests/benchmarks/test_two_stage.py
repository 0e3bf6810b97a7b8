"""Two stages: what was bought first is all there is, nothing is paid twice, and what is forced is what was said."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.sets import Case
from benchmarks.two_stage import Bought, storage_first, table
from models.domain import Instance, Plan
from models.errors import Infeasible
from models.storage.demand import demands
from planner.engines.base import Limits
from planner.modes import modes_in
from planner.solve import solve
from tests.random_instances import random_instance

EXACTLY = Limits(time_limit_s=20.0, gap=0.0)


def as_bought(instance: Instance, plan: Plan) -> Bought:
    """What a plan caches and buys, as if it had been decided first."""
    cached = {(entry.site, entry.dataset): entry.fraction for entry in plan.cached}
    bandwidth = {entry.site: entry.mb_s for entry in plan.bandwidth}
    bought: Bought = {}
    for demand in demands(instance, modes_in(instance, plan)):
        made = demand.problem.allocation(np.array([cached.get((demand.site, d), 0.0) for d in demand.datasets]))
        mb_s = bandwidth.get(demand.site, 0.0)
        price = float(demand.problem.tariff.price(mb_s))
        bought[demand.site] = demand, replace(made, bandwidth_mb_s=mb_s, bandwidth_cost=price)
    return bought


@pytest.mark.parametrize("is_open", [False, True])
def test_with_what_the_joint_plan_buys_it_costs_as_much(is_open: bool) -> None:
    """The joint plan is left, and whatever else is left is a joint plan too."""
    number = cached = 0
    for seed in range(14):
        instance = random_instance("mixed", np.random.default_rng(seed), "tiny")
        try:
            joint = solve(instance, "auto", EXACTLY).plan
        except Infeasible:
            continue
        number, cached = number + 1, cached + bool(joint.cached)
        cost = storage_first(instance, as_bought(instance, joint), EXACTLY, is_open=is_open)
        assert cost == pytest.approx(joint.cost, rel=1e-6, abs=1e-6), seed
    assert number >= 8
    assert cached >= 3


def test_the_table() -> None:
    lines = list(table([Case("mixed", 6, 12, 0.5, True, 1)], Limits(time_limit_s=1.0)))
    rows = [line.split(" | ") for line in lines[2:]]
    assert [row[2] for row in rows] == ["schedule first", "storage first", "storage first, open caches"]
    assert all(row[3] == "1" for row in rows)
