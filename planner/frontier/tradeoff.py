"""What is known of an instance under budgets: plans as points (spent, service), and lines below which no plan lies.

Each solve at a price p (`models.goal`) adds plans, and a line p spent + service >= D(p). From points and lines together
follow, for every budget at once, the best plan known that keeps to it and a bound on what any plan that keeps to it can
do.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from models.domain import Plan
from models.goal import Goal, Objective

NOTHING = 1e-9
"""Part of all welfare below which an amount is rounding alone."""


@dataclass(frozen=True, eq=False)
class Point:
    """A plan by what it spends and what service loses; the plan itself is made when it is asked for."""

    spent: float
    service: float
    make: Callable[[], Plan]

    def at(self, price: float) -> float:
        """What it comes to with what is spent at a price."""
        return price * self.spent + self.service

    @cached_property
    def plan(self) -> Plan:
        """The plan, at the instance's own prices."""
        return self.make()


@dataclass(eq=False)
class Tradeoff:
    """The points and lines that were found under an objective."""

    objective: Objective
    most_welfare: float
    points: list[Point] = field(default_factory=list)
    """No one of them spends no more, and loses no more, than another."""
    lines: list[tuple[float, float]] = field(default_factory=list)
    """(p, D): p spent + service >= D for every plan."""
    exact_bounds: dict[float, float] = field(default_factory=dict)
    """By budget: what no plan that keeps to it is below, from the whole model."""
    least_spent: float | None = None
    """A bound on what any plan spends, where it was looked for."""

    @property
    def base(self) -> float:
        """The price at which the objective itself counts what is spent."""
        return 1.0 if self.objective == "cost" else 0.0

    def add(self, point: Point) -> None:
        """Take a point, unless one that is known is as good in both."""
        if any(known.spent <= point.spent and known.service <= point.service for known in self.points):
            return
        kept = (known for known in self.points if known.spent < point.spent or known.service < point.service)
        self.points = [*kept, point]

    def value(self, point: Point) -> float:
        """What is minimised: spent + service, or service alone."""
        return point.at(self.base)

    def told(self, amount: float) -> float:
        """An amount of what is minimised as people count it: cost, or welfare."""
        if self.objective == "cost":
            return amount
        welfare = self.most_welfare - amount
        return welfare if abs(welfare) > NOTHING * self.most_welfare else 0.0

    def keeps_to(self, budget: float | None, point: Point) -> bool:
        """Whether a plan spends no more than a budget."""
        return Goal(self.objective, budget).allows(point.spent)

    def best(self, budget: float | None) -> Point | None:
        """The best plan known that keeps to a budget."""
        kept = [point for point in self.points if self.keeps_to(budget, point)]
        return min(kept, key=lambda point: (self.value(point), point.spent), default=None)

    def next_dearer(self, budget: float) -> Point | None:
        """The plan known that exceeds a budget by the least."""
        exceeding = (point for point in self.points if not self.keeps_to(budget, point))
        return min(exceeding, key=lambda point: point.spent, default=None)

    def bound(self, budget: float | None) -> float | None:
        """What no plan that keeps to a budget is below; None where nothing is known."""
        bounds = [
            line - ((price - self.base) * budget if price > self.base and budget is not None else 0.0)
            for price, line in self.lines
            if price == self.base or (price > self.base and budget is not None)
        ]
        if budget is not None:
            bounds += [value for least, value in self.exact_bounds.items() if least >= budget]
        return max(bounds, default=None)

    def price(self, budget: float) -> float | None:
        """The price that proves most of a budget; None where no line does."""
        lines = [(price, line) for price, line in self.lines if price > self.base]
        return max(lines, key=lambda each: each[1] - each[0] * budget, default=(None, 0.0))[0]

    def gap(self, budget: float | None) -> float:
        """What is not proven: of the best plan's cost, or of the bound on welfare. Infinite without plan or bound."""
        best, bound = self.best(budget), self.bound(budget)
        if best is None or bound is None:
            return math.inf
        lost = max(0.0, self.value(best) - bound)
        whole = self.value(best) if self.objective == "cost" else self.told(bound)
        return lost / whole if whole > 0 else 0.0

    def rows(self, budgets: Sequence[float]) -> list[Row]:
        """Every budget's best plan with its proof; plans of one serve all that are larger."""
        return [self._row(budget) for budget in budgets]

    def _row(self, budget: float) -> Row:
        best, bound, gap = self.best(budget), self.bound(budget), self.gap(budget)
        if best is None:
            least, shown = self.least_spent, None if bound is None else self.told(bound)
            return Row(budget, None, None, None, None, shown, None, least is not None and least > budget)
        value = self.value(best)
        shown = None if bound is None else self.told(min(bound, value))
        late = math.fsum(run.tardiness_h for run in best.plan.runs)
        known = None if math.isinf(gap) else gap
        return Row(budget, best.spent, late, len(best.plan.rejected), self.told(value), shown, known)


@dataclass(frozen=True)
class Row:
    """What is known of one budget. Money; None where it is not known."""

    budget: float
    spent: float | None
    tardiness_h: float | None
    rejected: int | None
    value: float | None
    """Total cost, or welfare."""
    bound: float | None
    """What no plan within the budget costs less, or is worth more, than."""
    gap: float | None
    is_infeasible: bool = False
