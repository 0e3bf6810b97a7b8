"""Chances and means with the intervals that they are known to lie in, at 95 %."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

Z = 1.959963984540054
"""The normal distribution has 95 % of its weight within so many standard deviations."""


@dataclass(frozen=True)
class Chance:
    """How often something happened, of how many replays."""

    times: int
    of: int

    @property
    def share(self) -> float:
        """The part of the replays in which it happened."""
        return self.times / self.of

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's score interval (Wilson, Journal of the American Statistical Association 22, 1927, pp. 209-212):

        (p + z^2/2n -+ z sqrt(p (1 - p) / n + z^2/4n^2)) / (1 + z^2/n)

        It stays within 0 and 1 and keeps a width where something happened always or never.
        """
        p, n = self.share, self.of
        centre, spread = p + Z * Z / (2 * n), Z * math.sqrt(p * (1 - p) / n + Z * Z / (4 * n * n))
        low, high = (centre - spread) / (1 + Z * Z / n), (centre + spread) / (1 + Z * Z / n)
        # 0 and 1 are reached exactly; what is left of them is rounding.
        return (0.0 if self.times == 0 else max(0.0, low)), (1.0 if self.times == n else min(1.0, high))

    def document(self) -> dict[str, Any]:
        """For machines."""
        return {"share": self.share, "interval": list(self.interval), "times": self.times}


@dataclass(frozen=True)
class Mean:
    """A mean over replays, with the interval that the central limit theorem gives it; None for one replay alone."""

    value: float
    interval: tuple[float, float] | None

    @classmethod
    def of(cls, values: np.ndarray) -> Mean:
        """Of some values, shape (replays,)."""
        # Counted from the first, so that the mean of equal values is their value to the last digit.
        first = float(values[0])
        values = values - first
        mean = first + math.fsum(values.tolist()) / len(values)
        if len(values) < 2:
            return cls(mean, None)
        half = Z * float(np.std(values, ddof=1)) / math.sqrt(len(values))
        return cls(mean, (mean - half, mean + half))

    def less(self, amount: float) -> Mean:
        """The mean of the values less a number."""
        moved = None if self.interval is None else (self.interval[0] - amount, self.interval[1] - amount)
        return Mean(self.value - amount, moved)

    def document(self) -> dict[str, Any]:
        """For machines."""
        return {"mean": self.value, "interval": None if self.interval is None else list(self.interval)}


@dataclass(frozen=True)
class Spread:
    """A distribution: its mean, and what 5, 50 and 95 % of the replays stay below."""

    mean: Mean
    p5: float
    p50: float
    p95: float

    @classmethod
    def of(cls, values: np.ndarray) -> Spread:
        """Of some values, shape (replays,); between two replays linearly."""
        p5, p50, p95 = (float(q) for q in np.quantile(values, (0.05, 0.5, 0.95)))
        return cls(Mean.of(values), p5, p50, p95)

    def document(self) -> dict[str, Any]:
        """For machines."""
        return self.mean.document() | {"p5": self.p5, "p50": self.p50, "p95": self.p95}
