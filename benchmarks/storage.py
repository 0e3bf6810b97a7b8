"""What storage costs by CBA and by the usual rules: results/storage-costs.md.

    python -m benchmarks.storage --seeds 20     the table
    python -m benchmarks.storage --smoke        a few problems, nothing is kept

Every allocation is recomputed from its fractions; the optimum is proven (`is_proven`), or the case is told as not.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
from collections import defaultdict
from collections.abc import Iterator, Sequence

from benchmarks.common import RESULTS, made_by, write_whole
from benchmarks.mixes import CACHES, Mix
from models.storage.baselines import BASELINES, baseline
from models.storage.cba import allocate

SIZES = (50, 200, 500, 2000)
KINDS = ("mixed", "vision")
TARIFFS = ("list", "power", "doubling")
SAME = 1e-3


Saved = dict[str, float]
"""By rule: what CBA saves of its cost."""


def saved_of(mix: Mix) -> tuple[Saved, bool]:
    """What CBA saves of the cost of each rule that has a plan, and whether the optimum is proven."""
    problem = mix.problem()
    best = allocate(problem)
    cost = best.allocation.cost
    others = {name: baseline(problem, name) for name in BASELINES}
    saved = {name: 1 - cost / other.cost for name, other in others.items() if other is not None and cost > 0}
    return saved, best.is_proven


def table(results: Sequence[tuple[Mix, Saved]], by: str) -> Iterator[str]:
    """For each value of one property, and each rule, how much dearer it is than the optimum."""
    groups: dict[tuple[str, str], list[float]] = defaultdict(list)
    for mix, saved in results:
        for name, part in saved.items():
            groups[str(getattr(mix, by)), name].append(part)
    yield f"| {by} | rule | cases | saved, median | 95 % of cases at most | most | the same (within {SAME:.1%}) |"
    yield "|---|---|---|---|---|---|---|"
    for (value, name), parts in groups.items():
        high = sorted(parts)[min(len(parts) - 1, int(0.95 * len(parts)))]
        same = sum(part <= SAME for part in parts) / len(parts)
        yield (
            f"| {value} | {name} | {len(parts)} | {statistics.median(parts):.2%} | {high:.2%} | {max(parts):.2%} | "
            f"{same:.0%} |"
        )


def main() -> None:
    """Run what the arguments ask for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20, metavar="N", help="mixes of each size and kind")
    parser.add_argument("--smoke", action="store_true", help="a few problems, nothing is kept")
    options = parser.parse_args()
    sizes, seeds = (SIZES[:1], 2) if options.smoke else (SIZES, options.seeds)
    grid = itertools.product(sizes, KINDS, TARIFFS, CACHES, range(1, seeds + 1))
    mixes = [Mix(*values) for values in grid]
    lines = [
        "# Storage cost: CBA and the usual rules",
        "",
        f"`python -m benchmarks.storage --seeds {seeds}`: what CBA saves of each rule's cost (cache and bandwidth, an "
        f"hour), over {len(mixes)} job mixes ({', '.join(map(str, sizes))} GPUs; jobs {', '.join(KINDS)}; tariff "
        f"{', '.join(TARIFFS)}; cache {', '.join(CACHES)}). {made_by()}",
    ]
    found = [(mix, *saved_of(mix)) for mix in mixes]
    lines += ["", f"Optimum proven in {sum(is_proven for *_, is_proven in found)} of {len(found)} cases."]
    for by in ("tariff", "cache", "gpus"):
        lines += ["", f"## By {by}", "", *table([(mix, saved) for mix, saved, _ in found], by)]
    text = "\n".join([*lines, ""])
    if options.smoke:
        print(text)
    else:
        write_whole(RESULTS / "storage-costs.md", text)


if __name__ == "__main__":
    main()
