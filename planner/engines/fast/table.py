"""The instance and its rows as plain arrays, in the form that compiled code takes.

Made from `models.starts.Starts` and nothing else, so pricing and search see exactly the starts that the formulation
sees. No array has an entry for every start: the own cost of start (r, t) is

    fixed[r] + busy[r] (energy[p, t + d[r]] - energy[p, t]) + late[j, t + d[r]].
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from models import grid
from models.domain.instance import Instance
from models.domain.modes import gpus_on_node
from models.precedence import topological_order
from models.starts import Starts
from models.storage.tariff import tariff_of

UNLIMITED = 2**40
MOST_CHANGES = 7
"""Of an elastic job in the search, however often it may change."""


class Rows(NamedTuple):
    """One entry a row of `Starts.rows`, in its order."""

    job: np.ndarray
    pool: np.ndarray
    duration: np.ndarray
    first: np.ndarray
    """First start slot."""
    last: np.ndarray
    """Last start slot."""
    mask: np.ndarray
    """Index into `Table.masks` where slots between them are left out; else -1."""
    num_nodes: np.ndarray
    gpus: np.ndarray
    """Whole GPUs on each of its nodes; 0 where it takes slices of one shared GPU."""
    slices: np.ndarray
    """Slices of the shared GPU; 0 where it takes whole ones."""
    memory: np.ndarray
    """GB on the shared GPU."""
    cores: np.ndarray
    """CPU cores on each of its nodes; 0 where the pool does not state them."""
    ram: np.ndarray
    site: np.ndarray
    dataset: np.ndarray
    level: np.ndarray
    link: np.ndarray
    """Index of the network link that it reads across; -1 at home."""
    rate: np.ndarray
    """MB/s over the link of its site."""
    kept: np.ndarray
    busy: np.ndarray
    """GPUs that draw energy."""
    fixed: np.ndarray
    """Money for any start; of a piece for each slot."""
    work: np.ndarray
    """Of a piece the part of the job's work that a slot does; else 0."""
    width: np.ndarray
    """Slices of all of its nodes."""


class Pools(NamedTuple):
    """One entry a pool."""

    node_start: np.ndarray
    """First node of each pool in the numbering of all nodes, shape (P + 1,)."""
    gpus: np.ndarray
    slices_per_gpu: np.ndarray
    gpu_memory: np.ndarray
    cores: np.ndarray
    ram: np.ndarray
    block: np.ndarray
    boot: np.ndarray
    price: np.ndarray
    """Money for a node in each slot, tails beyond the horizon included, shape (P, T + longest block)."""
    price_sums: np.ndarray
    """Its prefix sums, shape (P, T + longest block + 1)."""
    energy: np.ndarray
    """Prefix sums of the money for a busy GPU, shape (P, T + 1)."""

    @property
    def node_slices(self) -> np.ndarray:
        """Slices of all GPUs of a node, shape (P,)."""
        return self.gpus * self.slices_per_gpu


class Nodes(NamedTuple):
    """One entry a node; nodes of one kind are alike."""

    pool: np.ndarray
    kind: np.ndarray
    usable: np.ndarray
    """Shape (kinds, T)."""
    available: np.ndarray
    warm: np.ndarray


class Jobs(NamedTuple):
    """One entry a job."""

    row_start: np.ndarray
    """First row of each job, shape (J + 1,); pieces are elsewhere."""
    piece_start: np.ndarray
    """First piece of each job, shape (J + 1,)."""
    changes: np.ndarray
    """How often it may change; 0 where it is not elastic."""
    restart: np.ndarray
    """Money for a change."""
    runs: np.ndarray
    """Whether it runs already."""
    late: np.ndarray
    """Money for tardiness and lost value by completion slot edge, shape (J, T + 1)."""
    reject: np.ndarray
    """Infinite where it must run."""
    before_start: np.ndarray
    before: np.ndarray
    after_start: np.ndarray
    after: np.ndarray
    twin: np.ndarray
    """The first job that is identical to each; itself where there is none before."""


class Storage(NamedTuple):
    """Sites, datasets and links."""

    piece_start: np.ndarray
    alpha: np.ndarray
    """Of each line of a tariff; a power law is known by its chords."""
    beta: np.ndarray
    chord_error: float
    """Money by which all tariffs together may cost more than their lines at most: 0 but for power laws."""
    hours: np.ndarray
    cap: np.ndarray
    cache_capacity: np.ndarray
    cache_cost: np.ndarray
    """Money for a dataset at a level, staging included, shape (S, D, L + 1)."""
    cache_size: np.ndarray
    """GB, shape (S, D, L + 1)."""
    link_cap: np.ndarray


@dataclass(frozen=True, eq=False)
class Table:
    """Everything that the fast engine reads of a problem."""

    starts: Starts
    rows: Rows
    pools: Pools
    nodes: Nodes
    jobs: Jobs
    storage: Storage
    masks: np.ndarray
    """Start slots allowed, for rows with holes, shape (masks, T)."""
    kept_start: np.ndarray
    kept_node: np.ndarray
    kept_gpu: np.ndarray

    @classmethod
    def of(cls, starts: Starts) -> Table:
        """The table of some starts."""
        instance = starts.instance
        pools = _pools(instance, starts)
        rows, masks = _rows(starts)
        kept = [_kept_places(instance, j, pools.node_start) for j in range(len(instance.jobs))]
        kept_start = np.cumsum([0, *(len(nodes) for nodes, _ in kept)]).astype(np.int32)
        return cls(
            starts,
            rows,
            pools,
            _nodes(instance, starts.num_slots),
            _jobs(starts, rows),
            _storage(instance, starts.num_slots),
            masks,
            kept_start,
            np.array([node for nodes, _ in kept for node in nodes], dtype=np.int32),
            np.array([gpu for _, gpu in kept], dtype=np.int32),
        )

    @property
    def instance(self) -> Instance:
        """The instance."""
        return self.starts.instance

    @property
    def num_slots(self) -> int:
        """Slots of the grid."""
        return self.starts.num_slots

    @property
    def num_jobs(self) -> int:
        """Jobs of the instance."""
        return len(self.jobs.reject)

    @cached_property
    def elastic(self) -> list[int]:
        """Jobs that may change while they run."""
        return np.flatnonzero(np.diff(self.jobs.piece_start) > 0).tolist()

    def pieces_of(self, j: int) -> np.ndarray:
        """The pieces of a job."""
        return np.arange(self.jobs.piece_start[j], self.jobs.piece_start[j + 1])

    @cached_property
    def depth(self) -> list[int]:
        """Predecessors of each job one after the other, counted along the longest chain."""
        jobs = self.jobs
        depth: list[int] = [0] * self.num_jobs
        for j in topological_order(self.instance):
            before = jobs.before[jobs.before_start[j] : jobs.before_start[j + 1]]
            depth[j] = max((depth[i] + 1 for i in before.tolist()), default=0)
        return depth

    def after_predecessors(self, order: list[int]) -> list[int]:
        """The same jobs, each after its predecessors, otherwise in their order."""
        return sorted(order, key=self.depth.__getitem__) if len(self.jobs.before) else order

    def with_successors(self, some: Iterable[int]) -> list[int]:
        """These jobs and all that run after any of them, in the order of the table."""
        chosen, jobs = set(some), self.jobs
        for j in self.after_predecessors([*range(self.num_jobs)]) if len(jobs.before) else ():
            if chosen.intersection(jobs.before[jobs.before_start[j] : jobs.before_start[j + 1]].tolist()):
                chosen.add(j)
        return sorted(chosen)


def _rows(starts: Starts) -> tuple[Rows, np.ndarray]:
    instance, rows = starts.instance, starts.rows
    links = {(link.source, link.target): k for k, link in enumerate(instance.network)}
    sites = [site.id for site in instance.sites]
    ints: list[tuple[int, ...]] = []
    floats: list[tuple[float, ...]] = []
    masks: list[np.ndarray] = []
    for row in rows:
        mode, pool = row.mode, instance.pools[row.mode.pool]
        first, last = int(row.slots[0]), int(row.slots[-1])
        mask = -1
        if last - first + 1 != len(row.slots):
            mask = len(masks)
            masks.append(np.isin(np.arange(starts.num_slots), row.slots))
        shares = mode.is_small and pool.slices_per_gpu > 1
        whole = gpus_on_node(mode, pool)
        cores = 0 if pool.cpu_cores is None else pool.cpu_cores if mode.is_gang else mode.cpu_cores
        ram = 0.0 if pool.ram is None else pool.ram if mode.is_gang else mode.ram_gb
        link = -1 if row.link is None else links[sites[row.link[0]], sites[row.link[1]]]
        ints.append((
            row.job, mode.pool, row.duration, first, last, mask, mode.num_nodes, 0 if shares else whole,
            mode.slices if shares else 0, cores, row.site, row.dataset, row.level, link, row.kept,
            mode.num_nodes * mode.slices,
        ))  # fmt: skip
        floats.append((
            mode.memory_gb if shares else 0.0, ram, row.link_rate, mode.busy_gpus, row.fixed_cost,
            row.progress if row.is_piece else 0.0,
        ))  # fmt: skip
    i = np.array(ints, dtype=np.int32).reshape(len(rows), 16).T.copy()
    f = np.array(floats, dtype=float).reshape(len(rows), 6).T.copy()
    found = Rows(
        job=i[0], pool=i[1], duration=i[2], first=i[3], last=i[4], mask=i[5], num_nodes=i[6], gpus=i[7], slices=i[8],
        memory=f[0], cores=i[9], ram=f[1], site=i[10], dataset=i[11], level=i[12], link=i[13], rate=f[2],
        kept=i[14].astype(np.bool_), busy=f[3], fixed=f[4], work=f[5], width=i[15],
    )  # fmt: skip
    return found, np.array(masks, dtype=np.bool_).reshape(len(masks), starts.num_slots)


def _pools(instance: Instance, starts: Starts) -> Pools:
    pools = instance.pools
    blocks = np.array([grid.block_slots(instance, pool) for pool in pools], dtype=np.int32)
    length = starts.num_slots + int(blocks.max(initial=1))
    price = np.zeros((len(pools), length))
    for p, pool in enumerate(pools):
        listed = grid.node_prices(instance, pool, starts.num_slots)[:length]
        price[p, : len(listed)] = listed
    return Pools(
        node_start=np.cumsum([0, *(pool.nodes for pool in pools)]).astype(np.int32),
        gpus=np.array([pool.gpus_per_node for pool in pools], dtype=np.int32),
        slices_per_gpu=np.array([pool.slices_per_gpu for pool in pools], dtype=np.int32),
        gpu_memory=np.array([math.inf if pool.gpu_memory is None else pool.gpu_memory for pool in pools]),
        cores=np.array([UNLIMITED if pool.cpu_cores is None else pool.cpu_cores for pool in pools], dtype=np.int64),
        ram=np.array([math.inf if pool.ram is None else pool.ram for pool in pools]),
        block=blocks,
        boot=np.array([grid.boot_slots(instance, pool) for pool in pools], dtype=np.int32),
        price=price,
        price_sums=np.concatenate([np.zeros((len(pools), 1)), np.cumsum(price, axis=1)], axis=1),
        energy=np.array(starts.prices.energy_sums),
    )


def _nodes(instance: Instance, num_slots: int) -> Nodes:
    kinds = [grid.node_kinds(instance, pool, num_slots) for pool in instance.pools]
    offset = np.cumsum([0, *(len(found.number) for found in kinds)])
    return Nodes(
        pool=np.repeat(np.arange(len(kinds), dtype=np.int32), [len(found.kind) for found in kinds]),
        kind=np.concatenate([found.kind + k for found, k in zip(kinds, offset[:-1], strict=True)]).astype(np.int32),
        usable=np.concatenate([found.usable for found in kinds]),
        available=np.concatenate([found.available for found in kinds]),
        warm=np.concatenate([found.warm for found in kinds]),
    )


def _jobs(starts: Starts, rows: Rows) -> Jobs:
    instance = starts.instance
    late = np.zeros((len(instance.jobs), starts.num_slots + 1))
    prices = starts.prices
    for j in range(len(instance.jobs)):
        for part in (prices.tardiness(j), prices.lost_value(j)):
            if part is not None:
                late[j] += part
    before = [[instance.job_index[name] for name in job.after] for job in instance.jobs]
    after: list[list[int]] = [[] for _ in instance.jobs]
    for j, names in enumerate(before):
        for i in names:
            after[i].append(j)
    whole = rows.work == 0
    row_start = _starts_of(rows.job[whole], len(instance.jobs))
    piece_start = int(whole.sum()) + _starts_of(rows.job[~whole], len(instance.jobs))
    most = [
        MOST_CHANGES if job.elastic is None or job.elastic.changes is None else job.elastic.changes
        for job in instance.jobs
    ]
    linked = {j for j, names in enumerate(before) if names} | {i for names in before for i in names}
    return Jobs(
        row_start=row_start,
        piece_start=piece_start,
        changes=np.where(np.diff(piece_start) > 0, np.minimum(most, MOST_CHANGES), 0).astype(np.int32),
        restart=np.array([job.restart_cost for job in instance.jobs]),
        runs=np.array([job.running is not None for job in instance.jobs], dtype=np.bool_),
        late=late,
        reject=np.array([math.inf if job.reject_cost is None else job.reject_cost for job in instance.jobs]),
        before_start=_offsets(before),
        before=np.array([i for names in before for i in names], dtype=np.int32),
        after_start=_offsets(after),
        after=np.array([k for names in after for k in names], dtype=np.int32),
        twin=_twins(instance, rows, row_start, late, linked),
    )


def _starts_of(jobs: np.ndarray, number: int) -> np.ndarray:
    """Where the rows of each job begin, from their jobs in ascending order, shape (number + 1,)."""
    return np.concatenate([[0], np.cumsum(np.bincount(jobs, minlength=number))]).astype(np.int32)


def _twins(instance: Instance, rows: Rows, row_start: np.ndarray, late: np.ndarray, linked: set[int]) -> np.ndarray:
    """Identical jobs are priced once: the same rows, the same costs at every edge, no predecessor or successor."""
    twin = np.arange(len(instance.jobs), dtype=np.int32)
    seen: dict[bytes, int] = {}
    fields = [values for name, values in zip(Rows._fields, rows, strict=True) if name != "job"]
    for j, job in enumerate(instance.jobs):
        if j in linked or job.running is not None or job.elastic is not None:
            continue
        part = slice(row_start[j], row_start[j + 1])
        what = [values[part].tobytes() for values in fields]
        key = b"|".join([repr((job.reject_cost, job.dataset)).encode(), late[j].tobytes(), *what])
        digest = hashlib.blake2b(key, digest_size=16).digest()
        twin[j] = seen.setdefault(digest, j)
    return twin


def _offsets(lists: list[list[int]]) -> np.ndarray:
    return np.cumsum([0, *map(len, lists)]).astype(np.int32)


def _storage(instance: Instance, num_slots: int) -> Storage:
    tariffs = [tariff_of(site.storage) for site in instance.sites]
    levels = np.arange(instance.cache_levels + 1) / instance.cache_levels
    cost = np.zeros((len(instance.sites), len(instance.datasets), len(levels)))
    size = np.zeros_like(cost)
    hours = np.array([grid.billed_hours(instance, site, num_slots) for site in instance.sites])
    for s, site in enumerate(instance.sites):
        for d, dataset in enumerate(instance.datasets):
            link = instance.links.get((dataset.home, site.id))
            size[s, d] = dataset.size * levels
            each_gb = site.storage.cache_price * hours[s] + (link.price if link is not None else 0.0)
            cost[s, d] = size[s, d] * each_gb
    lines = [line for tariff in tariffs for line in tariff.lines]
    return Storage(
        piece_start=np.cumsum([0, *(len(tariff.lines) for tariff in tariffs)]).astype(np.int32),
        alpha=np.array([alpha for alpha, _ in lines], dtype=float),
        beta=np.array([beta for _, beta in lines], dtype=float),
        chord_error=float(sum(tariff.chord_error * h for tariff, h in zip(tariffs, hours.tolist(), strict=True))),
        hours=hours,
        cap=np.array([tariff.cap for tariff in tariffs]),
        cache_capacity=np.array([site.storage.cache_capacity for site in instance.sites]),
        cache_cost=cost,
        cache_size=size,
        link_cap=np.array([math.inf if link.bandwidth is None else link.bandwidth for link in instance.network]),
    )


def _kept_places(instance: Instance, j: int, node_start: np.ndarray) -> tuple[list[int], int]:
    running = instance.jobs[j].running
    if running is None:
        return [], 0
    offset = int(node_start[instance.pool_index[running.pool]])
    return [offset + place.node for place in running.places], running.places[0].gpus[0]
