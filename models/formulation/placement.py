"""Placement: runs on nodes and GPUs with an index, for the pools in which counting nodes is not enough.

Where the sums over a pool fit but no packing on its nodes exists at that cost (fragments of nodes, a share between two
GPUs, a billing block that cannot move from one node to another), the engine asks for these rows in that pool and
solves again. They describe plans on nodes exactly: every one satisfies them (but for the numbering of identical
nodes), and what they admit is a plan at its cost. So the bound that comes with them is one on real plans.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyomo.environ as pyo

from models.formulation.context import Context, PoolGrid, declare, linear
from models.starts import Row


def declare_places(model: pyo.ConcreteModel, context: Context) -> None:
    r"""y[r,t,i] in {0,1} for (r,t,i) in PLACE: start (r,t) takes node i of its pool;
    g[r,t,i,q] in {0,1} for (r,t,i,q) in GPU: and GPU q of that node;
    m[p,i,t] in {0..N[p,i,t]} for (p,i) in NODE, t in SLOT: node i of pool p can be used in slot t, on and booted;
    a[p,i,t] in {0,1} for (p,i) in NODE, t in SLOT: node i is switched on in slot t, and boots from then on;
    e[p,i,t] in {0,1} for (p,i) in NODE, t in SLOT: a billing block of node i begins in slot t

    All of them only for the pools in NODE_POOL; a and e are of use only in those of BLOCK. GPUs are told apart in
    pools that have several on a node and shares on them.
    """
    node_pools = sorted(p for p in context.node_pools if p in model.POOL)
    model.NODE_POOL = pyo.Set(initialize=node_pools, ordered=True)
    nodes = [(p, i) for p in node_pools for i in range(context.pools[p].pool.nodes)]
    model.NODE = pyo.Set(initialize=nodes, dimen=2, ordered=True)
    places = [(r, t, i) for p in node_pools for r in context.rows_of_pool[p] for t, i in _nodes_of_row(context, r)]
    model.PLACE = pyo.Set(initialize=places, dimen=3, ordered=True)
    gpus = [
        (r, t, i, q)
        for r, t, i in places
        if needs_gpus(context, context.rows[r].pool) and not context.rows[r].mode.is_gang
        for q in _gpus_of_row(context, r, i)
    ]
    model.GPU = pyo.Set(initialize=gpus, dimen=4, ordered=True)
    model.y = pyo.Var(model.PLACE, domain=pyo.Binary)
    model.g = pyo.Var(model.GPU, domain=pyo.Binary)
    model.m = pyo.Var(
        model.NODE, model.SLOT, domain=pyo.Binary,
        bounds=lambda _, p, i, t: (0, int(context.pools[p].available[i, t])),
    )  # fmt: skip
    model.a = pyo.Var(model.NODE, model.SLOT, domain=pyo.Binary)
    model.e = pyo.Var(model.NODE, model.SLOT, domain=pyo.Binary)


def needs_gpus(context: Context, p: int) -> bool:
    """Whether GPUs of one node must be told apart: shares of a GPU leave fragments that whole GPUs cannot use."""
    pool = context.pools[p].pool
    shared = pool.slices_per_gpu > 1 and pool.gpus_per_node > 1
    return shared and any(context.rows[r].mode.is_small for r in context.rows_of_pool[p])


def num_places(context: Context, p: int) -> int:
    """How many variables the rows of this file would add for a pool."""
    pool = context.pools[p].pool
    starts = sum(len(context.slots_of_row[r]) for r in context.rows_of_pool[p])
    per_node = 1 + (pool.gpus_per_node if needs_gpus(context, p) else 0)
    return pool.nodes * (starts * per_node + 3 * context.num_slots)


def _nodes_of_row(context: Context, r: int) -> Iterator[tuple[int, int]]:
    """(t, i) for every start of a row and every node that can be used throughout; a kept run has its own nodes."""
    row, grid = context.rows[r], context.pools[context.rows[r].pool]
    if row.kept:
        running = context.instance.jobs[row.job].running
        assert running is not None
        yield from ((t, place.node) for t in context.slots_of_row[r] for place in running.places)
        return
    sums = np.concatenate([np.zeros((grid.pool.nodes, 1), dtype=int), np.cumsum(grid.usable, axis=1)], axis=1)
    for t in context.slots_of_row[r]:
        free = np.flatnonzero(sums[:, t + row.duration] - sums[:, t] == row.duration)
        yield from ((t, int(i)) for i in free)


def _gpus_of_row(context: Context, r: int, i: int) -> Iterator[int]:
    row = context.rows[r]
    running = context.instance.jobs[row.job].running
    if row.kept and running is not None:
        yield from next(place.gpus for place in running.places if place.node == i)
        return
    yield from range(context.pools[row.pool].pool.gpus_per_node)


def _places_by_start(model: pyo.ConcreteModel) -> dict[tuple[int, int], list[int]]:
    found: dict[tuple[int, int], list[int]] = defaultdict(list)
    for r, t, i in model.PLACE:
        found[r, t].append(i)
    return found


def a_run_takes_its_nodes(model: pyo.ConcreteModel, context: Context) -> None:
    r"""sum over i: y[r,t,i] = num_nodes[r] x[r,t] for all (r,t) in START in pools of NODE_POOL"""
    found = _places_by_start(model)
    rules = {}
    for p in model.NODE_POOL:
        for r in context.rows_of_pool[p]:
            for t in context.slots_of_row[r]:
                ys = [model.y[r, t, i] for i in found[r, t]]
                count = float(context.rows[r].mode.num_nodes)
                rules[r, t] = linear([1.0] * len(ys) + [-count], [*ys, model.x[r, t]]) == 0
    declare(model, "a_run_takes_its_nodes", rules)


def runs_fit_on_their_node(model: pyo.ConcreteModel, context: Context) -> None:
    r"""sum over (r,t') with t' <= t < t' + d[r]: part[q,r] y[r,t',i] <= capacity[p,q] m[p,i,t]
    for all (p,i) in NODE, t in SLOT, and resources q of a node that can bind"""
    rules = {}
    for p in model.NODE_POOL:
        running = context.running(context.rows_of_pool[p])
        for resource in context.resources(p):
            for t, starts in running.items():
                for i in range(context.pools[p].pool.nodes):
                    here = [(resource.use[r], model.y[r, s, i]) for r, s in starts if (r, s, i) in model.PLACE]
                    coefficients = [use for use, _ in here] + [-resource.capacity]
                    expression = linear(coefficients, [y for _, y in here] + [model.m[p, i, t]])
                    rules[p, resource.name, i, t] = expression <= 0
    declare(model, "runs_fit_on_their_node", rules)


def a_run_takes_its_gpus(model: pyo.ConcreteModel, context: Context) -> None:
    r"""sum over q: g[r,t,i,q] = max(1, gpus[r]) y[r,t,i] for all (r,t,i) in PLACE where GPUs are told apart, gangs
    left out"""
    found: dict[tuple[int, int, int], list[Any]] = defaultdict(list)
    for r, t, i, q in model.GPU:
        found[r, t, i].append(model.g[r, t, i, q])
    rules = {
        key: linear([1.0] * len(gs) + [-float(max(1, context.rows[key[0]].mode.gpus))], [*gs, model.y[key]]) == 0
        for key, gs in found.items()
    }
    declare(model, "a_run_takes_its_gpus", rules)


def runs_fit_on_their_gpu(model: pyo.ConcreteModel, context: Context) -> None:
    r"""sum over (r,t') with t' <= t < t' + d[r]: of_gpu[r] g[r,t',i,q], of gangs of_gpu[r] y[r,t',i], <= slices_per_gpu
    for all GPUs q of (p,i) in NODE where GPUs are told apart, t in SLOT; and the same for the memory of the GPU"""
    rules = {}
    for p in model.NODE_POOL:
        if not needs_gpus(context, p):
            continue
        pool = context.pools[p].pool
        for t, starts in context.running(context.rows_of_pool[p]).items():
            for i in range(pool.nodes):
                for q in range(pool.gpus_per_node):
                    here = [
                        (
                            context.rows[r],
                            model.y[r, s, i] if context.rows[r].mode.is_gang else model.g[r, s, i, q],
                        )
                        for r, s in starts
                        if (r, s, i, q) in model.GPU or (context.rows[r].mode.is_gang and (r, s, i) in model.PLACE)
                    ]
                    if not here:
                        continue
                    slices = [float(_slices_on_gpu(row, pool.slices_per_gpu)) for row, _ in here]
                    taken = [variable for _, variable in here]
                    rules[p, "slices", i, q, t] = linear(slices, taken) <= pool.slices_per_gpu
                    if pool.gpu_memory is not None:
                        memory = [row.mode.memory_gb if row.mode.is_small else pool.gpu_memory for row, _ in here]
                        if sum(memory) > pool.gpu_memory:
                            rules[p, "memory", i, q, t] = linear(memory, taken) <= pool.gpu_memory
    declare(model, "runs_fit_on_their_gpu", rules)


def _slices_on_gpu(row: Row, slices_per_gpu: int) -> int:
    return row.mode.slices if row.mode.is_small else slices_per_gpu


def a_segment_stays_on_its_nodes(model: pyo.ConcreteModel, context: Context) -> None:
    r"""y[r,t,i] - y[r,t-1,i] <= begin[r,t] for all (r,t,i) in PLACE with (r,t) in CHANGE;
    and g[r,t,i,q] - g[r,t-1,i,q] <= begin[r,t] for all (r,t,i,q) in GPU with (r,t) in CHANGE

    An elastic job that goes on elsewhere in the mode that it is in begins a segment there. Where changes neither cost
    nor are limited it may.
    """
    rules = {}
    for places, taken in ((model.PLACE, model.y), (model.GPU, model.g)):
        for r, t, *place in places:
            if (r, t) in model.CHANGE:
                before = [taken[(r, t - 1, *place)]] if (r, t - 1, *place) in places else []
                variables = [taken[(r, t, *place)], model.begin[r, t], *before]
                rules[(r, t, *place, "node")[:4]] = linear([1.0, -1.0] + [-1.0] * len(before), variables) <= 0
    declare(model, "a_segment_stays_on_its_nodes", rules)


def nodes_add_up(model: pyo.ConcreteModel, context: Context) -> None:
    r"""n[p,t] = sum over i: m[p,i,t]; v[p,t] = sum over i: e[p,i,t]; u[p,t] = sum over i: a[p,i,t]
    for all p in NODE_POOL, t in SLOT (the last two for p in BLOCK)"""
    rules = {}
    for p in model.NODE_POOL:
        nodes = range(context.pools[p].pool.nodes)
        pairs = [("n", model.n, model.m)]
        if p in model.BLOCK:
            pairs += [("v", model.v, model.e), ("u", model.u, model.a)]
        for name, total, single in pairs:
            for t in model.SLOT:
                singles = [single[p, i, t] for i in nodes]
                rules[p, name, t] = linear([1.0] * len(singles) + [-1.0], [*singles, total[p, t]]) == 0
    declare(model, "nodes_add_up", rules)


def _held(model: pyo.ConcreteModel, grid: PoolGrid, p: int, i: int, t: int) -> list[Any]:
    """The variables whose sum says that node i is on or booting in slot t."""
    if t < 0:
        return []
    return [
        model.m[p, i, t],
        *(model.a[p, i, s] for s in range(max(0, t - grid.boot + 1), t + 1) if grid.boot),
    ]


def a_node_is_paid_while_on(model: pyo.ConcreteModel, context: Context) -> None:
    r"""h[p,i,t] <= sum over t - block < t' <= t: e[p,i,t'] and h[p,i,t] <= N[p,i,t],
    with h[p,i,t] = m[p,i,t] + sum over t - boot < t' <= t: a[p,i,t'], for all (p,i) in NODE with p in BLOCK, t in SLOT

    h says that the node is held: it is on or boots.
    """
    rules = {}
    for p, i in model.NODE:
        if p not in model.BLOCK:
            continue
        grid = context.pools[p]
        for t in model.SLOT:
            held = _held(model, grid, p, i, t)
            paid = [model.e[p, i, s] for s in range(max(0, t - grid.block + 1), t + 1)]
            rules[p, i, t, "paid"] = linear([1.0] * len(held) + [-1.0] * len(paid), held + paid) <= 0
            rules[p, i, t, "available"] = linear([1.0] * len(held), held) <= int(grid.available[i, t])
    declare(model, "a_node_is_paid_while_on", rules)


def a_node_boots_when_switched_on(model: pyo.ConcreteModel, context: Context) -> None:
    r"""h[p,i,t] - h[p,i,t-1] <= a[p,i,t] <= min(h[p,i,t], 1 - h[p,i,t-1]) for all (p,i) in NODE with p in BLOCK,
    t in SLOT, with h[p,i,-1] = 1 on the left where the node is on at the start, else 0"""
    rules = {}
    for p, i in model.NODE:
        if p not in model.BLOCK:
            continue
        grid = context.pools[p]
        for t in model.SLOT:
            now, before = _held(model, grid, p, i, t), _held(model, grid, p, i, t - 1)
            coefficients = [1.0] * len(now) + [-1.0] * (len(before) + 1)
            warm = int(t == 0 and grid.on_at_start[i])
            rules[p, i, t, "begin"] = linear(coefficients, [*now, *before, model.a[p, i, t]]) <= warm
            rules[p, i, t, "only"] = linear([1.0] + [-1.0] * len(now), [model.a[p, i, t], *now]) <= 0
            if before:
                rules[p, i, t, "off"] = linear([1.0] * (len(before) + 1), [model.a[p, i, t], *before]) <= 1
    declare(model, "a_node_boots_when_switched_on", rules)


def blocks_of_a_node_follow_each_other(model: pyo.ConcreteModel, context: Context) -> None:
    r"""a[p,i,t] <= e[p,i,t] <= a[p,i,t] + e[p,i,t-block] for all (p,i) in NODE with p in BLOCK, t in SLOT;
    for t = 0 one is added on the right where the node is on at the start; and
    e[p,i,t] + a[p,i,t'] <= 1 + a[p,i,t] for t - block < t' < t: blocks of an interval that has ended do not go on"""
    rules: dict[tuple[Any, ...], Any] = {}
    for p, i in model.NODE:
        if p not in model.BLOCK:
            continue
        grid = context.pools[p]
        for t in model.SLOT:
            a, e = model.a[p, i, t], model.e[p, i, t]
            before = [model.e[p, i, t - grid.block]] if t >= grid.block else []
            warm = int(t == 0 and grid.on_at_start[i])
            rules[p, i, t, "begin"] = linear([1.0, -1.0], [a, e]) <= 0
            rules[p, i, t, "follow"] = linear([1.0, -1.0] + [-1.0] * len(before), [e, a, *before]) <= warm
            for s in range(max(0, t - grid.block + 1), t):
                rules[p, i, t, s] = linear([1.0, -1.0, 1.0], [e, a, model.a[p, i, s]]) <= 1
    declare(model, "blocks_of_a_node_follow_each_other", rules)


def identical_nodes_are_ordered(model: pyo.ConcreteModel, context: Context) -> None:
    r"""sum over t: m[p,i,t] >= sum over t: m[p,i+1,t] for all neighbours (p,i), (p,i+1) in NODE that differ in nothing

    They are available in the same slots, both or neither on at the start, and no running job is on either. Of all
    numberings of identical nodes one is kept: the busiest first.
    """
    rules = {}
    for p in model.NODE_POOL:
        grid = context.pools[p]
        taken = {
            place.node
            for job in context.instance.jobs
            if job.running is not None and job.running.pool == grid.pool.id
            for place in job.running.places
        }
        for i in range(grid.pool.nodes - 1):
            same = bool((grid.available[i] == grid.available[i + 1]).all())
            if same and grid.on_at_start[i] == grid.on_at_start[i + 1] and not {i, i + 1} & taken:
                ms = [model.m[p, i + 1, t] for t in model.SLOT], [model.m[p, i, t] for t in model.SLOT]
                coefficients = [1.0] * len(ms[0]) + [-1.0] * len(ms[1])
                rules[p, i] = linear(coefficients, [*ms[0], *ms[1]]) <= 0
    declare(model, "identical_nodes_are_ordered", rules)
