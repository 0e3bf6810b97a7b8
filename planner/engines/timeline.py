"""What runs on which node in which slot: finds room for a run, and takes it.

Whole GPUs of a node have no index here. Runs that share a GPU are put on one of the node's *shared* GPUs, which
count as taken while anything runs on them. Both are intervals in time, and intervals never needing more than the
GPUs of the node at once can always be given fixed GPUs (an interval graph is perfect), so the indices can wait
until the end (`assign_gpus` of `placement`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from models import grid
from models.domain.instance import Instance
from models.domain.modes import Mode, gpus_on_node
from models.rentals import NodeRules, cheapest_intervals
from models.starts import Row

Spot = tuple[int, ...]
"""Nodes of a run; for a share followed by the shared GPU: (node, gpu)."""
FEWEST_ROWS = 256
"""Nodes for which there are arrays from the beginning."""


def window_any(mask: np.ndarray, slots: np.ndarray, duration: int) -> np.ndarray:
    """Whether anything is true in [t, t + duration) for each t of `slots`; the last axis is time."""
    sums = np.zeros((*mask.shape[:-1], mask.shape[-1] + 1), dtype=np.int32)
    np.cumsum(mask, axis=-1, out=sums[..., 1:])
    return np.asarray(sums[..., slots + duration] > sums[..., slots])


def window_sum(values: np.ndarray, slots: np.ndarray, duration: int) -> np.ndarray:
    """Sums over [t, t + duration) for each t of `slots`; the last axis is time."""
    sums = np.zeros((*values.shape[:-1], values.shape[-1] + 1))
    np.cumsum(values, axis=-1, out=sums[..., 1:])
    return np.asarray(sums[..., slots + duration] - sums[..., slots])


@dataclass
class Offer:
    """The cheapest place for each start slot: its extra node cost (infinite where there is none), and node."""

    cost: np.ndarray
    nodes: list[np.ndarray]
    """Per node of the run, shape (slots,); for a share also the shared GPU."""

    def spot(self, k: int) -> Spot:
        """The place for the k-th slot."""
        return tuple(int(nodes[k]) for nodes in self.nodes)


class PoolTimeline:
    """The nodes of one pool over all slots."""

    def __init__(self, instance: Instance, p: int, num_slots: int):
        pool = instance.pools[p]
        self.pool, self.num_slots = pool, num_slots
        self.kinds = grid.node_kinds(instance, pool, num_slots)
        self.rules = NodeRules.of_kinds(instance, p, num_slots, self.kinds)
        self.sharing = pool.slices_per_gpu > 1
        self._make_room(min(pool.nodes, FEWEST_ROWS))
        self.count = np.zeros(pool.nodes, dtype=np.int32)
        """Runs on each node, shape (nodes,)."""
        self.on: dict[int, list[tuple[int, int]]] = {}
        """On-intervals of each node that runs something: the cheapest that cover it."""
        self._num_shares = 0

    def _make_room(self, num_rows: int) -> None:
        """Arrays for the first so many nodes; what the nodes of before do is kept."""
        pool, shape = self.pool, (num_rows, self.num_slots)
        per_gpu = (num_rows, pool.gpus_per_node if self.sharing else 0, self.num_slots)
        self.whole = self._larger("whole", shape, _counter(pool.gpus_per_node))
        """GPUs of each node that are taken whole in each slot, of as many nodes as have been looked at yet."""
        self.slices = self._larger("slices", per_gpu, _counter(pool.slices_per_gpu))
        self.memory = self._larger("memory", per_gpu, np.float64)
        self.cores = None if pool.cpu_cores is None else self._larger("cores", shape, _counter(pool.cpu_cores))
        self.ram = None if pool.ram is None else self._larger("ram", shape, np.float64)
        self.paid = self._larger("paid", shape, np.bool_)

    def _larger(self, name: str, shape: tuple[int, ...], dtype: type[np.generic]) -> np.ndarray:
        made = np.zeros(shape, dtype=dtype)
        before = getattr(self, name, None)
        if before is not None:
            made[: len(before)] = before
        return made

    def _reach(self, node: int) -> None:
        """See to it that the arrays have a row for a node: of a large quota most nodes are never looked at."""
        if node >= len(self.whole):
            self._make_room(min(self.pool.nodes, max(node + 1, 2 * len(self.whole))))

    def shares_gpu(self, mode: Mode) -> bool:
        """Whether a run takes slices of one GPU; where GPUs are not sliced a share takes a whole one."""
        return mode.is_small and self.sharing

    def nodes_of(self, mode: Mode, spot: Spot) -> list[int]:
        """The nodes of a place."""
        return list(spot[:1] if self.shares_gpu(mode) else spot)

    def _candidates(self, number: int) -> np.ndarray:
        """Nodes worth looking at: those in use, and of each kind of empty node as many as a run takes."""
        used = np.flatnonzero(self.count)
        first = [self._first_empty(kind, number) for kind in range(len(self.kinds.number))]
        return np.sort(np.concatenate([used, *first])).astype(int)

    def _first_empty(self, kind: int, number: int) -> np.ndarray:
        """The first so many empty nodes of a kind, or all that there are; found without a look at all nodes."""
        most = 2 * number + len(self.on)
        while True:
            found = np.flatnonzero((self.kinds.kind[:most] == kind) & (self.count[:most] == 0))
            if len(found) >= number or most >= self.pool.nodes:
                return found[:number]
            most *= 4

    def taken(self, nodes: np.ndarray) -> np.ndarray:
        """GPUs of some nodes that are taken, shape (len(nodes), T)."""
        gpus = self.whole[nodes].astype(np.int32)
        if self._num_shares:
            gpus += (self.slices[nodes] > 0).sum(axis=1)
        return gpus

    def offer(self, mode: Mode, slots: np.ndarray) -> Offer:
        """The cheapest place for a run in this mode from each of some slots."""
        nodes = self._candidates(mode.num_nodes)
        self._reach(int(nodes.max(initial=0)))
        blocked = ~self.kinds.usable[self.kinds.kind[nodes]]
        taken = self.taken(nodes)
        if mode.is_gang:
            blocked |= taken > 0
        elif not mode.is_small or not self.sharing:
            blocked |= taken + max(1, mode.gpus) > self.pool.gpus_per_node
        if not mode.is_gang and self.cores is not None:
            blocked |= self.cores[nodes].astype(np.int32) + mode.cpu_cores > (self.pool.cpu_cores or 0)
        if not mode.is_gang and self.ram is not None:
            blocked |= self.ram[nodes] + mode.ram_gb > (self.pool.ram or 0.0) * (1 + 1e-12)
        cost = self._node_cost(nodes, slots, mode.duration)
        cost[window_any(blocked, slots, mode.duration)] = np.inf
        # A nearly full node is better left to fill up: of equal cost the one with the fewest GPUs to spare.
        spare = self.pool.gpus_per_node - window_sum(taken, slots, mode.duration) / mode.duration
        order = cost + 1e-9 * spare
        if self.shares_gpu(mode):
            return self._offer_share(mode, slots, nodes, taken, cost, order)
        if mode.num_nodes == 1:
            best = np.argmin(order, axis=0)
            return Offer(np.take_along_axis(cost, best[None], 0)[0], [nodes[best]])
        if len(nodes) < mode.num_nodes:
            return Offer(np.full(len(slots), np.inf), [np.zeros(len(slots), dtype=int)] * mode.num_nodes)
        best = np.argsort(order, axis=0, kind="stable")[: mode.num_nodes]
        return Offer(np.take_along_axis(cost, best, 0).sum(axis=0), [nodes[row] for row in best])

    def _offer_share(
        self,
        mode: Mode,
        slots: np.ndarray,
        nodes: np.ndarray,
        taken: np.ndarray,
        cost: np.ndarray,
        order: np.ndarray,
    ) -> Offer:
        used = self.slices[nodes].astype(np.int32)
        blocked = used + mode.slices > self.pool.slices_per_gpu
        if self.pool.gpu_memory is not None:
            blocked |= self.memory[nodes] + mode.memory_gb > self.pool.gpu_memory * (1 + 1e-12)
        # A shared GPU that is empty in a slot becomes a taken one, for which the node must have room.
        blocked |= (used == 0) & (taken[:, None, :] >= self.pool.gpus_per_node)
        full = window_any(blocked, slots, mode.duration)
        fresh = window_sum(used == 0, slots, mode.duration) / mode.duration
        ranked = np.where(full, np.inf, order[:, None, :] + 1e-6 * fresh)
        flat = ranked.reshape(-1, len(slots))
        best = np.argmin(flat, axis=0)
        node, gpu = np.divmod(best, self.pool.gpus_per_node)
        value = cost[node, np.arange(len(slots))]
        value = np.where(np.isfinite(np.take_along_axis(flat, best[None], 0)[0]), value, np.inf)
        return Offer(value, [nodes[node], gpu])

    def _node_cost(self, nodes: np.ndarray, slots: np.ndarray, duration: int) -> np.ndarray:
        """About what a run adds to the cost of each node: slots not yet paid, and for a node that is off nearby its
        boot and the rest of its last block."""
        price = self.rules.price[: self.num_slots]
        cost = window_sum(np.where(self.paid[nodes], 0.0, price), slots, duration)
        if self.rules.is_plain:
            return cost
        before = np.maximum(slots - 1, 0)
        joined = self.paid[np.ix_(nodes, before)] | self.paid[np.ix_(nodes, slots)]
        warm = self.kinds.warm[self.kinds.kind[nodes]][:, None] & (slots == 0)[None, :]
        boot = np.where(joined | warm, 0, self.rules.boot)
        billed = -(-(duration + boot) // self.rules.block) * self.rules.block - duration
        rest = np.where(joined, 0, billed)
        return cost + rest * price[slots][None, :]

    def node_cost(self, row: Row, spot: Spot, length: int | None = None) -> float:
        """About what a kept run (or its first segment) adds to the cost of its nodes."""
        nodes = np.array(self.nodes_of(row.mode, spot))
        self._reach(int(nodes.max()))
        return float(self._node_cost(nodes, np.zeros(1, dtype=int), length or row.duration).sum())

    def has_room(self, row: Row, spot: Spot, length: int | None = None, slot: int = 0) -> bool:
        """Whether a run that had a place (a kept one, which starts in slot 0) still finds room there: others may have
        been put there while it was off."""
        mode, window = row.mode, slice(slot, slot + (length or row.duration))
        nodes = np.array(self.nodes_of(mode, spot))
        self._reach(int(nodes.max()))
        taken = self.taken(nodes)[:, window]
        if self.shares_gpu(mode):
            used = self.slices[spot[0], spot[1], window].astype(np.int32)
            free = (used + mode.slices <= self.pool.slices_per_gpu) & (
                (used > 0) | (taken[0] < self.pool.gpus_per_node)
            )
            if self.pool.gpu_memory is not None:
                memory = self.memory[spot[0], spot[1], window] + mode.memory_gb
                free &= memory <= self.pool.gpu_memory * (1 + 1e-12)
        else:
            per_node = gpus_on_node(mode, self.pool)
            free = (taken + per_node <= self.pool.gpus_per_node).all(axis=0)
        if self.cores is not None and not mode.is_gang:
            cores = self.cores[nodes, window].astype(np.int32) + mode.cpu_cores
            free &= (cores <= (self.pool.cpu_cores or 0)).all(axis=0)
        if self.ram is not None and not mode.is_gang:
            free &= (self.ram[nodes, window] + mode.ram_gb <= (self.pool.ram or 0.0) * (1 + 1e-12)).all(axis=0)
        return bool(free.all())

    def take(self, row: Row, slot: int, spot: Spot, sign: int = 1, length: int | None = None) -> None:
        """Put a run (or a segment of so many slots) on its nodes, or (sign -1) take it off again."""
        mode, window = row.mode, slice(slot, slot + (length or row.duration))
        nodes = self.nodes_of(mode, spot)
        self._reach(max(nodes))
        if self.shares_gpu(mode):
            self._num_shares += sign
            self.slices[spot[0], spot[1], window] += sign * mode.slices
            self.memory[spot[0], spot[1], window] += sign * mode.memory_gb
            if sign < 0 and not self.slices[spot[0], spot[1]].any():
                self.memory[spot[0], spot[1]] = 0.0
        else:
            per_node = gpus_on_node(mode, self.pool)
            self.whole[nodes, window] += sign * per_node
        if self.cores is not None:
            self.cores[nodes, window] += sign * (int(self.pool.cpu_cores or 0) if mode.is_gang else mode.cpu_cores)
        if self.ram is not None:
            self.ram[nodes, window] += sign * ((self.pool.ram or 0.0) if mode.is_gang else mode.ram_gb)
        self.count[nodes] += sign
        for node in nodes:
            self._pay(node)

    def busy(self, node: int) -> np.ndarray:
        """Whether anything runs on a node in each slot, shape (T,)."""
        if node >= len(self.whole):
            return np.zeros(self.num_slots, dtype=bool)
        busy = self.whole[node] > 0
        return busy | (self.slices[node] > 0).any(axis=0) if self._num_shares else busy

    def _pay(self, node: int) -> None:
        if not self.count[node]:
            self.on.pop(node, None)
            self.paid[node] = False
            return
        busy = self.busy(node)
        self.on[node] = cheapest_intervals(self.rules, node, busy)
        if self.rules.is_plain:
            self.paid[node] = busy
            return
        self.paid[node] = False
        for begin, end in self.on[node]:
            self.paid[node, begin : self.rules.billed_end(begin, end)] = True


def _counter(most: int) -> type[np.signedinteger[Any]]:
    """The smallest type that counts up to a limit, and to a multiple of it."""
    return np.int16 if most < 1 << 13 else np.int32
