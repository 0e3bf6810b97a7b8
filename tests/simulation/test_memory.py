"""Nights without end: memory does not grow with the number of decisions."""

from __future__ import annotations

import gc
import resource
import tracemalloc
from pathlib import Path

import pytest

from models.domain import Instance
from planner.simulation.chance import Options
from planner.simulation.registry import POLICIES, PolicyOptions
from planner.simulation.run import simulate
from tests.documents import HOUR, Doc, document
from tests.engines.samples import mode

JOBS = 5200
EARLY, LATE = 2000, 10_000
"""Decisions between which memory is looked at."""
OPTIONS = Options(seed=1, duration_error=0.2, price_sigma=0.3, price_h=24.0)
BESIDES = 500
"""Bytes that a decision may leave besides its part of the trace: its own time, and what is yet to be entered there."""


def _job(j: int) -> Doc:
    release = 0.3 * HOUR * j
    modes = [mode(0.4 + 0.1 * (j % 5), 1), mode(0.5, 1, "rent")]
    return {"modes": modes, "release": release, "due": release + 2 * HOUR, "weight": 1.0}


def _instance() -> Instance:
    return Instance.model_validate(document([_job(j) for j in range(JOBS)], horizon="auto"))


def _in_use() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["pressure", "edf"])
def test_ten_thousand_decisions_leave_only_the_trace(policy: str) -> None:
    """Jobs come and go, estimates are wrong, prices change: from the two thousandth decision to the ten thousandth,
    each leaves what it adds to the trace, and nothing else worth mention."""
    instance = _instance()
    calls, seen = 0, {}

    def on_call(*_: object) -> None:
        nonlocal calls
        calls += 1
        if calls in (EARLY, LATE):
            seen[calls] = _in_use()

    decider = POLICIES[policy](PolicyOptions(work=5))
    tracemalloc.start()
    try:
        outcome = simulate(instance, decider, OPTIONS, on_call)
        at_end = _in_use()
        decisions = len(outcome.replan_s)
        del outcome
        of_trace = (at_end - _in_use()) / decisions
    finally:
        tracemalloc.stop()
    grown = (seen[LATE] - seen[EARLY]) / (LATE - EARLY)
    assert of_trace > 100
    assert grown < 1.25 * of_trace + BESIDES, f"{grown:.0f} bytes a decision, {of_trace:.0f} of them the trace"


RESIDENT = Path("/proc/self/statm")


@pytest.mark.slow
@pytest.mark.skipif(not RESIDENT.exists(), reason="how much memory a process has is read from Linux's /proc")
def test_ten_thousand_plans_leave_only_the_trace() -> None:
    """The same for plans of the fast engine, compiled code included: the process as a whole grows by no more than six
    thousand bytes a decision, of which the trace is half."""
    calls, seen = 0, {}

    def on_call(*_: object) -> None:
        nonlocal calls
        calls += 1
        if calls in (EARLY, LATE):
            gc.collect()
            seen[calls] = int(RESIDENT.read_text(encoding="ascii").split()[1]) * resource.getpagesize()

    simulate(_instance(), POLICIES["fast"](PolicyOptions(work=5)), OPTIONS, on_call)
    assert (seen[LATE] - seen[EARLY]) / (LATE - EARLY) < 6000
