"""Dispatching by priority: the published pressure greedy, and its randomised form.

Time goes forward from event to event (a release or a completion). At each, the waiting jobs are looked at in the order
of their pressure, now + fastest time - due, descending. A job takes the cheapest set-up (mode) with which it meets
its due date, and where there is none the fastest; in it the node in use that fits best, else a new node; where the
set-up finds no node the next ones are tried, and where none does the job waits. As now is the same for all, the order
is that of fastest time - due.

Storage is no part of the rules as they were published: a job reads from the cache where the cache can hold its
dataset, and over the link where it cannot.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.rivals.occupancy import Occupancy
from models.reductions import node_share
from models.starts import Row, Starts
from planner.engines.policies.listing import insert
from planner.engines.schedule import Schedule, Step
from planner.engines.timeline import Spot
from planner.simulation.policies.pressure import swapped_by_weight as swapped

MODE_SHARE = 0.05
"""Part of the set-ups that the randomised form chooses from."""
NODE_SHARE = 0.2
"""Part of the nodes with room that it chooses from."""


@dataclass(frozen=True)
class SetUp:
    """A row of a job as the rules see it."""

    row: int
    cost: float
    """Money for energy, transfer and its part of the nodes, at the first start."""
    duration: int
    first: int
    last: int


class Shop:
    """The set-ups and pressures of an instance, for any number of dispatching runs."""

    def __init__(self, starts: Starts):
        self.starts = starts
        instance = starts.instance
        self.setups = [[self._setup(r) for r in rows] for rows in starts.rows_of_job]
        for j, setups in enumerate(self.setups):
            # Of equal cost the cached one comes first.
            self.setups[j] = sorted(setups, key=lambda setup: (setup.cost, -starts.rows[setup.row].level, setup.row))
        self.fastest = [min((setup.duration for setup in setups), default=0) for setups in self.setups]
        self.due = [math.inf if job.due is None else job.due / instance.slot for job in instance.jobs]
        self.before = [[instance.job_index[name] for name in job.after] for job in instance.jobs]
        self.order = sorted(range(len(instance.jobs)), key=lambda j: (-self.pressure(j), j))
        self.is_steady = not any(pool.unavailable for pool in instance.pools)

    def _setup(self, r: int) -> SetUp:
        row = self.starts.rows[r]
        first = row.only(np.arange(len(row.slots)) == 0)
        cost = float(first.terms["energy"][0]) + row.transfer + float(node_share(self.starts, first)[0])
        return SetUp(r, round(cost, 9), row.duration, int(row.slots[0]), int(row.slots[-1]))

    def pressure(self, j: int) -> float:
        """Fastest time - due, in slots; now is left out, since it is the same for all."""
        return self.fastest[j] - self.due[j]

    def preferred(self, j: int, slot: int) -> list[SetUp]:
        """The set-ups in which a job may start now: the cheapest that meet the due date first, then the fastest."""
        open_now = [setup for setup in self.setups[j] if setup.first <= slot <= setup.last]
        in_time = [setup for setup in open_now if slot + setup.duration <= self.due[j] + 1e-9]
        late = [setup for setup in open_now if slot + setup.duration > self.due[j] + 1e-9]
        return in_time + sorted(late, key=lambda setup: setup.duration)

    def run(
        self,
        order: Sequence[int] | None = None,
        draw: random.Random | None = None,
        is_over: Callable[[], bool] = lambda: False,
    ) -> Schedule | None:
        """A schedule by the rules, in another order where one is given, randomised with `draw`; None where a job that
        must run finds no room on the grid, or where the time is over."""
        schedule, occupancy = Schedule(self.starts), Occupancy(self.starts)
        jobs = self.starts.instance.jobs
        running = [j for j in range(len(jobs)) if jobs[j].running is not None]
        if not all(insert(schedule, j) for j in running):
            return None
        for kept in schedule.chosen.values():
            occupancy.note(kept)
        started = set(running)
        waiting = [j for j in (self.order if order is None else order) if j not in started]
        events = self._events(schedule)
        for slot in range(self.starts.num_slots):
            if slot not in events or not waiting:
                continue
            if is_over():
                return None
            room = [_Room(occupancy, p, slot) for p in range(len(schedule.pools))]
            still: list[int] = []
            for j in waiting:
                step = self._start(schedule, occupancy, room, j, slot, draw)
                if step is None:
                    still.append(j)
                    continue
                schedule.put(j, step)
                occupancy.note(step)
                events.add(schedule.completion(j))
                pool = self.starts.rows[step.row].pool
                room[pool] = _Room(occupancy, pool, slot)
            waiting = still
        lost = set(waiting)
        return schedule if all(jobs[j].reject_cost is not None for j in lost) else None

    def _events(self, schedule: Schedule) -> set[int]:
        """Slots in which something may start that could not before; completions come as jobs start."""
        if not self.is_steady:
            return set(range(self.starts.num_slots))
        firsts = {setup.first for setups in self.setups for setup in setups}
        return firsts | {schedule.completion(j) for j in schedule.chosen}

    def _start(
        self,
        schedule: Schedule,
        occupancy: Occupancy,
        room: list[_Room],
        j: int,
        slot: int,
        draw: random.Random | None,
    ) -> Step | None:
        if any(i not in schedule.chosen or schedule.completion(i) > slot for i in self.before[j]):
            return None
        setups = self.preferred(j, slot)
        if draw is not None:
            best = setups[: math.ceil(MODE_SHARE * len(setups))]
            draw.shuffle(best)
            setups[: len(best)] = best
        for setup in setups:
            row = self.starts.rows[setup.row]
            if not room[row.pool].may_hold(row) or row.slots[row.slots.searchsorted(slot)] != slot:
                continue
            step = schedule.offer(setup.row, np.array([slot]))
            if step is not None:
                return step if draw is None else replace(step, spot=_other_spot(occupancy, step, draw))
        return None


class _Room:
    """GPUs of a pool that are free in a slot: a quick look before a close one."""

    def __init__(self, occupancy: Occupancy, p: int, slot: int):
        taken = occupancy.taken[p][:, slot]
        gpus = occupancy.starts.instance.pools[p].gpus_per_node
        self.has_shared = bool(occupancy.shared[p])
        self.most_free = gpus - int(taken.min(initial=gpus))
        self.num_empty = int((taken == 0).sum())

    def may_hold(self, row: Row) -> bool:
        """Whether a run could find its nodes."""
        if row.mode.is_gang:
            return self.num_empty >= row.mode.num_nodes
        return self.most_free >= max(1, row.mode.gpus) or (row.mode.is_small and self.has_shared)


def _other_spot(occupancy: Occupancy, step: Step, draw: random.Random) -> Spot:
    """Nodes drawn from the best of those with room: in use before new, and with few GPUs to spare. Where more than
    whole GPUs has to fit, the best place stays."""
    row = occupancy.starts.rows[step.row]
    pool, mode = occupancy.starts.instance.pools[row.pool], row.mode
    if occupancy.shares_gpu(row) or pool.cpu_cores is not None or pool.ram is not None:
        return step.spot
    taken = occupancy.most_taken(row.pool, step.slot, step.slot + row.duration)
    fits = taken == 0 if mode.is_gang else taken + max(1, mode.gpus) <= pool.gpus_per_node
    nodes = np.flatnonzero(fits & occupancy.open_nodes(row, step.slot))
    number = max(mode.num_nodes, math.ceil(NODE_SHARE * len(nodes)))
    best = nodes[np.argsort(-taken[nodes], kind="stable")][:number].tolist()
    chosen = sorted(draw.sample(best, mode.num_nodes)) if len(best) >= mode.num_nodes else []
    return tuple(chosen) or step.spot


def swapped_by_weight(shop: Shop, draw: random.Random) -> list[int]:
    """The order of pressure after a pass of swaps of neighbours, likelier the heavier the job that moves up."""
    return swapped(shop.order, shop.starts.instance.jobs, draw)
