"""What every way to a plan adds to: the best plan and bound so far, the limits, and what was seen on the way."""

from __future__ import annotations

from dataclasses import dataclass, field

from models.goal import LOWEST_COST, Goal
from models.starts import Starts
from planner.engines import clock, interrupts
from planner.engines.assemble import BOUND_TOLERANCE, Costed, cost_of
from planner.engines.base import Limits, Progress, Timed
from planner.engines.schedule import Schedule


class ProvenInfeasible(Exception):
    """HiGHS has proven that the model, with node indices in some pools, has no solution."""

    def __init__(self, node_pools: frozenset[int]):
        self.node_pools = node_pools
        super().__init__("no plan satisfies the instance")


@dataclass
class Search(Timed):
    """The best plan and bound so far."""

    starts: Starts
    limits: Limits
    begun: float = field(default_factory=clock.now)
    goal: Goal = LOWEST_COST
    """What `cost` is of a plan, and which plans count."""
    schedule: Schedule | None = None
    costed: Costed | None = None
    cost: float | None = None
    """Cost of the best plan; of another goal than the lowest cost: what is minimised."""
    engine: str = "exact"
    dual_bound: float | None = None
    pool_level_cost: float | None = None
    """Cost of the best schedule in which nodes are only counted (or have an index in some pools), where it is known."""
    interrupted: bool = False
    notes: list[str] = field(default_factory=list)
    trajectory: list[Progress] = field(default_factory=list)

    @property
    def packing_cost(self) -> float | None:
        """What the best plan costs more than that schedule: the price of placing runs on single nodes."""
        if self.cost is None or self.pool_level_cost is None:
            return None
        return max(0.0, self.cost - self.pool_level_cost)

    def is_proven(self, at_most: float = 1.0) -> bool:
        """Whether the gap asked for is reached, and this one too."""
        if self.cost is None or self.dual_bound is None:
            return False
        slack = max(min(self.limits.gap, at_most), BOUND_TOLERANCE) * abs(self.cost)
        return self.cost - self.dual_bound <= slack

    def is_over(self) -> bool:
        """Whether there is nothing left to do, or no time to do it."""
        return self.is_proven() or self.is_out_of_time() or self.interrupted

    def offer(self, schedule: Schedule, engine: str) -> None:
        """Take a schedule if it is the best so far."""
        costed = cost_of(schedule)
        value = self.goal.value(costed.costs)
        if value is not None and (self.cost is None or value < self.cost * (1 - 1e-12)):
            self.schedule, self.costed, self.cost, self.engine = schedule, costed, value, engine
            if self.limits.on_schedule is not None:
                self.limits.on_schedule(schedule, costed.costs)

    def raise_bound(self, bound: float | None) -> None:
        """Take a dual bound if it is the best so far."""
        if bound is not None and (self.dual_bound is None or bound > self.dual_bound):
            self.dual_bound = bound

    def report(self, phase: str, incumbent: float | None = None, bound: float | None = None) -> None:
        """Tell how things stand; `incumbent` and `bound` are those of a solve under way.

        HiGHS may start anew with a lower bound than it has shown before; what was shown stays.
        """
        interrupts.safe_point()
        shown = self.trajectory[-1].dual_bound if self.trajectory else None
        costs = [cost for cost in (self.cost, incumbent) if cost is not None]
        bounds = [value for value in (self.dual_bound, bound, shown) if value is not None]
        progress = Progress(phase, self.elapsed_s(), min(costs, default=None), max(bounds, default=None))
        self.trajectory.append(progress)
        if self.limits.on_progress is not None:
            self.limits.on_progress(progress)
