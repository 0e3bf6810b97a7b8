"""The dual bound: the Lagrangian of the whole problem at any prices, computed from the starts and not from an LP.

For non-negative prices lambda of the limits, rho of precedence and kappa of the caches,

    L = sum over jobs: least reduced cost (jobs of a dataset together, over what of it is cached where)
      + sum over nodes: least of what being on costs less what its capacity earns
      + sum over sites: least of what bandwidth costs less what it earns
      - sum over links: capacity * lambda - sum over sites: cache capacity * kappa

is at most the cost of every plan: the plan's own choice is one of those over which each least is taken, and what the
prices add to its cost is never positive (it keeps within the limits). Nothing here depends on a solver's tolerances;
see planner/engines/fast/README.md.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from planner.engines.fast.branches import Branch
from planner.engines.fast.compiled import compiled
from planner.engines.fast.pricing import Found, Prices, Pricing
from planner.engines.fast.table import Table

# Sums of millions of doubles are off by far less than this part of the sum of their sizes.
ROUNDING = 1e-11


@dataclass(frozen=True, eq=False)
class Value:
    """The Lagrangian at some prices, for whatever branch."""

    lagrangian: Lagrangian
    cost: np.ndarray
    """Of the cheapest start of each row, shape (R,), among those of the branch that was priced, if it was for one."""
    runs: list[np.ndarray]
    """Of the cheapest run of each elastic job, by choice of caching."""
    shared: np.ndarray
    """Terms of nodes, links and cuts, the same in all branches."""
    earned: dict[int, float]
    """For each site that is read at, the price of a MB/s over all slots."""
    cache_prices: np.ndarray

    def bound(self, branch: Branch) -> float:
        """A lower bound on every plan of a branch; infinite where a job has no row left and must run."""
        alone, by_choice = self.of_jobs(branch)
        terms = [stretch.least(self.earned.get(s, 0.0)) for s, stretch in branch.stretches.items()]
        terms.append(self.lagrangian.cachings.best(by_choice, branch.fixed, self.cache_prices)[0])
        every = np.concatenate([alone, self.shared, terms])
        total = float(every.sum())
        return total - ROUNDING * float(np.abs(every).sum()) if math.isfinite(total) else math.inf

    def choices(self, branch: Branch) -> tuple[int, ...]:
        """The choice of caching that gives that bound."""
        by_choice = self.of_jobs(branch)[1]
        return self.lagrangian.cachings.best(by_choice, branch.fixed, self.cache_prices)[1]

    def of_jobs(self, branch: Branch) -> tuple[np.ndarray, list[np.ndarray]]:
        """Of each job that reads nothing that can be cached its least, and for each dataset that can be cached what its
        jobs and its cache come to, by choice."""
        if branch.windows is None:
            return self._of_all_rows
        return self.lagrangian.of_jobs(self.cost, self.runs, branch)

    @cached_property
    def _of_all_rows(self) -> tuple[np.ndarray, list[np.ndarray]]:
        return self.lagrangian.of_jobs(self.cost, self.runs, None)


class Lagrangian:
    """Evaluates the Lagrangian of a table."""

    def __init__(self, pricing: Pricing):
        table = pricing.table
        self.table, self.limits, self.cuts, self.cachings = table, pricing.limits, pricing.cuts, pricing.cachings
        rows = table.rows
        caches = sorted({(int(s), int(v)) for s, v in zip(rows.site, rows.level, strict=True) if v > 0})
        self.variant = {pair: k + 1 for k, pair in enumerate(caches)}
        self.num_variants = len(caches) + 1
        of_row = np.zeros(len(rows.job), dtype=np.int64)
        for (s, level), v in self.variant.items():
            of_row[(rows.site == s) & (rows.level == level)] = v
        self.variant_of_row = of_row
        # Rows sorted by job and variant, so that one reduceat finds every least.
        key = rows.job.astype(np.int64) * self.num_variants + of_row
        rigid = np.flatnonzero(~np.isin(rows.job, table.elastic))
        self._order = rigid[np.argsort(key[rigid], kind="stable")]
        self._keys, self._begins = np.unique(key[self._order], return_index=True)
        self.kinds = _kinds_of_pools(table)
        pools = table.pools
        self.block_pools = {p for p, _, _ in self.kinds if pools.block[p] > 1 or pools.boot[p] > 0}
        self.num_available = np.zeros((len(pools.gpus), table.num_slots))
        for p, kind, number in self.kinds:
            self.num_available[p] += number * table.nodes.available[kind]

    def allowed(self, choices: tuple[int, ...]) -> np.ndarray:
        """Which variants each job may use where just so much is cached, shape (J, V); an elastic one none, as its runs
        are no starts."""
        allowed = np.zeros((self.table.num_jobs, self.num_variants), dtype=np.bool_)
        allowed[:, 0] = True
        for cachable, c in zip(self.cachings.datasets, choices, strict=True):
            for pair in cachable.choices[c]:
                allowed[cachable.jobs, self.variant[pair]] = True
        allowed[self.cachings.free] = True
        allowed[self.table.elastic] = False
        return allowed

    def choice_of(self, choices: tuple[int, ...]) -> dict[int, int]:
        """The choice that is made for the dataset of each job, where that can be cached."""
        made = zip(self.cachings.datasets, choices, strict=True)
        return {j: c for cachable, c in made for j in cachable.jobs.tolist()}

    def value(self, found: Found, prices: Prices) -> Value:
        """The Lagrangian, from the cheapest start of every row at these prices."""
        terms = [self._nodes(prices), self.cuts.gain(prices.cuts)]
        earned: dict[int, float] = {}
        for q, limit in enumerate(self.limits.limits):
            if limit.kind == "reading":
                earned[limit.owner] = float(prices.limits[q].sum())
            elif limit.kind == "crossing":
                terms.append(np.array([-limit.capacity * float(prices.limits[q].sum())]))
        return Value(self, found.cost, found.runs, np.concatenate(terms), earned, prices.cache)

    def of_jobs(
        self, cost: np.ndarray, runs: list[np.ndarray], branch: Branch | None
    ) -> tuple[np.ndarray, list[np.ndarray]]:
        """`Value.of_jobs` from the cost of the cheapest start of each row and of the runs of elastic jobs."""
        reject, alone, free = self.table.jobs.reject, self.cachings.alone, self.cachings.free
        if branch is not None and branch.windows is not None:
            cost = np.where(branch.windows.barred, np.inf, cost)
            reject = reject.copy()
            reject[list(branch.windows.must_run)] = np.inf
        least = np.full(self.table.num_jobs * self.num_variants, np.inf)
        if len(self._keys):
            least[self._keys] = np.minimum.reduceat(cost[self._order], self._begins)
        by_variant = least.reshape(self.table.num_jobs, self.num_variants)
        elastic = dict(zip(self.table.elastic, runs, strict=True))
        for j, values in elastic.items():
            by_variant[j, 0] = values[0]  # of those whose dataset cannot be cached, or is whatever it likes
        terms = [
            np.minimum(by_variant[alone, 0], reject[alone]),
            np.minimum(by_variant[free].min(axis=1), reject[free]),
        ]
        by_choice = []
        for cachable in self.cachings.datasets:
            of_jobs, instead = by_variant[cachable.jobs], reject[cachable.jobs]
            values = cachable.costs.copy()
            changing = [j for j in cachable.jobs.tolist() if j in elastic]
            of_jobs[np.isin(cachable.jobs, changing)] = np.inf
            instead = np.where(np.isin(cachable.jobs, changing), 0.0, instead)
            for c, choice in enumerate(cachable.choices):
                columns = [0, *(self.variant[pair] for pair in choice)]
                values[c] += float(np.minimum(of_jobs[:, columns].min(axis=1), instead).sum())
                values[c] += sum(min(float(elastic[j][c]), float(reject[j])) for j in changing)
            by_choice.append(values)
        return np.concatenate(terms), by_choice

    def _nodes(self, prices: Prices) -> np.ndarray:
        """For each kind of node, all of them together: the least of cost less earnings, never positive."""
        earnings = self.cuts.earnings(prices.cuts)
        for q, limit in enumerate(self.limits.limits):
            if limit.kind == "node":
                earnings[limit.owner] += limit.capacity * prices.limits[q]
        values = []
        for p, kind, number in self.kinds:
            pools, nodes = self.table.pools, self.table.nodes
            block, boot = int(pools.block[p]), int(pools.boot[p])
            if block == 1 and boot == 0:
                net = pools.price[p, : self.table.num_slots] - earnings[p]
                value = float(np.minimum(net, 0.0)[nodes.available[kind]].sum())
            else:
                value = _best_intervals(
                    pools.price_sums[p], earnings[p], nodes.available[kind], bool(nodes.warm[kind]), block, boot
                )
            values.append(number * value)
        return np.array(values)


def _kinds_of_pools(table: Table) -> list[tuple[int, int, int]]:
    """(pool, kind, number of nodes) of each kind of node in the pools where something may run."""
    used = set(table.rows.pool.tolist())
    pairs = zip(table.nodes.pool.tolist(), table.nodes.kind.tolist(), strict=True)
    counts: dict[tuple[int, int], int] = defaultdict(int)
    for p, kind in pairs:
        counts[p, kind] += 1
    return [(p, kind, number) for (p, kind), number in sorted(counts.items()) if p in used]


@compiled
def _best_intervals(
    price_sums: np.ndarray, earnings: np.ndarray, available: np.ndarray, warm: bool, block: int, boot: int
) -> float:
    """The least of what the on-intervals of a node cost less what its usable slots earn.

    Backwards over the slots: from `t` on the node stays off, or it is switched on and stays on until `e`. That an
    interval must not touch the next one is not asked for, which can only lower the value.
    """
    num_slots = len(earnings)
    best = np.zeros(num_slots + 1)
    for t in range(num_slots - 1, -1, -1):
        least = best[t + 1]
        ready = t if warm and t == 0 else t + boot
        net = 0.0
        for e in range(t + 1, num_slots + 1):
            if not available[e - 1]:
                break
            if (e - 1 - t) % block == 0:
                net += price_sums[e - 1 + block] - price_sums[e - 1]
            if e - 1 >= ready:
                net -= earnings[e - 1]
            if net + best[e] < least:
                least = net + best[e]
        best[t] = least
    return float(best[0])
