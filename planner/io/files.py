"""Files and folders that are written whole or not at all."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import re
import secrets
import shutil
import stat
import time
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
    errno.EBUSY: "it is a mount point or in use",
}
# What a run left behind that began before this one; two seconds for the clocks of file systems.
_BEGUN = time.time() - 2
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2
_NO_EXCHANGE = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP}


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
        sync_folder(target.parent)
        _clear_leftovers(target, ())
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise _failure(path, error) from error


def write_folder_whole(path: Path, files: Mapping[str, bytes], marker: str, replaceable: Collection[str] = ()) -> None:
    """Write a folder: it is filled under another name, then takes its place; no part of it is ever seen.

    An existing folder is replaced only if it is empty, or has the file `marker` and nothing else but names in
    `files` and `replaceable`, so that no file of somebody else is lost.
    """
    known = {marker, *files, *replaceable}
    try:
        target = Path(os.path.realpath(path))
        _refuse_others(path, target, marker, known)
        temporary = _beside(target)
        try:
            temporary.mkdir()
            for name, data in files.items():
                _write_new(temporary / name, data)
            sync_folder(temporary)
            _take_place(temporary, target)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
        sync_folder(target.parent)
        _clear_leftovers(target, known)
    except (OSError, ValueError) as error:
        raise _failure(path, error) from error


def try_folder(path: Path, marker: str, replaceable: Collection[str], trial: bytes) -> None:
    """Raise CannotWrite where `write_folder_whole` would, as far as can be told; nothing of the trial remains.

    Folders above it that do not exist yet count as ones that will be made.
    """
    try:
        target = Path(os.path.realpath(path))
        _refuse_others(path, target, marker, {marker, *replaceable})
        place = target.parent
        while not os.path.lexists(place) and place != place.parent:
            place = place.parent
        if place.is_symlink():
            raise CannotWrite(path, f"{show(str(place), 300)} is a link to itself")
        if not place.is_dir():
            raise CannotWrite(path, f"{show(str(place), 300)} is not a folder")
        temporary = _beside(place / (target.name or "plan"))
        try:
            temporary.mkdir()
            _write_new(temporary / marker, trial)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    except (OSError, ValueError) as error:
        raise _failure(path, error) from error


def _refuse_others(path: Path, target: Path, marker: str, replaceable: set[str]) -> None:
    if not os.path.lexists(target):
        return
    if target.is_symlink():  # a path without links to follow that ends in one
        raise CannotWrite(path, "it is a link to itself")
    if not target.is_dir():
        raise CannotWrite(path, "it is a file, and a folder was to be written; choose another name")
    names = set(os.listdir(target))
    if names and marker not in names:
        raise CannotWrite(path, f"the folder is not empty and has no {marker}; choose another")
    others = sorted(name for name in names if name not in replaceable or not (target / name).is_file())
    if others:
        shown = ", ".join(show(name, 60) for name in others[:5]) + (", ..." if len(others) > 5 else "")
        raise CannotWrite(path, f"the folder holds other things ({shown}); move them or choose another folder")
    _refuse_unmovable(path, target)


def _refuse_unmovable(path: Path, target: Path) -> None:
    """A folder is replaced as a whole, by renames: some cannot be renamed, or had better not be."""
    if target == Path(os.path.realpath(os.curdir)):
        raise CannotWrite(path, "it is the current folder, which would be replaced; name a folder in it")
    if os.path.ismount(target) or os.fsencode(target) in _mounts():
        raise CannotWrite(path, "it is a mount point, which cannot be replaced; name a folder in it")
    above, user = os.stat(target.parent), _user()
    if above.st_mode & stat.S_ISVTX and user not in (None, 0, above.st_uid, os.stat(target).st_uid):
        raise CannotWrite(path, "it belongs to somebody else, and so cannot be replaced; name another folder")


def _user() -> int | None:
    return os.geteuid() if hasattr(os, "geteuid") else None


def _mounts() -> set[bytes]:
    """Mount points, those too that bind a part of the same file system; none where the system does not tell."""
    try:
        lines = Path("/proc/self/mountinfo").read_bytes().splitlines()
    except OSError:
        return set()
    fields = [line.split(b" ") for line in lines]
    return {re.sub(rb"\\([0-7]{3})", _unescaped, parts[4]) for parts in fields if len(parts) > 4}


def _unescaped(match: re.Match[bytes]) -> bytes:
    return bytes([int(match[1], 8) & 0xFF])


def _take_place(temporary: Path, target: Path) -> None:
    """Put a folder in the place of another, in one step where the system can: a plan is there at any moment.

    Elsewhere what was there is moved aside for that moment, and back if it fails.
    """
    if not target.exists():
        os.replace(temporary, target)
        return
    _take_after(temporary, target)
    if not os.listdir(target):
        os.replace(temporary, target)
        return
    if _exchange(temporary, target):
        return  # the caller removes what is under the temporary name, now the old folder
    aside = _beside(target)
    os.rename(target, aside)
    try:
        os.rename(temporary, target)
    except BaseException:
        os.rename(aside, target)
        raise
    shutil.rmtree(aside, ignore_errors=True)


def _take_after(temporary: Path, target: Path) -> None:
    """Give a new folder the mode of the one that it replaces, and its owner where that is allowed."""
    status = os.stat(target)
    if _user() == 0:
        with contextlib.suppress(OSError):
            os.chown(temporary, status.st_uid, status.st_gid)
            for name in os.listdir(temporary):
                os.chown(temporary / name, status.st_uid, status.st_gid)
    os.chmod(temporary, stat.S_IMODE(status.st_mode))


def _exchange(one: Path, other: Path) -> bool:
    """Let two folders change their names in one step (renameat2 of Linux); False where that is not known."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):
        return False
    names = os.fsencode(one), os.fsencode(other)
    if rename(_AT_FDCWD, names[0], _AT_FDCWD, names[1], ctypes.c_uint(_RENAME_EXCHANGE)) == 0:
        return True
    number = ctypes.get_errno()
    if number in _NO_EXCHANGE:
        return False
    raise OSError(number, os.strerror(number))


def _clear_leftovers(target: Path, known: Collection[str]) -> None:
    """Remove what runs that were killed left beside the target: our names, nothing else in it, older than this run."""
    ours = re.compile(re.escape(_stem(target)) + r"[0-9a-f]{12}\.tmp")
    with contextlib.suppress(OSError):
        for entry in list(os.scandir(target.parent)):
            if not ours.fullmatch(entry.name) or entry.stat(follow_symlinks=False).st_mtime >= _BEGUN:
                continue
            if entry.is_file(follow_symlinks=False):
                with contextlib.suppress(OSError):
                    os.unlink(entry.path)
            elif entry.is_dir(follow_symlinks=False) and known and set(os.listdir(entry.path)) <= set(known):
                shutil.rmtree(entry.path, ignore_errors=True)


def _stem(target: Path) -> str:
    return f".{target.name[:100]}."


def _beside(target: Path) -> Path:
    """A new hidden name in the same folder, so that a rename stays within one file system."""
    return target.parent / f"{_stem(target)}{secrets.token_hex(6)}.tmp"


def _write_new(path: Path, data: bytes) -> None:
    with open(path, "xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(path: Path) -> None:
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
