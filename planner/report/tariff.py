"""Tariffs fitted to a price list on a page: how well each fits, which to take, and its spelling in an instance."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

import numpy as np
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from models.storage.fit import GOOD, Errors, Fit, Fits
from planner.report.canvas import Canvas
from planner.report.fitted import Cell, Column, fitted
from planner.report.text import ROUNDING, count, share

POINTS_SHOWN, BREACHES_SHOWN = 50, 5
_INDENT = " " * 6
"""Of the fields of a storage service in an instance."""


def page(
    name: str, currency: str, mb_s: np.ndarray, prices: np.ndarray, fits: Fits, spelling: str, canvas: Canvas
) -> Iterator[RenderableType]:
    """What `planner tariff` prints; `spelling` is the recommended fit in YAML."""
    span = f"{_amount(mb_s.min())} to {_amount(mb_s.max())} MB/s"
    yield Text.assemble(("tariff of  ", "dim"), (canvas.name(name), "bold"), f", {count(len(mb_s), 'point')}, {span}")
    yield from _remarks(fits)
    yield Text("")
    yield _fit_table(fits, currency, canvas)
    yield Text(
        "Largest errors stand with the MB/s at which they are. Lines and power law have the least squares of relative "
        "errors, since prices of one list span decades; R^2 is that of the price.",
        style="dim",
    )
    yield Text("")
    yield _recommendation(fits)
    yield Text("")
    yield _point_table(fits.recommended, currency, mb_s, prices, canvas)
    yield Text("\nTo paste under storage: of a site:\n")
    # Not folded: what is pasted must come out as it was written.
    yield Text(textwrap.indent(spelling, _INDENT).rstrip("\n"), no_wrap=True, overflow="ignore")


def _amount(value: float) -> str:
    return f"{value:,.6g}"


def _remarks(fits: Fits) -> Iterator[Text]:
    for breach in fits.breaches[:BREACHES_SHOWN]:
        yield Text(str(breach))
    if (more := len(fits.breaches) - BREACHES_SHOWN) > 0:
        yield Text(f"and at {count(more, 'more step')}; --json lists them all")
    if fits.breaches:
        errors = next(fit.errors for fit in fits.fits if fit.name == "points")
        at = f"{share(errors.largest_relative)} at {_amount(errors.largest_relative_at)} MB/s"
        yield Text(f"the least concave tariff above the points is off by up to {at}")


def _fit_table(fits: Fits, currency: str, canvas: Canvas) -> Table:
    columns = [
        Column("fit"),
        Column("P(B)"),
        Column(">largest error"),
        Column(">rms", 2),
        Column(f">largest, {currency}/h", 3),
        Column(f">rms, {currency}/h", 4),
        Column(">R^2", 1),
    ]
    rows: list[list[Cell]] = []
    for fit in fits.fits:
        errors = fit.errors
        rows.append(
            [
                Text(fit.name, style="bold" if fit is fits.recommended else ""),
                _formula(fit, is_concave=not fits.breaches),
                *_errors(errors),
                "-" if errors.r_squared is None else f"{errors.r_squared:.6f}",
            ]
        )
    return fitted("Fits, the simplest first", columns, rows, canvas)


def _errors(errors: Errors) -> tuple[str, str, str, str]:
    """The largest and the rms error, in per cent and in money."""
    if errors.largest_relative < ROUNDING:
        return "exact", "0 %", "0", "0"
    return (
        f"{share(errors.largest_relative)} at {_amount(errors.largest_relative_at)}",
        share(errors.rms_relative),
        f"{errors.largest:.3g} at {_amount(errors.largest_at)}",
        f"{errors.rms:.3g}",
    )


def _formula(fit: Fit, *, is_concave: bool) -> str:
    if fit.tariff.power is not None:
        factor, exponent = fit.tariff.power
        return f"{factor:.6g} B^{exponent:.6g}"
    if fit.storage.points:
        return "as listed" if is_concave else f"majorant, {count(len(fit.storage.points), 'point')}"
    return "\n".join(
        " + ".join(f"{number:.6g}{unit}" for number, unit in ((alpha, ""), (beta, " B")) if number)
        for alpha, beta in fit.tariff.lines
    )


def _recommendation(fits: Fits) -> Text:
    reason = f"the simplest that is nowhere off by more than {100 * GOOD:g} %"
    if fits.recommended.errors.largest_relative > GOOD:
        reason = f"none is within {100 * GOOD:g} %, and its largest error is the smallest"
    return Text.assemble(("recommended  ", "dim"), (fits.recommended.name, "bold"), f": {reason}")


def _point_table(fit: Fit, currency: str, mb_s: np.ndarray, prices: np.ndarray, canvas: Canvas) -> Table:
    columns = [Column(">MB/s"), Column(">listed"), Column(f">{fit.name}", 1), Column(">error")]
    order = np.argsort(mb_s, kind="stable")
    rows: list[list[Cell]] = []
    for at, listed in zip(mb_s[order][:POINTS_SHOWN], prices[order][:POINTS_SHOWN], strict=True):
        fitting = float(fit.tariff.price(at))
        rows.append([_amount(at), _amount(listed), _amount(fitting), share(fitting / listed - 1)])
    if (more := len(mb_s) - POINTS_SHOWN) > 0:
        rows.append([Text(f"{more:,} more", style="dim"), "", "", ""])
    return fitted(f"Prices an hour, {currency}", columns, rows, canvas)
