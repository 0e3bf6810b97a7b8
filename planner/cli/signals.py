"""Signals that stop a solve: the best plan so far is kept, and nothing comes between it and its file."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def stop_signals() -> Iterator[Callable[[], None]]:
    """Let SIGTERM (a batch system's end of time, `timeout`) stop the solve as Ctrl-C does.

    Yields what is called once there is a plan: from then on a second Ctrl-C must not come between the plan
    and its file.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: None
        return
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.getsignal(number) or signal.SIG_DFL for number in numbers}

    def hold() -> None:
        for number in numbers:
            signal.signal(number, signal.SIG_IGN)

    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield hold
    finally:
        for number in numbers:
            signal.signal(number, before[number])
