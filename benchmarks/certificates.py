"""How good the fast engine's proofs and plans are: against the LP that HiGHS solves, and against the optimum.

    python -m benchmarks.certificates --lp         results/bounds.md: the bound and the LP, and the seconds of both
    python -m benchmarks.certificates --optimum    results/optimum.md: gaps to the optimum of many small instances
    python -m benchmarks.certificates --smoke      both on a few tiny instances, nothing is kept

The seconds of a line are of one run, one after the other on the same machine: the ratios say something.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterator

from benchmarks.common import RESULTS, made_by, write_whole
from benchmarks.exact import seconds_to_build
from benchmarks.sets import Case
from models.domain import Instance
from models.reductions import reduce_starts
from models.starts import all_starts
from planner.engines.base import Limits
from planner.engines.fast.certificate import Certificate
from planner.engines.fast.prover import Prover
from planner.engines.fast.table import Table
from planner.engines.search import Search
from planner.generate import generate
from planner.horizon import num_slots_of
from planner.solve import solve

NEAR = 0.001
"""Of the LP's value: as near as the bound must come."""
LP_CASES = tuple(
    Case(family, jobs, nodes, load, False, 1)
    for family, jobs, nodes, load in (
        ("mixed", 50, 40, 0.5), ("busy", 50, 40, 1.1), ("headline", 50, 300, 0.8), ("busy", 200, 100, 1.1),
        ("busy", 500, 300, 0.8),
    )
)  # fmt: skip
SMALL = ("compute", "mixed", "contended", "busy", "headline")
EXACT_GAP, EXACT_S = 1e-4, 20.0


def lp_of_highs(instance: Instance, time_limit_s: float) -> tuple[float | None, float, float]:
    """The LP's value (None: not solved in time), and the seconds to build the model and to solve it."""
    _, _, build_s, compiled = seconds_to_build(instance)
    begun = time.perf_counter()
    answer = compiled.solve(time_limit_s=time_limit_s, gap=0, seed=0, threads=2, relaxed=True)
    return answer.objective, build_s, time.perf_counter() - begun


def bound_of_fast(instance: Instance, target: float, time_limit_s: float) -> tuple[float, float]:
    """The bound and the seconds from the instance until it is at least `target`, or until the time is over."""
    begun = time.perf_counter()
    starts = all_starts(instance, num_slots_of(instance))
    certificate = Certificate(Table.of(reduce_starts(starts)))
    prover = Prover(certificate, Search(starts, Limits(time_limit_s=time_limit_s)))
    while certificate.bound < target and time.perf_counter() - begun < time_limit_s:
        if not prover.step():
            break
    return certificate.bound, time.perf_counter() - begun


def table_of_bounds(cases: tuple[Case, ...], time_limit_s: float) -> Iterator[str]:
    """One line a case."""
    yield "| instance | LP of HiGHS | build s | LP s | bound of fast | of the LP | s | LP s by these |"
    yield "|---|---|---|---|---|---|---|---|"
    bound_of_fast(cases[0].make(), 0.0, 1.0)  # what is compiled is read
    for case in cases:
        instance = case.make()
        value, build, seconds = lp_of_highs(instance, time_limit_s)
        bound, ours = bound_of_fast(instance, float("inf") if value is None else value * (1 - NEAR), time_limit_s / 4)
        solved = (
            f"{value:.2f} | {build:.1f} | {seconds:.1f}" if value is not None else f"- | {build:.1f} | > {seconds:.0f}"
        )
        part = "-" if value is None else f"{bound / value:.3%}"
        ratio = f"{seconds / ours:.1f}" if value is not None else "-"
        yield f"| {instance.name} | {solved} | {bound:.2f} | {part} | {ours:.2f} | {ratio} |"


def table_of_gaps(number: int, time_limit_s: float) -> Iterator[str]:
    """One line a family: how far plans and bounds are from the optimum, where the exact engine proves it."""
    yield "| family | instances | optimum proven | plan is it | plan above, mean | worst | bound below, mean | worst |"
    yield "|---|---|---|---|---|---|---|---|"
    for family in SMALL:
        above, below = [], []
        for seed in range(1, number + 1):
            instance = generate(family, 4 + seed % 5, 7, None, seed, seed % 2 == 0)
            best = solve(instance, "exact", Limits(time_limit_s=EXACT_S, gap=EXACT_GAP)).plan
            plan = solve(instance, "fast", Limits(time_limit_s=time_limit_s, gap=EXACT_GAP)).plan
            if best.status != "optimal" or best.cost is None or plan.cost is None or plan.dual_bound is None:
                continue
            above.append(max(0.0, plan.cost / best.cost - 1))
            below.append(max(0.0, 1 - plan.dual_bound / best.cost))
        same = sum(gap <= EXACT_GAP for gap in above)
        yield f"| {family} | {number} | {len(above)} | {same} | {_mean_and_worst(above)} | {_mean_and_worst(below)} |"


def _mean_and_worst(gaps: list[float]) -> str:
    return f"{statistics.fmean(gaps):.3%} | {max(gaps):.2%}" if gaps else "- | -"


def main() -> None:
    """Run what the arguments ask for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lp", action="store_true")
    parser.add_argument("--optimum", action="store_true")
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--instances", type=int, default=25, metavar="N", help="small instances of each family")
    parser.add_argument("--time-limit", type=float, default=None, metavar="S", help="of the LP (600), of a plan (2)")
    options = parser.parse_args()
    if options.smoke:
        _kept(None, [*table_of_bounds(LP_CASES[:1], 30.0), *table_of_gaps(2, 0.5)])
        return
    if options.lp:
        limit = options.time_limit or 600.0
        title = (
            f"# The bound and the LP\n\n`python -m benchmarks.certificates --lp --time-limit {limit:g}`: seconds of "
            f"HiGHS on the LP relaxation of the formulation, and of the fast engine from the instance until its bound "
            f"is within {NEAR:.1%} of that value."
        )
        _kept("bounds.md", [f"{title} {made_by()}", "", *_shown(table_of_bounds(LP_CASES, limit)), ""])
    if options.optimum:
        limit = options.time_limit or 2.0
        title = (
            f"# Small instances against the optimum\n\n`python -m benchmarks.certificates --optimum --instances "
            f"{options.instances} --time-limit {limit:g}`: 4 to 8 jobs on 7 nodes, every other one with storage; the "
            f"optimum by the exact engine, to {EXACT_GAP:g}, in {EXACT_S:g} s."
        )
        _kept("optimum.md", [f"{title} {made_by()}", "", *_shown(table_of_gaps(options.instances, limit)), ""])


def _shown(lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        print(line, flush=True)
        yield line


def _kept(name: str | None, lines: list[str]) -> None:
    if name is None:
        print("\n".join(lines))
    else:
        write_whole(RESULTS / name, "\n".join(lines))


if __name__ == "__main__":
    main()
