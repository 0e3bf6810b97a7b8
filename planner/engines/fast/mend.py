"""What runs brought within a budget: jobs are given up where too much is spent, and taken in where money is left.

Jobs that may be rejected are given up in the order of what they are worth for the money that they save (those of a node
together too, as a node is paid whole), then what is left of the budget is spent on others, the most worth for the money
first (Dantzig, 1957).
"""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from planner.engines.fast.occupancy import Occupancy

FREE = 1e-12
"""Money below which nothing is saved or spent."""
TRIES = 16
"""Starts looked at for a job that is taken in."""


@dataclass(eq=False)
class Mend:
    """Jobs on nodes, of which no more is to be spent than is allowed."""

    occupancy: Occupancy
    stop: Callable[[], bool]

    def run(self) -> bool:
        """Give up and take in; whether no more is then spent than is allowed."""
        occupancy = self.occupancy
        self._give_up()
        if occupancy.spent <= occupancy.allowed:
            self._take_in()
        occupancy.commit()
        return not occupancy.missing and occupancy.spent <= occupancy.allowed

    def _groups(self) -> set[frozenset[int]]:
        """What may be given up together, with all that runs after it: a job, or all that runs on a node."""
        occupancy = self.occupancy
        running = np.flatnonzero(occupancy.row >= 0).tolist()
        by_node: dict[int, list[int]] = defaultdict(list)
        for j in running:
            for node in occupancy.nodes_of(j).tolist():
                by_node[node].append(j)
        singles = ([j] for j in running)
        return {self._with_followers(jobs) for jobs in (*singles, *by_node.values())} - {frozenset()}

    def _with_followers(self, jobs: list[int]) -> frozenset[int]:
        """Jobs that run, and all that run after them; empty where one of these must run."""
        table = self.occupancy.table
        found = [j for j in table.with_successors(jobs) if self.occupancy.row[j] >= 0]
        every = (table.instance.jobs[j] for j in found)
        must_run = any(job.reject_cost is None or job.running is not None for job in every)
        return frozenset() if must_run else frozenset(found)

    def _give_up(self) -> None:
        occupancy = self.occupancy
        if occupancy.spent <= occupancy.allowed:
            return
        queue = [(self._rate(jobs), jobs) for jobs in map(sorted, self._groups()) if not self.stop()]
        heapq.heapify(queue)
        while queue and occupancy.spent > occupancy.allowed and not self.stop():
            _, jobs = heapq.heappop(queue)
            jobs = [j for j in jobs if occupancy.row[j] >= 0]
            rate = self._rate(jobs) if jobs else math.inf
            if math.isinf(rate):
                continue
            if queue and rate > queue[0][0]:  # what has been given up since has made it dearer
                heapq.heappush(queue, (rate, jobs))
                continue
            occupancy.drop(jobs)

    def _rate(self, jobs: list[int]) -> float:
        """What giving some jobs up loses for the money that it saves; infinite where it saves none."""
        spent, service = self._tried(lambda: self.occupancy.drop(jobs))
        return service / -spent if -spent > FREE else math.inf

    def _tried(self, change: Callable[[], object]) -> tuple[float, float]:
        """What a change adds to what is spent, and to what service loses; it is taken back."""
        occupancy = self.occupancy
        spent, service = occupancy.spent, occupancy.service
        occupancy.mark()
        change()
        added = occupancy.spent - spent, occupancy.service - service
        occupancy.undo()
        return added

    def _take_in(self) -> None:
        occupancy = self.occupancy
        worth = {j: self._worth(j) for j in np.flatnonzero(occupancy.row < 0).tolist() if not self.stop()}
        for j in sorted(worth, key=lambda j: -worth[j]):
            if self.stop():
                return
            service = occupancy.service
            occupancy.mark()
            self._insert(j)
            if occupancy.spent > occupancy.allowed or occupancy.service >= service:
                occupancy.undo()

    def _insert(self, j: int) -> bool:
        return self.occupancy.recreate([j], tries=TRIES)

    def _worth(self, j: int) -> float:
        """What running a job saves of service for the money that it takes."""
        spent, service = self._tried(lambda: self._insert(j))
        return -service / max(FREE, spent)
