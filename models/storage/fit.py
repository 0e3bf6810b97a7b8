"""Bandwidth tariffs fitted to a price list: a power law, one to three lines, or the list itself.

A fit makes the sum of squared relative errors ((P(B) - p) / p)^2 over the list's points (B, p) least. Prices of one
list span decades: by errors in money the dearest points alone would decide, and small purchases be priced at random.
Coefficients are rounded to DIGITS before errors are taken, so that what is measured is what is written.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np
from pydantic import ValidationError
from scipy.optimize import least_squares, nnls

from models.domain.entities import PowerTariff, Storage, TariffPiece, TariffPoint
from models.domain.rules.draft import TOLERANCE
from models.storage.tariff import Line, Tariff, lines_through

MOST_LINES = 3
GOOD = 0.01
"""A largest relative error up to which the simplest fit is recommended."""
DIGITS = 6
_DUST = 1e-12
"""Part of the lowest price that is what rounding leaves of nothing: it would be shown as a fixed price."""
_ROUNDING = 10.0 ** (1 - DIGITS)
"""Of a relative error; lines are not told apart by less."""
_MOST_ENDS = 40
"""Among how many bandwidths the ends of lines are sought: all of a price list, evenly chosen ones of a long table."""

Point = tuple[float, float]
"""(MB/s, price per hour)."""
Name = Literal["1 line", "power", "2 lines", "3 lines", "points"]
SIMPLEST_FIRST: tuple[Name, ...] = ("1 line", "power", "2 lines", "3 lines", "points")
_OF_LINES: dict[int, Name] = {1: "1 line", 2: "2 lines", 3: "3 lines"}


@dataclass(frozen=True)
class Errors:
    """How far P is from the prices: in money per hour, and relative to the price; bandwidths in MB/s."""

    rms: float
    largest: float
    largest_at: float
    rms_relative: float
    largest_relative: float
    largest_relative_at: float
    r_squared: float | None
    """1 - squared errors in money over squared deviations from the mean price; None where all prices are equal."""


@dataclass(frozen=True)
class Fit:
    """A tariff as an instance states it, sold up to the list's most bandwidth, and its errors."""

    name: Name
    storage: Storage
    tariff: Tariff
    errors: Errors


@dataclass(frozen=True)
class Breach:
    """A step of the list, from one bandwidth to the next (MB/s), that no concave and non-decreasing tariff follows."""

    kind: Literal["several", "falls", "faster", "dearer"]
    since: float
    until: float

    def __str__(self) -> str:
        step = f"{self.since:,.6g} -> {self.until:,.6g} MB/s"
        return {
            "several": f"{self.until:,.6g} MB/s has several prices; no tariff has all of them",
            "falls": f"the price falls at {step}; no tariff does",
            "faster": f"the price rises faster than bandwidth at {step}; no concave tariff fits it",
            "dearer": f"a further MB/s costs more at {step} than below; no concave tariff fits it exactly",
        }[self.kind]


@dataclass(frozen=True)
class Fits:
    """All fits of a price list, the simplest first, and where the list is not concave and non-decreasing."""

    fits: tuple[Fit, ...]
    breaches: tuple[Breach, ...]

    @property
    def recommended(self) -> Fit:
        """The simplest with no relative error above GOOD, or else that whose largest is the smallest."""
        good = (fit for fit in self.fits if fit.errors.largest_relative <= GOOD)
        return next(good, min(self.fits, key=lambda fit: fit.errors.largest_relative))


def fit_tariffs(mb_s: Sequence[float] | np.ndarray, prices: Sequence[float] | np.ndarray) -> Fits:
    """Every fit to points of positive bandwidth and price, in any order, at two bandwidths or more.

    k lines are there only where the list has k + 1 bandwidths and they fit better than fewer.
    """
    order = np.argsort(mb_s, kind="stable")
    b, p = np.asarray(mb_s, dtype=float)[order], np.asarray(prices, dtype=float)[order]
    if len(b) == 0 or b[0] == b[-1] or b[0] <= 0 or np.min(p) <= 0:
        raise ValueError("a fit needs positive prices of two positive bandwidths")
    most = float(b[-1])
    # What would be concave must be so for the dearest price of each bandwidth.
    points = [(at, max(price for _, price in group)) for at, group in _by_bandwidth(b, p)]
    breaches = (*_several(b, p), *_breaches(points))
    found: dict[Name, tuple[Storage, Tariff]] = {}
    # A coefficient beyond the largest quantity (a price of 1e15 for 1e-9 MB/s) cannot be written: no such fit.
    rms = np.inf
    for k in range(1, MOST_LINES + 1):
        lines = _best_lines(b, p, k)
        tariff = Tariff(tuple((alpha if alpha > _DUST * float(p.min()) else 0.0, beta) for alpha, beta in lines), most)
        error = errors_of(tariff, b, p).rms_relative
        if not tariff.lines or error > rms - _ROUNDING:
            continue
        try:
            pieces = tuple(TariffPiece(fixed=alpha, per_mb_s=beta) for alpha, beta in tariff.lines)
        except ValidationError:
            continue
        rms = error
        found[_OF_LINES[k]] = Storage(tariff=pieces, bandwidth_cap=most), tariff
    law = _power(b, p)
    try:
        power = PowerTariff(factor=law[0], exponent=law[1], up_to=most)
        found["power"] = Storage(power=power), Tariff((), most, law)
    except ValidationError:
        pass
    listed = _majorant(points, float(b[0])) if breaches else points
    record = tuple(TariffPoint(mb_s=at, price=price) for at, price in listed)
    found["points"] = Storage(points=record), Tariff(lines_through(listed), most)
    fits = (Fit(name, *found[name], errors_of(found[name][1], b, p)) for name in SIMPLEST_FIRST if name in found)
    return Fits(tuple(fits), breaches)


def errors_of(tariff: Tariff, mb_s: np.ndarray, prices: np.ndarray) -> Errors:
    """How far a tariff is from points."""
    off = np.abs(tariff.price(mb_s) - prices)
    part = off / prices
    spread = float(np.sum((prices - prices.mean()) ** 2)) if np.ptp(prices) > 0 else 0.0
    return Errors(
        float(np.sqrt(np.mean(off**2))),
        float(np.max(off)),
        float(mb_s[np.argmax(off)]),
        float(np.sqrt(np.mean(part**2))),
        float(np.max(part)),
        float(mb_s[np.argmax(part)]),
        1.0 - float(np.sum(off**2)) / spread if spread > 0 else None,
    )


def _rounded(number: float) -> float:
    return float(f"{number:.{DIGITS}g}")


def _power(b: np.ndarray, p: np.ndarray) -> tuple[float, float]:
    """(factor, exponent), 0 <= exponent <= 1, from the least squares of log P as the start."""
    x, y = np.log(b), np.log(p)
    middle = float(x.mean())
    x = x - middle
    spread = float(x @ x)
    start = float(np.clip(x @ y / spread, 0.0, 1.0)) if spread > 0 else 0.0

    def ratio(unknown: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):  # a step too long, which is not taken
            grown: np.ndarray = np.exp(unknown[0] + unknown[1] * x - y)
        return grown

    found = least_squares(
        lambda unknown: ratio(unknown) - 1.0,
        (float(y.mean()), start),
        jac=lambda unknown: ratio(unknown)[:, None] * np.column_stack([np.ones_like(x), x]),
        bounds=((-np.inf, 0.0), (np.inf, 1.0)),
    )
    # To decimals, so that one at an end of its range is 0 or 1, where the solver ends beside them.
    exponent = min(max(round(float(found.x[1]), DIGITS), 0.0), 1.0)
    # The best factor for the exponent as written.
    shape = np.exp(exponent * x - y)
    factor = float(shape.sum() / (shape @ shape)) * float(np.exp(-exponent * middle))
    return _rounded(factor), exponent


def _best_lines(b: np.ndarray, p: np.ndarray, k: int) -> tuple[Line, ...]:
    """The k lines whose least is closest to the points; none where no k lines are each the cheapest somewhere.

    Each line is fitted to a group of consecutive bandwidths, two or more; the next group begins at the end of the one
    before (a point where two lines meet is on both) or after it.
    """
    levels = np.unique(b)
    firsts, lasts = np.searchsorted(b, levels, "left"), np.searchsorted(b, levels, "right")

    @cache
    def line(first: int, last: int) -> Line:
        rows = slice(firsts[first], lasts[last])
        return _line(b[rows], p[rows])

    # Lines may be cheapest between two points only.
    looked_at = np.concatenate([levels, (levels[1:] + levels[:-1]) / 2])
    best: tuple[Line, ...] = ()
    least = np.inf
    for groups in _groups(len(levels), k):
        lines = tuple(sorted((line(*group) for group in groups), key=lambda of: (of[0], -of[1])))
        if len(set(np.argmin([alpha + beta * looked_at for alpha, beta in lines], axis=0))) < k:
            continue
        squares = float(np.sum((Tariff(lines).envelope(b) / p - 1.0) ** 2))
        if squares < least:
            best, least = lines, squares
    return best


def _groups(num: int, k: int) -> Iterator[tuple[tuple[int, int], ...]]:
    """All ways to cover 0 .. num - 1 by k ranges (first, last) of two or more that share an end at most."""
    ends = sorted({round(end) for end in np.linspace(0, num - 1, min(num, _MOST_ENDS))})[1:-1]
    for inner in itertools.combinations(ends, k - 1):
        for skips in itertools.product((0, 1), repeat=k - 1):
            firsts = [0, *(end + skip for end, skip in zip(inner, skips, strict=True))]
            groups = tuple(zip(firsts, [*inner, num - 1], strict=True))
            if all(first < last for first, last in groups):
                yield groups


def _line(b: np.ndarray, p: np.ndarray) -> Line:
    """The line with alpha, beta >= 0 of least squared relative errors."""
    most = b.max()
    (alpha, beta), _ = nnls(np.column_stack([1.0 / p, b / most / p]), np.ones_like(p))
    return _rounded(alpha), _rounded(beta / most)


def _by_bandwidth(b: np.ndarray, p: np.ndarray) -> Iterator[tuple[float, list[Point]]]:
    pairs = zip(b.tolist(), p.tolist(), strict=True)
    for at, group in itertools.groupby(pairs, key=lambda point: point[0]):
        yield at, list(group)


def _several(b: np.ndarray, p: np.ndarray) -> Iterator[Breach]:
    for at, group in _by_bandwidth(b, p):
        if len({price for _, price in group}) > 1:
            yield Breach("several", at, at)


def _breaches(points: list[Point]) -> Iterator[Breach]:
    """The steps that a tariff given by points must not have (as the rules of instances have it)."""
    before = np.inf
    for (b0, p0), (b1, p1) in itertools.pairwise([(0.0, 0.0), *points]):
        slope = (p1 - p0) / (b1 - b0)
        if slope < 0:
            yield Breach("falls", b0, b1)
        elif slope > before * (1 + TOLERANCE) + 1e-15:
            is_faster = b0 > 0 and p1 / b1 > p0 / b0 * (1 + TOLERANCE)
            yield Breach("faster" if is_faster else "dearer", b0, b1)
        before = slope


def _majorant(points: list[Point], lowest: float) -> list[Point]:
    """Points of the least concave and non-decreasing tariff that is nowhere below the points: their upper hull with the
    origin, flat from the dearest on."""
    hull = [(0.0, 0.0)]
    for b, p in [*points[:-1], (points[-1][0], max(price for _, price in points))]:
        while len(hull) > 1 and _slope(hull[-1], (b, p)) >= _slope(hull[-2], hull[-1]):
            hull.pop()
        hull.append((b, p))
    hull.pop(0)
    b1, p1 = hull[0]
    if len(hull) > 1 and lowest < b1:
        # Below its first point a list goes on as behind it; the hull comes from the origin.
        longer = [(lowest, p1 * lowest / b1), *hull]
        if not list(_breaches(longer)):
            return longer
    return hull


def _slope(one: Point, two: Point) -> float:
    return (two[1] - one[1]) / (two[0] - one[0])
