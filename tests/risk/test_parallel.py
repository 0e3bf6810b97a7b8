"""Replays on local processes: the same as in one, and what becomes of them when something ends too soon."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from planner.risk import parallel
from planner.risk.parallel import Batch, Task, Workers
from planner.risk.replays import Replay, Setting, replay
from tests.risk.cases import setting_of
from tests.risk.test_study import row

TASKS = [Task(r) for r in range(12)]
ROOT = Path(__file__).resolve().parent.parent.parent


def setting() -> Setting:
    """Of a plan whose jobs take as long as they like."""
    return setting_of(*row(), duration_error=0.4, mtbf_h=20.0, seed=6)


def test_two_processes_make_what_one_makes() -> None:
    """In the same order, with and without relief, twice with the same processes; all are told of as they are done."""
    told: list[int] = []
    tasks = [*TASKS, *(Task(r, ((0, 0.25),)) for r in range(12))]
    with Workers(setting(), 1) as one, Workers(setting(), 2) as two:
        expected = one.run(tasks)
        assert two.run(tasks, 5, told.append) == expected
        assert two.run(tasks[:7], 2) == Batch(expected.replays[:7])
    assert sum(told) == 24
    assert expected.replays[12:] != expected.replays[:12]
    assert expected.stopped is None


def test_a_worker_that_dies_ends_the_run_and_what_came_before_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """It does not hang. Workers are spawned, so what they run is told by the environment."""
    monkeypatch.setattr(parallel, "_made", die_at_six)
    with Workers(setting(), 2) as workers:
        batch = workers.run(TASKS)
    assert batch.stopped == "worker died"
    assert len(batch.replays) <= 6
    assert batch.replays == Workers(setting(), 1).run(TASKS).replays[: len(batch.replays)]


def die_at_six(tasks: list[Task]) -> list[Replay]:
    """A worker that is killed, as for want of memory."""
    if tasks[0].index == 6:
        time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGKILL if hasattr(signal, "SIGKILL") else signal.SIGTERM)
    assert parallel._setting is not None
    return [replay(parallel._setting, task.index, task.relief) for task in tasks]


def fail_at_six(tasks: list[Task]) -> list[Replay]:
    """A replay that its check does not confirm."""
    from models.errors import Defect

    if tasks[0].index == 6:
        raise Defect("fails its replay")
    return []


def test_what_a_replay_raises_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    """A defect is not taken for a replay that is missing."""
    from models.errors import Defect

    monkeypatch.setattr(parallel, "_made", fail_at_six)
    with Workers(setting(), 2) as workers, pytest.raises(Defect, match="fails its replay"):
        workers.run(TASKS)


@pytest.mark.parametrize("count", [1, 2])
def test_ctrl_c_keeps_what_is_done(count: int) -> None:
    """The first of the replays without a gap, in one process or in two."""

    def stop_after(number: int) -> Callable[[int], None]:
        seen = 0

        def told(more: int) -> None:
            nonlocal seen
            seen += more
            if seen >= number:
                raise KeyboardInterrupt

        return told

    with Workers(setting(), count) as workers:
        batch = workers.run(TASKS, 1, stop_after(4))
    assert batch.stopped == "interrupted"
    assert 1 <= len(batch.replays) <= 12
    assert batch.replays == Workers(setting(), 1).run(TASKS).replays[: len(batch.replays)]


def blocked(_: Any) -> list[Any]:
    """What a worker does not hear."""
    return [signal.pthread_sigmask(signal.SIG_BLOCK, [])]


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_signals_are_for_the_parent_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal sends Ctrl-C to all processes; the parent hears of signals again when the workers have begun."""
    monkeypatch.setattr(parallel, "_made", blocked)
    with Workers(setting(), 2) as workers:
        found: Any = workers.run(TASKS[:4]).replays
    assert len(found) == 4
    assert all({signal.SIGINT, signal.SIGTERM} <= signals for signals in found)
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == set()


PARENT = """
import os, signal, sys
from planner.risk import parallel
from tests.risk.test_parallel import TASKS, setting, sleep_long
parallel._made = sleep_long
if __name__ == "__main__":
    with parallel.Workers(setting(), 2) as workers:
        workers.run(TASKS)
"""


def sleep_long(_: Any) -> list[Replay]:
    """A worker that says who it is, and is busy for very long."""
    print(os.getpid(), flush=True)
    time.sleep(600)
    return []


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_workers_end_with_their_parent(tmp_path: Path) -> None:
    """However it ends: nobody is left behind by a parent that is killed."""
    script = tmp_path / "parent.py"
    script.write_text(PARENT)
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    parent = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True, env=env)
    assert parent.stdout is not None
    assert all(int(parent.stdout.readline()) for _ in range(2))
    parent.kill()
    # The workers have the pipe, too: it ends when they are gone.
    assert parent.communicate(timeout=60)[0] == ""
