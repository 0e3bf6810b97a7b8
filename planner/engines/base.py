"""The contract of every engine: an instance and limits in; a pool-level and placed plan, and a bound, out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from models.domain import Plan
from planner.engines import clock
from planner.engines.schedule import Schedule

Status = Literal["optimal", "feasible", "interrupted"]


@dataclass(frozen=True)
class Progress:
    """What is known at some moment of a solve; None for what is not known."""

    phase: str
    elapsed_s: float
    incumbent: float | None
    dual_bound: float | None


@dataclass(frozen=True)
class Limits:
    """When to stop, and what may differ between runs."""

    time_limit_s: float | None = 60.0
    work: int | None = None
    """Moves of the fast engine's search; with it and no time limit a run repeats byte for byte."""
    gap: float = 1e-4
    seed: int = 0
    threads: int = 2
    on_progress: Callable[[Progress], None] | None = None
    on_schedule: Callable[[Schedule, Mapping[str, float]], None] | None = None
    """Takes every schedule that is better than those before, with its costs by term."""


class Timed:
    """What has a time limit, from a moment on."""

    limits: Limits
    begun: float
    """A time of `clock.now`."""

    def elapsed_s(self) -> float:
        """Seconds since then."""
        return clock.now() - self.begun

    def left_s(self) -> float | None:
        """Seconds until the time limit; None without one."""
        limit = self.limits.time_limit_s
        return None if limit is None else limit - self.elapsed_s()

    def deadline(self, part: float, least_s: float = 0.0) -> float | None:
        """The time of `clock.now` at which so much of what is left is over, or that many seconds; None without a
        limit."""
        left = self.left_s()
        return None if left is None else clock.now() + max(least_s, part * left)

    def is_out_of_time(self) -> bool:
        """Whether the time limit has passed."""
        left = self.left_s()
        return left is not None and left <= 0

    def has_spent(self, part: float) -> bool:
        """Whether so much of the time limit is over; never without one."""
        limit = self.limits.time_limit_s
        return limit is not None and self.elapsed_s() > part * limit


@dataclass(frozen=True)
class Solution:
    """A checked plan with what the run took; the plan itself carries no measured time, so that it repeats."""

    plan: Plan
    wall_s: float
    notes: tuple[str, ...] = ()
    trajectory: tuple[Progress, ...] = field(default=(), repr=False)
