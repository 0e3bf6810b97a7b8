"""Rules on what a plan is made for: its budget, and its welfare where that is the objective."""

from __future__ import annotations

from collections.abc import Iterator

from models.check.facts import Facts
from models.check.money import earned, gap_is_true
from models.check.report import (
    GAP_ABSOLUTE,
    MONEY_ABSOLUTE,
    MONEY_RELATIVE,
    OPTIMAL_GAP,
    Violation,
    is_above,
    money_differs,
    total,
    violation,
)
from models.domain.plan import SERVICE_TERMS


def the_budget_is_kept(facts: Facts) -> Iterator[Violation]:
    """What is spent, all cost terms but tardiness, lost value and rejection, is no more than the budget."""
    budget = facts.plan.budget
    if budget is None:
        return
    spent = total(amount for term, amount in facts.costs.items() if term not in SERVICE_TERMS)
    if not spent <= budget + MONEY_ABSOLUTE + MONEY_RELATIVE * abs(budget):
        message = f"spends {spent:.10g} of a budget of {budget:.10g} {facts.instance.currency}"
        yield violation("over-budget", "plan", message, spent - budget)


def the_welfare_is_as_claimed(facts: Facts) -> Iterator[Violation]:
    """The sum of what completed jobs are worth; no more than its bound; the gap is (bound - welfare) / bound."""
    plan = facts.plan
    if plan.objective != "welfare":
        if plan.welfare is not None or plan.welfare_bound is not None:
            yield violation("welfare-claim", "plan", "claims a welfare where the objective is the cost", plan.welfare)
        return
    true, bound = total(earned(facts, course) for course in facts.courses), plan.welfare_bound
    if plan.welfare is None or money_differs(plan.welfare, true):
        yield violation("welfare-claim", "plan", f"claims a welfare of {plan.welfare} where it is {true:.10g}", true)
    if bound is not None and is_above(true, bound, MONEY_RELATIVE):
        message = f"its bound on welfare {bound:.10g} is below its welfare {true:.10g}"
        yield violation("welfare-above-bound", "plan", message, true - bound)
    yield from gap_is_true(bound, true, plan.gap, "welfare and bound")
    if plan.status != "optimal":
        return
    if bound is None:
        yield violation("optimal-without-bound", "plan", "is called optimal, but has no bound on welfare")
    elif not bound - true <= (OPTIMAL_GAP + GAP_ABSOLUTE) * bound:
        message = f"is called optimal, but its welfare {true:.10g} is well below its bound {bound:.10g}"
        yield violation("not-optimal", "plan", message, bound - true)
