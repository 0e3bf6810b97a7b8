"""What counts as a change from one plan to the next, and which causes are told."""

from __future__ import annotations

from typing import Any

import pytest

from planner.nightly.causes import NO_CAUSE
from planner.nightly.texts import difference_text
from tests.documents import HOUR
from tests.engines.samples import mode, running
from tests.nightly.courses import Stretches, at, compared, kinds, plan, reasons, stretch

OTHER_NODE = {"places": [{"node": 1, "gpus": [0]}]}


def change(before: Stretches, after: Stretches, start: float = 0, is_running: bool = False) -> list[str]:
    """In which ways one job is planned otherwise."""
    found = compared(plan(0, {"j0": before}), plan(start, {"j0": after}), running=("j0",) if is_running else ())
    return kinds(found).get("j0", [])


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (stretch(2, 4), stretch(2, 4), []),
        (stretch(2, 4), stretch(3, 5), ["later"]),
        (stretch(2, 4), stretch(1, 3), ["earlier"]),
        (stretch(2, 4), stretch(2, 5), ["ends later"]),
        (stretch(2, 4), stretch(2, 3), ["ends earlier"]),
        (stretch(2, 4), stretch(2, 4, pool="rent"), ["pool"]),
        (stretch(2, 4), stretch(2, 4, mode="own2"), ["mode"]),
        (stretch(2, 4), stretch(2, 4, speed=0.5), ["mode"]),
        (stretch(2, 4), stretch(2, 4, **OTHER_NODE), ["nodes"]),
        (stretch(2, 4), stretch(3, 4, pool="rent", mode="m", **OTHER_NODE), ["later", "pool", "mode"]),
    ],
)
def test_a_job_that_waits(before: Any, after: Any, expected: list[str]) -> None:
    assert change([before], [after]) == expected


def test_a_job_comes_goes_and_is_rejected() -> None:
    before = plan(0, {"a": [stretch(0, 1)], "b": [stretch(0, 1)], "c": [], "d": [stretch(0, 1)], "e": []})
    after = plan(1, {"c": [stretch(2, 3)], "d": [], "e": [], "f": [stretch(2, 3)]})
    found = compared(before, after, complete=("a",))
    assert kinds(found) == {"a": ["completed"], "b": ["withdrawn"], "c": ["accepted"], "d": ["rejected"], "f": ["new"]}
    assert found.same == ("e",)
    assert found.num_replanned == 2
    assert reasons(found, "a") == "the state says that it is complete"
    assert reasons(found, "b") == "the instance has it no more"


def test_late_and_in_time_again() -> None:
    before = plan(0, {"a": [stretch(0, 1)], "b": [stretch(0, 1)]}, {"a": 1.0})
    after = plan(0, {"a": [stretch(0, 1)], "b": [stretch(0, 1)]}, {"b": 2.0})
    assert kinds(compared(before, after)) == {"a": ["in time"], "b": ["late"]}


def test_a_job_that_runs_is_compared_by_how_it_goes_on() -> None:
    """From 19:00 on it did what it was to do: when it began is past."""
    assert change([stretch(0, 4)], [stretch(1, 4)], start=1, is_running=True) == []
    assert change([stretch(0, 4)], [stretch(1, 5)], start=1, is_running=True) == ["ends later"]
    assert change([stretch(0, 4)], [stretch(1, 4, **OTHER_NODE)], start=1, is_running=True) == ["nodes"]
    assert change([stretch(0, 1)], [stretch(1, 4)], start=1, is_running=True) == ["ends later"], "it should be over"
    assert change([stretch(2, 4)], [stretch(1, 3)], start=1, is_running=True) == ["earlier"], "it was to wait"


ELASTIC = [stretch(0, 2), stretch(2, 6, mode="own2"), stretch(6, 8)]


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        ([stretch(1, 2), stretch(2, 6, mode="own2"), stretch(6, 8)], []),
        ([stretch(1, 2), stretch(2, 6, mode="own4"), stretch(6, 8)], ["mode"]),
        ([stretch(1, 2), stretch(2, 6, mode="own2", pool="rent"), stretch(6, 8)], ["pool"]),
        ([stretch(1, 2), stretch(2, 6, mode="own2", **OTHER_NODE), stretch(6, 8)], ["nodes"]),
        ([stretch(1, 3), stretch(3, 6, mode="own2"), stretch(6, 8)], ["split"]),
        ([stretch(1, 2), stretch(3, 6, mode="own2"), stretch(6, 8)], ["split"]),
        ([stretch(1, 2), stretch(2, 8, mode="own2")], ["split", "mode"]),
    ],
)
def test_an_elastic_job_that_runs_is_compared_all_the_way(after: Stretches, expected: list[str]) -> None:
    """It ends with the same stretch; that is not to say that it does the same on the way there."""
    assert change(ELASTIC, after, start=1, is_running=True) == expected


def test_what_an_elastic_job_has_done_is_past() -> None:
    """At 20:00 it goes over from its first stretch to its second."""
    assert change(ELASTIC, [stretch(2, 6, mode="own2"), stretch(6, 8)], start=2, is_running=True) == []
    assert change(ELASTIC, [stretch(3, 6, mode="own2"), stretch(6, 8)], start=3, is_running=True) == []


# --- causes ----------------------------------------------------------------------------------------------


def test_facts_of_the_job_itself() -> None:
    old = at(0, [{"modes": [mode(2)], "due": 5 * HOUR, "weight": 1.0}, {"modes": [mode(1)]}])
    changed = {"modes": [mode(2)], "due": 3 * HOUR, "weight": 4.0, "after": ["j1"], "release": 2 * HOUR}
    new = at(1, [changed, {"modes": [mode(1)]}])
    plans = [plan(k, {"j0": [stretch(3 + k, 5 + k)], "j1": [stretch(k, k + 1)]}) for k in (0, 1)]
    told = reasons(compared(*plans, (old, new)), "j0")
    assert "its due date is 2026-01-12 22:00, was 2026-01-12 23:00" in told
    assert "its weight is 4, was 1" in told
    assert "it has to wait for j1" in told
    assert "its release is 2026-01-12 21:00, was 2026-01-12 19:00" in told
    assert "its predecessor j1 completes at 2026-01-12 20:00, not 2026-01-12 19:00" in told


def test_facts_of_pools_and_nodes() -> None:
    jobs = [{"modes": [mode(2)]}]
    old = at(0, jobs, pools__0__nodes=3)
    windows = [{"since": 0, "until": 9 * HOUR, "nodes": [0]}]
    new = at(1, jobs, pools__0__nodes=2, pools__0__price=2.0, pools__0__unavailable=windows)
    plans = plan(0, {"j0": [stretch(3, 5)]}), plan(1, {"j0": [stretch(3, 5, **OTHER_NODE)]})
    told = reasons(compared(*plans, (old, new)), "j0")
    assert "pool own has 2 nodes, had 3" in told
    assert "pool own has another price" in told
    assert "node 0 of pool own is down" in told


def test_a_place_that_another_took() -> None:
    before = plan(0, {"j0": [stretch(3, 5)]})
    after = plan(1, {"j0": [stretch(5, 7)], "j1": [stretch(3, 5)]})
    found = compared(before, after)
    assert reasons(found, "j0") == "the GPUs that it had are used by j1"
    assert reasons(found, "j1") == "the instance did not have it before"


def test_a_day_that_went_otherwise_than_planned() -> None:
    jobs = [{"modes": [mode(4)]}] * 3
    now = [job | {"running": running("own1", {0: [k]})} if k < 2 else job for k, job in enumerate(jobs)]
    before = plan(0, {"j0": [stretch(4, 8)], "j1": [stretch(0, 1)], "j2": [stretch(0, 4)]})
    after = plan(2, {"j0": [stretch(2, 6)], "j1": [stretch(2, 3)], "j2": [stretch(2, 6)]})
    found = compared(before, after, (at(0, jobs), at(2, now)), running=("j0", "j1"))
    assert "it runs already, and was to start at 2026-01-12 22:00" in reasons(found, "j0")
    assert "it still runs, and was to be complete at 2026-01-12 19:00" in reasons(found, "j1")
    assert "it does not run, and was to start at 2026-01-12 18:00" in reasons(found, "j2")


def test_a_job_that_is_paused_is_compared_by_how_it_goes_on() -> None:
    """A pause that was planned is no change; one that was not is told."""
    before = plan(0, {"j0": [stretch(0, 2), stretch(4, 8)]})
    same, later = plan(3, {"j0": [stretch(4, 8)]}), plan(5, {"j0": [stretch(6, 9)]})
    assert kinds(compared(before, same, paused=("j0",))) == {}
    found = compared(before, later, paused=("j0",))
    assert kinds(found) == {"j0": ["later"]}
    assert reasons(found, "j0") == "it is paused, and was to run from 2026-01-12 22:00"


def test_where_there_is_no_fact_none_is_made_up() -> None:
    instances = at(0, [{"modes": [mode(2)]}]), at(1, [{"modes": [mode(2)]}])
    found = compared(plan(0, {"j0": [stretch(3, 5)]}), plan(1, {"j0": [stretch(4, 6)]}), instances)
    assert reasons(found, "j0") == NO_CAUSE


def test_the_text_names_everything() -> None:
    found = compared(
        plan(0, {"j0": [stretch(3, 5)], "gone": [stretch(3, 5)]}, cost=12.0, costs={"node_hours": 12.0}),
        plan(1, {"j0": [stretch(4, 6, pool="rent")], "new": []}, {"j0": 1.5}),
    )
    text = difference_text(found).decode()
    for words in (
        "cost 10.00 USD, was 12.00 USD",
        "1 of 1 job planned otherwise, 1 new, 1 withdrawn",
        "j0: now late, later, other pool",
        "  was      own1 on own node 0, 12 Jan 21:00 to 12 Jan 23:00",
        "  is       own1 on rent node 0, 12 Jan 22:00 to 13 Jan 00:00; late by 1 h 30 min",
        "  is       rejected: not run",
        "-2.00",
    ):
        assert words in text
