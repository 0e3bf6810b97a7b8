"""Levels: how much of each quantity is taken in each slot by what runs then.

A sum over the runs of a slot repeats every start once for each slot of its run. Here a start enters twice, where it begins and where
it ends, and the level between is carried from slot to slot. The LP is the same, with a fraction of the nonzeros: on 68 thousand
starts of 25 slots the model is built seven times faster, and HiGHS spends its time on the search instead of on presolve
(benchmarks/exact.py --levels measures it).
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pyomo.environ as pyo

from models.formulation.context import Context, declare, linear


def declare_levels(model: pyo.ConcreteModel, context: Context) -> None:
    r"""f[q,o,t] >= 0: what runs in slot t takes so much of quantity (q,o): slices, memory, CPU cores or RAM of pool o, nodes of
    pool o for its large runs, bandwidth that is read at site o or across link o"""
    model.SLOT = pyo.Set(initialize=list(range(context.num_slots)), ordered=True)
    model.QUANTITY = pyo.Set(initialize=list(context.quantities), dimen=2, ordered=True)
    model.f = pyo.Var(model.QUANTITY, model.SLOT, domain=pyo.NonNegativeReals)


def levels_follow_starts_and_ends(model: pyo.ConcreteModel, context: Context) -> None:
    r"""f[q,o,t] = f[q,o,t-1] + sum over (r,t') with t' = t: use[q,r] x[r,t'] - sum over (r,t') with t' + d[r] = t: use[q,r] x[r,t']
    for all quantities (q,o), t; f[q,o,-1] = 0"""
    rules = {}
    for q, o in model.QUANTITY:
        changes: dict[int, tuple[list[float], list[Any]]] = defaultdict(lambda: ([], []))
        for r, use in context.quantities[q, o].items():
            duration = context.rows[r].duration
            for t in context.slots_of_row[r]:
                variable = model.x[r, t]
                for slot, sign in ((t, -use), (t + duration, use)):
                    changes[slot][0].append(sign)
                    changes[slot][1].append(variable)
        for t in model.SLOT:
            coefficients, variables = changes[t]
            before = [model.f[q, o, t - 1]] if t else []
            signs = [1.0] + [-1.0] * len(before)
            rules[q, o, t] = linear([*signs, *coefficients], [model.f[q, o, t], *before, *variables]) == 0
    declare(model, "levels_follow_starts_and_ends", rules)
