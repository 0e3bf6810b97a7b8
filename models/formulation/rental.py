"""Rental: a node is paid in whole billing blocks from when it is switched on, and boots before it can be used.

Pools without boot and with increments of one slot need none of this: there the nodes that can be used are those paid.
"""

from __future__ import annotations

import pyomo.environ as pyo

from models.formulation.context import Context, declare, linear


def declare_blocks(model: pyo.ConcreteModel, context: Context) -> None:
    r"""v[p,t] in {0..nodes[p]} for p in BLOCK, t in SLOT: billing blocks that begin in slot t;
    u[p,t] in [0,nodes[p]] for p in BLOCK, t in SLOT: nodes that are switched on in slot t, and boot from then on

    BLOCK are the pools with an increment of several slots or a boot. A node that is on at the start and goes on is
    not switched on.
    """
    billed = [p for p in model.POOL if not context.pools[p].is_plain]
    model.BLOCK = pyo.Set(initialize=billed, ordered=True)
    bounds = {p: (0, context.pools[p].pool.nodes) for p in billed}
    model.v = pyo.Var(model.BLOCK, model.SLOT, domain=pyo.NonNegativeIntegers, bounds=lambda _, p, _t: bounds[p])
    model.u = pyo.Var(model.BLOCK, model.SLOT, domain=pyo.NonNegativeReals, bounds=lambda _, p, _t: bounds[p])


def nodes_are_paid(model: pyo.ConcreteModel, context: Context) -> None:
    r"""n[p,t] + sum over t - boot < t' <= t: u[p,t'] <= sum over t - block < t' <= t: v[p,t']
    for all p in BLOCK, t in SLOT"""
    rules = {}
    for p in model.BLOCK:
        grid = context.pools[p]
        for t in model.SLOT:
            booting = [model.u[p, s] for s in range(max(0, t - grid.boot + 1), t + 1)]
            paid = [model.v[p, s] for s in range(max(0, t - grid.block + 1), t + 1)]
            coefficients = [1.0] * (1 + len(booting)) + [-1.0] * len(paid)
            rules[p, t] = linear(coefficients, [model.n[p, t], *booting, *paid]) <= 0
    declare(model, "nodes_are_paid", rules)


def booting_nodes_are_available(model: pyo.ConcreteModel, context: Context) -> None:
    r"""n[p,t] + sum over t - boot < t' <= t: u[p,t'] <= N[p,t] for all p in BLOCK with a boot, t in SLOT"""
    rules = {}
    for p in model.BLOCK:
        grid = context.pools[p]
        counts = grid.num_available
        for t in model.SLOT if grid.boot else ():
            booting = [model.u[p, s] for s in range(max(0, t - grid.boot + 1), t + 1)]
            rules[p, t] = linear([1.0] * (1 + len(booting)), [model.n[p, t], *booting]) <= counts[t]
    declare(model, "booting_nodes_are_available", rules)


def blocks_begin_anew_or_go_on(model: pyo.ConcreteModel, context: Context) -> None:
    r"""v[p,t] - v[p,t-block] <= u[p,t] for all p in BLOCK with a boot, t in SLOT;
    for t = 0 the nodes that are on at the start are added on the right

    A block begins on a node whose block just ended, or on one newly switched on. Without a boot being switched on
    costs nothing, and these rows would say nothing.
    """
    rules = {}
    for p in model.BLOCK:
        grid = context.pools[p]
        warm = int(grid.on_at_start.sum())
        for t in model.SLOT if grid.boot else ():
            before = [model.v[p, t - grid.block]] if t >= grid.block else []
            expression = linear([1.0, -1.0] + [-1.0] * len(before), [model.v[p, t], model.u[p, t], *before])
            rules[p, t] = expression <= (warm if t == 0 else 0)
    declare(model, "blocks_begin_anew_or_go_on", rules)
