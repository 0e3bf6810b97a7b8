"""Capacity: what runs fits on the nodes that can be used, pool by pool. Identical nodes have no index here, which
removes the symmetry that makes node-indexed models hopeless; `placement` adds the index where it is needed."""

from __future__ import annotations

import pyomo.environ as pyo

from models.formulation.context import Context, declare, linear


def declare_nodes(model: pyo.ConcreteModel, context: Context) -> None:
    r"""n[p,t] in {0..N[p,t]} for p in POOL, t in SLOT: nodes of pool p that can be used in slot t, on and booted"""
    used = [p for p, rows in enumerate(context.rows_of_pool) if rows]
    model.POOL = pyo.Set(initialize=used, ordered=True)
    counts = {p: context.pools[p].num_available for p in used}
    model.n = pyo.Var(model.POOL, model.SLOT, domain=pyo.NonNegativeIntegers, bounds=lambda _, p, t: (0, counts[p][t]))


def runs_fit_on_usable_nodes(model: pyo.ConcreteModel, context: Context) -> None:
    r"""taken[q,p,t] <= capacity[p,q] n[p,t]
    for all p in POOL, t in SLOT, and resources q of a node that can bind: slices, memory, cpu_cores, ram

    GPU slices always; of the others those of which some mode takes a larger part than of the slices. The other rows
    are implied.
    """
    rules = {}
    for p in model.POOL:
        for resource in context.resources(p):
            for t in model.SLOT:
                amounts, runs = context.taken.at(resource.name, p, t)
                if runs:
                    rules[p, resource.name, t] = linear([*amounts, -resource.capacity], [*runs, model.n[p, t]]) <= 0
    declare(model, "runs_fit_on_usable_nodes", rules)


def a_node_has_room_for_one_large_run(model: pyo.ConcreteModel, context: Context) -> None:
    r"""taken[large,p,t] <= n[p,t] for all p in POOL with large runs, t in SLOT,
    where use[large,r] = num_nodes[r] phi(slices[r] / capacity[p,slices])

    with phi(a) = 1 for a > 1/2, 1/2 for a = 1/2, else 0. A node holds one run of more than half, or two of a half, so
    the sum of phi over a node is at most 1: a dual feasible function of Fekete and Schepers (2001). It is implied
    for a plan on nodes, but not by the sums over the pool, and so tightens them. Only where it says more than the
    row of the slices: some run takes more than half of a node but not all of it.
    """
    rules = {}
    for p in model.POOL:
        for t in model.SLOT if ("large", p) in context.quantities else ():
            parts, runs = context.taken.at("large", p, t)
            if runs:
                rules[p, t] = linear([*parts, -1.0], [*runs, model.n[p, t]]) <= 0
    declare(model, "a_node_has_room_for_one_large_run", rules)
