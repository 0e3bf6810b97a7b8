"""The instance as of now: complete jobs left out, running jobs where they are, nodes that are down, time shifted.

Times of an instance are seconds after its start. When the start moves to the moment of the state, every time moves
with it, so that each due date stays the instant that it was; those in the past become negative, and a job whose due
date has passed is late from the first slot on. The horizon keeps its length, except where a price is a list with one
entry for each slot: then the plan ends where the list does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from models.domain import Instance, Job, Pool, Running, Unavailable
from models.domain.entities import Utility
from models.domain.modes import entries_of, entry_name
from models.domain.prices import Price
from models.domain.rules import SECTIONS, check_rules
from models.domain.rules import Draft as InstanceDraft
from models.errors import Fault
from planner.io.instances import read_instance
from planner.nightly.state import Draft, RunningJob, read_draft

_TIMES_OF_A_UTILITY = ("full_until", "zero_at", "by", "midpoint")


@dataclass(frozen=True)
class Now:
    """What is to be planned."""

    instance: Instance
    """As of now: the plan begins at its start."""
    complete: frozenset[str]
    """Jobs that the state says are complete; the instance has them no more."""
    paused: frozenset[str] = frozenset()
    """Jobs that have run and do not run now."""

    @property
    def running(self) -> frozenset[str]:
        """Jobs that run now."""
        return frozenset(job.id for job in self.instance.jobs if job.running is not None)


def read_now(instance_path: Path, state_path: Path | None) -> Now:
    """The instance in its file, as things stand by the state file; raises InvalidInput with every fault."""
    instance = read_instance(instance_path)
    if state_path is None:
        return Now(instance, frozenset())
    draft = read_draft(state_path, instance)
    if any(fault.path == ("at",) for fault in draft.faults):
        draft.at = 0.0  # what cannot be the moment of the state must not make faults of its own
    update = _Update(instance, draft)
    draft.faults += update.faults()
    draft.refuse_faults()
    paused = frozenset(row.job for row in draft.paused.values())
    return Now(update.made(), frozenset(draft.complete.values()), paused)


class _Update:
    """An instance brought up to date by what could be read of a state."""

    def __init__(self, instance: Instance, draft: Draft) -> None:
        self.instance = instance
        self.draft = draft
        self.shift = draft.at
        # Of two entries for a job the first; that there are two is a fault already.
        self.running: dict[str, tuple[int, RunningJob]] = {}
        for k, row in draft.running.items():
            self.running.setdefault(row.job, (k, row))
        self.paused = {row.job: row.remaining for row in draft.paused.values()}
        complete = set(draft.complete.values())
        self.jobs = tuple(self._job(job, complete) for job in instance.jobs if job.id not in complete)
        self.pools = tuple(self._pool(pool) for pool in instance.pools)
        self.sites = tuple(
            site.model_copy(update={"energy_price": self._price(site.energy_price)}) for site in instance.sites
        )
        has_list = any(isinstance(pool.price, tuple) for pool in instance.pools)
        has_list |= any(isinstance(site.energy_price, tuple) for site in instance.sites)
        is_cut = has_list and not isinstance(instance.horizon, str)
        self.horizon: Any = float(instance.horizon) - self.shift if is_cut else instance.horizon

    def made(self) -> Instance:
        """The instance; its rules have been checked, or the state was without faults."""
        start = self.instance.start + timedelta(seconds=self.shift)
        return self.instance.altered(
            start=start, horizon=self.horizon, sites=self.sites, pools=self.pools, jobs=self.jobs
        )

    def faults(self) -> list[Fault]:
        """What the rules of an instance say of it, by the place in the state file that is to blame."""
        tables = {section: getattr(self.instance, section) for section in SECTIONS}
        tables |= {"jobs": self.jobs, "pools": self.pools, "sites": self.sites}
        draft = InstanceDraft.of(tables, self.instance.slot, self.horizon, self.made().start)
        # Running jobs in the order of the state: a GPU that is taken twice is a fault of the later entry.
        last = len(self.draft.running)
        order = {name: k for name, (k, _) in self.running.items()}
        draft.jobs = dict(sorted(draft.jobs.items(), key=lambda item: order.get(item[1].id, last)))
        return [self._placed(fault) for fault in check_rules(draft)]

    def _placed(self, fault: Fault) -> Fault:
        """The fault at the entry of the state file that it comes from."""
        section, index = (*fault.path, None, None)[:2]
        rest = fault.path[2:]
        place: tuple[str | int, ...] = ()
        if section == "jobs" and isinstance(index, int) and self.jobs[index].id in self.running:
            place = ("running", self.running[self.jobs[index].id][0])
            if rest[:1] == ("running",):
                return replace(fault, path=(*place, *rest[1:]))
        elif section == "pools" and isinstance(index, int):
            name, windows = self.pools[index].id, self.pools[index].unavailable
            rows = self._down(name)
            if rest[:1] == ("nodes_on",):
                places = [k for k, row in self.draft.nodes_on.items() if row.pool == name]
                return replace(fault, path=("nodes_on", places[0], "nodes"))
            if rest[:1] == ("unavailable",) and isinstance(rest[1], int):
                k = rest[1] - (len(windows) - len(rows))
                return replace(fault, path=("down", rows[k], *rest[2:]))
        return replace(fault, path=place, problem=f"does not go with {fault.location} of the instance: {fault.problem}")

    def _down(self, pool: str) -> list[int]:
        """The entries of `down` that become windows of a pool, in their order there: after those of the instance."""
        return [k for k, row in self.draft.down.items() if row.pool == pool and row.until > self.shift]

    def _job(self, job: Job, complete: set[str]) -> Job:
        fields: dict[str, Any] = {
            "release": self._time(job.release),
            "due": None if job.due is None else self._time(job.due),
            "deadline": None if job.deadline is None else self._time(job.deadline),
            "after": tuple(name for name in job.after if name not in complete),
            "value": tuple(step.model_copy(update={"by": self._time(step.by)}) for step in job.value),
            "utility": self._utility(job.utility),
        }
        if job.id in self.running:
            fields |= self._where(job, self.running[job.id][1], fields["release"])
        elif job.id in self.paused:
            fields |= {"running": None} | _shortened(job, self.paused[job.id])
        return job.model_copy(update=fields)

    def _where(self, job: Job, row: RunningJob, release: float) -> dict[str, Any]:
        """The fields of a job that runs: where, and what is left. That it runs proves that it was allowed to start."""
        running = Running(mode=row.mode, pool=row.pool, places=row.places, movable=row.movable)
        fields: dict[str, Any] = {"running": running, "release": min(0.0, release), "after": ()}
        return fields | _shortened(job, self._left(job, row))

    def _left(self, job: Job, row: RunningJob) -> float:
        """The part of a job's work that is left."""
        if row.remaining_time is None:
            return 1.0 if row.remaining is None else row.remaining
        for entry in entries_of(job, self.instance.throughputs):
            if entry_name(entry) == row.mode:
                return row.remaining_time / (entry.duration * (entry.slowdown if entry.share is not None else 1.0))
        return 1.0  # a mode that is not known, which the rules report

    def _utility(self, utility: Utility | None) -> Utility | None:
        if utility is None:
            return None
        times = [name for name in _TIMES_OF_A_UTILITY if name in type(utility).model_fields]
        return utility.model_copy(update={name: self._time(getattr(utility, name)) for name in times})

    def _pool(self, pool: Pool) -> Pool:
        windows = [
            window.model_copy(update={"since": self._time(window.since), "until": self._time(window.until)})
            for window in pool.unavailable
            if window.until > self.shift
        ]
        rows = [self.draft.down[k] for k in self._down(pool.id)]
        windows += [Unavailable(since=0.0, until=self._time(row.until), nodes=row.nodes) for row in rows]
        nodes_on = [row.nodes for row in self.draft.nodes_on.values() if row.pool == pool.id]
        fields: dict[str, Any] = {"unavailable": tuple(windows), "price": self._price(pool.price)}
        return pool.model_copy(update=fields | ({"nodes_on": nodes_on[0]} if nodes_on else {}))

    def _price(self, price: Price) -> Price:
        """The price from now on: of a list, without the slots that have passed."""
        return price[round(self.shift / self.instance.slot) :] if isinstance(price, tuple) else price

    def _time(self, seconds: float) -> float:
        # Kept to the microsecond, as times are that are read.
        return round(seconds - self.shift, 6) + 0.0


def _shortened(job: Job, part: float) -> dict[str, Any]:
    """The fields of a job of which only a part of the work is left."""
    if job.modes:
        return {"modes": tuple(mode.model_copy(update={"duration": mode.duration * part}) for mode in job.modes)}
    return {} if job.samples is None else {"samples": job.samples * part}
