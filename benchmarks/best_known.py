"""The best plan and the best bound known of each generated instance, in benchmarks/best_known.csv.

An instance is known by its name and its content hash. A name whose hash has changed is an error: what is known of the
instance of before says nothing of that of now. Values are replaced by better ones only.
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.common import write_whole

PATH = Path(__file__).parent / "best_known.csv"
COLUMNS = ("instance", "hash", "cost", "cost_by", "bound", "bound_by", "commit")
# A bound is proven to about this much of its value; less is no improvement either.
TOLERANCE = 1e-6


class Contradiction(Exception):
    """What is measured cannot be true together with what is known."""


@dataclass(frozen=True)
class Known:
    """A row: the lowest cost and the highest bound, each with how it was obtained; None where there is none."""

    instance: str
    hash: str
    cost: float | None = None
    cost_by: str = ""
    bound: float | None = None
    bound_by: str = ""
    commit: str = ""


class BestKnown:
    """The table, read at once and written whole at each change."""

    def __init__(self, path: Path = PATH):
        self.path = path
        self.rows: dict[str, Known] = {}
        if path.exists():
            for record in csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))):
                known = _read(record)
                self.rows[known.instance] = known

    def of(self, instance: str, content_hash: str) -> Known:
        """What is known of an instance; Contradiction where another instance had its name."""
        known = self.rows.get(instance)
        if known is None:
            return Known(instance, content_hash)
        if known.hash != content_hash:
            raise Contradiction(
                f"{instance} has the hash {content_hash[:12]}, and in {self.path.name} {known.hash[:12]}: what is "
                "generated has changed; undo that, or remove the rows of the instances of before"
            )
        return known

    def learn(
        self, instance: str, content_hash: str, cost: float | None, bound: float | None, by: str, commit: str
    ) -> bool:
        """Take a checked plan's cost and a bound where they are better; whether anything was.

        Contradiction where a bound lies above a plan: one of them is wrong, and neither is taken.
        """
        known = self.of(instance, content_hash)
        lowest = min((value for value in (cost, known.cost) if value is not None), default=None)
        highest = max((value for value in (bound, known.bound) if value is not None), default=None)
        if lowest is not None and highest is not None and highest > lowest * (1 + TOLERANCE) + TOLERANCE:
            raise Contradiction(
                f"{instance}: a bound of {highest!r} lies above a plan of {lowest!r} (now {by}; before: cost by "
                f"{known.cost_by or 'nobody'}, bound by {known.bound_by or 'nobody'})"
            )
        better = known
        if cost is not None and (known.cost is None or cost < known.cost * (1 - TOLERANCE)):
            better = replace(better, cost=cost, cost_by=by, commit=commit)
        if bound is not None and (known.bound is None or bound > known.bound * (1 + TOLERANCE)):
            better = replace(better, bound=bound, bound_by=by, commit=commit)
        if better == known:
            return False
        self.rows[instance] = better
        self.write()
        return True

    def write(self) -> None:
        """The file, by instance."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(COLUMNS)
        for name in sorted(self.rows):
            row = self.rows[name]
            writer.writerow([_shown(getattr(row, column)) for column in COLUMNS])
        write_whole(self.path, text.getvalue())


def _shown(value: str | float | None) -> str:
    return "" if value is None else value if isinstance(value, str) else repr(value)


def _read(record: dict[str, str]) -> Known:
    cost, bound = (float(record[name]) if record[name] else None for name in ("cost", "bound"))
    return Known(
        record["instance"], record["hash"], cost, record["cost_by"], bound, record["bound_by"], record["commit"]
    )
