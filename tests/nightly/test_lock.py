"""The lock: held by one at a time, given back however its holder ends, and told where it cannot be had."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from models.errors import Locked
from planner.io.files import CannotWrite
from planner.nightly import lock

HOLDS = """
import sys, time
from pathlib import Path
from planner.nightly import lock
with lock.held(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_it_is_held_by_one_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    assert not lock.is_held(path)
    with lock.held(path):
        assert lock.is_held(path)
        with pytest.raises(Locked, match=f"process {os.getpid()} on .*, since "), lock.held(path):
            pass
    assert not lock.is_held(path)
    with lock.held(path):
        pass


def test_one_who_is_killed_gives_it_back(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(path)], stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"held\n"
    assert lock.is_held(path)
    holder.kill()
    holder.wait()
    holder.stdout.close()
    with lock.held(path):
        pass


def test_looking_at_it_writes_nothing_and_takes_it_from_nobody(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    lock.is_held(path)
    assert not path.exists()
    with lock.held(path):
        before = path.read_bytes(), path.stat().st_mtime_ns
        lock.is_held(path)
        assert (path.read_bytes(), path.stat().st_mtime_ns) == before


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP])
def test_a_file_system_without_locks_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def refuses(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refuses)
    with pytest.raises(CannotWrite, match="cannot be locked"), lock.held(tmp_path / "lock"):
        pass
    with pytest.raises(CannotWrite, match="cannot be locked"):
        lock.is_held(tmp_path / "lock")


@pytest.mark.parametrize("number", [errno.EWOULDBLOCK, errno.EACCES])
def test_one_who_only_looked_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """`is_held` takes it for a moment; a run must not give way to that."""
    tries = []
    real = fcntl.flock

    def refuses_twice(handle: int, operation: int) -> None:
        tries.append(operation)
        if len(tries) < 3:
            raise OSError(number, os.strerror(number))
        real(handle, operation)

    monkeypatch.setattr(fcntl, "flock", refuses_twice)
    monkeypatch.setattr(time, "sleep", lambda _: None)
    with lock.held(tmp_path / "lock"):
        assert len(tries) == 3


def test_what_the_file_says_of_its_holder_need_not_be_true(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    handle = os.open(path, os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        for said, shown in ((b"", ""), (b"{", ""), (b'{"pid": 1, "host": "\\u001b[31m", "since": "x"}', "x1b")):
            os.pwrite(handle, said, 0)
            with pytest.raises(Locked) as told, lock.held(path):
                pass
            assert "\x1b" not in str(told.value)
            assert shown in str(told.value)
    finally:
        os.close(handle)


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(CannotWrite, match="cannot be locked"), lock.held(tmp_path / "no" / "lock"):
        pass
