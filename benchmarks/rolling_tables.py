"""The tables of results/rolling.md, from the records of `rolling`."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

Record = dict[str, Any]
OURS = "fast"
LISTS = ("fifo", "edf", "priority")
GROUP = ("set", "workload", "nodes", "small")
BY_POLICY = ("reference", "fifty", "small", "traces", "large")
"""Sets that are shown policy by policy."""
WORSE = 1.01
"""A policy is not to be passed by another by more than this in the mean of a family."""


def tables_of(records: Sequence[Record], bounds: dict[str, float], made: str) -> list[str]:
    """The lines of the document; `bounds` are those known by instance hash, besides that of every job alone."""
    done = [record | {"bound": bound_of(record, bounds)} for record in records if record["cost"] is not None]
    commits = ", ".join(sorted({record["commit"] for record in done}))
    lines = [
        "# Rolling horizon",
        "",
        "Every policy in the same world, of which it learns job by job; free moves where nothing else is said. "
        "`python -m benchmarks.rolling` makes the runs, each replayed by code of its own, and these tables.",
        "",
        f"{made} {len(done)} runs, of commits {commits}.",
        "",
        "Costs are means over the instances of a family, ± their standard deviation; *over bound* is the mean of cost "
        "/ bound - 1. The bound is the higher of two that are proven: every job alone on unlimited nodes, changed "
        "freely, and one with all arrivals known (`offline.py`).",
        "",
    ]
    families = _grouped([record for record in done if record["set"] in BY_POLICY], GROUP)
    lines += ["## In short", "", *_in_short(families), ""]
    for family, members in families.items():
        lines += [f"## {_title(family)}", "", *_by_policy(members), ""]
    burst, restart = ([record for record in done if record["set"] == name] for name in ("burst", "restart"))
    if burst:
        lines += ["## Bursting over load", "", *_bursting(burst), ""]
    if restart:
        lines += ["## Restarts that take time", "", *_restarts(restart), ""]
    failed = [record for record in records if record["cost"] is None]
    lines += [f"- {record['key']}: {record['note']}" for record in failed]
    return lines


def bound_of(record: Record, bounds: dict[str, float]) -> float:
    """The best bound known for a run's instance."""
    return max(float(record["alone"]), bounds.get(record["hash"], 0.0))


def worse_than(families: dict[tuple[Any, ...], list[Record]]) -> list[str]:
    """Where another policy is better than ours by more than is allowed in the mean of a family."""
    found = []
    for family, members in families.items():
        means = {
            name: _mean(runs, "cost") for name, runs in _by(members, "policy").items() if _are_whole(runs, members)
        }
        found += [
            f"{name} by {means[OURS] / mean - 1:.1%} under {_title(family)}"
            for name, mean in means.items()
            if OURS in means and means[OURS] > WORSE * mean
        ]
    return found


def _in_short(families: dict[tuple[Any, ...], list[Record]]) -> Iterator[str]:
    worse = "; ".join(worse_than(families)) or "none"
    yield f"Policies that are better than `fast` by more than 1 % in the mean of a family: {worse}."
    yield ""
    yield (
        "| family | jobs | over bound | cheaper than the best of FIFO, EDF, priority, one job a node | sharing nodes "
        "| than the best of all others | replan median s | p99 | longest |"
    )
    yield f"|---{'|---' * 8}|"
    for family, members in families.items():
        by = _by(members, "policy")
        ours = by.pop(OURS, [])
        if not ours:
            continue
        over = statistics.fmean(run["cost"] / run["bound"] - 1 for run in ours)
        rivals = [[f"{name}_node" for name in LISTS], LISTS, tuple(by)]
        saved = [_saving(ours, [by[name] for name in names if name in by]) for names in rivals]
        replan = [max(run["replan_s"][name] for run in ours) for name in ("median", "p99", "max")]
        yield (
            f"| {_title(family)} | {ours[0]['jobs']} | {over:.2%} | {' | '.join(saved)} "
            f"| {replan[0]:.2f} | {replan[1]:.2f} | {replan[2]:.1f} |"
        )
    yield ""
    yield "Replanning times are the highest of any run; the longest call of a machine's first run compiles the kernels."


def _saving(ours: Sequence[Record], rivals: Sequence[Sequence[Record]]) -> str:
    if not rivals:
        return "-"
    return f"{1 - _mean(ours, 'cost') / min(_mean(runs, 'cost') for runs in rivals):.1%}"


def _by_policy(members: Sequence[Record]) -> Iterator[str]:
    yield (
        "| policy | runs | total | run cost | penalty | over bound | worst | ours cheaper by | late jobs | moves "
        "| replan median s | p99 | longest |"
    )
    yield f"|---{'|---' * 12}|"
    ours = {record["hash"]: record["cost"] for record in members if record["policy"] == OURS and record["elastic"]}
    for (policy, elastic), runs in _grouped(members, ("policy", "elastic")).items():
        over = [run["cost"] / run["bound"] - 1 for run in runs]
        both = [run for run in runs if run["hash"] in ours]
        saved = 1 - sum(ours[run["hash"]] for run in both) / sum(run["cost"] for run in both) if both else None
        replan = [run["replan_s"] for run in runs]
        yield (
            f"| {policy}{'' if elastic else ', one mode a job'} | {len(runs)} | {_spread(runs, 'cost')} "
            f"| {_mean(runs, 'run_cost'):,.0f} | {_mean(runs, 'penalty'):,.0f} | {statistics.fmean(over):.2%} "
            f"| {max(over):.2%} | {'-' if saved is None else f'{saved:.1%}'} "
            f"| {_mean(runs, 'late'):.1f} of {runs[0]['jobs']} | {_mean(runs, 'moves'):.0f} "
            f"| {statistics.median(r['median'] for r in replan):.3f} | {max(r['p99'] for r in replan):.3f} "
            f"| {max(r['max'] for r in replan):.2f} |"
        )


def _bursting(runs: Sequence[Record]) -> Iterator[str]:
    yield (
        "The published workload on 10 nodes, with as many rented ones at 1.5 times the price or without; `relaxed` "
        "arrivals, so many times as often. *Saves* is by how much the mean is lower with them."
    )
    yield ""
    yield (
        "| arrivals | fast, owned only | with rented | saves | edf, owned only | with rented | saves "
        "| burst_after_waiting | cheapest_cloud |"
    )
    yield f"|---{'|---' * 8}|"
    for (pace,), members in _grouped(runs, ("pace",)).items():
        by = _grouped(members, ("policy", "burst"))
        cells = []
        for name in (OURS, "edf"):
            without, with_rented = by.get((name, False)), by.get((name, True))
            if not without or not with_rented:
                cells += ["-"] * 3
                continue
            saves = 1 - _mean(with_rented, "cost") / _mean(without, "cost")
            cells += [_spread(without, "cost"), _spread(with_rented, "cost"), f"{saves:.1%}"]
        for name in ("burst_after_waiting", "cheapest_cloud"):
            cells.append(_spread(by[name, True], "cost") if (name, True) in by else "-")
        yield f"| {pace:g} | {' | '.join(cells)} |"


def _restarts(runs: Sequence[Record]) -> Iterator[str]:
    minutes = sorted({run["restart_min"] for run in runs})
    yield f"| arrivals | policy | {' | '.join(f'{m:g} min: total | over bound | moves' for m in minutes)} |"
    yield f"|---|---{'|---' * (3 * len(minutes))}|"
    for (workload, policy, elastic), members in _grouped(runs, ("workload", "policy", "elastic")).items():
        cells = []
        for m in minutes:
            those = [run for run in members if run["restart_min"] == m]
            if not those:
                cells += ["-"] * 3
                continue
            over = statistics.fmean(run["cost"] / run["bound"] - 1 for run in those)
            cells += [_spread(those, "cost"), f"{over:.1%}", f"{_mean(those, 'moves'):.0f}"]
        yield f"| {workload} | {policy}{'' if elastic else ', one mode a job'} | {' | '.join(cells)} |"


def _grouped(records: Iterable[Record], names: Sequence[str]) -> dict[tuple[Any, ...], list[Record]]:
    """In the order in which they were run."""
    found: dict[tuple[Any, ...], list[Record]] = defaultdict(list)
    for record in records:
        found[tuple(record[name] for name in names)].append(record)
    return dict(found)


def _by(records: Iterable[Record], name: str) -> dict[str, list[Record]]:
    """By one field; of our policy the runs in which modes may change."""
    return {key[0]: runs for key, runs in _grouped([r for r in records if r["elastic"]], (name,)).items()}


def _are_whole(runs: Sequence[Record], members: Sequence[Record]) -> bool:
    """Whether there is a run for every instance of the family."""
    return {run["hash"] for run in runs} == {run["hash"] for run in members}


def _mean(runs: Sequence[Record], name: str) -> float:
    return statistics.fmean(float(run[name]) for run in runs)


def _spread(runs: Sequence[Record], name: str) -> str:
    values = [float(run[name]) for run in runs]
    return f"{statistics.fmean(values):,.0f} ± {statistics.stdev(values) if len(values) > 1 else 0:,.0f}"


def _title(family: tuple[Any, ...]) -> str:
    name, workload, nodes, small = family
    of = f", {small:.0%} of the jobs small" if small else ""
    return f"{workload} arrivals, {nodes} nodes{of}" if name != "traces" else f"trace {workload}, {nodes} nodes"
