"""Instances in and out: a YAML or JSON file, or a folder with CSV tables. Either spelling holds the same."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import yaml

from models.domain.instance import FORMAT, Head, Instance
from models.domain.rules import Draft, suggest
from models.errors import Fault, InvalidInput
from planner.io import faults as faults_module
from planner.io.collecting import no_collection
from planner.io.documents import Document, load_json, load_yaml, locate_json, plain_scalar
from planner.io.drafts import RECORDS, Broken, Drafting
from planner.io.faults import Locate
from planner.io.faults import Path as FieldPath
from planner.io.files import CannotWrite, write_folder_whole, write_whole
from planner.io.shapes import Encoder
from planner.io.tables import TABLES, Table, read_table, table_bytes
from planner.io.texts import JSON_LIMIT, LIMIT, YAML_LIMIT, read_text, refuse, show

HEAD_FILE = "instance.yaml"
_PIECE = 500
_YAML, _JSON = (".yaml", ".yml"), (".json",)
_ORDER = ("pools", "datasets", "throughputs", "jobs", "modes")


def read_instance(path: str | Path) -> Instance:
    """The instance in a file or folder; raises InvalidInput with every fault of every file."""
    with no_collection():
        return _read(Path(path))


def _read(path: Path) -> Instance:
    if os.path.isdir(path):
        return _read_folder(path)
    suffix = path.suffix.lower()
    if suffix in _YAML:
        text = read_text(path, YAML_LIMIT)
        return _read_file(path, load_yaml(text, _name(path)), text)
    if suffix in _JSON:
        text = read_text(path, JSON_LIMIT)
        return _read_file(path, load_json(text, _name(path)), text)
    if not os.path.lexists(path):
        read_text(path, LIMIT)  # says that it does not exist, and what name is like it
    mend = "give the folder that it is in" if suffix == ".csv" else "give a .yaml or .json file, or a folder"
    raise refuse(path, "is not an instance", mend)


def instance_of_yaml(text: str, where: str = "text") -> Instance:
    """The instance in a YAML text that is in no file."""
    return _read_file(Path(where + ".yaml"), load_yaml(text, where), text)


def _name(path: Path) -> str:
    return show(str(path), 300)


def _read_file(path: Path, document: Document, text: str) -> Instance:
    _refuse_foreign(document, _name(path))
    drafting = Drafting(document.value)
    instance = drafting.read()
    faults = document.faults + drafting.faults
    if not faults and instance is not None:
        return instance
    located: Document | None = document
    if path.suffix.lower() in _JSON:
        located = locate_json(text, _name(path))
    lacks_pools = any(fault.path == ("pools",) for fault in faults)
    if path.name == HEAD_FILE and lacks_pools and (path.parent / "pools.csv").exists():
        raise refuse(path, "is only a part of an instance: tables lie beside it", "give the folder that it is in")
    raise InvalidInput(faults_module.placed(faults, _locate_in(located, _name(path))))


def _refuse_foreign(document: Document, where: str) -> None:
    """Where the document as such cannot be trusted, or is no record, its fields are not looked at."""
    if any("twice" not in fault.problem for fault in document.faults):
        raise InvalidInput(document.faults)
    if not isinstance(document.value, dict):
        mend = "write name: value for each field, beginning with currency, start, slot"
        raise refuse(where, "is not a record with fields", mend, show(document.value))


def _locate_in(document: Document | None, where: str, rank: int = 0) -> Locate:
    def locate(path: FieldPath) -> tuple[str, int]:
        line = None if document is None else document.line(path)
        return (where if line is None else f"{where} line {line}"), rank * faults_module.FAR + (line or 0)

    return locate


class _Folder:
    """The files of a folder on their way into one document."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.faults: list[Fault] = []
        self.unread: set[str] = set()
        self.document = Document({})
        self.tables: dict[str, Table] = {}
        self.mode_rows: dict[tuple[int, int], int] = {}
        self.partial_jobs: set[int] = set()

    def where(self, name: str) -> str:
        return _name(self.path / name)

    def read(self) -> Instance:
        self._read_head()
        self._read_tables()
        self._refuse_strangers()
        merged: dict[str, Any] = dict(self.document.value)
        for section in TABLES:
            if section in self.tables and section != "modes":
                merged[section] = self.tables[section].records
        self._join_modes()
        reported = {section: table.missing for section, table in self.tables.items()}
        drafting = Drafting(merged, self.unread, reported, self.partial_jobs)
        instance = drafting.read()
        faults = self.faults + drafting.faults
        if instance is None or faults:
            raise InvalidInput(faults_module.placed(faults, self._locate))
        return instance

    def _read_head(self) -> None:
        path = self.path / HEAD_FILE
        try:
            if not path.exists():
                needed = ", ".join(name for name, info in Head.model_fields.items() if info.is_required())
                others = [p.name for p in sorted(self.path.glob("instance.*")) if p.suffix in (*_YAML, *_JSON)]
                mend = f"rename {show(others[0])}" if others else f"add it with {needed} and sites"
                raise refuse(self.where(HEAD_FILE), "is missing from the folder", mend)
            document = load_yaml(read_text(path, YAML_LIMIT), self.where(HEAD_FILE))
            _refuse_foreign(document, self.where(HEAD_FILE))
            self.document = document
            self.faults += document.faults
        except InvalidInput as error:
            self.faults += error.faults
            self.unread |= {"head", "sites", "network"}

    def _read_tables(self) -> None:
        for section in _ORDER:
            path = self.path / f"{section}.csv"
            if not path.exists():
                if "head" in self.unread:
                    self.unread.add(section)
                continue
            table = read_table(path, section, self.where(path.name))
            self.faults += table.faults
            self.tables[section] = table
            if not table.is_read:
                self.unread.add(section)
            if section in self.document.value:
                line = self.document.line((section,))
                mend = f"keep it in {HEAD_FILE} or in {path.name}"
                where = f"{self.where(HEAD_FILE)} line {line}"
                self.faults.append(Fault(f"is given in {path.name} too", (section,), None, mend, where))

    def _refuse_strangers(self) -> None:
        known = [f"{section}.csv" for section in TABLES]
        for path in sorted(self.path.iterdir()):
            if path.suffix.lower() == ".csv" and path.name not in known and not path.name.startswith("."):
                mend = suggest(path.name[:200], known)
                mend = mend if "?" in mend else f"move it elsewhere; tables are {', '.join(known)}"
                self.faults.append(Fault("is not a table of an instance", (), None, mend, _name(path)))

    def _join_modes(self) -> None:
        """Put each row of modes.csv into its job."""
        table = self.tables.get("modes")
        if table is None:
            return
        if "jobs" not in self.tables:
            if "jobs" not in self.unread:
                mend = "add jobs.csv, or write the modes into the jobs"
                self.faults.append(Fault("needs jobs.csv beside it", ("modes",), None, mend, table.where))
            return
        jobs = self.tables["jobs"].records
        index = {job["id"]: i for i, job in reversed(list(enumerate(jobs))) if "id" in job}
        if {"jobs", "modes"} & self.unread or "job" in table.missing:
            self.partial_jobs.update(range(len(jobs)))  # they would seem to lack modes that are there
        draft = Draft()
        for k, (mode, row) in enumerate(zip(table.records, table.rows, strict=True)):
            name = mode.pop("job", None)
            where = f"{table.where} row {row}"
            if name in index and isinstance(mode, Broken):
                self.partial_jobs.add(index[name])
            elif name in index:
                modes = jobs[index[name]].setdefault("modes", [])
                self.mode_rows[index[name], len(modes)] = row
                modes.append(mode)
            elif name is None and "job" not in table.missing and not isinstance(mode, Broken):
                mend = "fill the column job with the job's id"
                self.faults.append(Fault("names no job", ("modes", k, "job"), None, mend, where))
            elif name is not None and "jobs" not in self.unread and "id" not in self.tables["jobs"].missing:
                mend = draft.suggest(name[:200], index)
                self.faults.append(Fault("there is no such name in jobs", ("modes", k, "job"), name, mend, where))

    def _locate(self, path: FieldPath) -> tuple[str, int]:
        section = str(path[0]) if path else ""
        if len(path) > 3 and section == "jobs" and path[2] == "modes" and (path[1], path[3]) in self.mode_rows:
            return self._row("modes", self.mode_rows[int(path[1]), int(path[3])])
        if section in self.tables:
            table = self.tables[section]
            if len(path) > 1 and isinstance(path[1], int) and path[1] < len(table.rows):
                return self._row(section, table.rows[path[1]])
            return table.where, self._rank(section)
        if section in TABLES and section not in self.document.value:
            return self.where(f"{section}.csv"), self._rank(section)
        return _locate_in(self.document, self.where(HEAD_FILE))(path)

    def _row(self, section: str, row: int) -> tuple[str, int]:
        return f"{self.where(section + '.csv')} row {row}", self._rank(section) + row

    def _rank(self, section: str) -> int:
        return (_ORDER.index(section) + 1) * faults_module.FAR


def _read_folder(path: Path) -> Instance:
    try:
        return _Folder(path).read()
    except OSError as error:
        raise refuse(path, f"cannot be read: {error.strerror}", "check its permissions") from None


def write_instance(instance: Instance, path: str | Path, force: bool = False) -> None:
    """Write an instance to a .yaml or .json file, or else as a folder; raises CannotWrite.

    What is written reads back to an equal instance: quantities keep every digit, defaults are left out. A file that
    is there is overwritten if it is empty or an instance that was written here; another only by `force`.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if not force:
        _refuse_to_overwrite(path)
    if suffix in _YAML:
        write_whole(path, yaml_bytes(document_of(instance)))
    elif suffix in _JSON:
        text = json.dumps(document_of(instance), indent=2, ensure_ascii=False, allow_nan=False)
        write_whole(path, (text + "\n").encode())
    elif suffix and not os.path.isdir(path):
        raise CannotWrite(path, "name a .yaml or .json file, or a folder without a dot in its name")
    else:
        write_folder_whole(path, folder_files(instance), HEAD_FILE, [f"{section}.csv" for section in TABLES])


def _refuse_to_overwrite(path: Path) -> None:
    """Refuse where there is a file that does not begin as what is written here does."""
    file = path / HEAD_FILE if os.path.isdir(path) else path
    if not file.is_file():
        return
    with open(file, "rb") as stream:
        head = stream.read(1024)
    if head and not re.search(rb"""(^|[\s{,])["']?format["']?\s*:\s*["']?burstplan/""", head):
        raise CannotWrite(file, f"it is there, and does not say `format: {FORMAT}`; --force overwrites it")


def document_of(instance: Instance) -> dict[str, Any]:
    """The instance as plain Python, spelt as people do."""
    encoder = Encoder(instance.start, instance.currency)
    return {"format": FORMAT, **encoder.record(instance)}


def folder_files(instance: Instance) -> dict[str, bytes]:
    """The files of the folder spelling."""
    document = document_of(instance)
    head = {name: value for name, value in document.items() if name not in TABLES}
    tables = {section: list(document[section]) for section in TABLES if document.get(section)}
    modes: list[dict[str, Any]] = []
    for k, job in enumerate(tables.get("jobs", ())):
        modes += [{"job": job["id"], **mode} for mode in job.get("modes", ())]
        tables["jobs"][k] = {name: value for name, value in job.items() if name != "modes"}
    if modes:
        tables["modes"] = modes
    files = {HEAD_FILE: yaml_bytes(head)}
    return files | {f"{section}.csv": table_bytes(section, records) for section, records in tables.items()}


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """Quotes text that YAML 1.1 would read as something else (PyYAML's part), and what this program would."""

    def ignore_aliases(self, _data: object) -> bool:
        return True

    def represent_text(self, text: str) -> yaml.Node:
        style = None if isinstance(plain_scalar(text), str) else "'"
        return self.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _Dumper.represent_text)


def yaml_bytes(document: dict[str, Any]) -> bytes:
    """A document as YAML: a line for each innermost record or list.

    Long tables are written piece by piece, since PyYAML makes several objects of each word before it writes any.
    """
    tables = {name: rows for name in RECORDS if isinstance(rows := document.get(name), list)}
    long = [name for name, rows in tables.items() if len(rows) > _PIECE]
    with no_collection():
        text = "\n" + _yaml({**document, **{name: [] for name in long}})
        for name in long:
            before, _, after = text.partition(f"\n{name}: []\n")
            pieces = [_yaml(document[name][k : k + _PIECE]) for k in range(0, len(document[name]), _PIECE)]
            text = "".join((before, f"\n{name}:\n", *pieces, after))
    return text[1:].encode()


def _yaml(value: Any) -> str:
    return str(
        yaml.dump(value, Dumper=_Dumper, sort_keys=False, default_flow_style=None, allow_unicode=True, width=1 << 30)
    )
