"""Bytes of a file to text: a regular file, not too large, UTF-8; and foreign text made fit to show."""

from __future__ import annotations

import codecs
import difflib
import os
import stat
from pathlib import Path

from models.errors import Fault, InvalidInput

MIB = 1 << 20
YAML_LIMIT = 128 * MIB
"""YAML is read entry by entry with the line of each: 20,000 jobs of ten modes, written with every field, are read."""
JSON_LIMIT = 256 * MIB
"""JSON has the same in twice as many bytes; it becomes Python at once, of ten times its size, twenty at worst."""
LIMIT = 256 * MIB
"""Of tables, and of plans."""

_HEAD = 1 << 16
_SHOWN = 80
_MARKS = {
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}
_SIGNATURES = {
    b"PK\x03\x04": ("is a zip archive or a spreadsheet", "export its tables as CSV"),
    b"\x1f\x8b": ("is compressed with gzip", "unpack it"),
    b"%PDF": ("is a PDF", "give a YAML, JSON or CSV file"),
}


def show(value: object, most: int = _SHOWN) -> str:
    """A value from outside as one line fit for a terminal: escaped where not printable, cut where long."""
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}"
    if isinstance(value, dict):
        return f"a record of {len(value)} fields"
    if isinstance(value, int) and abs(value) >= 10**_SHOWN:
        return "a very long number"
    text = value if isinstance(value, str) else repr(value)
    if isinstance(value, float) and float(short := f"{value:g}") == value:
        text = short
    is_cut = len(text) > most
    text = "".join(char if char.isprintable() else _escaped(char) for char in text[:most])
    return text + "..." if is_cut else text or '""'


def _escaped(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")


def refuse(where: str | Path, problem: str, mend: str, value: str | None = None) -> InvalidInput:
    """One fault of a whole file, to be raised."""
    return InvalidInput([Fault(problem, (), value, mend, show(str(where), 300))])


def read_text(path: Path, limit: int) -> str:
    """The text of a file without its byte order mark; raises InvalidInput with one fault.

    The first bytes are looked at before the rest is read, so that a large file of noise is refused at once.
    """
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            kind = "is a folder" if stat.S_ISDIR(status.st_mode) else "is not a file"
            raise refuse(path, kind, "give a file")
        if status.st_size > limit:
            raise refuse(path, f"is larger than {limit // MIB} MiB", _smaller(path), f"{status.st_size / MIB:.0f} MiB")
        with open(path, "rb") as file:
            head = file.read(_HEAD)
            _refuse_foreign(path, head)
            # A file can grow while it is read.
            data = head + file.read(limit + 1 - len(head)) if len(head) == _HEAD else head
    except FileNotFoundError:
        raise refuse(path, "does not exist", _neighbour(path)) from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "bad file name"
        raise refuse(path, f"cannot be read: {reason}", "check the path and its permissions") from None
    if len(data) > limit:
        raise refuse(path, f"is larger than {limit // MIB} MiB", _smaller(path))
    return _decoded(path, data)


def _smaller(path: Path) -> str:
    if path.suffix.lower() in (".yaml", ".yml"):
        return "write it as JSON, or as a folder with CSV tables"
    if path.suffix.lower() == ".json":
        return "write it as a folder with CSV tables"
    return "is it the right file?"


def _neighbour(path: Path) -> str:
    try:
        names = os.listdir(path.parent)
    except OSError:
        return f"the folder {show(str(path.parent), 200)} does not exist or cannot be read"
    close = difflib.get_close_matches(path.name, names[:10_000], n=1)
    return f"did you mean {show(close[0])}?" if close else "check the path"


def _refuse_foreign(path: Path, head: bytes) -> None:
    for mark, name in _MARKS.items():
        if head.startswith(mark):
            raise refuse(path, f"is {name}", "save it as UTF-8", "byte order mark at byte 0")
    for signature, (problem, mend) in _SIGNATURES.items():
        if head.startswith(signature):
            raise refuse(path, problem, mend)
    nul = head.find(0)
    if nul >= 0:
        raise _nul(path, head, nul)
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head, final=False)
    except UnicodeDecodeError as error:
        raise _not_utf8(path, head, error) from None


def _decoded(path: Path, data: bytes) -> str:
    nul = data.find(0)
    if nul >= 0:
        raise _nul(path, data, nul)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _not_utf8(path, data, error) from None
    return text.removeprefix("\ufeff")


def _nul(path: Path, data: bytes, at: int) -> InvalidInput:
    mend = "save it as UTF-8" if data.count(0, 0, 1000) > 10 else "remove it; is it a text file?"
    return refuse(path, "has a NUL byte, as UTF-16 and binary files do", mend, _place(data, at))


def _not_utf8(path: Path, data: bytes, error: UnicodeDecodeError) -> InvalidInput:
    value = f"0x{data[error.start]:02X} at {_place(data, error.start)}"
    return refuse(path, "has a byte that is not UTF-8", "save it as UTF-8 (it may be Latin-1)", value)


def _place(data: bytes, at: int) -> str:
    return f"byte {at}, line {data.count(10, 0, at) + 1}"
