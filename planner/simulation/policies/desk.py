"""What every rule works with at a call: the room, the menu, and the jobs that run, wait or must wait."""

from __future__ import annotations

import math
from collections.abc import Iterable

from planner.simulation.policies.menu import Choice, Menu, ModeTable
from planner.simulation.policies.room import Room
from planner.simulation.state import Allocation, Assignment, JobState, State


class Desk:
    """A moment, taken apart. The room is empty at first; `keep` puts running jobs into it."""

    def __init__(self, state: State, table: ModeTable) -> None:
        self.state, self.now_s = state, state.now_s
        self.room = Room(state, table.reading(state.instance))
        pools = range(len(state.instance.pools))
        self.menu = Menu(state, table, [self.room.num_up(p) for p in pools], [self.room.is_any_on(p) for p in pools])
        self.running = tuple(job for job in state.jobs if self.place_of(job) is not None)
        """Jobs that run on nodes that are up."""
        self.waiting = tuple(job for job in state.jobs if self.place_of(job) is None and self.is_ready(job))
        """Jobs that could start now if there were room, in order of release. One that no pool could hold, with the
        nodes that are up and the pools that it may use, is left out: nobody need wait for it."""
        self.room.held = {
            (there.mode.pool, place.node, gpu)
            for job in self.running
            if (there := self.place_of(job)) is not None
            for place in there.places
            for gpu in place.gpus
        }

    def place_of(self, job: JobState) -> Allocation | None:
        """Where a job runs; None where it waits, or where a node of it has failed."""
        if job.running is None:
            return None
        down = any((job.running.mode.pool, place.node) in self.state.down for place in job.running.places)
        return None if down else job.running

    def is_ready(self, job: JobState) -> bool:
        """Whether a job may start now: it is released, its predecessors are complete, and it fits some pool."""
        record = self.state.instance.jobs[job.job]
        index = self.state.instance.job_index
        return (
            record.release <= self.now_s
            and all(index[name] in self.state.complete for name in record.after)
            and bool(self.menu.of(job))
        )

    def keep(self, jobs: Iterable[JobState]) -> list[Assignment]:
        """Running jobs stay where they are."""
        kept = []
        for job in jobs:
            place = self.place_of(job)
            assert place is not None
            self.room.take(place)
            kept.append(Assignment(job.job, place, self.now_s))
        return kept

    def start(self, job: JobState, allocation: Allocation) -> Assignment:
        """A job starts now, and its GPUs are taken."""
        self.room.take(allocation)
        return Assignment(job.job, allocation, self.now_s)

    def completion_s(self, job: JobState, allocation: Allocation) -> float:
        """When a job would complete in a place, by the estimates."""
        stays = allocation == job.running
        return self.now_s + self.menu.seconds(job, allocation.mode, stays=stays)

    def is_in_time(self, job: JobState, choice: Choice) -> bool:
        """Whether a job that starts so now completes by its due date."""
        return self.now_s + choice.seconds <= self.menu.due_s(job.job) + 1e-6

    def options(self, job: JobState) -> list[Choice]:
        """What a job could do, cheapest first, where it could also stay: its own mode takes no restart."""
        place = self.place_of(job)
        found = list(self.menu.of(job))
        if place is not None:
            found = [choice for choice in found if choice.mode != place.mode]
            seconds = self.menu.seconds(job, place.mode, stays=True)
            is_owned = not self.menu.is_cloud[place.mode.pool]
            found.append(Choice(place.mode, seconds, self.menu.cost(place.mode, seconds), is_owned))
            found.sort(key=lambda choice: (choice.cost, choice.seconds, choice.mode.pool, choice.mode.name))
        return found

    def preferred(self, job: JobState, choices: Iterable[Choice]) -> list[Choice]:
        """Choices in the usual order: the cheapest that meet the due date, then the fastest."""
        in_time: list[Choice] = []
        late: list[Choice] = []
        for choice in choices:
            (in_time if self.is_in_time(job, choice) else late).append(choice)
        return in_time + sorted(late, key=lambda choice: choice.seconds)

    def fastest_s(self, job: JobState) -> float:
        """The least time in which a job could complete, wherever there is room."""
        seconds = [choice.seconds for choice in self.menu.of(job)]
        if (place := self.place_of(job)) is not None:
            seconds.append(self.menu.seconds(job, place.mode, stays=True))
        return min(seconds, default=math.inf)
