"""The optimum of a super tiny instance with elastic jobs: every run of segments of every job, in plain Python.

A segment is a run of its own slots, so what it takes and costs is counted as in `tests/brute.py`. A run ends with the
first slot by whose end all of the work is done: going on would cost no less. Segments that follow each other at once in
one mode and on the same GPUs are one segment.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace

from models.domain.entities import Job
from models.domain.instance import Instance
from tests import oracle_reading as reading
from tests import oracle_terms as terms
from tests.brute import _Enumeration
from tests.oracle_reading import Place, Way
from tests.oracle_terms import JobRun

WHOLE = 1.0 - 1e-9
OF_SEGMENTS = ("energy", "interruption")
OF_COMPLETION = ("tardiness", "lost_value")


@dataclass(frozen=True)
class Choice:
    """What a job may do: its segments in order, none where it is rejected, and what that costs by itself."""

    job: int
    segments: tuple[JobRun, ...]
    cost: float

    @property
    def start(self) -> int:
        """Its first slot."""
        return self.segments[0].start

    @property
    def end(self) -> int:
        """The edge at which it completes."""
        return self.segments[-1].end


def elastic_optimum(instance: Instance) -> float | None:
    """Cost of the cheapest plan; None where there is none."""
    return ElasticEnumeration(instance).best()


def num_plans(instance: Instance, most: int) -> int:
    """How many plans there are to enumerate before any is cut; it stops counting beyond so many."""
    number = 1
    for j in range(len(instance.jobs)):
        number *= sum(1 for _, _ in zip(choices(instance, j), range(most + 1), strict=False))
        if number > most:
            break
    return number


class ElasticEnumeration(_Enumeration):
    """Tries every choice of every job; the rest is that of jobs that do not change."""

    def best(self) -> float | None:
        """The least cost over all choices of all jobs."""
        self.listed = [
            sorted(choices(self.instance, j), key=lambda choice: choice.cost) for j in range(len(self.instance.jobs))
        ]
        if all(self.listed):
            self._go_on([])
        return None if math.isinf(self.cheapest) else self.cheapest

    def _go_on(self, chosen: list[Choice]) -> None:
        runs = [segment for choice in chosen for segment in choice.segments]
        if not (self._are_in_order(chosen) and self._fits(runs)):
            return
        spent = math.fsum(choice.cost for choice in chosen) + self._nodes(runs)
        if spent >= self.cheapest:
            return
        if len(chosen) == len(self.listed):
            self.cheapest = min(self.cheapest, spent + self._storage_cost(runs))
            return
        for choice in self.listed[len(chosen)]:
            if spent + choice.cost >= self.cheapest:
                return  # they are in order of cost
            self._go_on([*chosen, choice])

    def _nodes(self, runs: list[JobRun]) -> float:
        used: dict[tuple[int, int], set[int]] = defaultdict(set)
        for run in runs:
            for node, _ in run.places:
                used[run.way.pool, node].update(range(run.start, run.end))
        return math.fsum(self.node_cost(p, node, frozenset(slots)) for (p, node), slots in used.items())

    def _are_in_order(self, chosen: list[Choice]) -> bool:
        for choice in chosen:
            for name in self.instance.jobs[choice.job].after if choice.segments else ():
                if self.index[name] < len(chosen):
                    before = chosen[self.index[name]]
                    if not before.segments or before.end > choice.start:
                        return False
        return True


def choices(instance: Instance, j: int) -> Iterator[Choice]:
    """Everything that a job may do by itself."""
    job = instance.jobs[j]
    if job.reject_cost is not None:
        yield Choice(j, (), job.reject_cost)
    is_pinned = job.running is not None and not job.running.movable
    for run in _whole_runs(instance, j) if job.elastic is None or is_pinned else _runs_of_segments(instance, j):
        yield Choice(j, run, _cost(instance, run))


def _whole_runs(instance: Instance, j: int) -> Iterator[tuple[JobRun, ...]]:
    job = instance.jobs[j]
    for way in reading.ways(instance, job):
        for start in reading.starts(instance, job, way):
            for places in reading.placements(instance, way):
                yield (JobRun(j, way, start, places),)


def _runs_of_segments(instance: Instance, j: int) -> Iterator[tuple[JobRun, ...]]:
    job = instance.jobs[j]
    assert job.elastic is not None
    end = reading.num_slots(instance)
    if job.deadline is not None:
        end = min(end, math.floor(job.deadline / instance.slot + reading.EPSILON))
    ways = [
        (way, places) for way in reading.ways(instance, job) for places in reading.placements(instance, way)
    ]  # fmt: skip

    def go_on(before: tuple[JobRun, ...], work: float) -> Iterator[tuple[JobRun, ...]]:
        changes = len(before) + 1 - 1
        if job.running is not None and before and not before[0].way.is_kept:
            changes += 1
        for way, places in ways:
            moves = changes + (1 if job.running is not None and not before and not way.is_kept else 0)
            if job.elastic is not None and job.elastic.changes is not None and moves > job.elastic.changes:
                continue
            for start in _begins(instance, job, way, before, places, end):
                for slots in range(1, end - start + 1):
                    segment = JobRun(j, _stretch(instance, way, slots), start, places)
                    done = work + slots * instance.slot / seconds(instance, job, way)
                    if done >= WHOLE:
                        yield (*before, segment)
                        break
                    yield from go_on((*before, segment), done)

    yield from go_on((), 0.0)


def _begins(
    instance: Instance, job: Job, way: Way, before: tuple[JobRun, ...], places: tuple[Place, ...], end: int
) -> Iterator[int]:
    """Slots in which a segment may begin."""
    if way.is_kept:
        if not before:
            yield 0
        return
    first = before[-1].end if before else 0
    for start in range(first, end):
        goes_on = bool(before) and start == first and _is_same(before[-1], way, places)
        if start >= job.release / instance.slot - reading.EPSILON and not goes_on:
            yield start


def _is_same(before: JobRun, way: Way, places: tuple[Place, ...]) -> bool:
    """Whether a segment would only carry on the one before it."""
    one, other = before.way, way
    return (one.entry, one.pool, one.speed, one.is_kept, before.places) == (
        other.entry, other.pool, other.speed, other.is_kept, places,
    )  # fmt: skip


def seconds(instance: Instance, job: Job, way: Way) -> float:
    """How long the job would take in this way alone, in seconds and not rounded."""
    entry = next(entry for name, entry in reading.entries(instance, job) if name == way.entry)
    return entry.duration * (entry.slowdown if entry.gpus is None else 1.0) / way.speed


def _stretch(instance: Instance, way: Way, slots: int) -> Way:
    return replace(way, slots=slots, volume_gb=way.rate_mb_s * slots * instance.slot / 1000.0)


def _cost(instance: Instance, run: tuple[JobRun, ...]) -> float:
    job = instance.jobs[run[0].job]
    by_segment = [terms.cost_of_run(instance, segment) for segment in run]
    costs = [cost[name] for cost in by_segment for name in OF_SEGMENTS]
    costs += [by_segment[-1][name] for name in OF_COMPLETION]
    moved = job.running is not None and not run[0].way.is_kept
    return math.fsum([*costs, job.restart_cost * (len(run) - 1 + moved)])
