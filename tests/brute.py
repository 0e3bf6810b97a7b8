"""The optimum of a super tiny instance by enumeration in plain Python: what the oracle is held against.

Every job tries every way, slot and set of GPUs. For each such schedule the nodes' intervals are the best of
all, found node by node, and every choice of cached parts and of who reads from the cache is tried. Only
branches that cost more already than the best plan are cut, which is sound because no cost is negative.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from functools import cache

from models.domain.instance import Instance
from tests import oracle_reading as reading
from tests import oracle_terms as terms
from tests.oracle_terms import JobRun

FITS = 1e-9


def brute_optimum(instance: Instance) -> float | None:
    """Cost of the cheapest plan; None where there is none."""
    return _Enumeration(instance).best()


def num_schedules(instance: Instance) -> int:
    """How many schedules there are to enumerate, before any is cut."""
    number = 1
    for job in instance.jobs:
        choices = 0 if job.reject_cost is None else 1
        for way in reading.ways(instance, job):
            places = sum(1 for _ in reading.placements(instance, way))
            choices += places * len(reading.starts(instance, job, way))
        number *= choices
    return number


class _Enumeration:
    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.index = {job.id: j for j, job in enumerate(instance.jobs)}
        self.cheapest = math.inf
        self.node_cost = cache(self._node_cost)

    def best(self) -> float | None:
        """The least cost over all choices of all jobs."""
        self._choose([])
        return None if math.isinf(self.cheapest) else self.cheapest

    def _choose(self, chosen: list[JobRun | None]) -> None:
        """Tries every choice for the next job after those already chosen."""
        runs = [run for run in chosen if run is not None]
        if not (self._fits(runs) and self._is_in_order(chosen)):
            return
        spent = self._cost_without_storage(chosen)
        if spent >= self.cheapest:
            return
        if len(chosen) == len(self.instance.jobs):
            self.cheapest = min(self.cheapest, spent + self._storage_cost(runs))
            return
        j = len(chosen)
        job = self.instance.jobs[j]
        for way in reading.ways(self.instance, job):
            for start in reading.starts(self.instance, job, way):
                for places in reading.placements(self.instance, way):
                    self._choose([*chosen, JobRun(j, way, start, places)])
        if job.reject_cost is not None:
            self._choose([*chosen, None])

    def _fits(self, runs: list[JobRun]) -> bool:
        """Whether no GPU, no memory, no cores and no RAM are taken twice."""
        slices: dict[tuple[int, ...], float] = defaultdict(float)
        memory: dict[tuple[int, ...], float] = defaultdict(float)
        cores: dict[tuple[int, ...], float] = defaultdict(float)
        ram: dict[tuple[int, ...], float] = defaultdict(float)
        for run in runs:
            way = run.way
            for t, (node, gpus) in itertools.product(range(run.start, run.end), run.places):
                cores[way.pool, node, t] += way.cpu_cores
                ram[way.pool, node, t] += way.ram_gb
                for gpu in gpus:
                    whole = self.instance.pools[way.pool].slices_per_gpu
                    slices[way.pool, node, t, gpu] += way.share_slices or whole
                    memory[way.pool, node, t, gpu] += way.memory_gb
        return (
            self._is_within("slices_per_gpu", slices)
            and self._is_within("gpu_memory", memory)
            and self._is_within("cpu_cores", cores)
            and self._is_within("ram", ram)
        )

    def _is_within(self, limit: str, used: dict[tuple[int, ...], float]) -> bool:
        limits = [getattr(pool, limit) for pool in self.instance.pools]
        return all(limits[key[0]] is None or use <= limits[key[0]] + FITS for key, use in used.items())

    def _is_in_order(self, chosen: list[JobRun | None]) -> bool:
        """Whether every job that runs has all predecessors complete, as far as those are chosen."""
        for run in chosen:
            for name in self.instance.jobs[run.job].after if run is not None else ():
                if self.index[name] < len(chosen):
                    before = chosen[self.index[name]]
                    if run is not None and (before is None or before.end > run.start):
                        return False
        return True

    def _cost_without_storage(self, chosen: list[JobRun | None]) -> float:
        """Least cost of nodes and all terms but those of storage and transfer."""
        used: dict[tuple[int, int], set[int]] = defaultdict(set)
        costs = []
        for j, run in enumerate(chosen):
            if run is None:
                costs.append(self.instance.jobs[j].reject_cost or 0.0)
                continue
            costs += [cost for term, cost in terms.cost_of_run(self.instance, run).items() if term != "transfer"]
            for node, _ in run.places:
                used[run.way.pool, node].update(range(run.start, run.end))
        costs += [self.node_cost(p, node, frozenset(slots)) for (p, node), slots in used.items()]
        return math.fsum(costs)

    def _node_cost(self, p: int, node: int, used: frozenset[int]) -> float:
        """Least cost of intervals of one node in which all used slots can be used."""
        pool = self.instance.pools[p]
        boot = reading.boot_slots(self.instance, pool)
        on_at_start = reading.needs_no_boot(self.instance, pool, node)
        slots = reading.num_slots(self.instance)

        def cheapest_from(t: int) -> float:
            """The same for the slots from t on, the node being off in the slot before."""
            if not any(slot >= t for slot in used):
                return 0.0
            costs = [math.inf if t in used else cheapest_from(t + 1)]
            ready = t if t == 0 and on_at_start else t + boot
            for end in range(t + 1, slots + 1):
                if not reading.is_available(self.instance, pool, node, end - 1):
                    break
                # In the slot `end` it is off: intervals do not touch.
                if end not in used and not any(t <= slot < min(ready, end) for slot in used):
                    costs.append(reading.interval_cost(self.instance, pool, t, end) + cheapest_from(end + 1))
            return min(costs)

        return cheapest_from(0)

    def _storage_cost(self, runs: list[JobRun]) -> float:
        """Least cost of bandwidth, cache and transfer for a schedule; infinite where none is feasible."""
        datasets = [self.instance.jobs[run.job].dataset for run in runs]
        sites = [self.instance.pools[run.way.pool].site for run in runs]
        readers = [k for k, run in enumerate(runs) if run.way.rate_mb_s > 0]
        wanted = sorted({(sites[k], str(datasets[k])) for k in readers})
        parts = self.instance.cache_levels
        best = math.inf
        for levels in itertools.product(range(parts + 1), repeat=len(wanted)):
            cached = {key: level / parts for key, level in zip(wanted, levels, strict=True) if level}
            if not self._holds(cached):
                continue
            for use_cache in itertools.product((True, False), repeat=len(readers)):
                hits = dict.fromkeys(range(len(runs)), 0.0)
                for k, uses in zip(readers, use_cache, strict=True):
                    where = next(site for site in self.instance.sites if site.id == sites[k])
                    if uses and reading.can_use_cache(where, runs[k].way.rate_mb_s):
                        hits[k] = cached.get((sites[k], str(datasets[k])), 0.0)
                reads = [JobRun(run.job, run.way, run.start, run.places, hits[k]) for k, run in enumerate(runs)]
                best = min(best, self._cost_of_reads(reads, cached))
        return best

    def _holds(self, cached: dict[tuple[str, str], float]) -> bool:
        sizes = {dataset.id: dataset.size for dataset in self.instance.datasets}
        return all(
            math.fsum(sizes[d] * part for (s, d), part in cached.items() if s == site.id)
            <= site.storage.cache_capacity + FITS
            for site in self.instance.sites
        )

    def _cost_of_reads(self, runs: list[JobRun], cached: dict[tuple[str, str], float]) -> float:
        limits = {(a.source, a.target): a.bandwidth for a in self.instance.network}
        for key, rates in terms.link_rates(self.instance, tuple(runs)).items():
            limit = limits.get(key)
            if limit is not None and max(rates) > limit + FITS:
                return math.inf
        bought = terms.peaks(self.instance, tuple(runs))
        costs = [terms.cost_of_run(self.instance, run)["transfer"] for run in runs]
        for (site_id, dataset), part in cached.items():
            costs += terms.cost_of_cached(self.instance, site_id, dataset, part).values()
        for site in self.instance.sites:
            cap = reading.bandwidth_cap(site)
            if cap is not None and bought[site.id] > cap + FITS:
                return math.inf
            hours = reading.billed_hours(self.instance, site)
            costs.append(reading.tariff_price(site, bought[site.id]) * hours)
        return math.fsum(costs)
