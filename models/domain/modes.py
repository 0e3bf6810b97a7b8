"""The usable modes of every job: entries of the instance resolved against its pools.

A mode is (entry, pool, speed level). Its duration is that of the entry divided by the speed level (times the
slow-down of a share), rounded up to whole slots; its read rate is multiplied by the speed level, so the volume read
does not depend on the speed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from models.domain.entities import Job, ModeEntry, Pool, Throughput

# A duration that is a whole number of slots but for rounding errors is that number.
ROUNDING = 1e-9


@dataclass(frozen=True)
class Mode:
    """One way to run a job in one pool at one speed. Durations in slots where no unit is named."""

    name: str
    pool: int
    speed: float
    gpus: int
    """Whole GPUs; 0 for a share of one."""
    num_nodes: int
    """Nodes it takes part of; more than 1: a gang, which takes them whole."""
    slices: int
    """Slices of a node that it takes; of each node, for a gang."""
    busy_gpus: float
    """GPUs that draw energy (a share draws its share)."""
    duration: int
    duration_s: float
    read_rate_mb_s: float
    memory_gb: float
    """Memory needed on each of its GPUs; 0 where not stated."""
    cpu_cores: int
    ram_gb: float
    dataset: str | None = None
    """What it reads; None: nothing."""

    @property
    def is_gang(self) -> bool:
        """Whether it spans several whole nodes."""
        return self.num_nodes > 1

    @property
    def is_small(self) -> bool:
        """Whether it takes a share of one GPU."""
        return self.gpus == 0

    @property
    def volume_gb(self) -> float:
        """What it reads from beginning to end."""
        return self.read_rate_mb_s * self.duration_s / 1000.0


def nodes_taken(mode: Mode, pool: Pool) -> float:
    """Nodes that a run takes, a part of one counted by its slices."""
    return mode.num_nodes * mode.slices / (pool.gpus_per_node * pool.slices_per_gpu)


def gpus_on_node(mode: Mode, pool: Pool) -> int:
    """GPUs that a run holds on each of its nodes; a share holds a part of one."""
    return pool.gpus_per_node if mode.is_gang else max(1, mode.gpus)


def slices_on_gpu(mode: Mode, pool: Pool) -> int:
    """Slices that a run takes of each GPU that it holds."""
    return mode.slices if mode.is_small else pool.slices_per_gpu


class Cluster(Protocol):
    """What the modes of a job depend on besides the job; an instance has it."""

    @property
    def slot(self) -> float:
        """Length of a slot in seconds."""

    @property
    def pools(self) -> tuple[Pool, ...]:
        """Pools of nodes."""

    @property
    def throughputs(self) -> tuple[Throughput, ...]:
        """Measured speeds."""

    def is_read_at(self, dataset: str, site: str) -> bool:
        """Whether a dataset can be read at a site."""


def entries_of(job: Job, throughputs: tuple[Throughput, ...]) -> Iterator[ModeEntry]:
    """The mode entries of a job: its table, or what its samples and its model's throughputs make."""
    yield from job.modes
    if job.model is None or job.samples is None:
        return
    for row in throughputs:
        if row.model == job.model:
            yield ModeEntry(
                gpu=row.gpu,
                gpus=row.gpus,
                share=row.share,
                duration=job.samples / row.samples_per_s,
                read_rate=row.samples_per_s * (job.sample_size or 0.0) * 1000.0,
                memory=row.memory,
            )


def entry_name(entry: ModeEntry) -> str:
    """The name of a mode: its id, or made from its GPUs: 2xA100, 0.25xT4."""
    if entry.id is not None:
        return entry.id
    return f"{entry.gpus if entry.gpus is not None else f'{entry.share:g}'}x{entry.pool or entry.gpu}"


def with_entries(job: Job, entries: tuple[ModeEntry, ...]) -> Job:
    """The job with these modes and no others."""
    return job.model_copy(update={"modes": entries, "model": None, "samples": None, "sample_size": None})


def misfit(entry: ModeEntry, pool: Pool, job: Job) -> str | None:
    """Why a mode does not fit a pool's nodes; None where it fits."""
    memory, cores, ram = _needs(entry, job)
    if entry.gpus is not None and entry.gpus > pool.gpus_per_node * pool.nodes:
        return f"needs {entry.gpus} GPUs of the {pool.gpus_per_node * pool.nodes} in pool {pool.id}"
    if pool.nodes == 0:
        return f"needs a node of pool {pool.id}, which has none"
    if pool.gpu_memory is not None and memory > pool.gpu_memory:
        return f"needs {memory:g} GB on each GPU of the {pool.gpu_memory:g} GB in pool {pool.id}"
    if pool.cpu_cores is not None and cores > pool.cpu_cores:
        return f"needs {cores} CPU cores on a node of the {pool.cpu_cores} in pool {pool.id}"
    if pool.ram is not None and ram > pool.ram:
        return f"needs {ram:g} GB of RAM on a node of the {pool.ram:g} GB in pool {pool.id}"
    return None


def _needs(entry: ModeEntry, job: Job) -> tuple[float, int, float]:
    memory = entry.memory if entry.memory is not None else job.memory
    cores = entry.cpu_cores if entry.cpu_cores is not None else job.cpu_cores
    ram = entry.ram if entry.ram is not None else job.ram
    return memory or 0.0, cores or 0, ram or 0.0


def slots_of(duration_s: float, slot_s: float) -> int:
    """Whole slots that hold a duration, at least one."""
    return max(1, math.ceil(duration_s / slot_s - ROUNDING))


def modes_of(instance: Cluster, job: Job) -> tuple[Mode, ...]:
    """Every usable mode of a job: it fits the pool, its data can be read there, spot only where allowed.

    The mode of a running job is usable in its own pool whatever the rules on spot say: it is there already.
    """
    modes: list[Mode] = []
    for entry in entries_of(job, instance.throughputs):
        for index, pool in enumerate(instance.pools):
            if (entry.pool != pool.id and entry.gpu != pool.gpu) or misfit(entry, pool, job):
                continue
            runs_here = (
                job.running is not None and job.running.pool == pool.id and job.running.mode == entry_name(entry)
            )
            if pool.market == "spot" and not job.spot and not runs_here:
                continue
            reads = entry.read_rate > 0 and job.dataset is not None
            if reads and not instance.is_read_at(str(job.dataset), pool.site):
                continue
            modes += [_mode(entry, job, index, pool, speed, instance.slot) for speed in job.speed_levels]
    return tuple(modes)


def _mode(entry: ModeEntry, job: Job, index: int, pool: Pool, speed: float, slot_s: float) -> Mode:
    memory, cores, ram = _needs(entry, job)
    if entry.gpus is not None:
        num_nodes = math.ceil(entry.gpus / pool.gpus_per_node)
        whole = num_nodes > 1
        slices = (pool.gpus_per_node if whole else entry.gpus) * pool.slices_per_gpu
        gpus, busy_gpus = entry.gpus, float(entry.gpus)
    else:
        num_nodes, gpus = 1, 0
        slices = math.ceil((entry.share or 0.0) * pool.slices_per_gpu - ROUNDING)
        busy_gpus = slices / pool.slices_per_gpu
    duration_s = entry.duration * (entry.slowdown if entry.share is not None else 1.0) / speed
    return Mode(
        name=entry_name(entry),
        pool=index,
        speed=speed,
        gpus=gpus,
        num_nodes=num_nodes,
        slices=slices,
        busy_gpus=busy_gpus,
        duration=slots_of(duration_s, slot_s),
        duration_s=duration_s,
        read_rate_mb_s=entry.read_rate * speed if job.dataset is not None else 0.0,
        memory_gb=memory,
        cpu_cores=cores,
        ram_gb=ram,
        dataset=job.dataset if entry.read_rate > 0 else None,
    )
