"""The exact engine finds the optimum that the oracle proves, and no bound of any engine lies above it.

The oracle is another model in another solver, written from models/README.md alone. Run the slow part in several
processes with `pytest -n`.
"""

from __future__ import annotations

import numpy as np
import pytest

from models.check import check
from models.domain import Plan
from models.errors import Clash, Infeasible, NoPlan
from planner.engines.base import Limits
from planner.solve import solve
from tests.oracle import optimum
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
    exact: Plan | None = None
    reasons: tuple[Clash, ...] = ()
    try:
        fast = solve(instance, "fast", limits).plan
    except NoPlan:
        pass
    except Infeasible:
        assert best is None
    try:
        exact = solve(instance, "exact", limits).plan
    except Infeasible as verdict:
        reasons = verdict.reasons
    assert (exact is None) == (best is None), f"the oracle's optimum is {best}"
    if exact is None or best is None:
        assert reasons
        assert fast is None
        return
    slack = ROUNDING * max(1.0, best)
    assert exact.status == "optimal"
    assert exact.cost == pytest.approx(best, rel=RELATIVE, abs=ROUNDING)
    for plan in (exact,) if fast is None else (exact, fast):
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


@pytest.mark.slow
@pytest.mark.parametrize("first", range(NUM_DEFAULT, NUM_DEFAULT + NUM_SLOW, CHUNK))
@pytest.mark.parametrize("family", FAMILIES)
def test_engines_agree_with_the_oracle_on_many(family: str, first: int) -> None:
    agree_on(family, range(first, first + CHUNK))
