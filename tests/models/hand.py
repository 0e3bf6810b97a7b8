"""What plans that are written by hand are put together from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from models.domain import COST_TERMS, Instance, NodeOn, Plan, Run, Segment

START = "2026-01-12T18:00:00+01:00"


@dataclass(frozen=True)
class Case:
    """An instance and a plan that is feasible and claims nothing but the truth."""

    instance: Instance
    plan: Plan


def make_instance(**tables: Any) -> Instance:
    """An instance that starts on a Monday at 18:00."""
    return Instance.model_validate({"currency": "EUR", "start": START, **tables})


def at(instance: Instance, slot: int) -> str:
    """The edge of a slot in ISO 8601."""
    return (datetime.fromisoformat(START) + timedelta(seconds=instance.slot * slot)).isoformat()


def segment(
    instance: Instance, mode: str, pool: str, slots: tuple[int, int], places: dict[int, Iterable[int]], *,
    slices: int = 1, speed: float = 1.0, cached: float = 0.0, kept: bool = False,
) -> Segment:  # fmt: skip
    """A stretch of a run; places are GPU indices by node."""
    first, end = slots
    return Segment(
        mode=mode, pool=pool, speed=speed, cached=cached, slices=slices, kept=kept,
        start_slot=first, end_slot=end, start=at(instance, first), end=at(instance, end),
        places=tuple({"node": node, "gpus": tuple(gpus)} for node, gpus in places.items()),
    )  # fmt: skip


def run_of(job: str, *segments: Segment, tardiness_h: float = 0.0) -> Run:
    """A run of some segments, complete at the end of the last."""
    return Run(job=job, segments=segments, completion=segments[-1].end, tardiness_h=tardiness_h)


def run(
    instance: Instance, job: str, mode: str, pool: str, slots: tuple[int, int],
    places: dict[int, Iterable[int]], *, slices: int = 1, speed: float = 1.0,
    cached: float = 0.0, kept: bool = False, tardiness_h: float = 0.0,
) -> Run:  # fmt: skip
    """A run of one segment; places are GPU indices by node."""
    one = segment(instance, mode, pool, slots, places, slices=slices, speed=speed, cached=cached, kept=kept)
    return run_of(job, one, tardiness_h=tardiness_h)


def on(instance: Instance, pool: str, node: int, slots: tuple[int, int], cost: float) -> NodeOn:
    """A node-on interval."""
    first, end = slots
    return NodeOn(
        pool=pool, node=node, start_slot=first, end_slot=end,
        start=at(instance, first), end=at(instance, end), cost=cost,
    )  # fmt: skip


def make_plan(instance: Instance, costs: dict[str, float], num_slots: int, **fields: Any) -> Plan:
    """A plan with the costs that are given, others 0; without a bound unless one is given."""
    claims = {
        "instance": instance.name, "instance_hash": instance.content_hash, "currency": "EUR", "start": START,
        "slot_s": instance.slot, "num_slots": num_slots, "status": "feasible", "engine": "hand", "seed": 0,
        "versions": {"burstplan": "0.1.0"}, "cost": sum(costs.values()),
        "costs": dict.fromkeys(COST_TERMS, 0.0) | costs, "dual_bound": None, "gap": None, "runs": (),
    }  # fmt: skip
    return Plan.model_validate(claims | fields)
