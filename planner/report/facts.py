"""What a plan amounts to: which jobs are late, burst or rejected, and the same as a document for machines."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from models.domain import SERVICE_TERMS, Instance, NodeOn, Plan, Run, Segment
from models.errors import Fault
from planner.report.text import Clock

MOST_SLOTS = 1_000_000
SMALLEST_SLOT_S = 1e-6  # times are kept to the microsecond
LATE_H = 1e-9  # tardiness below this is a rounding error of the recorded hours


def damage(plan: Plan) -> list[Fault]:
    """Why a plan cannot be shown: its times are no times. Whether it is true is the check's affair."""
    faults: list[Fault] = []
    mend = "plan files are written by the planner; make the plan again"
    if not (math.isfinite(plan.slot_s) and SMALLEST_SLOT_S <= plan.slot_s <= 86400 * 366):
        faults.append(Fault("is not the length of a slot", ("slot_s",), f"{plan.slot_s:g}", mend))
    try:
        start = datetime.fromisoformat(plan.start)
        if start.tzinfo is None or start.year > 9000:
            raise ValueError
    except ValueError:
        faults.append(Fault("is not a time with a zone", ("start",), plan.start, mend))
    stretches: list[tuple[tuple[str | int, ...], Segment | NodeOn]] = [
        (("runs", i, "segments", k), segment)
        for i, run in enumerate(plan.runs)
        for k, segment in enumerate(run.segments)
    ]
    stretches += [(("nodes_on", k), interval) for k, interval in enumerate(plan.nodes_on)]
    for path, stretch in stretches:
        if not 0 <= stretch.start_slot < stretch.end_slot <= MOST_SLOTS:
            faults.append(Fault("is not a stretch of slots", path, f"{stretch.start_slot} to {stretch.end_slot}", mend))
    if not faults:
        try:
            Clock(plan.start, plan.slot_s).at(max([stretch.end_slot for _, stretch in stretches], default=0))
        except OverflowError:
            faults.append(Fault("reaches beyond the calendar", ("slot_s",), f"{plan.slot_s:g}", mend))
    return faults


@dataclass(frozen=True)
class Facts:
    """A plan, with its instance where that is known: which pools are cloud, when jobs are due."""

    plan: Plan
    instance: Instance | None = None

    @cached_property
    def clock(self) -> Clock:
        """Slots as times of day."""
        return Clock(self.plan.start, self.plan.slot_s)

    @cached_property
    def cloud_pools(self) -> frozenset[str] | None:
        """Pools at cloud sites; None where the instance is not known."""
        if self.instance is None:
            return None
        cloud = {site.id for site in self.instance.sites if site.kind == "cloud"}
        return frozenset(pool.id for pool in self.instance.pools if pool.site in cloud)

    def is_late(self, run: Run) -> bool:
        """Whether a run completes after its due date."""
        return run.tardiness_h > LATE_H

    def is_burst(self, run: Run) -> bool:
        """Whether some of a run is on rented nodes (as far as is known)."""
        return any(segment.pool in (self.cloud_pools or ()) for segment in run.segments)

    @cached_property
    def late(self) -> tuple[str, ...]:
        """Jobs that complete after their due date, the latest first."""
        runs = sorted((run for run in self.plan.runs if self.is_late(run)), key=lambda run: -run.tardiness_h)
        return tuple(run.job for run in runs)

    @cached_property
    def burst(self) -> tuple[str, ...] | None:
        """Jobs that run on rented nodes; None where the instance is not known."""
        if self.cloud_pools is None:
            return None
        return tuple(run.job for run in self.plan.runs if self.is_burst(run))

    @cached_property
    def changed(self) -> tuple[str, ...]:
        """Jobs that change while they run: their runs have several segments."""
        return tuple(run.job for run in self.plan.runs if len(run.segments) > 1)

    @property
    def num_jobs(self) -> int:
        """Jobs of the instance: those that run and those that are rejected."""
        return len(self.plan.runs) + len(self.plan.rejected)

    @cached_property
    def pools(self) -> tuple[str, ...]:
        """Pools that the plan uses, owned ones first, in the order of the instance."""
        used = {segment.pool for run in self.plan.runs for segment in run.segments}
        used |= {interval.pool for interval in self.plan.nodes_on}
        if self.instance is None:
            return tuple(sorted(used))
        listed = [pool.id for pool in self.instance.pools if pool.id in used]
        ordered = sorted(listed, key=lambda pool: pool in (self.cloud_pools or ()))
        return (*ordered, *sorted(used - set(listed)))

    @property
    def spent(self) -> float:
        """What a budget is on: all cost terms but tardiness, lost value and rejection."""
        return math.fsum(amount for term, amount in self.plan.costs.items() if term not in SERVICE_TERMS)

    def document(self) -> dict[str, Any]:
        """The plan in short, for machines."""
        plan = self.plan
        return {
            "status": plan.status,
            "engine": plan.engine,
            "instance": plan.instance,
            "instance_hash": plan.instance_hash,
            "currency": plan.currency,
            "cost": plan.cost,
            "costs": dict(plan.costs),
            "dual_bound": plan.dual_bound,
            "gap": plan.gap,
            "packing_cost": plan.packing_cost,
            "objective": plan.objective,
            "budget": plan.budget,
            "spent": self.spent,
            "welfare": plan.welfare,
            "welfare_bound": plan.welfare_bound,
            "fixed_gpus": plan.fixed_gpus,
            "jobs": self.num_jobs,
            "late_jobs": len(self.late),
            "rejected_jobs": len(plan.rejected),
            "burst_jobs": None if self.burst is None else len(self.burst),
            "seed": plan.seed,
            "versions": dict(plan.versions),
        }
