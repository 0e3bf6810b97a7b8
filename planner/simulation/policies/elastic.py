"""Small, then large: a job runs where its work is cheapest, and changes to a faster mode at the last moment that still
meets its due date.

With work `r` left, a mode of duration D and a faster one of duration F, the last moment to change is the t after which
the rest takes until the due date:

    t + restart + (r - t / D) F = due - now, so t = (due - now - restart - r F) / (1 - F / D)

Of the modes with such a t the one is taken with which the whole costs least. Where none is left the job takes what its
run and its tardiness together make cheapest, which need not be the fastest. A job never goes back to a slower mode. No
two jobs wait for each other: where the wanted mode has no room the next one is tried, or the job stays as it is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from models.domain.modes import Mode
from planner.simulation.policies.desk import Desk
from planner.simulation.policies.menu import ModeTable
from planner.simulation.state import Allocation, Assignment, Decision, JobState, State

MARGIN_S = 5.0
"""A change is made so much before the last moment, lest rounding make the job late."""


@dataclass(frozen=True)
class _Way:
    """A mode to be in from now on, and when to change it."""

    mode: Mode
    seconds: float
    """Until completion or the change."""
    cost: float
    """Money until completion, tardiness included."""
    stays: bool
    change_s: float
    """Time from now until the change; infinite: it completes before."""


class SmallThenLarge:
    """Cheapest first, faster as late as can be."""

    def __init__(self, name: str = "small_then_large") -> None:
        self.name = name
        self._table = ModeTable()

    def decide(self, state: State) -> Decision:
        """Running jobs change or stay, then waiting ones start, those with the least time to spare first."""
        desk = Desk(state, self._table)
        assignments = desk.keep(desk.running)
        changes: list[float] = []
        for job in sorted(desk.running, key=lambda job: _spare_s(desk, job)):
            if job.movable:
                self._change(desk, job, assignments, changes)
        for job in sorted(desk.waiting, key=lambda job: _spare_s(desk, job)):
            for way in _ways(desk, job, None):
                allocation = desk.room.fit(way.mode, way.seconds)
                if allocation is not None:
                    assignments.append(desk.start(job, allocation))
                    changes.append(way.change_s)
                    break
        wake_s = min(changes, default=math.inf)
        return Decision(tuple(assignments), None if math.isinf(wake_s) else desk.now_s + wake_s)

    def _change(self, desk: Desk, job: JobState, assignments: list[Assignment], changes: list[float]) -> None:
        """Put a running job into the best of its ways that finds room, in place of its assignment."""
        place = desk.place_of(job)
        assert place is not None
        desk.room.free(place)
        index = next(k for k, assignment in enumerate(assignments) if assignment.job == job.job)
        for way in _ways(desk, job, place):
            allocation = place if way.stays else desk.room.fit(way.mode, way.seconds)
            if allocation is not None:
                assignments[index] = desk.start(job, allocation)
                changes.append(way.change_s)
                return
        raise AssertionError("a running job can always stay")


def _spare_s(desk: Desk, job: JobState) -> float:
    return desk.menu.due_s(job.job) - desk.fastest_s(job)


def _ways(desk: Desk, job: JobState, place: Allocation | None) -> list[_Way]:
    """What a job may do from now on, the best first: what meets the due date before what does not, then by cost. A job
    that runs may stay, or take a faster mode."""
    menu = desk.menu
    now = [(choice.mode, choice.seconds, False) for choice in menu.of(job)]
    if place is not None:
        now = [entry for entry in now if entry[0].duration_s < place.mode.duration_s]
        now.append((place.mode, menu.seconds(job, place.mode, stays=True), True))
    ways = []
    for mode, seconds, stays in now:
        move = desk.state.instance.jobs[job.job].restart_cost if place is not None and not stays else 0.0
        direct = menu.cost(mode, seconds) + menu.tardiness_cost(job.job, desk.now_s + seconds) + move
        ways.append((_lateness(desk, job, seconds), _Way(mode, seconds, direct, stays, math.inf)))
        if ways[-1][0] > 0 and job.movable:
            ways += [(0.0, way) for way in _changing(desk, job, mode, seconds, stays, move)]
    # Lateness is part of the cost; a deadline or a due date without a price is not.
    ways.sort(key=lambda way: (way[0] > 0, way[1].cost, way[1].seconds, not way[1].stays))
    return [way for _, way in ways]


def _lateness(desk: Desk, job: JobState, seconds: float) -> float:
    late = desk.now_s + seconds - desk.menu.due_s(job.job)
    return late if late > 1e-6 else 0.0


def _changing(desk: Desk, job: JobState, mode: Mode, seconds: float, stays: bool, move: float) -> list[_Way]:
    """Ways that begin in a mode and change to a faster one just in time."""
    menu = desk.menu
    due_s = menu.due_s(job.job) - desk.now_s - MARGIN_S
    # Of `seconds` what is not work (restart, boot) comes first.
    idle_s = seconds - menu.seconds(job, mode, stays=True)
    ways = []
    for other in menu.of(job):
        faster = other.mode
        if faster.duration_s >= mode.duration_s:
            continue
        boot_s = other.seconds - menu.seconds(job, faster, stays=True) - (desk.state.restart_s if job.has_run else 0.0)
        restart_s = desk.state.restart_s + boot_s
        ratio = faster.duration_s / mode.duration_s
        # The work done before the change goes on after what is idle.
        works_s = (due_s - idle_s - restart_s - job.remaining * faster.duration_s) / (1 - ratio)
        change_s = idle_s + works_s
        if works_s < 1.0 or change_s >= seconds:
            continue
        rest_s = restart_s + (job.remaining - works_s / mode.duration_s) * faster.duration_s
        until_end = menu.cost(faster, change_s + rest_s) - menu.cost(faster, change_s)
        cost = menu.cost(mode, change_s) + until_end + desk.state.instance.jobs[job.job].restart_cost + move
        ways.append(_Way(mode, change_s, cost, stays, change_s))
    return ways
