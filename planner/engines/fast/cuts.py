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

from planner.engines.fast.limits import Limits
from planner.engines.fast.table import Table

LEAST_PART = 0.02
"""`f` and `1 - f` are no less than this: beyond, a row says little and is prone to rounding."""


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
        of_kind = np.zeros((len(table.pools.gpus), len(nodes.usable)))
        np.add.at(of_kind, (nodes.pool, nodes.kind), 1.0)
        self.room = of_kind @ nodes.usable
        """Nodes of each pool that can be used in each slot, shape (P, T)."""
        self._none = np.zeros((1, 1))

    def __len__(self) -> int:
        return len(self.cuts)

    def add(self, need: Need, slot: int, wanted: np.ndarray, unit: float = 0.0) -> int:
        """Make the row of a set of jobs, of the second kind beside gangs of `unit` nodes; its index."""
        jobs = self.table.rows.job[need.rows]
        if unit > 0:
            nodes = 0.0
            row = filling_row(jobs, need.nodes, wanted, unit, float(self.room[need.pool, slot]))
        else:
            nodes = 1.0
            row = rounding_row(jobs, need.nodes, wanted)
        self.cuts.append(Cut(need.pool, slot, nodes, *row))
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
