"""Tariffs fitted to price lists: what was sampled is found again, errors are as recounted, every fit is concave."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from models.domain.rules.draft import TOLERANCE
from models.storage.fit import GOOD, SIMPLEST_FIRST, Errors, Fit, Fits, fit_tariffs
from models.storage.tariff import tariff_of

LUSTRE = {150.0: 0.31, 300.0: 0.46, 600.0: 0.77, 1200.0: 1.39}
ROUNDING = 2e-5
"""What six digits of each coefficient may take from a perfect fit."""


def fitted(points: dict[float, float]) -> Fits:
    return fit_tariffs(list(points), list(points.values()))


def by_name(fits: Fits) -> dict[str, Fit]:
    return {fit.name: fit for fit in fits.fits}


BANDWIDTHS = st.lists(st.floats(1.0, 1e5), min_size=2, max_size=9, unique=True)


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[float], list[float]]:
    """Any points: concave, convex, falling, several at one bandwidth, over decades."""
    mb_s = draw(BANDWIDTHS)
    mb_s += draw(st.lists(st.sampled_from(mb_s), max_size=2))
    prices = draw(st.lists(st.floats(1e-3, 1e3), min_size=len(mb_s), max_size=len(mb_s)))
    return mb_s, prices


@given(BANDWIDTHS, st.floats(1e-4, 10.0), st.floats(0.0, 1.0))
def test_a_power_law_is_recovered(mb_s: list[float], factor: float, exponent: float) -> None:
    fit = by_name(fit_tariffs(mb_s, [factor * b**exponent for b in mb_s]))["power"]
    assert fit.errors.largest_relative < ROUNDING
    assert fit.tariff.power is not None
    # Two bandwidths close to each other tell nothing of the exponent.
    if max(mb_s) > 2 * min(mb_s):
        assert fit.tariff.power[1] == pytest.approx(exponent, abs=1e-4)


def test_lines_are_recovered() -> None:
    lines = ((0.0, 0.004), (0.3, 0.002), (1.5, 0.001))
    for k in (1, 2, 3):
        mb_s = [50.0 * n for n in range(1, 41)]
        prices = [min(alpha + beta * b for alpha, beta in lines[:k]) for b in mb_s]
        fits = fit_tariffs(mb_s, prices)
        name = SIMPLEST_FIRST[(0, 2, 3)[k - 1]]
        assert fits.recommended.name == name
        assert fits.recommended.errors.largest_relative < ROUNDING
        np.testing.assert_allclose(fits.recommended.tariff.lines, lines[:k], rtol=1e-5, atol=1e-9)
        assert by_name(fits)["points"].errors.largest_relative < 1e-9
        assert name == [fit.name for fit in fits.fits if fit.name.endswith(("line", "lines"))][-1], "more are no better"


@given(st.integers(1, 3), st.data())
def test_an_envelope_that_was_sampled_is_met(k: int, data: st.DataObject) -> None:
    """Two points or more on each line; where there are fewer, the line between two points is as good."""
    betas = sorted((data.draw(st.floats(1e-4, 1e-2)) for _ in range(k)), reverse=True)
    alphas = sorted(data.draw(st.floats(0.01, 10.0)) for _ in range(k))
    mb_s = np.unique(data.draw(st.lists(st.floats(10.0, 2000.0), min_size=4, max_size=8, unique=True)))
    prices = np.min([alpha + beta * mb_s for alpha, beta in zip(alphas, betas, strict=True)], axis=0)
    owners = np.argmin([alpha + beta * mb_s for alpha, beta in zip(alphas, betas, strict=True)], axis=0)
    if all(np.ptp(mb_s[owners == line]) > 1.0 for line in set(owners)):
        fits = fit_tariffs(mb_s, prices)
        best = min(fit.errors.largest_relative for fit in fits.fits if "line" in fit.name)
        assert best < 2 * ROUNDING


@given(tables())
def test_every_fit_is_concave_does_not_fall_and_is_what_the_instance_says(
    table: tuple[list[float], list[float]],
) -> None:
    mb_s = np.array(table[0])
    fits = fit_tariffs(*table)
    assert {"1 line", "power", "points"} <= set(by_name(fits))
    assert [fit.name for fit in fits.fits] == [name for name in SIMPLEST_FIRST if name in by_name(fits)]
    at = np.unique(np.concatenate([np.linspace(mb_s.min(), mb_s.max(), 60), mb_s]))
    for fit in fits.fits:
        told = tariff_of(fit.storage)
        assert told.cap == fit.tariff.cap == mb_s.max()
        price = fit.tariff.price(at)
        np.testing.assert_allclose(told.price(at), price, rtol=1e-12)
        slack = 1e-9 * price.max()
        assert np.all(np.diff(price) >= -slack)
        assert np.all(price * at[0] <= price[0] * at + slack * at), "the average price does not rise"
        for i, j in itertools.pairwise(range(len(at))):
            middle = float(fit.tariff.price((at[i] + at[j]) / 2))
            assert middle >= (price[i] + price[j]) / 2 - slack
        if fit.tariff.power is not None:
            assert 0 <= fit.tariff.power[1] <= 1


@given(tables())
def test_errors_are_as_recounted(table: tuple[list[float], list[float]]) -> None:
    points = list(zip(*table, strict=True))
    for fit in fit_tariffs(*table).fits:
        off = [abs(_price(fit, b) - p) for b, p in points]
        part = [error / p for error, (_, p) in zip(off, points, strict=True)]
        errors = fit.errors
        assert errors.largest == pytest.approx(max(off), rel=1e-9, abs=1e-12)
        assert errors.largest_relative == pytest.approx(max(part), rel=1e-9, abs=1e-12)
        for errors_in, largest, at, rms in (
            (off, errors.largest, errors.largest_at, errors.rms),
            (part, errors.largest_relative, errors.largest_relative_at, errors.rms_relative),
        ):
            assert any(
                error == pytest.approx(largest, rel=1e-9, abs=1e-12) and b == at
                for error, (b, _) in zip(errors_in, points, strict=True)
            )
            assert rms == pytest.approx(math.sqrt(sum(x**2 for x in errors_in) / len(points)), rel=1e-9, abs=1e-12)
        mean = sum(p for _, p in points) / len(points)
        spread = sum((p - mean) ** 2 for _, p in points)
        if spread > 1e-6 * mean**2:
            assert errors.r_squared is not None
            assert 1 - errors.r_squared == pytest.approx(sum(x**2 for x in off) / spread, rel=1e-6, abs=1e-9)


def _price(fit: Fit, mb_s: float) -> float:
    """From the storage fields alone."""
    storage = fit.storage
    if storage.power is not None:
        return storage.power.factor * mb_s**storage.power.exponent
    if storage.tariff:
        return min(piece.fixed + piece.per_mb_s * mb_s for piece in storage.tariff)
    points = [(point.mb_s, point.price) for point in storage.points]
    if len(points) == 1:
        points.insert(0, (0.0, 0.0))
    # Concave: of the lines through neighbours the one that is lowest here.
    return min(p0 + (p1 - p0) / (b1 - b0) * (mb_s - b0) for (b0, p0), (b1, p1) in itertools.pairwise(points))


@given(tables())
@example(([51.0, 41436.0, 3504.0, 1.0], [0.0078125, 198.0, 17.0, 0.125]))  # the least fixed price counts
def test_no_line_and_no_power_law_nearby_fits_better(table: tuple[list[float], list[float]]) -> None:
    """Least squares of relative errors: a step away from the coefficients does not help."""
    b, p = (np.array(column) for column in table)
    fits = by_name(fit_tariffs(b, p))

    def squares(price: np.ndarray) -> float:
        return float(np.sum((price / p - 1) ** 2))

    ((alpha, beta),) = fits["1 line"].tariff.lines
    least = squares(alpha + beta * b)
    assert fits["1 line"].tariff.power is None
    assert fits["power"].tariff.power is not None
    factor, exponent = fits["power"].tariff.power
    smallest = squares(factor * b**exponent)
    for x, y in itertools.product((-1e-3, 0.0, 1e-3), repeat=2):
        stepped = max(0.0, alpha + x * p.mean()), max(0.0, beta + y * p.mean() / b.mean())
        assert squares(stepped[0] + stepped[1] * b) >= least - 1e-4 * len(b) * ROUNDING - 1e-6 * least
        turned = min(1.0, max(0.0, exponent + y))
        moved = factor * (1 + x) * np.exp(np.log(b).mean() * (exponent - turned))
        assert squares(moved * b**turned) >= smallest - 1e-4 * len(b) * ROUNDING - 1e-6 * smallest


def test_a_price_by_the_mb_alone_has_no_dust_of_a_fixed_one() -> None:
    fits = by_name(fit_tariffs([100.0, 200.0, 300.0], [1.0, 2.0, 3.0]))
    ((alpha, _),) = fits["1 line"].tariff.lines
    assert alpha == 0.0


@given(tables())
def test_the_list_is_kept_or_its_least_majorant_taken(table: tuple[list[float], list[float]]) -> None:
    fits = fit_tariffs(*table)
    fit = by_name(fits)["points"]
    b, p = (np.array(column) for column in table)
    above = fit.tariff.price(b) - p
    assert np.all(above >= -1e-9 * p.max())
    if not fits.breaches:
        assert [(point.mb_s, point.price) for point in fit.storage.points] == sorted(set(zip(*table, strict=True)))
        assert fit.errors.largest_relative < 1e-6
    # The list reads back: its slopes fall, from the origin on.
    corners = [(0.0, 0.0), *((point.mb_s, point.price) for point in fit.storage.points)]
    slopes = [(p1 - p0) / (b1 - b0) for (b0, p0), (b1, p1) in itertools.pairwise(corners)]
    assert all(s1 <= s0 * (1 + TOLERANCE) + 1e-15 for s0, s1 in itertools.pairwise(slopes))
    assert slopes[-1] >= 0
    # Least: at each point between others it is no higher than the dearest chord over it (the origin, and the dearest
    # price at the end, are points too).
    most = [*zip(b.tolist(), p.tolist(), strict=True), (0.0, 0.0), (float(b.max()), float(p.max()))]
    for at in b.tolist():
        left, right = [q for q in most if q[0] <= at], [q for q in most if q[0] >= at]
        over = max(
            max(p0, p1) if b0 == b1 else p0 + (p1 - p0) * (at - b0) / (b1 - b0) for b0, p0 in left for b1, p1 in right
        )
        assert float(fit.tariff.price(at)) <= over + 1e-7 * p.max()


def test_the_list_of_a_lustre_service_is_a_line() -> None:
    fits = fitted(LUSTRE)
    assert fits.recommended.name == "1 line"
    assert fits.recommended.errors.largest_relative == pytest.approx(0.00596, abs=1e-5)
    assert fits.recommended.errors.largest_relative_at == 300.0
    assert [breach.kind for breach in fits.breaches] == ["dearer"]
    majorant = by_name(fits)["points"]
    assert [(point.mb_s, point.price) for point in majorant.storage.points] == [(150.0, 0.31), (1200.0, 1.39)]
    assert majorant.errors.largest_relative == pytest.approx((0.31 + 150 * 1.08 / 1050) / 0.46 - 1)
    assert set(by_name(fits)) == {"1 line", "power", "points"}, "two lines are no better"


def test_a_convex_list_is_told() -> None:
    fits = fitted({300.0: 0.3, 600.0: 0.5, 1200.0: 2.0})
    assert [str(breach) for breach in fits.breaches] == [
        "the price rises faster than bandwidth at 600 -> 1,200 MB/s; no concave tariff fits it"
    ]
    majorant = by_name(fits)["points"]
    assert [(point.mb_s, point.price) for point in majorant.storage.points] == [(1200.0, 2.0)]
    assert majorant.errors.largest_relative == pytest.approx(1.0)
    assert majorant.errors.largest_relative_at == 600.0


def test_each_kind_of_breach() -> None:
    fits = fit_tariffs([100, 200, 300, 300, 400, 500], [1.0, 0.9, 1.2, 1.1, 1.25, 1.29])
    assert [(breach.kind, breach.since, breach.until) for breach in fits.breaches] == [
        ("several", 300, 300), ("falls", 100, 200), ("dearer", 200, 300),
    ]  # fmt: skip
    assert fitted({100.0: 1.0, 200.0: 1.5, 400.0: 2.0}).breaches == ()


def test_a_majorant_comes_from_the_origin() -> None:
    """A cheap first point lies under the line from the origin to the second, not under what is beyond the second."""
    fit = by_name(fitted({100.0: 0.1, 200.0: 1.0, 400.0: 1.5}))["points"]
    assert [(point.mb_s, point.price) for point in fit.storage.points] == [(100.0, 0.5), (200.0, 1.0), (400.0, 1.5)]


def test_the_order_of_rows_is_nothing() -> None:
    backwards = dict(reversed(LUSTRE.items()))
    assert fitted(backwards) == fitted(LUSTRE)


def test_the_simplest_good_fit_is_recommended_or_else_the_closest() -> None:
    wave = {100.0: 1.0, 200.0: 1.9, 300.0: 1.0, 400.0: 1.9}
    fits = fitted(wave)
    assert all(fit.errors.largest_relative > GOOD for fit in fits.fits)
    assert fits.recommended.errors.largest_relative == min(fit.errors.largest_relative for fit in fits.fits)
    nearly_straight = fitted({100.0: 1.0, 200.0: 1.51, 300.0: 2.0})
    assert by_name(nearly_straight)["points"].errors.largest_relative < 1e-9
    assert nearly_straight.recommended.name == "1 line", "simpler than points that are closer"
    root = fit_tariffs([10.0 * 2**n for n in range(12)], [(10.0 * 2**n) ** 0.5 for n in range(12)])
    assert root.recommended.name == "power"


def test_two_points_and_equal_prices() -> None:
    fits = fitted({100.0: 2.0, 400.0: 2.0})
    assert fits.recommended.name == "1 line"
    assert fits.recommended.tariff.lines == ((2.0, 0.0),)
    assert fits.recommended.errors == Errors(0.0, 0.0, 100.0, 0.0, 0.0, 100.0, None)
    power = by_name(fits)["power"].tariff.power
    assert power == (2.0, 0.0)


@pytest.mark.parametrize("points", [{}, {100.0: 1.0}, {0.0: 1.0, 1.0: 1.0}, {1.0: 0.0, 2.0: 1.0}])
def test_too_little_is_refused(points: dict[float, float]) -> None:
    with pytest.raises(ValueError, match="two positive bandwidths"):
        fitted(points)


def test_coefficients_that_cannot_be_written_are_left_out() -> None:
    """A line through 1e15 money for 1e-12 MB/s: the points are all that an instance can hold."""
    fits = fitted({1e-12: 1e14, 2e-12: 2e14})
    assert set(by_name(fits)) == {"points"}


def test_a_long_table_is_fitted_too() -> None:
    mb_s = np.linspace(10, 5000, 400)
    prices = np.minimum(0.004 * mb_s, 2.0 + 0.002 * mb_s)
    fit = by_name(fit_tariffs(mb_s, prices))["2 lines"]
    assert fit.errors.rms_relative < 0.01
