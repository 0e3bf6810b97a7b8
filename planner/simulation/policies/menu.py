"""What a job may do from now on: its modes with the time and the money that each would take by the estimates."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from models import grid
from models.domain import Instance
from models.domain.modes import Mode, modes_of, nodes_taken
from planner.simulation.policies.moment import at_moment
from planner.simulation.reading import Reading
from planner.simulation.state import JobState, State

OVERDUE_S = 60.0
"""A job that has outlived its estimate is taken to need this much longer."""


@dataclass(frozen=True)
class Choice:
    """A mode in which a job could start now."""

    mode: Mode
    seconds: float
    """Until it completes: what is left, a restart, and a boot where no node of the pool is on."""
    cost: float
    """Money for its part of the nodes and for energy until then."""
    is_owned: bool


class ModeTable:
    """The modes of the jobs of an instance, and what its sites can serve, made once and kept from call to call."""

    def __init__(self) -> None:
        self._reading: Reading | None = None
        self._modes: dict[int, tuple[Mode, ...]] = {}

    def reading(self, instance: Instance) -> Reading:
        """What the sites can serve."""
        if self._reading is None or instance is not self._reading.instance:
            self._reading, self._modes = Reading(instance), {}
        return self._reading

    def of(self, instance: Instance, j: int) -> tuple[Mode, ...]:
        """The modes of a job, each at the highest speed at which its data can be read if no other job reads: without
        storage in view throttling only takes longer. Spot pools only where the job may start there."""
        reading = self.reading(instance)
        if j not in self._modes:
            job = instance.jobs[j]
            best: dict[tuple[str, int], Mode] = {}
            for mode in modes_of(instance, job):
                if instance.pools[mode.pool].market == "spot" and not job.spot:
                    continue
                if not reading.bears(mode, {}):
                    continue
                known = best.get((mode.name, mode.pool))
                if known is None or mode.speed > known.speed:
                    best[mode.name, mode.pool] = mode
            self._modes[j] = tuple(best.values())
        return self._modes[j]


class Menu:
    """The choices of all jobs at a moment."""

    def __init__(self, state: State, table: ModeTable, num_up: list[int], is_any_on: list[bool]) -> None:
        self.state, self._table = state, table
        self._num_up, self._is_any_on = num_up, is_any_on
        self.is_cloud = [grid.is_cloud(state.instance, p) for p in range(len(state.instance.pools))]
        self._rates = _Rates(state)
        self._choices: dict[int, tuple[Choice, ...]] = {}

    def due_s(self, j: int) -> float:
        """When a job should be complete: its due date or, where that is earlier, its deadline."""
        job = self.state.instance.jobs[j]
        return min(math.inf if time is None else time for time in (job.due, job.deadline))

    def of(self, job: JobState) -> tuple[Choice, ...]:
        """What a job could do on other nodes than now, cheapest first. Pools that it may not use, and those whose nodes
        that are up would not hold it, are left out."""
        if job.job not in self._choices:
            found = [
                self._choice(job, mode)
                for mode in self._table.of(self.state.instance, job.job)
                if self._num_up[mode.pool] >= mode.num_nodes and (self.state.may_burst or not self.is_cloud[mode.pool])
            ]
            found.sort(key=lambda choice: (choice.cost, choice.seconds, choice.mode.pool, choice.mode.name))
            self._choices[job.job] = tuple(found)
        return self._choices[job.job]

    def _choice(self, job: JobState, mode: Mode) -> Choice:
        seconds = self.seconds(job, mode, stays=False)
        return Choice(mode, seconds, self.cost(mode, seconds), not self.is_cloud[mode.pool])

    def seconds(self, job: JobState, mode: Mode, *, stays: bool) -> float:
        """Time until a job completes in a mode, on the GPUs that it is on or on others."""
        seconds = max(job.remaining * mode.duration_s, OVERDUE_S if job.has_run else 0.0)
        if stays:
            return seconds
        restart = self.state.restart_s if job.has_run else 0.0
        boot = 0.0 if self._is_any_on[mode.pool] else self.state.instance.pools[mode.pool].boot_time
        return seconds + restart + boot

    def cost(self, mode: Mode, seconds: float) -> float:
        """Money for a mode's part of its nodes and for its energy, from now on."""
        pool = self.state.instance.pools[mode.pool]
        node, gpu = self._rates.until(mode.pool, seconds)
        return nodes_taken(mode, pool) * node + mode.busy_gpus * gpu

    def node_cost(self, p: int, seconds: float) -> float:
        """Money for a node of a pool being on from now on for so long."""
        return self._rates.until(p, seconds)[0]

    def energy_cost(self, mode: Mode, seconds: float) -> float:
        """Money for the energy of a run from now on for so long."""
        return mode.busy_gpus * self._rates.until(mode.pool, seconds)[1]

    def tardiness_cost(self, j: int, completion_s: float) -> float:
        """Money for completing a job so late."""
        job = self.state.instance.jobs[j]
        return 0.0 if job.due is None else job.weight * max(0.0, completion_s - job.due) / 3600.0


class _Rates:
    """Prices from now on as sums over slots, made as far as they are asked for."""

    def __init__(self, state: State) -> None:
        self._instance = at_moment(state.instance, state.now_s, state.instance.slot)
        self._sums: dict[int, tuple[np.ndarray, np.ndarray]] = {}

    def until(self, p: int, seconds: float) -> tuple[float, float]:
        """Money for a node of a pool, and for the energy of one busy GPU, from now on for so long."""
        slots = seconds / self._instance.slot
        whole = int(slots)
        if p not in self._sums or len(self._sums[p][0]) < whole + 2:
            self._sums[p] = self._sum(p, max(64, 2 * (whole + 2)))
        part = slots - whole
        node, gpu = self._sums[p]
        return (
            float(node[whole] + part * (node[whole + 1] - node[whole])),
            float(gpu[whole] + part * (gpu[whole + 1] - gpu[whole])),
        )

    def _sum(self, p: int, num_slots: int) -> tuple[np.ndarray, np.ndarray]:
        pool = self._instance.pools[p]
        site = self._instance.sites[self._instance.site_index[pool.site]]
        hours = self._instance.slot_h
        node = grid.price_by_slot(self._instance, pool.price, num_slots) * hours
        gpu = grid.price_by_slot(self._instance, site.energy_price, num_slots) * (hours * pool.gpu_power)
        return tuple(np.concatenate([[0.0], np.cumsum(prices)]) for prices in (node, gpu))  # type: ignore[return-value]
