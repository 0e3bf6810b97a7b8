"""The history as a database: what is written is there, what is cut off is undone, what is not ours is refused."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from models.errors import InvalidInput
from planner.history.records import JobEntry, RunRecord, Status
from planner.history.store import History
from planner.io.files import CannotWrite


def record(number: int, **fields: object) -> RunRecord:
    """A run that has made a plan."""
    made = {
        "number": number,
        "key": f"key{number}",
        "started": f"2026-01-{number:02}T17:00:00+00:00",
        "status": Status.PLANNED,
        "cost": 10.0 * number,
        "currency": "USD",
        "folder": f"2026-01-{number:02}",
    }
    return RunRecord.model_validate(made | fields)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the history is."""
    return tmp_path / "history.sqlite"


def test_a_run_is_begun_and_finished(path: Path) -> None:
    entries = [
        JobEntry(job="b", state="planned", mode="m", pool="p", start="s", changes=("later",), reasons=("r1", "r2")),
        JobEntry(job="a", state="rejected"),
    ]
    with History.open(path) as history:
        begun = history.begin("2026-01-12T17:00:00+00:00", 42)
        assert (begun.number, begun.status, begun.pid) == (1, Status.RUNNING, 42)
        assert history.finished() == set()
        done = begun.model_copy(update={"status": Status.PLANNED, "cost": 3.5, "gap": None})
        history.finish(done, entries)
    with History.read(path) as history:
        assert history.runs() == [done]
        assert history.run(1) == done
        assert history.run(2) is None
        assert history.entries(1) == entries[::-1]
        assert history.of_job("b") == [(done, entries[0])]
        assert history.finished() == {done.key}


def test_finishing_twice_is_finishing_once(path: Path) -> None:
    """So that a run may be entered again from its folder whatever was written of it before."""
    with History.open(path) as history:
        for cost in (1.0, 2.0):
            history.finish(record(1, cost=cost), [JobEntry(job="a", state="planned")])
        assert [run.cost for run in history.runs()] == [2.0]
        assert len(history.entries(1)) == 1


def test_a_run_whose_number_is_taken_gets_another(path: Path) -> None:
    with History.open(path) as history:
        history.finish(record(3))
        history.finish(record(3, key="other"))
        assert [(run.number, run.key) for run in history.runs()] == [(4, "other"), (3, "key3")]
        assert history.begin("2026-01-09T17:00:00+00:00", 1).number == 5


def test_numbers_are_never_given_twice(path: Path) -> None:
    with History.open(path) as history:
        history.begin("2026-01-01T00:00:00+00:00", 1)
    with sqlite3.connect(path) as connection:
        connection.execute("DELETE FROM runs")
    connection.close()
    with History.open(path) as history:
        assert history.begin("2026-01-02T00:00:00+00:00", 1).number == 2


def test_runs_are_chosen_by_status_date_and_number(path: Path) -> None:
    with History.open(path) as history:
        for number in range(1, 6):
            history.finish(record(number, status=Status.FAILED if number % 2 else Status.PLANNED))

        def numbers(*args: object) -> list[int]:
            return [run.number for run in history.runs(*args)]  # type: ignore[arg-type]

        assert numbers() == [5, 4, 3, 2, 1]
        assert numbers(2) == [5, 4]
        assert numbers(None, ["planned"]) == [4, 2]
        assert numbers(None, ["planned", "failed"], "2026-01-03T17:00:00+00:00") == [5, 4, 3]
        assert numbers(1, ["failed"], "2026-01-02T00:00:00+00:00") == [5]


# Killed within a transaction, at a moment at which it has written to the file itself: a small cache makes it do so.
CUT_OFF = """
import os, signal, sys
from pathlib import Path
from planner.history.records import JobEntry
from planner.history.store import History
from tests.history.test_store import record

def entries():
    for k in range(4000):
        yield JobEntry(job=f"job{k}", state="planned", mode="x" * 200)
    os.kill(os.getpid(), signal.SIGKILL)

with History.open(Path(sys.argv[1])) as history:
    history._connection.execute("PRAGMA cache_size = 5")
    history.finish(record(2), entries())
"""


def cut_off(path: Path) -> None:
    """Leave a transaction half done."""
    with History.open(path) as history:
        history.finish(record(1), [JobEntry(job="a", state="planned")])
    done = subprocess.run([sys.executable, "-c", CUT_OFF, str(path)], cwd=Path(__file__).parents[2], check=False)
    assert done.returncode == -signal.SIGKILL
    assert Path(f"{path}-journal").stat().st_size > 512, "there is something to undo"


def test_a_transaction_that_was_cut_off_is_undone_by_the_next_run(path: Path) -> None:
    cut_off(path)
    with History.open(path) as history:
        assert history.runs() == [record(1)]
        assert [entry.job for entry in history.entries(1)] == ["a"]
        assert history.entries(2) == []


def test_a_transaction_that_was_cut_off_is_undone_by_a_reader(path: Path) -> None:
    cut_off(path)
    with History.read(path) as history:
        assert history.runs() == [record(1)]


def test_a_reader_that_may_not_write_says_so(path: Path) -> None:
    cut_off(path)
    before = {file.name: file.read_bytes() for file in path.parent.iterdir()}
    with pytest.raises(CannotWrite), History.read(path, may_mend=False):
        pass
    assert {file.name: file.read_bytes() for file in path.parent.iterdir()} == before


def test_reading_creates_and_changes_nothing(path: Path) -> None:
    with pytest.raises(InvalidInput, match="does not exist"), History.read(path):
        pass
    with History.open(path) as history:
        history.finish(record(1))
    before = path.stat().st_mtime_ns, path.read_bytes()
    with History.read(path) as history:
        history.runs()
        with pytest.raises(sqlite3.OperationalError):
            history._connection.execute("DELETE FROM runs")
    assert (path.stat().st_mtime_ns, path.read_bytes()) == before
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_a_reader_beside_a_run_sees_what_is_finished(path: Path) -> None:
    with History.open(path) as writer:
        writer.finish(record(1))
        writer._connection.execute("BEGIN IMMEDIATE")
        writer._connection.execute("DELETE FROM runs")
        with History.read(path) as reader:
            assert reader.runs() == [record(1)]
        writer._connection.execute("ROLLBACK")


def test_a_file_made_by_a_run_that_was_killed_at_once_is_empty_history(path: Path) -> None:
    path.touch()
    with History.read(path) as history:
        assert history.runs() == []
    with History.open(path) as history:
        assert history.begin("2026-01-01T00:00:00+00:00", 1).number == 1


def test_what_is_not_ours_is_refused_and_left_alone(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE theirs (a)")
    connection.close()
    before = path.read_bytes()
    for access in (History.open, History.read):
        with pytest.raises(InvalidInput, match="another program"), access(path):
            pass
    assert path.read_bytes() == before


def test_a_later_version_is_refused(path: Path) -> None:
    with History.open(path):
        pass
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(InvalidInput, match="later version"), History.open(path):
        pass


@pytest.mark.parametrize("content", [b"no database at all" * 100, b"SQLite format 3\0" + b"\xff" * 8192])
def test_a_damaged_file_is_told_with_the_way_out(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    for access in (History.open, History.read):
        with pytest.raises(InvalidInput, match="move the file away"), access(path):
            pass


def test_damage_within_the_file_is_found_before_anything_is_written(path: Path) -> None:
    with History.open(path) as history:
        history.finish(record(1), [JobEntry(job=f"job{k}", state="planned") for k in range(2000)])
    data = bytearray(path.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 4096] = os.urandom(4096)
    path.write_bytes(data)
    with pytest.raises(InvalidInput, match="damaged"), History.open(path):
        pass


def test_tables_that_contradict_each_other_are_found(path: Path) -> None:
    """A name changed in one place of two: every page can be read, and yet the index is not that of the table."""
    with History.open(path) as history:
        history.finish(record(1), [JobEntry(job=f"job{k}", state="planned") for k in range(5)])
    data = path.read_bytes()
    assert data.count(b"job3") == 2
    path.write_bytes(data.replace(b"job3", b"jobX", 1))
    with pytest.raises(InvalidInput, match="is damaged"), History.open(path):
        pass


@pytest.mark.parametrize("change", ["status = 'great'", "cost = 'dear'", "number = -3"])
def test_rows_that_nobody_wrote_here_are_told(path: Path, change: str) -> None:
    with History.open(path) as history:
        history.finish(record(1))
    with sqlite3.connect(path) as connection:
        connection.execute(f"UPDATE runs SET {change}")
    connection.close()
    with pytest.raises(InvalidInput, match="none of a history"), History.read(path) as history:
        history.runs()


def test_a_breach_of_the_tables_rules_is_told_as_damage(path: Path) -> None:
    with History.open(path) as history:
        history.finish(record(1))
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TRIGGER strange BEFORE INSERT ON runs BEGIN SELECT RAISE(ABORT, 'strange'); END")
    connection.close()
    with pytest.raises(InvalidInput, match="damaged"), History.open(path) as history:
        history.begin("2026-01-01T00:00:00+00:00", 1)


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(CannotWrite), History.open(tmp_path / "no" / "history.sqlite"):
        pass
