"""What runs on the nodes of a pool, counted slot by slot and GPU by GPU: slow, plain and without arrays."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from models import grid
from models.domain import Instance
from models.domain.modes import Mode
from models.starts import Row

Spot = tuple[int, ...]


@dataclass(frozen=True)
class Taken:
    """A run on its nodes; for a share of a GPU in a pool that shares them the spot is (node, GPU)."""

    row: Row
    slot: int
    spot: Spot

    def runs_in(self, slot: int) -> bool:
        """Whether it runs in a slot."""
        return self.slot <= slot < self.slot + self.row.duration


class Recount:
    """The runs of one pool, as a list."""

    def __init__(self, instance: Instance, p: int, num_slots: int):
        self.pool = instance.pools[p]
        self.num_slots = num_slots
        self.usable = grid.usable(instance, self.pool, num_slots).tolist()
        self.prices = grid.node_prices(instance, self.pool, num_slots).tolist()
        self.runs: list[Taken] = []

    def shares(self, mode: Mode) -> bool:
        """Whether a run in this mode is on a GPU with others."""
        return mode.is_small and self.pool.slices_per_gpu > 1

    def spots(self, mode: Mode) -> Iterator[Spot]:
        """Every place that a run in this mode could take."""
        nodes = range(self.pool.nodes)
        if self.shares(mode):
            yield from itertools.product(nodes, range(self.pool.gpus_per_node))
        else:
            yield from itertools.combinations(nodes, mode.num_nodes)

    def nodes_of(self, run: Taken) -> Spot:
        """The nodes of a run."""
        return run.spot[:1] if self.shares(run.row.mode) else run.spot

    def is_busy(self, node: int, slot: int) -> bool:
        """Whether anything runs on a node in a slot."""
        return any(node in self.nodes_of(run) and run.runs_in(slot) for run in self.runs)

    def fits(self, new: Taken) -> bool:
        """Whether one more run has room."""
        runs = [*self.runs, new]
        slots = range(new.slot, new.slot + new.row.duration)
        return all(self._has_room(runs, node, slot) for node in self.nodes_of(new) for slot in slots)

    def _has_room(self, runs: list[Taken], node: int, slot: int) -> bool:
        here = [run for run in runs if node in self.nodes_of(run) and run.runs_in(slot)]
        whole, cores, ram = 0, 0, 0.0
        on_gpu: dict[int, list[Mode]] = defaultdict(list)
        for run in here:
            mode = run.row.mode
            if mode.is_gang:
                if len(here) > 1:
                    return False
                whole += self.pool.gpus_per_node
                continue
            cores, ram = cores + mode.cpu_cores, ram + mode.ram_gb
            if self.shares(mode):
                on_gpu[run.spot[1]].append(mode)
            else:
                whole += max(1, mode.gpus)
        for modes in on_gpu.values():
            if sum(mode.slices for mode in modes) > self.pool.slices_per_gpu:
                return False
            if sum(mode.memory_gb for mode in modes) > (self.pool.gpu_memory or float("inf")) + 1e-9:
                return False
        return (
            self.usable[node][slot]
            and whole + len(on_gpu) <= self.pool.gpus_per_node
            and cores <= (self.pool.cpu_cores or float("inf"))
            and ram <= (self.pool.ram or float("inf")) + 1e-9
        )

    def added_cost(self, new: Taken) -> float:
        """What one more run adds in a pool whose nodes are paid just while they run something."""
        slots = range(new.slot, new.slot + new.row.duration)
        return sum(self.prices[slot] for node in self.nodes_of(new) for slot in slots if not self.is_busy(node, slot))
