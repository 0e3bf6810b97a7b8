"""The checker on budgets and welfare: plans as they are made pass, and every claim that is changed is caught."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from models.check import check
from models.domain import Plan
from models.goal import Goal, spent_of
from planner.engines.base import Limits
from planner.frontier.budget import solve_for
from tests.test_frontier import two_jobs

INSTANCE = two_jobs()
FALSE_CLAIMS: tuple[tuple[dict[str, Any], str], ...] = (
    ({"budget": 0.5}, "over-budget"),
    ({"welfare": 16.0}, "welfare-claim"),
    ({"welfare": None}, "welfare-claim"),
    ({"welfare": float("nan")}, "welfare-claim"),
    ({"welfare_bound": 16.0, "gap": 0.0}, "welfare-above-bound"),
    ({"welfare_bound": 20.0}, "gap-claim"),
    ({"welfare_bound": None}, "gap-claim"),
    ({"welfare_bound": 20.0, "gap": 3 / 20, "status": "optimal"}, "not-optimal"),
    ({"gap": 0.5}, "gap-claim"),
    ({"gap": None}, "gap-claim"),
    ({"objective": "cost"}, "welfare-claim"),
)
"""Of a plan for welfare."""


@cache
def plan_for(objective: Any, budget: float | None) -> Plan:
    """A plan under a goal."""
    return solve_for(INSTANCE, Goal(objective, budget), "auto", Limits(time_limit_s=None, work=100)).plan


def kinds(plan: Plan, **changes: Any) -> set[str]:
    """Kinds of violations of a plan with other claims."""
    return {violation.kind for violation in check(INSTANCE, plan.model_copy(update=changes)).violations}


def test_plans_as_made_pass() -> None:
    assert kinds(plan_for("cost", 6.0)) == set()
    plan = plan_for("welfare", 6.0)
    assert kinds(plan) == set()
    assert plan.welfare == pytest.approx(17.0)
    assert spent_of(plan.costs) <= 6.0


@pytest.mark.parametrize(("changes", "kind"), FALSE_CLAIMS)
def test_every_false_claim_of_welfare_is_caught(changes: dict[str, Any], kind: str) -> None:
    assert kind in kinds(plan_for("welfare", 6.0), **changes)


def test_false_claims_of_a_plan_within_a_budget_are_caught() -> None:
    plan = plan_for("cost", 6.0)
    assert kinds(plan, budget=spent_of(plan.costs) - 0.01) == {"over-budget"}
    assert "welfare-claim" in kinds(plan, welfare=1.0)
    assert "bound-above-cost" in kinds(plan, dual_bound=plan.cost + 1)


def test_what_is_lost_in_service_is_not_spent() -> None:
    """A late plan may cost more than its budget."""
    late = plan_for("cost", 2.5)
    assert late.cost > 2.5
    assert kinds(late) == set()
