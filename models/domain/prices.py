"""Prices that change over the day: constant, daily windows, or a list with one entry a slot."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import BeforeValidator, Discriminator, Field, Tag, WithJsonSchema

from models.domain.fields import Entity, PricePerHour, PricePerKwh, describe

_CLOCK = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)|24:00")


def _read_clock(value: object) -> float:
    if not isinstance(value, str) or not (match := _CLOCK.fullmatch(value.strip())):
        raise ValueError('is not a time of day; write it in quotes, such as "22:00"')
    return 86400.0 if match[1] is None else int(match[1]) * 3600.0 + int(match[2]) * 60.0


Clock = Annotated[
    float,
    BeforeValidator(_read_clock),
    WithJsonSchema({"type": "string", "pattern": "^([01]?[0-9]|2[0-3]):[0-5][0-9]$|^24:00$", "x-unit": "HH:MM"}),
    "clock",
]


class HourlyWindow(Entity):
    """A price that holds every day between two times of day, in the time zone of the instance's start."""

    since: Clock = describe("first moment of the window, time of day")
    until: Clock = describe("end of the window; before `since` where it runs over midnight")
    price: PricePerHour = describe("price within the window")


class EnergyWindow(Entity):
    """An energy price that holds every day between two times of day."""

    since: Clock = describe("first moment of the window, time of day")
    until: Clock = describe("end of the window; before `since` where it runs over midnight")
    price: PricePerKwh = describe("price within the window")


class HourlyTariff(Entity):
    """A time-of-use price: one outside all windows, others within them (the first that holds wins)."""

    default: PricePerHour = describe("price outside all windows")
    windows: tuple[HourlyWindow, ...] = describe("daily windows with their own price", ())


class EnergyTariff(Entity):
    """A time-of-use price of energy."""

    default: PricePerKwh = describe("price outside all windows")
    windows: tuple[EnergyWindow, ...] = describe("daily windows with their own price", ())


Price = float | HourlyTariff | EnergyTariff | tuple[float, ...]

# A union's tag enters the path of a fault; those that start with ~ are not fields, and readers of faults drop them.
_CONSTANT, _LIST, _WINDOWS = "~constant", "~list", "~windows"


def _shape(value: object) -> str:
    if isinstance(value, dict | Entity):
        return _WINDOWS
    return _LIST if isinstance(value, list | tuple) else _CONSTANT


TimeOfUsePrice = Annotated[
    Annotated[PricePerHour, Tag(_CONSTANT)]
    | Annotated[tuple[PricePerHour, ...], Field(min_length=1), Tag(_LIST)]
    | Annotated[HourlyTariff, Tag(_WINDOWS)],
    Discriminator(_shape),
]
TimeOfUseEnergyPrice = Annotated[
    Annotated[PricePerKwh, Tag(_CONSTANT)]
    | Annotated[tuple[PricePerKwh, ...], Field(min_length=1), Tag(_LIST)]
    | Annotated[EnergyTariff, Tag(_WINDOWS)],
    Discriminator(_shape),
]
