"""A plan carried out: each job in its planned mode on its planned GPUs, at its planned time or as soon after as it can.

- A job waits for its predecessors and for all that the plan has before it on its GPUs (`itinerary`); it starts no
  earlier than planned unless `early` says so. Jobs keep their order; nothing is planned anew.
- After an interruption it starts again at once, with what is done kept. Where one of its nodes is down, or will be
  closed before the job is done, it goes to other GPUs of the pool that are free, those first that are planned for
  nobody before it is done; where there are none it waits, or, if its nodes are only to be closed, starts there.
- An elastic job changes when it has spent the planned time of a segment in it, and stays in its last one until it is
  complete.
- Nodes are on as planned for as long as something that is planned there within that time is not done, so that they
  have booted when a job is to start; beyond that they are on while they are needed.
- Bandwidth is what was bought, and what links carry: a job that reads waits until what others leave of it suffices.

It decides for one simulation: it keeps note of what it has begun.
"""

from __future__ import annotations

import bisect
from dataclasses import dataclass, field

from models.errors import NoPlan
from planner.simulation.events import EDGE_S
from planner.simulation.nodes import Node
from planner.simulation.policies.itinerary import Itinerary, Leg, LegId, gpus_of
from planner.simulation.policies.room import Room
from planner.simulation.state import Allocation, Assignment, Decision, JobState, State

MOST_STARTS = 5_000
"""Of a segment of a job; then it is taken to start for ever."""
_ROUNDING = 1e-6
"""Part of a limit by which what is read may be above it: as in the check of plans."""


@dataclass
class _Progress:
    """How far a job is in its orders."""

    leg: int = 0
    spent_s: float = 0.0
    """Time in the present leg before the present stretch."""
    since_s: float | None = None
    """When the present stretch began; None: it waits."""
    starts: int = 0
    was_moved: bool = False
    """Whether it has been elsewhere than planned since this leg began."""
    is_elsewhere: bool = False
    """Whether it is so now."""


@dataclass
class Followed:
    """Do what a plan says."""

    orders: Itinerary
    early: bool = False
    """Whether jobs may start before their planned time, in the order of the plan."""
    name: str = "followed"
    _jobs: list[_Progress] = field(init=False)
    _begun: int = 0
    """Intervals whose begin is past."""
    _open: list[int] = field(default_factory=list)
    """Those of them whose end is not."""

    def __post_init__(self) -> None:
        """Nothing has begun; the moments at which something is planned."""
        self._jobs = [_Progress() for _ in self.orders.legs]
        moments = {leg.start_s for legs in self.orders.legs for leg in legs}
        moments |= {interval.begin_s for interval in self.orders.intervals}
        self._moments = sorted(moments)

    def decide(self, state: State) -> Decision:
        """Go on, start what is due and can start, and hold the nodes that the plan has on.

        Raises NoPlan where interruptions leave a job no time to work.
        """
        rejected = tuple(job.job for job in state.jobs if not self.orders.legs[job.job])
        staying: list[Assignment] = []
        waiting: list[JobState] = []
        for job in state.jobs:
            if not self.orders.legs[job.job]:
                continue
            if self._goes_on(job, state.now_s):
                assert job.running is not None
                staying.append(Assignment(job.job, job.running, state.now_s))
            else:
                waiting.append(job)
        started = self._start(state, staying, waiting)
        hold, ends = self._hold(state)
        wakes = [at for at in (self._next_moment(state.now_s), *ends) if at is not None]
        wakes += [self._leg_end(a.job) for a in (*staying, *started) if not self._leg(a.job).is_last]
        return Decision((*staying, *started), min(wakes, default=None), hold, rejected)

    # --- where jobs are in their orders --------------------------------------------------------------------

    def _leg(self, j: int) -> Leg:
        return self.orders.legs[j][self._jobs[j].leg]

    def _leg_end(self, j: int) -> float:
        """When the time of a leg that is not the last is over."""
        progress = self._jobs[j]
        assert progress.since_s is not None
        return progress.since_s + self._leg(j).length_s - progress.spent_s

    def _goes_on(self, job: JobState, now_s: float) -> bool:
        """Take note of what has happened to a job; whether it stays where it runs."""
        progress, leg = self._jobs[job.job], self._leg(job.job)
        if job.running is None:
            if progress.since_s is not None:  # it was stopped, just now
                progress.spent_s += now_s - progress.since_s
                progress.since_s, progress.is_elsewhere = None, False
            return False
        if progress.since_s is None:  # it ran before the start
            if not leg.is_kept and job.movable:
                return False
            progress.since_s = now_s
        if leg.is_last or now_s < self._leg_end(job.job) - EDGE_S:
            return True
        self._jobs[job.job] = _Progress(progress.leg + 1)
        return False

    def _is_done(self, name: LegId, state: State) -> bool:
        """Whether nobody need wait for a leg any more: it is over, or its job is elsewhere."""
        j, k = name
        if j in state.complete:
            return True
        progress = self._jobs[j]
        return progress.leg > k or (progress.leg == k and progress.is_elsewhere)

    # --- starts --------------------------------------------------------------------------------------------

    def _start(self, state: State, staying: list[Assignment], waiting: list[JobState]) -> list[Assignment]:
        ready = [job for job in waiting if self._is_due(job, state)]
        if not ready:
            return []
        room, left = Room(state), list(self.orders.limits_mb_s)
        pools = {self._leg(job.job).allocation.mode.pool for job in ready}
        for assignment in staying:
            if assignment.allocation.mode.pool in pools:
                room.take(assignment.allocation)
            _read(self._leg(assignment.job), left)
        started = []
        for job in sorted(ready, key=lambda job: (self._leg(job.job).start_s, self.orders.order[job.job])):
            progress, leg = self._jobs[job.job], self._leg(job.job)
            is_enough = all(rate <= left[k] + _ROUNDING * self.orders.limits_mb_s[k] for k, rate in leg.reads)
            place = self._place(job, leg, state, room) if is_enough else None
            if place is None:
                continue
            room.take(place)
            _read(leg, left)
            progress.starts += 1
            if progress.starts > MOST_STARTS:
                raise NoPlan(
                    f"job {state.instance.jobs[job.job].id} is stopped more often than it can start again: "
                    f"{MOST_STARTS:,} times; let less fail, or let restarts take less time"
                )
            progress.since_s = state.now_s
            progress.is_elsewhere = place != leg.allocation
            progress.was_moved |= progress.is_elsewhere
            started.append(Assignment(job.job, place, state.now_s))
        return started

    def _is_due(self, job: JobState, state: State) -> bool:
        """Whether a job may start now, if there is room."""
        leg, record = self._leg(job.job), state.instance.jobs[job.job]
        if not self.early and state.now_s < leg.start_s - EDGE_S:
            return False
        if any(state.instance.job_index[name] not in state.complete for name in record.after):
            return False
        return all(self._is_done(name, state) for name in leg.before)

    def _place(self, job: JobState, leg: Leg, state: State, room: Room) -> Allocation | None:
        """Where a job is to start; None where it has to wait."""
        planned, progress = leg.allocation, self._jobs[job.job]
        seconds = job.remaining * planned.mode.duration_s + (state.restart_s if job.has_run else 0.0)
        if not leg.is_last:
            seconds = min(seconds, leg.length_s - progress.spent_s)
        is_down = any(node in state.down for node in _nodes(planned))
        if not is_down and room.has(planned, seconds):
            return planned
        # Closed soon, but free until then; or once driven out, and now someone else is there.
        is_closing = not is_down and room.has(planned, 0.0)
        if is_down or is_closing or progress.was_moved:
            other = self._elsewhere(job, leg, seconds, state, room)
            if other is not None:
                return other
        return planned if is_closing else None

    def _elsewhere(self, job: JobState, leg: Leg, seconds: float, state: State, room: Room) -> Allocation | None:
        """Other GPUs of the pool, those first that nobody is planned on before the job is done."""
        mode = leg.allocation.mode
        until_s = state.now_s + seconds
        taken = {
            gpu
            for other, legs in enumerate(self.orders.legs)
            if other != job.job and other not in state.complete
            for k, planned in enumerate(legs)
            if planned.allocation.mode.pool == mode.pool
            and planned.start_s < until_s
            and not self._is_done((other, k), state)
            for gpu in planned.gpus
        }
        room.held = taken
        first = None
        for nodes in room.node_sets(mode, seconds):
            found = room.on_nodes(mode, nodes, seconds)
            if found is None:
                continue
            if not gpus_of(found) & taken:
                return found
            first = first or found
        return first

    # --- nodes ---------------------------------------------------------------------------------------------

    def _hold(self, state: State) -> tuple[tuple[Node, ...], list[float]]:
        """Nodes that the plan has on now and that something is still planned on, and when that is to end."""
        intervals, now_s = self.orders.intervals, state.now_s
        while self._begun < len(intervals) and intervals[self._begun].begin_s <= now_s + EDGE_S:
            self._open.append(self._begun)
            self._begun += 1
        self._open = [
            k
            for k in self._open
            if intervals[k].end_s > now_s + EDGE_S
            and not all(j in state.complete or self._jobs[j].leg > leg for j, leg in intervals[k].legs)
        ]
        held = [intervals[k] for k in self._open if not all(self._is_done(name, state) for name in intervals[k].legs)]
        return tuple(interval.node for interval in held), [interval.end_s for interval in held]

    def _next_moment(self, now_s: float) -> float | None:
        k = bisect.bisect_right(self._moments, now_s + EDGE_S)
        return self._moments[k] if k < len(self._moments) else None


def _read(leg: Leg, left: list[float]) -> None:
    """Take what a leg reads from what is left."""
    for k, rate in leg.reads:
        left[k] -= rate


def _nodes(there: Allocation) -> list[Node]:
    return [(there.mode.pool, place.node) for place in there.places]
