"""Where output goes: people's text through a console, JSON plainly, errors to stderr.

A reader that goes away (`planner show plan | head`) is no fault. An output that cannot be written is one, and
the command must not end as if all had been said.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from models.domain import Instance
    from planner.report.canvas import Canvas

PIPE_WIDTH = 100
CLOSED = "standard output: it is closed"


class CannotPrint(Exception):
    """Standard output cannot be written, for another reason than a reader that went away."""


def prepare_streams() -> None:
    """Let no name stop the output: what the encoding lacks is written as an escape.

    Where a standard stream is closed its number must not fall to a file that is opened later.
    """
    if sys.stdout is None or sys.stderr is None:
        while (taken := os.open(os.devnull, os.O_RDWR)) <= 2:
            pass
        os.close(taken)
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a person is looking at the stream."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # closed
        return False


def has_colour() -> bool:
    """Whether colour is welcome: NO_COLOR wins over whatever else is set."""
    return not os.environ.get("NO_COLOR")


def console(stream: TextIO) -> Console:
    """A console as wide as the terminal; off a terminal COLUMNS wide, or 100. Names are never markup."""
    from rich.console import Console

    return Console(
        file=stream,
        width=None if is_terminal(stream) else _pipe_width(),
        color_system="auto" if has_colour() else None,
        highlight=False,
        markup=False,
        emoji=False,
    )


def _pipe_width() -> int:
    asked = os.environ.get("COLUMNS", "")
    return min(max(40, int(asked)), 10_000) if asked.isdecimal() and len(asked) < 10 and int(asked) else PIPE_WIDTH


def canvas(stream: TextIO | None = None) -> Canvas:
    """The page that reports are drawn on."""
    from planner.report.canvas import Canvas

    made = console(stream or sys.stdout or io.StringIO())
    return Canvas(width=max(40, made.width), ascii_only=made.options.ascii_only)


def show(renderables: Iterable[RenderableType], stream: TextIO | None = None) -> None:
    """Print tables and lines for people."""
    target = stream or sys.stdout
    if target is None:
        raise CannotPrint(CLOSED)
    text = _rendered(renderables, console(target))
    if not is_terminal(target):
        text = "".join(line.rstrip() + "\n" for line in text.split("\n"))[:-1]
    write(text, target)


def _rendered(renderables: Iterable[RenderableType], like: Console) -> str:
    """What the console would print. It is written by `write`, which knows how writing can fail."""
    from rich.console import Console

    page = io.StringIO()
    made = Console(
        file=page,
        width=like.width,
        color_system=like.color_system,  # type: ignore[arg-type]
        force_terminal=like.color_system is not None,
        legacy_windows=False,
        highlight=False,
        markup=False,
        emoji=False,
    )
    for renderable in renderables:
        # `print` joins texts and forgets how they are to be wrapped, unless it is told again.
        no_wrap, overflow = (getattr(renderable, name, None) for name in ("no_wrap", "overflow"))
        made.print(renderable, crop=False, no_wrap=no_wrap, overflow=overflow)
    return page.getvalue()


def document(content: dict[str, Any]) -> None:
    """One JSON document on stdout, in ASCII: it passes every encoding and commands no terminal."""
    if sys.stdout is None:
        raise CannotPrint(CLOSED)
    write(json.dumps(_finite(content), indent=2, ensure_ascii=True, allow_nan=False) + "\n", sys.stdout)


def page(text: str) -> None:
    """A page of plain text on stdout."""
    if sys.stdout is None:
        raise CannotPrint(CLOSED)
    write(text.rstrip("\n") + "\n", sys.stdout)


def _finite(value: Any) -> Any:
    """The same with null for what JSON has no number for: a false plan's costs may be infinite."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): _finite(member) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(member) for member in value]
    return value


def wrote(instance: Instance, path: Path) -> None:
    """Tell that an instance is written, and what is in it."""
    from planner.report.text import clean, count

    parts = ((len(instance.jobs), "job"), (len(instance.pools), "pool"), (len(instance.datasets), "dataset"))
    what = ", ".join(count(number, noun) for number, noun in parts)
    say(f"wrote {clean(str(path))}: instance {clean(instance.name)}, {what}", sys.stdout)


def say(text: str, stream: TextIO | None = None) -> None:
    """A line for people on stderr (or on another stream); the text must be clean."""
    write(text + "\n", stream or sys.stderr)


def write(text: str, stream: TextIO | None) -> None:
    """Write and flush now, while a failure can still be told."""
    if stream is None:
        return
    try:
        stream.write(text)
        stream.flush()
    except BrokenPipeError:
        silence(stream)
    except UnicodeEncodeError:
        encoding = stream.encoding or "ascii"
        write(text.encode(encoding, "backslashreplace").decode(encoding), stream)
    except OSError as fault:
        silence(stream)
        if stream is not sys.stderr:
            raise CannotPrint(f"standard output: {(fault.strerror or str(fault)).lower()}") from None


def silence(stream: TextIO) -> None:
    """Send the rest to nowhere, so that the interpreter does not stumble over it at its end."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
