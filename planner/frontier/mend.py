"""Plans between two prices: a plan that spends too much gives jobs up, one that has money left takes some in.

At one price alike jobs all run or none does, so plans made at prices leave dents between them. Jobs that may be
rejected are given up in the order of what they are worth for the money that they save (those of a node together too, as
a node is paid whole), then what is left of the budget is spent on others, the most worth for the money first (Dantzig,
1957).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from models.goal import Goal, service_of, spent_of
from models.precedence import descendants, precedence_graph
from planner.engines.assemble import cost_of
from planner.engines.schedule import Schedule, Step

if TYPE_CHECKING:
    import networkx

FREE = 1e-12
"""Money below which nothing is saved or spent."""


@dataclass(eq=False)
class Mend:
    """A schedule over starts at a price, to be brought near a budget in the instance's own money."""

    schedule: Schedule
    price: float
    goal: Goal
    stop: Callable[[], bool]

    def run(self) -> bool:
        """Give up and take in; whether the schedule then keeps to the budget."""
        self._give_up()
        if not self.goal.allows(self._state()[0]):
            return False
        self._take_in()
        return True

    def _state(self) -> tuple[float, float]:
        """What the schedule spends, and what service loses."""
        costs = cost_of(self.schedule).costs
        return spent_of(costs) / self.price, service_of(costs)

    def _with_followers(self, jobs: Iterable[int], graph: networkx.DiGraph) -> frozenset[int]:
        """The jobs that run, and all that run after them; empty where one of these must run."""
        found = {k for j in jobs for k in (j, *descendants(graph, j))} & self.schedule.chosen.keys()
        every = [self.schedule.instance.jobs[j] for j in found]
        must_run = any(job.reject_cost is None or job.running is not None for job in every)
        return frozenset() if must_run else frozenset(found)

    def _groups(self) -> set[frozenset[int]]:
        """What may be given up together: a job, or all that runs on a node."""
        by_node: dict[tuple[int, int], list[int]] = {}
        for j, step in self.schedule.chosen.items():
            row = self.schedule.starts.rows[step.row]
            for node in self.schedule.pools[row.pool].nodes_of(row.mode, step.spot):
                by_node.setdefault((row.pool, node), []).append(j)
        singles = ([j] for j in self.schedule.chosen)
        graph = precedence_graph(self.schedule.instance)
        return {self._with_followers(jobs, graph) for jobs in (*singles, *by_node.values())} - {frozenset()}

    def _give_up(self) -> None:
        spent, service = self._state()
        if self.goal.allows(spent):
            return
        queue = [(self._rate(jobs, spent, service), jobs) for jobs in map(sorted, self._groups()) if not self.stop()]
        heapq.heapify(queue)
        while queue and not self.goal.allows(spent) and not self.stop():
            _, jobs = heapq.heappop(queue)
            jobs = [j for j in jobs if j in self.schedule.chosen]
            rate = self._rate(jobs, spent, service) if jobs else math.inf
            if math.isinf(rate):
                continue
            if queue and rate > queue[0][0]:  # what has been given up since has made it dearer
                heapq.heappush(queue, (rate, jobs))
                continue
            for j in jobs:
                self.schedule.drop(j)
            spent, service = self._state()

    def _rate(self, jobs: list[int], spent: float, service: float) -> float:
        """What giving some jobs up loses for the money that it saves; infinite where it saves none."""
        steps = [(j, self.schedule.drop(j)) for j in jobs]
        less, more = self._state()
        for j, step in steps:
            self.schedule.put(j, step)
        return (more - service) / (spent - less) if spent - less > FREE else math.inf

    def _take_in(self) -> None:
        missing = [j for j in range(len(self.schedule.instance.jobs)) if j not in self.schedule.chosen]
        offers = {j: step for j in missing if (step := self._offer(j)) is not None and not self.stop()}
        service = self._state()[1]
        for j in sorted(offers, key=lambda j: -self._worth(j, offers[j])):
            step = None if self.stop() else self._offer(j)
            if step is None:
                continue
            self.schedule.put(j, step)
            spent, less = self._state()
            if self.goal.allows(spent) and less < service:
                service = less
            else:
                self.schedule.drop(j)

    def _offer(self, j: int) -> Step | None:
        """The cheapest start of a job whose predecessors run."""
        earliest = self.schedule.ready(j)
        return None if earliest is None else self.schedule.cheapest(j, earliest)

    def _worth(self, j: int, step: Step) -> float:
        """What running a job saves of service for the money that it takes."""
        lost = service_of(self.schedule.terms(step))
        paid = max(FREE, (step.cost - lost) / self.price)
        return ((self.schedule.instance.jobs[j].reject_cost or 0.0) - lost) / paid
