"""EASY backfill (Lifka 1995): first come, first served; where the first job finds no room it gets a reservation, and
others may start before it if by the estimates they do not delay it.

The reservation is that of the owned mode in which the first job would complete earliest, at the time at which enough
running jobs will be done. A job may start ahead of it if it ends by then, or if what it takes leaves room for the
reservation. Estimates may be wrong; at the next event all is decided anew, but running jobs stay.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from planner.simulation.policies.desk import Desk
from planner.simulation.policies.lists import by_arrival, sharing
from planner.simulation.policies.menu import Choice, ModeTable
from planner.simulation.policies.room import Room
from planner.simulation.state import Allocation, Assignment, Decision, JobState, State


@dataclass(frozen=True)
class _Reservation:
    """What the first job is to have, and when."""

    start_s: float
    choice: Choice
    room: Room
    """What will be taken at that time by others, by the estimates."""

    def admits(self, allocation: Allocation, end_s: float) -> bool:
        """Whether a run leaves the reservation alone; if it is still there when that begins it is noted."""
        if end_s <= self.start_s + 1e-6:
            return True
        self.room.take(allocation)
        if self.room.fit(self.choice.mode, 0.0) is not None:
            return True
        self.room.free(allocation)
        return False


class Easy:
    """First come, first served, with backfill."""

    def __init__(self, name: str = "easy") -> None:
        self.name = name
        self._table = ModeTable()

    def decide(self, state: State) -> Decision:
        """Start jobs in order of arrival; after the first that finds no room only those that do not delay it."""
        desk = Desk(state, self._table)
        assignments = desk.keep(desk.running)
        jobs = {job.job: job for job in desk.running}
        queue = sorted(desk.waiting, key=lambda job: by_arrival(desk, job))
        while queue:
            allocation = sharing(desk, queue[0])
            if allocation is None:
                break
            job = queue.pop(0)
            jobs[job.job] = job
            assignments.append(desk.start(job, allocation))
        if len(queue) > 1:
            reservation = _reserve(desk, queue[0], jobs, assignments)
            for job in queue[1:]:
                filled = None if reservation is None else _fill(desk, job, reservation)
                if filled is not None:
                    assignments.append(desk.start(job, filled))
        return Decision(tuple(assignments))


def _reserve(
    desk: Desk, job: JobState, running: dict[int, JobState], assignments: list[Assignment]
) -> _Reservation | None:
    """The earliest completion of a job once others are done; None where it finds no room even then."""
    ends = [(desk.completion_s(running[a.job], a.allocation), a.allocation) for a in assignments]
    ends.sort(key=lambda end: end[0])
    best: tuple[float, float, Choice] | None = None
    for choice in _reservable(desk.menu.of(job)):
        start_s = _opens_at(desk, choice, ends)
        if start_s is not None and (best is None or start_s + choice.seconds < best[0]):
            best = (start_s + choice.seconds, start_s, choice)
    if best is None:
        return None
    room = desk.room.anew()
    for end_s, allocation in ends:
        if end_s > best[1] + 1e-6:
            room.take(allocation)
    return _Reservation(best[1], best[2], room)


def _reservable(choices: Iterable[Choice]) -> list[Choice]:
    """Owned choices; rented ones where there are no others."""
    found = list(choices)
    return [choice for choice in found if choice.is_owned] or found


def _opens_at(desk: Desk, choice: Choice, ends: list[tuple[float, Allocation]]) -> float | None:
    """When enough running jobs are done for a choice to find room."""
    room = desk.room.anew()
    for _, allocation in ends:
        room.take(allocation)
    for end_s, allocation in ends:
        room.free(allocation)
        if allocation.mode.pool == choice.mode.pool and room.fit(choice.mode, 0.0) is not None:
            return end_s
    return None


def _fill(desk: Desk, job: JobState, reservation: _Reservation) -> Allocation | None:
    """Where a job may start ahead of the first."""
    choices = desk.menu.of(job)
    for is_owned in (True, False):
        for choice in desk.preferred(job, [choice for choice in choices if choice.is_owned is is_owned]):
            allocation = desk.room.fit(choice.mode, choice.seconds)
            if allocation is not None and reservation.admits(allocation, desk.completion_s(job, allocation)):
                return allocation
    return None
