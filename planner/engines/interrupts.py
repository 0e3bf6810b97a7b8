"""Ctrl-C at safe points: a signal is noted when it comes and obeyed where nothing is half done.

Raised wherever it happens to come, a KeyboardInterrupt can leave a solver's thread running or break code of
libraries that do not expect it. A second signal is not held back.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_noted = threading.Event()
_depth = 0


@contextmanager
def held() -> Iterator[None]:
    """Within, a first SIGINT (or SIGTERM, where Python handles it) is only noted; in other threads nothing changes.

    One may be within another: what was noted before the inner one began is still noted in it.
    """
    global _depth
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before: dict[int, Any] = {number: signal.getsignal(number) for number in _SIGNALS}
    before = {number: handler for number, handler in before.items() if callable(handler)}

    def note(number: int, frame: FrameType | None) -> None:
        if _noted.is_set():
            before[number](number, frame)
        _noted.set()

    for number in before:
        signal.signal(number, note)
    _depth += 1
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        _depth -= 1
        if _depth == 0:
            _noted.clear()  # nobody asked for it


def asked() -> bool:
    """Whether a signal was noted; asking forgets it."""
    noted = _noted.is_set()
    _noted.clear()
    return noted


def safe_point() -> None:
    """Raise the KeyboardInterrupt that was noted, if any."""
    if asked():
        raise KeyboardInterrupt
