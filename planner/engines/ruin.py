"""Ruin and recreate (Schrimpf et al., 2000) on nodes: take a few jobs that stand in each other's way off the
schedule and put them back one by one where they are cheapest now.

It sees nodes and the whole cost, so it mends what pool-level prices cannot know: fragments of nodes, blocks paid for
nothing, a cache with one reader left. Work is counted in iterations, not in seconds, so that the same seed gives the
same plan.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable

from models.precedence import descendants, precedence_graph, topological_order
from planner.engines import clock, interrupts
from planner.engines.assemble import cost_of
from planner.engines.policies.listing import ORDERS, insert
from planner.engines.schedule import Schedule, Step

# A ruined part: large enough to rearrange two nodes, small enough to be tried dozens of times a second.
FEWEST, MOST = 2, 10
# Record-to-record travel (Dueck, 1993): a schedule this much dearer than the best is still walked on from, less at
# the end.
TOLERANCE = 0.004
# How many of the moves are group moves on storage, where there is any.
STORAGE_MOVES = 0.3


class Ruin:
    """The search over one schedule; `run` leaves the best schedule found in place."""

    def __init__(self, schedule: Schedule, seed: int):
        self.schedule = schedule
        self.random = random.Random(seed)
        self.graph = precedence_graph(schedule.instance)
        self.topological = {j: k for k, j in enumerate(topological_order(schedule.instance))}
        self.orders = [
            {j: order(schedule.starts, j) for j in range(len(schedule.instance.jobs))} for order in ORDERS.values()
        ]

        self.readers: dict[tuple[int, int, int], set[int]] = defaultdict(set)
        for row in schedule.starts.rows:
            if row.dataset >= 0:
                self.readers[row.dataset, row.site, row.level].add(row.job)
        self.rates = sorted({row.link_rate for row in schedule.starts.rows})

    def run(self, iterations: int, *, deadline: float | None = None) -> float:
        """The cost of the best schedule after so many iterations, or at the deadline."""
        best = current = cost_of(self.schedule).cost
        kept = dict(self.schedule.chosen)
        for k in range(iterations):
            if deadline is not None and clock.now() > deadline:
                break
            interrupts.safe_point()
            cost = self._step()
            if cost is None:
                continue
            if cost < best * (1 - 1e-9):
                best, kept = cost, dict(self.schedule.chosen)
            if cost <= best * (1 + TOLERANCE * (1 - k / iterations)):
                current = cost
                self._removed.clear()
            else:
                self._undo()
        if current > best:
            self._become(kept)
        return best

    def _step(self) -> float | None:
        """Ruin and recreate once; the new cost, or None where nothing changed or a job found no room (and all is
        undone)."""
        storage = self._choose_storage() if self.readers and self.random.random() < STORAGE_MOVES else None
        jobs = storage if storage is not None else self._choose()
        self._removed: dict[int, Step | None] = {j: self.schedule.chosen.get(j) for j in jobs}
        for j in jobs:
            if j in self.schedule.chosen:
                self.schedule.drop(j)
        keys = self.random.choice(self.orders)
        noise = {j: self.random.random() for j in jobs}
        shuffled = self.random.random() < 0.5
        order = sorted(jobs, key=lambda j: (noise[j],) if shuffled else (keys[j], noise[j]))
        # Predecessors first: a stable order keeps the rest of the shuffle.
        whole = all(insert(self.schedule, j) for j in self._after_predecessors(order))
        for site in self.schedule.storage:
            site.suppose_nothing()
        if not whole or all(self.schedule.chosen.get(j) == step for j, step in self._removed.items()):
            self._undo()
            return None
        return cost_of(self.schedule).cost

    def _choose(self) -> list[int]:
        """A job and those that run nearest to it in time, in its pool first; with all that must run after them."""
        jobs = range(len(self.schedule.instance.jobs))
        seed = self.random.choice(jobs)
        count = self.random.randint(FEWEST, MOST)
        near = sorted(jobs, key=lambda j: (self._distance(seed, j), j))
        # Not just the nearest: each is passed over now and then.
        chosen = [j for j in near if j == seed or self.random.random() < 0.7][:count]
        found = set(chosen)
        for j in chosen:
            found |= descendants(self.graph, j)
        return sorted(found)

    def _choose_storage(self) -> list[int]:
        """A group move: the readers of a dataset, as if it were cached somewhere already or nowhere; or the
        readers of a site, as if more bandwidth were bought already or less could be had.

        One by one no reader would pay for a cache, or give up a peak that the others keep up.
        """
        schedule = self.schedule
        if self.random.random() < 0.5:
            dataset = self.random.choice(sorted({d for d, _, _ in self.readers}))
            _, s, level = self.random.choice(sorted(key for key in self.readers if key[0] == dataset))
            for storage in schedule.storage:
                storage.supposed[dataset] = -1
            if self.random.random() < 0.7:
                schedule.storage[s].supposed[dataset] = level
            chosen = {j for key, jobs in self.readers.items() if key[0] == dataset for j in jobs}
        else:
            s = self.random.choice(sorted({s for _, s, _ in self.readers}))
            storage = schedule.storage[s]
            peak = float(storage.used.max(initial=0.0))
            if self.random.random() < 0.5:
                storage.bought = peak * self.random.uniform(1.0, 2.0) + self.random.choice(self.rates)
            else:
                storage.limit = peak * self.random.uniform(0.3, 1.0)
            rows = {j: schedule.starts.rows[step.row] for j, step in schedule.chosen.items()}
            chosen = {j for j, row in rows.items() if row.site == s and row.link_rate > 0}
        found = set(self.random.sample(sorted(chosen), min(len(chosen), 2 * MOST)))
        for j in list(found):
            found |= descendants(self.graph, j)
        return sorted(found)

    def _distance(self, a: int, b: int) -> float:
        first, second = self.schedule.chosen.get(a), self.schedule.chosen.get(b)
        if first is None or second is None:
            return 0.0 if first is second else 1.0
        rows = self.schedule.starts.rows
        apart = abs(first.slot + rows[first.row].duration / 2 - second.slot - rows[second.row].duration / 2)
        return apart + (0 if rows[first.row].pool == rows[second.row].pool else self.schedule.num_slots / 4)

    def _after_predecessors(self, order: list[int]) -> Iterable[int]:
        if not any(self.graph.in_degree(j) for j in order):
            return order
        return sorted(order, key=self.topological.__getitem__)

    def _undo(self) -> None:
        for j in self._removed:
            if j in self.schedule.chosen:
                self.schedule.drop(j)
        for j, step in self._removed.items():
            if step is not None:
                self.schedule.put(j, step)
        self._removed = {}

    def _become(self, kept: dict[int, Step]) -> None:
        for j in list(self.schedule.chosen):
            if self.schedule.chosen[j] != kept.get(j):
                self.schedule.drop(j)
        for j, step in kept.items():
            if j not in self.schedule.chosen:
                self.schedule.put(j, step)
