"""Precedence: a job starts no earlier than each of its predecessors completes, and not at all without them."""

from __future__ import annotations

from typing import Any

import pyomo.environ as pyo

from models.formulation.context import Context, declare, linear


def predecessors_complete_first(model: pyo.ConcreteModel, context: Context) -> None:
    r"""sum over (r,t') of j with t' <= t: x[r,t'] <= sum over (r,t') of i with t' + d[r] <= t: x[r,t']
    for all jobs j, predecessors i of j, and slots t in which j may start

    What has started by t has its predecessors complete by t. One row a slot is tighter than one row a pair over
    start times, and holds for rejected predecessors too: nothing of them is ever complete.
    """
    instance, rules = context.instance, {}
    for j in context.jobs:
        begun = _begun_by_slot(model, context, j)
        for name in instance.jobs[j].after:
            i = instance.job_index[name]
            if i not in context.jobs:
                continue
            ends = _completions(model, context, i)
            for t, xs in begun.items():
                complete = [variable for end, variable in ends if end <= t]
                coefficients = [1.0] * len(xs) + [-1.0] * len(complete)
                rules[i, j, t] = linear(coefficients, xs + complete) <= 0
    declare(model, "predecessors_complete_first", rules)


def _begun_by_slot(model: pyo.ConcreteModel, context: Context, j: int) -> dict[int, list[Any]]:
    """For each slot in which a job may start the variables whose sum is at most 1 and says that it has begun by then;
    of an elastic job that it runs in the slot."""
    starts = [(t, r) for r in context.rows_of_job(j) for t in context.slots_of_row[r]]
    is_elastic = j in context.starts.elastic
    return {
        t: [model.x[r, s] for s, r in starts if s == t or (s < t and not is_elastic)]
        for t in sorted({t for t, _ in starts})
    }


def _completions(model: pyo.ConcreteModel, context: Context, i: int) -> list[tuple[int, Any]]:
    """The edges at which a job may complete, each with the variable that says so."""
    if i in context.starts.elastic:
        return [(t, model.complete[i, t]) for t in context.completions[i]]
    return [
        (t + context.rows[r].duration, model.x[r, t]) for r in context.rows_of_job(i) for t in context.slots_of_row[r]
    ]
