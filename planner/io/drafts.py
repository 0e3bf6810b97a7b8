"""Plain Python to an Instance, with all faults at once, whatever the spelling it came in."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from pydantic import ValidationError

from models.domain.entities import Dataset, Job, Link, Pool, Site, Throughput
from models.domain.fields import Entity
from models.domain.instance import Head, Instance
from models.domain.rules import SECTIONS, Draft, check_rules, suggest
from models.errors import Fault, InvalidInput
from planner.io import shapes
from planner.io.faults import Path, faults_of, written
from planner.io.texts import show

RECORDS: dict[str, type[Entity]] = {
    "sites": Site,
    "pools": Pool,
    "datasets": Dataset,
    "network": Link,
    "throughputs": Throughput,
    "jobs": Job,
}
NAMED = ("sites", "pools", "datasets", "jobs")
_NEEDED = ("sites", "pools")
# Stand-ins for a head field that is faulty, so that the others are read all the same.
_STAND_INS = {"currency": "USD", "start": "2000-01-01T00:00:00Z", "slot": 3600.0}


class Broken(dict[str, Any]):
    """A record of which some fields could not be read, which is reported already.

    Where none could be trusted (`lacks` is None), only its name, if it has one, is of use.
    """

    lacks: frozenset[str] | None = None


class Drafting:
    """Reads a document into records and gathers faults by their path in it."""

    def __init__(
        self,
        document: dict[str, Any],
        unread: Collection[str] = (),
        reported: Mapping[str, Collection[str]] | None = None,
        partial_jobs: Collection[int] = (),
    ) -> None:
        """`unread`: sections (and "head") that could not be read; `reported`: by section, fields whose
        absence has been reported once for all records; `partial_jobs`: jobs that lack modes not read."""
        self.document = document
        self.unread = frozenset(unread)
        self.reported = reported or {}
        self.partial_jobs = frozenset(partial_jobs)
        self.faults: list[Fault] = []
        self.head: dict[str, Any] = {}
        self.draft = Draft(unread=self.unread & set(SECTIONS))

    def read(self) -> Instance | None:
        """The instance, or None where there are faults."""
        self._read_head()
        context = {"start": self.head.get("start"), "currency": self.head.get("currency")}
        for section in SECTIONS:
            self._read_section(section, context)
        if self.faults or self.unread or not self.draft.is_whole(*SECTIONS):
            self.faults += check_rules(self.draft)
            return None
        try:
            return Instance(**self.head, **{s: tuple(getattr(self.draft, s).values()) for s in SECTIONS})
        except InvalidInput as error:
            self.faults += error.faults
            return None

    def _read_head(self) -> None:
        for key in self.document:
            if key not in Instance.model_fields:
                mend = suggest(key[:200], Instance.model_fields)
                if "?" not in mend:
                    mend = "remove it; fields are " + ", ".join(Instance.model_fields)
                self.faults.append(Fault("is not a field of an instance", (key,), show(self.document[key]), mend))
        if "head" in self.unread:
            return
        raw = {name: self.document[name] for name in Head.model_fields if name in self.document}
        bad: set[str] = set()
        try:
            head = Head.model_validate(raw)
        except ValidationError as error:
            found = list(faults_of(error, Head, ()))
            self.faults += found
            bad = {str(fault.path[0]) for fault in found}
            good = {name: value for name, value in raw.items() if name not in bad}
            head = Head.model_validate({**{k: v for k, v in _STAND_INS.items() if k in bad}, **good})
        self.head = {name: getattr(head, name) for name in Head.model_fields if name not in bad}
        self.draft.slot = self.head.get("slot")
        self.draft.horizon = self.head.get("horizon")
        start = self.head.get("start")
        self.draft.start = start if isinstance(start, datetime) else None

    def _read_section(self, section: str, context: dict[str, Any]) -> None:
        raws = self.document.get(section)
        if section in self.unread:
            raws = raws or []
        elif not raws and section in _NEEDED and (raws is None or isinstance(raws, list)):
            noun = RECORDS[section].__name__.lower()
            problem = "is missing" if raws is None else f"has no {noun}"
            mend = f"add a {noun}: {', '.join(required_columns(RECORDS[section]))}"
            self.faults.append(Fault(problem, (section,), None, mend))
            self.draft.unread |= {section}
            return
        elif raws is None:
            raws = []
        if not isinstance(raws, list):
            mend = "write a list: each record begins with '- '"
            self.faults.append(Fault("is not a list of records", (section,), show(raws), mend))
            self.draft.unread |= {section}
            return
        self.draft.sizes[section] = len(raws)
        names = self.draft.names.setdefault(section, []) if section in NAMED else []
        for index, raw in enumerate(raws):
            if isinstance(raw, dict) and isinstance(raw.get("id"), str | int):
                names.append((index, str(raw["id"])[:200]))
            record = self._read_record(section, (section, index), raw, context)
            if record is not None and not (section == "jobs" and index in self.partial_jobs):
                getattr(self.draft, section)[index] = record
            elif isinstance(raw, dict) and not (isinstance(raw, Broken) and raw.lacks is None):
                self._note_references(section, (section, index), raw)

    def _read_record(self, section: str, at: Path, raw: Any, context: dict[str, Any]) -> Entity | None:
        record = RECORDS[section]
        lacks = raw.lacks if isinstance(raw, Broken) else frozenset()
        if lacks is None:
            return None
        try:
            found = record.model_validate(raw, context=context)
            return None if lacks else found
        except ValidationError as error:
            for fault in faults_of(error, record, at):
                if not self._is_reported(fault) and not lacks.intersection(fault.path[len(at) :]):
                    self.faults.append(fault)
            return None

    def _is_reported(self, fault: Fault) -> bool:
        table = "modes" if len(fault.path) > 2 and fault.path[2] == "modes" else fault.path[0]
        return fault.problem == "is missing" and fault.path[-1] in self.reported.get(str(table), ())

    def _note_references(self, section: str, at: Path, raw: dict[str, Any]) -> None:
        """What a faulty record refers to, so that a misspelt name is reported along with its other faults."""

        def note(target: str, name: Any, *path: str | int) -> None:
            if isinstance(name, str) and 0 < len(name) <= 200:
                self.draft.references.append((target, name, at + path))

        for name, target in _REFERENCES.get(section, {}).items():
            note(target, raw.get(name), name)
        if section != "jobs":
            return
        after, modes = raw.get("after"), raw.get("modes")
        for index, name in enumerate(after if isinstance(after, list) else ()):
            note("jobs", name, "after", index)
        for index, mode in enumerate(modes if isinstance(modes, list) else ()):
            if isinstance(mode, dict):
                note("pools", mode.get("pool"), "modes", index, "pool")


_REFERENCES = {
    "pools": {"site": "sites"},
    "datasets": {"home": "sites"},
    "network": {"source": "sites", "target": "sites"},
    "jobs": {"dataset": "datasets"},
}


def required_columns(record: type[Entity]) -> list[str]:
    """The fields that every row must have."""
    return [name for name, info in record.model_fields.items() if info.is_required()]


def describe_field(record: type[Entity], name: str) -> str:
    """A field's meaning and an example, for advice."""
    return f"{record.model_fields[name].description}; e.g. {written(shapes.example_of(record, name))}"
