"""HiGHS by itself on the Pyomo model: no plan to start from, no cutoff, no fixing; its starts are placed on nodes as
the exact engine places them.

Building the model counts. It cannot be interrupted, so where it would take longer than the limit there is no plan. The
incumbents over time are those of the model, which counts nodes by pool: placing them may cost more, never less.
"""

from __future__ import annotations

from benchmarks.rivals.attempt import Attempt, Outcome
from models.domain import Instance
from models.formulation import build_model
from models.rentals import NodeRules
from planner.engines.highs import Compiled
from planner.engines.placement import Chosen

BUILD_S = 2.5e-5
"""About what building and loading the model takes for each start."""
PLACING_PART = 0.05
"""Part of the time that is kept for the placement."""


def solve(instance: Instance, time_limit_s: float, threads: int, seed: int) -> Outcome:
    """The model that counts nodes, in HiGHS."""
    attempt = Attempt("highs_alone", instance, time_limit_s, threads, seed)
    starts = attempt.starts()
    if attempt.left_s() < BUILD_S * starts.num_starts:
        attempt.note = f"building the model of {starts.num_starts:,} starts takes longer than the limit"
        return attempt.outcome()
    model = build_model(starts)
    compiled = Compiled(model)
    answer = compiled.solve(
        time_limit_s=max(0.0, attempt.left_s() - PLACING_PART * time_limit_s),
        gap=1e-4,
        seed=seed,
        threads=threads,
        on_progress=attempt.report,
    )
    attempt.raise_bound(answer.dual_bound)
    attempt.report(None, answer.dual_bound)
    if answer.values is None:
        attempt.note = f"HiGHS has no solution: {answer.outcome}"
        return attempt.outcome()
    chosen: Chosen = {}
    for r, t in model.START:
        if answer.value(model.x[r, t]) > 0.5:
            chosen[starts.rows[r].job] = (r, t)
    said = {}
    for p in model.POOL:
        rules = NodeRules.of(instance, p, starts.num_slots)
        paid = model.n if rules.is_plain else model.v
        said[p] = sum(round(answer.value(paid[p, t])) * rules.cost(t, t + 1) for t in model.SLOT)
    attempt.offer_placed(starts, chosen, said)
    return attempt.outcome()
