"""A simulated schedule read against its instance: what each stretch is of, in which order, on which nodes.

Times are seconds after the start, and not slotted.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from models.check.report import Violation, label, violation
from models.check.uses import Way, way_of
from models.domain.entities import Job, Pool, Throughput
from models.domain.instance import Instance

EDGE_S = 1e-3
"""Times that differ by less are one."""


@dataclass(frozen=True)
class Ran:
    """A stretch of the trace with what it is of."""

    where: str
    claim: Any
    job: Job
    pool: Pool
    way: Way
    seconds: float
    """What all of the job's work takes so, in truth."""
    num_nodes: int
    gpus: int
    """GPUs that it names on each of its nodes."""
    slices: int
    """Slices that it takes of each of them."""
    busy: float

    @property
    def held(self) -> set[tuple[int, tuple[int, ...]]]:
        """Nodes and GPUs that it names."""
        return {(place.node, tuple(sorted(place.gpus))) for place in self.claim.places}


class Traced:
    """A trace read against its instance."""

    def __init__(self, instance: Instance, trace: Any):
        self.instance, self.trace = instance, trace
        self.jobs = {job.id: job for job in instance.jobs}
        self.pools = {pool.id: pool for pool in instance.pools}
        kinds = {site.id: site.kind for site in instance.sites}
        self.cloud = {pool.id for pool in instance.pools if kinds[pool.site] == "cloud"}
        self.unreadable: list[Violation] = []
        self.ran: list[Ran] = []
        speeds: dict[str, list[Throughput]] = defaultdict(list)
        for row in instance.throughputs:
            speeds[row.model].append(row)
        for k, claim in enumerate(trace.stretches):
            found = self._read(k, claim, speeds)
            if isinstance(found, Ran):
                self.ran.append(found)
            else:
                self.unreadable.append(found)
        self.of_job: dict[str, list[Ran]] = defaultdict(list)
        for ran in sorted(self.ran, key=lambda ran: ran.claim.start_s):
            self.of_job[ran.job.id].append(ran)
        self.sites = {site.id: site for site in instance.sites}
        self.datasets = {dataset.id: dataset for dataset in instance.datasets}
        self.links = instance.links
        self.caches: dict[tuple[str, str], list[Any]] = defaultdict(list)
        for cache in sorted(trace.caches, key=lambda cache: cache.since_s):
            self.caches[cache.site, cache.dataset].append(cache)
        self.powers: dict[tuple[str, int], list[Any]] = defaultdict(list)
        for power in sorted(trace.powers, key=lambda power: power.start_s):
            self.powers[power.pool, power.node].append(power)

    def _read(self, k: int, claim: Any, speeds: dict[str, list[Throughput]]) -> Ran | Violation:
        where = f"stretch {k} of job {label(claim.job)}"
        job, pool = self.jobs.get(claim.job), self.pools.get(claim.pool)
        if job is None or pool is None:
            return violation("unknown", where, f"names job {label(claim.job)} in pool {label(claim.pool)}")
        times = (claim.start_s, claim.work_s, claim.end_s)
        if not all(math.isfinite(time) for time in times) or not times[0] <= times[1] <= times[2]:
            return violation("times", where, f"starts, works and ends at {times}")
        way = way_of(job, claim.mode, speeds.get(job.model or "", ()))
        if way is None or not way.is_offered_in(pool):
            return violation("unknown-mode", where, f"has no mode {label(claim.mode)} in pool {pool.id}")
        levels = (*job.speed_levels, 1.0) if job.running is not None else job.speed_levels
        if not any(abs(level - claim.speed) < 1e-9 for level in levels):
            return violation("unknown-speed", where, f"runs at speed {claim.speed:g}")
        factor = self.trace.factors.get(job.id, math.nan)
        seconds = way.duration_s / claim.speed * factor
        if not 0 < seconds < math.inf:
            return violation("factor", where, f"takes {factor:g} times its estimate")
        if way.gpus is None:
            slices = math.ceil(way.share * pool.slices_per_gpu - 1e-9)
            return Ran(where, claim, job, pool, way, seconds, 1, 1, slices, slices / pool.slices_per_gpu)
        number = -(-way.gpus // pool.gpus_per_node)
        gpus = way.gpus if number == 1 else pool.gpus_per_node
        return Ran(where, claim, job, pool, way, seconds, number, gpus, pool.slices_per_gpu, float(way.gpus))


def peak(claims: list[tuple[float, float, float]]) -> float:
    """The most that is taken at a time; what ends at a moment makes room for what begins."""
    edges = [(start, 1, amount) for start, end, amount in claims if end - start > EDGE_S]
    edges += [(end - EDGE_S, 0, -amount) for start, end, amount in claims if end - start > EDGE_S]
    level = peak = 0.0
    for _, _, change in sorted(edges):
        level += change
        peak = max(peak, level)
    return peak
