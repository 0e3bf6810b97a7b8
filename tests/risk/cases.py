"""Instances with plans by hand for the tests of risk: who runs where and when, which nodes are on; the check does the
sums and passes the whole."""

from __future__ import annotations

import functools
import random
from typing import Any

from models.check import check
from models.domain import Instance, Plan
from models.domain.entities import Elastic
from models.domain.modes import entries_of, modes_of, slices_on_gpu, slots_of, with_entries
from models.errors import Infeasible, NoPlan
from models.rentals import NodeRules
from planner.risk.replays import Setting
from planner.simulation.chance import Options
from tests.documents import Doc, document
from tests.random_instances import random_instance

NUM_SLOTS = 96
Place = dict[int, list[int]]
Stretch = tuple[str, int, int, Place]
"""Mode, first slot, end, GPUs by node."""


def planned(
    jobs: list[Doc],
    runs: list[list[Stretch] | None],
    on: dict[tuple[str, int], list[tuple[int, int]]],
    bandwidth: tuple[tuple[str, float], ...] | list[tuple[str, float]] = (),
    **changes: Any,
) -> tuple[Instance, Plan]:
    """The document of `tests.documents` with an open horizon, and a plan of it: stretches by job (None: rejected), and
    the slots in which nodes are on. A kept run is one in slot 0 of a job that runs there."""
    instance = Instance.model_validate(document(jobs, **{"horizon": "auto", **changes}))
    made = []
    for j, stretches in enumerate(runs):
        if stretches is None:
            continue
        job = instance.jobs[j]
        segments = []
        for name, first, end, places in stretches:
            mode = next(m for m in modes_of(instance, job) if m.name == name)
            pool = instance.pools[mode.pool]
            listed = [{"node": node, "gpus": gpus} for node, gpus in places.items()]
            segments.append(
                {"mode": name, "pool": pool.id, "start_slot": first, "end_slot": end, "places": listed,
                 "start": instance.instant(first), "end": instance.instant(end),
                 "slices": slices_on_gpu(mode, pool), "kept": job.running is not None and first == 0}
            )  # fmt: skip
        end = stretches[-1][2]
        late_h = 0.0 if job.due is None else max(0.0, (end * instance.slot - job.due) / 3600.0)
        made.append({"job": job.id, "segments": segments, "completion": instance.instant(end), "tardiness_h": late_h})
    nodes = []
    for (pool_id, node), intervals in on.items():
        rules = NodeRules.of(instance, instance.pool_index[pool_id], NUM_SLOTS)
        nodes += [
            {"pool": pool_id, "node": node, "start_slot": first, "end_slot": end, "start": instance.instant(first),
             "end": instance.instant(end), "cost": rules.cost(first, end)}
            for first, end in intervals
        ]  # fmt: skip
    claims = {
        "instance": instance.name, "instance_hash": instance.content_hash, "currency": instance.currency,
        "start": instance.instant(0), "slot_s": instance.slot, "num_slots": NUM_SLOTS, "status": "feasible",
        "engine": "hand", "seed": 0, "versions": {}, "cost": 0.0, "costs": {}, "dual_bound": None, "gap": None,
        "runs": made, "nodes_on": nodes, "rejected": [instance.jobs[j].id for j, run in enumerate(runs) if run is None],
        "bandwidth": [{"site": site, "mb_s": mb_s} for site, mb_s in bandwidth],
    }  # fmt: skip
    sums = check(instance, Plan.model_validate(claims))
    plan = Plan.model_validate(claims | {"cost": sums.cost, "costs": dict(sums.costs)})
    assert check(instance, plan).violations == ()
    return instance, plan


def setting_of(instance: Instance, plan: Plan, *, early: bool = False, **options: Any) -> Setting:
    """What its replays have in common."""
    return Setting.of(instance, plan, Options(**options), early=early)


@functools.cache
def solved(family: str, seed: int, *, elastic: bool = False) -> tuple[Instance, Plan] | None:
    """A random instance whose modes take whole slots, with a plan of the fast engine; None where there is none.
    `elastic`: whether jobs that do not run yet may change as they run."""
    from planner.engines.base import Limits
    from planner.solve import solve

    instance = _in_whole_slots(random_instance(family, random.Random(seed)))
    if elastic:
        jobs = [
            job if job.running else job.model_copy(update={"elastic": Elastic(), "restart_cost": 0.01})
            for job in instance.jobs
        ]
        instance = instance.altered(jobs=tuple(jobs))
    try:
        return instance, solve(instance, "fast", Limits(work=30, time_limit_s=None)).plan
    except (NoPlan, Infeasible):
        return None


def _in_whole_slots(instance: Instance) -> Instance:
    jobs = []
    for job in instance.jobs:
        entries = tuple(
            entry.model_copy(
                update={
                    "duration": slots_of(entry.duration, instance.slot) * instance.slot,
                    "slowdown": 1.0,
                }
            )
            for entry in entries_of(job, instance.throughputs)
        )
        jobs.append(with_entries(job, entries).model_copy(update={"speed_levels": (1.0,)}))
    return instance.altered(jobs=tuple(jobs))
