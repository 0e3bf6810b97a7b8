"""What is free on the nodes at a moment: GPUs with their slices and memory, cores and RAM; and the node that fits best.

A gang takes whole nodes, a large run whole GPUs of one node, a share slices of one GPU. Nodes that are down, or that
will become unavailable before a run ends, are not offered to it; none is where its data could not be read beside what
the others read.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from models.domain.entities import Place, Pool
from models.domain.modes import Mode, slices_on_gpu
from models.grid import closed_nodes
from planner.simulation.reading import Readers, Reading
from planner.simulation.state import Allocation, State

# Sums that were added to and taken from differ from what they should be in their last digits.
_ROUNDING = 1e-9

GpuKey = tuple[int, int, int]
"""(pool, node, GPU)."""


@dataclass(frozen=True)
class _Floor:
    """A pool as it is before anything runs; all rooms of a moment share it."""

    pool: Pool
    order: tuple[int, ...]
    """Nodes that are up: those that are on first, then by index."""
    num_on: int
    """How many of them are on."""
    closes_s: dict[int, float]
    """When the next window begins in which a node cannot be used; nodes without one are left out."""


class _Node:
    """What is free on a node that is in use."""

    __slots__ = ("cores", "memory", "ram", "runs", "slices", "spare")

    def __init__(self, pool: Pool) -> None:
        self.slices = [pool.slices_per_gpu] * pool.gpus_per_node
        self.memory = [math.inf if pool.gpu_memory is None else pool.gpu_memory] * pool.gpus_per_node
        self.cores = math.inf if pool.cpu_cores is None else float(pool.cpu_cores)
        self.ram = math.inf if pool.ram is None else pool.ram
        self.spare = pool.slices_per_gpu * pool.gpus_per_node
        """Free slices of all GPUs."""
        self.runs = 0


class Room:
    """Free GPUs now; `take` and `free` change it."""

    def __init__(self, state: State, reading: Reading | None = None, like: Room | None = None) -> None:
        """`reading`: what sites can serve; without it nothing of that is looked at."""
        self.state, self._reading = state, reading
        self._readers: dict[int, Readers] = defaultdict(Counter)
        self._floors: list[_Floor] = (
            [_floor(state, p) for p in range(len(state.instance.pools))] if like is None else like._floors
        )
        self._used: list[dict[int, _Node]] = [{} for _ in self._floors]
        self.held: set[GpuKey] = set()
        """GPUs that others had better leave alone while there are equal ones, since a job may want to stay there."""

    def anew(self) -> Room:
        """An empty room at the same moment."""
        room = Room(self.state, self._reading, self)
        room.held = self.held
        return room

    def num_up(self, p: int) -> int:
        """Nodes of a pool that are not down."""
        return len(self._floors[p].order)

    def is_any_on(self, p: int) -> bool:
        """Whether some node of a pool is on and up."""
        return self._floors[p].num_on > 0

    def spare(self, p: int, index: int) -> int:
        """Free slices of a node that is in use."""
        return self._used[p][index].spare

    def nodes_in_use(self) -> Iterator[tuple[int, int]]:
        """(pool, node) on which something runs."""
        for p, used in enumerate(self._used):
            yield from ((p, node) for node in used)

    def take(self, allocation: Allocation) -> None:
        """Something runs there from now on."""
        self._change(allocation, 1)

    def free(self, allocation: Allocation) -> None:
        """It does not any more."""
        self._change(allocation, -1)

    def _change(self, allocation: Allocation, sign: int) -> None:
        mode, used = allocation.mode, self._used[allocation.mode.pool]
        pool = self._floors[mode.pool].pool
        if self._reading is not None:
            self._reading.count(mode, sign, self._readers)
        for place in allocation.places:
            node = used.get(place.node)
            if node is None:
                node = used[place.node] = _Node(pool)
            for gpu in place.gpus:
                slices = slices_on_gpu(mode, pool)
                node.slices[gpu] -= sign * slices
                node.spare -= sign * slices
                node.memory[gpu] -= sign * mode.memory_gb
            node.cores -= sign * mode.cpu_cores
            node.ram -= sign * mode.ram_gb
            node.runs += sign
            if node.runs == 0:
                del used[place.node]

    def has(self, allocation: Allocation, seconds: float) -> bool:
        """Whether a run finds room on just these GPUs."""
        mode, used = allocation.mode, self._used[allocation.mode.pool]
        pool = self._floors[mode.pool].pool
        if not self._is_served(mode):
            return False
        for place in allocation.places:
            if not self._is_open(mode.pool, place.node, seconds):
                return False
            node = used.get(place.node)
            if node is None:
                continue
            if node.cores < mode.cpu_cores or node.ram < mode.ram_gb - _ROUNDING:
                return False
            for gpu in place.gpus:
                needed = slices_on_gpu(mode, pool)
                if node.slices[gpu] < needed or node.memory[gpu] < mode.memory_gb - _ROUNDING:
                    return False
        return True

    def fit(self, mode: Mode, seconds: float, *, alone: bool = False) -> Allocation | None:
        """The best places for a run of so many seconds, None where there is no room: the node in use with the least to
        spare, else one that is on, else a new one. `alone`: on nodes where nothing else runs."""
        nodes = next(self.node_sets(mode, seconds, alone=alone), None)
        return None if nodes is None else self._on(mode, nodes)

    def node_sets(self, mode: Mode, seconds: float, *, alone: bool = False) -> Iterator[tuple[int, ...]]:
        """Nodes on which a run finds room, the best fitting first; of nodes that are empty one that is on comes first,
        and others that are like it follow. A gang is offered one set only."""
        if not self._is_served(mode):
            return
        if mode.is_gang or alone:
            empty = [node for _, node in zip(range(mode.num_nodes), self._empty(mode.pool, seconds), strict=False)]
            if len(empty) == mode.num_nodes:
                yield tuple(sorted(empty))
            return
        fits = [
            (node.spare, index)
            for index, node in self._used[mode.pool].items()
            if self._fits(node, mode) and self._is_open(mode.pool, index, seconds)
        ]
        if mode.is_small:
            # A GPU that is shared already is better than a whole one, on whatever node.
            fits = [(spare + (0 if self._shared_gpu(mode, index) else 10**6), index) for spare, index in fits]
        yield from ((index,) for _, index in sorted(fits))
        yield from ((index,) for index in self._empty(mode.pool, seconds))

    def on_nodes(self, mode: Mode, nodes: tuple[int, ...], seconds: float) -> Allocation | None:
        """Places on just these nodes; None where there is no room."""
        if not self._is_served(mode):
            return None
        used = self._used[mode.pool]
        for index in nodes:
            node = used.get(index)
            if not self._is_open(mode.pool, index, seconds) or (node is not None and not self._fits(node, mode)):
                return None
        return self._on(mode, nodes)

    def _is_served(self, mode: Mode) -> bool:
        """Whether its data can be read beside what the others read."""
        return self._reading is None or self._reading.bears(mode, self._readers)

    def _on(self, mode: Mode, nodes: tuple[int, ...]) -> Allocation:
        pool = self._floors[mode.pool].pool
        if mode.is_gang:
            return Allocation(mode, tuple(Place(node=node, gpus=tuple(range(pool.gpus_per_node))) for node in nodes))
        index = nodes[0]
        if mode.is_small:
            gpu = self._shared_gpu(mode, index)
            gpus = self._whole_gpus(mode.pool, index)[:1] if gpu is None else [gpu]
        else:
            gpus = sorted(self._whole_gpus(mode.pool, index)[: mode.gpus])
        return Allocation(mode, (Place(node=index, gpus=tuple(gpus)),))

    def _fits(self, node: _Node, mode: Mode) -> bool:
        """Whether a run finds room beside what runs on a node."""
        if mode.is_gang or node.cores < mode.cpu_cores or node.ram < mode.ram_gb - _ROUNDING:
            return False
        if node.spare < mode.slices:
            return False
        if mode.is_small:
            needed = mode.memory_gb - _ROUNDING
            return any(
                slices >= mode.slices and memory >= needed
                for slices, memory in zip(node.slices, node.memory, strict=True)
            )
        per_gpu = mode.slices // mode.gpus
        return sum(slices == per_gpu for slices in node.slices) >= mode.gpus

    def _shared_gpu(self, mode: Mode, index: int) -> int | None:
        """The GPU in use of a node whose other slices a share fills best."""
        node, whole = self._used[mode.pool].get(index), self._floors[mode.pool].pool.slices_per_gpu
        if node is None:
            return None
        needed = mode.memory_gb - _ROUNDING
        best = [
            (slices, gpu)
            for gpu, slices in enumerate(node.slices)
            if mode.slices <= slices < whole and node.memory[gpu] >= needed
        ]
        return min(best)[1] if best else None

    def _whole_gpus(self, p: int, index: int) -> list[int]:
        """GPUs of a node that are wholly free; those that nobody holds first."""
        pool, node = self._floors[p].pool, self._used[p].get(index)
        gpus = [g for g in range(pool.gpus_per_node) if node is None or node.slices[g] == pool.slices_per_gpu]
        return sorted(gpus, key=lambda gpu: ((p, index, gpu) in self.held, gpu)) if self.held else gpus

    def _empty(self, p: int, seconds: float) -> Iterator[int]:
        used = self._used[p]
        return (i for i in self._floors[p].order if i not in used and self._is_open(p, i, seconds))

    def _is_open(self, p: int, index: int, seconds: float) -> bool:
        if (p, index) in self.state.down:
            return False
        closes = self._floors[p].closes_s
        return not closes or self.state.now_s + seconds <= closes.get(index, math.inf) + _ROUNDING


def _floor(state: State, p: int) -> _Floor:
    pool = state.instance.pools[p]
    closes: dict[int, float] = {}
    closed_now: set[int] = set()
    for window in pool.unavailable:
        nodes = closed_nodes(pool, window)
        if window.since <= state.now_s < window.until:
            closed_now.update(nodes)
        elif window.since > state.now_s:
            for node in nodes:
                closes[node] = min(window.since, closes.get(node, math.inf))
    # Taken as down, so that nothing is offered there.
    closes |= dict.fromkeys(closed_now, -math.inf)
    up = [i for i in range(pool.nodes) if (p, i) not in state.down and i not in closed_now]
    on = [i for i in up if (p, i) in state.on_since_s]
    off = [i for i in up if (p, i) not in state.on_since_s]
    return _Floor(pool, (*on, *off), len(on), closes)
