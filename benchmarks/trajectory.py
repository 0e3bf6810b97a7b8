"""Incumbent and bound over time of recorded runs, drawn as SVG: one chart for each instance.

    python -m benchmarks.trajectory benchmarks/results/compare-headline.jsonl
    python -m benchmarks.trajectory FILE --instance headline-50x300-load0.8-seed1 --solvers fast,cpsat --out chart.svg

A full line is an incumbent, a broken one a bound, a dot the end of a run. Money is shown in percent of the best bound
that any of the runs proved (of the best plan where none did), time from a hundredth of a second on, by powers of ten.
Names come from files and are escaped. With --text the same as a table.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from benchmarks.common import RESULTS, read_lines, write_whole

WIDTH, HEIGHT = 860, 420
LEFT, RIGHT, TOP, BOTTOM = 70, 190, 40, 50
FIRST_S = 0.01
# Told apart without red and green (Okabe and Ito).
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999", "#8C510A")
MOST_ABOVE, MOST_BELOW = 60.0, 40.0
"""Percent beyond which the chart is cut."""
MARKS_S = (0.1, 1.0, 5.0, 30.0)
"""Times of the table."""

Record = dict[str, Any]


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw what the arguments ask for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="a file of recorded runs")
    parser.add_argument("--instance", help="its name; all of the file if left out")
    parser.add_argument("--solvers", default="", help="some of those recorded")
    parser.add_argument("--out", type=Path, help="an SVG file, or a folder for several; benchmarks/results if left out")
    parser.add_argument("--text", action="store_true", help="a table on stdout instead")
    options = parser.parse_args(arguments)
    wanted = set(options.solvers.split(",")) - {""}
    runs: dict[str, dict[str, Record]] = defaultdict(dict)
    for record in read_lines(options.file):
        is_asked = options.instance in (None, record["instance"]) and (not wanted or record["solver"] in wanted)
        if record["trajectory"] and is_asked:
            runs[record["instance"]][record["solver"]] = record  # the newest of each
    if not runs:
        print("no such run is recorded", file=sys.stderr)
        return 1
    for name, members in runs.items():
        if options.text:
            print("\n".join(table_of(name, list(members.values()))))
            continue
        out = options.out or RESULTS
        path = out if out.suffix == ".svg" and len(runs) == 1 else out / f"{name}.svg"
        write_whole(path, chart_of(name, list(members.values())))
        print(f"wrote {path}")
    return 0


def reference_of(records: Sequence[Record]) -> float:
    """The amount that counts as 100 %."""
    bounds = [bound for record in records for _, _, bound in record["trajectory"] if bound]
    costs = [cost for record in records for _, cost, _ in record["trajectory"] if cost]
    return max(bounds) if bounds else min(costs, default=1.0)


def table_of(name: str, records: Sequence[Record]) -> list[str]:
    """Incumbent and bound of each run at a few times, in percent above and below the reference."""
    reference = reference_of(records)
    head = " | ".join(f"{at:g} s" for at in MARKS_S)
    lines = [f"{name}: plan / bound in percent off {reference:.2f}", f"| solver | {head} |", "|---" * 5 + "|"]
    for record in records:
        cells = []
        for mark in MARKS_S:
            known = [point for point in record["trajectory"] if point[0] <= mark]
            cost, bound = (known[-1][1], known[-1][2]) if known else (None, None)
            shown = ("-" if value is None else f"{100 * (value / reference - 1):+.2f}" for value in (cost, bound))
            cells.append(" / ".join(shown))
        lines.append(f"| {record['solver']} | {' | '.join(cells)} |")
    return lines


class _Frame:
    """From seconds and money to places on the page."""

    def __init__(self, records: Sequence[Record]):
        self.reference = reference_of(records)
        points = [point for record in records for point in record["trajectory"]]
        self.last_s = max(1.0, *(at for at, _, _ in points))
        values = [self.percent(value) for _, *pair in points for value in pair if value is not None]
        self.high = min(MOST_ABOVE, max(1.0, *values)) * 1.05
        self.low = max(-MOST_BELOW, min(-0.5, *values)) * 1.05

    def percent(self, money: float) -> float:
        """Percent off the reference."""
        return 100.0 * (money / self.reference - 1.0)

    def x(self, seconds: float) -> float:
        """Logarithm of the time."""
        part = math.log10(max(seconds, FIRST_S) / FIRST_S) / math.log10(self.last_s / FIRST_S)
        return LEFT + part * (WIDTH - LEFT - RIGHT)

    def y(self, money: float) -> float:
        """Percent, cut at the frame."""
        value = min(self.high, max(self.low, self.percent(money)))
        return TOP + (self.high - value) / (self.high - self.low) * (HEIGHT - TOP - BOTTOM)


def chart_of(name: str, records: Sequence[Record]) -> str:
    """The chart of one instance."""
    frame = _Frame(records)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" '
        'font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{LEFT}" y="22" font-size="14">{escape(name)}</text>',
        *_axes(frame),
    ]
    for k, record in enumerate(records):
        colour = COLOURS[k % len(COLOURS)]
        for column, dashes in ((1, ""), (2, ' stroke-dasharray="5 3"')):
            steps = _steps(frame, [(point[0], point[column]) for point in record["trajectory"]])
            if steps:
                parts.append(f'<path d="{steps}" fill="none" stroke="{colour}" stroke-width="1.6"{dashes}/>')
        at, cost, _ = record["trajectory"][-1]
        if cost is not None:
            parts.append(f'<circle cx="{frame.x(at):.1f}" cy="{frame.y(cost):.1f}" r="3" fill="{colour}"/>')
        y = TOP + 10 + 18 * k
        parts.append(f'<path d="M{WIDTH - RIGHT + 15} {y}h22" stroke="{colour}" stroke-width="2"/>')
        parts.append(f'<text x="{WIDTH - RIGHT + 43}" y="{y + 4}">{escape(record["solver"])}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _steps(frame: _Frame, points: Sequence[tuple[float, float | None]]) -> str:
    """A line that stays level until it changes."""
    known = [(frame.x(at), frame.y(value)) for at, value in points if value is not None]
    if not known:
        return ""
    return f"M{known[0][0]:.1f} {known[0][1]:.1f}" + "".join(f"H{x:.1f}V{y:.1f}" for x, y in known[1:])


def _axes(frame: _Frame) -> list[str]:
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    parts = [f'<rect x="{LEFT}" y="{TOP}" width="{right - LEFT}" height="{bottom - TOP}" fill="none" stroke="#888"/>']
    decade = FIRST_S
    while decade <= frame.last_s:
        x = frame.x(decade)
        parts.append(f'<path d="M{x:.1f} {TOP}V{bottom}" stroke="#ddd"/>')
        parts.append(f'<text x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{decade:g}</text>')
        decade *= 10
    step = next(s for s in (0.5, 1, 2, 5, 10, 20, 50) if (frame.high - frame.low) / s <= 10)
    for k in range(math.ceil(frame.low / step), math.floor(frame.high / step) + 1):
        y = frame.y(frame.reference * (1 + k * step / 100))
        parts.append(f'<path d="M{LEFT} {y:.1f}H{right}" stroke="{"#999" if k == 0 else "#ddd"}"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{k * step:+g} %</text>')
    parts.append(f'<text x="{(LEFT + right) / 2}" y="{HEIGHT - 12}" text-anchor="middle">seconds</text>')
    return parts


if __name__ == "__main__":
    sys.exit(main())
