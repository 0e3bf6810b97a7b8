"""Plans within a budget, and the frontier of what is spent against what service loses, by prices on the budget.

Each solve at a price p (`models.goal`) adds a plan, that is a point (spent, service), and a line below which no plan
lies: p spent + service >= D(p). From points and lines together follow, for every budget at once, the best plan known
that keeps to it and a bound on what any plan that keeps to it can do. Where that leaves a gap (the frontier has dents
that no price reaches), the whole model is solved with the budget as a row.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from models.check import check
from models.check.report import OPTIMAL_GAP
from models.domain import Instance, Plan
from models.errors import Clash, Fault, Infeasible, InvalidInput, NoPlan
from models.goal import Goal, Objective, at_price, most_welfare, spending_alone, spent_of, welfare_of
from models.rentals import NodeRules
from models.starts import all_starts
from planner.engines import interrupts
from planner.engines.assemble import plan_of
from planner.engines.base import Limits, Progress, Solution
from planner.engines.replay import schedule_of
from planner.engines.search import ProvenInfeasible, Search
from planner.horizon import num_slots_of
from planner.solve import MOST_STARTS, must_pass, solve, versions

SOLVES = 10
"""Among how many solves the time is shared out, at least."""
STEP = 4.0
"""Factor between prices until the budget lies between two plans."""
MOST_STEPS = 12
MOST_DEPTH = 5
FREE = 1e-3
"""Part of the natural price at which spending is all but free."""
NEAR = 0.02
"""Prices nearer to each other than this part are not told apart."""
EXACT_SHARE = 0.5
"""Part of the time that is left for the whole model with the budget as a row."""


@dataclass(frozen=True, eq=False)
class Point:
    """A plan by what it spends and what service loses."""

    spent: float
    service: float
    plan: Plan


@dataclass(eq=False)
class Frontier:
    """The plans and the bounds that are known of an instance under an objective."""

    instance: Instance
    objective: Objective
    engine: str = "auto"
    limits: Limits = field(default_factory=Limits)
    points: list[Point] = field(default_factory=list)
    lines: list[tuple[float, float]] = field(default_factory=list)
    """(p, D): p spent + service >= D for every plan."""
    exact_bounds: dict[float, float] = field(default_factory=dict)
    """By budget: what no plan that keeps to it is below, from the whole model."""
    least_spent: float | None = None
    """A bound on what any plan spends, where it was looked for."""
    budget: float | None = None
    """The one that is looked at."""
    interrupted: bool = False

    def __post_init__(self) -> None:
        self.begun = time.monotonic()
        self.num_slots = num_slots_of(self.instance)
        self.most_welfare = most_welfare(self.instance)
        if self.objective == "welfare" and self.most_welfare <= 0:
            mend = "give jobs a value or a utility, or plan for the lowest cost"
            raise InvalidInput(
                [Fault("no job is worth anything: there is no welfare to maximise", ("jobs",), mend=mend)]
            )

    def left_s(self) -> float | None:
        """Seconds until the time limit; None without one."""
        limit = self.limits.time_limit_s
        return None if limit is None else limit - (time.monotonic() - self.begun)

    def is_over(self) -> bool:
        """Whether the time has passed, or somebody has stopped it."""
        left = self.left_s()
        return self.interrupted or (left is not None and left <= 0)

    def explore(self, price: float) -> Point:
        """Solve at a price; the plan that it found."""
        return self._solve(at_price(self.instance, self.objective, price, self.num_slots), price)

    def _explore_freely(self) -> Point:
        """Solve as if there were no budget."""
        return self.explore(self.base if self.objective == "cost" else FREE * self.natural_price(None))

    def explore_spending(self) -> Point:
        """Solve for the smallest budget; the plan, whose spending it may be."""
        return self._solve(spending_alone(self.instance, self.num_slots), None)

    def _solve(self, priced: Instance, price: float | None) -> Point:
        left, limit = self.left_s(), self.limits.time_limit_s
        share = None if left is None or limit is None else max(0.0, min(left, limit / SOLVES))
        answer = solve(priced, self.engine, replace(self.limits, time_limit_s=share, on_progress=None))
        self.interrupted |= answer.plan.status == "interrupted"
        if answer.plan.dual_bound is not None and price is not None:
            self.lines.append((price, answer.plan.dual_bound))
        elif answer.plan.dual_bound is not None:
            self.least_spent = max(answer.plan.dual_bound, self.least_spent or 0.0)
        point = self._point(answer.plan)
        self.points.append(point)
        self._report("spending alone" if price is None else f"price {price:.3g}")
        return point

    def _report(self, phase: str) -> None:
        """Tell how things stand under the budget that is looked at."""
        if self.limits.on_progress is not None:
            best, bound = self.best(self.budget), self.bound(self.budget)
            value = None if best is None else self.value(best)
            self.limits.on_progress(Progress(phase, time.monotonic() - self.begun, value, bound))

    @cached_property
    def _rules(self) -> dict[str, NodeRules]:
        """What the nodes of each pool cost."""
        pools = enumerate(self.instance.pools)
        return {pool.id: NodeRules.of(self.instance, p, self.num_slots) for p, pool in pools}

    def _point(self, plan: Plan) -> Point:
        """The plan as one of the instance itself: the same runs on the same nodes, at its own prices."""
        nodes_on = tuple(
            on.model_copy(update={"cost": self._rules[on.pool].cost(on.start_slot, on.end_slot)})
            for on in plan.nodes_on
        )
        same = {"instance_hash": self.instance.content_hash, "nodes_on": nodes_on, "packing_cost": None}
        restated = plan.model_copy(update=same | {"status": "feasible", "dual_bound": None, "gap": None})
        costs = check(self.instance, restated).costs
        restated = restated.model_copy(update={"costs": costs, "cost": math.fsum(costs.values())})
        spent = spent_of(costs)
        if self.objective == "cost":
            return Point(spent, restated.cost - spent, restated)
        return Point(spent, self.most_welfare - welfare_of(self.instance, restated), restated)

    @property
    def base(self) -> float:
        """The price at which the objective itself counts what is spent."""
        return 1.0 if self.objective == "cost" else 0.0

    def value(self, point: Point) -> float:
        """What is minimised: spent + service, or service alone."""
        return self.base * point.spent + point.service

    def _keeps_to(self, budget: float | None, point: Point) -> bool:
        return Goal(self.objective, budget).allows(point.spent)

    def told(self, amount: float) -> float:
        """An amount of what is minimised as people count it: cost, or welfare."""
        return amount if self.objective == "cost" else self.most_welfare - amount

    def best(self, budget: float | None) -> Point | None:
        """The best plan known that keeps to a budget."""
        kept = [point for point in self.points if self._keeps_to(budget, point)]
        return min(kept, key=lambda point: (self.value(point), point.spent), default=None)

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

    def gap(self, budget: float | None) -> float:
        """What is not proven: of the best plan's cost, or of the bound on welfare. Infinite without plan or bound."""
        best, bound = self.best(budget), self.bound(budget)
        if best is None or bound is None:
            return math.inf
        lost = max(0.0, self.value(best) - bound)
        whole = self.value(best) if self.objective == "cost" else self.told(bound)
        return lost / whole if whole > 0 else 0.0

    def search(self, budget: float | None) -> None:
        """Solve at prices, then exactly, until the best plan within a budget is proven or the time is over."""
        self.budget = budget
        if budget is None:
            self._explore_freely()
            return
        self._search_prices(budget)
        if not self.is_over() and self.gap(budget) > self.limits.gap and self.engine != "fast":
            self.search_exactly(budget)

    def search_exactly(self, budget: float) -> None:
        """The whole model with the budget as a row, from the best plan known, in the time that is left."""
        from planner.engines.exact import solve_exactly  # Pyomo takes a second to import

        priced = at_price(self.instance, self.objective, 1.0, self.num_slots)
        starts = all_starts(priced, self.num_slots)
        if starts.num_starts > MOST_STARTS:
            return
        limits = replace(self.limits, time_limit_s=self.left_s(), on_progress=None)
        search = Search(starts, limits, goal=Goal(self.objective, budget))
        best = self.best(budget)
        known = None if best is None else schedule_of(best.plan, starts)
        if known is not None:
            search.offer(known, "exact")
        with interrupts.held():
            try:
                solve_exactly(search)
            except ProvenInfeasible:
                raise self._below_the_cheapest(budget, None) from None
        self.interrupted |= search.interrupted or interrupts.asked()
        if search.dual_bound is not None:
            self.exact_bounds[budget] = search.dual_bound
        if search.schedule is not None and search.schedule is not known:
            seed, made = self.limits.seed, versions()
            plan = plan_of(
                search.schedule, status="feasible", engine="exact", seed=seed, versions=made, dual_bound=None,
                packing_cost=None,
            )  # fmt: skip
            self.points.append(self._point(plan))

    def _search_prices(self, budget: float) -> None:
        """Prices between one at which the plan keeps to the budget and one at which it does not, nearer and nearer."""
        until = None if self.limits.time_limit_s is None else self.limits.time_limit_s * (1 - EXACT_SHARE)
        below, above = self._bracket(budget)
        while not self.is_over() and self.gap(budget) > self.limits.gap:
            if until is not None and self.engine != "fast" and time.monotonic() - self.begun > until:
                return
            cheap, dear = below, above
            if cheap is None or dear is None or dear[0] >= cheap[0] * (1 - NEAR):
                return
            price = self._crossing(cheap, dear)
            point = self.explore(price)
            if self._keeps_to(budget, point):
                below = (price, point)
            else:
                above = (price, point)

    def sweep(self, number: int) -> list[float]:
        """Look for plans from the cheapest to those of a budget without limit; so many budgets between them, evenly."""
        least = self.explore_spending()
        most = self._explore_freely()
        self._between(least, most, MOST_DEPTH)
        low, high = least.spent, max(most.spent, least.spent)
        return [low + (high - low) * k / max(1, number - 1) for k in range(number)]

    def _between(self, cheap: Point, dear: Point, depth: int) -> None:
        """The plans on the lower hull between two, by the prices at which two neighbours are equally good."""
        saved, lost = dear.spent - cheap.spent, cheap.service - dear.service
        if depth == 0 or self.is_over() or saved <= NEAR * max(1.0, dear.spent) or lost <= 0:
            return
        price = max(self.base, lost / saved)
        found = self.explore(price)
        if price * found.spent + found.service < (price * dear.spent + dear.service) * (1 - self.limits.gap):
            self._between(cheap, found, depth - 1)
            self._between(found, dear, depth - 1)

    def natural_price(self, budget: float | None) -> float:
        """A price to begin with: that of the objective, or at which all welfare is worth the budget."""
        if self.objective == "cost":
            return 1.0
        if budget is None:
            budget = sum(point.spent for point in self.points) / len(self.points) if self.points else 0.0
        return self.most_welfare / (budget if budget > 0 else 1.0)

    def _crossing(self, cheap: tuple[float, Point], dear: tuple[float, Point]) -> float:
        """The price at which two plans are equally good; the middle of theirs where that is not well between them."""
        saved = dear[1].spent - cheap[1].spent
        price = (cheap[1].service - dear[1].service) / saved if saved > 0 else 0.0
        low, high = dear[0], cheap[0]
        is_between = low + (high - low) * NEAR < price < high - (high - low) * NEAR
        return price if is_between else math.sqrt(low * high) if low > 0 else high / 2

    def _bracket(self, budget: float) -> tuple[tuple[float, Point] | None, tuple[float, Point] | None]:
        """(price, plan) that keeps to the budget, and one at a lower price that does not; None where there is none."""
        price = self.natural_price(budget)
        below: tuple[float, Point] | None = None
        above: tuple[float, Point] | None = None
        for _ in range(MOST_STEPS):
            if self.is_over():
                break
            point = self.explore(price)
            if self._keeps_to(budget, point):
                below = (price, point)
                if price <= self.base or self.gap(budget) <= self.limits.gap or above is not None:
                    break
                price = price / STEP
            else:
                above = (price, point)
                if below is not None:
                    break
                price = price * STEP
        if self.best(budget) is None and not self.interrupted:
            self._smallest_budget(budget)
        return below, above

    def _smallest_budget(self, budget: float) -> None:
        """Find the plan that spends least; raise Infeasible where even that is proven to exceed the budget."""
        cheapest = self.explore_spending()
        if self._keeps_to(budget, cheapest):
            return
        if self.least_spent is not None and self.least_spent > budget:
            raise self._below_the_cheapest(budget, self.least_spent)

    def _below_the_cheapest(self, budget: float, least: float | None) -> Infeasible:
        money = self.instance.currency
        smallest = min((point.spent for point in self.points), default=None)
        proven = "no plan keeps to it" if least is None else f"no plan spends less than {least:.10g}"
        amount = "a larger one" if smallest is None else f"{_rounded_up(smallest):.10g} {money} is enough"
        return Infeasible(
            f"the budget of {budget:.10g} {money} is below the cheapest plan: {proven}",
            [Clash("budget", f"{amount} instead of {budget:.10g}", way="a larger budget")],
        )


def _rounded_up(money: float) -> float:
    """An amount with ten digits that is no less, but for rounding: what is told as enough must be."""
    shown = float(f"{money:.10g}")
    return shown if shown >= money * (1 - 1e-12) else float(f"{money * (1 + 1e-9):.10g}")


def solve_for(instance: Instance, goal: Goal, engine: str = "auto", limits: Limits | None = None) -> Solution:
    """The best plan found for a goal, checked, with its proof. For the lowest cost without a budget it is
    `planner.solve.solve` that is meant."""
    frontier = Frontier(instance, goal.objective, engine, limits or Limits())
    frontier.search(goal.budget)
    best = frontier.best(goal.budget)
    if best is None:
        if frontier.interrupted:
            raise KeyboardInterrupt
        raise NoPlan("no plan within the budget was found in time, and none was proven impossible; raise --time-limit")
    plan = certified(frontier, best, goal)
    must_pass(instance, plan)
    notes = (f"{len(frontier.points)} solves at prices on the budget",)
    progress = Progress("budget", time.monotonic() - frontier.begun, plan.cost, plan.dual_bound)
    return Solution(plan, progress.elapsed_s, notes, (progress,))


def certified(frontier: Frontier, point: Point, goal: Goal) -> Plan:
    """The plan with what is proven of it under the goal."""
    bound, gap = frontier.bound(goal.budget), frontier.gap(goal.budget)
    status = "interrupted" if frontier.interrupted else "optimal" if gap <= OPTIMAL_GAP else "feasible"
    known = None if math.isinf(gap) else gap
    update: dict[str, object] = {"status": status, "gap": known, "objective": goal.objective, "budget": goal.budget}
    proven = None if bound is None else frontier.told(min(bound, frontier.value(point)))
    if goal.objective == "cost":
        update["dual_bound"] = proven
    else:
        update |= {"welfare": frontier.told(point.service), "welfare_bound": proven}
    return point.plan.model_copy(update=update)


@dataclass(frozen=True)
class Row:
    """What is known of one budget. Money; None where it is not known."""

    budget: float
    spent: float | None
    tardiness_h: float
    rejected: int
    value: float | None
    """Total cost, or welfare."""
    bound: float | None
    """What no plan within the budget costs less, or is worth more, than."""
    gap: float | None
    is_infeasible: bool = False


def rows_of(frontier: Frontier, budgets: Sequence[float]) -> list[Row]:
    """Every budget's best plan with its proof; plans of one serve all that are larger."""
    return [_row(frontier, budget) for budget in budgets]


def _row(frontier: Frontier, budget: float) -> Row:
    best, bound, gap = frontier.best(budget), frontier.bound(budget), frontier.gap(budget)
    if best is None:
        least, shown = frontier.least_spent, None if bound is None else frontier.told(bound)
        return Row(budget, None, 0.0, 0, None, shown, None, least is not None and least > budget)
    value = frontier.value(best)
    shown = None if bound is None else frontier.told(min(bound, value))
    late = math.fsum(run.tardiness_h for run in best.plan.runs)
    known = None if math.isinf(gap) else gap
    return Row(budget, best.spent, late, len(best.plan.rejected), frontier.told(value), shown, known)
