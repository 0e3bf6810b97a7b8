"""What a price an hour comes to over a time that begins and ends anywhere: cut wherever it may change, and added up."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator

from models.domain.instance import Instance
from models.domain.prices import EnergyTariff, HourlyTariff, Price

DAY_S = 86400.0


def integral(instance: Instance, price: Price, start_s: float, end_s: float) -> float:
    """Money from one time to another, in seconds after the start."""
    if isinstance(price, tuple):
        edges, at = _of_list(price, instance.slot, end_s)
    elif isinstance(price, HourlyTariff | EnergyTariff):
        edges, at = _of_day(price, instance, start_s, end_s)
    else:
        return price * (end_s - start_s) / 3600.0
    cuts = [start_s, *sorted(t for t in edges if start_s < t < end_s), end_s]
    return math.fsum((b - a) * at((a + b) / 2) for a, b in itertools.pairwise(cuts)) / 3600.0


def _of_list(price: tuple[float, ...], slot: float, end_s: float) -> tuple[Iterator[float], Callable[[float], float]]:
    """One price a slot; the last goes on."""

    def at(moment: float) -> float:
        return price[min(int(moment // slot), len(price) - 1)]

    return (k * slot for k in range(1, min(len(price), int(end_s // slot) + 1))), at


def _of_day(
    price: HourlyTariff | EnergyTariff, instance: Instance, start_s: float, end_s: float
) -> tuple[Iterator[float], Callable[[float], float]]:
    """Daily windows; the first that holds a moment wins."""
    clock = instance.start
    offset = clock.hour * 3600.0 + clock.minute * 60.0 + clock.second
    cuts = sorted({0.0, *(w.since for w in price.windows), *(w.until for w in price.windows)})
    days = range(int((offset + start_s) // DAY_S), int((offset + end_s) // DAY_S) + 1)

    def at(moment: float) -> float:
        now = (offset + moment) % DAY_S
        for window in price.windows:
            since, until = window.since, window.until
            if since <= now < until or (since > until and (now >= since or now < until)):
                return float(window.price)
        return float(price.default)

    return (day * DAY_S + cut - offset for day in days for cut in cuts), at
