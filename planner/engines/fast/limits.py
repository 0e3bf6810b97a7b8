"""What is limited in each slot: the rows of the master that bind jobs together, and what a run takes of each.

The same rows as `models.formulation.capacity` and `models.formulation.storage` write, for the same starts: node
resources and large runs by pool, reading by site, crossing by link.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from planner.engines.fast.table import UNLIMITED, Rows, Table

Kind = Literal["node", "reading", "crossing"]


@dataclass(frozen=True)
class Limit:
    """One quantity: of a pool's nodes, a site's bandwidth, or a link."""

    kind: Kind
    owner: int
    """Pool, site, or link."""
    capacity: float
    """Of a node; of the link; for reading what a plan can use at most."""
    name: str


class Uses(NamedTuple):
    """What the rows take, row by row: `limit` and `amount` from `start[r]` to `start[r + 1]`."""

    start: np.ndarray
    limit: np.ndarray
    amount: np.ndarray


class Priced(NamedTuple):
    """All that pricing reads, at some prices: one argument of the compiled code."""

    rows: Rows
    row_start: np.ndarray
    twin: np.ndarray
    uses: Uses
    energy: np.ndarray
    sums: np.ndarray
    """Prefix sums of the prices of the limits, shape (Q, T + 1)."""
    surcharge: np.ndarray
    """Of what rows pay for cuts, shape (R, T + 1), or (1, 1) where they pay nothing."""
    begin: np.ndarray
    """What starting a job in each slot costs, shape (J, T + 1), or (1, 1) where it costs nothing."""
    end: np.ndarray
    """What completing it at each edge costs, shape (J, T + 1)."""
    masks: np.ndarray


@dataclass(frozen=True, eq=False)
class Limits:
    """All limits of an instance."""

    limits: tuple[Limit, ...]
    uses: Uses

    @classmethod
    def of(cls, table: Table) -> Limits:
        """The limits that some row can reach."""
        found: list[Limit] = []
        parts: list[tuple[np.ndarray, np.ndarray]] = []

        def add(kind: Kind, owner: int, capacity: float, name: str, rows: np.ndarray, amount: np.ndarray) -> None:
            some = amount > 0
            if some.any():
                found.append(Limit(kind, owner, capacity, name))
                parts.append((rows[some], amount[some]))

        for p in range(len(table.pools.gpus)):
            rows = np.flatnonzero(table.rows.pool == p)
            if len(rows):
                for name, capacity, amount in _node_resources(table, p, rows):
                    add("node", p, capacity, name, rows, amount)
        for s in range(len(table.storage.hours)):
            rows = np.flatnonzero((table.rows.site == s) & (table.rows.rate > 0))
            most = np.zeros(table.num_jobs)
            np.maximum.at(most, table.rows.job[rows], table.rows.rate[rows])
            capacity = min(float(table.storage.cap[s]), float(most.sum()))
            add("reading", s, capacity, "reading", rows, table.rows.rate[rows])
        for k, capacity in enumerate(table.storage.link_cap):
            if np.isfinite(capacity):
                rows = np.flatnonzero((table.rows.link == k) & (table.rows.rate > 0))
                add("crossing", k, float(capacity), "crossing", rows, table.rows.rate[rows])
        return cls(tuple(found), _by_row(parts, len(table.rows.job)))


def _node_resources(table: Table, p: int, rows: np.ndarray) -> list[tuple[str, float, np.ndarray]]:
    """Name, capacity of a node, and what each row takes: slices always, the rest only where some mode takes a larger
    part of it than of the slices; large runs where some take more than half of a node but not all of it."""
    r, pools = table.rows, table.pools
    size = int(pools.node_slices[p])
    nodes, width = r.num_nodes[rows], r.width[rows]
    each = width / nodes
    found = [("slices", float(size), width.astype(float))]
    others = []
    if np.isfinite(pools.gpu_memory[p]):
        whole = r.gpus[rows] * pools.gpu_memory[p]
        others.append(("memory", float(pools.gpus[p] * pools.gpu_memory[p]), whole + r.memory[rows]))
    if pools.cores[p] < UNLIMITED:
        others.append(("cpu_cores", float(pools.cores[p]), r.cores[rows].astype(float)))
    if np.isfinite(pools.ram[p]):
        others.append(("ram", float(pools.ram[p]), r.ram[rows]))
    for name, capacity, use in others:
        if (use / capacity > each / size + 1e-12).any():
            found.append((name, capacity, use * nodes))
    if ((2 * each > size) & (each < size)).any():
        found.append(("large", 1.0, nodes * np.where(2 * each > size, 1.0, np.where(2 * each == size, 0.5, 0.0))))
    return found


def _by_row(parts: list[tuple[np.ndarray, np.ndarray]], num_rows: int) -> Uses:
    rows = np.concatenate([rows for rows, _ in parts]) if parts else np.zeros(0, dtype=np.int64)
    limit = np.repeat(np.arange(len(parts), dtype=np.int32), [len(rows) for rows, _ in parts])
    amount = np.concatenate([amount for _, amount in parts]) if parts else np.zeros(0)
    order = np.argsort(rows, kind="stable")
    start = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=num_rows))])
    return Uses(start.astype(np.int32), limit[order], amount[order])
