"""Changes of a schedule that are kept where they lower its cost: what local search and path relinking are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from models.precedence import precedence_graph
from planner.engines.assemble import cost_of
from planner.engines.schedule import Schedule, Step


@dataclass(frozen=True)
class Change:
    """A job goes into the cheapest start of some rows, from a slot on or in that slot only."""

    job: int
    rows: Sequence[int]
    slot: int
    is_exact: bool = False


class Desk:
    """A schedule with its cost, changed job by job."""

    def __init__(self, schedule: Schedule):
        self.schedule, self.starts = schedule, schedule.starts
        self.cost = cost_of(schedule).cost
        self.graph = precedence_graph(schedule.instance)

    def try_changes(self, changes: Sequence[Change], *, always: bool = False) -> float | None:
        """The cost after some changes, which stay where they lower it (or `always`); None where they were undone.

        All jobs concerned are taken off first and put back one after the other, so that they can change places.
        """
        schedule = self.schedule
        before = {change.job: schedule.chosen.get(change.job) for change in changes}
        for j, step in before.items():
            if step is not None:
                schedule.drop(j)
        whole = all(self._put(change) for change in changes) and self._in_order(before)
        cost = cost_of(schedule).cost if whole else float("inf")
        if whole and (always or cost < self.cost * (1 - 1e-9)):
            self.cost = cost
            return cost
        for j, step in before.items():
            if j in schedule.chosen:
                schedule.drop(j)
            if step is not None:
                schedule.put(j, step)
        return None

    def _put(self, change: Change) -> bool:
        schedule, rows = self.schedule, self.starts.rows
        ready = schedule.ready(change.job)
        if ready is None:
            return False
        earliest = max(change.slot, ready)
        if change.is_exact and earliest > change.slot:
            return False
        best: Step | None = None
        for r in change.rows:
            slots = rows[r].slots
            slots = np.intersect1d(slots, [change.slot]) if change.is_exact else slots[slots >= earliest]
            step = schedule.offer(r, slots)
            if step is not None and (best is None or step.cost < best.cost):
                best = step
        if best is not None:
            schedule.put(change.job, best)
        return best is not None

    def _in_order(self, moved: dict[int, Step | None]) -> bool:
        """Whether what runs after the moved jobs still does."""
        chosen = self.schedule.chosen
        return all(
            self.schedule.completion(j) <= chosen[k].slot
            for j in moved
            for k in self.graph.successors(j)
            if k in chosen
        )
