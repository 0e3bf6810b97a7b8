"""Live progress of a solve: one line on stderr, only where a person watches, gone when the solve ends."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from planner.cli.output import console, is_terminal

if TYPE_CHECKING:
    from rich.text import Text

    from planner.engines.base import Progress

_SPINNER, _PLAIN_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏", "|/-\\"


class Line:
    """The line as it stands: phase, time, incumbent, dual bound, gap."""

    def __init__(self, currency: str, ascii_only: bool):
        self.currency = currency
        self.frames = _PLAIN_SPINNER if ascii_only else _SPINNER
        self.began = time.monotonic()
        self.last: Progress | None = None

    def update(self, progress: Progress) -> None:
        """Take note of news from the engine."""
        self.last = progress

    def __rich__(self) -> Text:
        """The line now; its time goes on between two messages of the engine."""
        from rich.text import Text

        from models.domain import relative_gap
        from planner.report.text import clean, number, share

        elapsed = time.monotonic() - self.began
        line = Text(no_wrap=True, overflow="ellipsis")
        line.append(self.frames[int(elapsed * 8) % len(self.frames)] + " ", "cyan")
        line.append(clean(self.last.phase) if self.last else "starting", "bold")
        line.append(f"  {elapsed:.0f} s")
        if self.last is not None:
            incumbent, bound = self.last.incumbent, self.last.dual_bound
            line.append("  plan ", "dim").append(
                "none yet" if incumbent is None else f"{number(incumbent)} {self.currency}"
            )
            if bound is not None:
                line.append("  bound ", "dim").append(number(bound))
            if incumbent is not None:
                line.append("  gap ", "dim").append(share(relative_gap(incumbent, bound)))
        line.append("  Ctrl-C stops with the best plan", "dim")
        return line


@contextmanager
def live(currency: str, is_quiet: bool) -> Iterator[Callable[[Progress], None] | None]:
    """Show progress while the block runs; yields what takes the engine's messages, or None off a terminal."""
    if is_quiet or not is_terminal(sys.stderr):
        yield None
        return
    from rich.live import Live

    made = console(sys.stderr)
    line = Line(currency, made.options.ascii_only)
    # stdout is left alone: nothing but the plan or its JSON may go there.
    with Live(line, console=made, transient=True, refresh_per_second=5, redirect_stdout=False):
        yield line.update
