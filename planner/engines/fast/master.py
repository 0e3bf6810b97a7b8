"""The restricted master: the LP over the starts known so far, in HiGHS, with columns added as they are priced.

The rows are those of the formulation as sums: each job, each limit in each slot, rental, precedence, cached readers.
Its value is no bound (starts are missing); its duals say where to price next.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import highspy
import numpy as np

from planner.engines.fast.bound import Lagrangian
from planner.engines.fast.branches import Branch, Windows
from planner.engines.fast.cut_rows import Basis, CutRows
from planner.engines.fast.limits import Limits
from planner.engines.fast.pricing import Prices, Pricing
from planner.engines.fast.table import Table
from planner.engines.highs import new_highs

Start = tuple[int, int]
"""(row, slot)"""


@dataclass(frozen=True, eq=False)
class Solved:
    """An optimum of the restricted master."""

    value: float
    prices: Prices
    weights: dict[Start, float]
    """The part of each start that is taken, without the zeros."""
    of_job: np.ndarray
    """Price of each job, shape (J,)."""
    of_cached: np.ndarray
    """Price of each variant of each job (for the right to read a cached dataset), shape (J, V)."""
    nodes: np.ndarray
    """Nodes that are on and can be used, shape (P, T)."""


class Master:
    """The LP, warm from one solve to the next."""

    def __init__(self, table: Table, limits: Limits, pricing: Pricing, lagrangian: Lagrangian):
        self.table, self.limits, self.pairs, self.lagrangian = table, limits, pricing.pairs, lagrangian
        self.num_slots = table.num_slots
        self.columns: list[Start] = []
        self.every = self.windows = Windows.of(table)
        self.index: dict[Start, int] = {}
        self._row_names: dict[tuple[Any, ...], int] = {}
        self._lower: list[float] = []
        self._upper: list[float] = []
        self._new: list[tuple[float, float, float, list[int], list[float]]] = []
        self.highs = new_highs()
        for name, value in (("solver", "simplex"), ("simplex_strategy", 4), ("threads", 1), ("presolve", "off")):
            self.highs.setOptionValue(name, value)
        self._add_rows()
        self._highs_rows()
        self._add_static_columns()
        self._first_start = self._count
        self._flush()
        self.cuts = CutRows(self.highs, pricing.cuts, table, len(self._lower), self._first_start, self.node_column)

    # Rows

    def _row(self, lower: float, upper: float) -> int:
        self._lower.append(lower)
        self._upper.append(upper)
        return len(self._lower) - 1

    def _block(self, upper: float | np.ndarray, count: int) -> int:
        first = len(self._lower)
        self._lower += [-math.inf] * count
        self._upper += np.broadcast_to(upper, count).tolist()
        return first

    def _add_rows(self) -> None:
        table, T = self.table, self.num_slots
        self.job_row = self._block(1.0, table.num_jobs)
        self._lower[: table.num_jobs] = [1.0] * table.num_jobs
        self.limit_row = [
            self._block(limit.capacity if limit.kind == "crossing" else 0.0, T) for limit in self.limits.limits
        ]
        self.pair_row = [self._block(0.0, T) for _ in self.pairs]
        pools = table.pools
        used = set(table.rows.pool.tolist())
        self.pools = sorted(used)
        self.block_pools = sorted(self.lagrangian.block_pools)
        self.num_available = self.lagrangian.num_available
        self.num_warm = np.zeros(len(pools.gpus))
        for p, kind, number in self.lagrangian.kinds:
            self.num_warm[p] += number * table.nodes.warm[kind]
        self.paid_row = {p: self._block(0.0, T) for p in self.block_pools}
        self.boot_row = {p: self._block(self.num_available[p], T) for p in self.block_pools if pools.boot[p]}
        self.anew_row = {}
        for p in self.boot_row:
            warm = np.zeros(T)
            warm[0] = self.num_warm[p]
            self.anew_row[p] = self._block(warm, T)
        self.cached_row: dict[tuple[int, int], int] = {}
        rows = table.rows
        variants = self.lagrangian.variant_of_row
        for j, v in sorted(set(zip(rows.job[variants > 0].tolist(), variants[variants > 0].tolist(), strict=True))):
            self.cached_row[j, v] = self._block(0.0, 1)
        finite = np.isfinite(table.storage.cache_capacity)
        sites = {s for s, _ in self.lagrangian.variant}
        self.cache_row = {s: self._block(table.storage.cache_capacity[s], 1) for s in sorted(sites) if finite[s]}
        by_dataset: dict[tuple[int, int], set[int]] = defaultdict(set)
        for d, s, level in zip(rows.dataset.tolist(), rows.site.tolist(), rows.level.tolist(), strict=True):
            if level > 0:
                by_dataset[d, s].add(level)
        self.levels = {key: sorted(levels) for key, levels in sorted(by_dataset.items())}
        self.one_level_row = {key: self._block(1.0, 1) for key, levels in self.levels.items() if len(levels) > 1}

    def _highs_rows(self) -> None:
        count = len(self._lower)
        self.highs.addRows(
            count, np.array(self._lower), np.array(self._upper), 0, np.zeros(count, dtype=np.int32),
            np.zeros(0, dtype=np.int32), np.zeros(0),
        )  # fmt: skip
        self._count = 0

    # Columns

    def _column(self, cost: float, lower: float, upper: float, index: list[int], values: list[float]) -> int:
        self._new.append((cost, lower, upper, index, values))
        self._count += 1
        return self._count - 1

    def _flush(self) -> None:
        if not self._new:
            return
        costs, lower, upper, index, values = zip(*self._new, strict=True)
        lengths = [len(rows) for rows in index]
        self.highs.addCols(
            len(costs), np.array(costs), np.array(lower), np.array(upper), sum(lengths),
            np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int32),
            np.array([row for rows in index for row in rows], dtype=np.int32),
            np.array([value for rows in values for value in rows]),
        )  # fmt: skip
        self._new = []

    def _add_static_columns(self) -> None:
        table, T, pools = self.table, self.num_slots, self.table.pools
        capacity: dict[int, list[tuple[int, float]]] = defaultdict(list)
        for q, limit in enumerate(self.limits.limits):
            if limit.kind == "node":
                capacity[limit.owner].append((self.limit_row[q], limit.capacity))
        self.node_column: dict[int, int] = {}
        for p in self.pools:
            self.node_column[p] = self._count
            is_plain = p not in self.paid_row
            for t in range(T):
                index = [first + t for first, _ in capacity[p]]
                values = [-amount for _, amount in capacity[p]]
                if not is_plain:
                    index.append(self.paid_row[p] + t)
                    values.append(1.0)
                if p in self.boot_row:
                    index.append(self.boot_row[p] + t)
                    values.append(1.0)
                cost = float(pools.price[p, t]) if is_plain else 0.0
                self._column(cost, 0.0, float(self.num_available[p, t]), index, values)
        for p in self.block_pools:
            self._add_rental(p)
        store = table.storage
        self.cache_column: dict[tuple[int, int, int], int] = {}
        for (d, s), levels in self.levels.items():
            for level in levels:
                v = self.lagrangian.variant[s, level]
                index = [row for (j, w), row in self.cached_row.items() if w == v and self._reads(j, d)]
                values = [-1.0] * len(index)
                if s in self.cache_row:
                    index.append(self.cache_row[s])
                    values.append(float(store.cache_size[s, d, level]))
                if (d, s) in self.one_level_row:
                    index.append(self.one_level_row[d, s])
                    values.append(1.0)
                column = self._column(float(store.cache_cost[s, d, level]), 0.0, 1.0, index, values)
                self.cache_column[d, s, level] = column
        self.bandwidth_column = {}
        for q, limit in enumerate(self.limits.limits):
            if limit.kind == "reading":
                index = list(range(self.limit_row[q], self.limit_row[q] + T))
                self.bandwidth_column[limit.owner] = self._column(0.0, 0.0, limit.capacity, index, [-1.0] * T)
        self.artificial = self._count
        self.reject_column: dict[int, int] = {}
        highest = self._dearest_starts()
        for j in range(table.num_jobs):
            self._column(10.0 * highest[j] + 10.0, 0.0, math.inf, [self.job_row + j], [1.0])
            if np.isfinite(table.jobs.reject[j]):
                self.reject_column[j] = self._column(float(table.jobs.reject[j]), 0.0, 1.0, [self.job_row + j], [1.0])

    def _reads(self, j: int, d: int) -> bool:
        instance = self.table.instance
        name = instance.jobs[j].dataset
        return name is not None and instance.dataset_index[name] == d

    def _dearest_starts(self) -> np.ndarray:
        """About what the dearest start of each job costs with the nodes that it takes, alone."""
        rows, pools = self.table.rows, self.table.pools
        d, last = rows.duration, rows.last
        own = rows.fixed + rows.busy * (pools.energy[rows.pool, last + d] - pools.energy[rows.pool, last])
        nodes = rows.num_nodes * (pools.price_sums[rows.pool, last + d] - pools.price_sums[rows.pool, last])
        cost = own + nodes + self.table.jobs.late[rows.job, last + d]
        highest = np.zeros(self.table.num_jobs)
        np.maximum.at(highest, rows.job, cost)
        return highest

    def _add_rental(self, p: int) -> None:
        pools, T = self.table.pools, self.num_slots
        block, boot = int(pools.block[p]), int(pools.boot[p])
        number = float(self.num_available[p].max(initial=0.0))
        for t in range(T):
            index = [self.paid_row[p] + k for k in range(t, min(T, t + block))]
            values = [-1.0] * len(index)
            if p in self.anew_row:
                index.append(self.anew_row[p] + t)
                values.append(1.0)
                if t + block < T:
                    index.append(self.anew_row[p] + t + block)
                    values.append(-1.0)
            cost = float(pools.price_sums[p, t + block] - pools.price_sums[p, t])
            self._column(cost, 0.0, number, index, values)
        for t in range(T) if boot else ():
            booting = range(t, min(T, t + boot))
            index = [self.paid_row[p] + k for k in booting] + [self.boot_row[p] + k for k in booting]
            values = [1.0] * len(index)
            index.append(self.anew_row[p] + t)
            values.append(-1.0)
            self._column(0.0, 0.0, number, index, values)

    def add(self, starts: Iterable[Start]) -> int:
        """Add starts that are not known yet; how many there were."""
        rows, uses, table = self.table.rows, self.limits.uses, self.table
        before: dict[int, list[int]] = defaultdict(list)
        after: dict[int, list[int]] = defaultdict(list)
        for k, (i, j) in enumerate(self.pairs):
            before[j].append(k)
            after[i].append(k)
        added = 0
        for r, t in starts:
            if (r, t) in self.index:
                continue
            self.index[r, t] = len(self.columns)
            self.columns.append((r, t))
            j, p, d = int(rows.job[r]), int(rows.pool[r]), int(rows.duration[r])
            energy = table.pools.energy
            cost = float(rows.fixed[r] + rows.busy[r] * (energy[p, t + d] - energy[p, t]) + table.jobs.late[j, t + d])
            index, values = [self.job_row + j], [1.0]
            for u in range(int(uses.start[r]), int(uses.start[r + 1])):
                first = self.limit_row[int(uses.limit[u])] + t
                index += range(first, first + d)
                values += [float(uses.amount[u])] * d
            for k in before[j]:
                index += range(self.pair_row[k] + t, self.pair_row[k] + self.num_slots)
                values += [1.0] * (self.num_slots - t)
            for k in after[j]:
                index += range(self.pair_row[k] + t + d, self.pair_row[k] + self.num_slots)
                values += [-1.0] * (self.num_slots - t - d)
            v = int(self.lagrangian.variant_of_row[r])
            if v:
                index.append(self.cached_row[j, v])
                values.append(1.0)
            self.cuts.extend(r, t, index, values)
            self._column(cost, 0.0, math.inf if self.windows.hold(r, t) else 0.0, index, values)
            added += 1
        self._flush()
        return added

    # Solving

    def bound_start(self, start: Start, low: float, high: float) -> None:
        """How much of a start may be taken; nothing of one that the branch leaves out, unless it must be."""
        r, t = start
        if low == 0 and not self.windows.hold(r, t):
            high = 0.0
        self.highs.changeColBounds(self._first_start + self.index[start], low, high)
        self.is_new = True

    def enter(self, branch: Branch, basis: Basis | None = None) -> None:
        """Bandwidth lies in the stretches of a branch, at their price; starts outside of its windows are not taken. The
        LP goes on from a basis, if there is one."""
        self.fixed = sum(stretch.fixed for stretch in branch.stretches.values())
        for k, cachable in enumerate(self.lagrangian.cachings.datasets):
            for pair in {pair for choice in cachable.choices for pair in choice}:
                low, high = 0.0, 1.0
                if k in branch.fixed:
                    low = high = float(pair in cachable.choices[branch.fixed[k]])
                self.highs.changeColBounds(self.cache_column[cachable.dataset, *pair], low, high)
        for s, stretch in branch.stretches.items():
            self.highs.changeColCost(self.bandwidth_column[s], stretch.slope)
            self.highs.changeColBounds(self.bandwidth_column[s], stretch.low, stretch.high)
        self._allow(branch.windows or self.every)
        if basis is not None:
            self.cuts.go_to(basis)
        # Other bounds leave the basis dual feasible, new columns leave it primal feasible.
        self.is_new = True

    def cut(self, ids: list[int]) -> None:
        """Add rows on the number of nodes."""
        self.cuts.add(ids, self.columns)
        self.is_new = True

    def _allow(self, windows: Windows) -> None:
        """Starts outside of the windows are not taken."""
        before, self.windows = self.windows, windows
        if before is windows or not self.columns:
            return
        starts = np.array(self.columns, dtype=np.int64)
        r, t = starts[:, 0], starts[:, 1]
        may = windows.hold(r, t)
        some = np.flatnonzero(before.hold(r, t) != may)
        if len(some):
            index = (some + self._first_start).astype(np.int32)
            upper = np.where(may[some], math.inf, 0.0)
            self.highs.changeColsBounds(len(some), index, np.zeros(len(some)), upper)
        for j in before.must_run ^ windows.must_run:
            if j in self.reject_column:
                self.highs.changeColBounds(self.reject_column[j], 0.0, float(j not in windows.must_run))

    def solve(self, time_limit_s: float | None = None) -> Solved | None:
        """Solve the master; None where it is not solved in time."""
        ends = math.inf if time_limit_s is None else self.highs.getRunTime() + max(0.0, time_limit_s)
        self.highs.setOptionValue("time_limit", ends)
        self.highs.setOptionValue("simplex_strategy", 1 if self.is_new else 4)
        self.highs.run()
        self.is_new = False
        if self.highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return None
        solution = self.highs.getSolution()
        duals = np.maximum(0.0, -np.array(solution.row_dual))
        values = np.array(solution.col_value)
        T = self.num_slots
        limits = np.array([duals[row : row + T] for row in self.limit_row]).reshape(len(self.limit_row), T)
        pairs = np.array([duals[row : row + T] for row in self.pair_row]).reshape(len(self.pair_row), T)
        cache = np.zeros(len(self.table.storage.hours))
        for s, row in self.cache_row.items():
            cache[s] = duals[row]
        of_cached = np.zeros((self.table.num_jobs, self.lagrangian.num_variants))
        for (j, v), row in self.cached_row.items():
            of_cached[j, v] = duals[row]
        taken = values[self._first_start :]
        nodes = np.zeros(self.num_available.shape)
        for p, column in self.node_column.items():
            nodes[p] = values[column : column + T]
        return Solved(
            float(self.highs.getInfo().objective_function_value) + self.fixed,
            Prices(limits, pairs, cache, self.cuts.prices(duals)),
            {self.columns[k]: float(taken[k]) for k in np.flatnonzero(taken > 1e-7)},
            np.array(solution.row_dual)[self.job_row : self.job_row + self.table.num_jobs],
            of_cached,
            nodes,
        )
