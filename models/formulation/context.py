"""What every family of the formulation reads: the sets, and which starts run where and when."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pyomo.environ as pyo
from pyomo.core.expr.numeric_expr import LinearExpression

from models import grid
from models.domain.entities import Pool
from models.domain.modes import Mode
from models.goal import LOWEST_COST, Goal
from models.starts import Starts, completion_edges

Form = Literal["auto", "sums", "levels"]

Start = tuple[int, int]
"""(row, slot)"""


def linear(coefficients: list[float], variables: list[Any], constant: float = 0.0) -> LinearExpression:
    """sum of coefficient * variable; built whole, which is many times faster than adding terms one by one."""
    return LinearExpression(constant=constant, linear_coefs=coefficients, linear_vars=variables)


@dataclass(frozen=True)
class PoolGrid:
    """A pool over the slots: what limits its nodes and what they cost."""

    pool: Pool
    block: int
    boot: int
    kinds: grid.NodeKinds
    price: np.ndarray
    """Money for a node in each slot, shape (T + block,)."""

    @cached_property
    def available(self) -> np.ndarray:
        """Per node and slot, shape (nodes, T); for pools whose nodes have an index, which are small."""
        return self.kinds.available[self.kinds.kind]

    @cached_property
    def usable(self) -> np.ndarray:
        """Available and booted, shape (nodes, T)."""
        return self.kinds.usable[self.kinds.kind]

    @cached_property
    def on_at_start(self) -> np.ndarray:
        """Per node, shape (nodes,)."""
        return self.kinds.warm[self.kinds.kind]

    @cached_property
    def num_available(self) -> list[int]:
        """Nodes that are available in each slot."""
        counts: list[int] = (self.kinds.number @ self.kinds.available).tolist()
        return counts

    @property
    def is_plain(self) -> bool:
        """Whether nodes go on and off freely: no boot, and no increment beyond a slot."""
        return self.block == 1 and self.boot == 0

    @cached_property
    def block_price(self) -> np.ndarray:
        """Money for a block that begins in each slot, shape (T,)."""
        sums = np.concatenate([[0.0], np.cumsum(self.price)])
        num_slots = len(self.price) - self.block
        return sums[self.block : self.block + num_slots] - sums[:num_slots]


@dataclass(frozen=True)
class Resource:
    """Something that jobs take of a node: its capacity, and what a mode takes."""

    name: str
    capacity: float
    use: dict[int, float]
    """Per row of the pool; a gang takes all of each of its nodes."""


class Context:
    """The starts of an instance as the formulation sees them."""

    def __init__(
        self,
        starts: Starts,
        node_pools: frozenset[int] = frozenset(),
        jobs: frozenset[int] | None = None,
        form: Form = "auto",
        goal: Goal = LOWEST_COST,
    ):
        self.form = form
        self.goal = goal
        self.taken: Any = None
        """What is taken of each quantity in each slot: set by `levels.declare_levels`, read by every limit."""
        self.starts = starts
        self.instance = starts.instance
        self.rows = starts.rows
        self.num_slots = starts.num_slots
        self.node_pools = node_pools
        self.jobs = [j for j in range(len(starts.instance.jobs)) if jobs is None or j in jobs]
        self.pools = [
            PoolGrid(
                pool=pool,
                block=grid.block_slots(self.instance, pool),
                boot=grid.boot_slots(self.instance, pool),
                kinds=grid.node_kinds(self.instance, pool, self.num_slots),
                price=grid.node_prices(self.instance, pool, self.num_slots),
            )
            for pool in self.instance.pools
        ]
        self.used_rows = [r for r, row in enumerate(self.rows) if row.is_piece or row.job not in starts.elastic]
        """Rows that the model is made of: of an elastic job the pieces, of any other its runs."""
        self.slots_of_row: list[list[int]] = [[] for _ in self.rows]
        for r in self.used_rows:
            self.slots_of_row[r] = self.rows[r].slots.tolist()

    @cached_property
    def start_list(self) -> list[Start]:
        """Every start."""
        return [(r, t) for r, slots in enumerate(self.slots_of_row) for t in slots]

    @cached_property
    def rows_of_pool(self) -> list[list[int]]:
        """Rows of each pool."""
        rows: list[list[int]] = [[] for _ in self.pools]
        for r in self.used_rows:
            rows[self.rows[r].pool].append(r)
        return rows

    def rows_of_job(self, j: int) -> tuple[int, ...]:
        """What a job runs in."""
        return self.starts.pieces_of_job[j] or self.starts.rows_of_job[j]

    @cached_property
    def elastic(self) -> list[int]:
        """Jobs that may change while they run."""
        return [j for j in self.jobs if j in self.starts.elastic]

    @cached_property
    def completions(self) -> dict[int, list[int]]:
        """For each elastic job the slot edges at which it may complete."""
        return {j: completion_edges(self.starts, j) for j in self.elastic}

    def running(self, rows: list[int]) -> dict[int, list[Start]]:
        """For each slot the starts of some rows that run in it."""
        at: dict[int, list[Start]] = defaultdict(list)
        for r in rows:
            duration = self.rows[r].duration
            for t in self.slots_of_row[r]:
                for slot in range(t, t + duration):
                    at[slot].append((r, t))
        return dict(sorted(at.items()))

    @cached_property
    def quantities(self) -> dict[tuple[str, Any], dict[int, float]]:
        """What is limited in each slot, by name and owner, and how much of it each row takes while it runs."""
        found: dict[tuple[str, Any], dict[int, float]] = {}
        for p, rows in enumerate(self.rows_of_pool):
            for resource in self.resources(p) if rows else ():
                use = {r: self.rows[r].mode.num_nodes * resource.use[r] for r in rows}
                found[resource.name, p] = {r: value for r, value in use.items() if value}
            if large := self._large_runs(p):
                found["large", p] = large
        for r in self.used_rows:
            row = self.rows[r]
            if row.link_rate > 0:
                found.setdefault(("reading", row.site), {})[r] = row.link_rate
                if row.link is not None and self._is_limited(row.link):
                    found.setdefault(("crossing", f"{row.link[0]}-{row.link[1]}"), {})[r] = row.link_rate
        return found

    def _is_limited(self, link: tuple[int, int]) -> bool:
        sites = self.instance.sites
        return self.instance.links[sites[link[0]].id, sites[link[1]].id].bandwidth is not None

    def _large_runs(self, p: int) -> dict[int, float]:
        """Nodes that the runs of at least half a node take, halves counted as halves; empty where that says no more
        than their slices do (no run takes more than half of a node but not all of it)."""
        pool = self.pools[p].pool
        size = pool.gpus_per_node * pool.slices_per_gpu
        modes = {r: self.rows[r].mode for r in self.rows_of_pool[p]}
        if not any(size > mode.slices > size / 2 for mode in modes.values()):
            return {}
        return {
            r: mode.num_nodes * (1.0 if 2 * mode.slices > size else 0.5)
            for r, mode in modes.items()
            if 2 * mode.slices >= size
        }

    def resources(self, p: int) -> list[Resource]:
        """What can bind on a node of a pool: its GPU slices always, the rest only where some mode takes a larger
        part of it than of the slices (otherwise its row is implied)."""
        pool = self.pools[p].pool
        rows = self.rows_of_pool[p]
        slices = float(pool.gpus_per_node * pool.slices_per_gpu)
        found = [Resource("slices", slices, {r: float(self.rows[r].mode.slices) for r in rows})]
        others = [
            ("memory", pool.gpus_per_node * (pool.gpu_memory or 0.0), lambda mode: _memory(mode, pool)),
            ("cpu_cores", float(pool.cpu_cores or 0), lambda mode: float(mode.cpu_cores)),
            ("ram", pool.ram or 0.0, lambda mode: mode.ram_gb),
        ]
        for name, capacity, use_of in others:
            if not capacity:
                continue
            use = {r: capacity if self.rows[r].mode.is_gang else use_of(self.rows[r].mode) for r in rows}
            if any(value / capacity > self.rows[r].mode.slices / slices + 1e-12 for r, value in use.items()):
                found.append(Resource(name, capacity, use))
        return found


def _memory(mode: Mode, pool: Pool) -> float:
    return mode.memory_gb if mode.is_small else mode.gpus * (pool.gpu_memory or 0.0)


def declare(model: pyo.ConcreteModel, name: str, rules: dict[Any, Any]) -> None:
    """An indexed constraint from its expressions."""
    block = pyo.Constraint(list(rules), rule=lambda _, *index: rules[index if len(index) > 1 else index[0]])
    setattr(model, name, block)
