"""What the rules run over: an instance as far as it could be read, and how to mend a name that is not known."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from models.domain.entities import Dataset, Job, Link, Pool, Site, Throughput

SECTIONS = ("sites", "pools", "datasets", "network", "throughputs", "jobs")
TOLERANCE = 1e-9
_SHORTEST_SLOT, _LONGEST_SLOT = 1e-3, 7 * 86400.0
_MOST_COMPARISONS = 200_000


@dataclass
class Draft:
    """The valid records of an instance by their index, every name that is written, and the head where it is valid."""

    sites: dict[int, Site] = field(default_factory=dict)
    pools: dict[int, Pool] = field(default_factory=dict)
    datasets: dict[int, Dataset] = field(default_factory=dict)
    network: dict[int, Link] = field(default_factory=dict)
    throughputs: dict[int, Throughput] = field(default_factory=dict)
    jobs: dict[int, Job] = field(default_factory=dict)
    names: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    slot: float | None = None
    horizon: float | str | None = None
    start: datetime | None = None
    sizes: dict[str, int] = field(default_factory=dict)
    """How many records are written in a section, faulty ones too; the whole draft is valid where it is not given."""
    unread: frozenset[str] = frozenset()
    """Sections of which not even the names could be read."""
    references: list[tuple[str, str, tuple[str | int, ...]]] = field(default_factory=list)
    """(section, name, path) of each reference that a faulty record makes."""
    _known: dict[str, set[str]] = field(default_factory=dict, init=False, repr=False)
    _throughputs_of: dict[str, list[tuple[int, Throughput]]] = field(default_factory=dict, init=False, repr=False)
    _compared: int = field(default=0, init=False, repr=False)

    @classmethod
    def of(cls, tables: Mapping[str, tuple[Any, ...]], slot: float, horizon: float | str, start: datetime) -> Draft:
        """The draft of an instance all of whose records are valid, given its tables by section."""
        records: dict[str, Any] = {section: dict(enumerate(tables[section])) for section in SECTIONS}
        names = {
            section: [(index, record.id) for index, record in records[section].items()]
            for section in ("sites", "pools", "datasets", "jobs")
        }
        return cls(**records, names=names, slot=slot, horizon=horizon, start=start)

    def known(self, section: str) -> set[str]:
        """Every name written in a section, of faulty records too."""
        if section not in self._known:
            self._known[section] = {name for _, name in self.names.get(section, ())}
        return self._known[section]

    def is_known(self, section: str) -> bool:
        """Whether the section could be read and has names, if it has records."""
        return section not in self.unread and bool(self.known(section) or not self.sizes.get(section))

    def is_whole(self, *sections: str) -> bool:
        """Whether no record of the sections is faulty."""
        return all(
            section not in self.unread
            and self.sizes.get(section, len(getattr(self, section))) == len(getattr(self, section))
            for section in sections
        )

    def throughputs_of(self, model: str | None) -> list[tuple[int, Throughput]]:
        """The valid throughputs of a model with their index; none for None."""
        if not self._throughputs_of:
            for i, row in self.throughputs.items():
                self._throughputs_of.setdefault(row.model, []).append((i, row))
        return [] if model is None else self._throughputs_of.get(model, [])

    @property
    def is_slot_sane(self) -> bool:
        """Whether the slot, where it is known, has a length that can be meant."""
        return self.slot is None or _SHORTEST_SLOT <= self.slot <= _LONGEST_SLOT

    def suggest(self, name: str, known: Iterable[str]) -> str:
        """How to mend a name that is not known; a search takes its time, so not for any number of names."""
        names = list(known)
        self._compared += len(names)
        return suggest(name, names) if self._compared <= _MOST_COMPARISONS else "correct or remove it"

    def when(self, seconds: float) -> str:
        """A time as people read it."""
        if self.start is None:
            return f"{seconds:g} s after start"
        return (self.start + timedelta(seconds=seconds)).isoformat()


def suggest(name: str, known: Iterable[str]) -> str:
    """How to mend a name that is not known."""
    names = sorted(known)
    folded = {other.casefold(): other for other in reversed(names)}
    close = difflib.get_close_matches(name.casefold(), folded, n=1)
    if close:
        return f"did you mean {folded[close[0]]}?"
    if not names:
        return "there are none; remove it"
    return f"one of {', '.join(names[:8])}{', ...' if len(names) > 8 else ''}"
