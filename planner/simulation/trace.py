"""What came to pass: every stretch of every job, every node that was on, what it cost. Times are seconds after the
instance's start, exact and not slotted."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from models.domain.entities import Place
from models.domain.fields import Entity

TRACE_FORMAT: Literal["burstplan-trace/1"] = "burstplan-trace/1"


Ended = Literal["completion", "plan", "replan", "loss", "rejection"]
Cause = Literal[
    "completion",
    "failure",
    "closing",
    "interruption",
    "repair",
    "opening",
    "price",
    "arrival",
    "start",
    "wake",
    "period",
]
"""Events at which a policy is asked; `start`: one that was planned found no room; `wake`: it wanted to be asked."""


class Stretch(Entity):
    """A time in which a job held GPUs."""

    job: str
    mode: str
    speed: float
    pool: str
    places: tuple[Place, ...]
    start_s: float
    work_s: float = Field(description="when its work began or went on: after the boot of its nodes and a restart")
    end_s: float
    work: float = Field(description="part of the job's work that was done in it")
    restart: bool = Field(description="whether the job had run before, on other GPUs or in another mode or time")
    ended: Ended = Field(
        description="by what: the job's completion, a change that was planned before, a new plan, the loss of a node"
    )
    cause: Cause | None = Field(description="of a new plan or a loss: the event; none: it is none of them")


class Power(Entity):
    """A time in which a node was on, or rented."""

    pool: str
    node: int
    start_s: float
    end_s: float
    billed_s: float = Field(description="until when it is paid: whole billing increments from its start")
    cost: float


class Caching(Entity):
    """A time in which a part of a dataset was in a site's cache."""

    site: str
    dataset: str
    fraction: float
    since_s: float
    until_s: float


class Repricing(Entity):
    """A change of what a pool's nodes cost, which nobody foresaw."""

    at_s: float
    pool: str
    factor: float = Field(description="what is paid from then on, over the instance's price of the time")


class Happening(Entity):
    """Something that happened: an arrival, a completion, a failure, a repair, an interruption."""

    at_s: float
    kind: Literal["arrival", "completion", "failure", "repair", "interruption"]
    job: str | None = None
    pool: str | None = None
    node: int | None = None


class Outage(Entity):
    """A time in which a node could not be used because it had failed."""

    pool: str
    node: int
    since_s: float
    until_s: float | None = Field(description="none: until after the last completion")


class Trace(Entity):
    """A simulated schedule; the same instance, policy, seed and options give the same bytes."""

    format: Literal["burstplan-trace/1"] = TRACE_FORMAT
    instance: str
    instance_hash: str
    currency: str
    policy: str
    seed: int
    may_burst: bool
    restart_s: float = Field(description="time that a restart takes on the new GPUs")
    duration_error: float = Field(description="sigma of the factors between actual and estimated durations")
    factors: dict[str, float] = Field(description="actual duration over that of the mode, by job")
    stretches: tuple[Stretch, ...]
    powers: tuple[Power, ...]
    outages: tuple[Outage, ...]
    caches: tuple[Caching, ...] = ()
    prices: tuple[Repricing, ...] = Field((), description="in order of time")
    happenings: tuple[Happening, ...]
    completions: dict[str, float]
    rejected: tuple[str, ...]
    costs: dict[str, float]
    cost: float
