"""The best bound so far in every branch, and the prices that gave it."""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass, field

import numpy as np

from planner.engines.fast.bound import Lagrangian, Value
from planner.engines.fast.branches import Branch, branches_of
from planner.engines.fast.cut_rows import Basis
from planner.engines.fast.limits import Limits
from planner.engines.fast.pricing import Prices, Pricing
from planner.engines.fast.splits import splits_of
from planner.engines.fast.table import Table

# So many branches learn from prices that were made for another.
PUPILS = 12
MISSED = 2e-5
"""Part of a bound that the chord of a tariff may miss before it is parted."""


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
    cut: int = 0
    """Rounds of cuts made for it."""
    basis: Basis | None = None
    """From which its LP goes on."""
    weights: dict[tuple[int, int], float] = field(default_factory=dict)
    """The LP's solution, where it is solved: parts of starts, and the nodes that are on, shape (P, T)."""
    nodes: np.ndarray | None = None

    def learn(self, prices: Prices, value: Value) -> None:
        """Keep prices that prove more than was known."""
        bound = value.bound(self.branch)
        if bound > self.bound:
            self.bound, self.prices, self.value = bound, prices, value


class Certificate:
    """What is proven of a table: at any prices that are tried, every branch learns from them."""

    def __init__(self, table: Table):
        self.table = table
        self.limits = Limits.of(table)
        self.pricing = Pricing(table, self.limits)
        self.lagrangian = Lagrangian(self.pricing)
        prices = self._first_prices()
        value = self.lagrangian.value(self.pricing.cheapest(prices), prices)
        self.closed = math.inf
        """The lowest bound of those that were closed."""
        self.centres = [
            Centre(branch, value.bound(branch), prices, value) for branch in branches_of(table, self.limits)
        ]

    @property
    def bound(self) -> float:
        """A lower bound on the cost of every plan."""
        return min(self.closed, self.lowest.bound)

    @property
    def lowest(self) -> Centre:
        """The branch whose bound is the lowest."""
        return min(self.centres, key=lambda centre: centre.bound)

    def learn(self, prices: Prices, value: Value) -> None:
        """Keep prices in the branches where they prove more than was known; those with the lowest bounds learn."""
        for centre in heapq.nsmallest(PUPILS, self.centres, key=lambda centre: centre.bound):
            centre.learn(prices, value)

    def split(self, centre: Centre) -> bool:
        """Put a branch's children in its place: one for each choice of the dataset whose caching matters most of those
        that are open; whether there was one."""
        best, most = -1, 0.0
        by_choice = centre.value.of_jobs(centre.branch)[1]
        for k, values in enumerate(by_choice):
            if k not in centre.branch.fixed and len(values) > 1:
                # What is at stake where both choices are near: the size of what is read, not the difference.
                stake = float(np.ptp(self.lagrangian.cachings.datasets[k].sizes.sum(axis=1)))
                stake /= 1.0 + abs(float(np.ptp(np.sort(values)[:2]))) / (1e-9 + abs(float(values.min())))
                if stake > most:
                    best, most = k, stake
        if best < 0:
            return False
        children = centre.branch.children(best, len(by_choice[best]))
        return self._replace(centre, [(branch, centre.value) for branch in children])

    def narrow(self, centre: Centre) -> bool:
        """Put two branches with narrower stretches of bandwidth in a branch's place; whether a chord of it misses
        enough of the tariff."""
        branches = centre.branch.narrowed(MISSED * max(centre.bound, 0.0))
        return bool(branches) and self._replace(centre, [(branch, centre.value) for branch in branches])

    def part(self, centre: Centre) -> bool:
        """Put two parts in a branch's place, split where its LP solution is most in doubt; whether it is anywhere."""
        found = splits_of(self.table, centre.weights)
        if not found:
            return False
        children = []
        for branch in centre.branch.parts(found[0], self.table):
            starts = self.pricing.cheapest(centre.prices, branch.windows)
            children.append((branch, self.lagrangian.value(starts, centre.prices)))
        return self._replace(centre, children)

    def _replace(self, centre: Centre, children: list[tuple[Branch, Value]]) -> bool:
        """Put children in a branch's place, each with a value whose starts were priced for it or for a branch that
        holds it; those without any plan are left out."""
        bounds = [max(centre.bound, value.bound(branch)) for branch, value in children]
        if not np.isfinite(bounds).any():
            return False
        self.centres.remove(centre)
        for (branch, value), bound in zip(children, bounds, strict=True):
            if math.isfinite(bound):
                climbed = branch.windows is not None  # it comes from an LP, whose prices are better
                child = Centre(branch, bound, centre.prices, value, centre.depth + 1, climbed, basis=centre.basis)
                self.centres.append(child)
        return True

    def close(self, cost: float) -> None:
        """Forget the branches that hold no plan below a cost, but for the lowest: their bounds count on."""
        lowest = self.lowest
        over = [centre for centre in self.centres if centre.bound >= cost and centre is not lowest]
        if over:
            self.closed = min(self.closed, *(centre.bound for centre in over))
            self.centres = [centre for centre in self.centres if centre.bound < cost or centre is lowest]

    def _first_prices(self) -> Prices:
        """A node's price by its slices, and no price of what may be plentiful."""
        table, limits = self.table, self.limits.limits
        prices = np.zeros((len(limits), table.num_slots))
        for q, limit in enumerate(limits):
            if limit.kind == "node" and limit.name == "slices":
                prices[q] = table.pools.price[limit.owner, : table.num_slots] / limit.capacity
        pairs = np.zeros((len(self.pricing.pairs), table.num_slots))
        return Prices(prices, pairs, np.zeros(len(table.storage.hours)))
