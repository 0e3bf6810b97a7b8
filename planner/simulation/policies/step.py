"""A step: where every job runs until the next event, or that it waits; and the published score of a step.

The score is the money spent until the first job completes, by the estimates, plus 100 times the tardiness of the jobs
that wait in the worst case: they start only then, in their slowest mode. What comes after is not seen. Preemption and
migration count as free in it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from planner.simulation.policies.desk import Desk
from planner.simulation.policies.menu import Choice
from planner.simulation.policies.room import Room
from planner.simulation.state import Allocation, Assignment, Decision, JobState

POSTPONED = 100.0
"""Factor on the worst tardiness of jobs that wait."""


@dataclass
class Shop:
    """The jobs that may be put anywhere at a moment, with their choices; made once for any number of steps."""

    desk: Desk
    jobs: dict[int, JobState] = field(init=False)
    """Waiting jobs and running ones that may be moved, by index."""
    fixed: tuple[JobState, ...] = field(init=False)
    """Running jobs that stay."""
    options: dict[int, list[Choice]] = field(init=False)
    """Of each job the cheapest choices that meet its due date first, then the fastest."""
    order: list[int] = field(init=False)
    """By descending pressure: now + least time - due date."""

    def __post_init__(self) -> None:
        desk = self.desk
        free = [job for job in desk.running if job.movable] + list(desk.waiting)
        self.jobs = {job.job: job for job in free}
        self.fixed = tuple(job for job in desk.running if not job.movable)
        self.options = {j: desk.preferred(job, desk.options(job)) for j, job in self.jobs.items()}
        pressures = {j: self.pressure(j) for j in self.jobs}
        releases = {j: desk.state.instance.jobs[j].release for j in self.jobs}
        self.order = sorted(self.jobs, key=lambda j: (-pressures[j], releases[j], j))
        self._slowest = {j: max(choice.seconds for choice in options) for j, options in self.options.items()}

    def pressure(self, j: int) -> float:
        """How late a job would be at best, negative where it has time."""
        fastest = min(choice.seconds for choice in self.options[j])
        return self.desk.now_s + fastest - self.desk.menu.due_s(j)

    def worst_tardiness_cost(self, j: int, start_s: float) -> float:
        """Money for a job that starts only then, in its slowest mode."""
        return self.desk.menu.tardiness_cost(j, start_s + self._slowest[j])

    def swap_mode(self, j: int, like: Allocation) -> Choice | None:
        """The choice of a job in the pool of an allocation on as many GPUs, or on the most that are fewer."""
        there = [
            c for c in self.options[j] if c.mode.pool == like.mode.pool and c.mode.num_nodes == like.mode.num_nodes
        ]
        fewer = [choice for choice in there if choice.mode.slices <= like.mode.slices]
        return max(fewer, key=lambda choice: choice.mode.slices, default=None)


class Step:
    """A way to go on; `put` and `drop` change it."""

    def __init__(self, shop: Shop) -> None:
        self.shop, self.desk = shop, shop.desk
        self.room: Room = shop.desk.room.anew()
        self.put_at: dict[int, Allocation] = {}
        for job in shop.fixed:
            assert job.running is not None
            self.room.take(job.running)

    def copy(self) -> Step:
        """Another step with the same places."""
        other = Step(self.shop)
        for j, allocation in self.put_at.items():
            other.put(j, allocation)
        return other

    def put(self, j: int, allocation: Allocation) -> None:
        """A job runs there."""
        self.room.take(allocation)
        self.put_at[j] = allocation

    def drop(self, j: int) -> Allocation:
        """It does not any more."""
        allocation = self.put_at.pop(j)
        self.room.free(allocation)
        return allocation

    def place(self, j: int, choice: Choice, nodes: tuple[int, ...] | None = None) -> Allocation | None:
        """Where a choice finds room: where the job is already, else on some nodes or where it fits best."""
        here = self.shop.jobs[j].running
        if here is not None and choice.mode == here.mode and self.desk.place_of(self.shop.jobs[j]) is not None:
            own = tuple(place.node for place in here.places)
            if nodes in (None, own) and self.room.has(here, choice.seconds):
                return here
        if nodes is not None:
            return self.room.on_nodes(choice.mode, nodes, choice.seconds)
        return self.room.fit(choice.mode, choice.seconds)

    def seconds(self, j: int) -> float:
        """How long a job that is put somewhere will take."""
        job, allocation = self.shop.jobs[j], self.put_at[j]
        return self.desk.menu.seconds(job, allocation.mode, stays=allocation == job.running)

    def score(self) -> float:
        """The published score; lower is better. Where nothing runs there is no first completion, and no end to it."""
        desk, menu = self.desk, self.desk.menu
        ends = {j: self.seconds(j) for j in self.put_at}
        runs = list(self.put_at.values())
        for job in self.shop.fixed:
            assert job.running is not None
            runs.append(job.running)
            ends[job.job] = menu.seconds(job, job.running.mode, stays=True)
        if not ends and self.shop.jobs:
            return math.inf
        first = min(ends.values(), default=0.0)
        parts = [menu.node_cost(p, first) for p, _ in self.room.nodes_in_use()]
        parts += [menu.energy_cost(run.mode, first) for run in runs]
        parts += [menu.tardiness_cost(j, desk.now_s + end) for j, end in ends.items() if end <= first + 1e-6]
        postponed = [j for j in self.shop.jobs if j not in self.put_at]
        parts += [POSTPONED * self.shop.worst_tardiness_cost(j, desk.now_s + first) for j in postponed]
        return math.fsum(parts)

    def decision(self) -> Decision:
        """What is to happen."""
        settled = self._settled() or self
        fixed = [
            Assignment(job.job, job.running, self.desk.now_s) for job in self.shop.fixed if job.running is not None
        ]
        moved = [Assignment(j, settled.put_at[j], self.desk.now_s) for j in sorted(settled.put_at)]
        return Decision((*fixed, *moved))

    def _settled(self) -> Step | None:
        """The same with jobs that keep their mode and nodes on their own GPUs: they are put there before the others.
        None where shares of GPUs then no longer fit."""
        step = Step(self.shop)
        others = []
        for j, allocation in self.put_at.items():
            here = self.shop.jobs[j].running
            if here is not None and nodes_of(here) == nodes_of(allocation) and here.mode == allocation.mode:
                if not step.room.has(here, 0.0):
                    return None
                step.put(j, here)
            else:
                others.append(j)
        for j in others:
            allocation = self.put_at[j]
            found = step.room.on_nodes(allocation.mode, nodes_of(allocation), 0.0)
            if found is None or not step.room.has(found, 0.0):
                return None
            step.put(j, found)
        return step


def nodes_of(allocation: Allocation) -> tuple[int, ...]:
    """The nodes of an allocation."""
    return tuple(place.node for place in allocation.places)
