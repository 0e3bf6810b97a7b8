"""Tariffs of every form against what the definition says, and the chords by which engines know a power law."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from models.domain.entities import Storage
from models.storage.tariff import SMALLEST, Tariff, chords, tariff_of

CHECKED = settings(max_examples=300, deadline=None, derandomize=True)
MOST_LINES = 110
"""As many chords as the finest error that an instance may ask for takes at the worst exponent."""


def tariff(**storage: Any) -> Tariff:
    return tariff_of(Storage.model_validate(storage))


# --- pieces and points -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mb_s", "price"), [(0.0, 0.0), (50.0, 0.75), (100.0, 1.0), (200.0, 1.5), (450.0, 2.3), (600.0, 2.6)]
)
def test_a_price_list_is_linear_between_its_points(mb_s: float, price: float) -> None:
    """Before the first point goes the line through the first two."""
    found = tariff(points=[{"mb_s": b, "price": p} for b, p in ((100.0, 1.0), (300.0, 2.0), (600.0, 2.6))])
    assert len(found.lines) == 2
    assert found.cap == 600.0
    assert found.price(mb_s) == pytest.approx(price)


@CHECKED
@given(
    st.lists(st.tuples(st.integers(1, 50), st.integers(1, 20)), min_size=1, max_size=4),
    st.floats(0.01, 1.0),
)
def test_concave_price_lists(steps: list[tuple[int, int]], part: float) -> None:
    """Slopes that fall from point to point: the least of the lines is the line between the points."""
    points, mb_s, price = [], 0.0, 1.0 if len(steps) > 1 else 0.0
    for width, slope in sorted(steps, key=lambda step: -step[1]):
        mb_s, price = mb_s + width, price + width * slope
        points.append((mb_s, price))
    found = tariff(points=[{"mb_s": b, "price": p} for b, p in points])
    bought = part * mb_s
    if len(points) == 1:
        expected = points[0][1] * part
    else:
        (b0, p0), (b1, p1) = points[:2]
        first_line = p0 + (p1 - p0) / (b1 - b0) * (bought - b0)
        expected = (
            first_line if bought < b0 else float(np.interp(bought, [b for b, _ in points], [p for _, p in points]))
        )
    assert found.price(bought) == pytest.approx(expected, rel=1e-9)
    assert found.cap == mb_s


@pytest.mark.parametrize(
    ("mb_s", "price"), [(0.0, 0.0), (-1.0, 0.0), (1e-9, 1e-11), (50.0, 0.5), (100.0, 1.0), (200.0, 1.5), (1e4, 3.0)]
)
def test_a_tariff_is_the_least_of_its_pieces(mb_s: float, price: float) -> None:
    pieces = [{"per_mb_s": 0.01}, {"fixed": 0.5, "per_mb_s": 0.005}, {"fixed": 3.0}]
    assert tariff(tariff=pieces).price(mb_s) == pytest.approx(price, abs=1e-12)


def test_bandwidth_without_tariff_is_free() -> None:
    assert tariff().price(100.0) == tariff().marginal(100.0) == 0.0
    assert tariff().cap == math.inf


@pytest.mark.parametrize(
    ("storage", "cap"),
    [
        ({}, 10.0),
        ({"points": [{"mb_s": 80.0, "price": 1.0}]}, 10.0),
        ({"points": [{"mb_s": 8.0, "price": 1.0}]}, 8.0),
        ({"tiers": [{"per_mb_s": 1.0}]}, 10.0),
        ({"tiers": [{"up_to": 8.0, "per_mb_s": 1.0}]}, 8.0),
        ({"tiers": [{"up_to": 4.0, "per_mb_s": 1.0}, {"per_mb_s": 0.5}]}, 10.0),
        ({"power": {"factor": 1.0, "exponent": 0.5, "up_to": 80.0}}, 10.0),
        ({"power": {"factor": 1.0, "exponent": 0.5, "up_to": 8.0}}, 8.0),
    ],
)
def test_the_least_cap_counts(storage: dict[str, Any], cap: float) -> None:
    assert tariff(**storage, bandwidth_cap=10.0).cap == cap


# --- tiers -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mb_s", "price"), [(0.0, 0.0), (50.0, 0.5), (100.0, 1.0), (200.0, 1.5), (300.0, 2.0), (800.0, 3.0)]
)
def test_each_mb_s_is_sold_at_the_price_of_its_tier(mb_s: float, price: float) -> None:
    tiers = [{"up_to": 100, "per_mb_s": 0.01}, {"up_to": 300, "per_mb_s": 0.005}, {"per_mb_s": 0.002}]
    assert tariff(tiers=tiers).price(mb_s) == pytest.approx(price, abs=1e-12)


@CHECKED
@given(st.lists(st.tuples(st.floats(0.5, 500.0), st.floats(0.0, 0.1)), min_size=1, max_size=5), st.floats(0.0, 1.0))
def test_tiers_are_the_points_at_their_ends(steps: list[tuple[float, float]], part: float) -> None:
    tiers, points, end, price = [], [{"mb_s": 1e-3, "price": 0.0}], 0.0, 0.0
    for width, slope in sorted(steps, key=lambda step: -step[1]):
        end, price = end + width, price + width * slope
        tiers.append({"up_to": end, "per_mb_s": slope})
        points.append({"mb_s": end, "price": price})
    points[0]["price"] = 1e-3 * tiers[0]["per_mb_s"]
    by_tiers, by_points = tariff(tiers=tiers), tariff(points=points)
    assert by_tiers.cap == by_points.cap == end
    assert by_tiers.price(part * end) == pytest.approx(float(by_points.price(part * end)), rel=1e-6, abs=1e-9)
    assert all(alpha >= 0 for alpha, _ in by_tiers.lines)


# --- power laws ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mb_s", "price"), [(-1.0, 0.0), (0.0, 0.0), (1.0, 0.25), (4.0, 0.5), (100.0, 2.5), (400.0, 5.0)]
)
def test_a_plan_pays_the_power_law_itself(mb_s: float, price: float) -> None:
    found = tariff(power={"factor": 0.25, "exponent": 0.5, "up_to": 400, "error": 0.5})
    assert found.price(mb_s) == pytest.approx(price)
    assert found.price(np.array([mb_s, 100.0])).tolist() == pytest.approx([price, 2.5])


exponents = st.just(0.0) | st.floats(1e-6, 1.0) | st.sampled_from((1e-6, 0.01, 0.1, 1 / 3, 0.5, 0.88, 0.999, 1 - 1e-12))


@CHECKED
@given(st.floats(1e-6, 1e4), exponents, st.floats(1e-3, 1e9), st.floats(1e-3, 0.5), st.floats(SMALLEST, 1.0))
@example(1.0, 0.5, 1000.0, 1e-3, 1e-5)
@example(1.0, 1e-6, 1.0, 0.01, 0.5)
@example(1.0, 1 - 1e-16, 1.0, 0.001, 0.5)
def test_chords_are_never_above_the_power_law_nor_far_below_it(
    factor: float, exponent: float, up_to: float, error: float, part: float
) -> None:
    found = Tariff(chords(factor, exponent, up_to, error), up_to, (factor, exponent))
    mb_s = part * up_to
    reckoned, price, most = float(found.envelope(mb_s)), float(found.price(mb_s)), float(found.price(up_to))
    assert reckoned <= price * (1 + 1e-9)
    assert reckoned >= price - error * most * (1 + 1e-6)
    first = _end_of_first_chord(found)
    if mb_s >= first:
        assert reckoned >= price * (1 - error * (1 + 1e-6)) - 1e-12 * most
    assert price - reckoned <= found.chord_error * (1 + 1e-6) + 1e-9 * price
    assert found.envelope(up_to) == pytest.approx(most, rel=1e-9)
    assert 1 <= len(found.lines) <= MOST_LINES


def _end_of_first_chord(tariff: Tariff) -> float:
    """Where the first line, which begins at the origin, gives way to the second."""
    if len(tariff.lines) == 1:
        return 0.0 if tariff.chord_error == 0 else tariff.cap
    (a0, b0), (a1, b1) = tariff.lines[:2]
    return (a1 - a0) / (b0 - b1) * (1 + 1e-9) if b0 > b1 else 0.0


def test_the_error_of_chords_is_reached_between_their_ends() -> None:
    """Nothing is given away: on some stretch the chord misses nearly as much as it may."""
    found = tariff(power={"factor": 0.1, "exponent": 0.5, "up_to": 1e4, "error": 0.01})
    ends = [(a1 - a0) / (b0 - b1) for (a0, b0), (a1, b1) in itertools.pairwise(found.lines)]
    mb_s = np.geomspace(1e-5, 1e4, 40001)
    missed = (found.price(mb_s) - found.envelope(mb_s)) / found.price(mb_s)
    assert 0.005 < float(np.max(missed[mb_s >= ends[0]])) <= 0.01 * (1 + 1e-9)
    assert found.chord_error == pytest.approx(0.01 * found.price(1e4))
    assert found.chord_error == pytest.approx(float(np.max(found.price(mb_s) - found.envelope(mb_s))), rel=1e-3)
    assert 8 < len(found.lines) < 16


@pytest.mark.parametrize(("exponent", "line"), [(0.0, (0.5, 0.0)), (1.0, (0.0, 0.5))])
def test_flat_and_linear_laws_are_one_line(exponent: float, line: tuple[float, float]) -> None:
    found = tariff(power={"factor": 0.5, "exponent": exponent, "up_to": 400})
    assert found.lines == (line,)
    assert found.chord_error == 0.0
    for mb_s in (0.0, 0.25, 4.0, 400.0):
        assert found.price(mb_s) == found.envelope(mb_s)


# --- at the margin ---------------------------------------------------------------------------------------

PIECES = {"tariff": [{"per_mb_s": 0.01}, {"fixed": 0.5, "per_mb_s": 0.005}]}


@pytest.mark.parametrize(
    ("storage", "mb_s", "slope"),
    [
        (PIECES, 0.0, 0.01),
        (PIECES, 99.0, 0.01),
        (PIECES, 100.0, 0.01),  # at the kink: what the last MB/s has cost
        (PIECES, 101.0, 0.005),
        ({"power": {"factor": 0.25, "exponent": 0.5, "up_to": 400}}, 0.0, math.inf),
        ({"power": {"factor": 0.25, "exponent": 0.5, "up_to": 400}}, 100.0, 0.0125),
        ({"power": {"factor": 0.25, "exponent": 1.0, "up_to": 400}}, 0.0, 0.25),
        ({"power": {"factor": 0.25, "exponent": 1.0, "up_to": 400}}, 100.0, 0.25),
        ({"power": {"factor": 0.25, "exponent": 0.0, "up_to": 400}}, 100.0, 0.0),
    ],
)
def test_what_the_last_mb_s_costs(storage: dict[str, Any], mb_s: float, slope: float) -> None:
    assert tariff(**storage).marginal(mb_s) == pytest.approx(slope)
