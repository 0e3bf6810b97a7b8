"""Every start of every job with its cost and its use of resources: the one source that the formulation, the pricing
and the search all read.

A **row** is a job in a mode at a cache level; a **start** is a row and a slot. A row's costs are those that the start
alone decides (energy, tardiness, lost value, transfer of what it reads, restart, interruption); what is shared
between jobs (nodes, bandwidth, cache) is priced by whoever plans.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from models import grid
from models.domain.instance import Instance
from models.domain.modes import Mode, modes_of

START_TERMS = ("energy", "tardiness", "lost_value", "transfer", "restart", "interruption")


@dataclass(frozen=True, eq=False)
class Row:
    """A job in a mode at a cache level, with the slots in which it may start and what each start costs."""

    job: int
    mode: Mode
    site: int
    level: int
    """Cache level: it reads `level / cache_levels` of its dataset from the cache; 0 where it reads nothing."""
    cached: float
    link_rate: float
    """MB/s over the site's link while it runs."""
    dataset: int
    """Index of the dataset that it reads; -1 where it reads none."""
    link: tuple[int, int] | None
    """(home, site) of the network link that it reads across; None at home."""
    kept: bool
    """A running job that stays on its places."""
    slots: np.ndarray
    """Start slots, ascending, shape (n,)."""
    terms: dict[str, np.ndarray]
    """Cost of each start by term, each of shape (n,)."""

    @cached_property
    def costs(self) -> np.ndarray:
        """Cost of each start, shape (n,)."""
        total = np.zeros(len(self.slots))
        for values in self.terms.values():
            total = total + values
        return total

    @property
    def pool(self) -> int:
        """Index of the pool."""
        return self.mode.pool

    @property
    def duration(self) -> int:
        """Slots that it occupies."""
        return self.mode.duration

    def only(self, keep: np.ndarray) -> Row:
        """The row with only some of its starts; `keep` is a mask of shape (n,)."""
        if keep.all():
            return self
        count = int(keep.sum())
        terms = {
            name: np.broadcast_to(values[0], count) if values.strides == (0,) else values[keep]
            for name, values in self.terms.items()
        }
        return Row(
            self.job, self.mode, self.site, self.level, self.cached, self.link_rate, self.dataset, self.link,
            self.kept, self.slots[keep], terms,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Starts:
    """All rows of an instance over a grid of `num_slots` slots."""

    instance: Instance
    num_slots: int
    rows: tuple[Row, ...]

    @cached_property
    def rows_of_job(self) -> tuple[tuple[int, ...], ...]:
        """Indices of the rows of each job."""
        rows: list[list[int]] = [[] for _ in self.instance.jobs]
        for index, row in enumerate(self.rows):
            rows[row.job].append(index)
        return tuple(tuple(indices) for indices in rows)

    @cached_property
    def node_price_sums(self) -> tuple[np.ndarray, ...]:
        """For each pool the money for a node from slot 0 until each slot edge: shape (T + block + 1,)."""
        prices = (grid.node_prices(self.instance, pool, self.num_slots) for pool in self.instance.pools)
        return tuple(np.concatenate([[0.0], np.cumsum(price)]) for price in prices)

    @property
    def num_starts(self) -> int:
        """Number of starts in all rows."""
        return sum(len(row.slots) for row in self.rows)

    def with_rows(self, rows: Iterator[Row] | list[Row]) -> Starts:
        """The same instance with other rows; rows without starts are left out."""
        return Starts(self.instance, self.num_slots, tuple(row for row in rows if len(row.slots)))


def all_starts(instance: Instance, num_slots: int, *, ignore_deadlines: bool = False) -> Starts:
    """Every feasible start: after release, before deadline and horizon, on nodes that are available throughout.

    Capacity, storage and precedence are not looked at. With `ignore_deadlines` the deadlines are left out, for the
    diagnosis of infeasible instances.
    """
    rows: list[Row] = []
    nodes = [_UsableNodes(instance, index, num_slots) for index in range(len(instance.pools))]
    energy = [
        np.concatenate([[0.0], np.cumsum(grid.energy_prices(instance, instance.sites[s], pool, num_slots))])
        for pool in instance.pools
        for s in [instance.site_index[pool.site]]
    ]
    for j in range(len(instance.jobs)):
        for mode in modes_of(instance, instance.jobs[j]):
            rows += _rows_of_mode(instance, j, mode, num_slots, nodes[mode.pool], energy[mode.pool], ignore_deadlines)
    return Starts(instance, num_slots, ()).with_rows(rows)


class _UsableNodes:
    """How many nodes of a pool are available and booted throughout a stretch of slots."""

    def __init__(self, instance: Instance, index: int, num_slots: int):
        pool = instance.pools[index]
        usable = grid.usable(instance, pool, num_slots)
        self.sums = np.concatenate([np.zeros((pool.nodes, 1), dtype=int), np.cumsum(usable, axis=1)], axis=1)

    def are_free(self, nodes: list[int], duration: int) -> bool:
        """Whether these nodes can be used from the start for so many slots."""
        return bool((self.sums[nodes, duration] == duration).all())

    def count(self, slots: np.ndarray, duration: int) -> np.ndarray:
        return ((self.sums[:, slots + duration] - self.sums[:, slots]) == duration).sum(axis=0)


def _rows_of_mode(
    instance: Instance,
    j: int,
    mode: Mode,
    num_slots: int,
    nodes: _UsableNodes,
    energy: np.ndarray,
    ignore: bool,
) -> Iterator[Row]:
    job = instance.jobs[j]
    first = grid.release_slot(instance, job.release)
    last = num_slots - mode.duration
    if job.deadline is not None and not ignore:
        last = min(last, grid.deadline_slot(instance, job.deadline) - mode.duration)
    slots = np.arange(first, last + 1)
    running = job.running
    pool = instance.pools[mode.pool]
    is_current = running is not None and (running.mode, running.pool, 1.0) == (mode.name, pool.id, mode.speed)
    own = [place.node for place in running.places] if running is not None and is_current else []
    if own and last >= 0 and nodes.are_free(own, mode.duration):
        yield from _rows_at_slots(instance, j, mode, np.zeros(1, dtype=int), energy, kept=True)
    if running is not None and not running.movable:
        return
    if pool.market == "spot" and not job.spot:
        return  # it may stay in a spot pool that it runs in, but not start again there
    slots = slots[nodes.count(slots, mode.duration) >= mode.num_nodes]
    if len(slots):
        yield from _rows_at_slots(instance, j, mode, slots, energy, kept=False)


def _rows_at_slots(
    instance: Instance, j: int, mode: Mode, slots: np.ndarray, energy: np.ndarray, *, kept: bool
) -> Iterator[Row]:
    """One row for each cache level that the dataset may have at the site."""
    job, pool = instance.jobs[j], instance.pools[mode.pool]
    site_index = instance.site_index[pool.site]
    site = instance.sites[site_index]
    reads = mode.read_rate_mb_s > 0 and job.dataset is not None
    dataset = instance.dataset_index[job.dataset] if reads and job.dataset is not None else -1
    link, link_price = None, 0.0
    levels = 1
    if reads:
        record = instance.datasets[dataset]
        if record.home != site.id:
            link = (instance.site_index[record.home], site_index)
            link_price = instance.links[record.home, site.id].price
        fraction = site.storage.cache_capacity / record.size * (1 + 1e-12)
        levels = 1 + min(instance.cache_levels, int(fraction * instance.cache_levels))
    shared = _terms(instance, j, mode, slots, energy, kept=kept)
    for level in range(levels):
        cached = level / instance.cache_levels
        transfer = link_price * mode.volume_gb * (1 - cached)
        yield Row(
            job=j,
            mode=mode,
            site=site_index,
            level=level,
            cached=cached,
            link_rate=mode.read_rate_mb_s * (1 - cached),
            dataset=dataset,
            link=link,
            kept=kept,
            slots=slots,
            terms={**shared, "transfer": np.broadcast_to(transfer, len(slots))},
        )


def _terms(
    instance: Instance, j: int, mode: Mode, slots: np.ndarray, energy: np.ndarray, *, kept: bool
) -> dict[str, np.ndarray]:
    job, pool = instance.jobs[j], instance.pools[mode.pool]
    ends = slots + mode.duration
    # Terms that are the same for every start take no memory of their own.
    zeros = np.broadcast_to(0.0, len(slots))
    tardiness = zeros
    if job.due is not None and job.weight:
        late_s = np.maximum(0.0, ends * instance.slot - job.due)
        late_s[late_s < 1e-9 * instance.slot] = 0.0
        tardiness = job.weight * late_s / 3600.0
    lost = zeros
    if job.value:
        by = np.array([step.by for step in job.value])
        worth = np.array([step.value for step in job.value] + [0.0])
        # The first step whose time is no earlier than the completion; the tolerance is that of the deadlines.
        lost = worth[0] - worth[np.searchsorted(by, ends * instance.slot - 1e-9 * instance.slot)]
    hours = mode.duration * instance.slot_h
    interruption = pool.interruption_rate * hours * mode.num_nodes * job.restart_cost
    return {
        "energy": mode.busy_gpus * (energy[ends] - energy[slots]),
        "tardiness": tardiness,
        "lost_value": lost,
        "restart": np.broadcast_to(job.restart_cost if job.running is not None and not kept else 0.0, len(slots)),
        "interruption": np.broadcast_to(interruption, len(slots)),
    }
