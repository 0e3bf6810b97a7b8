"""Why an instance has no plan: relaxed copies of the model, each with one kind of limit that may give way.

Each copy finds the least that must give way if nothing else does: hours past deadlines and the horizon, nodes,
bandwidth, or jobs left out. They are alternatives; together they show which jobs and limits clash.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyomo.environ as pyo

from models import grid
from models.domain import Instance
from models.errors import Clash, Infeasible, InvalidInput
from models.formulation import build_model
from models.formulation.context import Context, linear
from models.starts import Starts, all_starts, completion_edges, has_impossible_job
from planner.engines.base import Limits
from planner.engines.highs import Answer, Compiled
from planner.horizon import num_slots_of

SECONDS = 20.0


def explain(instance: Instance, node_pools: frozenset[int], limits: Limits) -> Infeasible:
    """The verdict with every kind of limit that alone could give way, and by how much."""
    stated = num_slots_of(instance)
    longer = max(stated, _open_horizon(instance, stated))
    stretched = all_starts(instance, longer, ignore_deadlines=True)
    strict = all_starts(instance, stated)
    reasons: list[Clash] = list(_alone(instance, stretched, stated))
    found: list[Clash] = []
    for way, relax in WAYS.items():
        starts = stretched if relax is _deadlines else strict
        found += [replace(clash, way=way) for clash in relax(starts, node_pools, limits, stated)]
    if node_pools and not any(clash.what.startswith("nodes") for clash in found):
        names = ", ".join(instance.pools[p].id for p in sorted(node_pools))
        found.append(
            Clash(
                "packing", f"the sums over the pools {names} fit, but no packing on their nodes exists", way="packing"
            )
        )
    return Infeasible("no plan satisfies the instance", [*reasons, *found])


def _open_horizon(instance: Instance, stated: int) -> int:
    """Slots if the horizon were open; as stated where those are more than can be planned."""
    try:
        return num_slots_of(instance.model_copy(update={"horizon": "auto"}))
    except InvalidInput:
        return stated


def _alone(instance: Instance, stretched: Starts, stated: int) -> Iterator[Clash]:
    """Jobs that cannot meet their deadline or the horizon even with every node to themselves."""
    for j, job in enumerate(instance.jobs):
        if job.reject_cost is not None:
            continue
        completions = _completions(stretched, j)
        if not completions:
            yield Clash(
                f"job {job.id}", "finds no nodes that are available for as long as it runs", (job.id,), way="alone"
            )
            continue
        done = min(completions)
        limit = stated if job.deadline is None else min(stated, grid.deadline_slot(instance, job.deadline))
        if done > limit:
            name = "deadline" if limit < stated or job.deadline is not None else "horizon"
            over = _hours((done - limit) * instance.slot_h)
            yield Clash(
                f"job {job.id}",
                f"completes {over} after its {name} even with every node to itself",
                (job.id,),
                way="alone",
            )


def _completions(starts: Starts, j: int) -> list[int]:
    """Edges at which a job may complete with every node to itself; of one that is not elastic the first in each row."""
    if j in starts.elastic:
        return completion_edges(starts, j)
    return [int(starts.rows[r].slots[0]) + starts.rows[r].duration for r in starts.rows_of_job[j]]


def _solve(model: pyo.ConcreteModel, objective: Any, limits: Limits) -> Answer:
    model.lowest_total_cost.deactivate()
    model.least_give = pyo.Objective(expr=objective, sense=pyo.minimize)
    answer = Compiled(model).solve(time_limit_s=SECONDS, gap=0.01, seed=limits.seed, threads=limits.threads)
    if answer.outcome == "interrupted":
        raise KeyboardInterrupt
    return answer


def _deadlines(starts: Starts, node_pools: frozenset[int], limits: Limits, stated: int) -> list[Clash]:
    """Least total hours past deadlines and horizon."""
    instance = starts.instance
    if has_impossible_job(starts):
        return []
    model = build_model(starts, node_pools)
    limit = [
        stated if job.deadline is None else min(stated, grid.deadline_slot(instance, job.deadline))
        for job in instance.jobs
    ]
    ends = [(starts.rows[r].job, t + starts.rows[r].duration, x) for (r, t), x in model.x.items()]
    ends = [end for end in ends if end[0] not in starts.elastic]
    ends += [(j, t, complete) for (j, t), complete in model.complete.items()]
    late = [(j, t - limit[j], variable) for j, t, variable in ends if t > limit[j]]
    answer = _solve(model, linear([float(slots) for _, slots, _ in late], [x for _, _, x in late]), limits)
    if answer.values is None:
        return []
    clashes = []
    for j, slots, variable in late:
        if answer.value(variable) > 0.5:
            job = instance.jobs[j]
            name = "deadline" if job.deadline is not None else "horizon"
            clashes.append(Clash(f"{name} of job {job.id}", f"{_hours(slots * instance.slot_h)} later", (job.id,)))
    return clashes


def _nodes(starts: Starts, node_pools: frozenset[int], limits: Limits, stated: int) -> list[Clash]:
    """Fewest further nodes; the pools of identical nodes are only counted here."""
    del node_pools, stated
    if has_impossible_job(starts):
        return []
    context = Context(starts)
    model = build_model(starts)
    model.more = pyo.Var(model.POOL, domain=pyo.NonNegativeIntegers)
    capacity = {(p, q.name): q.capacity for p in model.POOL for q in context.resources(p)}
    for (p, name, _), row in model.runs_fit_on_usable_nodes.items():
        row.set_value(row.body - capacity[p, name] * model.more[p] <= 0)
    for (p, _), row in model.a_node_has_room_for_one_large_run.items():
        row.set_value(row.body - model.more[p] <= 0)
    answer = _solve(model, sum(model.more[p] for p in model.POOL), limits)
    if answer.values is None:
        return []
    counts = {p: round(answer.value(model.more[p])) for p in model.POOL}
    return [
        Clash(
            f"nodes of pool {starts.instance.pools[p].id}",
            f"{count} more",
            _busiest(starts, model, answer, p),
        )
        for p, count in counts.items()
        if count
    ]


def _busiest(starts: Starts, model: pyo.ConcreteModel, answer: Answer, p: int) -> tuple[str, ...]:
    """The jobs that run in a pool when most of its slices are taken."""
    load = np.zeros(starts.num_slots)
    running = []
    for r, t in model.START:
        row = starts.rows[r]
        if row.pool == p and answer.value(model.x[r, t]) > 0.5:
            load[t : t + row.duration] += row.mode.num_nodes * row.mode.slices
            running.append((row, t))
    peak = int(np.argmax(load))
    return tuple(starts.instance.jobs[row.job].id for row, t in running if t <= peak < t + row.duration)


def _bandwidth(starts: Starts, node_pools: frozenset[int], limits: Limits, stated: int) -> list[Clash]:
    """Least further bandwidth at sites and across links."""
    del stated
    instance = starts.instance
    if has_impossible_job(starts):
        return []
    model = build_model(starts, node_pools)
    model.over = pyo.VarList(domain=pyo.NonNegativeReals)
    slack: dict[str, Any] = {}

    def more(name: str) -> Any:
        if name not in slack:
            slack[name] = model.over.add()
        return slack[name]

    for (s, _), row in model.readers_share_the_bandwidth.items():
        row.set_value(row.body - more(f"bandwidth of site {instance.sites[s].id}") <= 0)
    for (source, target, _), row in model.readers_share_the_network.items():
        row.set_value(row.body - more(f"bandwidth from {source} to {target}") <= row.upper)
    if not slack:
        return []
    answer = _solve(model, sum(slack.values()), limits)
    if answer.values is None:
        return []
    return [
        Clash(name, f"{answer.value(variable):.6g} MB/s more")
        for name, variable in slack.items()
        if answer.value(variable) > 1e-6
    ]


def _jobs(starts: Starts, node_pools: frozenset[int], limits: Limits, stated: int) -> list[Clash]:
    """Fewest jobs left out."""
    del stated
    instance = starts.instance
    model = build_model(
        starts,
        node_pools,
        frozenset(j for j, job in enumerate(instance.jobs) if starts.runs_of_job(j) or job.reject_cost is not None),
    )
    model.out = pyo.Var(range(len(instance.jobs)), domain=pyo.Binary)
    del model.each_job_starts_once, model.an_elastic_job_completes_once
    model.each_job_starts_once = pyo.ConstraintList()
    once: dict[int, list[Any]] = defaultdict(list)
    for (r, _), x in model.x.items():
        if starts.rows[r].job not in starts.elastic:
            once[starts.rows[r].job].append(x)
    for (j, _), complete in model.complete.items():
        once[j].append(complete)
    for j in range(len(instance.jobs)):
        xs = once[j]
        xs += [model.z[j]] if j in model.OPTIONAL else []
        model.each_job_starts_once.add(linear([1.0] * (len(xs) + 1), [*xs, model.out[j]]) == 1)
    answer = _solve(model, sum(model.out.values()), limits)
    if answer.values is None:
        return []
    out = [job.id for j, job in enumerate(instance.jobs) if answer.value(model.out[j]) > 0.5]
    return [Clash("jobs left out", f"{len(out)}: {', '.join(out)}", tuple(out))] if out else []


def _hours(hours: float) -> str:
    return f"{hours:.4g} h"


WAYS = {"later": _deadlines, "more nodes": _nodes, "more bandwidth": _bandwidth, "fewer jobs": _jobs}
"""Each kind of limit by the name of what would have to be allowed."""
