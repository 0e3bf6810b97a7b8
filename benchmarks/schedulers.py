"""The usual schedulers under a budget, each with each of the usual rules of storage.

A scheduler is an order of *steps*: all jobs are let in on their fewest GPUs, in its order; then one job after the other
is raised to its next mode, as it would have it, as long as the GPUs of all jobs together are no more than there are.

- `fair_share`: let in as they arrive; the job with the fewest GPUs is raised.
- `shortest_first`: by their time on the fewest GPUs; the first one is raised to its fastest mode, then the next.
- `marginal_throughput`: by what a GPU adds to a job's speed, relative to that on its fewest GPUs.
- `ftf_greedy`: by finish-time fairness (Themis, NSDI 2020), the time a job takes over that on an equal share of the
  cluster; the worst first.

With a budget a scheduler takes as many of its steps as it can pay for. Jobs that do not all fit at once wait: each is
put where it completes first on the planner's own node timelines, in the order of admission. The rule of storage caches
what it does for the demand of these jobs in these modes, and as much bandwidth is paid for as the plan reads at its
peak, though the rule would have bought what all jobs read at once: this favours the rival.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from models.domain import Instance, Plan
from models.domain.modes import Mode
from models.goal import Goal, spent_of, welfare_at
from models.reductions import reduce_starts
from models.starts import all_starts
from models.storage.baselines import BASELINES
from models.storage.demand import demands
from models.storage.problem import CacheProblem
from planner.engines.assemble import cost_of, plan_of
from planner.engines.schedule import Schedule, Step
from planner.horizon import num_slots_of
from planner.solve import must_pass, versions

AHEAD = 8
"""Steps that are tried beyond the first that the budget does not pay for: a later one may be cheaper."""
ROUNDING = 1e-9


@dataclass(frozen=True)
class Ladder:
    """A job as a scheduler sees it: modes from its fewest GPUs to its fastest, each faster than the one before."""

    job: int
    release: float
    modes: tuple[Mode, ...]
    fair_s: float
    """Duration in the largest of them that is no more than an equal share of the cluster."""

    def gain(self, k: int) -> float:
        """What each GPU of mode k, beyond those of the mode before, adds to the speed relative to that in mode 0."""
        if k == 0:
            return 1.0 / self.modes[0].gpus
        low, high = self.modes[k - 1], self.modes[k]
        return self.modes[0].duration_s * (1 / high.duration_s - 1 / low.duration_s) / (high.gpus - low.gpus)


Urge = Callable[[Ladder, int], float]
"""How soon a job is let in (k = 0), or raised to its mode k: the lowest first, the earliest release of equals."""

SCHEDULERS: dict[str, Urge] = {
    "fair_share": lambda ladder, k: ladder.modes[k - 1].gpus if k else 0.0,
    "shortest_first": lambda ladder, _: ladder.modes[0].duration_s,
    "marginal_throughput": lambda ladder, k: -ladder.gain(k),
    "ftf_greedy": lambda ladder, k: -ladder.modes[max(0, k - 1)].duration_s / ladder.fair_s,
}


def steps_of(ladders: Iterable[Ladder], urge: Urge, num_gpus: int) -> list[int]:
    """The jobs in the order of their steps: the first of each lets it in, the others raise it."""
    arrived = sorted(ladders, key=lambda ladder: (ladder.release, ladder.job))
    admitted = sorted(arrived, key=lambda ladder: urge(ladder, 0))
    steps = [ladder.job for ladder in admitted]
    free = num_gpus - sum(ladder.modes[0].gpus for ladder in admitted)
    waiting = [(urge(ladder, 1), place, 1, ladder) for place, ladder in enumerate(arrived) if len(ladder.modes) > 1]
    heapq.heapify(waiting)
    while waiting:
        _, place, k, ladder = heapq.heappop(waiting)
        more = ladder.modes[k].gpus - ladder.modes[k - 1].gpus
        if more > free:
            continue  # no GPU becomes free any more
        free -= more
        steps.append(ladder.job)
        if k + 1 < len(ladder.modes):
            heapq.heappush(waiting, (urge(ladder, k + 1), place, k + 1, ladder))
    return steps


class Shop:
    """An instance of one pool at one site, without links, as schedulers see it."""

    def __init__(self, instance: Instance):
        self.instance = instance
        self.starts = reduce_starts(all_starts(instance, num_slots_of(instance)))
        self.row_of = {(row.job, row.mode.name, row.level): r for r, row in enumerate(self.starts.rows)}
        (pool,) = instance.pools
        self.num_gpus = pool.gpus_per_node * pool.nodes

    @cached_property
    def ladders(self) -> list[Ladder]:
        """Those of the jobs that can run. A mode that on the grid is no faster than one with fewer GPUs is left out."""
        jobs, found = self.instance.jobs, []
        for j, indices in enumerate(self.starts.rows_of_job):
            modes = {row.mode.gpus: row.mode for row in (self.starts.rows[r] for r in indices) if row.level == 0}
            if modes:
                sizes = sorted(modes)
                fair = max((g for g in sizes if g * len(jobs) <= self.num_gpus), default=sizes[0])
                ladder = tuple(modes[g] for g in sizes)
                found.append(Ladder(j, jobs[j].release, ladder, modes[fair].duration_s))
        return found

    def row_at(self, r: int, levels: Mapping[int, int]) -> int:
        """The row of the same job in the same mode with its dataset cached at its level."""
        row = self.starts.rows[r]
        return self.row_of[row.job, row.mode.name, levels.get(row.dataset, 0)]

    def storage_cost(self, schedule: Schedule, levels: Mapping[int, int]) -> float:
        """What bandwidth and cache cost if datasets are cached at these levels for the jobs of a schedule."""
        (storage,), used = schedule.storage, np.zeros(schedule.num_slots)
        for step in schedule.chosen.values():
            row = self.starts.rows[self.row_at(step.row, levels)]
            used[step.slot : step.slot + row.duration] += row.link_rate
        part = self.instance.cache_levels
        gb = math.fsum(self.instance.datasets[d].size * level / part for d, level in levels.items())
        cache = gb * storage.site.storage.cache_price * storage.hours
        return cache + float(storage.bandwidth_cost(used.max(initial=0.0)))


@dataclass(frozen=True, eq=False)
class Laid:
    """Jobs on nodes, nothing cached."""

    schedule: Schedule
    nodes: float
    """What all is spent on but storage."""
    welfare: float


@dataclass(frozen=True, eq=False)
class Paid:
    """The same with datasets cached at some levels, and what is spent on it all."""

    laid: Laid
    levels: dict[int, int]
    spent: float


class Scheduler:
    """One of them on one instance. What jobs do after so many steps serves all rules and budgets."""

    def __init__(self, shop: Shop, name: str):
        self.shop, self.name = shop, name
        self.steps = steps_of(shop.ladders, SCHEDULERS[name], shop.num_gpus)
        self._laid: dict[int, Laid] = {}
        self._paid: dict[tuple[int, str], Paid] = {}

    def within(self, budget: float, rule: str) -> Plan:
        """The plan of as many steps as the budget pays for, checked.

        Bisection finds steps that are paid for with the next one not; then some more are tried, as a raise may free
        nodes sooner. Of all that were looked at and are paid for the plan that is worth most is taken: this favours the
        rival.
        """
        goal = Goal("welfare", budget)
        low, high = 0, len(self.steps) + 1
        best = self.paid(0, rule)

        def is_paid(number: int) -> bool:
            nonlocal best
            found = self.paid(number, rule)
            is_within = goal.allows(found.spent)
            if is_within and found.laid.welfare > best.laid.welfare:
                best = found
            return is_within

        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if is_paid(middle) else (low, middle)
        for number in range(high + 1, min(high + AHEAD, len(self.steps)) + 1):
            is_paid(number)
        return self._plan(best, rule, budget)

    def paid(self, number: int, rule: str) -> Paid:
        """What so many steps come to with a rule of storage."""
        if (number, rule) not in self._paid:
            laid = self.lay(number)
            levels = cached_levels(self.shop.instance, laid.schedule, rule)
            spent = laid.nodes + self.shop.storage_cost(laid.schedule, levels)
            self._paid[number, rule] = Paid(laid, levels, spent)
        return self._paid[number, rule]

    def lay(self, number: int) -> Laid:
        """So many steps on nodes; a job that finds no room is not run."""
        if number not in self._laid:
            shop, taken = self.shop, Counter(self.steps[:number])
            modes = {ladder.job: ladder.modes for ladder in shop.ladders}
            schedule = Schedule(shop.starts)
            for j, count in taken.items():  # in the order of admission
                r = shop.row_of[j, modes[j][count - 1].name, 0]
                row = shop.starts.rows[r]
                offer = schedule.pools[row.pool].offer(row.mode, row.slots)
                fits = np.flatnonzero(np.isfinite(offer.cost))
                if len(fits):
                    schedule.put(j, Step(r, int(row.slots[fits[0]]), offer.spot(int(fits[0])), 0.0))
            spent = spent_of(cost_of(schedule).costs)
            welfare = welfare_at(shop.instance, {j: schedule.completion(j) for j in schedule.chosen})
            self._laid[number] = Laid(schedule, spent - shop.storage_cost(schedule, {}), welfare)
        return self._laid[number]

    def _plan(self, paid: Paid, rule: str, budget: float) -> Plan:
        shop, schedule = self.shop, Schedule(self.shop.starts)
        for j, step in paid.laid.schedule.chosen.items():
            schedule.put(j, replace(step, row=shop.row_at(step.row, paid.levels)))
        name = f"{self.name}+{rule}"
        plan = plan_of(schedule, status="feasible", engine=name, seed=0, versions=versions(), dual_bound=None)
        goal = {"objective": "welfare", "budget": budget, "welfare": paid.laid.welfare}
        plan = plan.model_copy(update=goal)
        must_pass(shop.instance, plan)
        return plan


def cached_levels(instance: Instance, schedule: Schedule, rule: str) -> dict[int, int]:
    """At which level each dataset is cached by a rule, for the jobs of a schedule in their modes, all at once."""
    modes: list[Mode | None] = [None] * len(instance.jobs)
    for j, step in schedule.chosen.items():
        modes[j] = schedule.starts.rows[step.row].mode
    levels: dict[int, int] = {}
    for demand in demands(instance, modes):
        fractions = BASELINES[rule](demand.problem, instance.cache_levels == 1)
        rounded = rounded_to_levels(fractions, demand.problem, instance.cache_levels)
        levels |= {instance.dataset_index[name]: int(n) for name, n in zip(demand.datasets, rounded, strict=True)}
    return levels


def rounded_to_levels(fractions: np.ndarray, problem: CacheProblem, levels: int) -> np.ndarray:
    """Fractions in whole levels: rounded down, then up where most was lost, as long as the cache has room."""
    exact = fractions * levels
    whole = np.floor(exact + ROUNDING)
    for d in np.argsort(whole - exact, kind="stable"):
        raised = whole + (np.arange(len(whole)) == d)
        if exact[d] - whole[d] > ROUNDING and problem.fits(float(problem.sizes @ raised) / levels):
            whole = raised
    return whole
