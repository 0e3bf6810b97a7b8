"""How much of each quantity is taken in each slot by what runs then: the left side of every limit by slot.

Two forms of the same LP. As **sums** over the runs of a slot every start is repeated once for each slot of its
run; HiGHS finds its cuts in such rows. As **levels** a start enters twice, where it begins and where it ends, and
the level between is carried from slot to slot: with long runs a fraction of the nonzeros. Measured
(benchmarks/exact.py --forms): sums are solved two to three times faster while they are small, levels are the only
ones that get past presolve when they are large.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pyomo.environ as pyo

from models.formulation.context import Context, declare, linear

# From this many nonzeros on, levels are used.
MOST_NONZEROS = 250_000


def uses_levels(context: Context) -> bool:
    """Whether the sums would have too many nonzeros."""
    if context.form != "auto":
        return context.form == "levels"
    nonzeros = sum(
        len(context.slots_of_row[r]) * context.rows[r].duration for use in context.quantities.values() for r in use
    )
    return nonzeros > MOST_NONZEROS


class Taken:
    r"""taken[q,o,t] = sum over (r,t') with t' <= t < t' + d[r]: use[q,r] x[r,t'] as sums, f[q,o,t] as levels

    The left sides of the limits: for a quantity and a slot, coefficients and variables whose sum is what is taken.
    """

    def __init__(self, model: pyo.ConcreteModel, context: Context):
        self.model = model
        self.sums: dict[tuple[str, Any, int], tuple[list[float], list[Any]]] | None = None
        if not uses_levels(context):
            self.sums = defaultdict(lambda: ([], []))
            for (q, o), use in context.quantities.items():
                for r, amount in use.items():
                    for t in context.slots_of_row[r]:
                        for slot in range(t, t + context.rows[r].duration):
                            coefficients, variables = self.sums[q, o, slot]
                            coefficients.append(amount)
                            variables.append(model.x[r, t])

    def at(self, q: str, o: Any, t: int) -> tuple[list[float], list[Any]]:
        """What is taken of a quantity in a slot; empty where nothing can run."""
        if self.sums is None:
            return [1.0], [self.model.f[q, o, t]]
        coefficients, variables = self.sums.get((q, o, t), ([], []))
        return list(coefficients), list(variables)


def declare_levels(model: pyo.ConcreteModel, context: Context) -> None:
    r"""f[q,o,t] >= 0 for (q,o) in QUANTITY, t in SLOT: what runs in slot t takes so much of quantity q of o

    Quantities are slices, memory, CPU cores and RAM of pool o, nodes of pool o for its large runs, and the bandwidth
    that is read at site o or across link o. As sums there are no levels: QUANTITY is empty.
    """
    model.SLOT = pyo.Set(initialize=list(range(context.num_slots)), ordered=True)
    quantities = list(context.quantities) if uses_levels(context) else []
    model.QUANTITY = pyo.Set(initialize=quantities, dimen=2, ordered=True)
    model.f = pyo.Var(model.QUANTITY, model.SLOT, domain=pyo.NonNegativeReals)
    context.taken = Taken(model, context)


def levels_follow_starts_and_ends(model: pyo.ConcreteModel, context: Context) -> None:
    r"""f[q,o,t] = f[q,o,t-1] + sum over r: use[q,r] x[r,t] - sum over r: use[q,r] x[r,t-d[r]]
    for all (q,o) in QUANTITY, t in SLOT, with f[q,o,-1] = 0 and the sums over the rows that have such a start"""
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
