"""Processes that run a night and are killed: `python -m tests.nightly.forked` forks one for each line that it reads.

A line is JSON: {"task": [instance, state or null, home], "step": n or null, "delay_s": s or null}. With `step` the
process kills itself at that of its steps that matter: what makes data last, renames, links, and every statement of the
history. With `delay_s` it is killed that long after it was forked. The answer is one line of JSON: {"signal": n,
"code": n, "steps": n, "wall_s": s}; the number of steps is known only of a process that came to its end. What takes
time to import is imported before, so that the moments are those of the night itself.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from planner.nightly import page, run, summary  # noqa: F401
from planner.nightly.folder import Home
from tests.nightly.nights import with_few_moves

_CALLS = ("fsync", "replace", "rename", "symlink", "mkdir", "ftruncate")


class Runner:
    """The process that forks."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.nightly.forked"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=Path(__file__).parents[2],
            text=True,
        )

    def run(self, task: list[str | None], step: int | None = None, delay_s: float | None = None) -> dict[str, Any]:
        """A night in a process of its own."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"task": task, "step": step, "delay_s": delay_s}) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer

    def close(self) -> None:
        """End it."""
        self._process.communicate(timeout=60)


class _Steps:
    """Counts the steps of this process, and kills it at one of them."""

    def __init__(self, fatal: int | None) -> None:
        self.number, self.fatal = 0, fatal
        for name in _CALLS:
            setattr(os, name, self._before(getattr(os, name)))
        connect: Callable[..., sqlite3.Connection] = sqlite3.connect

        def traced(*args: Any, **options: Any) -> sqlite3.Connection:
            connection = connect(*args, **options)
            connection.set_trace_callback(lambda _: self.take())
            return connection

        sqlite3.connect = traced  # type: ignore[assignment]

    def take(self) -> None:
        """One more step."""
        self.number += 1
        if self.number == self.fatal:
            os.kill(os.getpid(), signal.SIGKILL)

    def _before(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def stepped(*args: Any, **options: Any) -> Any:
            self.take()
            return call(*args, **options)

        return stepped


def _night(task: list[str | None], step: int | None, told: Path) -> int:
    """The night, in the child; returns its exit code."""
    steps = _Steps(step)
    instance, state, home = task
    assert instance is not None
    assert home is not None
    made = run.Task(Home(Path(home)), Path(instance), None if state is None else Path(state), with_few_moves)
    try:
        run.run(made)
    except Exception as fault:
        sys.stderr.write(f"{type(fault).__name__}: {fault}\n")
        return 1
    told.write_text(str(steps.number))
    return 0


def _serve() -> None:
    for line in sys.stdin:
        asked = json.loads(line)
        with tempfile.TemporaryDirectory() as folder:
            told, begun = Path(folder) / "steps", time.monotonic()
            child = os.fork()
            if child == 0:
                os._exit(_night(asked["task"], asked["step"], told))
            if asked["delay_s"] is not None:
                time.sleep(asked["delay_s"])
                os.kill(child, signal.SIGKILL)
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            answer = {
                "signal": max(0, -status),
                "code": max(0, status),
                "steps": int(told.read_text()) if told.exists() else None,
                "wall_s": time.monotonic() - begun,
            }
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    _serve()
