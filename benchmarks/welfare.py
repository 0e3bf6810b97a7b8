"""Welfare and average completion time within a budget: the joint plan and the usual schedulers: results/welfare.md.

    python -m benchmarks.welfare                                     the tables
    python -m benchmarks.welfare --sizes 50,200 --seeds 6 --time-limit 30
    python -m benchmarks.welfare --sizes 2000 --seeds 1 --time-limit 4 --parts 0.25,0.75 --name welfare-2000
    python -m benchmarks.welfare --smoke                             one tiny instance, nothing is kept

Every scheduler (`schedulers`) gets the same budget as the joint plan, each with each of the usual rules of storage.
Budgets are parts of what a plan spends that counts money at a hundredth. All plans pass the checker. The joint plan has
a bound on what any plan within the budget is worth; a rival above it ends the program with exit 1.

Each instance is a line of results/welfare.jsonl, or of another `--name`, written when it is done; one that is there
already, from the same commit, is not run again. For the average completion time see `elastic`: it is welfare there,
turned round.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict
from functools import partial
from typing import Any

from benchmarks.common import RESULTS, append_line, commit, exit_code, floats, made_by, read_lines, write_whole
from benchmarks.elastic import KINDS, Elastic, mean_completion_h
from benchmarks.mixes import CACHES
from benchmarks.schedulers import SCHEDULERS, Scheduler, Shop
from benchmarks.storage import TARIFFS
from benchmarks.welfare_tables import text_of
from models.domain import Instance
from models.goal import Goal, at_price, most_welfare, spent_of
from models.storage.baselines import BASELINES
from planner.engines.base import Limits
from planner.frontier.budget import solve_for
from planner.horizon import num_slots_of
from planner.solve import solve

SIZES, NODES = (50, 200, 500), (1, 8)
SMALL = 200
"""GPUs up to which our plans have the time limit itself; beyond in proportion."""
PARTS = (0.1, 0.25, 0.5, 0.75, 1.0)
"""Budgets, of what is spent if money counts"""
ALL_BUT_FREE = 0.01
"""of itself."""
BEYOND = 1e-6
"""Part by which welfare may lie above a bound by rounding."""

Record = dict[str, Any]


def cases_of(sizes: Iterable[int], nodes: Iterable[int], seeds: int) -> list[Elastic]:
    """Each seed has its tariff and its cache, in turn."""
    tariffs, caches = itertools.cycle(TARIFFS), itertools.cycle(CACHES)
    kept = [(seed, next(tariffs), next(caches)) for seed in range(1, seeds + 1)]
    return [
        Elastic(gpus, kind, tariff, cache, node, seed)
        for gpus, node, kind, (seed, tariff, cache) in itertools.product(sizes, nodes, KINDS, kept)
    ]


def spent_freely(instance: Instance, limits: Limits) -> float:
    """What a plan spends to which money matters little."""
    priced = at_price(instance, "welfare", ALL_BUT_FREE, num_slots_of(instance))
    return spent_of(solve(priced, "fast", limits).plan.costs) / ALL_BUT_FREE


def ours(instance: Instance, budget: float, engine: str, limits: Limits) -> Record:
    """The joint plan within a budget."""
    begun = time.monotonic()
    plan = solve_for(instance, Goal("welfare", budget), engine, limits).plan
    return {
        "welfare": plan.welfare,
        "bound": plan.welfare_bound,
        "gap": plan.gap,
        "spent": spent_of(plan.costs),
        "mean_h": mean_completion_h(instance, plan),
        "wall_s": time.monotonic() - begun,
    }


def rivals(schedulers: Iterable[Scheduler], budget: float) -> Record:
    """Every scheduler with every rule of storage within a budget."""
    found = {}
    for scheduler in schedulers:
        for rule in BASELINES:
            plan = scheduler.within(budget, rule)
            mean_h = mean_completion_h(scheduler.shop.instance, plan)
            came_to = {"welfare": plan.welfare, "spent": spent_of(plan.costs), "mean_h": mean_h}
            found[f"{scheduler.name}+{rule}"] = came_to
    return found


def run(case: Elastic, engine: str, time_limit_s: float, parts: Sequence[float] = PARTS) -> Record:
    """The record of an instance: all budgets, all rivals."""
    instance = case.make()
    limits = Limits(time_limit_s=seconds_of(case, time_limit_s), seed=case.seed, threads=1)
    most, shop = spent_freely(instance, limits), Shop(instance)
    schedulers = [Scheduler(shop, name) for name in SCHEDULERS]
    budgets, rivals_s = [], 0.0
    for part in parts:
        joint = ours(instance, part * most, engine, limits)
        begun = time.monotonic()
        others = rivals(schedulers, part * most)
        rivals_s += time.monotonic() - begun
        budgets.append({"part": part, "budget": part * most, "ours": joint, "rivals": others})
    return {
        **asdict(case),
        "hash": instance.content_hash,
        "jobs": len(instance.jobs),
        "engine": engine,
        "time_limit_s": limits.time_limit_s,
        "most_welfare": most_welfare(instance),
        "rivals_s": rivals_s,
        "budgets": budgets,
    }


def seconds_of(case: Elastic, time_limit_s: float) -> float:
    """The time limit of each plan of ours."""
    return time_limit_s * max(1.0, case.gpus / SMALL)


def is_beyond(welfare: float, bound: float) -> bool:
    """Whether a plan is worth more than what was proven that no plan is worth."""
    return welfare > bound * (1 + BEYOND) + BEYOND


def contradictions(record: Record) -> list[str]:
    """Rivals that are worth more than what we proved that no plan is worth."""
    return [
        f"{record['gpus']} GPUs, seed {record['seed']}, budget {entry['budget']:.2f}: {name} is worth "
        f"{found['welfare']!r}, above the bound of {entry['ours']['bound']!r}"
        for entry in record["budgets"]
        for name, found in entry["rivals"].items()
        if is_beyond(found["welfare"], entry["ours"]["bound"])
    ]


def run_all(cases: Sequence[Elastic], options: argparse.Namespace) -> list[Record]:
    """The records of all cases, those that are kept already included."""
    path, made = RESULTS / f"{options.name}.jsonl", commit()
    kept = {
        _case_of(record): record
        for record in read_lines(path)
        if (record["engine"], record["commit"]) == (options.engine, made)
        and record["time_limit_s"] == seconds_of(_case_of(record), options.time_limit)
        and tuple(entry["part"] for entry in record["budgets"]) == options.parts
    }
    todo = [case for case in cases if case not in kept]
    work = partial(run, engine=options.engine, time_limit_s=options.time_limit, parts=options.parts)
    with ProcessPoolExecutor(options.workers) as pool:
        for future in as_completed([pool.submit(work, case) for case in todo]):
            record = future.result() | {"commit": made}
            append_line(path, record)
            kept[_case_of(record)] = record
            print(_line(record), flush=True)
    return [kept[case] for case in cases]


def _case_of(record: Record) -> Elastic:
    return Elastic(**{name: record[name] for name in Elastic.__dataclass_fields__})


def _line(record: Record) -> str:
    """An instance on a line, for whoever watches."""
    shown = []
    for entry in record["budgets"]:
        best = max(found["welfare"] for found in entry["rivals"].values())
        shown.append(f"{entry['part']:.0%}: {entry['ours']['welfare']:.0f} against {best:.0f}")
    return f"{record['kind']} {record['gpus']} GPUs, node {record['node']}, seed {record['seed']}: {', '.join(shown)}"


def main() -> int:
    """Run what the arguments ask for; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=_numbers, default=SIZES, metavar="N,..", help="GPUs of the clusters")
    parser.add_argument("--nodes", type=_numbers, default=NODES, metavar="N,..", help="GPUs of a node")
    parser.add_argument("--seeds", type=int, default=2, metavar="N", help="instances of each size, node and kind")
    parser.add_argument(
        "--time-limit",
        type=float,
        default=10.0,
        metavar="S",
        help="seconds for each plan of ours up to 200 GPUs, in proportion beyond",
    )
    parser.add_argument("--parts", type=floats, default=PARTS, metavar="P,..", help="budgets, of what is spent freely")
    parser.add_argument("--name", default="welfare", help="of the files in results")
    parser.add_argument("--engine", choices=("fast", "auto"), default="fast")
    parser.add_argument("--workers", type=int, default=2, metavar="N", help="instances at a time, one thread each")
    parser.add_argument("--smoke", action="store_true", help="one tiny instance of each kind, nothing is kept")
    options = parser.parse_args()
    if options.smoke:
        tiny = cases_of((16,), (8,), 1)
        records = [run(case, options.engine, 1.0, (0.25, 1.0)) for case in tiny]
        print(text_of(records, f"`python -m benchmarks.welfare --smoke`. {made_by()}"))
    else:
        records = run_all(cases_of(options.sizes, options.nodes, options.seeds), options)
        sizes, nodes, parts = (",".join(map(str, each)) for each in (options.sizes, options.nodes, options.parts))
        command = f"python -m benchmarks.welfare --sizes {sizes} --nodes {nodes} --seeds {options.seeds} "
        command += f"--time-limit {options.time_limit:g} --parts {parts} --engine {options.engine} "
        command += f"--workers {options.workers} --name {options.name}"
        write_whole(RESULTS / f"{options.name}.md", text_of(records, f"`{command}`. {made_by()}"))
    return exit_code([told for record in records for told in contradictions(record)])


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(",")))


if __name__ == "__main__":
    sys.exit(main())
