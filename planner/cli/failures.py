"""What a user is told when a command cannot do its work: every fault with its mend, never a traceback."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from models.errors import Clash, Defect, Fault, Infeasible, InvalidInput, Locked, NoPlan
from planner.cli.exits import Exit
from planner.cli.output import CannotPrint, canvas, document, say, show

if TYPE_CHECKING:
    from rich.console import RenderableType

REPORT = (
    "This is a fault of the program, not of your input: please report it to the maintainers with the\n"
    "command and the instance (PLANNER_DEBUG=1 adds the traceback)."
)


_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF}


class Unwritable(Exception):
    """A path that is to be written cannot be; said before any work is done for it."""


@dataclass(frozen=True)
class Outcome:
    """How a failure is told: exit code, document for machines, lines for people."""

    exit: Exit
    document: dict[str, Any]
    lines: tuple[RenderableType, ...]


@contextmanager
def failures(as_json: bool = False) -> Iterator[None]:
    """Turn every exception of a command into its message and its exit code."""
    try:
        yield
    except (typer.Exit, typer.Abort, typer.BadParameter, SystemExit):
        raise
    except BaseException as fault:
        code = tell(fault, as_json)
        raise typer.Exit(code) from None


def tell(fault: BaseException, as_json: bool) -> Exit:
    """Print a failure; returns the exit code that it deserves."""
    outcome = outcome_of(fault)
    if os.environ.get("PLANNER_DEBUG"):
        say("".join(traceback.format_exception(fault)).rstrip())
    if sys.stderr is not None:
        show(outcome.lines, sys.stderr)
    if as_json:
        with contextlib.suppress(CannotPrint):
            document(outcome.document)
    return outcome.exit


def outcome_of(fault: BaseException) -> Outcome:
    """The failure in words."""
    match fault:
        case KeyboardInterrupt():
            return _simple(Exit.INTERRUPTED, "interrupted", "interrupted", "no plan had been found yet")
        case InvalidInput():
            return _invalid(fault.faults)
        case Infeasible():
            return _infeasible(fault)
        case NoPlan():
            return _simple(Exit.NO_PLAN, "no_plan", "no plan", str(fault))
        case Locked():
            return _simple(Exit.LOCKED, "locked", "locked", str(fault))
        case CannotPrint() | Unwritable():
            return _simple(Exit.INVALID, "unwritable", "cannot write", str(fault))
        case MemoryError():
            return _simple(Exit.DEFECT, "defect", "out of memory", "the instance needs more memory than there is")
        case Defect():
            return _defect(str(fault))
    if _is_cannot_write(fault):
        message = str(fault).removeprefix("cannot write ")
        return _simple(Exit.INVALID, "unwritable", "cannot write", message)
    if isinstance(fault, OSError) and fault.filename is None and fault.errno in _NO_ROOM:
        reason = (fault.strerror or "cannot be written").lower()
        return _simple(Exit.INVALID, "unwritable", "cannot write", f"an output: {reason}")
    if isinstance(fault, OSError) and fault.filename is not None:
        problem = f"{(fault.strerror or 'cannot be read').lower()}"
        return _invalid([Fault(problem, where=os.fsdecode(fault.filename))])
    return _defect(f"{type(fault).__name__}: {fault}" if str(fault) else type(fault).__name__)


def _is_cannot_write(fault: BaseException) -> bool:
    # Looked up by name where it was loaded: what was not loaded cannot have been raised.
    module = sys.modules.get("planner.io.files")
    return module is not None and isinstance(fault, module.CannotWrite)


def _line(head: str, text: str = "", style: str = "bold red") -> RenderableType:
    from rich.text import Text

    name = canvas(sys.stderr).name
    lines = "\n".join(name(line) for line in text.splitlines())
    # Not folded by us: a path must come out of a terminal or a log in one piece.
    return Text.assemble((head, style), f": {lines}" if text else "", no_wrap=True, overflow="ignore")


def _simple(code: Exit, status: str, head: str, message: str) -> Outcome:
    return Outcome(code, {"status": status, "message": message}, (_line(head, message),))


def _defect(message: str) -> Outcome:
    made = _simple(Exit.DEFECT, "defect", "defect", message)
    return Outcome(made.exit, made.document, (*made.lines, _line(REPORT, style="")))


def _invalid(faults: tuple[Fault, ...] | list[Fault]) -> Outcome:
    groups: dict[str, list[Fault]] = {}
    for fault in faults:
        groups.setdefault(file_of(fault), []).append(fault)
    num_files = len([name for name in groups if name])
    within = f" in {num_files} files" if num_files > 1 else ""
    number = f"{len(faults)} fault{'s' if len(faults) != 1 else ''}"
    lines: list[RenderableType] = [_line("invalid input", number + within)]
    for name, members in groups.items():
        if name:
            lines.append(_line(canvas(sys.stderr).name(name), style="bold"))
        lines += [_fault(fault, name) for fault in members]
    listed = [
        {"where": f.where, "path": f.location or None, "value": f.value, "problem": f.problem, "mend": f.mend}
        for f in faults
    ]
    return Outcome(Exit.INVALID, {"status": "invalid", "faults": listed}, tuple(lines))


def file_of(fault: Fault) -> str:
    """The file of a fault: its `where` without the line, row or sheet that follows."""
    where = fault.where or ""
    for end in range(len(where), 0, -1):
        if end == len(where) or where[end] in ":, ":
            with contextlib.suppress(OSError, ValueError):
                if Path(where[:end]).exists():
                    return where[:end]
    return where


def _fault(fault: Fault, file: str) -> RenderableType:
    from rich.text import Text

    name = canvas(sys.stderr).name
    place = (fault.where or "")[len(file) :].strip(":, ")
    head = " ".join(name(part) for part in (place, fault.location) if part)
    text = Text("  ", no_wrap=True, overflow="ignore")
    if head:
        text.append(f"{head}: ", "bold")
    text.append(name(fault.problem))
    if fault.value is not None:
        text.append(f" (is {name(fault.value)})")
    if fault.mend:
        text.append("; ").append(name(fault.mend), "green")
    return text


def _infeasible(fault: Infeasible) -> Outcome:
    lines: list[RenderableType] = [_line("infeasible", f"proven: {fault.summary}")]
    if fault.reasons:
        lines.append(_reasons(fault.reasons))
    listed = [{"way": r.way, "what": r.what, "amount": r.amount, "jobs": list(r.jobs)} for r in fault.reasons]
    content = {"status": "infeasible", "summary": fault.summary, "reasons": listed}
    return Outcome(Exit.INFEASIBLE, content, tuple(lines))


def _reasons(reasons: tuple[Clash, ...]) -> RenderableType:
    from planner.report.tables import cell, table

    page = canvas(sys.stderr)
    made = table("Ways out, each by itself: all that is listed under it would have to give way",
                 ("way", "what", "by", "jobs"), page)  # fmt: skip
    last = None
    for reason in reasons:
        way = reason.way if reason.way != last else ""
        last = reason.way
        jobs = cell(", ".join(reason.jobs), page)
        made.add_row(cell(way, page), cell(reason.what, page), cell(reason.amount, page), jobs)
    return made
