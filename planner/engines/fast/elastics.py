"""Elastic jobs in the Lagrangian: what the cheapest run of each costs at least under the prices, and what it uses.

A piece costs in each slot what a start of one slot would; the least over all runs is bounded by prices of the work
(`run_kernels`). How often a job may change is not asked for, which can only lower the value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from planner.engines.fast.cachings import Cachings
from planner.engines.fast.compiled import compiled, kernel, sources
from planner.engines.fast.limits import Priced
from planner.engines.fast.run_kernels import DONE, Room, Task, both_runs, price_work, room_for
from planner.engines.fast.table import Table


@dataclass(frozen=True, eq=False)
class ElasticJob:
    """The pieces of a job, and which of them it may use where just so much of its dataset is cached."""

    job: int
    rows: np.ndarray
    allowed: np.ndarray
    """Shape (choices of its dataset, pieces)."""


class Elastics:
    """The elastic jobs of a table."""

    def __init__(self, table: Table, cachings: Cachings):
        self.table = table
        choices = {int(j): cachable.choices for cachable in cachings.datasets for j in cachable.jobs}
        free = set(cachings.free)
        self.jobs: list[ElasticJob] = []
        for j in table.elastic:
            rows = table.pieces_of(j)
            pairs = list(zip(table.rows.site[rows].tolist(), table.rows.level[rows].tolist(), strict=True))
            of_job = choices.get(j, ((),))
            allowed = [[level == 0 or (s, level) in choice or j in free for s, level in pairs] for choice in of_job]
            self.jobs.append(ElasticJob(j, rows, np.array(allowed, dtype=np.bool_).reshape(len(of_job), len(rows))))
        widest = max((len(elastic.rows) for elastic in self.jobs), default=0)
        self._room = room_for(widest, table.num_slots)
        self._cost = np.empty((widest, table.num_slots))

    def least(self, priced: Priced, usage: np.ndarray | None = None) -> list[np.ndarray]:
        """For each of `jobs` what its runs cost at least, by choice of caching; infinite where it has none. What those
        with one choice only use of each limit in each slot is added to `usage`, shape (Q, T)."""
        nothing = np.zeros((0, 0))
        return [
            self._price(priced, elastic, -1, nothing)
            if usage is None or len(elastic.allowed) > 1
            else self._price(priced, elastic, 0, usage)
            for elastic in self.jobs
        ]

    def use(self, priced: Priced, choice_of: dict[int, int], usage: np.ndarray) -> None:
        """Add what the cheapest runs of those with several choices use, in the given ones, by job."""
        for elastic in self.jobs:
            if len(elastic.allowed) > 1:
                self._price(priced, elastic, choice_of.get(elastic.job, 0), usage)

    def _price(self, priced: Priced, elastic: ElasticJob, choice: int, usage: np.ndarray) -> np.ndarray:
        jobs, j, values = self.table.jobs, elastic.job, np.full(len(elastic.allowed), np.inf)
        _price_job(
            priced, j, elastic.rows, elastic.allowed, self.table.rows.work, float(jobs.restart[j]), bool(jobs.runs[j]),
            float(jobs.reject[j]), self._cost, self._room, choice, values, usage,
        )  # fmt: skip
        return values


@kernel
def _slot_costs(a: Priced, rows: np.ndarray, allowed: np.ndarray, cost: np.ndarray) -> None:
    """What each piece costs in each slot; infinite where it may not run."""
    num_slots = cost.shape[1]
    for m in range(len(rows)):
        cost[m, :] = np.inf
        if not allowed[m]:
            continue
        r = rows[m]
        p, mask = a.rows.pool[r], a.rows.mask[r]
        for t in range(max(0, a.rows.first[r]), min(num_slots, a.rows.last[r] + 1)):
            if mask < 0 or a.masks[mask, t]:
                cost[m, t] = a.rows.fixed[r] + a.rows.busy[r] * (a.energy[p, t + 1] - a.energy[p, t])
        for k in range(a.uses.start[r], a.uses.start[r + 1]):
            q, amount = a.uses.limit[k], a.uses.amount[k]
            for t in range(num_slots):
                cost[m, t] += amount * (a.sums[q, t + 1] - a.sums[q, t])


@kernel
def _add_usage(a: Priced, rows: np.ndarray, task: Task, e: int, room: Room, usage: np.ndarray) -> None:
    """What the slow and the fast run use, in parts that do just all of the work together."""
    both_runs(task, e, room)
    slow, fast = room.sums[0, 1, e], room.sums[1, 1, e]
    part = (fast - DONE) / (fast - slow) if slow < DONE < fast else 0.0
    for k in range(2):
        weight = part if k == 0 else 1.0 - part
        for t in range(task.first, e):
            m = room.paths[k, t]
            if m < 0 or weight <= 0:
                continue
            for u in range(a.uses.start[rows[m]], a.uses.start[rows[m] + 1]):
                usage[a.uses.limit[u], t] += weight * a.uses.amount[u]


def _entry() -> Callable[..., int]:
    stamp = sources("compiled", "run_kernels", "elastics")

    @compiled
    def price_job(
        a: Priced, j: int, rows: np.ndarray, allowed: np.ndarray, every_work: np.ndarray, restart: float, runs: bool,
        reject: float, every_cost: np.ndarray, room: Room, choice: int, values: np.ndarray, usage: np.ndarray,
    ) -> int:  # fmt: skip
        """The least cost of the runs of a job for each choice of caching, or what its run uses in one choice."""
        num_slots, number = every_cost.shape[1], len(rows)
        cost, work, kept = every_cost[:number], np.empty(number), np.empty(number, dtype=np.bool_)
        for m in range(number):
            work[m], kept[m] = every_work[rows[m]], a.rows.kept[rows[m]] != 0
        fresh = np.full(num_slots + 1, restart if runs else 0.0)
        if a.begin.shape[1] > 1:
            fresh += a.begin[j]
        task = Task(cost, work, kept, fresh, a.end[j], restart, 0, num_slots)
        for c in range(len(allowed)):
            if choice >= 0 and c != choice:
                continue
            _slot_costs(a, rows, allowed[c], cost)
            e = price_work(task, room)
            if e < 0:
                continue
            values[c] = room.proven[e, 0] + task.late[e]
            if choice >= 0 and values[c] < reject:
                _add_usage(a, rows, task, e, room, usage)
        return stamp

    return price_job


_price_job = _entry()
