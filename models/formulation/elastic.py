"""Elastic jobs: a run of pieces, each a slot in a mode at a cache level, until all of the work is done.

A piece is a start of one slot, so nodes, energy and storage see it as any other. A segment is a stretch of slots in
one row: what begins one is counted, where changes cost or are limited. Counting nodes, a segment may move between the
nodes of a pool for nothing; in the pools of NODE_POOL it stays (`placement.a_segment_stays_on_its_nodes`).
"""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Any

import pyomo.environ as pyo

from models.formulation.context import Context, declare, linear
from models.starts import WORK_DONE

# Below this the fractional part of the slots that a mode takes is a rounding error.
SMALLEST_PART = 1e-5


def declare_completions(model: pyo.ConcreteModel, context: Context) -> None:
    r"""complete[j,t] in {0,1} for (j,t) in COMPLETION: elastic job j completes at slot edge t;
    begin[r,t] in [0,1] for (r,t) in CHANGE: a segment in row r begins in slot t

    CHANGE are the pieces of jobs whose changes cost or are limited, but for kept ones, which begin for nothing.
    """
    completions = [(j, t) for j in context.elastic for t in context.completions[j]]
    model.COMPLETION = pyo.Set(initialize=completions, dimen=2, ordered=True)
    changes = [(r, t) for j in context.elastic if counts_changes(context, j) for r, t in _changing(context, j)]
    model.CHANGE = pyo.Set(initialize=changes, dimen=2, ordered=True)
    model.complete = pyo.Var(model.COMPLETION, domain=pyo.Binary)
    model.begin = pyo.Var(model.CHANGE, domain=pyo.NonNegativeReals, bounds=(0, 1))


def counts_changes(context: Context, j: int) -> bool:
    """Whether it matters how often an elastic job changes."""
    job = context.instance.jobs[j]
    return job.restart_cost > 0 or most_changes(context, j) is not None


def most_changes(context: Context, j: int) -> int | None:
    """The changes that an elastic job may make; None where there is no limit that can bind."""
    job = context.instance.jobs[j]
    assert job.elastic is not None
    limit = job.elastic.changes
    return None if limit is None or limit >= context.num_slots else int(limit)


def is_running(context: Context, j: int) -> bool:
    """Whether a job runs already, so that its first segment is a change unless it is kept."""
    return context.instance.jobs[j].running is not None


def _changing(context: Context, j: int) -> list[tuple[int, int]]:
    rows = (r for r in context.starts.pieces_of_job[j] if not context.rows[r].kept)
    return [(r, t) for r in rows for t in context.slots_of_row[r]]


def _by_slot(context: Context, j: int) -> dict[int, list[int]]:
    """For each slot the rows whose pieces a job may run in it."""
    rows: dict[int, list[int]] = defaultdict(list)
    for r in context.starts.pieces_of_job[j]:
        for t in context.slots_of_row[r]:
            rows[t].append(r)
    return dict(sorted(rows.items()))


def _completed(model: pyo.ConcreteModel, context: Context, j: int, first: int, last: int) -> list[Any]:
    """The variables whose sum says that a job completes at an edge from first to last."""
    return [model.complete[j, t] for t in context.completions[j] if first <= t <= last]


def an_elastic_job_completes_once(model: pyo.ConcreteModel, context: Context) -> None:
    r"""sum over t: complete[j,t] + z[j] = 1 for all elastic j (z only where j may be rejected)"""
    rules = {}
    for j in context.elastic:
        terms = _completed(model, context, j, 0, context.num_slots)
        terms += [model.z[j]] if j in model.OPTIONAL else []
        rules[j] = linear([1.0] * len(terms), terms) == 1 if terms else pyo.Constraint.Infeasible
    declare(model, "an_elastic_job_completes_once", rules)


def one_piece_runs_before_completion(model: pyo.ConcreteModel, context: Context) -> None:
    r"""sum over (r,t) of j: x[r,t] <= sum over t' > t: complete[j,t'] for all elastic j, t in SLOT in which it may
    run"""
    rules = {}
    for j in context.elastic:
        for t, rows in _by_slot(context, j).items():
            later = _completed(model, context, j, t + 1, context.num_slots)
            xs = [model.x[r, t] for r in rows]
            rules[j, t] = linear([1.0] * len(xs) + [-1.0] * len(later), [*xs, *later]) <= 0
    declare(model, "one_piece_runs_before_completion", rules)


def a_job_runs_in_its_last_slot(model: pyo.ConcreteModel, context: Context) -> None:
    r"""complete[j,t] <= sum over (r,t-1) of j: x[r,t-1] for all (j,t) in COMPLETION"""
    rules = {}
    for j in context.elastic:
        rows = _by_slot(context, j)
        for t in context.completions[j]:
            xs = [model.x[r, t - 1] for r in rows[t - 1]]
            rules[j, t] = linear([1.0] + [-1.0] * len(xs), [model.complete[j, t], *xs]) <= 0
    declare(model, "a_job_runs_in_its_last_slot", rules)


def all_work_is_done(model: pyo.ConcreteModel, context: Context) -> None:
    r"""sum over (r,t') of j with t' < t: progress[r] x[r,t'] >= sum over t' <= t: complete[j,t'] for all (j,t) in
    COMPLETION

    With the tolerance of the definition. One row for each edge is tighter than one for the last: what part of a job
    is complete has done that part of the work. A row is scaled so that the slowest mode does 1 in a slot: the
    tolerances of a solver, a millionth, are then far from a slot of work.
    """
    rules = {}
    for j in context.elastic:
        unit = min(context.rows[r].progress for r in context.starts.pieces_of_job[j])
        amounts = {r: context.rows[r].progress / unit for r in context.starts.pieces_of_job[j]}
        for t in context.completions[j]:
            rules[j, t] = _done_before(model, context, j, t, amounts, WORK_DONE / unit)
    declare(model, "all_work_is_done", rules)


def whole_slots_do_the_work(model: pyo.ConcreteModel, context: Context) -> None:
    r"""sum over (r,t') of j with t' < t: rounded[m,r] x[r,t'] >= slots[m] sum over t' <= t: complete[j,t'] for all
    (j,t) in COMPLETION, modes m of j

    The rows of `all_work_is_done` with the slot of mode m as the unit, rounded (mixed-integer rounding; Nemhauser and
    Wolsey, 1990): the whole part of what a row does, and of the rest as much as it is of the rest of the right-hand
    side, no more than 1. Implied for whole slots, and tighter for parts of them.
    """
    rules = {}
    for j in context.elastic:
        for k, (amounts, slots) in enumerate(_rounded(context, j)):
            for t in context.completions[j]:
                rules[j, k, t] = _done_before(model, context, j, t, amounts, slots)
    declare(model, "whole_slots_do_the_work", rules)


def _rounded(context: Context, j: int) -> list[tuple[dict[int, float], float]]:
    found: list[tuple[dict[int, float], float]] = []
    progress = {r: context.rows[r].progress for r in context.starts.pieces_of_job[j]}
    for unit in sorted(set(progress.values())):
        slots = WORK_DONE / unit
        part = slots - math.floor(slots)
        if part < SMALLEST_PART or 1 - part < SMALLEST_PART:
            continue
        amounts = {r: _round(value / unit, part) for r, value in progress.items()}
        found.append((amounts, float(math.ceil(slots))))
    return found


def _round(amount: float, part: float) -> float:
    whole = math.floor(amount)
    return whole + min(1.0, (amount - whole) / part)


def _done_before(
    model: pyo.ConcreteModel, context: Context, j: int, t: int, amounts: dict[int, float], whole: float
) -> Any:
    done = [(amounts[r], model.x[r, s]) for r in amounts for s in context.slots_of_row[r] if s < t]
    complete = _completed(model, context, j, 0, t)
    coefficients = [-amount for amount, _ in done] + [whole] * len(complete)
    return linear(coefficients, [x for _, x in done] + complete) <= 0


def changes_begin_segments(model: pyo.ConcreteModel, context: Context) -> None:
    r"""x[r,t] - x[r,t-1] <= begin[r,t] for all (r,t) in CHANGE"""
    rules = {}
    for r, t in model.CHANGE:
        before = [model.x[r, t - 1]] if (r, t - 1) in model.START else []
        variables = [model.x[r, t], model.begin[r, t], *before]
        rules[r, t] = linear([1.0, -1.0] + [-1.0] * len(before), variables) <= 0
    declare(model, "changes_begin_segments", rules)


def changes_are_limited(model: pyo.ConcreteModel, context: Context) -> None:
    r"""sum over (r,t) of j: begin[r,t] <= segments[j] sum over t: complete[j,t] for all elastic j with limited changes,
    where segments[j] = changes[j] of a running job, changes[j] + 1 of any other"""
    rules = {}
    for j in context.elastic:
        limit = most_changes(context, j)
        if limit is not None:
            most = limit + (0 if is_running(context, j) else 1)
            rules[j] = _begun(model, context, j, most) <= 0
    declare(model, "changes_are_limited", rules)


def who_runs_begins(model: pyo.ConcreteModel, context: Context) -> None:
    r"""sum over (r,t) of j: begin[r,t] >= sum over t: complete[j,t] for all elastic j with (r,t) in CHANGE that do not
    run already"""
    rules = {}
    for j in context.elastic:
        if counts_changes(context, j) and not is_running(context, j):
            rules[j] = _begun(model, context, j, 1) >= 0
    declare(model, "who_runs_begins", rules)


def _begun(model: pyo.ConcreteModel, context: Context, j: int, most: int) -> Any:
    begin = [model.begin[r, t] for r, t in _changing(context, j)]
    complete = _completed(model, context, j, 0, context.num_slots)
    return linear([1.0] * len(begin) + [-float(most)] * len(complete), begin + complete)


def a_kept_run_goes_on_from_the_start(model: pyo.ConcreteModel, context: Context) -> None:
    r"""x[r,t] <= x[r,t-1] for all (r,t) in START with t > 0 in kept rows of elastic jobs"""
    rules = {}
    for j in context.elastic:
        for r in context.starts.pieces_of_job[j]:
            for t in context.slots_of_row[r] if context.rows[r].kept else ():
                if t > 0:
                    rules[r, t] = linear([1.0, -1.0], [model.x[r, t], model.x[r, t - 1]]) <= 0
    declare(model, "a_kept_run_goes_on_from_the_start", rules)


def cached_pieces_need_the_cache(model: pyo.ConcreteModel, context: Context) -> None:
    r"""sum over (r,t) of j at site s and level l: x[r,t] <= k[d,s,l] for all elastic j with dataset d, (d,s,l) in
    CACHED, t in SLOT in which it may run so"""
    readers: dict[tuple[int, int, int, int], list[Any]] = defaultdict(list)
    dataset: dict[int, int] = {}
    for j in context.elastic:
        for r in context.starts.pieces_of_job[j]:
            row = context.rows[r]
            dataset[j] = max(dataset.get(j, -1), row.dataset)
            for t in context.slots_of_row[r] if row.level > 0 else ():
                readers[j, row.site, row.level, t].append(model.x[r, t])
    rules = {
        (j, s, level, t): linear([1.0] * len(xs) + [-1.0], [*xs, model.k[dataset[j], s, level]]) <= 0
        for (j, s, level, t), xs in sorted(readers.items())
    }
    declare(model, "cached_pieces_need_the_cache", rules)
