"""Rules on what a plan is made for: its budget, and its welfare where that is the objective."""

from __future__ import annotations

from collections.abc import Iterator

from models.check.facts import Facts
from models.check.money import utility_part
from models.check.report import (
    GAP_ABSOLUTE,
    MONEY_ABSOLUTE,
    MONEY_RELATIVE,
    OPTIMAL_GAP,
    SLOT_ROUNDING,
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
    true, bound = total(earned(facts)), plan.welfare_bound
    if plan.welfare is None or money_differs(plan.welfare, true):
        yield violation("welfare-claim", "plan", f"claims a welfare of {plan.welfare} where it is {true:.10g}", true)
    if bound is not None and is_above(true, bound, MONEY_RELATIVE):
        message = f"its bound on welfare {bound:.10g} is below its welfare {true:.10g}"
        yield violation("welfare-above-bound", "plan", message, true - bound)
    gap = None if bound is None else max(0.0, bound - true) / bound if bound > 0 else 0.0
    if (plan.gap is None) != (gap is None) or (gap is not None and not abs((plan.gap or 0.0) - gap) <= GAP_ABSOLUTE):
        yield violation(
            "gap-claim", "plan", f"claims a gap of {plan.gap} where welfare and bound make it {gap}", plan.gap
        )
    if plan.status == "optimal" and not (gap is not None and gap <= OPTIMAL_GAP + GAP_ABSOLUTE):
        yield violation("not-optimal", "plan", "is called optimal, but its welfare is well below its bound", gap)


def earned(facts: Facts) -> Iterator[float]:
    """What each completed job is worth at its completion."""
    slot = facts.instance.slot
    for use in facts.uses:
        if use.job.utility is not None:
            yield use.job.utility.worth * utility_part(use.job.utility, use.job.release, use.end, slot)
        else:
            yield next((step.value for step in use.job.value if use.end <= step.by / slot + SLOT_ROUNDING), 0.0)
