"""What something costs over a time that begins and ends anywhere: prices integrated exactly, not slot by slot."""

from __future__ import annotations

import itertools
import math

from models.domain import Instance
from models.domain.prices import EnergyTariff, HourlyTariff, Price

DAY_S = 86400.0


class Meter:
    """The integral of one price over time, in money: price an hour times hours."""

    def __init__(self, instance: Instance, price: Price):
        self._price, self._slot = price, instance.slot
        start = instance.start
        self._clock = start.hour * 3600.0 + start.minute * 60.0 + start.second
        self._pieces: list[tuple[float, float, float]] = []
        if isinstance(price, HourlyTariff | EnergyTariff):
            edges = {0.0, DAY_S, *(w.since for w in price.windows), *(w.until for w in price.windows)}
            self._pieces = [(a, b, _price_at(price, a)) for a, b in itertools.pairwise(sorted(edges))]
        self._day = math.fsum((b - a) * value for a, b, value in self._pieces)

    def cost(self, start_s: float, end_s: float) -> float:
        """Money from one time after the instance's start to another."""
        price = self._price
        if isinstance(price, tuple):
            return (self._listed(end_s) - self._listed(start_s)) / 3600.0
        if isinstance(price, HourlyTariff | EnergyTariff):
            return (self._spent(self._clock + end_s) - self._spent(self._clock + start_s)) / 3600.0
        return price * (end_s - start_s) / 3600.0

    def _listed(self, seconds: float) -> float:
        """Price seconds of a list, whose last entry goes on."""
        assert isinstance(self._price, tuple)
        whole = min(int(seconds // self._slot), len(self._price) - 1)
        return math.fsum(self._price[:whole]) * self._slot + self._price[whole] * (seconds - whole * self._slot)

    def _spent(self, seconds: float) -> float:
        days, rest = divmod(seconds, DAY_S)
        return days * self._day + math.fsum((min(b, rest) - a) * value for a, b, value in self._pieces if a < rest)


def _price_at(price: HourlyTariff | EnergyTariff, clock: float) -> float:
    """The price at a time of day: of the first window that holds it."""
    for window in price.windows:
        wraps = window.since > window.until
        inside = clock >= window.since or clock < window.until if wraps else window.since <= clock < window.until
        if inside:
            return float(window.price)
    return float(price.default)
