"""Where the LP of a branch is fractional, and how the branch may be split there: a job runs in some of its rows or not,
or starts by some slot or not."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Literal

import numpy as np

from planner.engines.fast.table import Table

WHOLE = 1e-4
"""A part below this is none."""
EVEN = 0.3
"""What an even split counts beside what the parts differ by in cost."""
Kind = Literal["pool", "size", "slot"]


@dataclass(frozen=True, eq=False)
class Split:
    """A job starts in one of some rows and by some slot, or it does not."""

    kind: Kind
    job: int
    rows: np.ndarray
    """Its rows that count."""
    others: np.ndarray
    """Its other rows."""
    until: int
    """The last slot that counts; where it is not the last of all, `rows` are all of the job's."""
    score: float
    """What the split promises, in money."""


def splits_of(table: Table, weights: dict[tuple[int, int], float]) -> list[Split]:
    """All that an LP solution offers, the most promising first.

    A job spread over pools, or over sizes, may run in the heaviest of them or not; one spread over slots may start by
    the slot that parts it most evenly or not. A split promises what it costs to move from the mean of the parts to each
    of them, and a little for being even.
    """
    rows = table.rows
    of_job: dict[int, dict[tuple[int, int], float]] = defaultdict(dict)
    for (r, t), weight in sorted(weights.items()):
        if weight > WHOLE:
            of_job[int(rows.job[r])][r, t] = weight
    size = rows.pool.astype(np.int64) * (int(rows.width.max(initial=0)) + 1) + rows.width
    found: list[Split] = []
    for j, parts in of_job.items():
        if max(parts.values()) > 1 - WHOLE:
            continue
        cost = {(r, t): own_cost(table, r, t) for r, t in parts}
        pools = {int(rows.pool[r]) for r, _ in parts}
        if len(pools) > 1:
            found.append(_by_rows(table, "pool", j, parts, cost, rows.pool))
        if len({int(size[r]) for r, _ in parts}) > len(pools):
            found.append(_by_rows(table, "size", j, parts, cost, size))
        if len({t for _, t in parts}) > 1:
            found.append(_by_slot(table, j, parts, cost))
    return sorted(found, key=lambda split: (-split.score, split.job))


def _by_rows(
    table: Table,
    kind: Kind,
    j: int,
    parts: dict[tuple[int, int], float],
    cost: dict[tuple[int, int], float],
    group: np.ndarray,
) -> Split:
    phi: dict[int, float] = defaultdict(float)
    paid: dict[int, float] = defaultdict(float)
    for (r, t), weight in parts.items():
        phi[int(group[r])] += weight
        paid[int(group[r])] += weight * cost[r, t]
    heaviest = max(phi, key=lambda g: (phi[g], -g))
    mean = sum(paid.values()) / sum(phi.values())
    differ = sum(abs(paid[g] - phi[g] * mean) for g in phi)
    first, last = int(table.jobs.row_start[j]), int(table.jobs.row_start[j + 1])
    rows = first + np.flatnonzero(group[first:last] == heaviest)
    score = differ + EVEN * max(cost.values()) * min(phi[heaviest], max(0.0, 1 - phi[heaviest]))
    others = first + np.flatnonzero(group[first:last] != heaviest)
    return Split(kind, j, rows, others, table.num_slots, score)


def _by_slot(table: Table, j: int, parts: dict[tuple[int, int], float], cost: dict[tuple[int, int], float]) -> Split:
    slots = sorted({t for _, t in parts})
    by_slot = [sum(weight for (_, t), weight in parts.items() if t == slot) for slot in slots]
    before = np.cumsum(by_slot)[:-1]
    k = int(np.argmin(np.abs(before - 0.5)))
    mean = sum(weight * cost[start] for start, weight in parts.items()) / sum(parts.values())
    differ = sum(weight * abs(cost[start] - mean) for start, weight in parts.items())
    score = differ + EVEN * max(cost.values()) * min(float(before[k]), max(0.0, 1 - float(before[k])))
    rows = np.arange(int(table.jobs.row_start[j]), int(table.jobs.row_start[j + 1]))
    return Split("slot", j, rows, rows[:0], slots[k], score)


def own_cost(table: Table, r: int, t: int) -> float:
    """What a start costs with the parts of nodes that it takes: their price, energy, lateness, and what is fixed."""
    rows, pools = table.rows, table.pools
    p, end = int(rows.pool[r]), t + int(rows.duration[r])
    size = float(pools.node_slices[p])
    nodes = float(rows.width[r]) / size * (pools.price_sums[p, end] - pools.price_sums[p, t])
    energy = rows.busy[r] * (pools.energy[p, end] - pools.energy[p, t])
    return float(rows.fixed[r] + energy + nodes + table.jobs.late[int(rows.job[r]), end])
