"""What nodes cost in a simulated world: the instance's prices, times a factor by pool that may change unforeseen.

A policy knows what prices are now, and takes them to stay so. What is billed in increments is paid as each begins, at
the factor of that moment; what is not, moment by moment.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

from models.domain import Instance
from models.domain.prices import EnergyTariff, HourlyTariff, Price
from models.grid import Meter
from planner.simulation.trace import Repricing

_EARLY = 1e-9
"""Part of an increment by which a change may be later than the increment's start and still be of that moment."""


class Market:
    """Prices of all pools, as they were and as they are known now."""

    def __init__(self, instance: Instance) -> None:
        self._listed = self.known = instance
        """`known`: the instance at the prices of now."""
        self.changes: list[Repricing] = []
        self._meters = [Meter(instance, pool.price) for pool in instance.pools]
        self._steps = [[(-math.inf, 1.0)] for _ in instance.pools]
        """Since when which factor holds, by pool."""

    def change(self, p: int, factor: float, now_s: float) -> None:
        """From now on a pool costs its listed price times a factor."""
        self.changes.append(Repricing(at_s=now_s, pool=self._listed.pools[p].id, factor=factor))
        self._steps[p].append((now_s, factor))
        factors = (steps[-1][1] for steps in self._steps)
        pools = tuple(
            pool if by == 1.0 else pool.model_copy(update={"price": scaled(pool.price, by)})
            for pool, by in zip(self._listed.pools, factors, strict=True)
        )
        self.known = self._listed.altered(pools=pools)

    def cost(self, p: int, since_s: float, billed_s: float) -> float:
        """Money for a node that is on from one time and billed until another; no increment begins later than now."""
        meter = self._meters[p]
        return math.fsum(factor * meter.cost(a, b) for a, b, factor in self._pieces(p, since_s, billed_s))

    def _pieces(self, p: int, since_s: float, billed_s: float) -> Iterator[tuple[float, float, float]]:
        increment, pieces = self._listed.pools[p].billing_increment, []
        for at_s, factor in self._steps[p]:
            if increment > 0 and at_s > since_s:
                at_s = since_s + math.ceil((at_s - since_s) / increment - _EARLY) * increment
            pieces.append((min(max(at_s, since_s), billed_s), factor))
        for (a, factor), (b, _) in itertools.pairwise([*pieces, (billed_s, 1.0)]):
            if a < b:
                yield a, b, factor


def scaled(price: Price, factor: float) -> Price:
    """A price times a factor."""
    if isinstance(price, tuple):
        return tuple(factor * value for value in price)
    if isinstance(price, HourlyTariff):
        windows = tuple(window.model_copy(update={"price": factor * window.price}) for window in price.windows)
        return price.model_copy(update={"default": factor * price.default, "windows": windows})
    assert not isinstance(price, EnergyTariff), "energy has one price"
    return factor * price
