"""The frontier over many budgets: the plans on its lower hull by prices; its dents by the search among plans within
each budget, and by the whole model."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from dataclasses import dataclass

from models.errors import Infeasible
from planner.engines import clock, interrupts
from planner.frontier.explorer import EXCHANGE_SHARE, Explorer
from planner.frontier.tradeoff import Point

MOST_DEPTH = 5
MOVES = 50
"""Moves a job of a search within a budget."""
NEAR = 0.02
"""Plans that spend nearer to each other than this part are not parted further."""
SAME = 1e-4
"""Budgets that differ by no more than this part of them are one."""
ALL_BUT_LEAST = 0.005
"""Part of the least that can be spent, that is worth as much as all that service can lose by it."""


@dataclass(eq=False)
class Sweep:
    """The search for the frontier."""

    explorer: Explorer

    def run(self, number: int, budgets: Sequence[float] | None = None) -> list[float]:
        """Look for plans within each of some budgets, or of so many evenly from the cheapest plan to one without a
        budget; the budgets."""
        with interrupts.held():
            most = self._sweep_prices()
            chosen = self._evenly(number, most.spent) if budgets is None else list(budgets)
            self._search_within(chosen)
            if self.explorer.goes_exact:
                self._fill(chosen)
        return chosen

    def _sweep_prices(self) -> Point:
        """The plans on the lower hull; the one without a budget."""
        ends = [self.explorer.explore_spending(), None if self.explorer.is_over() else self.explorer.explore_freely()]
        found = [point for point in ends if point is not None]
        if not found:
            raise KeyboardInterrupt
        least, most = found[0], found[-1]
        lost = least.service - most.service
        if not self.explorer.is_over() and least.spent > 0 and lost > 0:
            # The cheapest plan of all is one of many that spend as little: the one of the best service is wanted.
            least = self.explorer.explore(max(self.explorer.known.base, lost / (ALL_BUT_LEAST * least.spent))) or least
        self._between(least, most, MOST_DEPTH)
        return most

    def _evenly(self, number: int, most: float) -> list[float]:
        low = self.explorer.cheapest_spends
        high = max(most, low)
        if high - low <= SAME * high:
            return [_to_cents(high)]
        return [_to_cents(low + (high - low) * k / max(1, number - 1)) for k in range(number)]

    def _search_within(self, budgets: Sequence[float]) -> None:
        """From the next dearer plan with jobs given up, and from the best one that keeps to it."""
        explorer, known = self.explorer, self.explorer.known
        moves = explorer.limits.work or MOVES * len(explorer.instance.jobs)
        ends = explorer.deadline(EXCHANGE_SHARE if explorer.goes_exact else 1.0)
        for k, budget in enumerate(sorted(budgets, key=known.gap, reverse=True)):
            half = None if ends is None else (ends - clock.now()) / (len(budgets) - k) / 2
            price = known.price(budget)
            for find in (known.next_dearer, known.best):
                point = find(budget)
                if explorer.is_over() or price is None or explorer.is_proven(budget):
                    break
                if point is not None:
                    explorer.search_within(point, budget, price, moves, None if half is None else clock.now() + half)

    def _fill(self, budgets: Sequence[float]) -> None:
        """The whole model for the budgets of which least is proven, in equal parts of the time that is left."""
        for k, budget in enumerate(sorted(budgets, key=self.explorer.known.gap, reverse=True)):
            if self.explorer.is_over():
                return
            left = self.explorer.left_s()
            if not self.explorer.is_proven(budget):
                with contextlib.suppress(Infeasible):  # its row says so
                    self.explorer.search_exactly(budget, None if left is None else left / (len(budgets) - k))

    def _has_spent_enough(self) -> bool:
        return self.explorer.is_over() or self.explorer.has_spent(self.explorer.prices_share)

    def _between(self, cheap: Point, dear: Point, depth: int) -> None:
        """The plans on the lower hull between two, by the prices at which two neighbours are equally good."""
        saved, lost = dear.spent - cheap.spent, cheap.service - dear.service
        if depth == 0 or saved <= NEAR * max(1.0, dear.spent) or lost <= 0 or self._has_spent_enough():
            return
        price = max(self.explorer.known.base, lost / saved)
        found = self.explorer.explore(price)
        if found is None:
            return
        if found.at(price) < dear.at(price) * (1 - self.explorer.limits.gap):
            self._between(cheap, found, depth - 1)
            self._between(found, dear, depth - 1)


def _to_cents(money: float) -> float:
    """An amount that is shown whole in a table, and is no less; small and huge ones as they are."""
    return math.ceil(money * 100 - 1e-6) / 100 if 1.0 <= money < 1e12 else money
