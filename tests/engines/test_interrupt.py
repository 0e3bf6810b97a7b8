"""Ctrl-C at any moment: the best plan so far comes back, checked; without one the interrupt goes on."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from models.check import check
from models.domain import Instance
from planner.engines.base import Limits, Progress, Solution
from planner.generate import generate
from planner.solve import solve

UNLIMITED = Limits(time_limit_s=None, gap=0.0, threads=1)


@pytest.fixture(scope="module", autouse=True)
def _warm() -> None:
    """Everything is imported: an import that is cut short stays broken for the rest of the process."""
    solve(generate("contended", 3, 3, seed=1), "exact", Limits(time_limit_s=2.0))


@pytest.fixture(autouse=True)
def _python_handles_ctrl_c() -> None:
    """CP-SAT, the solver of the oracle, leaves SIGINT to the system after each solve, which would end the process."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="module")
def endless() -> Instance:
    """Far from solved in minutes; a first plan takes a second or two."""
    return generate("contended", 50, 40, 1.0, seed=1)


@pytest.fixture(scope="module")
def long() -> Instance:
    """A first plan in a moment, not solved in many seconds."""
    return generate("contended", 8, 3, seed=2)


@contextmanager
def ctrl_c_after(seconds: float) -> Iterator[None]:
    """Ctrl-C in the main thread, raised there by the kernel's timer."""
    before = signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGINT))
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def assert_interrupted(instance: Instance, solution: Solution) -> None:
    """A checked plan that says it was interrupted, with a bound that is not above it."""
    plan = solution.plan
    assert plan.status == "interrupted"
    assert check(instance, plan).violations == ()
    assert plan.dual_bound is not None
    assert plan.dual_bound <= plan.cost * (1 + 1e-6)


def test_a_signal_from_elsewhere_returns_the_incumbent(endless: Instance) -> None:
    told: list[Progress] = []
    killer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))

    def follow(progress: Progress) -> None:
        told.append(progress)
        if progress.incumbent is not None and killer.ident is None:
            killer.start()

    begun = time.monotonic()
    solution = solve(endless, "exact", dataclasses.replace(UNLIMITED, on_progress=follow))
    killer.join()
    assert_interrupted(endless, solution)
    first = next(progress for progress in told if progress.incumbent is not None)
    assert solution.plan.cost <= first.incumbent  # type: ignore[operator]
    # Half a second after the first plan, and a few for what cannot be left at once.
    assert time.monotonic() - begun < first.elapsed_s + 20.0


@pytest.mark.parametrize("seconds", [0.1, 0.2, 0.4, 0.6, 0.8, 1.2, 2.5])
def test_an_interrupt_at_any_moment(long: Instance, seconds: float) -> None:
    """In list scheduling, ruin and recreate, the model's build, the LP, HiGHS, or placement."""
    told: list[Progress] = []
    try:
        with ctrl_c_after(seconds):
            solution = solve(long, "exact", dataclasses.replace(UNLIMITED, on_progress=told.append))
    except KeyboardInterrupt:
        assert all(progress.incumbent is None for progress in told)
    else:
        assert_interrupted(long, solution)
        assert solution.wall_s < seconds + 20.0  # HiGHS looks up from its root node now and then


@pytest.mark.parametrize("count", range(1, 8))
def test_an_interrupt_at_any_report(long: Instance, count: int) -> None:
    """Whoever is told of progress may interrupt; the first report comes before there is a plan."""
    told: list[Progress] = []

    def follow(progress: Progress) -> None:
        told.append(progress)
        if len(told) == count:
            raise KeyboardInterrupt

    limits = dataclasses.replace(UNLIMITED, on_progress=follow)
    if count == 1:
        with pytest.raises(KeyboardInterrupt):
            solve(long, "exact", limits)
        return
    solution = solve(long, "exact", limits)
    assert_interrupted(long, solution)
    assert solution.plan.cost <= (told[-1].incumbent or 0.0) * (1 + 1e-9)


def test_a_solve_that_is_not_interrupted_says_so(long: Instance) -> None:
    solution = solve(long, "exact", Limits(time_limit_s=1.0))
    assert solution.plan.status in ("feasible", "optimal")


def test_ctrl_c_of_a_process() -> None:
    """As in a terminal: the signal goes to the process, and the plan is printed all the same."""
    program = """
        from planner.engines.base import Limits
        from planner.generate import generate
        from planner.solve import solve

        def follow(progress):
            if progress.incumbent is not None:
                print("plan", flush=True)

        limits = Limits(time_limit_s=None, gap=0.0, on_progress=follow)
        solution = solve(generate("contended", 8, 3, seed=2), "exact", limits)
        print(solution.plan.status, flush=True)
    """
    process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(program)], stdout=subprocess.PIPE, text=True)
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "plan\n"
        time.sleep(1.0)
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=30.0)
    assert process.returncode == 0
    assert rest.splitlines()[-1] == "interrupted"
