"""What a reader takes over a site's link beside a cache of finite speed."""

from __future__ import annotations

import math
from typing import TypeVar

import numpy as np

Rate = TypeVar("Rate", float, np.ndarray)


def is_served(rate: float, cache_speed: float | None) -> bool:
    """Whether a cache is of use to a reader: one that reads at least as fast as the cache serves reads past it."""
    return cache_speed is None or rate < cache_speed


def link_rate(rate: Rate, cached: Rate, cache_speed: float | None) -> Rate:
    """MB/s over the link by which a reader that is served keeps its rate r: b = r (1 - f) / (1 - f r / M).

    It fetches one item after the other, the cached fraction f of them at the speed M of the cache, the others at b, so
    an item takes f / M + (1 - f) / b = 1 / r on average.
    """
    return rate * (1 - cached) / (1 - cached * rate / (math.inf if cache_speed is None else cache_speed))
