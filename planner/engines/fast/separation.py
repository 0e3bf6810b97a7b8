"""Which rows of `cuts.py` an LP solution misses: tried for sets of the jobs that are most surely active in a slot."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from planner.engines.fast.compiled import compiled, kernel
from planner.engines.fast.cuts import LEAST_PART, Cuts

MOST_JOBS = 30
"""Jobs in the set that a row is made of."""
LEAST_VIOLATION = 0.02
"""Nodes by which the LP must miss a row."""
NEARLY_FULL = 0.98
"""Part of the nodes that is taken in a slot where rows of the second kind are looked for."""
MOST_UNITS, WHOLE_PART, LEAST_WEIGHT = 8, 1e-4, 0.3
"""Sizes of gangs tried as the unit, of those that the LP runs in part; how much of a job that is complemented is
active."""


class Missed(NamedTuple):
    """A row that an LP solution misses."""

    worth: float
    """Less than nothing: what the nodes cost that it misses."""
    need: int
    """Index in `Cuts.needs`."""
    slot: int
    unit: float
    """Of rows of the second kind, else 0."""
    wanted: np.ndarray
    """Of each job, shape (J,)."""


def separate(cuts: Cuts, weights: dict[tuple[int, int], float], nodes: np.ndarray, most: int) -> list[int]:
    """Make the rows that an LP solution misses by most, by what the nodes cost that it misses; their indices.

    `weights` are the parts of starts, `nodes` those that are on, shape (P, T). Tried are sets of the jobs that are
    most surely active in a slot.
    """
    rows, T = cuts.table.rows, cuts.table.num_slots
    active: dict[int, np.ndarray] = {}
    for (r, t), weight in weights.items():
        active.setdefault(r, np.zeros(T))[t : t + int(rows.duration[r])] += weight
    found: list[Missed] = []
    for k, need in enumerate(cuts.needs):
        some = np.array(
            [i for i, r in enumerate(need.rows.tolist()) if r in active and need.nodes[i] > 0], dtype=np.int64
        )
        if not len(some):
            continue
        by_slot = np.array([active[r] for r in need.rows[some].tolist()])
        jobs, local = np.unique(rows.job[need.rows[some]], return_inverse=True)
        local, price = local.astype(np.int64), cuts.table.pools.price[need.pool]
        missed, wanted, unit = np.zeros(T), np.zeros((T, len(jobs))), np.zeros(T)
        _separate(local, need.nodes[some], by_slot, nodes[need.pool], missed, wanted)
        found += _worst(cuts, k, jobs, missed, wanted, unit, price)
        missed[:], wanted[:] = 0.0, 0.0
        _separate_filling(local, need.nodes[some], by_slot, cuts.room[need.pool], missed, wanted, unit)
        found += _worst(cuts, k, jobs, missed * unit, wanted, unit, price)
    found.sort(key=lambda row: (row.worth, row.need, row.slot, row.unit))
    return [cuts.add(cuts.needs[row.need], row.slot, row.wanted, row.unit) for row in found[:most]]


def _worst(
    cuts: Cuts, k: int, jobs: np.ndarray, missed: np.ndarray, wanted: np.ndarray, unit: np.ndarray, price: np.ndarray
) -> list[Missed]:
    """The rows of a need that are missed by much, from those of each slot; `jobs` are those that `wanted` counts."""
    found = []
    for t in np.flatnonzero(missed > LEAST_VIOLATION).tolist():
        of_all = np.zeros(cuts.table.num_jobs)
        of_all[jobs] = wanted[t]
        found.append(Missed(-float(missed[t] * price[t]), k, t, float(unit[t]), of_all))
    return found


@kernel
def _weigh(job: np.ndarray, need: np.ndarray, active: np.ndarray, weight: np.ndarray, size: np.ndarray) -> float:
    """How much of each job is active, and what the run takes of which most is; what is taken in all."""
    heaviest, used = np.zeros(len(weight)), 0.0
    for k in range(len(job)):
        x = active[k]
        used += x * need[k]
        weight[job[k]] += x
        if x > heaviest[job[k]]:
            heaviest[job[k]], size[job[k]] = x, need[k]
    return used


@kernel
def _rounded(a: float, part: float) -> float:
    """F(a) for f = part, as `rounded`."""
    whole = np.floor(a)
    return float(whole + min(1.0, (a - whole) / part))


@compiled
def _separate(
    job: np.ndarray, need: np.ndarray, active: np.ndarray, nodes: np.ndarray, missed: np.ndarray, wanted: np.ndarray
) -> None:
    """For each slot the set of jobs whose row is missed by most, as what each job wants; rows are those of the LP's
    support, jobs counted among them."""
    num_jobs, num_rows = wanted.shape[1], len(job)
    for t in range(len(nodes)):
        weight, size = np.zeros(num_jobs), np.zeros(num_jobs)
        _weigh(job, need, active[:, t], weight, size)
        order = np.argsort(-weight)
        chosen = np.zeros(num_jobs)
        total = 0.0
        best = 0
        for m in range(min(num_jobs, MOST_JOBS)):
            j = order[m]
            if weight[j] < 1e-6:
                break
            chosen[j] = size[j]
            total += size[j]
            part = total - np.floor(total)
            if part < LEAST_PART or part > 1 - LEAST_PART:
                continue
            value = np.ceil(total) - nodes[t]
            for i in range(m + 1):
                value -= _rounded(chosen[order[i]], part)
            for k in range(num_rows):
                if active[k, t] > 0:
                    u = chosen[job[k]]
                    value += (_rounded(u, part) - _rounded(u - need[k], part)) * active[k, t]
            if value > missed[t]:
                missed[t], best = value, m + 1
        for i in range(best):
            wanted[t, order[i]] = size[order[i]]


@kernel
def _filled(a: float, part: float) -> float:
    """G(a) for f = part, as `filled`."""
    whole = np.floor(a)
    return float(whole + max(0.0, a - whole - part) / (1 - part))


@compiled
def _separate_filling(
    job: np.ndarray,
    need: np.ndarray,
    active: np.ndarray,
    room: np.ndarray,
    missed: np.ndarray,
    wanted: np.ndarray,
    unit: np.ndarray,
) -> None:
    """The same for rows of the second kind, and the unit of each."""
    num_jobs, num_rows = wanted.shape[1], len(job)
    for t in range(len(room)):
        weight, size = np.zeros(num_jobs), np.zeros(num_jobs)
        used = _weigh(job, need, active[:, t], weight, size)
        if used < NEARLY_FULL * room[t]:
            continue
        order = np.argsort(-weight)
        units = np.zeros(MOST_UNITS)
        num_units = 0
        for k in np.argsort(-need):
            is_new = num_units == 0 or units[num_units - 1] != need[k]
            if is_new and num_units < MOST_UNITS and WHOLE_PART < active[k, t] < 1 - WHOLE_PART:
                units[num_units] = need[k]
                num_units += 1
        best = 0
        for d in units[:num_units]:
            chosen = np.zeros(num_jobs)
            total = 0.0
            for m in range(min(num_jobs, MOST_JOBS) + 1):
                if m > 0:
                    j = order[m - 1]
                    if weight[j] < LEAST_WEIGHT:
                        break
                    chosen[j] = size[j]
                    total += size[j]
                left = (room[t] - total) / d
                part = left - np.floor(left)
                if part < LEAST_PART or part > 1 - LEAST_PART:
                    continue
                value = -np.floor(left)
                for i in range(m):
                    value += _filled(-chosen[order[i]] / d, part)
                for k in range(num_rows):
                    if active[k, t] > 0:
                        u = chosen[job[k]]
                        value += (_filled((need[k] - u) / d, part) - _filled(-u / d, part)) * active[k, t]
                if value > missed[t]:
                    missed[t], unit[t], best = value, d, m
        for i in range(best):
            wanted[t, order[i]] = size[order[i]]
