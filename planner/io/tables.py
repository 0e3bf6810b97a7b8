"""CSV tables of the folder spelling: text in, plain records out, with the row of each; and back."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from models.domain.entities import Dataset, Job, ModeEntry, Pool, TariffPoint, Throughput
from models.domain.fields import Entity
from models.domain.rules import suggest
from models.errors import Fault, InvalidInput
from planner.io import shapes
from planner.io.documents import load_json
from planner.io.drafts import Broken, describe_field, required_columns
from planner.io.texts import LIMIT, read_text, show

TABLES: dict[str, type[Entity]] = {
    "pools": Pool,
    "datasets": Dataset,
    "throughputs": Throughput,
    "jobs": Job,
    "modes": ModeEntry,
}
"""The tables in the folder of an instance."""
_RECORDS: dict[str, type[Entity]] = TABLES | {"points": TariffPoint}
_MOST_ROWS = 2_000_000
_MOST_BAD_ROWS = 200
_MOST_COLUMNS = 500

# A list of prices for every slot, or of windows, is one cell.
csv.field_size_limit(16 << 20)


@dataclass
class Table:
    """The rows of one file. `records[k]` begins in row `rows[k]`, as editors count: the header is row 1."""

    section: str
    where: str
    records: list[dict[str, Any]] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    """Required columns that are not there, each reported once."""
    is_read: bool = True
    """Whether all rows, and so all names, are known."""

    def fault(self, row: int, problem: str, mend: str, value: str | None = None, *path: str | int) -> None:
        """Note a fault of a row."""
        self.faults.append(Fault(problem, (self.section, *path), value, mend, f"{self.where} row {row}"))


def read_table(path: Path, section: str, where: str) -> Table:
    """The records of a CSV file, which is called `where` in faults; its faults are gathered in the table."""
    table = Table(section, where)
    try:
        text = read_text(path, LIMIT)
    except InvalidInput as error:
        table.faults += [replace(fault, path=(section,)) for fault in error.faults]
        table.is_read = False
        return table
    lines = csv.reader(_lines(text), strict=True)
    begins = 1
    columns: list[Column | None] | None = None
    try:
        for cells in lines:
            row, begins = begins, lines.line_num + 1
            cells = [cell.strip() for cell in cells]
            if not any(cells):
                continue
            if columns is None:
                columns = _header(table, row, cells)
                if not table.is_read:
                    return table
                continue
            _row(table, row, cells, columns)
            if len(table.faults) >= _MOST_BAD_ROWS or len(table.records) >= _MOST_ROWS:
                table.fault(row, "reading stopped here", "mend the rows before; is it the right file?")
                table.is_read = False
                return table
    except csv.Error as error:
        mend = "close the quotes; a quote within a cell is written twice"
        table.fault(begins, f"is not CSV: {error}", mend)
        table.is_read = False
    if columns is None and table.is_read:
        table.fault(1, "is empty", f"let the first row name the columns: {', '.join(_needed(section))}, ...")
        table.is_read = False
    return table


def _lines(text: str) -> Iterator[str]:
    """The lines of a text; not through StringIO, which would hold a large one again at four bytes a character."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    begin = 0
    while begin < len(text):
        end = text.find("\n", begin) + 1 or len(text)
        yield text[begin:end]
        begin = end


@dataclass(frozen=True)
class Column:
    """A column that is known: the steps to the field that it fills, and that field."""

    steps: tuple[str, ...]
    owner: type[Entity]
    name: str

    @cached_property
    def is_text(self) -> bool:
        """Whether a cell is what it says, and never a list or a record."""
        return not (shapes.records_in(self.owner, self.name) or shapes.may_be_list(self.owner, self.name))

    def read(self, text: str, where: str) -> Any:
        """The plain value of a cell; raises InvalidInput."""
        if not self.is_text:
            is_nested = bool(shapes.records_in(self.owner, self.name))
            if text[0] in "[{":
                document = load_json(text, where)
                if document.faults:
                    raise InvalidInput(document.faults)
                return document.value
            if not is_nested and shapes.is_list(self.owner, self.name):
                return [part.strip() for part in text.split(";")]
        return text


def columns_of(section: str) -> list[str]:
    """The names of a table's columns; those of a field that is a record may also be written field.name."""
    record = _RECORDS[section]
    names = [name for name in record.model_fields if (record, name) != (Job, "modes")]
    return ["job", *names] if section == "modes" else names


def _needed(section: str) -> list[str]:
    return (["job"] if section == "modes" else []) + required_columns(_RECORDS[section])


def _column(section: str, title: str) -> Column | None:
    if section == "modes" and title == "job":
        return Column(("job",), Job, "id")
    if title.split(".")[0] not in columns_of(section):
        return None
    holders: tuple[type[Entity], ...] = (_RECORDS[section],)
    steps = tuple(title.split("."))
    for step in steps:
        owner = next((holder for holder in holders if step in holder.model_fields), None)
        if owner is None:
            return None
        holders = shapes.records_in(owner, step)
    return Column(steps, owner, step) if owner is not None else None


def _header(table: Table, row: int, titles: list[str]) -> list[Column | None]:
    """The columns in order; None for one that is not known or was there before."""
    known = columns_of(table.section)
    columns = [_column(table.section, title) for title in titles[:_MOST_COLUMNS]]
    if not any(columns):
        table.is_read = False
        value = show(",".join(titles[:20]))
        if len(titles) == 1 and any(sign in titles[0] for sign in ";\t|"):
            table.fault(row, "does not separate its columns by commas", "save it with commas", value)
        else:
            table.fault(row, "does not name columns", f"let the first row name them: {', '.join(known)}", value)
        return []
    if len(titles) > _MOST_COLUMNS:
        table.fault(row, "has too many columns", f"columns are {', '.join(known)}", str(len(titles)))
    for place, title in enumerate(titles[:_MOST_COLUMNS]):
        column = columns[place]
        if titles.index(title) < place:
            table.fault(row, "names a column twice", "keep one of them", show(title))
            columns[place] = None
        elif column is None:
            table.fault(row, "is not a column of this table", _instead(table.section, title, known), show(title))
        elif len(column.steps) > 1 and column.steps[0] in titles:
            table.fault(row, f"fills {column.steps[0]}, which has a column too", "keep one of them", show(title))
            columns[place] = None
    for name in _needed(table.section):
        if not any(column is not None and column.steps[0] == name for column in columns):
            table.missing.append(name)
            advice = "the job's id" if name == "job" else describe_field(_RECORDS[table.section], name)
            table.fault(row, f"has no column {name}", f"add it: {advice}")
    return columns + [None] * (len(titles) - len(columns))


def _instead(section: str, title: str, known: list[str]) -> str:
    if section == "jobs" and title == "modes":
        return "modes are rows of modes.csv, with the job's id in the column job"
    mend = suggest(title[:200], known)
    return mend if "?" in mend else f"remove it; columns are {', '.join(known)}"


def _row(table: Table, row: int, cells: list[str], columns: list[Column | None]) -> None:
    """Add a row as a record; where it has the wrong number of cells, only its name counts."""
    index = len(table.records)
    record: dict[str, Any] = {}
    lacks: set[str] = set()
    is_ragged = len(cells) != len(columns)
    if is_ragged:
        mend = "quote cells that hold commas; give each row a cell for each column"
        table.fault(row, f"does not have the {len(columns)} cells of the header", mend, f"{len(cells)} cells", index)
    for cell, column in zip(cells, columns, strict=False):
        if not cell or column is None:
            continue
        if column.is_text and len(column.steps) == 1:
            record[column.steps[0]] = cell
            continue
        inner = record
        for step in column.steps[:-1]:
            inner = inner.setdefault(step, {})
        try:
            inner[column.steps[-1]] = column.read(cell, table.where)
        except InvalidInput as error:
            for fault in error.faults:
                # Lines within a cell are of no use.
                mend = "keep one of them" if "twice" in fault.problem else str(fault.mend)
                table.fault(row, fault.problem, mend, show(cell), index, *column.steps, *fault.path)
                lacks.add(column.steps[0])
    if is_ragged or lacks:
        record = Broken(record)
        record.lacks = None if is_ragged else frozenset(lacks)
    table.records.append(record)
    table.rows.append(row)


def table_bytes(section: str, records: list[dict[str, Any]]) -> bytes:
    """A table with the columns that some record fills, and those that every row must have."""
    needed = _needed(section)
    used = [name for name in columns_of(section) if name in needed or any(name in record for record in records)]
    record_type = _RECORDS[section]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(used)
    for record in records:
        writer.writerow([_cell(record_type, name, record[name]) if name in record else "" for name in used])
    return text.getvalue().encode()


def _cell(record: type[Entity], name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list) and name in record.model_fields and shapes.is_list(record, name):
        texts = [item if isinstance(item, str) else repr(item) for item in value]
        is_plain = not any(isinstance(item, list | dict) for item in value)
        # A name with a semicolon, or one that looks like JSON, is unambiguous only as JSON.
        if is_plain and texts and texts[0][:1] not in ("[", "{") and not any(";" in text for text in texts):
            return ";".join(texts)
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False)
    return value if isinstance(value, str) else repr(value)
