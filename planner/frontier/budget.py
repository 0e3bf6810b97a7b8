"""The best plan within one budget: prices on it draw together, then the whole model.

Between a price at which the plan keeps to the budget and one at which it does not, the next is that at which both plans
are equally good. What gap then is left lies in a dent of the frontier that no price reaches: there a search goes among
plans within the budget, and then the whole model, with the budget as a row, where it is small enough.
"""

from __future__ import annotations

import itertools
import math
import time
from dataclasses import dataclass

from models.check.report import OPTIMAL_GAP
from models.domain import Instance, Plan
from models.errors import NoPlan
from models.goal import Goal
from planner.engines import clock, interrupts
from planner.engines.base import Limits, Progress, Solution
from planner.frontier.explorer import EXCHANGE_SHARE, Explorer
from planner.frontier.tradeoff import Point
from planner.solve import must_pass

STEP = 4.0
"""Factor between prices until the budget lies between two plans."""
MOST_STEPS = 12
NEAR = 0.02
"""Prices nearer to each other than this part are not told apart."""
FACTORS = (1.0, 0.3, 0.1)
"""Parts of the prices next to the budget by which the search within it goes, by turns."""
FIRST_MOVES, DOUBLINGS = 25, 4
"""Moves a job in the first of them; each has twice as many as the one before, so many times."""
EXCHANGES = 6
"""How many there are where no time limit ends them."""

End = tuple[float, Point]
"""A price, and the plan found at it."""


@dataclass(eq=False)
class BudgetSearch:
    """The search within one budget; None: as much as one likes."""

    explorer: Explorer
    budget: float | None

    def run(self) -> None:
        """Solve at prices, then exactly, until the best plan is proven or the time is over.

        Raises Infeasible where no plan keeps to the budget.
        """
        explorer, budget = self.explorer, self.budget
        explorer.budget = budget
        with interrupts.held():
            if budget is None:
                self._search_freely()
                return
            below, above = self._bracket(budget)
            first = (below, above)
            self._mend(budget, *first)
            below, above = self._draw_together(budget, below, above)
            self._mend(budget, *(end for end in (below, above) if end not in first))
            self._exchange(budget, [end[0] for end in (below, above) if end is not None])
            if explorer.goes_exact and not self._has_enough():
                explorer.search_exactly(budget, explorer.left_s())

    def _has_enough(self) -> bool:
        return self.explorer.is_over() or self.explorer.is_proven(self.budget)

    def _search_freely(self) -> None:
        """Only at the price of the objective itself is a line a bound without a budget."""
        self.explorer.explore_freely()
        if not self._has_enough():
            self.explorer.explore(self.explorer.known.base, seconds=self.explorer.left_s())

    def _bracket(self, budget: float) -> tuple[End | None, End | None]:
        """(price, plan) that keeps to the budget, and one at a lower price that does not; None where there is none."""
        explorer, base = self.explorer, self.explorer.known.base
        price = explorer.natural_price(budget)
        below: End | None = None
        above: End | None = None
        for _ in range(MOST_STEPS):
            point = None if explorer.is_over() else explorer.explore(price, glance=True)
            if point is None:
                break
            if explorer.known.keeps_to(budget, point):
                below = (price, point)
                if price <= base or above is not None or self._has_enough():
                    break
                price = max(price / STEP, base)
            else:
                above = (price, point)
                if below is not None:
                    break
                price = price * STEP
        if explorer.known.best(budget) is None and not explorer.is_over():
            self._look_for_the_cheapest(budget)
        return below, above

    def _look_for_the_cheapest(self, budget: float) -> None:
        """Find the plan that spends least; raise Infeasible where even that is proven to exceed the budget."""
        explorer = self.explorer
        cheapest = explorer.explore_spending()
        if cheapest is None or explorer.known.keeps_to(budget, cheapest):
            return
        least = explorer.known.least_spent
        if least is not None and not Goal(explorer.objective, budget).allows(least):
            raise explorer.below_the_cheapest(budget, least)

    def _draw_together(self, budget: float, below: End | None, above: End | None) -> tuple[End | None, End | None]:
        """Prices nearer and nearer to that at which plans begin to keep to the budget."""
        explorer = self.explorer
        while below is not None and above is not None and above[0] < below[0] * (1 - NEAR):
            if self._has_enough() or explorer.has_spent(explorer.prices_share):
                break
            price = _crossing(below, above)
            point = explorer.explore(price)
            if point is None:
                break
            if explorer.known.keeps_to(budget, point):
                below = (price, point)
            else:
                above = (price, point)
        return below, above

    def _mend(self, budget: float, *ends: End | None) -> None:
        for price, point in filter(None, ends):
            if not self._has_enough():
                self.explorer.search_within(point, budget, price)

    def _exchange(self, budget: float, prices: list[float]) -> None:
        """Search among plans within the budget, where jobs are put by prices about those next to it and below: there
        more jobs are worth their money, and the budget decides."""
        explorer = self.explorer
        ends = explorer.deadline(EXCHANGE_SHARE if explorer.goes_exact else 1.0)
        for k in range(EXCHANGES) if ends is None else itertools.count():
            best = explorer.known.best(budget)
            if best is None or not prices or self._has_enough() or (ends is not None and clock.now() >= ends):
                return
            price = prices[k % len(prices)] * FACTORS[k // len(prices) % len(FACTORS)]
            moves = FIRST_MOVES * 2 ** min(k, DOUBLINGS) * len(explorer.instance.jobs)
            explorer.search_within(best, budget, price, explorer.limits.work or moves, ends)


def _crossing(cheap: End, dear: End) -> float:
    """The price at which two plans are equally good; the middle of theirs where that is not well between them."""
    saved = dear[1].spent - cheap[1].spent
    price = (cheap[1].service - dear[1].service) / saved if saved > 0 else 0.0
    low, high = dear[0], cheap[0]
    is_between = low + (high - low) * NEAR < price < high - (high - low) * NEAR
    return price if is_between else math.sqrt(low * high) if low > 0 else high / 2


def solve_for(instance: Instance, goal: Goal, engine: str = "auto", limits: Limits | None = None) -> Solution:
    """The best plan found for a goal, checked, with its proof. For the lowest cost without a budget it is
    `planner.solve.solve` that is meant.

    Raises as that does; Infeasible names a budget that is enough. On Ctrl-C the best plan so far that keeps to the
    budget comes back with status "interrupted".
    """
    begun = time.monotonic()
    explorer = Explorer(instance, goal.objective, engine, limits or Limits())
    BudgetSearch(explorer, goal.budget).run()
    best = explorer.known.best(goal.budget)
    if best is None:
        if explorer.interrupted:
            raise KeyboardInterrupt
        raise NoPlan("no plan within the budget was found in time, and none was proven impossible; raise --time-limit")
    plan = certified(explorer, best, goal)
    must_pass(instance, plan)
    solves = "1 solve at a price" if explorer.solves == 1 else f"{explorer.solves} solves at prices"
    notes = (f"{solves} on the budget",)
    progress = Progress("budget", explorer.elapsed_s(), plan.cost, plan.dual_bound)
    return Solution(plan, time.monotonic() - begun, notes, (progress,))


def certified(explorer: Explorer, point: Point, goal: Goal) -> Plan:
    """The plan with what is proven of it under the goal."""
    known = explorer.known
    bound, gap = known.bound(goal.budget), known.gap(goal.budget)
    status = "interrupted" if explorer.interrupted else "optimal" if gap <= OPTIMAL_GAP else "feasible"
    shown = None if math.isinf(gap) else gap
    update: dict[str, object] = {"status": status, "gap": shown, "objective": goal.objective, "budget": goal.budget}
    proven = None if bound is None else known.told(min(bound, known.value(point)))
    if goal.objective == "cost":
        update["dual_bound"] = proven
    else:
        update |= {"welfare": known.told(point.service), "welfare_bound": proven}
    return point.plan.model_copy(update=update)
