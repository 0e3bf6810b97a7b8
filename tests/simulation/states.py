"""States for the tests of policies, and a judge of decisions that shares no code with them."""

from __future__ import annotations

import itertools
import math
import random
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from models.domain import Instance
from models.domain.entities import Place
from models.domain.modes import Mode, modes_of
from planner.simulation.state import Allocation, Assignment, Decision, JobState, State
from tests.random_instances import FAMILIES, random_instance

HOUR = 3600.0
START = "2026-01-12T18:00:00+00:00"


def instance_of(pools: list[dict[str, Any]], jobs: list[dict[str, Any]], **head: Any) -> Instance:
    """A small instance with an owned and a cloud site; what is not said is plain."""
    plain = {"site": "home", "gpu": "A", "gpus_per_node": 4, "nodes": 1, "price": 1.0}
    doc = {
        "currency": "USD",
        "start": START,
        "slot": "10m",
        "sites": [{"id": "home", "kind": "on_prem"}, {"id": "cloud", "kind": "cloud"}],
        "pools": [{"id": f"pool{k}", **plain, **pool} for k, pool in enumerate(pools)],
        "jobs": [{"id": f"job{k}", **job} for k, job in enumerate(jobs)],
    }
    return Instance.model_validate(doc | head)


def modes(*hours: float, gpu: str = "A") -> list[dict[str, Any]]:
    """Modes on 1, 2, 4 ... GPUs with these durations."""
    return [{"gpu": gpu, "gpus": 2**k, "duration": h * HOUR} for k, h in enumerate(hours)]


def mode_of(instance: Instance, j: int, gpus: int, p: int = 0) -> Mode:
    """The mode of a job on so many GPUs of a pool."""
    return next(m for m in modes_of(instance, instance.jobs[j]) if m.gpus == gpus and m.pool == p)


def on(mode: Mode, node: int, *gpus: int) -> Allocation:
    """A mode on GPUs of one node."""
    return Allocation(mode, (Place(node=node, gpus=gpus),))


def state_of(
    instance: Instance,
    running: dict[int, Allocation] | None = None,
    *,
    now_s: float = 0.0,
    remaining: dict[int, float] | None = None,
    fixed: tuple[int, ...] = (),
    complete: tuple[int, ...] = (),
    unknown: tuple[int, ...] = (),
    down: tuple[tuple[int, int], ...] = (),
    on_also: tuple[tuple[int, int], ...] = (),
    restart_s: float = 0.0,
    may_burst: bool = True,
) -> State:
    """A state in which all jobs are known that are not said to be otherwise."""
    running, remaining = running or {}, remaining or {}
    known = [j for j in range(len(instance.jobs)) if j not in complete and j not in unknown]
    known.sort(key=lambda j: (instance.jobs[j].release, j))
    jobs = tuple(
        JobState(
            job=j,
            remaining=remaining.get(j, 1.0),
            running=running.get(j),
            has_run=j in running or j in remaining,
            movable=j not in fixed,
        )
        for j in known
    )
    busy = {(there.mode.pool, place.node) for there in running.values() for place in there.places}
    return State(
        now_s=now_s,
        instance=instance,
        jobs=jobs,
        complete=frozenset(complete),
        down=frozenset(down),
        on_since_s=dict.fromkeys(sorted(busy | set(on_also)), 0.0),
        restart_s=restart_s,
        may_burst=may_burst,
    )


@dataclass
class _Ledger:
    """What is taken, GPU by GPU."""

    instance: Instance
    slices: dict[tuple[int, int, int], int] = field(default_factory=lambda: defaultdict(int))
    memory: dict[tuple[int, int, int], float] = field(default_factory=lambda: defaultdict(float))
    cores: dict[tuple[int, int], int] = field(default_factory=lambda: defaultdict(int))
    ram: dict[tuple[int, int], float] = field(default_factory=lambda: defaultdict(float))

    def add(self, allocation: Allocation) -> None:
        mode = allocation.mode
        whole = self.instance.pools[mode.pool].slices_per_gpu
        for place in allocation.places:
            for gpu in place.gpus:
                self.slices[mode.pool, place.node, gpu] += whole if mode.gpus else mode.slices
                self.memory[mode.pool, place.node, gpu] += mode.memory_gb
            self.cores[mode.pool, place.node] += mode.cpu_cores
            self.ram[mode.pool, place.node] += mode.ram_gb

    def faults(self) -> list[str]:
        """Everything of which there is too little."""
        pools, found = self.instance.pools, []
        found += [f"slices of GPU {key}" for key, n in self.slices.items() if n > pools[key[0]].slices_per_gpu]
        for name, taken, limit in (
            ("memory", self.memory, "gpu_memory"),
            ("cores", self.cores, "cpu_cores"),
            ("ram", self.ram, "ram"),
        ):
            for key, amount in taken.items():
                most = getattr(pools[key[0]], limit)
                if most is not None and amount > most + 1e-6:
                    found.append(f"{name} of {key}")
        return found


def faults(state: State, decision: Decision) -> list[str]:
    """Everything that is wrong with a decision."""
    found: list[str] = []
    known = {job.job: job for job in state.jobs}
    of_job: dict[int, list[Assignment]] = defaultdict(list)
    for assignment in decision.assignments:
        of_job[assignment.job].append(assignment)
    if decision.wake_s is not None and not decision.wake_s > state.now_s:
        found.append("wakes in the past")
    for j, assignments in of_job.items():
        if j not in known:
            found.append(f"job {j} is not known")
            continue
        found += [f"job {j}: {fault}" for a in assignments for fault in _of_assignment(state, known[j], a)]
        for before, after in itertools.pairwise(assignments):
            if before.end_s is None or before.end_s > after.start_s + 1e-6:
                found.append(f"job {j}: overlaps itself")
    for j, job in known.items():
        stays = any(a.allocation == job.running and a.start_s == state.now_s for a in of_job[j])
        if job.running is not None and not job.movable and (not stays or len(of_job[j]) != 1):
            found.append(f"job {j} may not be stopped")
    return found + ([] if found else _clashes(state, known, decision))


def _of_assignment(state: State, job: JobState, assignment: Assignment) -> list[str]:
    instance, allocation = state.instance, assignment.allocation
    record, mode = instance.jobs[job.job], allocation.mode
    pool = instance.pools[mode.pool]
    stays = allocation == job.running and assignment.start_s == state.now_s
    found = []
    if assignment.start_s < max(state.now_s, record.release):
        found.append("starts too early")
    if assignment.end_s is not None and not assignment.end_s > assignment.start_s:
        found.append("ends before it starts")
    if not all(instance.job_index[name] in state.complete for name in record.after):
        found.append("a predecessor is not complete")
    is_cloud = next(site.kind for site in instance.sites if site.id == pool.site) == "cloud"
    if is_cloud and not state.may_burst:
        found.append("bursts")
    if not stays and (mode not in modes_of(instance, record) or (pool.market == "spot" and not record.spot)):
        found.append("has no such mode")
    per_node = pool.gpus_per_node if mode.num_nodes > 1 else max(1, mode.gpus)
    nodes = [place.node for place in allocation.places]
    if len(set(nodes)) != len(nodes) or len(nodes) != mode.num_nodes:
        found.append("is on a wrong number of nodes")
    for place in allocation.places:
        if len(set(place.gpus)) != len(place.gpus) or len(place.gpus) != per_node:
            found.append("is on a wrong number of GPUs")
        if place.node >= pool.nodes or any(gpu >= pool.gpus_per_node for gpu in place.gpus):
            found.append("is on GPUs that do not exist")
        if (mode.pool, place.node) in state.down:
            found.append("is on a node that is down")
    return found


def _clashes(state: State, known: dict[int, JobState], decision: Decision) -> list[str]:
    """What is taken twice, now or later by the estimates."""
    spans = []
    left = {j: job.remaining for j, job in known.items()}
    begun = {j for j, job in known.items() if job.has_run}
    for a in decision.assignments:
        stays = a.allocation == known[a.job].running and a.start_s == state.now_s
        works_s = a.start_s + (state.restart_s if a.job in begun and not stays else 0.0)
        duration_s = a.allocation.mode.duration_s
        end_s = min(works_s + left[a.job] * duration_s, math.inf if a.end_s is None else a.end_s)
        left[a.job] -= max(0.0, end_s - works_s) / duration_s
        begun.add(a.job)
        spans.append((a.start_s, end_s, a.allocation))
    found = []
    for moment in sorted({start for start, _, _ in spans}):
        ledger = _Ledger(state.instance)
        for start, end, allocation in spans:
            if start == moment or start <= moment < end - 1e-6:
                ledger.add(allocation)
        found += [f"{fault} at {moment:g}" for fault in ledger.faults()]
    return found


def random_state(seed: int) -> State:
    """A state somewhere in the middle of things: jobs complete, unknown, running, waiting; nodes down and on."""
    draw = random.Random(seed)
    base = random_instance(draw.choice(FAMILIES), draw)
    # Copies of jobs make a crowd.
    jobs = [job.model_copy(update={"running": None}) for job in base.jobs]
    jobs += [job.model_copy(update={"id": f"{job.id} again"}) for job in jobs if draw.random() < 0.7]
    instance = base.altered(jobs=tuple(jobs))
    now_s = draw.choice((0.0, 1000.5, draw.uniform(0, 40 * HOUR)))
    may_burst = draw.random() < 0.6
    complete: set[int] = set()
    unknown: set[int] = set()
    for j, job in enumerate(jobs):
        before = {instance.job_index[name] for name in job.after}
        if job.release > now_s or before & unknown:
            unknown.add(j)
        elif before <= complete and draw.random() < 0.2:
            complete.add(j)
    unknown = _with_successors(instance, unknown)
    complete -= unknown
    ledger, running = _Ledger(instance), {}
    for j, job in enumerate(jobs):
        is_ready = all(instance.job_index[name] in complete for name in job.after)
        if j not in complete | unknown and is_ready and draw.random() < 0.6:
            place = _random_place(instance, j, ledger, may_burst, draw)
            if place is not None:
                running[j] = place
    busy = {(there.mode.pool, place.node) for there in running.values() for place in there.places}
    all_nodes = [(p, node) for p, pool in enumerate(instance.pools) for node in range(pool.nodes)]
    idle = [node for node in all_nodes if node not in busy]
    known = [j for j in range(len(jobs)) if j not in complete | unknown]
    return state_of(
        instance,
        running,
        now_s=now_s,
        remaining={j: draw.choice((0.0, 1e-9, draw.random())) for j in known if j in running or draw.random() < 0.2},
        fixed=tuple(j for j in known if draw.random() < 0.3),
        complete=tuple(sorted(complete)),
        unknown=tuple(sorted(unknown)),
        down=tuple(node for node in idle if draw.random() < 0.2),
        on_also=tuple(node for node in idle if draw.random() < 0.3),
        restart_s=draw.choice((0.0, 300.0, 2400.0)),
        may_burst=may_burst,
    )


def _with_successors(instance: Instance, unknown: set[int]) -> set[int]:
    while True:
        more = {
            j
            for j, job in enumerate(instance.jobs)
            if j not in unknown and any(instance.job_index[name] in unknown for name in job.after)
        }
        if not more:
            return unknown
        unknown = unknown | more


def _random_place(
    instance: Instance, j: int, ledger: _Ledger, may_burst: bool, draw: random.Random
) -> Allocation | None:
    """Some mode on some GPUs that are free, drawn a few times."""
    found = modes_of(instance, instance.jobs[j])
    for _ in range(4 if found else 0):
        mode = draw.choice(found)
        pool = instance.pools[mode.pool]
        kind = next(site.kind for site in instance.sites if site.id == pool.site)
        if kind == "cloud" and not may_burst:
            continue
        nodes = sorted(draw.sample(range(pool.nodes), mode.num_nodes))
        per_node = pool.gpus_per_node if mode.num_nodes > 1 else max(1, mode.gpus)
        gpus = [tuple(sorted(draw.sample(range(pool.gpus_per_node), per_node))) for _ in nodes]
        allocation = Allocation(
            mode, tuple(Place(node=node, gpus=some) for node, some in zip(nodes, gpus, strict=True))
        )
        trial = _Ledger(
            instance,
            defaultdict(int, ledger.slices),
            defaultdict(float, ledger.memory),
            defaultdict(int, ledger.cores),
            defaultdict(float, ledger.ram),
        )
        trial.add(allocation)
        if not trial.faults():
            ledger.add(allocation)
            return allocation
    return None
