"""Pricing: the cheapest start of every row under prices, and all the starts that are nearly as cheap.

The reduced cost of start (r, t) but for the price of its job is

    fixed[r] + E[t + d] - E[t] + begin[j, t] + end[j, t + d],
    E = busy[r] energy[p] + sum over limits q: amount[r, q] sums[q] + surcharge[r],

with `sums` the prefix sums over slots of the prices of the limits, `surcharge` those of what rows on the number of
nodes (`cuts.py`) make a row pay, `begin` and `end` what starting and completing a
job costs (tardiness, lost value, and the prices of precedence). One pass over the slots of a row, whatever the
length of a run; nothing is kept but the best start of each row, so memory does not grow with the starts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from planner.engines.fast.branches import Windows
from planner.engines.fast.cachings import Cachings
from planner.engines.fast.compiled import compiled, kernel
from planner.engines.fast.cuts import Cuts
from planner.engines.fast.elastics import Elastics
from planner.engines.fast.limits import Limits, Priced
from planner.engines.fast.table import Table


class Prices(NamedTuple):
    """Prices of what is limited; all of them non-negative."""

    limits: np.ndarray
    """Money for a unit of each limit in each slot, shape (Q, T)."""
    precedence: np.ndarray
    """Of each pair of predecessor and job in each slot, shape (pairs, T)."""
    cache: np.ndarray
    """Of a GB in the cache of each site, shape (S,)."""
    cuts: np.ndarray = np.zeros(0)
    """Of the rows of `Cuts.cuts` that there were when the prices were made; those made later cost nothing."""

    def towards(self, other: Prices, step: float) -> Prices:
        """A part of the way to other prices."""
        most = max(len(self.cuts), len(other.cuts))
        mine, others = (
            prices._replace(cuts=np.pad(prices.cuts, (0, most - len(prices.cuts)))) for prices in (self, other)
        )
        return Prices(*(a + step * (b - a) for a, b in zip(mine, others, strict=True)))


class Found(NamedTuple):
    """The cheapest start of each row: its reduced cost but for the price of the job, and its slot. Infinite for pieces:
    see `elastics`."""

    cost: np.ndarray
    slot: np.ndarray
    priced: Priced
    runs: list[np.ndarray]
    """What the runs of each elastic job cost at least, by choice of caching."""


class Pricing:
    """Prices all starts of a table."""

    def __init__(self, table: Table, limits: Limits):
        self.table, self.limits = table, limits
        self.cuts = Cuts(table, limits)
        self.cachings = Cachings(table)
        self.elastics = Elastics(table, self.cachings)
        jobs = table.jobs
        self.pairs = [
            (int(i), j)
            for j in range(table.num_jobs)
            for i in jobs.before[jobs.before_start[j] : jobs.before_start[j + 1]]
        ]
        self._no_begin = np.zeros((1, 1))
        self._each_its_own = np.arange(table.num_jobs, dtype=table.jobs.twin.dtype)

    def cheapest(self, prices: Prices, windows: Windows | None = None) -> Found:
        """The cheapest start of each row, of those in windows; infinite where there is none."""
        rows = self.table.rows
        cost, slot = np.full(len(rows.job), np.inf), np.zeros(len(rows.job), dtype=np.int32)
        priced = self.at(prices)
        if windows is not None:
            mine = rows._replace(first=windows.first, last=windows.last)
            priced = priced._replace(rows=mine, twin=self._each_its_own)
        _cheapest(priced, cost, slot)
        return Found(cost, slot, priced, self.elastics.least(priced))

    def spread(
        self, prices: Prices, allowed: np.ndarray, variant: np.ndarray, warmth: float
    ) -> tuple[Found, np.ndarray]:
        """The cheapest start of each row, and what of each limit is used in each slot, shape (Q, T), where every job
        spreads over its nearly cheapest starts in the variants that it is allowed, shape (J, V). Elastic jobs run as is
        cheapest; those with more than one choice of caching are left out."""
        rows = self.table.rows
        cost, slot = np.full(len(rows.job), np.inf), np.zeros(len(rows.job), dtype=np.int32)
        usage, priced = np.empty_like(prices.limits), self.at(prices)
        _spread(priced, self.table.jobs.reject, allowed, variant, warmth, cost, slot, usage)
        return Found(cost, slot, priced, self.elastics.least(priced, usage)), usage

    def nearly_cheapest(self, priced: Priced, at_most: np.ndarray, most: int) -> tuple[np.ndarray, ...]:
        """For each job its starts whose cost is no more than `at_most[j]`, by ascending cost, no more than `most` of
        them: arrays (start of each job, row, slot, cost)."""
        rows, jobs = self.table.rows, self.table.jobs
        longest = int((rows.last - rows.first + 1).max(initial=0))
        widest = int(np.diff(jobs.row_start).max(initial=0))
        buffer = np.empty(widest * longest)
        starts, found_rows, found_slots, found_costs = [0], [], [], []
        for j in range(self.table.num_jobs):
            first, last = int(jobs.row_start[j]), int(jobs.row_start[j + 1])
            count = _all_costs(priced, first, last, buffer, longest)
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

    def price_of(
        self, priced: Priced, rows: np.ndarray, slots: np.ndarray, lengths: np.ndarray | None = None
    ) -> np.ndarray:
        """What some starts cost, shape (n,), as in `nearly_cheapest`; of pieces what so many slots cost, without the
        completion of their jobs."""
        r, uses, sums, energy = priced.rows, priced.uses, priced.sums, priced.energy
        j, p, d = r.job[rows], r.pool[rows], r.duration[rows] if lengths is None else lengths
        ends, is_piece = slots + d, r.work[rows] > 0
        cost = r.fixed[rows] * np.where(is_piece, d, 1) + r.busy[rows] * (energy[p, ends] - energy[p, slots])
        cost = cost + np.where(is_piece, 0.0, priced.end[j, ends])
        if priced.begin.shape[1] > 1:
            cost = cost + np.where(is_piece, 0.0, priced.begin[j, slots])
        number = uses.start[rows + 1] - uses.start[rows]
        which = np.repeat(np.arange(len(rows)), number)
        first = np.repeat(uses.start[rows] - np.concatenate([[0], np.cumsum(number)[:-1]]), number)
        entry = first + np.arange(len(which))
        q = uses.limit[entry]
        paid = uses.amount[entry] * (sums[q, ends[which]] - sums[q, slots[which]])
        if priced.surcharge.shape[1] > 1:
            cost = cost + priced.surcharge[rows, ends] - priced.surcharge[rows, slots]
        return np.asarray(cost + np.bincount(which, paid, minlength=len(rows)))

    def at(self, prices: Prices) -> Priced:
        """What pricing reads at some prices; worth keeping where they are asked for again and again."""
        table = self.table
        begin, end = self._job_prices(prices)
        surcharge = self.cuts.surcharge(prices.cuts)
        # A cut tells jobs apart that are otherwise alike.
        twin = table.jobs.twin if surcharge.shape[1] == 1 else self._each_its_own
        return Priced(
            table.rows, table.jobs.row_start, twin, self.limits.uses, table.pools.energy,
            _sums(prices.limits), surcharge, begin, end, table.masks,
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
def _row_costs(a: Priced, r: int, level: np.ndarray, costs: np.ndarray) -> None:
    """The cost of each start of a row from its first slot on, infinite where it may not start; `level` is room for what
    a run pays from slot 0 until each edge."""
    j, p, d, first, mask = a.rows.job[r], a.rows.pool[r], a.rows.duration[r], a.rows.first[r], a.rows.mask[r]
    busy, has_begin = a.rows.busy[r], a.begin.shape[1] > 1
    for t in range(len(level)):
        level[t] = busy * a.energy[p, t]
    for k in range(a.uses.start[r], a.uses.start[r + 1]):
        q, amount = a.uses.limit[k], a.uses.amount[k]
        for t in range(len(level)):
            level[t] += amount * a.sums[q, t]
    if a.surcharge.shape[1] > 1:
        for t in range(len(level)):
            level[t] += a.surcharge[r, t]
    for t in range(first, a.rows.last[r] + 1):
        cost = a.rows.fixed[r] + level[t + d] - level[t] + a.end[j, t + d]
        if has_begin:
            cost += a.begin[j, t]
        if mask >= 0 and not a.masks[mask, t]:
            cost = np.inf
        costs[t - first] = cost


@compiled
def _all_costs(a: Priced, first_row: int, last_row: int, buffer: np.ndarray, stride: int) -> int:
    """The costs of all starts of some rows, `stride` places a row, infinite where there is no start."""
    level = np.empty(a.energy.shape[1])
    count = (last_row - first_row) * stride
    buffer[:count] = np.inf
    for r in range(first_row, last_row):
        at = (r - first_row) * stride
        _row_costs(a, r, level, buffer[at : at + stride])
    return count


@kernel
def _cheapest_of_job(
    a: Priced, j: int, level: np.ndarray, costs: np.ndarray, best: np.ndarray, slot: np.ndarray
) -> bool:
    """The cheapest start of each row of a job, its costs in the rows of `costs`; of an identical job that was priced
    before they are copied, and False is said."""
    if a.twin[j] != j:
        offset = a.row_start[a.twin[j]] - a.row_start[j]
        for r in range(a.row_start[j], a.row_start[j + 1]):
            best[r] = best[r + offset]
            slot[r] = slot[r + offset]
        return False
    for r in range(a.row_start[j], a.row_start[j + 1]):
        of_row = costs[r - a.row_start[j]]
        _row_costs(a, r, level, of_row)
        least, where = np.inf, 0
        for k in range(a.rows.last[r] - a.rows.first[r] + 1):
            if of_row[k] < least:
                least, where = of_row[k], k
        best[r] = least
        slot[r] = a.rows.first[r] + where
    return True


@kernel
def _room(a: Priced) -> np.ndarray:
    """Room for the costs of all starts of any one job."""
    most = 0
    for j in range(len(a.twin)):
        most = max(most, a.row_start[j + 1] - a.row_start[j])
    return np.empty((most, a.energy.shape[1]))


@compiled
def _cheapest(a: Priced, best: np.ndarray, slot: np.ndarray) -> None:
    level, costs = np.empty(a.energy.shape[1]), _room(a)
    for j in range(len(a.twin)):
        _cheapest_of_job(a, j, level, costs, best, slot)


@compiled
def _spread(
    a: Priced,
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
    level, costs = np.empty(a.energy.shape[1]), _room(a)
    change = np.zeros(len(level))
    usage[:] = 0.0
    number = np.zeros(len(a.twin))
    for j in range(len(a.twin)):
        number[a.twin[j]] += 1.0
    for j in range(len(a.twin)):
        if not _cheapest_of_job(a, j, level, costs, best, slot):
            continue
        first_row, end_row = a.row_start[j], a.row_start[j + 1]
        least = reject[j]
        for r in range(first_row, end_row):
            if allowed[j, variant[r]]:
                least = min(least, best[r])
        if least == np.inf:
            continue
        unit = warmth * max(abs(least), 1e-9)
        reach = least + 12.0 * unit
        total = np.exp(-(reject[j] - least) / unit) if reject[j] <= reach else 0.0
        for r in range(first_row, end_row):
            if not allowed[j, variant[r]] or best[r] > reach:
                continue
            weights = costs[r - first_row]
            for k in range(a.rows.last[r] - a.rows.first[r] + 1):
                weights[k] = np.exp(-(weights[k] - least) / unit) if weights[k] <= reach else 0.0
                total += weights[k]
        for r in range(first_row, end_row):
            if not allowed[j, variant[r]] or best[r] > reach:
                continue
            first, d, weights = a.rows.first[r], a.rows.duration[r], costs[r - first_row]
            change[:] = 0.0
            for k in range(a.rows.last[r] - first + 1):
                part = number[j] * weights[k] / total
                change[first + k] += part
                change[first + k + d] -= part
            running = 0.0
            for t in range(first, a.rows.last[r] + d):
                running += change[t]
                for u in range(a.uses.start[r], a.uses.start[r + 1]):
                    usage[a.uses.limit[u], t] += a.uses.amount[u] * running
