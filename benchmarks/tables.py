"""Recorded runs as Markdown: medians and the worst over seeds, by group of instances and solver."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from benchmarks.running import GAPS, first_within

Record = dict[str, Any]
GROUP = ("family", "jobs", "nodes", "load", "storage", "time_limit_s")


def tables_of(records: Iterable[Record], best_bounds: dict[str, float]) -> list[str]:
    """Three tables for each group: quality, seconds to proven gaps, seconds until near the best bound known.

    `best_bounds` are those known by instance hash; those of the records count too.
    """
    groups: dict[tuple[Any, ...], list[Record]] = defaultdict(list)
    bounds = dict(best_bounds)
    for record in records:
        groups[tuple(record[name] for name in GROUP)].append(record)
        bound = record["bound"]
        if bound is not None:
            bounds[record["hash"]] = max(bounds.get(record["hash"], bound), bound)
    lines: list[str] = []
    for (family, jobs, nodes, load, storage, seconds), members in sorted(groups.items()):
        title = f"{family}, {jobs} jobs x {nodes} nodes, load {load:g}, {'with' if storage else 'without'} storage"
        title += f", {seconds:g} s"
        lines += [f"## {title}", "", *_quality(members, bounds), "", *_seconds(members, bounds), ""]
    return lines


def _by_solver(members: Sequence[Record]) -> dict[str, list[Record]]:
    """In the order in which they were run."""
    found: dict[str, list[Record]] = {}
    for record in members:
        found.setdefault(record["solver"], []).append(record)
    return found


def _quality(members: Sequence[Record], bounds: dict[str, float]) -> list[str]:
    best = {
        h: min((m["cost"] for m in members if m["hash"] == h and m["cost"] is not None), default=None)
        for h in {m["hash"] for m in members}
    }
    lines = [
        "| solver | plans | wall s | cost over best | worst | own gap | worst | over best bound | worst "
        "| GPUs in use | burst | late |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for solver, runs in _by_solver(members).items():
        done = [run for run in runs if run["cost"] is not None]
        over = [run["cost"] / best[run["hash"]] - 1 for run in done if best[run["hash"]]]
        gaps = [run["gap"] for run in runs if run["gap"] is not None]
        above = [_above(run, bounds) for run in done]
        lines.append(
            f"| {solver} | {len(done)} of {len(runs)} | {_median([run['wall_s'] for run in runs], '.2f')} "
            f"| {_median(over, '.2%')} | {_worst(over, '.2%')} | {_median(gaps, '.2%')} | {_worst(gaps, '.2%')} "
            f"| {_median(above, '.2%')} | {_worst(above, '.2%')} | {_median(_of(done, 'utilisation'), '.0%')} "
            f"| {_median(_of(done, 'burst_share'), '.1%')} | {_median(_of(done, 'late_share'), '.0%')} |"
        )
    return lines


def _seconds(members: Sequence[Record], bounds: dict[str, float]) -> list[str]:
    columns = [f"{gap:.1%}".replace(".0%", "%") for gap in GAPS]
    lines = [
        "Median seconds, and of how many seeds, until a gap is proven by the solver itself, and until its plan is "
        "within it of the best bound that anyone proved:",
        "",
        f"| solver | {' | '.join(f'proven {c}' for c in columns)} | {' | '.join(f'within {c}' for c in columns)} |",
        f"|---{'|---' * (2 * len(GAPS))}|",
    ]
    for solver, runs in _by_solver(members).items():
        proven = [_reached([run["proven_s"][k] for run in runs]) for k in range(len(GAPS))]
        within = [
            _reached([first_within(run["trajectory"], gap, bounds.get(run["hash"], float("-inf"))) for run in runs])
            for gap in GAPS
        ]
        lines.append(f"| {solver} | {' | '.join(proven)} | {' | '.join(within)} |")
    return lines


def _above(run: Record, bounds: dict[str, float]) -> float | None:
    bound = bounds.get(run["hash"])
    return None if bound is None or not run["cost"] else max(0.0, (run["cost"] - bound) / run["cost"])


def _of(runs: Sequence[Record], name: str) -> list[float | None]:
    return [run[name] for run in runs]


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _median(values: Iterable[float | None], how: str) -> str:
    known = _known(values)
    return format(statistics.median(known), how) if known else "-"


def _worst(values: Iterable[float | None], how: str) -> str:
    known = _known(values)
    return format(max(known), how) if known else "-"


def _reached(values: Sequence[float | None]) -> str:
    """The median of those that got there, and how many did."""
    known = _known(values)
    return f"{statistics.median(known):.2f} ({len(known)}/{len(values)})" if known else "-"
