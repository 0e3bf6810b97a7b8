"""GPUs of each node that are taken in each slot, kept beside a schedule: what rules that choose nodes for themselves
look at. It reads nothing of the schedule but its steps."""

from __future__ import annotations

import numpy as np

from models import grid
from models.starts import Row, Starts
from planner.engines.schedule import Step


class Occupancy:
    """By pool, the GPUs that are taken and the nodes that can be used."""

    def __init__(self, starts: Starts):
        self.starts, pools, num_slots = starts, starts.instance.pools, starts.num_slots
        self.taken = [np.zeros((pool.nodes, num_slots), dtype=np.int16) for pool in pools]
        """GPUs, shared ones included, shape (nodes, T)."""
        self.usable = [grid.usable(starts.instance, pool, num_slots) for pool in pools]
        self.shared: list[dict[tuple[int, int], np.ndarray]] = [{} for _ in pools]
        """Slices of each shared GPU that are taken, shape (T,)."""

    def shares_gpu(self, row: Row) -> bool:
        """Whether a run takes slices of one GPU."""
        return row.mode.is_small and self.starts.instance.pools[row.pool].slices_per_gpu > 1

    def note(self, step: Step) -> None:
        """A run was put where the step says."""
        row = self.starts.rows[step.row]
        window = slice(step.slot, step.slot + row.duration)
        taken, per_node = self.taken[row.pool], self.starts.instance.pools[row.pool].gpus_per_node
        if not self.shares_gpu(row):
            taken[list(step.spot), window] += per_node if row.mode.is_gang else max(1, row.mode.gpus)
            return
        node, gpu = step.spot
        slices = self.shared[row.pool].setdefault((node, gpu), np.zeros(self.starts.num_slots, dtype=np.int16))
        taken[node, window] += slices[window] == 0
        slices[window] += row.mode.slices

    def open_nodes(self, row: Row, slot: int) -> np.ndarray:
        """Which nodes of the pool of a run can be used throughout it, shape (nodes,), bool."""
        return np.asarray(self.usable[row.pool][:, slot : slot + row.duration].all(axis=1))

    def most_taken(self, p: int, begin: int, end: int) -> np.ndarray:
        """Most GPUs of each node of a pool that are taken between two slots, shape (nodes,)."""
        return np.asarray(self.taken[p][:, max(0, begin) : end].max(axis=1, initial=0))
