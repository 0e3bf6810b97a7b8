"""The tables of results/rolling.md, from the records of `rolling`."""

from __future__ import annotations

from typing import Any

Record = dict[str, Any]


def tables_of(records: list[Record], made: str) -> list[str]:
    """The lines of the document."""
    return [made, f"{len(records)} runs."]
