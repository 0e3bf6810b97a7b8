"""Instances at the edges, where a bound or a search likes to divide by nothing or to wait for ever."""

from __future__ import annotations

from typing import Any

import pytest

from models.check import check
from planner.engines.base import Limits
from planner.solve import solve
from tests.engines.samples import HOUR, TO_THE_END, Doc, instance_of, mode
from tests.oracle import optimum

TWO: Doc = {"modes": [mode(1, 2)], "due": 3 * HOUR, "weight": 1.0}

CASES: dict[str, tuple[list[Doc], dict[str, Any]]] = {
    "one job": ([TWO], {}),
    "all identical": ([TWO] * 6, {}),
    "all due at once": ([TWO | {"due": 2 * HOUR, "modes": [mode(g, 2)]} for g in (1, 1, 2, 2)], {}),
    "no node is free of charge": ([TWO] * 2, {"pools__0__price": 0.0}),
    "capacity zero for hours": ([TWO] * 2, {"pools__0__unavailable": [{"since": 0.0, "until": 2 * HOUR}]}),
    "nothing must run": ([TWO | {"reject_cost": 0.0}] * 3, {}),
    "already late": ([TWO | {"due": 0.0}] * 3, {}),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("engine", ["fast", "auto"])
def test_the_edges(case: str, engine: str) -> None:
    jobs, changes = CASES[case]
    instance = instance_of(jobs, **changes)
    best = optimum(instance)
    assert best is not None
    plan = solve(instance, engine, TO_THE_END).plan
    assert check(instance, plan).violations == ()
    assert plan.dual_bound is not None
    assert plan.dual_bound <= best + 1e-6
    assert best <= plan.cost + 1e-6
    assert plan.cost == pytest.approx(best, rel=1e-4, abs=1e-6)


def test_a_work_limit_of_nothing_still_gives_a_plan() -> None:
    plan = solve(instance_of([TWO] * 3), "fast", Limits(time_limit_s=None, work=0)).plan
    assert {run.job for run in plan.runs} == {"j0", "j1", "j2"}
