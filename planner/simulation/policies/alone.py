"""What a job would do if no other were there, and plans in which jobs do so wherever others leave them the room.

Where nodes cost nothing by themselves and energy has one price, the cost of a job is its own: money an hour of each
mode, restarts, tardiness. With work r left, the cheapest course from now on is among

    one mode throughout, or
    two, one after the other, complete exactly when due:  t / D + (due - now - idle - t) / F = r

since in two modes of a hull any rate between theirs can be had, and the cost is piecewise linear in the completion.
If all jobs can run so at once, that is an optimal plan. If not, a plan that was made for all of them is still improved
by each job whose own course is cheaper than the planned one and fits in beside the others.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from models.domain.modes import Mode
from models.domain.prices import EnergyTariff
from models.grid import is_cloud
from planner.simulation.policies.menu import OVERDUE_S, ModeTable
from planner.simulation.policies.timetable import EDGE_S, Timetable, is_only_gpus
from planner.simulation.state import Assignment, JobState, State

TRIES = 12
"""Courses of a job that are tried, the cheapest first."""
ROUNDS = 3
"""Times that all jobs are gone through at most: what one leaves, another may take."""
_GAIN = 1e-7
"""Part of its cost by which a course must be cheaper."""


@dataclass(frozen=True)
class _Stretch:
    mode: Mode
    start_s: float
    end_s: float


@dataclass(frozen=True)
class _Course:
    cost: float
    stays: bool
    """Whether its first stretch is where the job runs now."""
    stretches: tuple[_Stretch, ...]


class Courses:
    """The courses of the jobs of a moment."""

    def __init__(self, state: State, table: ModeTable) -> None:
        self.state, self._table = state, table
        instance = state.instance
        waited_for = {name for job in instance.jobs for name in job.after}
        self._jobs = {
            job.job: job for job in state.jobs if instance.jobs[job.job].id not in waited_for and self._is_apt(job)
        }
        self._rates = [self._rate(p) for p in range(len(instance.pools))]
        self._courses: dict[int, list[_Course]] = {}

    def together(self) -> tuple[Assignment, ...] | None:
        """Every job on one of its cheapest courses; None where that cannot be, or is not known to be best."""
        if len(self._jobs) < len(self.state.jobs) or not all(
            self._rates[mode.pool] is not None for job in self._jobs.values() for mode in self._modes(job)
        ):
            return None
        table = Timetable(self.state)
        made: list[Assignment] = []
        for job in sorted(self._jobs.values(), key=lambda job: (job.running is None, self._due_s(job), job.job)):
            courses = self.of(job)
            best = [course for course in courses if course.cost <= courses[0].cost * (1 + _GAIN)] if courses else []
            placed = next((found for course in best if (found := self._placed(table, job, course))), None)
            if placed is None:
                return None
            made += placed
        return tuple(made)

    def settled(self, assignments: Sequence[Assignment]) -> tuple[Assignment, ...]:
        """The assignments, whose ends are stated, with cheaper courses for those jobs that have one beside the rest."""
        table = Timetable(self.state, assignments)
        by_job: dict[int, list[Assignment]] = defaultdict(list)
        for a in assignments:
            by_job[a.job].append(a)
        for _ in range(ROUNDS):
            if not self._round(table, by_job):
                break
        return tuple(a for own in by_job.values() for a in own)

    def _round(self, table: Timetable, by_job: dict[int, list[Assignment]]) -> bool:
        gains = []
        for j, own in by_job.items():
            if j in self._jobs and all(self._rates[a.allocation.mode.pool] is not None for a in own):
                courses, planned = self.of(self._jobs[j]), self._cost(self._jobs[j], own)
                if courses and courses[0].cost < planned * (1 - _GAIN):
                    gains.append((courses[0].cost - planned, j, planned))
        is_better = False
        for _, j, planned in sorted(gains):
            for a in by_job[j]:
                table.remove(a)
            cheaper = (course for course in self.of(self._jobs[j])[:TRIES] if course.cost < planned * (1 - _GAIN))
            placed = next((found for course in cheaper if (found := self._placed(table, self._jobs[j], course))), None)
            if placed is None:
                for a in by_job[j]:
                    table.add(a)
            else:
                by_job[j], is_better = placed, True
        return is_better

    # --- courses -----------------------------------------------------------------------------------------------

    def of(self, job: JobState) -> list[_Course]:
        """The courses of a job, the cheapest first, and of those the ones that move it least and end first."""
        if job.job not in self._courses:
            found = [*self._throughout(job), *self._changing(job)]
            found.sort(key=lambda c: (round(c.cost, 9), not c.stays, len(c.stretches), c.stretches[-1].end_s))
            self._courses[job.job] = found
        return self._courses[job.job]

    def _throughout(self, job: JobState) -> Iterable[_Course]:
        now_s = self.state.now_s
        for mode, stays in self._starts(job):
            end_s = now_s + self._idle(job, stays) + self._left(job, mode) * mode.duration_s
            yield self._course(job, stays, _Stretch(mode, now_s, end_s))

    def _changing(self, job: JobState) -> Iterable[_Course]:
        now_s, due_s = self.state.now_s, self._due_s(job)
        if math.isinf(due_s) or due_s <= now_s:
            return
        for first, stays in self._starts(job):
            left = self._left(job, first)
            works_s = due_s - now_s - self._idle(job, stays) - self.state.restart_s
            for then in self._modes(job):
                # The slower one is best first, except that going on as it does now saves a restart.
                is_order = then.duration_s != first.duration_s if stays else then.duration_s < first.duration_s
                if not is_order or self._rates[then.pool] is None:
                    continue
                works_then_s = (left - works_s / first.duration_s) / (1 / then.duration_s - 1 / first.duration_s)
                if EDGE_S < works_then_s < works_s - EDGE_S:
                    change_s = due_s - self.state.restart_s - works_then_s
                    yield self._course(job, stays, _Stretch(first, now_s, change_s), _Stretch(then, change_s, due_s))

    def _course(self, job: JobState, stays: bool, *stretches: _Stretch) -> _Course:
        moves = len(stretches) - 1 + (job.has_run and not stays)
        spent = sum((s.end_s - s.start_s) * self._money(s.mode) for s in stretches)
        return _Course(self._total(job, spent, moves, stretches[-1].end_s), stays, stretches)

    def _cost(self, job: JobState, own: Sequence[Assignment]) -> float:
        """Of a job as it is planned."""
        first = own[0]
        stays = first.allocation == job.running and first.start_s <= self.state.now_s
        ends = [math.inf if a.end_s is None else a.end_s for a in own]
        spent = sum((end - a.start_s) * self._money(a.allocation.mode) for a, end in zip(own, ends, strict=True))
        return self._total(job, spent, len(own) - 1 + (job.has_run and not stays), ends[-1])

    def _total(self, job: JobState, spent: float, moves: int, end_s: float) -> float:
        record = self.state.instance.jobs[job.job]
        late_s = 0.0 if record.due is None else max(0.0, end_s - record.due)
        return spent + moves * record.restart_cost + record.weight * late_s / 3600.0

    def _money(self, mode: Mode) -> float:
        """A second of a mode."""
        return (self._rates[mode.pool] or 0.0) * mode.busy_gpus

    def _placed(self, table: Timetable, job: JobState, course: _Course) -> list[Assignment] | None:
        """The course on GPUs that are free, which it takes; None where there are none."""
        made = []
        for k, s in enumerate(course.stretches):
            here = job.running if k == 0 and course.stays else None
            if here is None:
                allocation = table.fit(s.mode, s.start_s, s.end_s)
            else:
                allocation = here if table.has_room(here, s.start_s, s.end_s) else None
            if allocation is None:
                return None
            made.append(Assignment(job.job, allocation, s.start_s, s.end_s))
        for a in made:
            table.add(a)
        return made

    # --- what is known -----------------------------------------------------------------------------------------

    def _starts(self, job: JobState) -> list[tuple[Mode, bool]]:
        """Modes to be in from now on, and whether that is to stay."""
        found = [(mode, False) for mode in self._modes(job) if self._rates[mode.pool] is not None]
        here = job.running
        return found if here is None or self._rates[here.mode.pool] is None else [(here.mode, True), *found]

    def _modes(self, job: JobState) -> list[Mode]:
        instance = self.state.instance
        return [
            mode
            for mode in self._table.of(instance, job.job)
            if self.state.may_burst or not is_cloud(instance, mode.pool)
        ]

    def _left(self, job: JobState, mode: Mode) -> float:
        return max(job.remaining, OVERDUE_S / mode.duration_s if job.has_run else 0.0)

    def _idle(self, job: JobState, stays: bool) -> float:
        return self.state.restart_s if job.has_run and not stays else 0.0

    def _due_s(self, job: JobState) -> float:
        due = self.state.instance.jobs[job.job].due
        return math.inf if due is None else due

    def _is_apt(self, job: JobState) -> bool:
        """Whether what a job costs is its own, and only a matter of when it is complete."""
        record = self.state.instance.jobs[job.job]
        is_plain = not (record.value or record.dataset) and all(
            term is None for term in (record.deadline, record.utility, record.reject_cost)
        )
        is_free = job.movable and (record.elastic is None or record.elastic.changes is None)
        is_ready = record.release <= self.state.now_s and all(
            self.state.instance.job_index[name] in self.state.complete for name in record.after
        )
        modes = self._modes(job)
        return is_plain and is_free and is_ready and not any(mode.is_gang for mode in modes)

    def _rate(self, p: int) -> float | None:
        """Money a second of a busy GPU of a pool; None where there is more to what its nodes cost."""
        instance = self.state.instance
        pool = instance.pools[p]
        price = instance.sites[instance.site_index[pool.site]].energy_price
        if isinstance(price, tuple | EnergyTariff) or pool.price != 0.0 or pool.boot_time > 0:
            return None
        return float(price) * pool.gpu_power / 3600.0 if is_only_gpus(instance, p) else None
