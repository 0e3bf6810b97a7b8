"""The optimum of a small instance, proven by OR-Tools CP-SAT on a model of its own.

Everything is written out at the physical level: one boolean for each set of places that a run could take, one
for each interval [a, b) in which a node could be on, with its exact cost. That is hopeless beyond a few jobs
and nodes, and easy to hold against models/README.md, which is all it was written from.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping

from ortools.sat.python import cp_model
from ortools.sat.python.cp_model import IntVar, LinearExpr

from models.domain.entities import Site
from models.domain.instance import Instance
from models.domain.plan import Plan
from tests import oracle_reading as reading
from tests import oracle_terms as terms
from tests.oracle_plan import plan_of
from tests.oracle_reading import Place, Way
from tests.oracle_terms import JobRun, Solution

Uses = list[tuple[IntVar, float]]
"""What each of several decisions would take of something."""

LARGEST_SCALE = 10**13
LARGEST_RATE_SCALE = 10**5
"""Of bandwidth that is paid: rates beside a slow cache are no nice numbers, and a unit of them must cost enough."""
COST_ERROR = 1e-4
"""The most that rounding the objective's coefficients may be off, in money; nice numbers make it 0."""


def optimum(instance: Instance) -> float | None:
    """Cost of the cheapest plan, exact but for floating point; None where no plan is feasible."""
    solution = optimal_solution(instance)
    return None if solution is None else math.fsum(terms.cost_terms(instance, solution).values())


def optimal_plan(instance: Instance) -> Plan | None:
    """A cheapest plan as the program would write it; None where no plan is feasible."""
    solution = optimal_solution(instance)
    return None if solution is None else plan_of(instance, solution)


def optimal_solution(instance: Instance) -> Solution | None:
    """A cheapest physical solution, proven so; None where none is feasible.

    A power law is replaced by chords, which lie below it: what is cheapest by them, and costs just as much by the law,
    is cheapest by the law. Where it costs more the chords are made exact at what it buys, and all is solved again.
    """
    exact_at: dict[str, set[float]] = defaultdict(set)
    while True:
        oracle = Oracle(instance, exact_at)
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = 1
        solver.parameters.linearization_level = 2  # five times faster on the slow ones
        status = solver.solve(oracle.model)
        if status == cp_model.INFEASIBLE:
            return None
        assert status == cp_model.OPTIMAL, f"the oracle ended as {solver.status_name(status)}"
        solution = oracle.solution(solver)
        cost = math.fsum(terms.cost_terms(instance, solution).values())
        claimed = solver.objective_value / oracle.cost_scale
        tolerance = oracle.cost_error + 1e-6 * (1 + abs(cost))
        news = _bought_by_power_laws(instance, solution, exact_at)
        if cost <= claimed + tolerance or not news:
            break
        for site, mb_s in news.items():
            exact_at[site].add(mb_s)
    # Holds the coefficients of the model against the table of cost terms, which knows nothing of the model.
    assert abs(cost - claimed) <= tolerance, f"{claimed} is worth {cost}"
    return solution


def _bought_by_power_laws(
    instance: Instance, solution: Solution, exact_at: Mapping[str, set[float]]
) -> dict[str, float]:
    """What a solution buys at sites with a power law, where the chords are not yet exact."""
    bought = terms.peaks(instance, solution.runs)
    return {
        site.id: bought[site.id]
        for site in instance.sites
        if site.storage.power is not None
        and bought[site.id] > 0
        and all(abs(bought[site.id] - b) > 1e-9 for b in exact_at.get(site.id, ()))
    }


class Oracle:
    """The CP-SAT model of one instance; `solution` reads back what the solver found."""

    def __init__(self, instance: Instance, exact_at: Mapping[str, set[float]]) -> None:
        self.instance, self.exact_at = instance, exact_at
        self.model = cp_model.CpModel()
        self.slots = range(reading.num_slots(instance))
        self.ways = [list(dict.fromkeys(reading.ways(instance, job))) for job in instance.jobs]
        self.shared = {way.pool for ways in self.ways for way in ways if way.share_slices}
        """Pools in which it matters on which GPU a run is; elsewhere the GPUs of a node can be exchanged."""
        self.start: dict[tuple[int, Way, int, int], IntVar] = {}
        """Job, way, slot, cache level that it reads at."""
        self.place: dict[tuple[int, Way, int, tuple[Place, ...]], IntVar] = {}
        self.rejected: dict[int, IntVar] = {}
        self.on: dict[tuple[int, int, int, int], IntVar] = {}
        """Pool, node, first slot, end."""
        self.cached: dict[tuple[str, str, int], IntVar] = {}
        """Site, dataset, level."""
        self.objective: Uses = []
        self.rate_error = 0.0
        """The most that rounding rates may be off, in money."""
        self.each_job_runs_once_or_is_rejected()
        self.each_run_has_its_places()
        self.a_node_is_on_for_disjoint_intervals()
        self.runs_fit_on_nodes_that_are_on()
        self.memory_cores_and_ram_are_shared()
        self.predecessors_complete_first()
        self.datasets_are_cached()
        self.links_carry_what_is_read()
        self.bandwidth_is_bought()
        self.cost_scale, self.cost_error = self.minimise_cost()

    def boolean(self, cost: float = 0.0) -> IntVar:
        """A decision and what it costs."""
        variable = self.model.new_bool_var("")
        if cost:
            self.objective.append((variable, cost))
        return variable

    def levels(self, job: int, way: Way) -> range:
        """The cache levels, of `cache_levels`, at which a way may read."""
        reads = self.instance.jobs[job].dataset is not None and way.rate_mb_s > 0
        is_served = reading.can_use_cache(self.site_of(way), way.rate_mb_s)
        return range(self.instance.cache_levels + 1 if reads and is_served else 1)

    def site_of(self, way: Way) -> Site:
        """The site of a way's pool."""
        return next(site for site in self.instance.sites if site.id == self.instance.pools[way.pool].site)

    def each_job_runs_once_or_is_rejected(self) -> None:
        """One start in one way, with its own cost terms, or its reject cost where it has one."""
        for j, job in enumerate(self.instance.jobs):
            choices = []
            for way in self.ways[j]:
                slots = reading.starts(self.instance, job, way)
                for t, level in itertools.product(slots, self.levels(j, way)):
                    run = JobRun(j, way, t, (), level / self.instance.cache_levels)
                    cost = math.fsum(terms.cost_of_run(self.instance, run).values())
                    self.start[j, way, t, level] = self.boolean(cost)
                    choices.append(self.start[j, way, t, level])
            if job.reject_cost is not None:
                self.rejected[j] = self.boolean(job.reject_cost)
                choices.append(self.rejected[j])
            self.model.add_exactly_one(choices)

    def each_run_has_its_places(self) -> None:
        """A run takes one of the sets of places that its way can take."""
        starts: dict[tuple[int, Way, int], list[IntVar]] = defaultdict(list)
        for (j, way, t, _), variable in self.start.items():
            starts[j, way, t].append(variable)
        for (j, way, t), variables in starts.items():
            choices = []
            seen = set()
            for places in reading.placements(self.instance, way):
                nodes = tuple(node for node, _ in places)
                if way.pool not in self.shared:
                    if nodes in seen:
                        continue
                    seen.add(nodes)
                self.place[j, way, t, places] = self.boolean()
                choices.append(self.place[j, way, t, places])
            self.model.add(LinearExpr.sum(choices) == LinearExpr.sum(variables))

    def a_node_is_on_for_disjoint_intervals(self) -> None:
        """Each interval within the horizon and the node's availability, at the cost of its whole blocks."""
        reached = {(way.pool, node) for _, way, _, places in self.place for node, _ in places}
        for p, node in sorted(reached):
            pool = self.instance.pools[p]
            free = [reading.is_available(self.instance, pool, node, t) for t in self.slots]
            longest = len(self.slots) if self.is_interval_indivisible(p) else 1
            covering: dict[int, list[IntVar]] = defaultdict(list)
            for a in self.slots:
                end = next((t for t in self.slots[a:] if not free[t]), len(self.slots))
                for b in range(a + 1, min(end, a + longest) + 1):
                    self.on[p, node, a, b] = self.boolean(reading.interval_cost(self.instance, pool, a, b))
                    # Intervals do not touch, which is seen only where a node boots or is billed in blocks.
                    for t in range(a, b + (longest > 1)):
                        covering[t].append(self.on[p, node, a, b])
            for variables in covering.values():
                self.model.add_at_most_one(variables)

    def is_interval_indivisible(self, p: int) -> bool:
        """Whether it matters that a node stays on; if not, its slots cost the same each by itself."""
        pool = self.instance.pools[p]
        return reading.boot_slots(self.instance, pool) > 0 or reading.block_slots(self.instance, pool) > 1

    def runs_fit_on_nodes_that_are_on(self) -> None:
        """In each slot the GPUs (in shared pools: slices of each) in use are on nodes that can be used."""
        usable: dict[tuple[int, int, int], list[IntVar]] = defaultdict(list)
        for (p, node, a, b), variable in self.on.items():
            pool = self.instance.pools[p]
            no_boot = a == 0 and reading.needs_no_boot(self.instance, pool, node)
            for t in range(a + (0 if no_boot else reading.boot_slots(self.instance, pool)), b):
                usable[p, node, t].append(variable)
        used: dict[tuple[int, int, int, int], list[tuple[IntVar, int]]] = defaultdict(list)
        for (_, way, start, places), variable in self.place.items():
            slices = way.share_slices or self.instance.pools[way.pool].slices_per_gpu
            for t, (node, gpus) in itertools.product(range(start, start + way.slots), places):
                if way.pool in self.shared:
                    for gpu in gpus:
                        used[way.pool, node, t, gpu].append((variable, slices))
                else:
                    used[way.pool, node, t, -1].append((variable, len(gpus)))
        for (p, node, t, gpu), uses in used.items():
            pool = self.instance.pools[p]
            has = pool.gpus_per_node if gpu < 0 else pool.slices_per_gpu
            available = LinearExpr.sum(usable[p, node, t]) * has
            self.model.add(weighted(uses) <= available)

    def memory_cores_and_ram_are_shared(self) -> None:
        """Shares of a GPU fit in its memory, runs on a node in its cores and RAM, where those are stated."""
        memory: dict[tuple[int, int, int, int], Uses] = defaultdict(list)
        cores: dict[tuple[int, int, int], Uses] = defaultdict(list)
        ram: dict[tuple[int, int, int], Uses] = defaultdict(list)
        for (_, way, start, places), variable in self.place.items():
            if way.num_nodes > 1:  # a gang takes what there is, and leaves no GPU to anyone else
                continue
            [(node, gpus)] = places
            for t in range(start, start + way.slots):
                cores[way.pool, node, t].append((variable, way.cpu_cores))
                ram[way.pool, node, t].append((variable, way.ram_gb))
                if way.share_slices:
                    memory[way.pool, node, gpus[0], t].append((variable, way.memory_gb))
        for table, name in ((memory, "gpu_memory"), (cores, "cpu_cores"), (ram, "ram")):
            for (p, *_), uses in table.items():
                limit = getattr(self.instance.pools[p], name)
                if limit is not None:
                    self.at_most(uses, limit)

    def predecessors_complete_first(self) -> None:
        """Who has started by t has predecessors complete by t; who runs at all has no rejected ones."""
        index = {job.id: j for j, job in enumerate(self.instance.jobs)}
        for j, job in enumerate(self.instance.jobs):
            for i in (index[name] for name in job.after):
                for t in self.slots:
                    started = [v for (k, _, s, _), v in self.start.items() if k == j and s <= t]
                    complete = [v for (k, w, s, _), v in self.start.items() if k == i and s + w.slots <= t]
                    self.model.add(LinearExpr.sum(started) <= LinearExpr.sum(complete))

    def datasets_are_cached(self) -> None:
        """Readers find the level they read at; a dataset has one level at a site; the cache holds them."""
        readers: dict[tuple[str, str, int], dict[int, list[IntVar]]]
        readers = defaultdict(lambda: defaultdict(list))
        for (j, way, _, level), variable in self.start.items():
            dataset = self.instance.jobs[j].dataset
            if level and dataset is not None:
                readers[self.instance.pools[way.pool].site, dataset, level][j].append(variable)
        for (site, dataset, level), by_job in readers.items():
            fraction = level / self.instance.cache_levels
            cost = math.fsum(terms.cost_of_cached(self.instance, site, dataset, fraction).values())
            self.cached[site, dataset, level] = self.boolean(cost)
            for variables in by_job.values():
                self.model.add(LinearExpr.sum(variables) <= self.cached[site, dataset, level])
        for key in {key[:2] for key in readers}:
            self.model.add_at_most_one(v for (*where, _), v in self.cached.items() if tuple(where) == key)
        sizes = {dataset.id: dataset.size / self.instance.cache_levels for dataset in self.instance.datasets}
        for where in self.instance.sites:
            uses = [(v, sizes[d] * level) for (s, d, level), v in self.cached.items() if s == where.id]
            self.at_most(uses, where.storage.cache_capacity)

    def reads(self) -> dict[tuple[str, str], dict[int, Uses]]:
        """What each start reads, by (home, site) and slot, in MB/s."""
        rates: dict[tuple[str, str], dict[int, Uses]] = defaultdict(lambda: defaultdict(list))
        for (j, way, start, level), variable in self.start.items():
            dataset = self.instance.jobs[j].dataset
            if dataset is None or way.rate_mb_s == 0:
                continue
            site = self.site_of(way)
            key = (reading.home_of(self.instance, dataset), site.id)
            rate = reading.link_rate(site, way.rate_mb_s, level / self.instance.cache_levels)
            for t in range(start, start + way.slots):
                rates[key][t].append((variable, rate))
        return rates

    def links_carry_what_is_read(self) -> None:
        """Over a network link goes no more than its bandwidth."""
        limits = {(a.source, a.target): a.bandwidth for a in self.instance.network}
        for key, by_slot in self.reads().items():
            limit = limits.get(key)
            for uses in by_slot.values() if limit is not None else ():
                self.at_most(uses, limit)

    def bandwidth_is_bought(self) -> None:
        """Each site buys its peak, on one line of its tariff (the cheapest is the price), under its cap."""
        for site in self.instance.sites:
            by_slot: dict[int, Uses] = defaultdict(list)
            for (_, target), slots in self.reads().items():
                for t, uses in slots.items() if target == site.id else ():
                    by_slot[t] += uses
            cap, lines = reading.bandwidth_cap(site), reading.tariff_lines(site, self.exact_at.get(site.id, ()))
            for uses in by_slot.values() if cap is not None else ():
                self.at_most(uses, cap)
            if not lines or not by_slot:
                continue
            rate_scale = min(LARGEST_RATE_SCALE, scale_of(rate for uses in by_slot.values() for _, rate in uses))
            top = round(rate_scale * max(sum(rate for _, rate in uses) for uses in by_slot.values())) + 1000
            hours = reading.billed_hours(self.instance, site)
            if any(abs(rate * rate_scale - round(rate * rate_scale)) > 1e-6 for u in by_slot.values() for _, rate in u):
                steepest = max(beta for _, beta in lines) * hours
                self.rate_error += len(self.instance.jobs) * 0.5 / rate_scale * steepest
            bought, chosen = [], []
            for alpha, beta in lines:
                chosen.append(self.boolean(alpha * hours))
                bought.append(self.model.new_int_var(0, top, ""))
                self.objective.append((bought[-1], beta * hours / rate_scale))
                self.model.add(bought[-1] <= top * chosen[-1])
            self.model.add_at_most_one(chosen)
            for uses in by_slot.values():
                scaled = [(variable, round(rate * rate_scale)) for variable, rate in uses]
                self.model.add(weighted(scaled) <= LinearExpr.sum(bought))

    def at_most(self, uses: Uses, limit: float | None) -> None:
        """A sum is no more than a limit; sums that exceed it by rounding alone are allowed."""
        if limit is None or not uses or sum(use for _, use in uses) <= limit:
            return
        scale = scale_of([limit, *(use for _, use in uses)])
        is_exact = all(abs(use * scale - round(use * scale)) < 1e-6 for _, use in uses)
        slack = 0 if is_exact else len(self.instance.jobs)
        scaled = [(variable, round(use * scale)) for variable, use in uses]
        self.model.add(weighted(scaled) <= math.floor(limit * scale + 1e-6) + slack)

    def minimise_cost(self) -> tuple[int, float]:
        """The sum of all cost terms in whole units; returns units per money and the error of rounding."""
        scale, error = 1, math.inf
        while True:
            error = math.fsum(
                abs(cost * scale - round(cost * scale)) / scale * max(variable.proto.domain)
                for variable, cost in self.objective
            )
            if error < 1e-9 or scale == LARGEST_SCALE:
                break
            scale *= 10
        error += self.rate_error
        assert error < COST_ERROR, f"the costs do not scale to whole numbers: {error} off"
        self.model.minimize(weighted([(variable, round(cost * scale)) for variable, cost in self.objective]))
        return scale, error

    def solution(self, solver: cp_model.CpSolver) -> Solution:
        """What the solver found, with GPUs for runs that were given a node only."""
        parts = self.instance.cache_levels
        cached = {(s, d): level / parts for (s, d, level), v in self.cached.items() if solver.value(v)}
        levels = {(j, t): level for (j, _, t, level), v in self.start.items() if solver.value(v)}
        chosen = [key for key, v in self.place.items() if solver.value(v)]
        # By start: at the start of a run the node has as many free GPUs as it needs, whichever they are. Kept
        # runs come first, since their GPUs are given.
        chosen.sort(key=lambda key: (key[2], not key[1].is_kept))
        busy_until: dict[tuple[int, int, int], int] = defaultdict(int)
        runs = []
        for j, way, t, places in chosen:
            if way.pool not in self.shared and not way.is_kept:
                every = range(self.instance.pools[way.pool].gpus_per_node)
                free = {n: [g for g in every if busy_until[way.pool, n, g] <= t] for n, _ in places}
                places = tuple((n, tuple(free[n][: len(taken)])) for n, taken in places)
            for node, gpus in places:
                for gpu in gpus:
                    busy_until[way.pool, node, gpu] = t + way.slots
            runs.append(JobRun(j, way, t, places, levels[j, t] / parts))
        nodes_on: list[tuple[int, int, int, int]] = []
        for p, node, a, b in sorted(key for key, v in self.on.items() if solver.value(v)):
            goes_on = bool(nodes_on) and (*nodes_on[-1][:2], nodes_on[-1][3]) == (p, node, a)
            if goes_on and not self.is_interval_indivisible(p):
                a = nodes_on.pop()[2]
            nodes_on.append((p, node, a, b))
        return Solution(tuple(sorted(runs, key=lambda run: run.job)), tuple(nodes_on), cached)


def weighted(uses: list[tuple[IntVar, int]]) -> LinearExpr:
    """Sum of coefficient times variable."""
    if not uses:
        return LinearExpr.sum([])
    variables, coefficients = zip(*uses, strict=True)
    return LinearExpr.weighted_sum(variables, coefficients)


def scale_of(values: Iterable[float]) -> int:
    """The least power of ten, up to a million, that makes all values whole."""
    listed = list(values)
    return next((10**k for k in range(6) if all(abs(v * 10**k - round(v * 10**k)) < 1e-6 for v in listed)), 10**6)
