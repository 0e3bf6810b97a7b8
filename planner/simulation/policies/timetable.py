"""Who is on each GPU when, and where there is room for another from one time to another.

Only for pools in which nothing but GPUs is scarce: neither cores nor RAM, no windows, no gangs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from models.domain import Instance
from models.domain.entities import Place
from models.domain.modes import Mode, slices_on_gpu
from planner.simulation.state import Allocation, Assignment, State

EDGE_S = 1e-3
"""Times of plans that differ by less are one: runs that overlap by less do not meet, shorter ones are none."""


Node = tuple[int, int]
Gpu = tuple[int, int, int]
"""Pool, node and GPU."""


class Timetable:
    """Assignments by GPU; their ends are stated."""

    def __init__(self, state: State, assignments: Iterable[Assignment] = ()) -> None:
        self._state = state
        self._runs: dict[Gpu, list[Assignment]] = defaultdict(list)
        self._busy: dict[int, set[int]] = defaultdict(set)
        """By pool the nodes of which a GPU has ever been taken; all others are alike."""
        for a in assignments:
            self.add(a)

    def add(self, a: Assignment) -> None:
        """Take its GPUs."""
        for gpu in _gpus(a.allocation):
            self._runs[gpu].append(a)
            self._busy[gpu[0]].add(gpu[1])

    def remove(self, a: Assignment) -> None:
        """Give its GPUs back."""
        for gpu in _gpus(a.allocation):
            self._runs[gpu].remove(a)

    def has_room(self, allocation: Allocation, start_s: float, end_s: float) -> bool:
        """Whether an allocation is possible throughout."""
        return all(self._takes(gpu, allocation.mode, start_s, end_s) for gpu in _gpus(allocation))

    def fit(self, mode: Mode, start_s: float, end_s: float) -> Allocation | None:
        """GPUs that are free throughout, on the node on which the fewest others are; None: there are none."""
        pool = self._state.instance.pools[mode.pool]
        needs = max(1, mode.gpus)
        best: tuple[int, Place] | None = None
        for node in self._candidates(mode.pool):
            free = [
                gpu for gpu in range(pool.gpus_per_node) if self._takes((mode.pool, node, gpu), mode, start_s, end_s)
            ]
            if len(free) >= needs and (best is None or len(free) < best[0]):
                best = len(free), Place(node=node, gpus=tuple(free[:needs]))
                if len(free) == needs:
                    break
        return None if best is None else Allocation(mode, (best[1],))

    def _candidates(self, p: int) -> Iterator[int]:
        """Nodes that have been taken, and one of the others."""
        yield from sorted(self._busy[p])
        nodes = range(self._state.instance.pools[p].nodes)
        yield from [node for node in nodes if node not in self._busy[p] and (p, node) not in self._state.down][:1]

    def _takes(self, gpu: Gpu, mode: Mode, start_s: float, end_s: float) -> bool:
        """Whether a GPU has room: all that it is taken by at any time between counts at once."""
        if gpu[:2] in self._state.down:
            return False
        others = [
            a
            for a in self._runs.get(gpu, ())
            if a.start_s < end_s - EDGE_S and (a.end_s is None or a.end_s > start_s + EDGE_S)
        ]
        if not others:
            return True
        pool = self._state.instance.pools[mode.pool]
        slices = sum(slices_on_gpu(a.allocation.mode, pool) for a in others) + slices_on_gpu(mode, pool)
        memory = sum(a.allocation.mode.memory_gb for a in others) + mode.memory_gb
        return slices <= pool.slices_per_gpu and (pool.gpu_memory is None or memory <= pool.gpu_memory)


def is_only_gpus(instance: Instance, p: int) -> bool:
    """Whether a pool is one of those that this is for."""
    pool = instance.pools[p]
    return not pool.unavailable and pool.cpu_cores is None and pool.ram is None


def _gpus(allocation: Allocation) -> list[Gpu]:
    return [(allocation.mode.pool, place.node, gpu) for place in allocation.places for gpu in place.gpus]
