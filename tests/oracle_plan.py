"""A physical solution written as a Plan, for the checker and for whoever reads plans."""

from __future__ import annotations

import math

from models.domain.entities import Place
from models.domain.instance import Instance
from models.domain.plan import COST_TERMS, Bandwidth, CachedDataset, NodeOn, Plan, Run, Segment
from tests import oracle_reading as reading
from tests import oracle_terms as terms
from tests.oracle_terms import JobRun, Solution


def plan_of(instance: Instance, solution: Solution) -> Plan:
    """The plan that a proven optimal solution is."""
    costs = dict.fromkeys(COST_TERMS, 0.0) | terms.cost_terms(instance, solution)
    cost = math.fsum(costs.values())
    done = {run.job for run in solution.runs}
    return Plan(
        instance=instance.name,
        instance_hash=instance.content_hash,
        currency=instance.currency,
        start=instance.instant(0),
        slot_s=instance.slot,
        num_slots=reading.num_slots(instance),
        status="optimal",
        engine="oracle",
        seed=0,
        versions={},
        cost=cost,
        costs=costs,
        dual_bound=cost,
        gap=0.0,
        runs=tuple(_run(instance, run) for run in solution.runs),
        rejected=tuple(job.id for j, job in enumerate(instance.jobs) if j not in done),
        nodes_on=tuple(_node_on(instance, *interval) for interval in solution.nodes_on),
        cached=tuple(
            CachedDataset(site=site, dataset=dataset, fraction=fraction)
            for (site, dataset), fraction in sorted(solution.cached.items())
        ),
        bandwidth=tuple(
            Bandwidth(site=site, mb_s=mb_s) for site, mb_s in terms.peaks(instance, solution.runs).items() if mb_s > 0
        ),
    )


def _run(instance: Instance, run: JobRun) -> Run:
    job, way = instance.jobs[run.job], run.way
    pool = instance.pools[way.pool]
    segment = Segment(
        mode=way.entry,
        pool=pool.id,
        speed=way.speed,
        cached=run.cached,
        start_slot=run.start,
        end_slot=run.end,
        start=instance.instant(run.start),
        end=instance.instant(run.end),
        places=tuple(Place(node=node, gpus=gpus) for node, gpus in run.places),
        slices=way.share_slices or pool.slices_per_gpu,
        kept=way.is_kept,
    )
    late_h = terms.tardiness_h(instance, job, run.end)
    return Run(job=job.id, segments=(segment,), completion=instance.instant(run.end), tardiness_h=late_h)


def _node_on(instance: Instance, index: int, node: int, begin: int, end: int) -> NodeOn:
    pool = instance.pools[index]
    return NodeOn(
        pool=pool.id,
        node=node,
        start_slot=begin,
        end_slot=end,
        start=instance.instant(begin),
        end=instance.instant(end),
        cost=reading.interval_cost(instance, pool, begin, end),
    )
