"""The work that is left at a moment, as an instance of its own: what this planner plans at every call.

- The grid starts now. Times and time-of-use prices move with it (`moment`).
- Jobs are those that are known and not complete; predecessors that are complete are left out, and so are jobs that no
  pool could hold now, with all that come after them: they wait.
- A mode takes what is left of its duration. Where a job has run, every mode in which it would not simply stay takes the
  restart time before that. A job that is moved or put off in the very mode that it runs in is taken to need no restart
  time, since a mode has one duration, and so is a later change of an elastic job; their restart costs are counted.
- Nodes are numbered anew: first those that are on, then the others that are up. `nodes_on` counts the lowest indices
  only, so this says exactly which nodes need no boot. Nodes that are down have no number: they count as gone for good,
  unless an announced window says when they are back.
- What has been bought of bandwidth and cache for the present billing period is not known to a plan: it pays anew.
- A rental that is under way is billed from now on as a new one, as in every plan.
- Cloud pools stay in the instance, so that pools keep their indices, but without `may_burst` no mode names one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from models.domain import Instance, Plan, Segment
from models.domain.entities import Elastic, Job, ModeEntry, Place, Pool, Running
from models.domain.modes import Mode, modes_of, nodes_taken, slots_of, with_entries
from models.grid import DAY_S, Meter, boot_slots, closed_nodes, is_cloud
from planner.simulation.policies.menu import OVERDUE_S
from planner.simulation.policies.moment import at_moment, job_at
from planner.simulation.state import Allocation, Assignment, JobState, State

KEPT = "kept"
"""Name of the mode in which a running job stays; the others are named by their index."""


@dataclass(frozen=True)
class Remaining:
    """An instance of what is left, and the way back from its plans."""

    state: State
    instance: Instance
    modes: dict[str, tuple[Mode, ...]]
    """By job the modes that its entries stand for."""
    nodes: tuple[tuple[int, ...], ...]
    """By pool the node that each index stands for."""

    def assignments(self, plan: Plan) -> tuple[Assignment, ...]:
        """What a plan says of jobs whose predecessors are complete; it is asked again when others become ready.

        A run that begins in the first slot begins now. Its last segment goes on until the job completes. A node boots
        from the start of the first run on it, so that run starts earlier than in the plan by the boot.
        """
        found: list[Assignment] = []
        booted = self._booted(plan)
        for run in plan.runs:
            j = self.state.instance.job_index[run.job]
            record = self.state.instance.jobs[j]
            if not all(self.state.instance.job_index[name] in self.state.complete for name in record.after):
                continue
            for k, segment in enumerate(run.segments):
                start_slot = segment.start_slot
                if all((segment.pool, place.node, start_slot) in booted for place in segment.places):
                    start_slot -= booted[segment.pool, segment.places[0].node, start_slot]
                start_s, end_s = (self.state.now_s + slot * plan.slot_s for slot in (start_slot, segment.end_slot))
                is_last = k + 1 == len(run.segments)
                found.append(Assignment(j, self._allocation(j, segment), start_s, None if is_last else end_s))
        return tuple(found)

    def _allocation(self, j: int, segment: Segment) -> Allocation:
        """Where a segment runs."""
        here = next(job.running for job in self.state.jobs if job.job == j)
        if segment.kept and here is not None:
            return here
        nodes = self.nodes[self.instance.pool_index[segment.pool]]
        places = tuple(Place(node=nodes[place.node], gpus=place.gpus) for place in segment.places)
        if segment.mode == KEPT:
            assert here is not None
            mode = here.mode
        else:
            mode = self.modes[self.state.instance.jobs[j].id][int(segment.mode)]
        return Allocation(mode, tuple(sorted(places, key=lambda place: place.node)))

    def _booted(self, plan: Plan) -> dict[tuple[str, int, int], int]:
        """Slots of boot before the first run on a node that is switched on, by (pool, node, slot of that run)."""
        starts = sorted(
            {(s.pool, place.node, s.start_slot) for run in plan.runs for s in run.segments for place in s.places}
        )
        found: dict[tuple[str, int, int], int] = {}
        for interval in plan.nodes_on:
            pool = self.instance.pools[self.instance.pool_index[interval.pool]]
            boot = boot_slots(self.instance, pool)
            first = next(
                (
                    slot
                    for name, node, slot in starts
                    if (name, node) == (interval.pool, interval.node)
                    and interval.start_slot <= slot < interval.end_slot
                ),
                None,
            )
            is_warm = interval.start_slot == 0 and interval.node < pool.nodes_on
            if boot and first is not None and not is_warm:
                found[interval.pool, interval.node, first] = boot
        return found


def remaining_of(
    state: State, slot_s: float, *, elastic: bool = False, deadlines: bool = True, is_free: bool = True
) -> Remaining:
    """The work that is left, on a grid from now on; with `elastic` every job that may be stopped may change its mode as
    it runs. Deadlines that can no longer be met in any mode are left out, and with `deadlines=False` all are.
    `is_free`: what is read neither costs anything nor meets a limit."""
    moved = at_moment(state.instance, state.now_s, slot_s)
    numbering = [_numbered(state, pool, p) for p, pool in enumerate(moved.pools)]
    pools = tuple(pool for pool, _ in numbering)
    nodes = tuple(old for _, old in numbering)
    instance = moved.altered(pools=pools, jobs=())
    jobs: dict[int, Job] = {}
    modes: dict[str, tuple[Mode, ...]] = {}
    for job in _in_order(state):
        record = state.instance.jobs[job.job]
        before = [state.instance.job_index[name] for name in record.after]
        if any(i not in state.complete and i not in jobs for i in before):
            continue
        made = _job(state, instance, job, nodes)
        if made is None:
            continue
        left, modes[record.id] = made
        after = tuple(name for name, i in zip(record.after, before, strict=True) if i not in state.complete)
        left = left.model_copy(update={"after": () if left.running is not None else after})
        if not deadlines or _is_lost(left, slot_s):
            left = left.model_copy(update={"deadline": None})
        if elastic and job.movable and record.elastic is None:
            left = _made_elastic(state, left, is_free=is_free)
        if state.restart_s > 0 and job.movable:
            left = left.model_copy(
                update={"restart_cost": left.restart_cost + _restart_money(state, instance, left, modes[record.id])}
            )
        left = left.model_copy(update={"due": _on_grid(left.due, slot_s)})
        jobs[job.job] = left
    known = tuple(jobs[job.job] for job in state.jobs if job.job in jobs)
    return Remaining(state, instance.altered(jobs=known), modes, nodes)


def _in_order(state: State) -> list[JobState]:
    """Known jobs, predecessors first."""
    states = {job.job: job for job in state.jobs}
    order: dict[int, JobState] = {}

    def visit(j: int) -> None:
        if j in order or j not in states:
            return
        for name in state.instance.jobs[j].after:
            visit(state.instance.job_index[name])
        order[j] = states[j]

    for j in states:
        visit(j)
    return list(order.values())


def _numbered(state: State, pool: Pool, p: int) -> tuple[Pool, tuple[int, ...]]:
    """A pool without its nodes that are down, those that are on first, and what each new index stands for."""
    windows = [(window, closed_nodes(pool, window)) for window in pool.unavailable]
    closed = {node for window, nodes in windows if window.since <= 0 for node in nodes}
    there = [node for node in range(pool.nodes) if (p, node) not in state.down or node in closed]
    on = [node for node in there if (p, node) in state.on_since_s and node not in closed]
    taken = set(on)
    order = (*on, *(node for node in there if node not in taken))
    new = {node: index for index, node in enumerate(order)}
    unavailable = tuple(
        window.model_copy(update={"nodes": tuple(sorted(new[node] for node in nodes if node in new))})
        for window, nodes in windows
    )
    update = {"nodes": len(order), "nodes_on": len(on), "unavailable": unavailable}
    return pool.model_copy(update=update), order


def _job(
    state: State, instance: Instance, job: JobState, nodes: tuple[tuple[int, ...], ...]
) -> tuple[Job, tuple[Mode, ...]] | None:
    """What is left of a job, and the modes that its entries stand for; None where it cannot run now."""
    record = job_at(state.instance.jobs[job.job], state.now_s).model_copy(update={"running": None})
    modes = tuple(
        mode
        for mode in modes_of(state.instance, record)
        if (state.may_burst or not is_cloud(state.instance, mode.pool))
        and mode.num_nodes <= instance.pools[mode.pool].nodes
    )
    here = job.running
    if here is not None and any((here.mode.pool, place.node) in state.down for place in here.places):
        here = None
    restart_s = state.restart_s if job.has_run else 0.0
    least_s = OVERDUE_S if job.has_run else 0.0
    entries = [
        _entry(str(k), mode, instance.pools[mode.pool], max(least_s, job.remaining * mode.duration_s) + restart_s)
        for k, mode in enumerate(modes)
    ]
    running = None
    if here is not None:
        pool = instance.pools[here.mode.pool]
        index = {node: new for new, node in enumerate(nodes[here.mode.pool])}
        places = tuple(Place(node=index[place.node], gpus=place.gpus) for place in here.places)
        running = Running(mode=KEPT, pool=pool.id, places=places, movable=job.movable)
        entries.append(_entry(KEPT, here.mode, pool, max(least_s, job.remaining * here.mode.duration_s)))
    if not entries:
        return None
    update: dict[str, object] = {"running": running, "speed_levels": (1.0,)}
    if running is not None:
        update["release"] = min(0.0, record.release)
        # It goes on anyway, so it cannot be rejected.
        update["reject_cost"] = record.reject_cost if job.movable else None
    return with_entries(record, tuple(entries)).model_copy(update=update), modes


def _entry(name: str, mode: Mode, pool: Pool, duration_s: float) -> ModeEntry:
    """A mode as an entry of its pool, its speed counted in."""
    is_share = mode.gpus == 0
    return ModeEntry(
        id=name,
        pool=pool.id,
        gpus=None if is_share else mode.gpus,
        share=mode.slices / pool.slices_per_gpu if is_share else None,
        duration=max(1.0, duration_s),
        read_rate=mode.read_rate_mb_s,
        memory=mode.memory_gb or None,
        cpu_cores=mode.cpu_cores or None,
        ram=mode.ram_gb or None,
    )


def _on_grid(due: float | None, slot_s: float) -> float | None:
    """The edge of a slot next to a due date. Times are made exact after the plan is made, so that a job which is due
    within a slot can be complete by then; to count it as late by the rest of the slot, or early, would be no better."""
    return due if due is None or due <= 0 else max(1, round(due / slot_s)) * slot_s


def _made_elastic(state: State, job: Job, *, is_free: bool) -> Job:
    """A job that may change its mode as it runs."""
    update: dict[str, object] = {"elastic": Elastic()}
    if state.restart_s == 0 and job.restart_cost == 0 and (is_free or job.dataset is None):
        update["modes"] = _on_hull(job)
    return job.model_copy(update=update)


def _restart_money(state: State, instance: Instance, job: Job, modes: tuple[Mode, ...]) -> float:
    """What the time of a restart is worth, which the slots of a plan show badly or not at all: its cheapest mode
    meanwhile and, since plans leave no slack where there is any cheaper way to use it, so much tardiness."""
    late = job.weight if job.due is not None else 0.0
    cheapest = min((_money_an_hour(instance, mode) for mode in modes), default=0.0)
    return (cheapest + late) * state.restart_s / 3600.0


def _money_an_hour(instance: Instance, mode: Mode) -> float:
    """What a mode costs, in the mean over a day."""
    pool = instance.pools[mode.pool]
    node = Meter(instance, pool.price).cost(0.0, DAY_S)
    energy = Meter(instance, instance.sites[instance.site_index[pool.site]].energy_price).cost(0.0, DAY_S)
    return (nodes_taken(mode, pool) * node + mode.busy_gpus * pool.gpu_power * energy) * 3600.0 / DAY_S


def _on_hull(job: Job) -> tuple[ModeEntry, ...]:
    """The modes of a job that changes freely which are worth it: in each pool those on the lower convex hull of GPUs
    over speed. Any other can be had from two of those, in turn, at no more GPU time; the mode that it is in stays."""
    kept: list[ModeEntry] = []
    groups: dict[str | None, list[ModeEntry]] = {}
    for entry in job.modes:
        groups.setdefault(entry.pool, []).append(entry)
    for entries in groups.values():
        hull: list[tuple[float, float, ModeEntry | None]] = [(0.0, 0.0, None)]
        for entry in sorted(entries, key=lambda e: (1.0 / float(e.duration), _size(e))):
            x, y = 1.0 / float(entry.duration), _size(entry)
            while len(hull) > 1 and y <= hull[-1][1] + 1e-12:
                hull.pop()
            if x <= hull[-1][0]:
                continue
            while len(hull) > 1 and _is_above(hull[-2], hull[-1], (x, y)):
                hull.pop()
            hull.append((x, y, entry))
        kept += [entry for _, _, entry in hull if entry is not None and entry.id != KEPT]
    own = [entry for entry in job.modes if entry.id == KEPT]
    twins = {(entry.pool, entry.gpus, entry.share) for entry in own}
    return (*(entry for entry in kept if (entry.pool, entry.gpus, entry.share) not in twins), *own)


def _is_above(a: tuple[float, float, object], b: tuple[float, float, object], c: tuple[float, float]) -> bool:
    """Whether the middle one of three points is on or above the line between the others."""
    return (b[1] - a[1]) * (c[0] - a[0]) >= (c[1] - a[1]) * (b[0] - a[0]) * (1 - 1e-9)


def _size(entry: ModeEntry) -> float:
    return float(entry.gpus) if entry.gpus is not None else float(entry.share or 0.0)


def _is_lost(job: Job, slot_s: float) -> bool:
    """Whether a deadline cannot be met even by a job that starts now in its fastest mode."""
    if job.deadline is None:
        return False
    fastest = min(slots_of(entry.duration, slot_s) for entry in job.modes)
    begin = max(0.0, job.release)
    return math.ceil(begin / slot_s) + fastest > job.deadline / slot_s + 1e-9
