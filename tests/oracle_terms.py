"""A physical solution and its cost by term, each a line of the table in models/README.md."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field

from models.domain.entities import Job, Utility
from models.domain.instance import Instance
from tests import oracle_reading as reading
from tests.oracle_reading import Place, Way


@dataclass(frozen=True)
class JobRun:
    """One job's run: from `start` on, on these places, with this fraction of what it reads from the cache."""

    job: int
    way: Way
    start: int
    places: tuple[Place, ...]
    cached: float = 0.0

    @property
    def end(self) -> int:
        """The edge at which it completes."""
        return self.start + self.way.slots


@dataclass(frozen=True)
class Solution:
    """Everything that a plan decides; who is not run is rejected, and just the peak of reading is bought."""

    runs: tuple[JobRun, ...]
    nodes_on: tuple[tuple[int, int, int, int], ...] = ()
    """Pool, node, first slot, end."""
    cached: dict[tuple[str, str], float] = field(default_factory=dict)
    """Fraction of (site, dataset)."""


def cost_of_run(instance: Instance, run: JobRun) -> dict[str, float]:
    """The cost terms that a run has by itself."""
    job, way = instance.jobs[run.job], run.way
    pool = instance.pools[way.pool]
    site = next(s for s in instance.sites if s.id == pool.site)
    hours = instance.slot / 3600.0
    energy = (reading.price_in_slot(instance, site.energy_price, t) for t in range(run.start, run.end))
    costs = {
        "energy": math.fsum(way.busy_gpus * pool.gpu_power * price * hours for price in energy),
        "transfer": 0.0,
        "tardiness": job.weight * tardiness_h(instance, job, run.end),
        "lost_value": lost_value(instance, job, run.end),
        "restart": job.restart_cost if job.running is not None and not way.is_kept else 0.0,
        "interruption": 0.0,
    }
    if way.rate_mb_s > 0:
        assert job.dataset is not None
        costs["transfer"] = _price_of_gb(instance, job.dataset, site.id) * way.volume_gb * (1.0 - run.cached)
    if pool.market == "spot":
        costs["interruption"] = pool.interruption_rate * way.slots * hours * way.num_nodes * job.restart_cost
    return costs


def tardiness_h(instance: Instance, job: Job, end: int) -> float:
    """Hours of completion after due, if positive."""
    return 0.0 if job.due is None else max(0.0, end * instance.slot - job.due) / 3600.0


def lost_value(instance: Instance, job: Job, end: int) -> float:
    """Value of the first step less that of the first one that is no earlier than the completion; or of a utility."""
    if job.utility is not None:
        return job.utility.worth - utility_at(instance, job, job.utility, end)
    if not job.value:
        return 0.0
    earned = (s.value for s in job.value if s.by / instance.slot >= end - reading.EPSILON)
    return job.value[0].value - next(earned, 0.0)


def utility_at(instance: Instance, job: Job, utility: Utility, end: int) -> float:
    """What completing a job at a slot edge is worth."""
    completion = end * instance.slot
    if utility.shape == "linear":
        fall = utility.worth / (utility.zero_at - utility.full_until)
        return min(utility.worth, max(0.0, (utility.zero_at - completion) * fall))
    if utility.shape == "step":
        return utility.worth if utility.by / instance.slot >= end - reading.EPSILON else 0.0
    if utility.shape == "sigmoid":
        # 1 / (1 + exp(x)) = (1 - tanh(x / 2)) / 2
        return utility.worth * (1.0 - math.tanh((completion - utility.midpoint) / utility.scale / 2.0)) / 2.0
    rho = (completion - job.release) / utility.fair_time
    return utility.worth / max(1.0, rho)


def _price_of_gb(instance: Instance, dataset: str, site: str) -> float:
    home = reading.home_of(instance, dataset)
    if home == site:
        return 0.0
    return next(a.price for a in instance.network if (a.source, a.target) == (home, site))


def cost_of_cached(instance: Instance, site: str, dataset: str, fraction: float) -> dict[str, float]:
    """The cost terms of a cached (part of a) dataset."""
    gb = next(d.size for d in instance.datasets if d.id == dataset) * fraction
    where = next(s for s in instance.sites if s.id == site)
    return {
        "cache": gb * where.storage.cache_price * reading.billed_hours(instance, where),
        "transfer": gb * _price_of_gb(instance, dataset, site),
    }


def link_rates(instance: Instance, runs: tuple[JobRun, ...]) -> dict[tuple[str, str], list[float]]:
    """What is read at each (home, site) in each slot; over a site's own link goes the sum over homes."""
    rates: dict[tuple[str, str], list[float]] = defaultdict(lambda: [0.0] * reading.num_slots(instance))
    for run in runs:
        dataset = instance.jobs[run.job].dataset
        if dataset is not None and run.way.rate_mb_s > 0:
            site = next(s for s in instance.sites if s.id == instance.pools[run.way.pool].site)
            for t in range(run.start, run.end):
                key = (reading.home_of(instance, dataset), site.id)
                rates[key][t] += reading.link_rate(site, run.way.rate_mb_s, run.cached)
    return dict(rates)


def peaks(instance: Instance, runs: tuple[JobRun, ...]) -> dict[str, float]:
    """The most that is read over each site's link in any slot: what must be bought there."""
    rates = link_rates(instance, runs)
    bought = {}
    for site in instance.sites:
        lists = [values for (_, target), values in rates.items() if target == site.id]
        bought[site.id] = max(map(math.fsum, zip(*lists, strict=True)), default=0.0)
    return bought


def cost_terms(instance: Instance, solution: Solution) -> dict[str, float]:
    """Every cost term of a solution, in floating point from the instance alone."""
    parts: list[dict[str, float]] = [cost_of_run(instance, run) for run in solution.runs]
    parts += [cost_of_cached(instance, s, d, fraction) for (s, d), fraction in solution.cached.items()]
    kinds = {site.id: site.kind for site in instance.sites}
    for index, _, begin, end in solution.nodes_on:
        pool = instance.pools[index]
        term = "node_hours" if kinds[pool.site] == "on_prem" else "rental"
        parts.append({term: reading.interval_cost(instance, pool, begin, end)})
    bought = peaks(instance, solution.runs)
    for site in instance.sites:
        price = reading.tariff_price(site, bought[site.id])
        parts.append({"bandwidth": price * reading.billed_hours(instance, site)})
    done = {run.job for run in solution.runs}
    parts += [{"rejection": job.reject_cost or 0.0} for j, job in enumerate(instance.jobs) if j not in done]
    names = {name for part in parts for name in part}
    return {name: math.fsum(part.get(name, 0.0) for part in parts) for name in sorted(names)}
