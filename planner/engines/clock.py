"""The clock of time limits. It stands still while the search's inner loops are compiled, once after an install: a plan
made in the first run has had the time that was asked for."""

from __future__ import annotations

import time
from collections.abc import Callable

WORTH_TELLING_S = 1.0

_pauses: list[Callable[[], float]] = []


def now() -> float:
    """Seconds from some moment on, without the pauses."""
    return time.monotonic() - paused_s()


def paused_s() -> float:
    """Seconds that this process has not counted so far."""
    return sum(pause() for pause in _pauses)


def notes(since: float) -> tuple[str, ...]:
    """What there is to tell of the pauses after some value of `paused_s`."""
    paused = paused_s() - since
    if paused < WORTH_TELLING_S:
        return ()
    return (f"the search's inner loops were compiled, once after an install: {paused:.0f} s beside the time limit",)


def without(pause: Callable[[], float]) -> None:
    """From now on what `pause` tells, seconds in all, is not counted."""
    _pauses.append(pause)
