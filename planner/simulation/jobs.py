"""A job as it really is: how far it is, where it runs, and the stretches that it leaves behind."""

from __future__ import annotations

from dataclasses import dataclass

from models.domain import Instance
from models.domain.modes import Mode
from planner.simulation.state import Allocation
from planner.simulation.trace import Cause, Ended, Stretch


@dataclass
class Job:
    """A job of a simulated world."""

    index: int
    factor: float
    """Actual duration over the estimate."""
    movable: bool
    done: float = 0.0
    """Part of its work that is done, the present stretch left out."""
    there: Allocation | None = None
    start_s: float = 0.0
    work_s: float = 0.0
    is_restart: bool = False
    has_run: bool = False
    first_s: float | None = None
    complete_s: float | None = None
    version: int = 0
    """Stretches begun, so that events of an earlier one are passed over."""

    def seconds(self, mode: Mode) -> float:
        """What all of its work really takes in a mode."""
        return mode.duration_s * self.factor

    def work(self, now_s: float) -> float:
        """Part of the work that the present stretch has done until now."""
        assert self.there is not None
        return max(0.0, now_s - self.work_s) / self.seconds(self.there.mode)

    def begin(self, there: Allocation, now_s: float, ready_s: float, restart_s: float | None) -> float:
        """A stretch begins on nodes that have booted by some time; `restart_s`: what a restart takes, None where it is
        none. When it will be complete."""
        self.there, self.start_s, self.is_restart = there, now_s, restart_s is not None
        self.work_s = ready_s + (restart_s or 0.0)
        self.first_s = now_s if self.first_s is None else self.first_s
        self.has_run = True
        self.version += 1
        return self.work_s + (1.0 - self.done) * self.seconds(there.mode)

    def end(self, instance: Instance, now_s: float, ended: Ended, cause: Cause | None) -> Stretch:
        """The present stretch ends."""
        there = self.there
        assert there is not None
        work = 1.0 - self.done if ended == "completion" else min(self.work(now_s), 1.0 - self.done)
        self.done += work
        self.there = None
        self.version += 1
        return Stretch(
            job=instance.jobs[self.index].id,
            mode=there.mode.name,
            speed=there.mode.speed,
            pool=instance.pools[there.mode.pool].id,
            places=there.places,
            start_s=self.start_s,
            work_s=min(self.work_s, now_s),
            end_s=now_s,
            work=work,
            restart=self.is_restart,
            ended=ended,
            cause=cause,
        )
