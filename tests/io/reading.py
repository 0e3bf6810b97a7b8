"""What the tests of reading share: the faults of a path, and what no fault may show."""

from __future__ import annotations

from pathlib import Path

from models.errors import Fault, InvalidInput
from planner.io.instances import read_instance

JARGON = (
    *("pydantic", "http", "Input should", "Value error", "validation error", "function-", "tuple[", "type="),
    *(
        "literal[",
        "Traceback",
        "NoneType",
        "Tuple",
        "instance of",
        "dictionary",
        "<class",
        "~constant",
        "~list",
    ),
)


def faults_of(path: Path) -> tuple[Fault, ...]:
    """The faults of an instance that is not valid; whatever else happens is an error of the reader."""
    try:
        read_instance(path)
    except InvalidInput as error:
        check_words(error)
        return error.faults
    raise AssertionError(f"{path} was read without a fault")


def check_words(error: InvalidInput) -> None:
    """Every fault says what is wrong and how to mend it, in words fit for a terminal and without jargon."""
    assert error.faults
    for fault in error.faults:
        assert fault.problem
        assert fault.mend
        assert fault.where
        text = str(fault)
        assert text.isprintable()
        assert len(text) < 2000
        assert not [word for word in JARGON if word in text], text
    assert len({(f.where, f.path, f.problem) for f in error.faults}) == len(error.faults), "the same fault twice"


def write(folder: Path, files: dict[str, str | bytes]) -> Path:
    """A folder with files."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        data = content if isinstance(content, bytes) else content.encode()
        (folder / name).write_bytes(data)
    return folder
