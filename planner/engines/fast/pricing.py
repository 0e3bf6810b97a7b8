"""Pricing: the cheapest start of every row under prices, and all the starts that are nearly as cheap.

The reduced cost of start (r, t) but for the price of its job is

    fixed[r] + E[t + d] - E[t] + begin[j, t] + end[j, t + d],
    E = busy[r] energy[p] + sum over limits q: amount[r, q] sums[q],

with `sums` the prefix sums over slots of the prices of the limits, `begin` and `end` what starting and completing a
job costs (tardiness, lost value, and the prices of precedence). One pass over the slots of a row, whatever the
length of a run; nothing is kept but the best start of each row, so memory does not grow with the starts.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from planner.engines.fast.compiled import compiled, kernel
from planner.engines.fast.limits import Limits, Uses
from planner.engines.fast.table import Rows, Table


class Prices(NamedTuple):
    """Prices of what is limited; all of them non-negative."""

    limits: np.ndarray
    """Money for a unit of each limit in each slot, shape (Q, T)."""
    precedence: np.ndarray
    """Of each pair of predecessor and job in each slot, shape (pairs, T)."""
    cache: np.ndarray
    """Of a GB in the cache of each site, shape (S,)."""

    def towards(self, other: Prices, step: float) -> Prices:
        """A part of the way to other prices."""
        return Prices(*(a + step * (b - a) for a, b in zip(self, other, strict=True)))


class Found(NamedTuple):
    """The cheapest start of each row: its reduced cost but for the price of the job, and its slot."""

    cost: np.ndarray
    slot: np.ndarray


class Pricing:
    """Prices all starts of a table."""

    def __init__(self, table: Table, limits: Limits):
        self.table, self.limits = table, limits
        jobs = table.jobs
        self.pairs = [
            (int(i), j)
            for j in range(table.num_jobs)
            for i in jobs.before[jobs.before_start[j] : jobs.before_start[j + 1]]
        ]
        self._no_begin = np.zeros((1, 1))

    def cheapest(self, prices: Prices) -> Found:
        """The cheapest start of each row."""
        rows = self.table.rows
        cost, slot = np.empty(len(rows.job)), np.empty(len(rows.job), dtype=np.int32)
        _cheapest(*(*self._arguments(prices), cost, slot))
        return Found(cost, slot)

    def spread(
        self, prices: Prices, allowed: np.ndarray, variant: np.ndarray, warmth: float
    ) -> tuple[Found, np.ndarray]:
        """The cheapest start of each row, and what of each limit is used in each slot, shape (Q, T), where every job
        spreads over its nearly cheapest starts in the variants that it is allowed, shape (J, V)."""
        rows = self.table.rows
        cost, slot = np.empty(len(rows.job)), np.empty(len(rows.job), dtype=np.int32)
        usage = np.empty_like(prices.limits)
        more = (self.table.jobs.reject, allowed, variant, warmth, cost, slot, usage)
        _spread(*(*self._arguments(prices), *more))
        return Found(cost, slot), usage

    def nearly_cheapest(self, prices: Prices, at_most: np.ndarray, most: int) -> tuple[np.ndarray, ...]:
        """For each job its starts whose cost is no more than `at_most[j]`, by ascending cost, no more than `most` of
        them: arrays (start of each job, row, slot, cost)."""
        rows, jobs = self.table.rows, self.table.jobs
        begin, end = self._job_prices(prices)
        sums = _sums(prices.limits)
        longest = int((rows.last - rows.first + 1).max(initial=0))
        widest = int(np.diff(jobs.row_start).max(initial=0))
        buffer = np.empty(widest * longest)
        starts, found_rows, found_slots, found_costs = [0], [], [], []
        for j in range(self.table.num_jobs):
            first, last = int(jobs.row_start[j]), int(jobs.row_start[j + 1])
            count = _all_costs(
                first,
                last,
                rows,
                self.limits.uses,
                self.table.pools.energy,
                sums,
                begin,
                end,
                self.table.masks,
                buffer,
                longest,
            )
            costs = buffer[:count].reshape(last - first, longest)
            flat = np.flatnonzero(costs.ravel() <= at_most[j])
            if len(flat) > most:
                flat = flat[np.argpartition(costs.ravel()[flat], most)[:most]]
            flat = flat[np.argsort(costs.ravel()[flat], kind="stable")]
            row = first + flat // longest
            found_rows.append(row)
            found_slots.append(rows.first[row] + flat % longest)
            found_costs.append(costs.ravel()[flat])
            starts.append(starts[-1] + len(flat))
        return (
            np.array(starts, dtype=np.int64),
            np.concatenate(found_rows).astype(np.int32) if found_rows else np.zeros(0, dtype=np.int32),
            np.concatenate(found_slots).astype(np.int32) if found_slots else np.zeros(0, dtype=np.int32),
            np.concatenate(found_costs) if found_costs else np.zeros(0),
        )

    def price_of(self, prices: Prices, rows: np.ndarray, slots: np.ndarray) -> np.ndarray:
        """What some starts cost under prices, shape (n,), as in `nearly_cheapest`."""
        r, uses = self.table.rows, self.limits.uses
        begin, end = self._job_prices(prices)
        sums, energy = _sums(prices.limits), self.table.pools.energy
        j, p, d = r.job[rows], r.pool[rows], r.duration[rows]
        ends = slots + d
        cost = r.fixed[rows] + r.busy[rows] * (energy[p, ends] - energy[p, slots]) + end[j, ends]
        if begin.shape[1] > 1:
            cost = cost + begin[j, slots]
        number = uses.start[rows + 1] - uses.start[rows]
        which = np.repeat(np.arange(len(rows)), number)
        first = np.repeat(uses.start[rows] - np.concatenate([[0], np.cumsum(number)[:-1]]), number)
        entry = first + np.arange(len(which))
        q = uses.limit[entry]
        paid = uses.amount[entry] * (sums[q, ends[which]] - sums[q, slots[which]])
        return np.asarray(cost + np.bincount(which, paid, minlength=len(rows)))

    def _arguments(self, prices: Prices) -> tuple[Any, ...]:
        table = self.table
        begin, end = self._job_prices(prices)
        return (
            table.rows, table.jobs.row_start, table.jobs.twin, self.limits.uses, table.pools.energy,
            _sums(prices.limits), begin, end, table.masks,
        )  # fmt: skip

    def _job_prices(self, prices: Prices) -> tuple[np.ndarray, np.ndarray]:
        """What starting a job in each slot and completing it at each edge costs, shapes (J or 1, T + 1)."""
        late = self.table.jobs.late
        if not self.pairs:
            return self._no_begin, late
        begin, end = np.zeros_like(late), late.copy()
        for k, (i, j) in enumerate(self.pairs):
            # A job that starts in slot t counts in the rows of t and later, a predecessor complete at t likewise.
            tail = np.cumsum(prices.precedence[k][::-1])[::-1]
            begin[j, :-1] += tail
            end[i, :-1] -= tail
        return begin, end


def _sums(prices: np.ndarray) -> np.ndarray:
    sums = np.zeros((prices.shape[0], prices.shape[1] + 1))
    np.cumsum(prices, axis=1, out=sums[:, 1:])
    return sums


@kernel
def _fill(
    r: int,
    rows: Rows,
    uses: Uses,
    energy: np.ndarray,
    sums: np.ndarray,
    level: np.ndarray,
) -> None:
    """What a run of a row pays from slot 0 until each edge."""
    p, busy = rows.pool[r], rows.busy[r]
    for t in range(len(level)):
        level[t] = busy * energy[p, t]
    for k in range(uses.start[r], uses.start[r + 1]):
        q, amount = uses.limit[k], uses.amount[k]
        for t in range(len(level)):
            level[t] += amount * sums[q, t]


@kernel
def _row_costs(
    r: int,
    rows: Rows,
    uses: Uses,
    energy: np.ndarray,
    sums: np.ndarray,
    begin: np.ndarray,
    end: np.ndarray,
    masks: np.ndarray,
    costs: np.ndarray,
) -> None:
    level = np.empty(energy.shape[1])
    _fill(r, rows, uses, energy, sums, level)
    j, d, first, mask = rows.job[r], rows.duration[r], rows.first[r], rows.mask[r]
    has_begin = begin.shape[0] > 1 or begin.shape[1] > 1
    for t in range(first, rows.last[r] + 1):
        cost = rows.fixed[r] + level[t + d] - level[t] + end[j, t + d]
        if has_begin:
            cost += begin[j, t]
        if mask >= 0 and not masks[mask, t]:
            cost = np.inf
        costs[t - first] = cost


@compiled
def _all_costs(
    first_row: int,
    last_row: int,
    rows: Rows,
    uses: Uses,
    energy: np.ndarray,
    sums: np.ndarray,
    begin: np.ndarray,
    end: np.ndarray,
    masks: np.ndarray,
    buffer: np.ndarray,
    stride: int,
) -> int:
    """The costs of all starts of some rows, `stride` places a row, infinite where there is no start."""
    count = (last_row - first_row) * stride
    for k in range(count):
        buffer[k] = np.inf
    for r in range(first_row, last_row):
        at = (r - first_row) * stride
        _row_costs(r, rows, uses, energy, sums, begin, end, masks, buffer[at : at + rows.last[r] - rows.first[r] + 1])
    return count


@kernel
def _cheapest_of_row(
    r: int,
    rows: Rows,
    level: np.ndarray,
    begin: np.ndarray,
    end: np.ndarray,
    masks: np.ndarray,
    best: np.ndarray,
    slot: np.ndarray,
) -> None:
    j, d, mask = rows.job[r], rows.duration[r], rows.mask[r]
    has_begin = begin.shape[1] > 1
    least, where = np.inf, rows.first[r]
    for t in range(rows.first[r], rows.last[r] + 1):
        cost = level[t + d] - level[t] + end[j, t + d]
        if has_begin:
            cost += begin[j, t]
        if cost < least and (mask < 0 or masks[mask, t]):
            least, where = cost, t
    best[r] = least + rows.fixed[r]
    slot[r] = where


@kernel
def _copy_twin(j: int, row_start: np.ndarray, twin: np.ndarray, best: np.ndarray, slot: np.ndarray) -> bool:
    """Whether an identical job was priced before; then its rows are the same."""
    i = twin[j]
    if i == j:
        return False
    offset = row_start[i] - row_start[j]
    for r in range(row_start[j], row_start[j + 1]):
        best[r] = best[r + offset]
        slot[r] = slot[r + offset]
    return True


@compiled
def _cheapest(
    rows: Rows,
    row_start: np.ndarray,
    twin: np.ndarray,
    uses: Uses,
    energy: np.ndarray,
    sums: np.ndarray,
    begin: np.ndarray,
    end: np.ndarray,
    masks: np.ndarray,
    best: np.ndarray,
    slot: np.ndarray,
) -> None:
    level = np.empty(energy.shape[1])
    for j in range(len(row_start) - 1):
        if _copy_twin(j, row_start, twin, best, slot):
            continue
        for r in range(row_start[j], row_start[j + 1]):
            _fill(r, rows, uses, energy, sums, level)
            _cheapest_of_row(r, rows, level, begin, end, masks, best, slot)


@compiled
def _spread(
    rows: Rows,
    row_start: np.ndarray,
    twin: np.ndarray,
    uses: Uses,
    energy: np.ndarray,
    sums: np.ndarray,
    begin: np.ndarray,
    end: np.ndarray,
    masks: np.ndarray,
    reject: np.ndarray,
    allowed: np.ndarray,
    variant: np.ndarray,
    warmth: float,
    best: np.ndarray,
    slot: np.ndarray,
    usage: np.ndarray,
) -> None:
    """The cheapest start of every row, and what all jobs use where each spreads over its nearly cheapest starts: one
    that costs x more than the job's cheapest weighs exp(-x / (warmth * cost of the cheapest))."""
    num_slots = energy.shape[1] - 1
    level = np.empty(num_slots + 1)
    change = np.zeros(num_slots + 1)
    has_begin = begin.shape[1] > 1
    usage[:] = 0.0
    number = np.zeros(len(twin))
    most_rows = 0
    for j in range(len(twin)):
        number[twin[j]] += 1.0
        most_rows = max(most_rows, row_start[j + 1] - row_start[j])
    mass = np.zeros((most_rows, num_slots + 1))
    for j in range(len(twin)):
        if _copy_twin(j, row_start, twin, best, slot):
            continue
        least = reject[j]
        for r in range(row_start[j], row_start[j + 1]):
            _fill(r, rows, uses, energy, sums, level)
            _cheapest_of_row(r, rows, level, begin, end, masks, best, slot)
            if allowed[j, variant[r]]:
                least = min(least, best[r])
        unit = warmth * max(abs(least), 1e-9)
        reach = least + 12.0 * unit
        total = np.exp(-(reject[j] - least) / unit) if reject[j] <= reach else 0.0
        for r in range(row_start[j], row_start[j + 1]):
            if not allowed[j, variant[r]] or best[r] > reach:
                continue
            _fill(r, rows, uses, energy, sums, level)
            d, mask, k = rows.duration[r], rows.mask[r], r - row_start[j]
            for t in range(rows.first[r], rows.last[r] + 1):
                cost = rows.fixed[r] + level[t + d] - level[t] + end[j, t + d]
                if has_begin:
                    cost += begin[j, t]
                mass[k, t] = 0.0
                if cost <= reach and (mask < 0 or masks[mask, t]):
                    mass[k, t] = np.exp(-(cost - least) / unit)
                    total += mass[k, t]
        for r in range(row_start[j], row_start[j + 1]):
            if not allowed[j, variant[r]] or best[r] > reach:
                continue
            d, k = rows.duration[r], r - row_start[j]
            change[:] = 0.0
            for t in range(rows.first[r], rows.last[r] + 1):
                part = number[j] * mass[k, t] / total
                change[t] += part
                change[t + d] -= part
            running = 0.0
            for t in range(rows.first[r], rows.last[r] + d):
                running += change[t]
                for u in range(uses.start[r], uses.start[r + 1]):
                    usage[uses.limit[u], t] += uses.amount[u] * running
