"""One door: an instance and limits in, a checked plan out."""

from __future__ import annotations

import importlib.metadata
import platform
import time

from models.check import check
from models.check.report import OPTIMAL_GAP
from models.domain import Instance, Plan
from models.errors import Defect, NoPlan
from models.starts import all_starts
from planner.engines import clock, interrupts
from planner.engines.assemble import plan_of
from planner.engines.base import Limits, Solution, Status
from planner.engines.fast.engine import Fast
from planner.engines.replay import schedule_of
from planner.engines.search import ProvenInfeasible, Search
from planner.horizon import num_slots_of

ENGINES = ("auto", "exact", "fast")

# Beyond this many starts the Pyomo model takes longer to build than people wait; `auto` then stays with the list.
MOST_STARTS = 400_000
# Beyond this many the fast engine makes better plans for most of the time limit than HiGHS does: measured at 20 jobs
# on 14 nodes (benchmarks/two_stage.py), where giving HiGHS the time cost up to 18 %.
FEW_STARTS = 20_000
FAST_SHARE = 0.6
# Moves of the fast engine before the exact one, a job and in all.
FIRST_MOVES, MOST_FIRST_MOVES = 30, 3000


def versions() -> dict[str, str]:
    """Versions of everything that a plan depends on."""
    packages = ("burstplan", "pyomo", "highspy", "numpy", "scipy")
    found = {name: importlib.metadata.version(name) for name in packages}
    return {**found, "python": platform.python_version()}


def solve(
    instance: Instance, engine: str = "auto", limits: Limits | None = None, start: Plan | None = None
) -> Solution:
    """The cheapest plan found within the limits, checked, with its proof; `start` is a plan to begin with, of the same
    jobs on the same nodes, perhaps at other prices.

    Raises Infeasible with its reasons, NoPlan where the limits were too tight, Defect where the program
    contradicts itself. On Ctrl-C the best plan so far comes back with status "interrupted"; without one the
    KeyboardInterrupt goes on.
    """
    limits = limits or Limits()
    if engine not in ENGINES:
        raise ValueError(f"engine {engine!r} is none of {', '.join(ENGINES)}")
    with interrupts.held():
        return _solve(instance, engine, limits, start)


def _solve(instance: Instance, engine: str, limits: Limits, start: Plan | None) -> Solution:
    begun, clock_begun = time.monotonic(), clock.now()
    starts = all_starts(instance, num_slots_of(instance))
    search = Search(starts, limits, clock_begun)
    known = None if start is None else schedule_of(start, starts)
    if known is not None:
        search.offer(known, "fast")
    try:
        fast = Fast(search)
        then_exact = engine == "exact" or (engine == "auto" and starts.num_starts <= MOST_STARTS)
        if engine == "auto" and then_exact and limits.time_limit_s is not None and starts.num_starts > FEW_STARTS:
            fast.solve(until=lambda: search.has_spent(FAST_SHARE))
        else:
            fast.solve(moves=min(MOST_FIRST_MOVES, FIRST_MOVES * len(instance.jobs)) if then_exact else None)
        if then_exact and not search.is_over():
            from planner.engines.exact import solve_exactly  # Pyomo takes a second to import

            solve_exactly(search)
            fast.resume()
    except KeyboardInterrupt:
        if search.schedule is None:
            raise
        search.interrupted = True
    except ProvenInfeasible as verdict:
        from planner.engines.diagnose import explain

        raise explain(instance, verdict.node_pools, limits) from None
    search.interrupted |= interrupts.asked()
    if search.schedule is None:
        raise NoPlan("no plan was found within the limits, and none was proven impossible; raise --time-limit")
    return _finished(instance, search, begun)


def must_pass(instance: Instance, plan: Plan) -> None:
    """Raise Defect where a plan that was made fails its check."""
    report = check(instance, plan)
    if not report.ok:
        lines = "; ".join(violation.message for violation in report.violations[:5])
        raise Defect(f"the plan of engine {plan.engine} fails its check: {lines}")


def _finished(instance: Instance, search: Search, begun: float) -> Solution:
    assert search.schedule is not None
    status: Status = "interrupted" if search.interrupted else "optimal" if search.is_proven(OPTIMAL_GAP) else "feasible"
    plan = plan_of(
        search.schedule,
        status=status,
        engine=search.engine,
        seed=search.limits.seed,
        versions=versions(),
        dual_bound=search.dual_bound,
        packing_cost=search.packing_cost,
    )
    must_pass(instance, plan)
    return Solution(plan, time.monotonic() - begun, tuple(search.notes), tuple(search.trajectory))
