"""How names, money, times and shares are written for people.

Names of jobs, pools and files come from outside: whatever would move the cursor, change the colour or turn
the writing direction is shown as an escape instead of being sent to the terminal.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from datetime import datetime, timedelta
from functools import lru_cache

# Joiners are part of names in several scripts and of many emoji; they neither move nor hide anything.
_HARMLESS = {"\u200c", "\u200d"}
ROUNDING = 1e-9
_UNSAFE = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


@lru_cache(maxsize=8192)
def clean(text: str, ascii_only: bool = False) -> str:
    """A name as it can safely be printed: control and format characters become escapes such as \\x1b."""
    if ascii_only or not text.isascii() or not text.isprintable():
        return "".join(_shown(char, ascii_only) for char in text)
    return text


def _shown(char: str, ascii_only: bool) -> str:
    if char in _HARMLESS and not ascii_only:
        return char
    if unicodedata.category(char) in _UNSAFE or (ascii_only and not char.isascii()):
        code = ord(char)
        return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
    return char


def number(value: float) -> str:
    """A number with two decimals, or four significant digits where two decimals would hide it."""
    if value != 0 and abs(value) < 0.1:
        return f"{value:.4g}"
    return f"{value:,.2f}"


def money(value: float, currency: str) -> str:
    """An amount with its currency."""
    return f"{number(value)} {currency}"


def share(value: float | None, unknown: str = "unknown") -> str:
    """A share in per cent; a small one keeps its digits, so that only 0 (and what is rounding) reads as 0."""
    if value is None:
        return unknown
    if abs(value) < ROUNDING:
        return "0 %"
    percent = 100 * value
    if abs(percent) >= 0.01:
        return f"{percent:.2f} %"
    return f"{percent:.2g} %"


def hours(value: float) -> str:
    """A stretch of time: 45 min, 3 h 30 min, 2 d 4 h."""
    minutes = round(value * 60)
    if minutes == 0 and value > 0:
        return f"{value * 3600:.3g} s"
    days, rest = divmod(minutes, 1440)
    whole, minutes = divmod(rest, 60)
    parts = [(days, "d"), (whole, "h"), (minutes, "min")]
    return " ".join(f"{count} {unit}" for count, unit in parts if count) or "0 min"


def count(amount: int, noun: str, plural: str | None = None) -> str:
    """1 job, 2 jobs."""
    return f"{amount:,} {noun if amount == 1 else plural or noun + 's'}"


def ranges(indices: Iterable[int]) -> str:
    """Indices, runs of them shortened: 0-3,7."""
    spans: list[list[int]] = []
    for index in sorted(set(indices)):
        if spans and spans[-1][1] == index - 1:
            spans[-1][1] = index
        else:
            spans.append([index, index])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in spans)


class Clock:
    """Slots as times of day in the zone of the plan's start."""

    def __init__(self, start: str, slot_s: float):
        self.start = datetime.fromisoformat(start)
        self.slot_s = slot_s

    def at(self, slot: float) -> datetime:
        """The moment at which a slot begins."""
        return self.start + timedelta(seconds=slot * self.slot_s)

    def of(self, time: str) -> datetime:
        """A moment in ISO 8601, in the zone of the start."""
        return datetime.fromisoformat(time).astimezone(self.start.tzinfo)

    def text(self, moment: datetime) -> str:
        """Date and time; seconds only where there are any."""
        return moment.strftime("%Y-%m-%d %H:%M:%S" if moment.second else "%Y-%m-%d %H:%M")

    def slot(self, slot: float) -> str:
        """Date and time at which a slot begins."""
        return self.text(self.at(slot))

    def short(self, slot: float) -> str:
        """Day and time at which a slot begins, for tables whose page states the year."""
        moment = self.at(slot)
        if abs((moment - self.start).days) > 300:
            return self.text(moment)
        return f"{moment.day:2} {moment:%b %H:%M}" + (f":{moment:%S}" if moment.second else "")

    @property
    def zone(self) -> str:
        """Offset from UTC: UTC, +01:00."""
        offset = self.start.isoformat()[19:]
        return "UTC" if offset in ("", "+00:00") else offset
