"""The types of an instance's fields: what may be written, what is stored, what the JSON Schema says of it.

Stored values are plain numbers in the canonical unit of their kind (seconds, GB, MB/s, the instance's currency);
times are seconds after the instance's `start`.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo, WithJsonSchema

from models import units

# No line breaks, no control characters of either set, none that turn the writing direction, no lone surrogates (they
# cannot be written as UTF-8), no space at an end.
_ID = re.compile(r"(?!\s)[^\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]+(?<!\s)")
_WHOLE = re.compile(r"\s*[+-]?\d{1,9}\s*")
_PLAIN_NUMBER = re.compile(rf"\s*{units.NUMBER}\s*")
_DATE = re.compile(r"\s*\d{4}-\d{2}-\d{2}")
_SMALLEST = 1e-12
_SMALLEST_EXPONENT = 1e-6
_LONGEST_TIME = 100 * 365.25 * 86400
_LARGEST_NUMBER = 1e18
MAX_SLOTS = 100_000
NO_START = "is an instant, but the instance has no valid start; mend start first"


class Entity(BaseModel):
    """A frozen record; an unknown field is a fault, never ignored."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, validate_default=False)


def _context(info: ValidationInfo, key: str) -> Any:
    return None if info.context is None else info.context.get(key)


def _quantity(kind: units.Kind, *, positive: bool = False) -> Any:
    def read(value: object, info: ValidationInfo) -> float:
        number = units.parse(value, kind, _context(info, "currency"))
        if number < 0:
            raise ValueError(f"is negative; a {kind.name} is {'more than 0' if positive else '0 or more'}")
        if positive and number < _SMALLEST:
            near = "0" if number == 0 else "all but 0"
            raise ValueError(f"is {near}; a {kind.name} here is more than 0, e.g. {kind.example}")
        return number

    schema = {
        "anyOf": [
            {"type": "number", "exclusiveMinimum" if positive else "minimum": 0},
            {"type": "string", "minLength": 1},
        ],
        "x-unit": kind.unit.replace("money", "currency"),
        "x-example": kind.example,
    }
    return Annotated[float, BeforeValidator(read), WithJsonSchema(schema), kind]


Duration = _quantity(units.DURATION)
PositiveDuration = _quantity(units.DURATION, positive=True)
Size = _quantity(units.SIZE)
PositiveSize = _quantity(units.SIZE, positive=True)
Memory = _quantity(units.MEMORY, positive=True)
Rate = _quantity(units.RATE)
PositiveRate = _quantity(units.RATE, positive=True)
Power = _quantity(units.POWER)
Money = _quantity(units.MONEY)
PricePerHour = _quantity(units.PRICE_PER_HOUR)
PricePerGb = _quantity(units.PRICE_PER_GB)
PricePerGbHour = _quantity(units.PRICE_PER_GB_HOUR)
PricePerKwh = _quantity(units.PRICE_PER_KWH)
PricePerRate = _quantity(units.PRICE_PER_RATE)
PerHour = _quantity(units.PER_HOUR)


def _read_id(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 10**100:
        value = str(value)
    if not isinstance(value, str):
        raise ValueError("is not a name; write text, in quotes where it looks like a number")
    if len(value) > 200:
        raise ValueError("is longer than 200 characters; shorten it")
    if not _ID.fullmatch(value):
        raise ValueError(
            "is empty, or has a line break, a control character or a mark that turns the writing direction, or a space "
            "at an end; rename it"
        )
    return value


Id = Annotated[
    str,
    BeforeValidator(_read_id),
    WithJsonSchema({"type": ["string", "integer"], "minLength": 1, "maxLength": 200}),
]


def _read_int(value: object) -> object:
    if isinstance(value, bool) or (isinstance(value, float) and not value.is_integer()):
        raise ValueError("is not a whole number")
    if isinstance(value, str):
        if not _WHOLE.fullmatch(value):
            raise ValueError("is not a whole number")
        return int(value)
    return value


def _count(minimum: int) -> Any:
    return Annotated[
        int,
        BeforeValidator(_read_int),
        Field(ge=minimum, le=1_000_000),
        WithJsonSchema({"type": "integer", "minimum": minimum, "maximum": 1_000_000}),
    ]


Count = _count(0)
PositiveCount = _count(1)


def _read_number(value: object) -> float:
    if isinstance(value, bool):
        raise ValueError("is true or false where a number belongs")
    if isinstance(value, str) and len(value) <= 100 and _PLAIN_NUMBER.fullmatch(value):
        value = float(value)
    if not isinstance(value, int | float):
        raise ValueError("is not a number")
    if not abs(value) <= _LARGEST_NUMBER:  # not finite, or an integer too long for a float
        raise ValueError("is not a number below 1e18")
    return float(value) + 0.0  # -0.0 becomes 0.0


Number = Annotated[float, BeforeValidator(_read_number), WithJsonSchema({"type": "number"})]
PositiveNumber = Annotated[
    float,
    BeforeValidator(_read_number),
    Field(gt=0),
    WithJsonSchema({"type": "number", "exclusiveMinimum": 0}),
]
Fraction = Annotated[
    float,
    BeforeValidator(_read_number),
    Field(ge=1e-6, le=1),
    WithJsonSchema({"type": "number", "minimum": 1e-6, "maximum": 1}),
]


def _read_exponent(value: object) -> float:
    number = _read_number(value)
    if number > 1:
        raise ValueError("makes the tariff convex: each MB/s costs more than the one before; write 1 or less")
    if number < 0:
        raise ValueError("makes more bandwidth cheaper than less; write 0 (a flat price) or more, at most 1")
    if 0 < number < _SMALLEST_EXPONENT:
        raise ValueError("is all but 0; write 0 for a flat price")
    return number


Exponent = Annotated[
    float, BeforeValidator(_read_exponent), WithJsonSchema({"type": "number", "minimum": 0, "maximum": 1})
]


def parse_instant(text: str, start: datetime) -> float:
    """Seconds from `start` to an ISO 8601 instant that carries the same offset from UTC as `start`."""
    try:
        instant = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ValueError(
            "is not a time; write ISO 8601 such as 2026-01-12T18:00:00+01:00, or the time after start such as 6h"
        ) from None
    if instant.tzinfo is None:
        raise ValueError(f"has no time zone; write {instant.isoformat()}{start.isoformat()[19:]} if it is the start's")
    if instant.utcoffset() != start.utcoffset():
        try:
            same = instant.astimezone(start.tzinfo).isoformat()
        except OverflowError:  # at the edge of the calendar
            same = "out of range"
        raise ValueError(f"is in another time zone than the instance's start; the same instant there is {same}")
    return (instant - start) / timedelta(seconds=1)


def _read_time(value: object, info: ValidationInfo) -> float:
    if isinstance(value, str) and _DATE.match(value):
        start = _context(info, "start")
        if start is None:
            raise ValueError(NO_START)
        seconds = parse_instant(value, start)
    else:
        try:
            seconds = units.parse(value, units.DURATION)
        except ValueError:
            raise ValueError(
                "is not a time; write ISO 8601 such as 2026-01-12T18:00:00+01:00, or the time after start such as 6h"
            ) from None
    if abs(seconds) > _LONGEST_TIME:
        raise ValueError("is more than 100 years from start; write ISO 8601, or the time after start such as 6h")
    return round(seconds, 6) + 0.0  # -0.0 becomes 0.0


TIME = units.Kind("time", "s after start", (), "2026-01-12T18:00:00+01:00 or 6h")
Time = Annotated[
    float,
    BeforeValidator(_read_time),
    WithJsonSchema(
        {
            "anyOf": [{"type": "number"}, {"type": "string", "minLength": 1}],
            "x-unit": "ISO 8601 with zone, or time after start",
            "x-example": "2026-01-12T18:00:00+01:00 or 6h",
        }
    ),
    TIME,
]


def is_not_given(value: object) -> bool:
    """Whether a field is not given, to leave it out of what is written (`exclude_if`).

    Such fields are younger than the format: instances that do not have them keep their content hash.
    """
    return value is None or value == ()


def describe(text: str, default: Any = ..., **extra: Any) -> Any:
    """A field with its one line of meaning; required where no default is given."""
    return Field(default, description=text, **extra)
