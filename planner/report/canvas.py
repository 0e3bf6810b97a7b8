"""Rows of character cells: a time axis, bars and marks, in Unicode or in ASCII, as wide as the terminal.

What a bar means never hangs on colour alone: rented and owned nodes have different fillings, late jobs end
in "!", and one that has changed begins with "»".
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby

from rich.cells import cell_len, get_character_cell_size, set_cell_size
from rich.text import Text

from planner.report.text import Clock, clean

OWNED, BURST, LATE, FAINT = "cyan", "magenta", "bold red", "dim"
_STEPS_S = [60 * m for m in (1, 2, 5, 10, 15, 30)] + [3600 * h for h in (1, 2, 3, 6, 12)]
_STEPS_S += [86400 * d for d in (1, 2, 7, 14, 28, 91, 364)]
_DAY_S = 86400


@dataclass(frozen=True)
class Canvas:
    """How wide a drawing may be, and whether it is limited to ASCII."""

    width: int = 100
    ascii_only: bool = False

    def pick(self, unicode: str, plain: str) -> str:
        """One of two spellings."""
        return plain if self.ascii_only else unicode

    def name(self, text: str) -> str:
        """A name from outside, safe to print here."""
        return clean(text, self.ascii_only)

    def crop(self, text: str, width: int) -> str:
        """A safe name in exactly `width` cells.

        A longer one is cut in the middle, visibly: names of many jobs differ in their last letters.
        """
        safe = self.name(text)
        if cell_len(safe) <= width:
            return set_cell_size(safe, width)
        tail = max(0, (width - 1) * 2 // 3)
        end = safe[-tail:] if tail else ""
        while cell_len(end) > tail:
            end = end[1:]
        return set_cell_size(safe, width - 1 - cell_len(end)) + self.pick("…", "~") + end


@dataclass(frozen=True)
class Bar:
    """A stretch of time in which a job runs; the detail is left away where there is no room for it."""

    start: float
    end: float
    text: str
    detail: str = ""
    is_late: bool = False
    is_burst: bool = False
    run: str | None = None
    """The run of several stretches that it is part of; they share a row where they can."""
    is_change: bool = False
    """Whether another stretch of the run comes before it."""

    @property
    def style(self) -> str:
        """Colour of the bar."""
        return LATE if self.is_late else BURST if self.is_burst else OWNED


class Row:
    """Cells of one line; wide characters take two of them."""

    def __init__(self, width: int, fill: str = " ", style: str = ""):
        self.chars = [fill] * width
        self.styles = [style] * width

    def put(self, column: int, text: str, style: str = "") -> None:
        """Write from a column on; what would stick out on either side is left away."""
        for char in text:
            size = get_character_cell_size(char)
            if size == 0:
                if 0 < column <= len(self.chars):
                    self.chars[column - 1] += char
                continue
            if column >= 0 and column + size <= len(self.chars):
                for cell in range(column, column + size):
                    self._free(cell)
                    self.chars[cell], self.styles[cell] = "", style
                self.chars[column] = char
            column += size

    def _free(self, column: int) -> None:
        """Blank both halves of a wide character of which one is about to be overwritten."""
        if self.chars[column] == "":
            self.chars[column - 1] = " "
        elif column + 1 < len(self.chars) and self.chars[column + 1] == "" and self.chars[column] != "":
            self.chars[column + 1] = " "

    def text(self, label: str = "", label_style: str = "") -> Text:
        """The line, without blanks at its end."""
        line = Text(label, style="", no_wrap=True, overflow="ignore", end="\n")
        if label_style:
            line.stylize(label_style)
        cells = zip(self.styles, self.chars, strict=True)
        for style, stretch in groupby(cells, key=lambda cell: cell[0]):
            line.append("".join(char for _, char in stretch), style or None)
        line.rstrip()
        return line


@dataclass(frozen=True)
class Axis:
    """Slots laid out over columns."""

    clock: Clock
    num_slots: int
    columns: int

    def column(self, slot: float) -> int:
        """The column nearest to a slot's edge."""
        return round(slot * self.columns / max(1, self.num_slots))

    def span(self, bar: Bar) -> tuple[int, int]:
        """First column of a bar and the one after its last; at least one, within the axis."""
        first = min(self.column(bar.start), self.columns - 1)
        return first, max(first + 1, min(self.columns, self.column(bar.end)))

    @property
    def column_s(self) -> float:
        """Seconds in a column."""
        return self.num_slots * self.clock.slot_s / max(1, self.columns)

    def lines(self, canvas: Canvas, indent: int) -> list[Text]:
        """Dates above, times of day below; each label stands right of its tick."""
        step = next((s for s in _STEPS_S if s >= 8 * self.column_s), _STEPS_S[-1] * 4)
        dates, times = Row(self.columns), Row(self.columns)
        tick = canvas.pick("╷", "|")
        free = 0
        for moment in self._ticks(min(step, _DAY_S) if step < _DAY_S else step):
            column = self.column((moment - self.clock.start).total_seconds() / self.clock.slot_s)
            if column >= self.columns:
                break
            is_day = moment.hour == moment.minute == 0
            if step < _DAY_S:
                times.put(column, f"{tick}{moment:%H:%M}", FAINT)
            else:
                times.put(column, f"{tick}{_day(moment)}", FAINT)
            if is_day and step < _DAY_S and column >= free:
                dates.put(column, f"{tick}{moment:%a} {_day(moment)}")
                free = column + 12
        if step >= _DAY_S:
            dates.put(0, f"from {self.clock.slot(0)}")
        elif all(char == " " for char in dates.chars[:14]):
            dates.put(0, f"{self.clock.start:%a} {_day(self.clock.start)}")
        return [dates.text(" " * indent), times.text(" " * indent)]

    def _ticks(self, step_s: float) -> Iterable[datetime]:
        """Round moments from the start on: multiples of the step after a midnight."""
        midnight = self.clock.start.replace(hour=0, minute=0, second=0, microsecond=0)
        into_day = (self.clock.start - midnight).total_seconds()
        moment = midnight + timedelta(seconds=-(-into_day // step_s) * step_s)
        for _ in range(self.columns + 1):
            yield moment
            moment += timedelta(seconds=step_s)


def _day(moment: datetime) -> str:
    return f"{moment.day} {moment:%b}"


def draw_bar(row: Row, axis: Axis, bar: Bar, canvas: Canvas) -> None:
    """[name━━━] on owned nodes, [name┅┅┅] on rented ones, »name━━━] after a change, ! at the end of a late job."""
    first, last = axis.span(bar)
    width = last - first
    fill = canvas.pick("┅", "~") if bar.is_burst else canvas.pick("━", "=")
    begin, close = canvas.pick("»", ">") if bar.is_change else "[", "!" if bar.is_late else "]"
    if width == 1:
        short = canvas.pick("╍", "~") if bar.is_burst else begin if bar.is_change else canvas.pick("▪", "#")
        row.put(first, "!" if bar.is_late else short, bar.style)
        return
    room = width - 2
    label = canvas.name(bar.text + bar.detail)
    if cell_len(label) > room:
        label = canvas.name(bar.text)
    if cell_len(label) > room:
        # A name cut to a letter or two tells nothing and looks like another job.
        label = canvas.crop(bar.text, room) if room >= 4 else ""
    row.put(first, begin + label + fill * (room - cell_len(label)) + close, bar.style)


def lanes(bars: Sequence[Bar], axis: Axis) -> list[list[Bar]]:
    """Bars in as few rows as possible so that none covers another as drawn; each in the first row that is free.

    The next stretch of a run takes the row of the one before it, unless that is covered, or the only one left to
    others.
    """
    rows: list[list[Bar]] = []
    taken: list[tuple[int, int]] = []  # (column at which it is free again, row), as a heap
    free: list[int] = []
    kept_for: dict[str, int] = {}
    to_come = Counter(bar.run for bar in bars if bar.run is not None)
    for bar in sorted(bars, key=lambda bar: (bar.start, not bar.is_change, -bar.end, bar.text)):
        first, last = axis.span(bar)
        while taken and taken[0][0] <= first:
            lane = heapq.heappop(taken)[1]
            run = rows[lane][-1].run
            if run is not None and to_come[run] and run not in kept_for:
                kept_for[run] = lane
            else:
                heapq.heappush(free, lane)
        if bar.run is not None:
            to_come[bar.run] -= 1
        if bar.run in kept_for:
            lane = kept_for.pop(bar.run)
        elif free:
            lane = heapq.heappop(free)
        elif kept_for:
            lane = kept_for.pop(min(kept_for, key=lambda run: kept_for[run]))
        else:
            lane = len(rows)
            rows.append([])
        rows[lane].append(bar)
        heapq.heappush(taken, (last, lane))
    return rows


def strip(levels: Sequence[float], axis: Axis, canvas: Canvas) -> Row:
    """A load by slot as a row of columns of growing height, relative to its peak."""
    steps = canvas.pick(" ▁▂▃▄▅▆▇█", " .:-=+*#@")
    peak = max(levels, default=0.0)
    row = Row(axis.columns)
    for column in range(axis.columns):
        first = column * axis.num_slots // axis.columns
        last = max(first + 1, -(-(column + 1) * axis.num_slots // axis.columns))
        level = max(levels[first:last], default=0.0)
        if peak > 0 and level > 0:
            row.put(column, steps[max(1, round(8 * level / peak))], OWNED)
    return row
