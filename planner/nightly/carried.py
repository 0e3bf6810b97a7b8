"""The last plan carried over to tonight's grid: where a replan starts from, and what is kept where nothing better is
found.

Every run goes on by the clock and on its nodes as far as things still stand that way: a job that runs stays where it
runs, a job that waits keeps its time and place if there is room. What no longer fits, and what is new, takes the
cheapest place that is left. The result has passed the check, or there is none.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import numpy as np

from models.check import check
from models.domain import Instance, Plan, Run, Segment
from models.starts import WORK_DONE, all_starts
from planner.engines.assemble import plan_of
from planner.engines.replay import Key
from planner.engines.schedule import Schedule, Step
from planner.horizon import num_slots_of
from planner.solve import versions

_SAME = 1e-6
"""Parts of a slot: a time so near to an edge is on it."""


@dataclass(frozen=True)
class Carried:
    """The last plan as one of the instance of now."""

    plan: Plan
    placed: tuple[str, ...]
    """Jobs that had to be placed anew, since they are new or what they had is no more."""

    def is_kept_by(self, plan: Plan) -> bool:
        """Whether another plan does nothing but go on with the last one."""
        return not self.placed and (plan.runs, plan.rejected) == (self.plan.runs, self.plan.rejected)


def carried(last: Plan, instance: Instance) -> Carried | None:
    """The last plan carried over to the instance as of now; None where not all jobs that must run find a place."""
    return _Carrier(last, instance).result()


class _Carrier:
    def __init__(self, last: Plan, instance: Instance) -> None:
        self.last, self.instance = last, instance
        self.starts = all_starts(instance, num_slots_of(instance))
        self.schedule = Schedule(self.starts)
        pools = instance.pools
        self.index: dict[Key, int] = {
            (row.job, row.mode.name, pools[row.pool].id, row.mode.speed, row.level, row.kept, row.is_piece): r
            for r, row in enumerate(self.starts.rows)
        }
        self.ran = {run.job: run for run in last.runs if run.segments}

    def result(self) -> Carried | None:
        """Runs that go on, then all others."""
        jobs, rejected = self.instance.jobs, set(self.last.rejected)
        rest: list[int] = []
        order = [j for j, job in enumerate(jobs) if job.running is not None]
        waiting = [j for j, job in enumerate(jobs) if job.running is None and job.id in self.ran]
        order += sorted(waiting, key=lambda j: (self._slot(self.ran[jobs[j].id].segments[0].start), j))
        for j in order:
            if not self._goes_on(j):
                rest.append(j)
        known = set(order)
        dropped = {j for j, job in enumerate(jobs) if job.id in rejected and job.reject_cost is not None} - known
        rest += [j for j in range(len(jobs)) if j not in known and j not in dropped]
        if not self._place(rest):
            return None
        plan = plan_of(
            self.schedule, status="feasible", engine="list", seed=self.last.seed, versions=versions(), dual_bound=None
        )
        return Carried(plan, tuple(jobs[j].id for j in rest)) if check(self.instance, plan).ok else None

    def _place(self, rest: list[int]) -> bool:
        """Give jobs the cheapest place that is left, or reject them; whether all that must run found one."""
        jobs = self.instance.jobs
        left = sorted(rest, key=lambda j: (jobs[j].running is None, jobs[j].due is None, jobs[j].due, j))
        while left:
            # A job whose predecessors are not placed has no earliest start yet.
            j = next((j for j in left if self.schedule.ready(j) is not None), left[0])
            left.remove(j)
            ready = self.schedule.ready(j)
            step = None if ready is None else self.schedule.cheapest(j, ready)
            if step is not None:
                self.schedule.put(j, step)
            elif jobs[j].reject_cost is None:
                return False
        return True

    def _goes_on(self, j: int) -> bool:
        """Put a job where it is or was to be; False, and nothing is put, where that is not possible."""
        job = self.instance.jobs[j]
        ready, run = self.schedule.ready(j), self.ran.get(job.id)
        if ready is None:
            return False
        segments = () if run is None else self._segments(run)
        if job.running is not None and (job.elastic is None or len(segments) < 2):
            stays = self.schedule.cheapest(j) if not job.running.movable else self._kept(j)
            if stays is not None:
                self.schedule.put(j, stays)
            return stays is not None
        if not segments or (job.running is not None and segments[0].start_slot > 0):
            return False
        steps: list[Step] = []
        for segment in segments:
            step = self._step(j, segment, is_piece=len(segments) > 1)
            if step is None:
                return False
            steps.append(step)
        if steps[0].slot < ready or not self._does_all(j, steps):
            return False
        self.schedule.put(j, replace(steps[-1], earlier=tuple(steps[:-1])))
        return True

    def _kept(self, j: int) -> Step | None:
        """A job that may be moved, left where it runs."""
        rows = self.starts.rows
        offers = (self.schedule.offer(r, rows[r].slots) for r in self.starts.rows_of_job[j] if rows[r].kept)
        found = [step for step in offers if step is not None]
        return min(found, key=lambda step: step.cost) if found else None

    def _does_all(self, j: int, steps: list[Step]) -> bool:
        """Whether the segments of an elastic job do all of its work, with no more changes than it may have."""
        if len(steps) == 1:
            return True
        done = math.fsum(self.starts.rows[step.row].progress * (step.length or 0) for step in steps)
        elastic = self.instance.jobs[j].elastic
        limit = None if elastic is None else elastic.changes
        return done >= WORK_DONE and (limit is None or len(steps) - 1 <= limit)

    def _segments(self, run: Run) -> tuple[Segment, ...]:
        """What is left of a run, by slots of now: what is over is left out, what is under way begins at 0."""
        found = []
        for segment in run.segments:
            first, end = self._slot(segment.start), self._slot(segment.end)
            if end > 0:
                found.append(segment.model_copy(update={"start_slot": first, "end_slot": end}))
        if len(found) > 1 and found[0].start_slot < 0:
            found[0] = found[0].model_copy(update={"start_slot": 0})
        return tuple(found)

    def _slot(self, moment: str) -> int:
        """The first slot edge of now that is not before a moment; negative for the past."""
        since = (datetime.fromisoformat(moment) - self.instance.start) / timedelta(seconds=self.instance.slot)
        return math.ceil(since - _SAME)

    def _step(self, j: int, segment: Segment, *, is_piece: bool) -> Step | None:
        schedule, running = self.schedule, self.instance.jobs[j].running
        is_kept = running is not None and segment.start_slot == 0
        level = round(segment.cached * self.instance.cache_levels)
        r = self.index.get((j, segment.mode, segment.pool, segment.speed, level, is_kept, is_piece))
        if r is None:
            return None
        row, first = self.starts.rows[r], segment.start_slot
        length = segment.end_slot - first if is_piece else None
        slots = np.arange(first, first + (length or 1))
        if not len(slots) or not np.isin(slots, row.slots).all():
            return None
        # Whether there is room at all, to read too; it names the cheapest place.
        offer = schedule.offer(r, slots) if length is None else schedule.offer_segment(r, first, length)
        if offer is None or is_kept:
            return offer
        timeline = schedule.pools[row.pool]
        if timeline.shares_gpu(row.mode):
            spot = (segment.places[0].node, segment.places[0].gpus[0])
        else:
            spot = tuple(place.node for place in segment.places)
        step = replace(offer, spot=spot)
        return step if _is_free(schedule, step) else None


def fits(schedule: Schedule, step: Step) -> bool:
    """Whether a run finds room on its own nodes at its own time, and can read."""
    for segment in step.segments:
        if segment.length is None:
            offer = schedule.offer(segment.row, np.array([segment.slot]))
        else:
            offer = schedule.offer_segment(segment.row, segment.slot, segment.length)
        if offer is None or not _is_free(schedule, segment):
            return False
    return True


def _is_free(schedule: Schedule, step: Step) -> bool:
    """Whether the nodes of a segment are there and have room meanwhile."""
    row = schedule.starts.rows[step.row]
    timeline = schedule.pools[row.pool]
    nodes = timeline.nodes_of(row.mode, step.spot)
    if max(nodes) >= timeline.pool.nodes:
        return False
    window = slice(step.slot, schedule.end(step))
    is_there = timeline.kinds.usable[timeline.kinds.kind[nodes], window].all()
    return bool(is_there) and timeline.has_room(row, step.spot, step.length, step.slot)
