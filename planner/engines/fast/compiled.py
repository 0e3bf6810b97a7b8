"""Compilation of the search's inner loops, where Numba is installed and not turned off.

Compiled or not, the same code gives the same results to the last bit: there is no fast maths, nothing runs in
parallel, and random numbers come from integer arithmetic that stays within 64 bits.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from planner.engines import clock

Function = TypeVar("Function", bound=Callable[..., Any])

try:
    if os.environ.get("BURSTPLAN_COMPILED") == "0":
        raise ImportError
    import numba
    from numba.core import event

    jit: Any = numba.njit
    HAS_NUMBA = True
except ImportError:
    HAS_NUMBA = False


def compiled(function: Function) -> Function:
    """A function that Python calls: compiled at its first call, kept on disk for the next process.

    What is kept is found again as long as the file of the function is the same; a function that calls kernels of
    other files closes over `sources`, so that theirs count too.
    """
    if not HAS_NUMBA:
        return function
    try:
        return jit(cache=True, nogil=True)(function)
    except RuntimeError:  # there is no folder to keep it in
        return jit(nogil=True)(function)


def kernel(function: Function) -> Function:
    """A function that only compiled functions call; it becomes a part of them, and has no form that Python calls."""
    if not HAS_NUMBA:
        return function
    return jit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)(function)


def sources(*modules: str) -> int:
    """A number for the text of some modules of this package, below 2^31."""
    digest = hashlib.sha256()
    for name in modules:
        digest.update(Path(__file__).with_name(f"{name}.py").read_bytes())
    return int.from_bytes(digest.digest()[:4], "big") >> 1


def forget_stale(folder: Path, names: str) -> None:
    """Drop what a folder keeps of other sources than those named: after an upgrade it may name modules that are
    gone, and would not be read but fail."""
    stamp = folder / "kernels.stamp"
    with suppress(OSError):
        if stamp.read_text(encoding="ascii") == names:
            return
    with suppress(OSError):  # where nothing can be changed nothing is kept either
        for path in [*folder.glob("*.nbi"), *folder.glob("*.nbc")]:
            path.unlink(missing_ok=True)
        stamp.write_text(names, encoding="ascii")


def _names() -> str:
    """A digest of all files of this package."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()


def _measure() -> None:
    """Let the clock of time limits stand still during compilation."""
    listener = event.TimingListener()
    event.register("numba:compile", listener)
    clock.without(lambda: listener.duration if listener.done else 0.0)


if HAS_NUMBA:
    _measure()
    forget_stale(Path(__file__).parent / "__pycache__", _names())
