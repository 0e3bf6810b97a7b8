"""The exact engine finds the optimum that the oracle proves (where there are power laws: but for what their chords may
miss), and no bound of any engine lies above it.

The oracle is another model in another solver, written from models/README.md alone. Run the slow part in several
processes with `pytest -n`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from models.check import check
from models.domain import Plan
from models.errors import Clash, Infeasible, NoPlan
from models.formulation import build_model
from models.reductions import reduce_starts
from models.starts import all_starts
from planner.engines import exact
from planner.engines.base import Limits
from planner.engines.highs import Compiled
from planner.engines.search import Search
from planner.horizon import num_slots_of
from planner.solve import solve
from tests.oracle import optimum
from tests.oracle_reading import chord_error
from tests.random_instances import FAMILIES, random_instance

NUM_DEFAULT = 25
NUM_SLOW = 500
CHUNK = 25
RELATIVE = 1e-4
ROUNDING = 1e-6


def assert_engines_agree(family: str, seed: int) -> None:
    """One random instance, solved by both engines and by the oracle."""
    instance = random_instance(family, np.random.default_rng(seed))
    best = optimum(instance)
    limits = Limits(time_limit_s=None, gap=0.0, threads=1)
    fast: Plan | None = None
    best_found: Plan | None = None
    reasons: tuple[Clash, ...] = ()
    try:
        fast = solve(instance, "fast", limits).plan
    except NoPlan:
        pass
    except Infeasible:
        assert best is None
    try:
        best_found = solve(instance, "exact", limits).plan
    except Infeasible as verdict:
        reasons = verdict.reasons
    assert (best_found is None) == (best is None), f"the oracle's optimum is {best}"
    if best_found is None or best is None:
        assert reasons
        assert fast is None
        return
    slack, error = ROUNDING * max(1.0, best), chord_error(instance)
    assert best_found.status == "optimal" or error > 0
    assert best_found.cost <= best + error + RELATIVE * best + ROUNDING
    for plan in (best_found,) if fast is None else (best_found, fast):
        assert check(instance, plan).violations == ()
        assert plan.dual_bound is not None
        assert plan.dual_bound <= best + slack
        assert best <= plan.cost + slack


def agree_on(family: str, seeds: range) -> None:
    """Every instance of some seeds; the first that fails is named."""
    for seed in seeds:
        try:
            assert_engines_agree(family, seed)
        except Exception as error:
            error.add_note(f"random_instance({family!r}, np.random.default_rng({seed}))")
            raise


@pytest.mark.parametrize("family", FAMILIES)
def test_engines_agree_with_the_oracle(family: str) -> None:
    agree_on(family, range(NUM_DEFAULT))


@pytest.mark.parametrize("family", FAMILIES)
def test_what_reduced_costs_rule_out_is_in_no_better_plan(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """After starts are fixed at 0 by the LP and the least cost there is, the model on nodes still has the optimum."""
    monkeypatch.setattr(exact, "round_starts", lambda *_, **__: None)
    fixed = 0
    fix_at_zero = Compiled.fix_at_zero

    def count(self: Compiled, variables: Iterable[Any]) -> int:
        nonlocal fixed
        fixed += (number := fix_at_zero(self, variables))
        return number

    monkeypatch.setattr(Compiled, "fix_at_zero", count)
    for seed in range(20):
        instance = random_instance(family, np.random.default_rng(seed))
        best = optimum(instance)
        if best is None:
            continue
        starts, pools = all_starts(instance, num_slots_of(instance)), frozenset(range(len(instance.pools)))
        search = Search(starts, Limits(time_limit_s=None, gap=0.0, threads=1))
        search.cost = best
        reduced = reduce_starts(starts)
        model = build_model(reduced, pools)
        compiled = Compiled(model)
        if exact._relax(search, reduced, model, compiled, pools):
            answer = compiled.solve(time_limit_s=None, gap=0.0, seed=0, threads=1)
            assert answer.objective is not None
            assert answer.objective <= best + ROUNDING * max(1.0, best), (family, seed)
            assert answer.objective >= best - chord_error(instance) - ROUNDING * max(1.0, best), (family, seed)
    assert fixed > 20


@pytest.mark.slow
@pytest.mark.parametrize("first", range(NUM_DEFAULT, NUM_DEFAULT + NUM_SLOW, CHUNK))
@pytest.mark.parametrize("family", FAMILIES)
def test_engines_agree_with_the_oracle_on_many(family: str, first: int) -> None:
    agree_on(family, range(first, first + CHUNK))
