"""The starts that each job would like best under the prices, and how far it is from them."""

from __future__ import annotations

import numpy as np

from planner.engines.fast.occupancy import Occupancy
from planner.engines.fast.pricing import Prices, Pricing

# Starts a job, and in all: enough that hardly any other is ever the best, few enough to be sorted in no time.
MOST_OF_JOB, MOST = 200, 2_000_000


class Guide:
    """Nearly cheapest starts of all jobs at some prices, by ascending cost: those of job j from `start[j]`."""

    def __init__(self, pricing: Pricing, prices: Prices):
        self.pricing = pricing
        # Regret is asked for at every other move; what it reads is made once.
        self.priced = pricing.at(prices)
        number = pricing.table.num_jobs
        most = max(50, min(MOST_OF_JOB, MOST // max(1, number)))
        found = pricing.nearly_cheapest(self.priced, np.full(number, np.finfo(float).max), most)
        self.start, self.row, self.slot, self.cost = found
        has = self.start[:-1] < self.start[1:]
        self.least = np.where(has, self.cost[np.minimum(self.start[:-1], max(0, len(self.cost) - 1))], 0.0)
        for j, values in zip(pricing.table.elastic, pricing.elastics.least(self.priced), strict=True):
            least = float(values.min())
            self.least[j] = least if np.isfinite(least) else 0.0
        reject = pricing.table.jobs.reject
        self.regret_out = np.where(has & np.isfinite(reject), np.maximum(0.0, reject - self.least), 0.0)
        """What the rejection of each job costs more than its cheapest start."""

    def listed(self, j: int) -> slice:
        """Where the starts of a job are."""
        return slice(int(self.start[j]), int(self.start[j + 1]))

    def regret(self, occupancy: Occupancy) -> np.ndarray:
        """What the start of each job, or its rejection, costs more than its cheapest start under the prices, shape
        (J,)."""
        runs, table = occupancy.segments(), self.pricing.table
        regret = self.regret_out.copy()
        each = self.pricing.price_of(self.priced, runs.row, runs.slot, runs.length)
        paid = np.bincount(runs.job, each, minlength=table.num_jobs).astype(float)
        jobs = np.flatnonzero(occupancy.row >= 0)
        changing = jobs[table.rows.work[occupancy.row[jobs]] > 0]
        paid[changing] = (
            paid[changing] + self.priced.end[changing, occupancy.slot[changing] + occupancy.length[changing]]
        )
        regret[jobs] = np.maximum(0.0, paid[jobs] - self.least[jobs])
        return regret
