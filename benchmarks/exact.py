"""How the exact engine grows: model build time, solve time and gap by size, with the machine and the commit.

    python -m benchmarks.exact                  the table of benchmarks/results/exact.md (about ten minutes)
    python -m benchmarks.exact --smoke          two small sizes, a few seconds
    python -m benchmarks.exact --forms          sums against levels, side by side (see models/formulation/levels.py)

Each line is one instance: its seconds are wall times of this machine and say nothing by themselves; the ratios
within one run do.
"""

from __future__ import annotations

import argparse
import statistics
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.common import RESULTS, made_by, write_whole
from models.domain import Instance
from models.formulation import build_model
from models.formulation.context import Form
from models.reductions import reduce_starts
from models.starts import all_starts
from planner.engines.base import Limits
from planner.engines.highs import Compiled
from planner.generate import generate
from planner.horizon import num_slots_of
from planner.io.instances import read_instance
from planner.solve import solve

QUICKSTART = Path(__file__).parent.parent / "instances" / "quickstart.yaml"


@dataclass(frozen=True)
class Size:
    """A family at a size; `load` is the part of the owned GPU-hours that the jobs would take in their cheapest
    modes."""

    family: str
    jobs: int
    nodes: int
    load: float


SIZES = (
    Size("compute", 10, 7, 0.5),
    Size("compute", 20, 14, 0.5),
    Size("compute", 50, 40, 0.5),
    Size("mixed", 10, 7, 0.5),
    Size("mixed", 20, 14, 0.5),
    Size("mixed", 50, 40, 0.5),
    Size("contended", 10, 7, 0.8),
    Size("contended", 20, 14, 0.8),
    Size("contended", 50, 40, 0.8),
)
SMOKE = (Size("compute", 5, 7, 0.3), Size("mixed", 5, 7, 0.3))


def instance_of(size: Size, seed: int) -> Instance:
    """The generated instance."""
    return generate(size.family, jobs=size.jobs, nodes=size.nodes, load=size.load, seed=seed)


def seconds_to_build(instance: Instance, form: Form = "auto") -> tuple[int, int, float, Compiled]:
    """Starts, nonzeros, and seconds from an instance to arrays in the form that HiGHS takes."""
    begun = time.perf_counter()
    starts = reduce_starts(all_starts(instance, num_slots_of(instance)))
    compiled = Compiled(build_model(starts, form=form))
    return starts.num_starts, len(compiled.lp.a_matrix_.value_), time.perf_counter() - begun, compiled


def table_by_size(sizes: tuple[Size, ...], seeds: int, time_limit_s: float) -> list[str]:
    """Build and solve times and the gap, medians over seeds."""
    lines = [
        "| family | jobs | nodes | starts | nonzeros | build s | solve s | proven to 0.01 % | gap, median | worst |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for size in sizes:
        builds, walls, gaps, counts, nonzeros = [], [], [], [], []
        for seed in range(1, seeds + 1):
            instance = instance_of(size, seed)
            count, entries, seconds, _ = seconds_to_build(instance)
            solution = solve(instance, "exact", Limits(time_limit_s=time_limit_s))
            gap = solution.plan.gap
            builds.append(seconds)
            walls.append(solution.wall_s)
            gaps.append(1.0 if gap is None else gap)
            counts.append(count)
            nonzeros.append(entries)
        proven = sum(gap <= 1e-4 for gap in gaps)
        lines.append(
            f"| {size.family} | {size.jobs} | {size.nodes} | {statistics.median(counts):,.0f} "
            f"| {statistics.median(nonzeros):,.0f} | {statistics.median(builds):.2f} | {statistics.median(walls):.1f} "
            f"| {proven} of {seeds} | {statistics.median(gaps):.2%} | {max(gaps):.2%} |"
        )
        print(lines[-1], flush=True)
    return lines


def table_of_forms(time_limit_s: float) -> list[str]:
    """Sums against levels on the same instances: nonzeros, build time, LP time, and the gap at the same time."""
    lines = [
        "| instance | jobs | nodes | form | nonzeros | build s | LP s | LP value | MIP s | MIP gap |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    quickstart = Size("quickstart", 20, 12, 0.0)
    for size in (quickstart, *(size for size in SIZES if size.family != "compute" and size.jobs != 20)):
        instance = read_instance(QUICKSTART) if size is quickstart else instance_of(size, 1)
        forms: tuple[Form, ...] = ("sums", "levels")
        for form in forms:
            _, entries, build, compiled = seconds_to_build(instance, form)
            begun = time.perf_counter()
            relaxed = compiled.solve(time_limit_s=time_limit_s, gap=0, seed=0, threads=2, relaxed=True)
            lp = time.perf_counter() - begun
            begun = time.perf_counter()
            answer = compiled.solve(time_limit_s=time_limit_s, gap=1e-4, seed=0, threads=2)
            mip = time.perf_counter() - begun
            value = "none" if relaxed.objective is None else f"{relaxed.objective:.4f}"
            gap = "no plan"
            if answer.objective and answer.dual_bound is not None:
                gap = f"{max(0.0, 1 - answer.dual_bound / answer.objective):.2%}"
            lines.append(
                f"| {size.family} | {size.jobs} | {size.nodes} | {form} | {entries:,} | {build:.2f} | {lp:.2f} "
                f"| {value} | {mip:.1f} | {gap} |"
            )
            print(lines[-1], flush=True)
    return lines


def main() -> None:
    """Run what the arguments ask for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="two small sizes, one seed, nothing written")
    parser.add_argument("--forms", action="store_true", help="sums against levels")
    parser.add_argument("--seeds", type=int, default=2, help="instances of each size")
    parser.add_argument("--time-limit", type=float, default=30.0, help="seconds for each solve")
    arguments = parser.parse_args()
    if arguments.smoke:
        table_by_size(SMOKE, 1, 2.0)
        return
    made = made_by()
    if arguments.forms:
        command = f"python -m benchmarks.exact --forms --time-limit {arguments.time_limit:g}"
        title = f"# Two forms of the same rows\n\n`{command}`."
        name, lines = "forms.md", table_of_forms(arguments.time_limit)
    else:
        command = f"python -m benchmarks.exact --seeds {arguments.seeds} --time-limit {arguments.time_limit:g}"
        title = f"# The exact engine by size\n\n`{command}`: medians over {arguments.seeds} seeds."
        name, lines = "exact.md", table_by_size(SIZES, arguments.seeds, arguments.time_limit)
    write_whole(RESULTS / name, "\n".join([f"{title} {made}", "", *lines, ""]))


if __name__ == "__main__":
    main()
