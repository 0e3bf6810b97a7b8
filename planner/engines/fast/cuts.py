"""Mixed-integer rounding rows on nodes: the LP pays for them in parts, and fills them with parts of gangs.

Let `n` be the nodes of a pool that are on and usable in a slot, `x[r] >= 0` what runs of row `r` then, and `w[r]` the
nodes that it takes of one node resource (its use by the capacity of a node). So `n >= sum over r: w[r] x[r]`, and of a
job at most one run is active: `X[j] = sum over its rows: x[r] <= 1`. Take any `u[j] >= 0`, most of them 0, and write
`z[j] = 1 - X[j]`:

    n + sum over j: u[j] z[j] + sum over j, its rows r: (u[j] - w[r]) x[r] >= W,    W = sum over j: u[j]

Everything that is counted here is whole in a plan, so each coefficient `a` may be replaced by

    F(a) = floor(a) + min(1, (a - floor(a)) / f),    f = W - floor(W) > 0,

and the right-hand side by its ceiling (Nemhauser and Wolsey, 1990; complemented as in Marchand and Wolsey, 2001):

    sum over j, its rows r: (F(u[j]) - F(u[j] - w[r])) x[r] - n <= sum over j: F(u[j]) - ceil(W).

`F` is continuous, so rounding errors of `w` move a coefficient by no more than they are, times 1 / f.

The second kind of row knows only that `n <= N`, the nodes that there are: where four gangs of sixteen nodes fit on 75,
the LP runs 4.69 of them. With the size of a gang `d` as the unit, jobs complemented as above, and at most one run of
each at a time,

    sum over j: -u[j]/d z[j] + sum over j, its rows r: (w[r] - u[j])/d x[r] <= (N - W)/d,

so each coefficient may be replaced by

    G(a) = floor(a) + max(0, a - floor(a) - f) / (1 - f),    f = (N - W)/d - floor((N - W)/d) > 0,

and the right-hand side by its floor. Cover inequalities are among these rows (Marchand and Wolsey, 2001).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from planner.engines.fast.compiled import compiled, kernel
from planner.engines.fast.limits import Limits
from planner.engines.fast.table import Table

LEAST_PART = 0.02
"""`f` and `1 - f` are no less than this: beyond, a row says little and is prone to rounding."""
MOST_JOBS = 30
"""Jobs in the set that a row is made of."""
LEAST_VIOLATION = 0.02
"""Nodes by which the LP must miss a row."""
NEARLY_FULL = 0.98
"""Part of the nodes that is taken in a slot where rows of the second kind are looked for."""
MOST_UNITS, WHOLE_PART, LEAST_WEIGHT = 8, 1e-4, 0.3
"""Sizes of gangs tried as the unit, of those that the LP runs in part; how much of a job that is complemented is
active."""


class Need(NamedTuple):
    """A resource of a pool's nodes: the rows of the pool, and the nodes that each of them takes of it."""

    pool: int
    rows: np.ndarray
    nodes: np.ndarray


class Cut(NamedTuple):
    """sum over rows: coefficient * x - nodes * n <= most, for one pool and slot."""

    pool: int
    slot: int
    nodes: float
    """1, or 0 where the row does not ask how many nodes are on."""
    coefficients: np.ndarray
    """Of each row of the table's rows of the pool, `Cuts.rows[pool]`."""
    most: float


def rounded(a: np.ndarray, part: float) -> np.ndarray:
    """F(a) for f = part."""
    whole = np.floor(a)
    return np.asarray(whole + np.minimum(1.0, (a - whole) / part))


def rounding_row(jobs: np.ndarray, nodes: np.ndarray, wanted: np.ndarray) -> tuple[np.ndarray, float]:
    """The coefficient of each row, and the right-hand side, where row k is one of job `jobs[k]` and takes `nodes[k]`;
    `wanted[j]` is u[j]."""
    total = float(wanted.sum())
    part = total - np.floor(total)
    if not LEAST_PART <= part <= 1 - LEAST_PART:
        raise ValueError(f"{total} nodes are too near a whole number to be rounded")
    coefficients = rounded(wanted[jobs], part) - rounded(wanted[jobs] - nodes, part)
    some = wanted[wanted > 0]
    return coefficients, float(rounded(some, part).sum()) - float(np.ceil(total))


def filled(a: np.ndarray, part: float) -> np.ndarray:
    """G(a) for f = part."""
    whole = np.floor(a)
    return np.asarray(whole + np.maximum(0.0, a - whole - part) / (1 - part))


def filling_row(
    jobs: np.ndarray, nodes: np.ndarray, wanted: np.ndarray, unit: float, room: float
) -> tuple[np.ndarray, float]:
    """The same for the second kind, of gangs of `unit` nodes where there are `room`."""
    left = (room - float(wanted.sum())) / unit
    part = left - np.floor(left)
    if not LEAST_PART <= part <= 1 - LEAST_PART:
        raise ValueError(f"{left} gangs are too near a whole number to be rounded")
    coefficients = filled((nodes - wanted[jobs]) / unit, part) - filled(-wanted[jobs] / unit, part)
    some = wanted[wanted > 0]
    return coefficients, float(np.floor(left)) - float(filled(-some / unit, part).sum())


class Cuts:
    """All rows made so far. A price is put on each; prices of those that are made later are 0."""

    def __init__(self, table: Table, limits: Limits):
        self.table = table
        self.cuts: list[Cut] = []
        self.rows = [np.flatnonzero(table.rows.pool == p) for p in range(len(table.pools.gpus))]
        self.needs = []
        amount = np.zeros(len(table.rows.job))
        of_use = np.repeat(np.arange(len(amount)), np.diff(limits.uses.start))
        for q, limit in enumerate(limits.limits):
            if limit.kind == "node":
                mine = limits.uses.limit == q
                amount[:] = 0.0
                amount[of_use[mine]] = limits.uses.amount[mine]
                self.needs.append(
                    Need(limit.owner, self.rows[limit.owner], amount[self.rows[limit.owner]] / limit.capacity)
                )
        nodes = table.nodes
        self.room = np.zeros((len(table.pools.gpus), table.num_slots))
        np.add.at(self.room, nodes.pool, nodes.usable[nodes.kind])
        self._none = np.zeros((1, 1))

    def __len__(self) -> int:
        return len(self.cuts)

    def add(self, need: Need, slot: int, wanted: np.ndarray) -> int:
        """Make the row of a set of jobs; its index."""
        coefficients, most = rounding_row(self.table.rows.job[need.rows], need.nodes, wanted)
        self.cuts.append(Cut(need.pool, slot, 1.0, coefficients, most))
        return len(self.cuts) - 1

    def add_filling(self, need: Need, slot: int, wanted: np.ndarray, unit: float) -> int:
        """Make the row of a set of jobs beside gangs of so many nodes; its index."""
        room = float(self.room[need.pool, slot])
        coefficients, most = filling_row(self.table.rows.job[need.rows], need.nodes, wanted, unit, room)
        self.cuts.append(Cut(need.pool, slot, 0.0, coefficients, most))
        return len(self.cuts) - 1

    def surcharge(self, prices: np.ndarray) -> np.ndarray:
        """Prefix sums over slots of what a run of each row pays for all rows made here, shape (R, T + 1); (1, 1) where
        it is nothing."""
        paid = np.flatnonzero(prices)
        if not len(paid):
            return self._none
        sums = np.zeros((len(self.table.rows.job), self.table.num_slots + 1))
        for c in paid.tolist():
            cut = self.cuts[c]
            sums[self.rows[cut.pool], cut.slot + 1] += prices[c] * cut.coefficients
        return np.asarray(np.cumsum(sums, axis=1, out=sums))

    def earnings(self, prices: np.ndarray) -> np.ndarray:
        """What a node of each pool earns in each slot by being on, shape (P, T)."""
        earned = np.zeros((len(self.rows), self.table.num_slots))
        for c in np.flatnonzero(prices).tolist():
            cut = self.cuts[c]
            earned[cut.pool, cut.slot] += prices[c] * cut.nodes
        return earned

    def gain(self, prices: np.ndarray) -> np.ndarray:
        """What each priced row adds to the Lagrangian by its right-hand side."""
        return np.array([-prices[c] * self.cuts[c].most for c in np.flatnonzero(prices).tolist()])

    def separate(self, weights: dict[tuple[int, int], float], nodes: np.ndarray, most: int) -> list[int]:
        """Make the rows that an LP solution misses by most, by what the nodes cost that it misses; their indices.

        `weights` are the parts of starts, `nodes` those that are on, shape (P, T). Tried are sets of the jobs that are
        most surely active in a slot.
        """
        rows, T = self.table.rows, self.table.num_slots
        active: dict[int, np.ndarray] = {}
        for (r, t), weight in weights.items():
            active.setdefault(r, np.zeros(T))[t : t + int(rows.duration[r])] += weight
        found: list[tuple[float, int, int, float, np.ndarray]] = []
        for k, need in enumerate(self.needs):
            some = np.array(
                [i for i, r in enumerate(need.rows.tolist()) if r in active and need.nodes[i] > 0], dtype=np.int64
            )
            if not len(some):
                continue
            by_slot = np.array([active[r] for r in need.rows[some].tolist()])
            jobs, local = np.unique(rows.job[need.rows[some]], return_inverse=True)
            local, price = local.astype(np.int64), self.table.pools.price[need.pool]
            missed, wanted, unit = np.zeros(T), np.zeros((T, len(jobs))), np.zeros(T)
            _separate(local, need.nodes[some], by_slot, nodes[need.pool], missed, wanted)
            found += self._worst(k, jobs, missed, wanted, unit, price)
            missed[:], wanted[:] = 0.0, 0.0
            _separate_filling(local, need.nodes[some], by_slot, self.room[need.pool], missed, wanted, unit)
            found += self._worst(k, jobs, missed * unit, wanted, unit, price)
        found.sort(key=lambda entry: entry[:3])
        return [
            self.add_filling(self.needs[k], t, wanted, unit) if unit > 0 else self.add(self.needs[k], t, wanted)
            for _, k, t, unit, wanted in found[:most]
        ]

    def _worst(
        self, k: int, jobs: np.ndarray, missed: np.ndarray, wanted: np.ndarray, unit: np.ndarray, price: np.ndarray
    ) -> list[tuple[float, int, int, float, np.ndarray]]:
        found = []
        for t in np.flatnonzero(missed > LEAST_VIOLATION).tolist():
            of_all = np.zeros(self.table.num_jobs)
            of_all[jobs] = wanted[t]
            found.append((-float(missed[t] * price[t]), k, t, float(unit[t]), of_all))
        return found


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
        weight, heaviest, size = np.zeros(num_jobs), np.zeros(num_jobs), np.zeros(num_jobs)
        for k in range(num_rows):
            x = active[k, t]
            weight[job[k]] += x
            if x > heaviest[job[k]]:
                heaviest[job[k]], size[job[k]] = x, need[k]
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
        weight, heaviest, size = np.zeros(num_jobs), np.zeros(num_jobs), np.zeros(num_jobs)
        used = 0.0
        for k in range(num_rows):
            x = active[k, t]
            used += x * need[k]
            weight[job[k]] += x
            if x > heaviest[job[k]]:
                heaviest[job[k]], size[job[k]] = x, need[k]
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
