"""The history in SQLite: each change is one transaction that is on the disk when it returns, or has not happened.

A rollback journal, not a write-ahead log: then readers need to write nothing beside the file. `synchronous = EXTRA`
makes a commit outlast a power cut too. A transaction that a crash has cut off is undone by whoever opens the file next;
a reader that finds one opens the file for writing, which undoes it, and creates nothing.
"""

from __future__ import annotations

import json
import secrets
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from models.errors import InvalidInput
from planner.history.records import MEANINGS, JobEntry, RunRecord, Status
from planner.history.schema import VERSION, is_ours, migrate, version_of
from planner.io.files import CannotWrite
from planner.io.texts import refuse

WAIT_S = 30.0
"""How long a writer waits for a reader, or a reader for a commit."""
_LISTS = ("changes", "reasons")
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CONSTRAINT}
_RUN_COLUMNS = tuple(RunRecord.model_fields)
_JOB_COLUMNS = tuple(JobEntry.model_fields)
NEW_HISTORY = (
    "move the file away: the next run makes a new one from the plan folders, which lacks only the runs that made no "
    "plan"
)


class History:
    """An open history. `with History.open(path) as history`; raises InvalidInput or CannotWrite."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection
        connection.row_factory = sqlite3.Row

    @classmethod
    @contextmanager
    def open(cls, path: Path) -> Iterator[History]:
        """The history for reading and writing; made where there is none, brought to the present version, and looked
        through for damage."""
        with _told(path), _connected(path, "rwc") as connection:
            _refuse_strangers(path, connection)
            connection.execute("PRAGMA journal_mode = DELETE")
            connection.execute("PRAGMA synchronous = EXTRA")
            if version_of(connection) < VERSION:
                migrate(connection)
            connection.execute("PRAGMA foreign_keys = ON")
            problems = [str(row[0]) for row in connection.execute("PRAGMA integrity_check(3)")]
            if problems != ["ok"]:
                raise refuse(path, "is damaged", NEW_HISTORY, "; ".join(problems))
            yield cls(path, connection)

    @classmethod
    @contextmanager
    def read(cls, path: Path, *, may_mend: bool = True) -> Iterator[History]:
        """The history for reading; nothing is created.

        Where a run was killed within a transaction, reading undoes that; with `may_mend` False, CannotWrite instead.
        """
        if not path.exists():
            raise refuse(path, "does not exist", "`planner nightly` makes it; give the folder of its --into")
        with _told(path):
            mode = "rw" if may_mend and _is_cut_off(path) else "ro"
            with _connected(path, mode) as connection:
                _refuse_strangers(path, connection)
                yield cls(path, connection)

    def begin(self, started: str, pid: int) -> RunRecord:
        """Note that a run has begun; returns its record with its number."""
        key = secrets.token_hex(8)
        with self._transaction():
            cursor = self._connection.execute(
                "INSERT INTO runs (key, started, status, pid) VALUES (?, ?, ?, ?)", (key, started, Status.RUNNING, pid)
            )
        return RunRecord(number=int(cursor.lastrowid or 0), key=key, started=started, pid=pid)

    def finish(self, record: RunRecord, entries: Iterable[JobEntry] = ()) -> None:
        """Note what became of a run; one that is not known is added, under its number where that is free."""
        values = record.model_dump(mode="json")
        with self._transaction():
            row = self._one("SELECT number FROM runs WHERE key = ?", record.key)
            if row is not None:
                values["number"] = row["number"]
            elif self._one("SELECT 1 FROM runs WHERE number = ?", record.number) is not None:
                values["number"] = None  # the next that is free
            marks = ", ".join("?" for _ in _RUN_COLUMNS)
            updates = ", ".join(f"{name} = excluded.{name}" for name in _RUN_COLUMNS if name not in ("number", "key"))
            self._connection.execute(
                f"INSERT INTO runs ({', '.join(_RUN_COLUMNS)}) VALUES ({marks}) "
                f"ON CONFLICT (key) DO UPDATE SET {updates}",
                [values[name] for name in _RUN_COLUMNS],
            )
            number = self._one("SELECT number FROM runs WHERE key = ?", record.key)["number"]
            self._connection.execute("DELETE FROM jobs WHERE run = ?", (number,))
            self._connection.executemany(
                f"INSERT INTO jobs (run, {', '.join(_JOB_COLUMNS)}) VALUES (?, {', '.join('?' for _ in _JOB_COLUMNS)})",
                ([number, *_row_of(entry)] for entry in entries),
            )

    def finished(self) -> set[str]:
        """Keys of the runs of which it is known what became of them."""
        rows = self._rows("SELECT key FROM runs WHERE status NOT IN (?, ?)", (Status.RUNNING, Status.CRASHED))
        return {row["key"] for row in rows}

    def note_crashed(self, ended: str) -> list[RunRecord]:
        """Note of every run that is said to be under way that it was cut off; returns those. Only for who holds the
        lock, so that none of them can be under way."""
        with self._transaction():
            rows = self._runs("WHERE status = ? ORDER BY number", (Status.RUNNING,))
            self._connection.execute(
                "UPDATE runs SET status = ?, ended = ?, reason = ? WHERE status = ?",
                (Status.CRASHED, ended, MEANINGS[Status.CRASHED], Status.RUNNING),
            )
        return rows

    def note_gone(self, present: Collection[str]) -> list[RunRecord]:
        """Note which runs have lost their plan folder (or have it again); returns those that have lost it by now."""
        with self._transaction():
            rows = self._runs("WHERE folder IS NOT NULL ORDER BY number")
            for row in rows:
                if row.is_gone != (row.folder not in present):
                    self._connection.execute("UPDATE runs SET is_gone = ? WHERE key = ?", (not row.is_gone, row.key))
        return [row for row in rows if row.folder not in present and not row.is_gone]

    def runs(self, most: int | None = None, status: Sequence[str] = (), since: str | None = None) -> list[RunRecord]:
        """Runs, the latest first; `since` is an instant in UTC as the history writes it."""
        conditions, values = ["1"], list[Any]()
        if status:
            conditions.append(f"status IN ({', '.join('?' for _ in status)})")
            values += status
        if since is not None:
            conditions.append("started >= ?")
            values.append(since)
        values.append(-1 if most is None else most)
        return self._runs(f"WHERE {' AND '.join(conditions)} ORDER BY number DESC LIMIT ?", values)

    def run(self, number: int) -> RunRecord | None:
        """The run with a number; None where there is none."""
        return next(iter(self._runs("WHERE number = ?", (number,))), None)

    def entries(self, number: int) -> list[JobEntry]:
        """What a run planned for each job, by name."""
        rows = self._rows(f"SELECT {', '.join(_JOB_COLUMNS)} FROM jobs WHERE run = ? ORDER BY job", (number,))
        return [self._entry(row) for row in rows]

    def of_job(self, job: str, most: int | None = None) -> list[tuple[RunRecord, JobEntry]]:
        """What each run planned for a job, the latest run first."""
        query = f"SELECT run, {', '.join(_JOB_COLUMNS)} FROM jobs WHERE job = ? ORDER BY run DESC LIMIT ?"
        found = []
        for row in self._rows(query, (job, -1 if most is None else most)):
            record = self.run(row["run"])
            assert record is not None  # by the foreign key
            found.append((record, self._entry(row)))
        return found

    def _runs(self, clause: str, values: Sequence[Any] = ()) -> list[RunRecord]:
        rows = self._rows(f"SELECT {', '.join(_RUN_COLUMNS)} FROM runs {clause}", values)
        try:
            return [RunRecord.model_validate(dict(row)) for row in rows]
        except ValidationError as error:
            raise _odd_row(self.path, error) from None

    def _entry(self, row: sqlite3.Row) -> JobEntry:
        try:
            values = {name: json.loads(row[name]) if name in _LISTS else row[name] for name in _JOB_COLUMNS}
            return JobEntry.model_validate(values)
        except ValueError as error:  # pydantic's and that of JSON
            raise _odd_row(self.path, error) from None

    def _rows(self, query: str, values: Sequence[Any]) -> list[sqlite3.Row]:
        if version_of(self._connection) == 0:
            return []  # made by a run that was killed before it could write anything
        return self._connection.execute(query, values).fetchall()

    def _one(self, query: str, *values: Any) -> Any:
        return self._connection.execute(query, values).fetchone()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise


def _row_of(entry: JobEntry) -> list[Any]:
    values = entry.model_dump(mode="json")
    return [json.dumps(values[name], ensure_ascii=False) if name in _LISTS else values[name] for name in _JOB_COLUMNS]


def _odd_row(path: Path, error: ValueError) -> InvalidInput:
    parts = error.errors()[:3] if isinstance(error, ValidationError) else []
    where = "; ".join(str(part["loc"][0]) for part in parts if part["loc"]) or str(error)
    return refuse(path, "has a row that is none of a history", NEW_HISTORY, where)


def _is_cut_off(path: Path) -> bool:
    """Whether a transaction was cut off, so that a reader may not read before somebody has undone it."""
    with _connected(path, "ro") as connection:
        try:
            version_of(connection)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_READONLY_ROLLBACK:
                raise
            return True
    return False


def _refuse_strangers(path: Path, connection: sqlite3.Connection) -> None:
    if not is_ours(connection):
        raise refuse(path, "is a database of another program", "choose another folder for --into")
    version = version_of(connection)
    if version > VERSION:
        mend = "use that version or a later one"
        raise refuse(path, "was written by a later version of the planner", mend, f"{version}, known is {VERSION}")


@contextmanager
def _connected(path: Path, mode: str) -> Iterator[sqlite3.Connection]:
    # Transactions are begun and ended here by name, not by the module's guesses.
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    connection = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=WAIT_S)
    try:
        yield connection
    finally:
        connection.close()


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """Errors of SQLite as what they are to a user."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        if code in _DAMAGED:
            raise refuse(path, "is not a history, or is damaged", NEW_HISTORY, str(error)) from None
        raise CannotWrite(path, str(error)) from None
