"""One run at a time: a lock of the kernel's on a file, which nobody can leave behind.

The kernel gives the lock back when the process that holds it ends, however it ends. The file stays: to remove it would
let a third run lock a new file of the same name while a second still waits for the old one.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from models.errors import Locked
from planner.io.files import CannotWrite
from planner.io.texts import show

_TRIES, _PAUSE_S = 5, 0.05
"""`is_held` takes the lock for a moment; a run must not give way to that."""
_HELD = {errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES}


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Hold the lock; raises Locked at once where another process does, CannotWrite where nobody can lock there."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise _cannot(path, error) from None
    try:
        _take(handle, path)
        _write(handle, path, _holder())
        yield
        _write(handle, path, b"")
    finally:
        os.close(handle)


def is_held(path: Path) -> bool:
    """Whether a run is under way, by the lock; nothing is written, not even the file."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise _cannot(path, error) from None
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in _HELD:
            raise _cannot(path, error) from None
        return True
    finally:
        os.close(handle)
    return False


def refuse_held(path: Path) -> None:
    """Raise Locked where a run is under way."""
    if is_held(path):
        raise Locked(f"another run holds {show(str(path), 300)}")


def _take(handle: int, path: Path) -> None:
    for tries_left in reversed(range(_TRIES)):
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in _HELD:  # a file system without locks, say
                raise _cannot(path, error) from None
            if not tries_left:
                raise Locked(f"another run holds {show(str(path), 300)}{_who(handle)}") from None
            time.sleep(_PAUSE_S)
        else:
            return


def _write(handle: int, path: Path, data: bytes) -> None:
    try:
        os.ftruncate(handle, 0)
        os.pwrite(handle, data, 0)
    except OSError as error:
        raise _cannot(path, error) from None


def _cannot(path: Path, error: OSError) -> CannotWrite:
    return CannotWrite(path, f"it cannot be locked: {(error.strerror or str(error)).lower()}")


def _holder() -> bytes:
    since = datetime.now(UTC).isoformat(timespec="seconds")
    return (json.dumps({"pid": os.getpid(), "host": socket.gethostname(), "since": since}) + "\n").encode()


def _who(handle: int) -> str:
    """What the file says of its holder; it may not have got so far as to write it."""
    try:
        found = json.loads(os.pread(handle, 1000, 0))
        return f": process {int(found['pid'])} on {show(str(found['host']))}, since {show(str(found['since']))}"
    except (OSError, ValueError, LookupError, TypeError):
        return ""
