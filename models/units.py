"""Quantities as people write them: "90m", "40GiB", "1.2TB", "500 MB/s", "3.06 USD/h". The only parser of them.

The arithmetic of units is pint's, over a registry of just the units that an instance needs; the units that most files
get by with are in a table, so that pint need not be imported for them. A bare number is taken in the canonical unit
of its kind, and what is written back reads to exactly the same number.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

NUMBER = r"[+-]?(?:\d+(?:_\d+)*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
# No digits in a unit: powers have no use here, and 9**9**9 would keep the arithmetic busy for ever.
_QUANTITY = re.compile(rf"\s*({NUMBER})\s*([A-Za-z%$€£][A-Za-z/*·() $€£]*)?\s*")
_NOT_FINITE = re.compile(r"[+-]?\.?(?:inf|infinity|nan)", re.IGNORECASE)
LARGEST = 1e15
"""No quantity is larger, so that sums, quotients and slot numbers stay within what numbers can hold."""
_COMPOUND = re.compile(rf"\s*(?:({NUMBER})\s*(d|days?|h|hours?|hr|m|min|minutes?|s|sec|seconds?)\s*)+")
_COMPOUND_PART = re.compile(rf"({NUMBER})\s*([a-z]+)")
# 1:30 is refused: minutes and seconds to Slurm, hours and minutes to most people.
_SLURM = re.compile(r"(?:(\d+)-)?(\d{1,3}):(\d{2}):(\d{2})|(\d+)-(\d{1,2}):(\d{2})")
_ISO = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?")
_SIGNS = {"$": "USD", "€": "EUR", "£": "GBP"}
# What most quantities in large files look like; all else, and every fault, is for the patterns above.
_PLAIN = re.compile(r"(\d+(?:\.\d+)?) ?([A-Za-z][A-Za-z/()]*)")
_CODE = re.compile(r"[A-Z]{3}\b")

_DEFINITIONS = """
second = [time] = s = sec = seconds
minute = 60 * second = min = m = minutes
hour = 60 * minute = h = hr = hours
day = 24 * hour = d = days
byte = [data] = B
kilobyte = 1e3 * byte = kB = KB
megabyte = 1e6 * byte = MB
gigabyte = 1e9 * byte = GB
terabyte = 1e12 * byte = TB
petabyte = 1e15 * byte = PB
kibibyte = 1024 * byte = KiB
mebibyte = 1048576 * byte = MiB
gibibyte = 1073741824 * byte = GiB
tebibyte = 1099511627776 * byte = TiB
kilobit = 125 * byte = kbit
megabit = 1.25e5 * byte = Mbit = Mb
gigabit = 1.25e8 * byte = Gbit = Gb
joule = [energy] = J
kilowatthour = 3.6e6 * joule = kWh
megawatthour = 3.6e9 * joule = MWh
watt = joule / second = W
kilowatt = 1e3 * watt = kW
money = [money]
gpu = [gpu] = GPU = gpus = GPUs
node = [node] = nodes
one = []
percent = 0.01 * one
"""

_SIZES = {
    "kB": 1e-6, "MB": 1e-3, "GB": 1.0, "TB": 1e3, "PB": 1e6,
    "KiB": 1024 / 1e9, "MiB": 1024**2 / 1e9, "GiB": 1024**3 / 1e9, "TiB": 1024**4 / 1e9,
}  # fmt: skip
_USUAL: dict[str, dict[str, float]] = {
    "s": {
        "s": 1.0, "sec": 1.0, "second": 1.0, "seconds": 1.0, "m": 60.0, "min": 60.0, "minute": 60.0, "minutes": 60.0,
        "h": 3600.0, "hr": 3600.0, "hour": 3600.0, "hours": 3600.0, "d": 86400.0, "day": 86400.0, "days": 86400.0,
    },
    "GB": _SIZES,
    "MB/s": {f"{unit}/s": 1e3 * gb for unit, gb in _SIZES.items()} | {"Mbit/s": 0.125, "Gbit/s": 125.0},
    "kW": {"W": 1e-3, "kW": 1.0},
    "money": {"money": 1.0},
    "money/h": {"money/h": 1.0, "money/hour": 1.0},
    "money/GB": {"money/GB": 1.0, "money/TB": 1e-3},
    "money/GB/h": {"money/GB/h": 1.0, "money/TB/h": 1e-3},
    "money/kWh": {"money/kWh": 1.0, "money/MWh": 1e-3},
    "money/h/(MB/s)": {"money/h/(MB/s)": 1.0, "money/h/(GB/s)": 1e-3},
    "one/h": {"one/h": 1.0},
}  # fmt: skip
"""By canonical unit: the factors of units in which most files are written; a test holds them against pint."""


@dataclass(frozen=True)
class Kind:
    """A kind of quantity: its canonical unit (of a bare number), the units it is written back in, the best first."""

    name: str
    unit: str
    display: tuple[str, ...]
    example: str
    has_money: bool = False


DURATION = Kind("duration", "s", ("h", "min", "s"), "90m, 1h30m, PT36H or 1-12:00:00")
SIZE = Kind("size", "GB", ("TB", "GB", "MB"), "640GB or 1.2TB")
MEMORY = Kind("memory", "GB", ("GB", "GiB", "MB"), "40GiB")
RATE = Kind("rate", "MB/s", ("GB/s", "MB/s"), "500 MB/s")
POWER = Kind("power", "kW", ("kW", "W"), "0.35 kW")
MONEY = Kind("money", "money", ("money",), "250 USD", has_money=True)
PRICE_PER_HOUR = Kind("price per hour", "money/h", ("money/h",), "3.06 USD/h", has_money=True)
PRICE_PER_GB = Kind("price per GB", "money/GB", ("money/GB",), "0.09 USD/GB", has_money=True)
PRICE_PER_GB_HOUR = Kind("price per GB and hour", "money/GB/h", ("money/GB/h",), "0.0002 USD/GB/h", has_money=True)
PRICE_PER_KWH = Kind("price per kWh", "money/kWh", ("money/kWh",), "0.18 USD/kWh", has_money=True)
PRICE_PER_RATE = Kind(
    "price per MB/s and hour", "money/h/(MB/s)", ("money/h/(MB/s)",), "0.001 USD/h/(MB/s)", has_money=True
)
PER_HOUR = Kind("rate of events", "one/h", ("one/h",), "0.05/h")


@cache
def _registry() -> Any:
    import pint

    registry = pint.UnitRegistry(None, case_sensitive=True)
    for line in _DEFINITIONS.strip().splitlines():
        registry.define(line)
    return registry


@lru_cache(maxsize=4096)
def _scale(unit: str, canonical: str) -> tuple[float, float]:
    """What a number in one unit is multiplied and divided by, so that 350 W is 0.35 kW, and 1 TB 1000 GB, exactly.

    Not a number for what is no unit of this kind (not an exception: thousands of cells may have the same one).
    """
    factor = _factor(unit, canonical)
    if math.isnan(factor):
        return math.nan, 1.0
    inverse = 1.0 / factor
    if factor < 1 and abs(inverse - round(inverse)) < 1e-9 * inverse:
        return 1.0, float(round(inverse))
    short = float(f"{factor:.13g}")
    return (short if abs(short - factor) < 1e-14 * factor else factor), 1.0


def _factor(unit: str, canonical: str) -> float:
    usual = _USUAL.get(canonical, {}).get(unit)
    return _factor_of_pint(unit, canonical) if usual is None else usual


def _factor_of_pint(unit: str, canonical: str) -> float:
    registry = _registry()
    try:
        return float(registry.Quantity(1.0, registry.parse_units(unit)).to(registry.parse_units(canonical)).magnitude)
    except Exception:  # pint raises a dozen types for a unit it does not know or cannot convert
        return math.nan


def parse(value: object, kind: Kind, currency: str | None = None) -> float:
    """A number in the canonical unit of `kind`.

    Raises ValueError with a sentence for people: not a number, not finite, unknown or wrong unit, other currency.
    """
    if isinstance(value, bool):
        raise ValueError(f"is true or false where a {kind.name} belongs; write {kind.example}")
    if isinstance(value, int | float):
        try:
            number = float(value)
        except OverflowError:
            raise ValueError(f"is too large for a {kind.name}; write {kind.example}") from None
    elif isinstance(value, str):
        number = _parse_text(value, kind, currency)
    else:
        raise ValueError(f"is not a {kind.name}; write {kind.example}")
    if not math.isfinite(number):
        raise ValueError(f"is not a finite number; write {kind.example}")
    if abs(number) > LARGEST:
        raise ValueError(f"is too large for a {kind.name}; write {kind.example}")
    return number + 0.0  # -0.0 becomes 0.0


def _parse_text(text: str, kind: Kind, currency: str | None) -> float:
    if plain := _PLAIN.fullmatch(text):
        scale = _usual_scale(plain[2], kind.unit, currency)
        if scale is not None and len(text) <= 100:
            return float(plain[1]) * scale[0] / scale[1]
    if len(text) > 100:
        raise ValueError(f"is too long for a {kind.name}; write {kind.example}")
    if _NOT_FINITE.fullmatch(text.strip()):
        return math.nan
    if kind is DURATION and (seconds := _parse_duration(text)) is not None:
        return seconds
    if kind is PER_HOUR and text.strip().startswith("/"):
        text = "1" + text
    if lead := re.fullmatch(rf"\s*([$€£])\s*({NUMBER})(.*)", text):
        text = f"{lead[2]} {_SIGNS[lead[1]]}{lead[3]}"
    match = _QUANTITY.fullmatch(re.sub(rf"^\s*({NUMBER})\s*/", r"\1 one/", text))
    if not match:
        raise ValueError(f"is not a {kind.name}; write {kind.example}")
    number = float(match[1].replace("_", ""))
    unit = (match[2] or "").strip()
    if not unit:
        return number
    written = unit
    for sign, code in _SIGNS.items():
        unit = unit.replace(sign, code)
    if kind.has_money:
        stated = _CODE.match(unit)
        if not stated:
            raise ValueError(f"has no currency in its unit '{unit.removeprefix('one')}'; write {kind.example}")
        if currency is not None and stated[0] != currency:
            raise ValueError(f"is in {stated[0]} while the file's currency is {currency}; convert it to {currency}")
        unit = "money" + unit[3:]
    times, by = _scale(re.sub(r"\s*/\s*", "/", unit).replace("·", "*"), kind.unit)
    if math.isnan(times):
        raise ValueError(f"'{written}' is not a unit of {kind.name}; write {kind.example}")
    return number * times / by


@lru_cache(maxsize=4096)
def _usual_scale(unit: str, canonical: str, currency: str | None) -> tuple[float, float] | None:
    """`_scale` of a unit as written, money in its currency; None where the unit is not one of the usual ones."""
    if canonical.startswith("money"):
        stated = _CODE.match(unit)
        if not stated or currency not in (None, stated[0]):
            return None
        unit = "money" + unit[3:]
    return _scale(unit, canonical) if unit in _USUAL.get(canonical, {}) else None


def _parse_duration(text: str) -> float | None:
    stripped = text.strip()
    if match := _SLURM.fullmatch(stripped):
        d, h, m, s, days, hours, minutes = (int(part or 0) for part in match.groups())
        return float((d + days) * 86400 + (h + hours) * 3600 + (m + minutes) * 60 + s)
    if stripped not in ("P", "PT") and (match := _ISO.fullmatch(stripped)):
        days, hours, minutes = (int(part or 0) for part in match.groups()[:3])
        return days * 86400 + hours * 3600 + minutes * 60 + float(match[4] or 0)
    if _COMPOUND.fullmatch(stripped):
        parts = _COMPOUND_PART.findall(stripped)
        return sum(float(number.replace("_", "")) * _scale(unit, "s")[0] for number, unit in parts)
    return None


def write(value: float, kind: Kind, currency: str | None = None) -> str:
    """A spelling of `value` that `parse` reads back to exactly the same number: 3.5 h, not 12600 s; else the
    shortest."""
    best: str | None = None
    for unit in kind.display:
        times, by = _scale(unit, kind.unit)
        number = value / times * by
        shown = unit.replace("money", currency or "USD")
        # Without the last digits first, which are often those of a rounding: 350 W is 0.35 kW.
        for text in dict.fromkeys((_plain(float(f"{number:.15g}")), _plain(number))):
            spelling = f"{text}/h" if kind is PER_HOUR else f"{text} {shown}"
            if _reads_as(spelling, kind, value):
                if abs(number) >= 1 and re.fullmatch(r"-?\d+(\.\d\d?)?", text):
                    return spelling
                best = spelling if best is None or len(spelling) < len(best) else best
                break
    return best if best is not None else repr(value)


def _reads_as(spelling: str, kind: Kind, value: float) -> bool:
    try:
        return parse(spelling, kind) == value
    except ValueError:  # rounded up, the largest value is too large
        return False


def _plain(number: float) -> str:
    return str(int(number)) if number == int(number) and abs(number) < 1e15 else repr(float(number))


def writer(kind: Kind, currency: str | None) -> Callable[[float], str]:
    """`write` for one kind and currency."""
    return lambda value: write(value, kind, currency)
