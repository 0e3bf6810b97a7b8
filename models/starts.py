"""Every start of every job with its cost and its use of resources: the one source that the formulation, the pricing
and the search all read.

A **row** is a job in a mode at a cache level; a **start** is a row and a slot. A row's costs are those that the start
alone decides (energy, tardiness, lost value, transfer of what it reads, restart, interruption); what is shared
between jobs (nodes, bandwidth, cache) is priced by whoever plans.

An elastic job has **pieces** besides: rows whose starts are single slots, of which its runs are made. What it costs to
complete at an edge, and to change, is not in them. Its other rows are runs of one segment, as those of any job.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from models import grid, utilities
from models.domain.entities import Job
from models.domain.instance import Instance
from models.domain.modes import Mode, modes_of
from models.storage.reading import is_served, link_rate

WORK_DONE = 1 - 1e-9
"""Part of its work after which an elastic job counts as complete."""
START_TERMS = ("energy", "tardiness", "lost_value", "transfer", "restart", "interruption")


class StartPrices:
    """What the costs of starts are made of, shared by all rows of an instance over a grid of `num_slots` slots."""

    def __init__(self, instance: Instance, num_slots: int):
        self.instance, self.num_slots = instance, num_slots
        self.energy_sums = tuple(
            np.concatenate([[0.0], np.cumsum(grid.energy_prices(instance, site, pool, num_slots))])
            for pool in instance.pools
            for site in [instance.sites[instance.site_index[pool.site]]]
        )
        """For each pool the money for one busy GPU from slot 0 until each slot edge, shape (T + 1,)."""
        self._edges = np.arange(num_slots + 1)

    def tardiness(self, j: int, edges: np.ndarray | None = None) -> np.ndarray | None:
        """What completing a job at each slot edge costs for being late, shape (T + 1,); None where it never is."""
        job = self.instance.jobs[j]
        if job.due is None or not job.weight:
            return None
        late_s = np.maximum(0.0, (self._edges if edges is None else edges) * self.instance.slot - job.due)
        late_s[late_s < 1e-9 * self.instance.slot] = 0.0
        return np.asarray(job.weight * late_s / 3600.0)

    def lost_value(self, j: int, edges: np.ndarray | None = None) -> np.ndarray | None:
        """What completing a job at each slot edge costs of its worth, shape (T + 1,); None where it has none."""
        slot = self.instance.slot
        completions = (self._edges if edges is None else edges) * slot
        return utilities.lost_value(self.instance.jobs[j], completions, 1e-9 * slot)  # the tolerance of the deadlines

    def restart(self, j: int, kept: bool) -> float:
        """What stopping a running job costs where it is not kept."""
        job = self.instance.jobs[j]
        return job.restart_cost if job.running is not None and not kept else 0.0

    def interruption(self, j: int, mode: Mode) -> float:
        """Expected restarts of a run on spot nodes."""
        rate = self.instance.pools[mode.pool].interruption_rate
        hours = mode.duration * self.instance.slot_h
        return rate * hours * mode.num_nodes * self.instance.jobs[j].restart_cost


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
    transfer: float
    """Money for what it reads across a priced link."""
    slots: np.ndarray
    """Start slots, ascending, shape (n,)."""
    prices: StartPrices = field(repr=False)
    is_piece: bool = False
    """Whether its starts are single slots of an elastic job's run."""

    @cached_property
    def terms(self) -> dict[str, np.ndarray]:
        """Cost of each start by term, each of shape (n,)."""
        if self.is_piece:
            return self.piece_terms
        ends, count = self.slots + self.mode.duration, len(self.slots)
        energy = self.prices.energy_sums[self.pool]
        tardiness, lost = self.prices.tardiness(self.job, ends), self.prices.lost_value(self.job, ends)
        # Terms that are the same for every start take no memory of their own.
        zeros = np.broadcast_to(0.0, count)
        return {
            "energy": self.mode.busy_gpus * (energy[ends] - energy[self.slots]),
            "tardiness": zeros if tardiness is None else tardiness,
            "lost_value": zeros if lost is None else lost,
            "transfer": np.broadcast_to(self.transfer, count),
            "restart": np.broadcast_to(self.prices.restart(self.job, self.kept), count),
            "interruption": np.broadcast_to(self.prices.interruption(self.job, self.mode), count),
        }

    @cached_property
    def piece_terms(self) -> dict[str, np.ndarray]:
        """The same of a piece: what running in each slot costs by itself."""
        return self._stretch_terms(self.slots, 1)

    def stretch_terms(self, slot: int, length: int) -> dict[str, float]:
        """What running in so many slots from one on costs by itself, by term; of a piece."""
        return {name: float(values[0]) for name, values in self._stretch_terms(np.array([slot]), length).items()}

    def _stretch_terms(self, slots: np.ndarray, length: int) -> dict[str, np.ndarray]:
        count, energy = len(slots), self.prices.energy_sums[self.pool]
        zeros = np.broadcast_to(0.0, count)
        return dict.fromkeys(START_TERMS, zeros) | {
            "energy": self.mode.busy_gpus * (energy[slots + length] - energy[slots]),
            "transfer": np.broadcast_to(self.transfer * self.progress * length, count),
            "interruption": np.broadcast_to(
                self.prices.interruption(self.job, self.mode) * length / self.mode.duration, count
            ),
        }

    @property
    def progress(self) -> float:
        """Part of the job's work that a slot does."""
        return self.prices.instance.slot / self.mode.duration_s

    @cached_property
    def costs(self) -> np.ndarray:
        """Cost of each start, shape (n,)."""
        total = np.zeros(len(self.slots))
        for values in self.terms.values():
            total = total + values
        return total

    @property
    def fixed_cost(self) -> float:
        """The part of the cost that is the same for every start; of a piece, for every slot."""
        if self.is_piece:
            interruption = self.prices.interruption(self.job, self.mode) / self.mode.duration
            return self.transfer * self.progress + interruption
        return self.transfer + self.prices.restart(self.job, self.kept) + self.prices.interruption(self.job, self.mode)

    @property
    def pool(self) -> int:
        """Index of the pool."""
        return self.mode.pool

    @property
    def duration(self) -> int:
        """Slots that a start occupies."""
        return 1 if self.is_piece else self.mode.duration

    def only(self, keep: np.ndarray) -> Row:
        """The row with only some of its starts; `keep` is a mask of shape (n,)."""
        return self if keep.all() else replace(self, slots=self.slots[keep])


@dataclass(frozen=True, eq=False)
class Starts:
    """All rows of an instance over a grid of `num_slots` slots."""

    instance: Instance
    num_slots: int
    rows: tuple[Row, ...]
    """Pieces after all others."""

    def runs_of_job(self, j: int) -> list[Row]:
        """All that a job may run in: the pieces of an elastic one, the rows of any other."""
        return [self.rows[r] for r in self.pieces_of_job[j] or self.rows_of_job[j]]

    @cached_property
    def prices(self) -> StartPrices:
        """What the costs of starts are made of."""
        return self.rows[0].prices if self.rows else StartPrices(self.instance, self.num_slots)

    @cached_property
    def rows_of_job(self) -> tuple[tuple[int, ...], ...]:
        """Indices of the rows of each job, pieces left out."""
        return self._rows_by_job(are_pieces=False)

    @cached_property
    def pieces_of_job(self) -> tuple[tuple[int, ...], ...]:
        """Indices of the pieces of each job; none of one that is not elastic."""
        return self._rows_by_job(are_pieces=True)

    def _rows_by_job(self, *, are_pieces: bool) -> tuple[tuple[int, ...], ...]:
        rows: list[list[int]] = [[] for _ in self.instance.jobs]
        for index, row in enumerate(self.rows):
            if row.is_piece == are_pieces:
                rows[row.job].append(index)
        return tuple(tuple(indices) for indices in rows)

    @cached_property
    def elastic(self) -> frozenset[int]:
        """Jobs that may change while they run."""
        return frozenset(j for j, pieces in enumerate(self.pieces_of_job) if pieces)

    @cached_property
    def node_price_sums(self) -> tuple[np.ndarray, ...]:
        """For each pool the money for a node from slot 0 until each slot edge: shape (T + block + 1,)."""
        prices = (grid.node_prices(self.instance, pool, self.num_slots) for pool in self.instance.pools)
        return tuple(np.concatenate([[0.0], np.cumsum(price)]) for price in prices)

    @property
    def num_starts(self) -> int:
        """Number of starts in all rows."""
        return sum(len(row.slots) for row in self.rows)

    def identity(self, r: int) -> tuple[object, ...]:
        """What tells a row from all others of the instance, whatever rows are left out."""
        row = self.rows[r]
        return (row.job, row.mode, row.level, row.kept, row.is_piece)

    def with_rows(self, rows: Iterator[Row] | list[Row]) -> Starts:
        """The same instance with other rows; rows without starts are left out."""
        return Starts(self.instance, self.num_slots, tuple(row for row in rows if len(row.slots)))


def all_starts(instance: Instance, num_slots: int, *, ignore_deadlines: bool = False) -> Starts:
    """Every feasible start: after release, before deadline and horizon, on nodes that are available throughout.

    Capacity, storage and precedence are not looked at. With `ignore_deadlines` the deadlines are left out, for the
    diagnosis of infeasible instances.
    """
    maker = _RowMaker(instance, num_slots, ignore_deadlines)
    rows: list[Row] = []
    pieces: list[Row] = []
    for j, job in enumerate(instance.jobs):
        for mode in modes_of(instance, job):
            rows += maker.rows_of_mode(j, mode)
            if is_elastic(job):
                pieces += maker.rows_of_mode(j, mode, are_pieces=True)
    return Starts(instance, num_slots, ()).with_rows(rows + pieces)


def is_elastic(job: Job) -> bool:
    """Whether a job may change while it runs; one that runs already and may not be moved is kept as it is."""
    if job.elastic is None or job.elastic.changes == 0:
        return False
    return job.running is None or job.running.movable


def completion_edges(starts: Starts, j: int) -> list[int]:
    """Slot edges at which an elastic job may complete: it runs in the slot before, and up to there all of its work
    could be done with every node to itself and no change counted."""
    most = np.zeros(starts.num_slots)
    for r in starts.pieces_of_job[j]:
        row = starts.rows[r]
        most[row.slots] = np.maximum(most[row.slots], row.progress)
    edges = 1 + np.flatnonzero((most > 0) & (np.cumsum(most) >= WORK_DONE * (1 - 1e-12)))
    return [int(t) for t in edges]


def has_impossible_job(starts: Starts) -> bool:
    """Whether a job that must run cannot, by itself; no model is built then."""
    return any(
        job.reject_cost is None and not (completion_edges(starts, j) if j in starts.elastic else starts.rows_of_job[j])
        for j, job in enumerate(starts.instance.jobs)
    )


class _UsableNodes:
    """How many nodes of a pool are available and booted throughout a stretch of slots."""

    def __init__(self, instance: Instance, index: int, num_slots: int):
        kinds = grid.node_kinds(instance, instance.pools[index], num_slots)
        self._kind, self._number, usable = kinds.kind, kinds.number, kinds.usable
        self._sums = np.concatenate([np.zeros((len(usable), 1), dtype=int), np.cumsum(usable, axis=1)], axis=1)
        self._counts: dict[int, tuple[np.ndarray, int]] = {}

    def are_free(self, nodes: list[int], duration: int) -> bool:
        """Whether these nodes can be used from the start for so many slots."""
        return all(self._sums[self._kind[node], duration] == duration for node in nodes)

    def first_lost(self, nodes: list[int]) -> int:
        """The first slot in which not all of these nodes can be used."""
        lost = [np.flatnonzero(np.diff(self._sums[self._kind[node]]) == 0) for node in nodes]
        return min((int(slots[0]) for slots in lost if len(slots)), default=self._sums.shape[1] - 1)

    def starts(self, slots: np.ndarray, duration: int, num_nodes: int) -> np.ndarray:
        """Those of some slots from which enough nodes can be used for so long."""
        if duration not in self._counts:
            throughout = self._sums[:, duration:] - self._sums[:, : self._sums.shape[1] - duration] == duration
            counts = self._number @ throughout
            self._counts[duration] = (counts, int(counts.min()))
        counts, least = self._counts[duration]
        return slots if least >= num_nodes else slots[counts[slots] >= num_nodes]


class _RowMaker:
    """Rows of modes; start slots that rows have in common are one array."""

    def __init__(self, instance: Instance, num_slots: int, ignore_deadlines: bool):
        self.instance, self.num_slots, self.ignore_deadlines = instance, num_slots, ignore_deadlines
        self.prices = StartPrices(instance, num_slots)
        self.nodes = [_UsableNodes(instance, index, num_slots) for index in range(len(instance.pools))]
        self._all_slots = np.arange(num_slots)
        self._sites = [instance.site_index[pool.site] for pool in instance.pools]

    def rows_of_mode(self, j: int, mode: Mode, *, are_pieces: bool = False) -> Iterator[Row]:
        """A row for each cache level, of a kept run and of any other."""
        instance, job, pool = self.instance, self.instance.jobs[j], self.instance.pools[mode.pool]
        first, duration = grid.release_slot(instance, job.release), 1 if are_pieces else mode.duration
        last = self.num_slots - duration
        if job.deadline is not None and not self.ignore_deadlines:
            last = min(last, grid.deadline_slot(instance, job.deadline) - duration)
        running = job.running
        is_current = running is not None and (running.mode, running.pool, 1.0) == (mode.name, pool.id, mode.speed)
        own = [place.node for place in running.places] if running is not None and is_current else []
        if own and last >= 0 and self.nodes[mode.pool].are_free(own, duration):
            stays = min(self.nodes[mode.pool].first_lost(own), last + 1, mode.duration) if are_pieces else 1
            slots = np.arange(stays)
            yield from self._rows_by_level(j, mode, slots, kept=True, is_piece=are_pieces)
        if running is not None and (not running.movable or (job.elastic is not None and job.elastic.changes == 0)):
            return
        if pool.market == "spot" and not job.spot:
            return  # it may stay in a spot pool that it runs in, but not start again there
        if last < first:
            return
        slots = self.nodes[mode.pool].starts(self._all_slots[first : last + 1], duration, mode.num_nodes)
        if len(slots):
            yield from self._rows_by_level(j, mode, slots, kept=False, is_piece=are_pieces)

    def _rows_by_level(self, j: int, mode: Mode, slots: np.ndarray, *, kept: bool, is_piece: bool) -> Iterator[Row]:
        """One row for each cache level that the dataset may have at the site, and that is of use to the reader."""
        instance, job = self.instance, self.instance.jobs[j]
        s = self._sites[mode.pool]
        dataset, link, link_price, levels = -1, None, 0.0, 1
        speed = instance.sites[s].storage.cache_speed
        # A segment reads for the whole of its slots.
        is_segment = job.elastic is not None and not is_piece
        volume_gb = mode.read_rate_mb_s * mode.duration * instance.slot / 1000.0 if is_segment else mode.volume_gb
        if mode.read_rate_mb_s > 0 and job.dataset is not None:
            dataset = instance.dataset_index[job.dataset]
            record, site = instance.datasets[dataset], instance.sites[s]
            if record.home != site.id:
                link = (instance.site_index[record.home], s)
                link_price = instance.links[record.home, site.id].price
            if is_served(mode.read_rate_mb_s, speed):
                fraction = site.storage.cache_capacity / record.size * (1 + 1e-12)
                levels = 1 + min(instance.cache_levels, int(fraction * instance.cache_levels))
        for level in range(levels):
            cached = level / instance.cache_levels
            yield Row(
                job=j,
                mode=mode,
                site=s,
                level=level,
                cached=cached,
                link_rate=link_rate(mode.read_rate_mb_s, cached, speed),
                dataset=dataset,
                link=link,
                kept=kept,
                transfer=link_price * volume_gb * (1 - cached),
                slots=slots,
                prices=self.prices,
                is_piece=is_piece,
            )
