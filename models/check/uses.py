"""Runs as the checker looks at them: each segment with what its mode takes, each run with its completion."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from models.check.report import total
from models.domain.entities import Job, Pool, Site, Throughput
from models.domain.plan import Run, Segment


@dataclass(frozen=True)
class Way:
    """An entry of a job's table, or one made from its samples and a throughput of its model."""

    name: str
    pool: str | None
    gpu: str | None
    gpus: int | None
    share: float
    duration_s: float
    rate_mb_s: float
    memory_gb: float
    cpu_cores: int
    ram_gb: float

    def is_offered_in(self, pool: Pool) -> bool:
        """Whether it names the pool or its GPU type."""
        return self.pool == pool.id if self.pool is not None else self.gpu == pool.gpu


@dataclass(frozen=True)
class Use:
    """A segment of a run, with what its mode takes by the instance."""

    where: str
    index: int
    """Its place in the run, from 0."""
    num_segments: int
    """Segments of the run."""
    segment: Segment
    job: Job
    pool: Pool
    site: Site
    way: Way
    speed: float
    is_kept: bool
    start: int
    end: int
    """Edge at which it ends: by the duration of its mode, or as it says in the run of an elastic job."""
    work: float
    """Part of the job that it does."""
    num_nodes: int
    gpus_per_node: int
    """GPUs it holds on each of its nodes."""
    slices: int
    """Slices it takes of each of them."""
    busy_gpus: float
    home: str | None
    """Site its data is at home; None: it reads nothing."""
    volume_gb: float
    cached: float
    """Fraction it reads from the cache; what is not in the cache, or asks too much of it, counts as read over the
    link."""
    is_too_fast: bool
    """Whether it reads at least as fast as the cache serves a reader."""
    held: tuple[tuple[int, int], ...]
    """(node, GPU) that it names and that exist."""

    @property
    def is_first(self) -> bool:
        """Whether the run begins with it."""
        return self.index == 0

    @property
    def is_last(self) -> bool:
        """Whether the run ends with it."""
        return self.index == self.num_segments - 1

    @property
    def rate_mb_s(self) -> float:
        """What it reads in all."""
        return 0.0 if self.home is None else self.way.rate_mb_s * self.speed

    @property
    def link_rate_mb_s(self) -> float:
        """What it reads over the site's link: r (1 - f), in the part 1 - f r / M of its time that the cache leaves."""
        most, missing = self.site.storage.cache_speed, self.rate_mb_s * (1.0 - self.cached)
        return missing if most is None or not self.cached else missing / (1.0 - self.cached * self.rate_mb_s / most)

    @property
    def nodes(self) -> list[int]:
        """Nodes that it names and that exist."""
        return sorted({node for node, _ in self.held})


@dataclass(frozen=True)
class Course:
    """A run as a whole; only one all of whose segments could be read."""

    where: str
    run: Run
    job: Job
    uses: tuple[Use, ...]
    """At least one, as the plan lists them."""

    @property
    def start(self) -> int:
        """Slot in which it begins."""
        return self.uses[0].start

    @property
    def end(self) -> int:
        """Edge at which the job completes: the end of its last segment."""
        return self.uses[-1].end

    @property
    def work(self) -> float:
        """Part of the job that is done; 1 for all of it."""
        return total(use.work for use in self.uses)

    @property
    def num_changes(self) -> int:
        """Segments after the first, and the first where the job runs already and is not kept."""
        is_moved = self.job.running is not None and not self.uses[0].is_kept
        return len(self.uses) - 1 + is_moved


def way_of(job: Job, name: str, speeds: Iterable[Throughput]) -> Way | None:
    """The first entry of a job of a name, `speeds` being the throughputs of its model.

    A name is the entry's id, or made such as 2xA100, 0.25xT4, 3xpoolname.
    """
    for entry in job.modes:
        if name == (entry.id or _made_name(entry.gpus, entry.share, entry.pool or entry.gpu or "")):
            return Way(
                name=name,
                pool=entry.pool, gpu=entry.gpu, gpus=entry.gpus, share=entry.share or 0.0,
                duration_s=entry.duration * (entry.slowdown if entry.gpus is None else 1.0),
                rate_mb_s=entry.read_rate,
                memory_gb=entry.memory or job.memory or 0.0,
                cpu_cores=entry.cpu_cores or job.cpu_cores or 0,
                ram_gb=entry.ram or job.ram or 0.0,
            )  # fmt: skip
    for row in speeds:
        if name == _made_name(row.gpus, row.share, row.gpu):
            return Way(
                name=name,
                pool=None, gpu=row.gpu, gpus=row.gpus, share=row.share or 0.0,
                duration_s=(job.samples or 0.0) / row.samples_per_s,
                rate_mb_s=row.samples_per_s * (job.sample_size or 0.0) * 1000.0,
                memory_gb=row.memory or job.memory or 0.0,
                cpu_cores=job.cpu_cores or 0,
                ram_gb=job.ram or 0.0,
            )  # fmt: skip
    return None


def _made_name(gpus: int | None, share: float | None, what: str) -> str:
    return f"{gpus}x{what}" if gpus is not None else f"{share:g}x{what}"
