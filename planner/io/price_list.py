"""A price list of bandwidth in, as a CSV table of points; storage fields out, as an instance spells them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from models import units
from models.domain.entities import Storage, TariffPoint
from models.errors import Fault, InvalidInput
from planner.io.drafts import Broken
from planner.io.faults import Path as FieldPath
from planner.io.faults import faults_of, placed
from planner.io.shapes import Encoder
from planner.io.tables import Table, read_table
from planner.io.texts import refuse, show

MOST_POINTS = 1_000
_SECTION = "points"
_LEAST_PRICE = 1e-12


def read_price_list(path: Path, currency: str) -> list[TariffPoint]:
    """The points of a CSV file with the columns mb_s and price, in its order; raises InvalidInput with every fault.

    They have prices above 0 and two bandwidths or more.
    """
    table = read_table(path, _SECTION, show(str(path), 300))
    if len(table.records) > MOST_POINTS:
        mend = "give a price list; is it the right file?"
        raise refuse(path, f"has more than {MOST_POINTS:,} points", mend, f"{len(table.records):,}")
    points: list[TariffPoint] = []
    faults = list(table.faults)
    for k, record in enumerate(table.records):
        if isinstance(record, Broken):
            continue
        try:
            point = TariffPoint.model_validate(record, context={"currency": currency})
        except ValidationError as error:
            # A column that is not there is one fault, not one of each row.
            found = faults_of(error, TariffPoint, (_SECTION, k))
            faults += [f for f in found if f.problem != "is missing" or f.path[-1] not in table.missing]
            continue
        if point.price < _LEAST_PRICE:
            mend = "drop the row; where all bandwidth is free, leave the tariff out"
            at = (_SECTION, k, "price")
            faults.append(Fault("is too small for errors relative to it", at, show(record["price"]), mend))
        points.append(point)
    faults += _too_few(table)

    def locate(at: FieldPath) -> tuple[str, int]:
        if len(at) < 2 or not isinstance(at[1], int):
            return table.where, 0
        return f"{table.where} row {table.rows[at[1]]}", table.rows[at[1]]

    if faults:
        raise InvalidInput(placed(faults, locate))
    return points


def _too_few(table: Table) -> list[Fault]:
    """A fault where less than two bandwidths are stated, those that cannot be read included."""
    if not table.is_read or "mb_s" in table.missing:
        return []
    stated: set[float | str] = set()
    for k, record in enumerate(table.records):
        try:
            stated.add(units.parse(record.get("mb_s"), units.RATE))
        except ValueError:
            stated.add(f"row {k}")
    if len(stated) >= 2:
        return []
    return [Fault("has fewer than two bandwidths", (_SECTION,), str(len(stated)), "add a row with another bandwidth")]


def storage_fields(storage: Storage, currency: str) -> dict[str, Any]:
    """The fields of a storage service that differ from their defaults, as people write them."""
    # No field of a storage service is a time, which alone would need the start of an instance.
    return Encoder(datetime.fromtimestamp(0, UTC), currency).record(storage)
