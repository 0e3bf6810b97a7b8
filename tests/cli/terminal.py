"""The program in a process of its own: on pipes, and on a terminal with nothing but the standard library."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
COMMAND = (sys.executable, "-m", "planner.cli.main")


def environment(**changes: str) -> dict[str, str]:
    """The environment without what decides on colour and width."""
    names = (
        "NO_COLOR",
        "FORCE_COLOR",
        "COLUMNS",
        "LINES",
        "PYTHONIOENCODING",
        "PLANNER_DEBUG",
        "TTY_COMPATIBLE",
    )
    kept = {key: value for key, value in os.environ.items() if key not in names}
    return kept | {"TERM": "xterm-256color", "PYTHONUTF8": "1", "PYTHONPATH": str(ROOT)} | changes


def piped(*args: object, **changes: str) -> subprocess.CompletedProcess[str]:
    """Run with pipes."""
    command = [*COMMAND, *(str(arg) for arg in args)]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        encoding="utf-8",
        env=environment(**changes),
        timeout=120,
        check=False,
    )


@dataclass
class Screen:
    """What came to the terminal, and how the program ended."""

    text: str
    code: int
    stdout: str = ""


def on_terminal(
    *args: object,
    width: int = 100,
    stdout_too: bool = False,
    command: tuple[str, ...] = COMMAND,
    keys: Callable[[str], str | None] | None = None,
    timeout_s: float = 120,
    **changes: str,
) -> Screen:
    """Run with stderr (and perhaps stdout) on a terminal; `keys` sees what has come and may answer."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 30, width, 0, 0))

    def take_terminal() -> None:
        os.setsid()
        fcntl.ioctl(slave, termios.TIOCSCTTY, 0)

    process = subprocess.Popen(
        [*command, *(str(arg) for arg in args)],
        stdin=slave,
        stdout=slave if stdout_too else subprocess.PIPE,
        stderr=slave,
        env=environment(**changes),
        preexec_fn=take_terminal,
    )
    os.close(slave)
    seen = bytearray()
    until = time.monotonic() + timeout_s
    try:
        while time.monotonic() < until:
            ready, _, _ = select.select([master], [], [], 0.05)
            if ready:
                try:
                    data = os.read(master, 65536)
                except OSError:  # EIO: the program has closed the terminal
                    break
                if not data:
                    break
                seen += data
            elif process.poll() is not None:
                break
            answer = keys(seen.decode("utf-8", "replace")) if keys else None
            if answer:
                os.write(master, answer.encode())
                keys = None  # once: a second Ctrl-C is another story
        stdout = b"" if stdout_too or process.stdout is None else process.stdout.read()
        code = process.wait(timeout=30)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()
        os.close(master)
    return Screen(seen.decode("utf-8", "replace"), code, stdout.decode())
