"""What all rivals share: the clock, the best schedule so far with its history, and the plan at the end.

Every rival gets an instance, a time limit that counts from the first line on (the grid, the starts and its model are
part of its time), threads and a seed. It builds on `Schedule`, so what it proposes is on nodes and costed exactly;
whatever comes out is turned into a plan and passes the checker, or else counts as no plan.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from models.check import check
from models.domain import Instance, Plan
from models.reductions import reduce_starts
from models.starts import Starts, all_starts
from planner.engines.assemble import cost_of, plan_of
from planner.engines.base import Progress
from planner.engines.placement import Chosen, place
from planner.engines.policies.listing import by_due_date, insert, sequence
from planner.engines.schedule import Schedule
from planner.horizon import num_slots_of
from planner.solve import versions

# With `horizon: auto` a rival may need a longer grid than the planner's own, which ends soon after a list schedule.
_STRETCHES = (1, 2, 4)


@dataclass(frozen=True)
class Outcome:
    """What a rival has to show: a checked plan, a bound, and how both came about."""

    plan: Plan | None
    dual_bound: float | None
    wall_s: float
    trajectory: tuple[Progress, ...] = field(default=(), repr=False)
    note: str = ""
    """Why there is no plan, or why it is worse than it could be."""


Rival = Callable[[Instance, float, int, int], Outcome]
"""solve(instance, time_limit_s, threads, seed)"""


class Attempt:
    """One run of a rival on one instance."""

    def __init__(self, name: str, instance: Instance, time_limit_s: float, threads: int, seed: int):
        self.name, self.instance, self.time_limit_s = name, instance, time_limit_s
        self.threads, self.seed = threads, seed
        self.begun = time.monotonic()
        self.best: Schedule | None = None
        self.cost = math.inf
        self.dual_bound: float | None = None
        self.trajectory: list[Progress] = []
        self.note = ""

    @property
    def deadline(self) -> float:
        """The end of the time limit, as a monotonic time."""
        return self.begun + self.time_limit_s

    def left_s(self) -> float:
        """Seconds until the time limit; negative past it."""
        return self.deadline - time.monotonic()

    def is_over(self) -> bool:
        """Whether the time limit has passed."""
        return self.left_s() <= 0

    def starts(self) -> Starts:
        """All starts on the planner's own grid, without those that no optimal plan needs."""
        return reduce_starts(all_starts(self.instance, num_slots_of(self.instance)))

    def grids(self) -> Iterator[Starts]:
        """The same, then on longer grids where the instance leaves the horizon open."""
        yield self.starts()
        if self.instance.horizon == "auto":
            num_slots = num_slots_of(self.instance)
            for stretch in _STRETCHES[1:]:
                yield reduce_starts(all_starts(self.instance, stretch * num_slots))

    def first(self, make: Callable[[Starts], Schedule | None]) -> Schedule | None:
        """What `make` gives on the first grid on which it finds room for every job; offered."""
        for starts in self.grids():
            schedule = make(starts)
            if schedule is not None:
                self.offer(schedule)
                return schedule
            if self.is_over():
                break
        self.note = "not every job found room in time"
        return None

    def offer(self, schedule: Schedule, cost: float | None = None) -> bool:
        """Take a copy of a schedule if it is the best so far; `cost` where it is known."""
        cost = cost_of(schedule).cost if cost is None else cost
        if not cost < self.cost * (1 - 1e-12):
            return False
        self.best, self.cost = schedule.copy(), cost
        self.report(cost)
        return True

    def offer_placed(self, starts: Starts, chosen: Chosen, node_costs: dict[int, float]) -> None:
        """Place the starts of a model's solution on nodes as the exact engine does, and offer that."""
        placed = place(starts, chosen, node_costs, time_limit_s=max(0.5, self.left_s()), seed=self.seed)
        schedule = _repaired(placed.schedule, placed.homeless)
        if schedule is None:
            self.note = "not every run of its solution finds a place on nodes"
        else:
            self.offer(schedule)

    def raise_bound(self, bound: float | None) -> None:
        """Take a dual bound if it is the best so far."""
        if bound is not None and math.isfinite(bound) and (self.dual_bound is None or bound > self.dual_bound):
            self.dual_bound = bound

    def report(self, incumbent: float | None = None, bound: float | None = None) -> None:
        """Note what is known by now; neither an incumbent nor a bound that was known is forgotten."""
        last = self.trajectory[-1] if self.trajectory else None
        before = (None, None) if last is None else (last.incumbent, last.dual_bound)
        costs = [cost for cost in (incumbent, before[0]) if cost is not None]
        bounds = [value for value in (bound, before[1]) if value is not None]
        now = time.monotonic() - self.begun
        self.trajectory.append(Progress(self.name, now, min(costs, default=None), max(bounds, default=None)))

    def outcome(self) -> Outcome:
        """The best schedule as a checked plan."""
        wall_s = time.monotonic() - self.begun
        if self.best is None:
            return Outcome(None, self.dual_bound, wall_s, tuple(self.trajectory), self.note or "no plan in time")
        plan = plan_of(
            self.best, status="feasible", engine=self.name, seed=self.seed, versions=versions(), dual_bound=None
        )
        violations = check(self.instance, plan).violations
        if violations:
            return Outcome(None, self.dual_bound, wall_s, tuple(self.trajectory), str(violations[0]))
        return Outcome(plan, self.dual_bound, wall_s, tuple(self.trajectory), self.note)


def _repaired(schedule: Schedule, homeless: tuple[int, ...]) -> Schedule | None:
    """Give jobs that found no place on nodes their cheapest start that has one, and move what must run after them; None
    where one finds no room."""
    instance, order = schedule.instance, sequence(schedule.starts, by_due_date)
    moved = set(homeless)
    for j in order:
        if j not in moved and any(instance.job_index[name] in moved for name in instance.jobs[j].after):
            moved.add(j)
            if j in schedule.chosen:
                schedule.drop(j)
    return schedule if all(insert(schedule, j) for j in order if j in moved) else None
