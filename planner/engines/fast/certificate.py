"""The best bound so far in every branch, and the prices that gave it."""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass

import numpy as np

from planner.engines.fast.bound import Lagrangian, Value
from planner.engines.fast.branches import Branch, branches_of
from planner.engines.fast.limits import Limits
from planner.engines.fast.pricing import Prices, Pricing
from planner.engines.fast.table import Table

# So many branches learn from prices that were made for another.
PUPILS = 12


@dataclass(eq=False)
class Centre:
    """The best bound of a branch so far, and the prices that gave it."""

    branch: Branch
    bound: float
    prices: Prices
    value: Value
    depth: int = 0
    climbed: bool = False
    solved: bool = False


class Certificate:
    """What is proven of a table: at any prices that are tried, every branch learns from them."""

    def __init__(self, table: Table):
        self.table = table
        self.limits = Limits.of(table)
        self.pricing = Pricing(table, self.limits)
        self.lagrangian = Lagrangian(table, self.limits)
        prices = self._first_prices()
        value = self.lagrangian.value(self.pricing.cheapest(prices), prices)
        self.centres = [
            Centre(branch, value.bound(branch), prices, value) for branch in branches_of(table, self.limits)
        ]

    @property
    def bound(self) -> float:
        """A lower bound on the cost of every plan."""
        return min(centre.bound for centre in self.centres)

    @property
    def lowest(self) -> Centre:
        """The branch whose bound is the lowest."""
        return min(self.centres, key=lambda centre: centre.bound)

    def learn(self, prices: Prices, value: Value) -> None:
        """Keep prices in the branches where they prove more than was known; those with the lowest bounds learn."""
        for centre in heapq.nsmallest(PUPILS, self.centres, key=lambda centre: centre.bound):
            bound = value.bound(centre.branch)
            if bound > centre.bound:
                centre.bound, centre.prices, centre.value = bound, prices, value

    def split(self, centre: Centre) -> bool:
        """Put a branch's children in its place: one for each choice of the dataset whose caching matters most of those
        that are open; whether there was one."""
        best, most = -1, 0.0
        for k, values in enumerate(centre.value.by_choice):
            if k not in centre.branch.fixed and len(values) > 1:
                # What is at stake where both choices are near: the size of what is read, not the difference.
                stake = float(np.ptp(self.lagrangian.cachings.datasets[k].sizes.sum(axis=1)))
                stake /= 1.0 + abs(float(np.ptp(np.sort(values)[:2]))) / (1e-9 + abs(float(values.min())))
                if stake > most:
                    best, most = k, stake
        if best < 0:
            return False
        self.centres.remove(centre)
        for branch in centre.branch.children(best, len(centre.value.by_choice[best])):
            bound = max(centre.bound, centre.value.bound(branch))
            if math.isfinite(bound):
                self.centres.append(Centre(branch, bound, centre.prices, centre.value, centre.depth + 1))
        return True

    def _first_prices(self) -> Prices:
        """A node's price by its slices, and no price of what may be plentiful."""
        table, limits = self.table, self.limits.limits
        prices = np.zeros((len(limits), table.num_slots))
        for q, limit in enumerate(limits):
            if limit.kind == "node" and limit.name == "slices":
                prices[q] = table.pools.price[limit.owner, : table.num_slots] / limit.capacity
        pairs = np.zeros((len(self.pricing.pairs), table.num_slots))
        return Prices(prices, pairs, np.zeros(len(table.storage.hours)))
