"""Optima of the formulation, as the tests of this folder compare them."""

from __future__ import annotations

from models.formulation import build_model
from models.formulation.context import Form
from models.starts import Starts, has_impossible_job
from planner.engines.highs import Compiled

# To what part of them the values of HiGHS are compared.
TOLERANCE = 1e-6


def value(
    starts: Starts, node_pools: frozenset[int] = frozenset(), *, form: Form = "auto", relaxed: bool = False
) -> float | None:
    """The optimum of the model over these starts, or of its LP relaxation; None where it has no solution."""
    if has_impossible_job(starts):
        return None
    compiled = Compiled(build_model(starts, node_pools, form=form))
    answer = compiled.solve(time_limit_s=None, gap=0.0, seed=0, threads=1, relaxed=relaxed)
    assert answer.outcome in ("optimal", "infeasible"), answer.outcome
    return answer.objective


def every_pool(starts: Starts) -> frozenset[int]:
    """Node indices wherever they may be given: the model then describes plans on nodes."""
    return frozenset(range(len(starts.instance.pools)))


def assert_same(found: float | None, expected: float | None) -> None:
    """The same value, or none in both."""
    assert (found is None) == (expected is None), (found, expected)
    if found is not None and expected is not None:
        assert abs(found - expected) <= TOLERANCE * max(1.0, abs(expected)), (found, expected)


def assert_at_most(lower: float | None, upper: float | None) -> None:
    """No more than another value; where there is no solution, the value is above every other."""
    if upper is not None:
        assert lower is not None, upper
        assert lower <= upper + TOLERANCE * max(1.0, abs(upper)), (lower, upper)
