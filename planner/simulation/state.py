"""What a policy sees of the world, and what it answers. Times are seconds from the instance's start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from models.domain import Instance
from models.domain.entities import Place
from models.domain.modes import Mode


@dataclass(frozen=True)
class Allocation:
    """A job in a mode on GPUs of nodes."""

    mode: Mode
    places: tuple[Place, ...]


@dataclass(frozen=True)
class JobState:
    """A job that is known and not complete."""

    job: int
    """Index in the instance."""
    remaining: float
    """Part of its work that is left by the estimates of its modes; 1 before it has run. A mode still needs `remaining`
    times its duration, and the restart time before that where the job has run and does not stay."""
    running: Allocation | None
    """Where it runs now; None: it waits."""
    has_run: bool
    """Whether starting it now is a restart."""
    movable: bool
    """Whether it may be stopped."""


@dataclass(frozen=True)
class State:
    """What is known at a moment."""

    now_s: float
    instance: Instance
    """Pools, sites and prices as they are known now, and all jobs; those still to come are not in `jobs`, and no policy
    may look at them."""
    jobs: tuple[JobState, ...]
    """In order of release, then as listed. Their predecessors are complete, or known too."""
    complete: frozenset[int]
    """Jobs that are complete."""
    down: frozenset[tuple[int, int]]
    """(pool, node) that cannot be used now, or that has been taken back."""
    on_since_s: dict[tuple[int, int], float]
    """(pool, node) that is on, and since when it is billed."""
    restart_s: float
    """Time that a restart takes on the new GPUs before work goes on."""
    may_burst: bool
    """Whether cloud nodes may be used."""


@dataclass(frozen=True)
class Assignment:
    """What a job is to do for a while."""

    job: int
    allocation: Allocation
    start_s: float
    """Not before now."""
    end_s: float | None = None
    """When it is to stop or change if it is not complete by then; None: it runs until it completes."""


@dataclass(frozen=True)
class Decision:
    """Everything that is to happen until the next decision: a running job without an assignment from now on is
    stopped. An assignment that repeats a running job's allocation from now on leaves it in peace."""

    assignments: tuple[Assignment, ...]
    """Of a job in order of their starts, without overlap."""
    wake_s: float | None = None
    """When to be asked again even if nothing happens; None: at the next event."""
    hold: tuple[tuple[int, int], ...] = ()
    """(pool, node) that are on from now until the next decision, whether or not anything runs there; those that are
    down stay off. All others are on while something needs them, or while they are paid."""
    reject: tuple[int, ...] = ()
    """Known jobs that are not run from now on, for good; what rejecting them costs is paid."""
    cached: Mapping[tuple[str, str], float] | None = None
    """Fraction by (site, dataset) that is to be cached while it is read; None: what the world's common rule says."""


class Policy(Protocol):
    """Decides at events."""

    name: str

    def decide(self, state: State) -> Decision:
        """What is to happen from now on."""
