"""Concave bandwidth tariffs: the price P(B) an hour of B MB/s, P(0) = 0, and the lines by which engines know it."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from models.domain.entities import Storage

Line = tuple[float, float]
"""(alpha, beta): alpha + beta B an hour."""

SMALLEST = 1e-9
"""Part of the most bandwidth below which nobody buys any: no power law is followed further down."""


@dataclass(frozen=True)
class Tariff:
    """P(B) = min of lines, or factor * B ** exponent where `power` is given; P(0) = 0; sold up to `cap` MB/s.

    Without lines bandwidth is free. With `power` the lines are chords of it: no dearer than P anywhere, and cheaper by
    no more than the error that was asked for.
    """

    lines: tuple[Line, ...] = ()
    cap: float = math.inf
    power: tuple[float, float] | None = None
    """(factor, exponent)."""

    def price(self, mb_s: np.ndarray | float) -> np.ndarray:
        """P(B), money per hour, for every B >= 0 of an array."""
        if self.power is None:
            return self.envelope(mb_s)
        factor, exponent = self.power
        bought = np.asarray(mb_s, dtype=float)
        return np.where(bought > 0, factor * np.maximum(bought, 0.0) ** exponent, 0.0)

    def envelope(self, mb_s: np.ndarray | float) -> np.ndarray:
        """min over lines of alpha + beta B, 0 where B = 0: what the engines reckon with."""
        bought = np.asarray(mb_s, dtype=float)
        if not self.lines:
            return np.zeros_like(bought)
        least = np.min([alpha + beta * bought for alpha, beta in self.lines], axis=0)
        return np.where(bought > 0, least, 0.0)

    @property
    def chord_error(self) -> float:
        """By how much the lines may be below P at most, money per hour: 0 but for a power law, whose chords are lowest
        where it is as steep as they are."""
        if self.power is None or not 0 < self.power[1] < 1 or self.power[0] <= 0:
            return 0.0
        factor, exponent = self.power
        slopes = np.array([slope for _, slope in self.lines if slope > 0])
        at = (slopes / (factor * exponent)) ** (1 / (exponent - 1))
        return float(np.max(self.price(at) - self.envelope(at), initial=0.0))

    def marginal(self, mb_s: float) -> float:
        """dP/dB from the left, money per hour for the last MB/s; the slope from 0 where nothing is bought."""
        if self.power is not None:
            factor, exponent = self.power
            return factor * exponent * mb_s ** (exponent - 1.0) if mb_s > 0 else math.inf if exponent < 1 else factor
        at = max(mb_s, 0.0)
        return min(self.lines, key=lambda line: (line[0] + line[1] * at, -line[1]), default=(0.0, 0.0))[1]


@lru_cache(maxsize=256)
def tariff_of(storage: Storage) -> Tariff:
    """The tariff of a storage service, in whichever of its forms it is written."""
    cap = math.inf if storage.bandwidth_cap is None else storage.bandwidth_cap
    if storage.power is not None:
        law = storage.power
        lines = chords(law.factor, law.exponent, law.up_to, law.error)
        return Tariff(lines, min(cap, law.up_to), (law.factor, law.exponent))
    if storage.tiers:
        edge = storage.tiers[-1].up_to
        return Tariff(_of_tiers(storage), cap if edge is None else min(cap, edge))
    if storage.points:
        points = [(point.mb_s, point.price) for point in storage.points]
        return Tariff(lines_through(points), min(cap, points[-1][0]))
    return Tariff(tuple((piece.fixed, piece.per_mb_s) for piece in storage.tariff), cap)


def lines_through(points: list[tuple[float, float]]) -> tuple[Line, ...]:
    """The lines from one (MB/s, price) to the next; through the origin and the only one."""
    if len(points) == 1:
        points = [(0.0, 0.0), *points]
    lines = []
    for (b0, p0), (b1, p1) in itertools.pairwise(points):
        beta = (p1 - p0) / (b1 - b0)
        lines.append((max(0.0, p0 - beta * b0), beta))
    return tuple(lines)


def _of_tiers(storage: Storage) -> tuple[Line, ...]:
    """Each tier's line begins where the tier below ends."""
    lines, edge, price = [], 0.0, 0.0
    for tier in storage.tiers:
        lines.append((max(0.0, price - tier.per_mb_s * edge), tier.per_mb_s))
        if tier.up_to is not None:
            price += tier.per_mb_s * (tier.up_to - edge)
            edge = tier.up_to
    return tuple(lines)


def chords(factor: float, exponent: float, up_to: float, error: float) -> tuple[Line, ...]:
    """Chords of P(B) = factor * B ** exponent on (0, up_to].

    They lie below P, and by no more than `error` of P(B); by no more than `error` of P(up_to) below the first point,
    where the chord starts at the origin and no number of them could keep to a part of P(B). Below `SMALLEST` of `up_to`
    nothing is promised: there all of the price of a law with a small exponent is.
    """
    if exponent >= 1 or factor <= 0:
        return ((0.0, factor),)
    if exponent <= 0:
        return ((factor, 0.0),)
    # The chord from the origin to (B0, P(B0)) is lowest below P by P(B0) (1 - b) b^(b / (1 - b)).
    share = (1 - exponent) * exponent ** (exponent / (1 - exponent))
    first = up_to * max(SMALLEST, min(1.0, error / share) ** (1 / exponent))
    ratio = math.log(up_to / first)
    number = math.ceil(ratio / math.log(_widest(exponent, error)) - 1e-9) if ratio > 0 else 0
    edges = [first * math.exp(ratio * k / number) for k in range(number)]
    points = [(b, factor * b**exponent) for b in (*edges, up_to)]
    return lines_through([(0.0, 0.0), *points])


def _widest(exponent: float, error: float) -> float:
    """The largest ratio q such that the chord of x ** exponent from 1 to q is nowhere below it by more than `error`."""

    def worst(q: float) -> float:
        slope = math.expm1(exponent * math.log(q)) / (q - 1)
        x = exponent * (1 - slope) / (slope * (1 - exponent))
        return 1 - (1 + slope * (x - 1)) / x**exponent

    low, high = 1.0, 2.0
    while worst(high) < error and high < 1e12:
        low, high = high, high * high
    for _ in range(100):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if worst(middle) < error else (low, middle)
    return low
