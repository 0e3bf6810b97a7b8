"""Later stretches of a plan on GPUs that nobody needs just before or after, where there are any and they cost nothing.

A plan that is made in slots packs its runs end to end. When times are made exact afterwards, a run that could end later
in a cheaper way is then held by the next one on its GPUs, though others are free.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from models.domain.entities import Place
from models.grid import is_cloud
from planner.simulation.state import Allocation, Assignment, State

Gpu = tuple[int, int, int]
"""Pool, node and GPU."""


def spread(state: State, assignments: Sequence[Assignment], margin_s: float) -> tuple[Assignment, ...]:
    """The assignments with those that begin later, on whole GPUs of one owned node without a price, moved to GPUs that
    are free from so many seconds before them to as many after, where there are such."""
    calendar = _Calendar(assignments)
    made = list(assignments)
    order = sorted(range(len(made)), key=lambda k: (made[k].start_s, k))
    for k in order:
        a = made[k]
        pool = state.instance.pools[a.allocation.mode.pool]
        is_apt = a.start_s > state.now_s and not a.allocation.mode.is_gang and not a.allocation.mode.is_small
        if not is_apt or pool.price != 0.0 or is_cloud(state.instance, a.allocation.mode.pool) or pool.boot_time > 0:
            continue
        if pool.unavailable or pool.cpu_cores is not None or pool.ram is not None or calendar.has_room(a, margin_s):
            continue
        for node in range(pool.nodes):
            if (a.allocation.mode.pool, node) in state.down:
                continue
            free = [
                gpu
                for gpu in range(pool.gpus_per_node)
                if calendar.is_free((a.allocation.mode.pool, node, gpu), a, margin_s)
            ]
            if len(free) >= a.allocation.mode.gpus:
                places = (Place(node=node, gpus=tuple(free[: a.allocation.mode.gpus])),)
                calendar.remove(k, a)
                made[k] = replace(a, allocation=Allocation(a.allocation.mode, places))
                calendar.add(k, made[k])
                break
    return tuple(made)


class _Calendar:
    """Who is on each GPU when."""

    def __init__(self, assignments: Sequence[Assignment]) -> None:
        self._runs: dict[Gpu, dict[int, Assignment]] = defaultdict(dict)
        for k, a in enumerate(assignments):
            self.add(k, a)

    def add(self, k: int, a: Assignment) -> None:
        for gpu in _gpus(a):
            self._runs[gpu][k] = a

    def remove(self, k: int, a: Assignment) -> None:
        for gpu in _gpus(a):
            del self._runs[gpu][k]

    def has_room(self, a: Assignment, margin_s: float) -> bool:
        """Whether all GPUs of an assignment are free around it."""
        return all(self.is_free(gpu, a, margin_s) for gpu in _gpus(a))

    def is_free(self, gpu: Gpu, a: Assignment, margin_s: float) -> bool:
        """Whether no other job is on a GPU around an assignment."""
        for other in self._runs.get(gpu, {}).values():
            if other.job == a.job:
                continue
            ends_before = other.end_s is not None and other.end_s + margin_s <= a.start_s
            starts_after = a.end_s is not None and a.end_s + margin_s <= other.start_s
            if not ends_before and not starts_after:
                return False
        return True


def _gpus(a: Assignment) -> list[Gpu]:
    return [(a.allocation.mode.pool, place.node, gpu) for place in a.allocation.places for gpu in place.gpus]
