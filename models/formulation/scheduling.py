"""Scheduling: each job starts once, or is rejected where that is allowed."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pyomo.environ as pyo

from models.formulation.context import Context, declare, linear


def declare_starts(model: pyo.ConcreteModel, context: Context) -> None:
    r"""x[r,t] in {0,1} for (r,t) in START: the job of row r starts in slot t, in its mode and at its cache level;
    z[j] in {0,1} for j in OPTIONAL: job j is rejected

    A row r is a job in a mode at a cache level: with level 0 it reads over the link, with a higher one that part
    from the cache. The rows of an elastic job are its pieces: it runs in slot t where x[r,t] is 1.
    """
    model.START = pyo.Set(initialize=context.start_list, dimen=2, ordered=True)
    optional = [j for j in context.jobs if context.instance.jobs[j].reject_cost is not None]
    model.OPTIONAL = pyo.Set(initialize=optional, ordered=True)
    model.x = pyo.Var(model.START, domain=pyo.Binary)
    model.z = pyo.Var(model.OPTIONAL, domain=pyo.Binary)


def each_job_starts_once(model: pyo.ConcreteModel, context: Context) -> None:
    r"""sum over (r,t) of j: x[r,t] + z[j] = 1 for all j that are not elastic (z only where j may be rejected)"""
    variables: dict[int, list[Any]] = defaultdict(list)
    for r, t in context.start_list:
        variables[context.rows[r].job].append(model.x[r, t])
    rules = {}
    for j in context.jobs:
        if j in context.starts.elastic:
            continue
        terms = variables[j] + ([model.z[j]] if j in model.OPTIONAL else [])
        rules[j] = linear([1.0] * len(terms), terms) == 1 if terms else pyo.Constraint.Infeasible
    declare(model, "each_job_starts_once", rules)
