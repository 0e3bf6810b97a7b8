"""The fast engine against the exact one within budgets, on instances small enough to prove: results/welfare-exact.md.

    python -m benchmarks.welfare_exact --seeds 2 --fast 5 --exact 20     the table
    python -m benchmarks.welfare_exact --smoke                           one tiny instance of each kind, nothing is kept

Instances and budgets are those of `welfare`. A plan above the other engine's bound ends the program with exit 1.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial

from benchmarks.common import RESULTS, exit_code, made_by, write_whole
from benchmarks.elastic import Elastic
from benchmarks.welfare import BEYOND, cases_of, is_beyond, ours, spent_freely
from planner.engines.base import Limits

SIZES, NODES = (16, 32), (1, 8)
PARTS = (0.25, 0.5, 0.75)
FREELY_S = 2.0
"""Seconds for what is spent if money counts little."""


@dataclass(frozen=True)
class Pair:
    """Both engines within one budget."""

    case: Elastic
    part: float
    fast: float
    fast_bound: float
    exact: float
    exact_bound: float

    @property
    def bound(self) -> float:
        """No plan is worth more."""
        return min(self.fast_bound, self.exact_bound)

    @property
    def is_proven(self) -> bool:
        """Whether the better of both plans is the best."""
        return max(self.fast, self.exact) >= self.bound * (1 - BEYOND) - BEYOND

    @property
    def short(self) -> float:
        """By which part the fast plan is worth less than the better of both."""
        best = max(self.fast, self.exact)
        return 1 - self.fast / best if best > 0 else 0.0

    @property
    def gap(self) -> float:
        """That the fast engine proves by itself."""
        return 1 - self.fast / self.fast_bound if self.fast_bound > 0 else 0.0

    @property
    def contradiction(self) -> str | None:
        """What cannot be, if it is."""
        for name, worth, bound in (("fast", self.fast, self.exact_bound), ("exact", self.exact, self.fast_bound)):
            if is_beyond(worth, bound):
                return f"{self.case}, {self.part:.0%}: the plan of {name}, {worth!r}, is above the bound of {bound!r}"
        return None


def pairs_of(case: Elastic, fast_s: float, exact_s: float, parts: Sequence[float] = PARTS) -> list[Pair]:
    """Both engines within all budgets."""
    instance, found = case.make(), []
    most = spent_freely(instance, Limits(time_limit_s=FREELY_S, seed=case.seed, threads=1))
    for part in parts:
        fast, exact = (
            ours(instance, part * most, engine, Limits(time_limit_s=seconds, seed=case.seed, threads=1))
            for engine, seconds in (("fast", fast_s), ("exact", exact_s))
        )
        found.append(Pair(case, part, fast["welfare"], fast["bound"], exact["welfare"], exact["bound"]))
    return found


def table(pairs: Sequence[Pair]) -> Iterator[str]:
    """One line for each size and budget."""
    yield (
        "| GPUs a node | GPUs | budget | cases | proven by either | fast as good | short of the better: median | worst "
        "| fast's own gap: median | worst | exact better | fast better |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|---|---|"
    groups: dict[tuple[int, int, float], list[Pair]] = defaultdict(list)
    for pair in pairs:
        groups[pair.case.node, pair.case.gpus, pair.part].append(pair)
    for (node, gpus, part), members in groups.items():
        good = sum(pair.short <= BEYOND for pair in members)
        short, gaps = [pair.short for pair in members], [pair.gap for pair in members]
        yield (
            f"| {node} | {gpus} | {part:.0%} | {len(members)} | {sum(pair.is_proven for pair in members)} "
            f"| {good} | {statistics.median(short):.2%} | {max(short):.2%} "
            f"| {statistics.median(gaps):.2%} | {max(gaps):.2%} | {len(members) - good} "
            f"| {sum(pair.fast > pair.exact * (1 + BEYOND) for pair in members)} |"
        )


def main() -> int:
    """Run what the arguments ask for; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=2, metavar="N", help="instances of each size, node and kind")
    parser.add_argument("--fast", type=float, default=5.0, metavar="S", help="seconds for the fast engine")
    parser.add_argument("--exact", type=float, default=20.0, metavar="S", help="seconds for the exact engine")
    parser.add_argument("--workers", type=int, default=2, metavar="N", help="instances at a time, one thread each")
    parser.add_argument("--smoke", action="store_true", help="one tiny instance of each kind, nothing is kept")
    options = parser.parse_args()
    if options.smoke:
        pairs = [pair for case in cases_of((16,), (8,), 1) for pair in pairs_of(case, 0.5, 1.0, (0.5,))]
        print("\n".join(table(pairs)))
    else:
        work = partial(pairs_of, fast_s=options.fast, exact_s=options.exact)
        with ProcessPoolExecutor(options.workers) as pool:
            pairs = [pair for found in pool.map(work, cases_of(SIZES, NODES, options.seeds)) for pair in found]
        head = (
            "# Fast against exact within budgets\n\n"
            f"`python -m benchmarks.welfare_exact --seeds {options.seeds} --fast {options.fast:g} "
            f"--exact {options.exact:g} --workers {options.workers}`: welfare; each engine on one thread. {made_by()}\n"
        )
        text = "\n".join([head, *table(pairs), ""])
        write_whole(RESULTS / "welfare-exact.md", text)
        print(text)
    return exit_code([pair.contradiction for pair in pairs if pair.contradiction is not None])


if __name__ == "__main__":
    sys.exit(main())
