"""A simulation: an instance and a policy in, a trace and what it comes to out."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np

from models.domain import COST_TERMS, Instance
from models.grid import Meter, is_cloud
from models.utilities import lost_value
from planner.simulation.chance import Options
from planner.simulation.provision import storage_costs
from planner.simulation.state import Policy
from planner.simulation.trace import Cause, Trace
from planner.simulation.world import World


@dataclass(frozen=True)
class Outcome:
    """A trace, and what it comes to. Times of the policy's calls are measured; nothing of the trace depends on them."""

    trace: Trace
    replan_s: tuple[float, ...]
    late_jobs: int
    tardiness_h: float
    wait_h: tuple[float, ...]
    """Hours from release to the first start, by job that ran."""
    moves: int
    utilisation: dict[str, float | None]
    """Busy GPU-hours over those of nodes that were on, by pool; None where none was."""

    def summary(self) -> dict[str, Any]:
        """What the command prints as JSON."""
        trace, calls = self.trace, np.array(self.replan_s) if self.replan_s else np.zeros(1)
        waits = np.array(self.wait_h) if self.wait_h else np.zeros(1)
        return {
            "instance": trace.instance,
            "instance_hash": trace.instance_hash,
            "currency": trace.currency,
            "policy": trace.policy,
            "seed": trace.seed,
            "cost": trace.cost,
            "costs": trace.costs,
            "jobs": len(trace.factors),
            "late_jobs": self.late_jobs,
            "rejected": list(trace.rejected),
            "tardiness_h": self.tardiness_h,
            "wait_h": {"mean": float(waits.mean()), "p95": float(np.quantile(waits, 0.95)), "max": float(waits.max())},
            "utilisation": self.utilisation,
            "moves": self.moves,
            "stops": stops_of(trace),
            "failures": sum(happening.kind == "failure" for happening in trace.happenings),
            "interruptions": sum(happening.kind == "interruption" for happening in trace.happenings),
            "price_changes": len(trace.prices),
            "replans": len(self.replan_s),
            "replan_s": {
                "median": float(np.median(calls)),
                "p99": float(np.quantile(calls, 0.99)),
                "max": float(calls.max()),
            },
        }


def stops_of(trace: Trace) -> dict[str, Any]:
    """Stretches that ended before their job was complete, by what ended them: changes that were planned before, a new
    plan and the loss of a node by the event, rejections."""
    ended = Counter((stretch.ended, stretch.cause) for stretch in trace.stretches)
    by_cause = {
        kind: {cause: ended[kind, cause] for cause in get_args(Cause) if ended[kind, cause]}
        for kind in ("replan", "loss")
    }
    return {"plan": ended["plan", None], **by_cause, "rejection": ended["rejection", None]}


def simulate(
    instance: Instance,
    policy: Policy,
    options: Options | None = None,
    on_call: Callable[[float, int, int], None] = lambda *_: None,
) -> Outcome:
    """What a policy makes of an instance whose jobs it learns of at their release.

    Raises NoPlan where jobs wait for ever, Defect where a policy decides what cannot be.
    """
    options = options or Options()
    world = World(instance, policy, options, on_call)
    world.run()
    costs = _costs(world)
    jobs = dict(enumerate(world.jobs))
    trace = Trace(
        instance=instance.name,
        instance_hash=instance.content_hash,
        currency=instance.currency,
        policy=policy.name,
        seed=options.seed,
        may_burst=options.may_burst,
        restart_s=options.restart_s,
        duration_error=options.duration_error,
        factors={instance.jobs[j].id: job.factor for j, job in jobs.items()},
        stretches=tuple(world.stretches),
        powers=tuple(world.nodes.powers),
        outages=tuple(world.outages),
        caches=tuple(world.store.caches),
        prices=tuple(world.market.changes),
        happenings=tuple(world.happenings),
        completions={instance.jobs[j].id: job.complete_s for j, job in jobs.items() if job.complete_s is not None},
        rejected=tuple(instance.jobs[j].id for j in world.rejected),
        costs=costs,
        cost=math.fsum(costs.values()),
    )
    late = [_late_s(instance, j, job.complete_s) for j, job in jobs.items() if job.complete_s is not None]
    return Outcome(
        trace=trace,
        replan_s=tuple(world.replan_s),
        late_jobs=sum(seconds > 0 for seconds in late),
        tardiness_h=math.fsum(late) / 3600.0,
        wait_h=tuple(
            (job.first_s - max(0.0, instance.jobs[j].release)) / 3600.0
            for j, job in jobs.items()
            if job.first_s is not None
        ),
        moves=world.restarts,
        utilisation=_utilisation(world),
    )


def _late_s(instance: Instance, j: int, complete_s: float) -> float:
    due = instance.jobs[j].due
    late = 0.0 if due is None else complete_s - due
    return late if late > 1e-6 else 0.0


def _costs(world: World) -> dict[str, float]:
    instance = world.instance
    parts: dict[str, list[float]] = defaultdict(list)
    for power in world.nodes.powers:
        rented = is_cloud(instance, instance.pool_index[power.pool])
        parts["rental" if rented else "node_hours"].append(power.cost)
    meters = [Meter(instance, instance.sites[instance.site_index[pool.site]].energy_price) for pool in instance.pools]
    for stretch, mode in zip(world.stretches, world.modes, strict=True):
        energy = meters[mode.pool].cost(stretch.start_s, stretch.end_s)
        parts["energy"].append(mode.busy_gpus * instance.pools[mode.pool].gpu_power * energy)
        if stretch.restart:
            parts["restart"].append(instance.jobs[instance.job_index[stretch.job]].restart_cost)
    for job in world.jobs:
        record = instance.jobs[job.index]
        if job.complete_s is None:
            parts["rejection"].append(record.reject_cost or 0.0)
            continue
        parts["tardiness"].append(record.weight * _late_s(instance, job.index, job.complete_s) / 3600.0)
        lost = lost_value(record, np.array([job.complete_s]), 1e-6)
        parts["lost_value"].append(0.0 if lost is None else float(lost[0]))
    storage = storage_costs(instance, world.stretches, world.modes, world.store.caches)
    return {term: math.fsum(parts[term]) for term in COST_TERMS} | storage


def _utilisation(world: World) -> dict[str, float | None]:
    busy: dict[str, float] = defaultdict(float)
    on: dict[str, float] = defaultdict(float)
    for stretch, mode in zip(world.stretches, world.modes, strict=True):
        busy[stretch.pool] += mode.busy_gpus * (stretch.end_s - stretch.start_s)
    for power in world.nodes.powers:
        pool = world.instance.pools[world.instance.pool_index[power.pool]]
        on[power.pool] += pool.gpus_per_node * (power.end_s - power.start_s)
    return {pool.id: busy[pool.id] / on[pool.id] if on[pool.id] else None for pool in world.instance.pools}
