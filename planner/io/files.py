"""Files and folders that are written whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
from collections.abc import Collection, Mapping
from pathlib import Path

from planner.io.texts import show

_REASONS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EACCES: "permission denied",
    errno.EPERM: "permission denied",
    errno.EROFS: "the file system is read-only",
    errno.EISDIR: "it is a folder",
    errno.ENOTDIR: "a part of the path is not a folder",
    errno.ENAMETOOLONG: "the name is too long",
    errno.ELOOP: "it is a link to itself",
}


class CannotWrite(Exception):
    """Nothing was written; the message says to which path and why not."""

    def __init__(self, path: str | Path, reason: str):
        super().__init__(f"cannot write {show(str(path), 300)}: {reason}")


def _failure(path: Path, error: OSError | ValueError) -> CannotWrite:
    if isinstance(error, OSError):
        if error.errno == errno.ENOENT:
            return CannotWrite(path, f"the folder {show(str(path.parent), 300)} does not exist")
        return CannotWrite(path, _REASONS.get(error.errno or 0, error.strerror or type(error).__name__))
    return CannotWrite(path, "bad file name")


def write_whole(path: Path, data: bytes) -> None:
    """Write a file: at any moment the old content or the new one is under its name, never a part.

    A link keeps pointing to its file, which is replaced; a device or pipe such as /dev/stdout is written to.
    """
    try:
        mode: int | None = None
        if os.path.exists(path):
            status = os.stat(path)
            if stat.S_ISDIR(status.st_mode):
                raise CannotWrite(path, "it is a folder")
            if not stat.S_ISREG(status.st_mode):
                with open(path, "wb") as stream:
                    stream.write(data)
                return
            mode = stat.S_IMODE(status.st_mode)
        target = Path(os.path.realpath(path))
        temporary = _beside(target)
        try:
            _write_new(temporary, data)
            if mode is not None:
                os.chmod(temporary, mode)
            os.replace(temporary, target)
        finally:
            temporary.unlink(missing_ok=True)
        _sync_folder(target.parent)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise _failure(path, error) from error


def write_folder_whole(path: Path, files: Mapping[str, bytes], marker: str, replaceable: Collection[str] = ()) -> None:
    """Write a folder: it is filled under another name, then takes its place; no part of it is ever seen.

    An existing folder is replaced only if it is empty, or has the file `marker` and nothing else but names in
    `files` and `replaceable`, so that no file of somebody else is lost.
    """
    try:
        target = Path(os.path.realpath(path))
        _refuse_others(path, target, marker, {marker, *files, *replaceable})
        temporary = _beside(target)
        try:
            temporary.mkdir()
            for name, data in files.items():
                _write_new(temporary / name, data)
            _sync_folder(temporary)
            _take_place(temporary, target)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
        _sync_folder(target.parent)
    except (OSError, ValueError) as error:
        raise _failure(path, error) from error


def _refuse_others(path: Path, target: Path, marker: str, replaceable: set[str]) -> None:
    if not os.path.lexists(target):
        return
    if not target.is_dir():
        raise CannotWrite(path, "it is a file, and a folder was to be written; choose another name")
    names = set(os.listdir(target))
    if names and marker not in names:
        raise CannotWrite(path, f"the folder is not empty and has no {marker}; choose another")
    others = sorted(name for name in names if name not in replaceable or not (target / name).is_file())
    if others:
        shown = ", ".join(show(name, 60) for name in others[:5]) + (", ..." if len(others) > 5 else "")
        raise CannotWrite(path, f"the folder holds other things ({shown}); move them or choose another folder")


def _take_place(temporary: Path, target: Path) -> None:
    """Rename a folder to its target. What was there is moved aside for that moment, and back if it fails."""
    if not target.exists() or not os.listdir(target):
        os.replace(temporary, target)
        return
    os.chmod(temporary, stat.S_IMODE(os.stat(target).st_mode))
    aside = _beside(target)
    os.rename(target, aside)
    try:
        os.rename(temporary, target)
    except BaseException:
        os.rename(aside, target)
        raise
    shutil.rmtree(aside, ignore_errors=True)


def _beside(target: Path) -> Path:
    """A new hidden name in the same folder, so that a rename stays within one file system."""
    return target.with_name(f".{target.name[:100]}.{secrets.token_hex(6)}.tmp")


def _write_new(path: Path, data: bytes) -> None:
    with open(path, "xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(path: Path) -> None:
    """Make a rename last over a power cut, where the file system can."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    except OSError:
        pass
    finally:
        os.close(handle)
