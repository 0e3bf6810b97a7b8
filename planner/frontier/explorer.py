"""Solves at prices on the budget, and of the whole model with the budget as a row: how to know more."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from models.check import check
from models.domain import Instance, Plan
from models.errors import Clash, Fault, Infeasible, InvalidInput, NoPlan
from models.goal import Goal, Objective, at_price, most_welfare, service_of, spending_alone, spent_of, welfare_of
from models.rentals import NodeRules
from models.starts import all_starts
from planner.engines import clock, interrupts
from planner.engines.assemble import plan_of
from planner.engines.base import Limits, Progress, Timed
from planner.engines.fast.within import Within
from planner.engines.replay import schedule_of
from planner.engines.schedule import Schedule
from planner.engines.search import ProvenInfeasible, Search
from planner.frontier.tradeoff import Point, Tradeoff
from planner.horizon import num_slots_of
from planner.solve import MOST_STARTS, solve, versions

SOLVES = 10
"""Among how many solves the time is shared out, at least."""
GLANCES = 20
"""The same, of solves by the fast engine that only find between which prices to look, to a gap of"""
GLANCE_GAP = 0.01
EXACT_SHARE, EXCHANGE_SHARE = 0.5, 0.3
"""Part of the time that is left for the whole model with the budget as a row, and part of that for the search within
the budget before it."""
PRICES_SHARE = 0.7
"""Part of the time for solves at prices where there is no whole model after them."""
FREE = 1e-3
"""Part of the natural price at which spending is all but free."""


@dataclass(eq=False)
class Explorer(Timed):
    """What is known of an instance's budgets, and the solves that add to it, within one time limit."""

    instance: Instance
    objective: Objective
    engine: str = "auto"
    limits: Limits = field(default_factory=Limits)
    budget: float | None = None
    """The one that is looked at."""
    solves: int = 0
    interrupted: bool = False
    begun: float = field(default_factory=clock.now)
    _within: dict[float, Within] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        self.num_slots = num_slots_of(self.instance)
        self.known = Tradeoff(self.objective, most_welfare(self.instance))
        if self.objective == "welfare" and self.known.most_welfare <= 0:
            mend = "give jobs a value or a utility, or plan for the lowest cost"
            raise InvalidInput(
                [Fault("no job is worth anything: there is no welfare to maximise", ("jobs",), mend=mend)]
            )

    def is_over(self) -> bool:
        """Whether the time has passed, or somebody has stopped it."""
        self.interrupted |= interrupts.asked()
        return self.interrupted or self.is_out_of_time()

    def is_proven(self, budget: float | None) -> bool:
        """Whether the gap asked for is reached."""
        return self.known.gap(budget) <= self.limits.gap

    # One solve

    def explore(self, price: float, *, glance: bool = False, seconds: float | None = None) -> Point | None:
        """Solve at a price, or glance at it, for a share of the time or so many seconds; the plan found, if any."""
        priced = at_price(self.instance, self.objective, price, self.num_slots)
        if seconds is None:
            seconds = self._share(GLANCES if glance else SOLVES)
        limits = replace(
            self.limits,
            gap=max(self.limits.gap, GLANCE_GAP) if glance else self.limits.gap,
            time_limit_s=self._at_most(seconds),
            on_schedule=(lambda schedule, costs: self._see(schedule, costs, price)) if price > 0 else None,
        )
        start = self._nearest(lambda point: point.at(price))
        plan = self._plan(priced, "fast" if glance else self.engine, limits, start)
        if plan is not None and plan.dual_bound is not None:
            self.known.lines.append((price, plan.dual_bound))
        return self._took(plan, f"price {price:.3g}")

    def _share(self, number: int) -> float | None:
        """Seconds for each of so many solves; None without a limit."""
        limit = self.limits.time_limit_s
        return None if limit is None else limit / number

    def _at_most(self, seconds: float | None) -> float | None:
        left = self.left_s()
        return None if left is None or seconds is None else max(0.0, min(left, seconds))

    def explore_spending(self) -> Point | None:
        """Solve for the smallest budget; the plan, whose spending it may be."""
        limits = replace(self.limits, time_limit_s=self._at_most(self._share(SOLVES)))
        start = self._nearest(lambda point: point.spent)
        plan = self._plan(spending_alone(self.instance, self.num_slots), self.engine, limits, start)
        if plan is not None and plan.dual_bound is not None:
            self.known.least_spent = max(plan.dual_bound, self.known.least_spent or 0.0)
        return self._took(plan, "spending alone")

    def explore_freely(self) -> Point | None:
        """Solve as if there were no budget; of plans that serve all but equally well, one that spends little."""
        first = self.explore(self.known.base)
        if self.objective == "cost" or first is None or first.spent <= 0:
            return first
        return self.explore(FREE * self.natural_price(first.spent)) or first

    def _nearest(self, value: Callable[[Point], float]) -> Plan | None:
        """The best plan known by what a solve minimises, to begin with."""
        best = min(self.known.points, key=value, default=None)
        return None if best is None else best.plan

    def _plan(self, priced: Instance, engine: str, limits: Limits, start: Plan | None) -> Plan | None:
        """A plan of a changed instance; None where there is none in time, though there was of another price, or where
        somebody stopped it."""
        self.solves += 1
        try:
            used = "fast" if engine == "auto" else engine
            plan = self._solved(priced, used, replace(limits, on_progress=None), start)
        except KeyboardInterrupt:
            self.interrupted = True
            return None
        except NoPlan:
            if not self.known.points:
                raise
            return None
        self.interrupted |= plan.status == "interrupted"
        return plan

    def _solved(self, priced: Instance, engine: str, limits: Limits, start: Plan | None) -> Plan:
        try:
            return solve(priced, engine, limits, start).plan
        except NoPlan:
            if engine != "fast" or self.known.points:
                raise
            # What the fast engine finds no plan for may have none: only the whole model proves that.
            return solve(priced, "auto", replace(limits, time_limit_s=self.left_s())).plan

    def _took(self, plan: Plan | None, phase: str) -> Point | None:
        """The plan as a point among those that are known."""
        if plan is None:
            return None
        point = self._point(plan)
        self.known.add(point)
        self.report(phase)
        return point

    def _see(self, schedule: Schedule, costs: Mapping[str, float], price: float) -> None:
        """Take note of a schedule on the way of a solve: it may be the best within a smaller budget."""
        self.known.add(
            Point(spent_of(costs) / price, service_of(costs), lambda: self._point(self._restored(schedule)).plan)
        )

    def _restored(self, schedule: Schedule) -> Plan:
        seed, made = self.limits.seed, versions()
        return plan_of(
            schedule, status="feasible", engine="fast", seed=seed, versions=made, dual_bound=None, packing_cost=None
        )

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
        lost = self.known.most_welfare - welfare_of(self.instance, restated)
        return Point(spent, restated.cost - spent if self.objective == "cost" else lost, lambda: restated)

    def report(self, phase: str) -> None:
        """Tell how things stand under the budget that is looked at."""
        if self.limits.on_progress is not None:
            best, bound = self.known.best(self.budget), self.known.bound(self.budget)
            value = None if best is None else self.known.value(best)
            self.limits.on_progress(Progress(phase, self.elapsed_s(), value, bound))

    @cached_property
    def is_small(self) -> bool:
        """Whether the whole model is small enough to be built."""
        return all_starts(self.instance, self.num_slots).num_starts <= MOST_STARTS

    @property
    def goes_exact(self) -> bool:
        """Whether the whole model is solved after the prices."""
        return self.engine != "fast" and self.is_small

    @property
    def prices_share(self) -> float:
        """Part of the time for solves at prices."""
        return 1.0 - EXACT_SHARE if self.goes_exact else PRICES_SHARE

    def natural_price(self, budget: float) -> float:
        """A price to begin with: that of the objective, or at which all welfare is worth the budget."""
        if self.objective == "cost":
            return self.known.base
        return self.known.most_welfare / (budget if budget > 0 else 1.0)

    @property
    def cheapest_spends(self) -> float:
        """The least that a plan which is known spends."""
        return min((point.spent for point in self.known.points), default=math.inf)

    def search_within(
        self, point: Point, budget: float, price: float, moves: int = 0, ends: float | None = None
    ) -> None:
        """Bring a plan within a budget, then exchange jobs in it, put where they are cheapest at a price: so many
        moves, or until `clock.now` says `ends`."""
        if price <= 0:
            return
        within = self._within.get(price)
        if within is None:
            priced = at_price(self.instance, self.objective, price, self.num_slots)
            within = self._within[price] = Within(all_starts(priced, self.num_slots), self.limits.seed)
        schedule = schedule_of(point.plan, within.table.starts)
        if schedule is None:
            return
        most, spending = price * Goal(self.objective, budget).most, self.known.base / price
        try:
            found = within.run(
                schedule, most, spending, moves, lambda: self.is_over() or (ends is not None and clock.now() > ends)
            )
        except KeyboardInterrupt:
            self.interrupted = True
            return
        if found is not None:
            self.known.add(self._point(self._restored(found)))
            self.report("within the budget")

    # The whole model

    def search_exactly(self, budget: float, seconds: float | None) -> None:
        """The whole model with the budget as a row, from the best plan known, for so long; None: without limit.

        Raises Infeasible where no plan keeps to the budget.
        """
        from planner.engines.exact import solve_exactly  # Pyomo takes a second to import

        starts = all_starts(at_price(self.instance, self.objective, 1.0, self.num_slots), self.num_slots)
        limits = replace(self.limits, time_limit_s=seconds, on_progress=None)
        search = Search(starts, limits, goal=Goal(self.objective, budget))
        best = self.known.best(budget)
        known = None if best is None else schedule_of(best.plan, starts)
        if known is not None:
            search.offer(known, "exact")
        try:
            solve_exactly(search)
        except ProvenInfeasible:
            self.known.least_spent = max(math.nextafter(budget, math.inf), self.known.least_spent or 0.0)
            raise self.below_the_cheapest(budget, None) from None
        except KeyboardInterrupt:
            self.interrupted = True
        self.interrupted |= search.interrupted
        if search.dual_bound is not None:
            self.known.exact_bounds[budget] = search.dual_bound
        if search.schedule is not None and search.schedule is not known:
            self.known.add(self._point(self._restored(search.schedule).model_copy(update={"engine": "exact"})))
        self.report("budget as a row")

    def below_the_cheapest(self, budget: float, least: float | None) -> Infeasible:
        """What is raised where no plan keeps to a budget; it names one that is enough."""
        money = self.instance.currency
        smallest = self.cheapest_spends
        proven = "no plan keeps to it" if least is None else f"no plan spends less than {least:.10g}"
        amount = "a larger one" if math.isinf(smallest) else f"{_rounded_up(smallest):.10g} {money} is enough"
        return Infeasible(
            f"the budget of {budget:.10g} {money} is below the cheapest plan: {proven}",
            [Clash("budget", f"{amount} instead of {budget:.10g}", way="a larger budget")],
        )


def _rounded_up(money: float) -> float:
    """An amount with ten digits that is no less, but for rounding: what is told as enough must be."""
    shown = float(f"{money:.10g}")
    return shown if shown >= money * (1 - 1e-12) else float(f"{money * (1 + 1e-9):.10g}")
