"""`planner tariff`: bandwidth tariffs fitted to a price list."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from planner.cli import output
from planner.cli.failures import failures
from planner.cli.options import AsJson, examples

if TYPE_CHECKING:
    from models.storage.fit import Fit

EPILOG = examples("planner tariff instances/lustre.csv", "planner tariff prices.csv --currency EUR --json")


def parse_currency(text: str) -> str:
    """The code of a currency."""
    if not re.fullmatch("[A-Z]{3}", text):
        raise typer.BadParameter(f"'{text}' is not three capitals such as USD", param_hint="--currency")
    return text


def tariff(
    points: Annotated[
        Path,
        typer.Argument(
            metavar="POINTS",
            help="CSV table with the columns mb_s (bandwidth; bare numbers are MB/s) and price (an hour).",
            show_default=False,
        ),
    ],
    currency: Annotated[str, typer.Option(metavar="CODE", help="Currency of the prices.")] = "USD",
    as_json: AsJson = False,
) -> None:
    """Fit bandwidth tariffs to a price list, say how well each fits, and print the one to paste into an instance.

    Fitted are the least of one, two and three lines, a power law, and the points themselves (where they are not
    concave, the least concave tariff above them). Lines and power law have the least squares of relative errors, since
    the prices of one list span decades; R^2 is that of the price. Recommended is the simplest fit that is nowhere off
    by more than 1 %, or else the one whose largest error is smallest.

    \b
    A price list, here that of a managed Lustre service:
      mb_s,price
      150,0.31
      300,0.46
      600,0.77
      1200,1.39
    """
    code = parse_currency(currency)
    with failures(as_json):
        import numpy as np

        from models.storage.fit import fit_tariffs
        from planner.io.price_list import read_price_list, storage_fields

        listed = read_price_list(points, code)
        mb_s, prices = (np.array(column) for column in zip(*((p.mb_s, p.price) for p in listed), strict=True))
        fits = fit_tariffs(mb_s, prices)
        fragments = {fit.name: storage_fields(fit.storage, code) for fit in fits.fits}
        if as_json:
            output.document(
                {
                    "currency": code,
                    "points": len(listed),
                    "minimised": "sum of squared relative errors",
                    "fits": [_document(fit, fragments[fit.name]) for fit in fits.fits],
                    "is_concave": not fits.breaches,
                    "remarks": [str(breach) for breach in fits.breaches],
                    "recommended": fits.recommended.name,
                }
            )
            return
        from planner.io.instances import yaml_bytes
        from planner.report.tariff import page

        spelling = yaml_bytes(fragments[fits.recommended.name]).decode()
        output.show(page(points.name, code, mb_s, prices, fits, spelling, output.canvas()))


def _document(fit: Fit, fragment: dict[str, object]) -> dict[str, object]:
    errors = fit.errors
    return {
        "name": fit.name,
        "storage": fragment,
        "rms_error": errors.rms,
        "largest_error": errors.largest,
        "largest_error_at_mb_s": errors.largest_at,
        "rms_relative_error": errors.rms_relative,
        "largest_relative_error": errors.largest_relative,
        "largest_relative_error_at_mb_s": errors.largest_relative_at,
        "r_squared": errors.r_squared,
    }
