"""Replays on local processes. What is computed does not depend on how many there are.

Ctrl-C and SIGTERM are the parent's affair: it stops handing out work, waits for what is under way (a fraction of a
second) and keeps what is done. A worker that dies, for want of memory say, ends the run in the same way; one whose
parent dies ends by itself.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from planner.risk.replays import Replay, Setting, replay

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor

Relief = tuple[tuple[int, float], ...]
Stop = Literal["interrupted", "worker died"]


@dataclass(frozen=True)
class Task:
    """A replay to be made."""

    index: int
    relief: Relief = ()


@dataclass(frozen=True)
class Batch:
    """What was made of a list of tasks: all, or where it was stopped the first of them without a gap."""

    replays: tuple[Replay, ...]
    stopped: Stop | None = None


def cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Workers:
    """So many processes, begun when they are first needed; leaving the context ends them."""

    def __init__(self, setting: Setting, count: int):
        self.setting, self.count = setting, count
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)

    def run(self, tasks: Sequence[Task], chunk: int = 1, on_done: Callable[[int], None] = lambda _: None) -> Batch:
        """Make replays, `chunk` of them at a time on each process; told how many more are done.

        With one worker, or one chunk, all is done in this process. Raises what a replay raises.
        """
        pieces = [tasks[a : a + chunk] for a in range(0, len(tasks), chunk)]
        if min(self.count, len(pieces)) <= 1:
            return _here(self.setting, tasks, on_done)
        return self._there(pieces, on_done)

    def _there(self, pieces: Sequence[Sequence[Task]], on_done: Callable[[int], None]) -> Batch:
        from concurrent.futures import Future, as_completed
        from concurrent.futures.process import BrokenProcessPool

        stopped: Stop | None = None
        futures: list[Future[list[Replay]]] = []
        try:
            pool = self._begun()
            with _signals_kept_from_children():
                futures = [pool.submit(_made, piece) for piece in pieces]
            for future in as_completed(futures):
                on_done(len(future.result()))
        except KeyboardInterrupt:
            stopped = "interrupted"
        except BrokenProcessPool:
            stopped = "worker died"
        if stopped is not None:
            self.__exit__()
        replays: list[Replay] = []
        for future in futures:
            if not future.done() or future.cancelled() or future.exception() is not None:
                break
            replays += future.result()
        return Batch(tuple(replays), stopped)

    def _begun(self) -> ProcessPoolExecutor:
        import multiprocessing
        from concurrent.futures import ProcessPoolExecutor

        if self._pool is None:
            # Spawned, not forked: the same on every system, and safe whatever threads a library has begun.
            context = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(self.count, context, initializer=_begin, initargs=(self.setting,))
        return self._pool


def _here(setting: Setting, tasks: Sequence[Task], on_done: Callable[[int], None]) -> Batch:
    made: list[Replay] = []
    try:
        for task in tasks:
            made.append(replay(setting, task.index, task.relief))
            on_done(1)
    except KeyboardInterrupt:
        return Batch(tuple(made), "interrupted")
    return Batch(tuple(made))


@contextmanager
def _signals_kept_from_children() -> Iterator[None]:
    """Processes begun within inherit that Ctrl-C and SIGTERM are blocked; here those that come are only put off."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    from multiprocessing import resource_tracker

    # It is begun with the first process, and then unblocks what is blocked.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


_setting: Setting | None = None
"""Of a worker: sent once, not with every task."""


def _begin(setting: Setting) -> None:
    import multiprocessing

    global _setting
    _setting = setting
    parent = multiprocessing.parent_process()
    assert parent is not None

    def end_with_the_parent() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=end_with_the_parent, daemon=True).start()


def _made(tasks: Sequence[Task]) -> list[Replay]:
    assert _setting is not None
    return [replay(_setting, task.index, task.relief) for task in tasks]
