"""Precedence: a job starts no earlier than each of its predecessors completes, and not at all without them."""

from __future__ import annotations

import pyomo.environ as pyo

from models.formulation.context import Context, declare, linear


def predecessors_complete_first(model: pyo.ConcreteModel, context: Context) -> None:
    r"""sum over (r,t') of j with t' <= t: x[r,t'] <= sum over (r,t') of i with t' + d[r] <= t: x[r,t']
    for all jobs j, predecessors i of j, and slots t in which j may start

    What has started by t has its predecessors complete by t. One row a slot is tighter than one row a pair over
    start times, and holds for rejected predecessors too: nothing of them is ever complete.
    """
    instance, rules = context.instance, {}
    of_job = context.starts.rows_of_job
    for j in context.jobs:
        job = instance.jobs[j]
        later = [(t, r) for r in of_job[j] for t in context.slots_of_row[r]]
        for name in job.after:
            i = instance.job_index[name]
            if i not in context.jobs:
                continue
            done = [(t + context.rows[r].duration, r, t) for r in of_job[i] for t in context.slots_of_row[r]]
            for t in sorted({t for t, _ in later}):
                begun = [model.x[r, s] for s, r in later if s <= t]
                complete = [model.x[r, s] for end, r, s in done if end <= t]
                coefficients = [1.0] * len(begun) + [-1.0] * len(complete)
                rules[i, j, t] = linear(coefficients, begun + complete) <= 0
    declare(model, "predecessors_complete_first", rules)
