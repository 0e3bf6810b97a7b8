"""A plan: a run for each job, nodes that are on, cached datasets, bought bandwidth, cost by term, certificate."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from models.domain.entities import Place
from models.domain.fields import Entity

PLAN_FORMAT: Literal["burstplan-plan/1"] = "burstplan-plan/1"

COST_TERMS: dict[str, str] = {
    "node_hours": "owned nodes that are on, idle GPUs included",
    "rental": "cloud nodes, whole billing increments, boot included",
    "energy": "energy of busy GPUs",
    "bandwidth": "bandwidth tariff",
    "cache": "cached GB",
    "transfer": "data from one site to another: a cached dataset once, another as often as it is read",
    "tardiness": "weighted tardiness",
    "lost_value": "value lost by later completion",
    "rejection": "jobs not run",
    "restart": "jobs stopped and started again, or changed while they run",
    "interruption": "expected restarts on spot nodes",
}

SERVICE_TERMS = ("tardiness", "lost_value", "rejection")
"""What a plan costs without being spent; a budget is on all other terms."""


class Segment(Entity):
    """A stretch of a run in one mode on fixed GPUs; slots count from the instance's start, the end is exclusive."""

    mode: str
    pool: str
    speed: float = 1.0
    cached: float = Field(0.0, ge=0, le=1, description="fraction of its dataset that it reads from the cache")
    start_slot: int
    end_slot: int
    start: str
    end: str
    places: tuple[Place, ...]
    slices: int = Field(description="slices taken of each GPU")
    kept: bool = Field(False, description="a running job that stays where it is")


class Run(Entity):
    """How one job is run."""

    job: str
    segments: tuple[Segment, ...]
    completion: str
    tardiness_h: float


class NodeOn(Entity):
    """An interval in which a node is on (owned) or rented (cloud), boot included."""

    pool: str
    node: int
    start_slot: int
    end_slot: int
    start: str
    end: str
    cost: float


class CachedDataset(Entity):
    """A dataset in a site's cache."""

    site: str
    dataset: str
    fraction: float


class Bandwidth(Entity):
    """Bandwidth bought at a site for the whole billed time."""

    site: str
    mb_s: float


class Plan(Entity):
    """Everything that a plan decides, what it costs and what is proven of it."""

    format: Literal["burstplan-plan/1"] = PLAN_FORMAT
    instance: str
    instance_hash: str
    currency: str
    start: str
    slot_s: float
    num_slots: int
    status: Literal["optimal", "feasible", "interrupted"]
    engine: str
    seed: int
    versions: dict[str, str]
    cost: float
    costs: dict[str, float]
    dual_bound: float | None
    gap: float | None
    packing_cost: float | None = Field(
        None, description="what placing on whole nodes costs beyond the pool-level schedule; none: not known"
    )
    objective: Literal["cost", "welfare"] = "cost"
    budget: float | None = Field(None, description="what may be spent at most; none: any amount")
    welfare: float | None = Field(None, description="what the completed jobs are worth, where that is the objective")
    welfare_bound: float | None = Field(None, description="what no plan within the budget is worth more than")
    fixed_gpus: Literal["cheapest", "fastest", "smallest"] | None = Field(
        None,
        description="the mode whose GPUs each job was to have; what is proven holds among such plans; none: any mode",
        exclude_if=lambda rule: rule is None,
    )
    runs: tuple[Run, ...]
    rejected: tuple[str, ...] = ()
    nodes_on: tuple[NodeOn, ...] = ()
    cached: tuple[CachedDataset, ...] = ()
    bandwidth: tuple[Bandwidth, ...] = ()


def relative_gap(cost: float, dual_bound: float | None) -> float | None:
    """(cost - dual bound) / cost; 0 where both are 0; None where the bound is not known."""
    if dual_bound is None:
        return None
    if cost == dual_bound:
        return 0.0
    return (cost - dual_bound) / cost if cost > 0 else None
