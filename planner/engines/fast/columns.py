"""Column generation under smoothed prices: the dual bound, and the prices that guide the search for plans."""

from __future__ import annotations

from collections.abc import Container

import numpy as np

from planner.engines.fast.certificate import Centre, Certificate
from planner.engines.fast.master import Master, Solved, Start
from planner.engines.fast.pricing import Found
from planner.engines.fast.separation import separate

# Priced is this part of the way from the best prices so far to those of the master (Wentges, 1997): duals of a
# restricted master jump about, and their Lagrangian with them.
STEP = 0.4
# Rows whose cheapest start a job adds in a round, besides that of each variant; and at first.
MORE, FIRST = 2, 8


class Columns:
    """Rounds of master and pricing over all branches of the bandwidth tariffs."""

    def __init__(self, certificate: Certificate):
        self.certificate, self.table = certificate, certificate.table
        self.pricing, self.lagrangian = certificate.pricing, certificate.lagrangian
        self.master = Master(self.table, certificate.limits, self.pricing, self.lagrangian)
        self.entered: Centre | None = None
        self.solved: Solved | None = None

    def enter(self, centre: Centre) -> None:
        """Go to a branch, with starts that are cheap at its best prices."""
        self.entered, self.solved = centre, None
        self.master.enter(centre.branch, centre.basis)
        prices = centre.prices
        self.master.add(self._worthwhile(self.pricing.cheapest(prices, centre.branch.windows), FIRST))

    def round(self, centre: Centre, *, time_limit_s: float | None = None) -> bool:
        """One round in a branch; whether there was anything to do, and time to do it."""
        if centre is not self.entered:
            self.enter(centre)
        solved = self.master.solve(time_limit_s)
        if solved is None:
            return False
        self.solved = solved
        added = 0
        for step in (STEP, 1.0):
            prices = centre.prices.towards(solved.prices, step)
            found = self.pricing.cheapest(prices, centre.branch.windows)
            value = self.lagrangian.value(found, prices)
            if centre.branch.windows is None:
                self.certificate.learn(prices, value)
            else:  # not all starts were priced: it proves nothing elsewhere
                centre.learn(prices, value)
            added = self.master.add(self._worthwhile(found, MORE, solved.of_cached))
            if added:
                break
        return added > 0

    def cut(self, centre: Centre, most: int) -> int:
        """Add the rows on the number of nodes that the LP solution of a branch misses by most; how many there were."""
        if centre.nodes is None:
            return 0
        found = separate(self.pricing.cuts, centre.weights, centre.nodes, most)
        self.master.cut(found)
        return len(found)

    def add_for(self, solved: Solved, settled: Container[int]) -> int:
        """Add starts that are worth it at the prices of the master, but for jobs that are settled; how many."""
        windows = None if self.entered is None else self.entered.branch.windows
        found = self.pricing.cheapest(solved.prices, windows)
        starts = self._worthwhile(found, MORE, solved.of_cached)
        return self.master.add((r, t) for r, t in starts if int(self.table.rows.job[r]) not in settled)

    def gap_of_master(self) -> float:
        """How far the bound of the branch that was solved last may be from the LP's value, in parts of it."""
        if self.solved is None or self.entered is None:
            return float("inf")
        value = self.solved.value
        return (value - self.entered.bound) / max(abs(value), 1e-12)

    def _worthwhile(self, found: Found, more: int, of_cached: np.ndarray | None = None) -> list[Start]:
        """For each job its cheapest start of each variant that the branch leaves, and those of a few more rows."""
        assert self.entered is not None
        rows, variants = self.table.rows, self.lagrangian.variant_of_row
        cost = found.cost + self._barred(self.entered)[rows.job, variants]
        if of_cached is not None:
            cost = cost + of_cached[rows.job, variants]
        order = np.lexsort((cost, rows.job))
        order = order[np.isfinite(cost[order])]
        chosen = [order[_rank(rows.job[order]) <= more]]
        for v in range(1, self.lagrangian.num_variants):
            some = order[variants[order] == v]
            chosen.append(some[_rank(rows.job[some]) == 0])
        return [(int(r), int(found.slot[r])) for part in chosen for r in part]

    def _barred(self, centre: Centre) -> np.ndarray:
        """Infinite for variants that a branch has decided against, else 0, shape (J, V)."""
        barred = np.zeros((self.table.num_jobs, self.lagrangian.num_variants))
        for k, c in centre.branch.fixed.items():
            cachable = self.lagrangian.cachings.datasets[k]
            barred[cachable.jobs, 1:] = np.inf
            for pair in cachable.choices[c]:
                barred[cachable.jobs, self.lagrangian.variant[pair]] = 0.0
        return barred


def _rank(jobs: np.ndarray) -> np.ndarray:
    """The place of each entry among those of its job, from 0; entries of a job stand together."""
    if not len(jobs):
        return np.zeros(0, dtype=np.int64)
    begins = np.flatnonzero(np.concatenate([[True], jobs[1:] != jobs[:-1]]))
    return np.arange(len(jobs)) - np.repeat(begins, np.diff([*begins, len(jobs)]))
