"""A world that goes from event to event and asks a policy what to do.

What happens at one moment happens in this order: completions, planned stops, failures and interruptions, repairs,
changes of prices, arrivals, planned starts; then the policy is asked where anything has happened that it did not plan.
Nothing that is drawn (durations, failures, interruptions, prices) depends on what a policy does, so all policies meet
the same world.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, cast

from models.domain import Instance
from models.domain.modes import Mode, modes_of
from models.errors import Defect, NoPlan
from models.grid import closed_nodes, is_cloud
from planner.simulation.chance import Chance, Options
from planner.simulation.events import EDGE_S, Events, Kind
from planner.simulation.jobs import Job
from planner.simulation.market import Market
from planner.simulation.nodes import Node, Nodes
from planner.simulation.state import Allocation, Assignment, Decision, JobState, Policy, State
from planner.simulation.store import Store
from planner.simulation.trace import Cause, Ended, Happening, Outage, Stretch

LEAST_REMAINING = 0.01
"""What is taken to be left of a job that has outlived its estimate."""
MOST_IDLE = 10_000
"""Moments in a row in which nothing runs after which the world gives up."""


@dataclass
class World:
    """The world of one simulation; `run` lets it go to its end."""

    instance: Instance
    policy: Policy
    options: Options
    on_call: Callable[[float, int, int], None] = lambda *_: None
    """Told the time, jobs complete and jobs in all after each call of the policy."""
    now_s: float = 0.0
    replan_s: list[float] = field(default_factory=list)
    stretches: list[Stretch] = field(default_factory=list)
    modes: list[Mode] = field(default_factory=list)
    """Of each stretch."""
    outages: list[Outage] = field(default_factory=list)
    happenings: list[Happening] = field(default_factory=list)
    rejected: list[int] = field(default_factory=list)
    restarts: int = 0

    def __post_init__(self) -> None:
        """Everything before the first event."""
        instance, options = self.instance, self.options
        self.chance, self.store, self.market = Chance(instance, options), Store(instance), Market(instance)
        self.nodes = Nodes(instance, self.market)
        self.jobs = [self._job(j) for j in range(len(instance.jobs))]
        self.known: list[int] = []
        self.complete: set[int] = set()
        self._modes = [frozenset(modes_of(instance, job)) for job in instance.jobs]
        self._before = [[instance.job_index[name] for name in job.after] for job in instance.jobs]
        self.events = Events()
        self._decision = self._idle = 0
        self._cause: Cause = "wake"
        self._paid_s: dict[Node, float] = {}
        """When it is looked at next whether an idle node is to go off."""
        self._failed_s: dict[Node, float] = {}
        for j, job in enumerate(instance.jobs):
            self.events.push(max(0.0, job.release), Kind.ARRIVAL, j)
        for node, is_spot in self.chance.hazards():
            self.events.push(self.chance.wait_s(node), Kind.INTERRUPTION if is_spot else Kind.FAILURE, node)
        for at_s, p, factor in options.prices:
            self.events.push(at_s, Kind.PRICE, (p, factor, False))
        for p in self.chance.swings():
            self._await_price(p)
        for p, pool in enumerate(instance.pools):
            for window in pool.unavailable:
                closed = [(p, node) for node in closed_nodes(pool, window)]
                self.events.push(max(0.0, window.since), Kind.CLOSING, closed)
                self.events.push(window.until, Kind.OPENING, closed)
        opening = [window.until for pool in instance.pools for window in pool.unavailable]
        self._certain_s = max((0.0, *(job.release for job in instance.jobs), *opening))
        """When everything has happened that will whatever a policy does: jobs may wait for it."""
        self._closed: dict[Node, int] = {}
        if options.period_s is not None:
            self.events.push(options.period_s, Kind.PERIOD, None)
        if options.asks_at_start:
            self.events.push(0.0, Kind.WAKE, self._decision)

    def _job(self, j: int) -> Job:
        running = self.instance.jobs[j].running
        return Job(j, self.chance.factor(j), self.options.moves and (running is None or running.movable))

    # --- the course of events ------------------------------------------------------------------------------

    def run(self) -> None:
        """Until every job is complete, or rejected because nothing will run it.

        Raises NoPlan where the policy leaves jobs waiting for ever, Defect where it decides what cannot be.
        """
        handlers: dict[Kind, Callable[[Any], bool]] = {
            Kind.COMPLETION: self._on_completion,
            Kind.STOP: self._on_stop,
            Kind.FAILURE: self._on_failure,
            Kind.CLOSING: self._on_closing,
            Kind.INTERRUPTION: self._on_interruption,
            Kind.REPAIR: self._on_repair,
            Kind.OPENING: self._on_opening,
            Kind.PRICE: self._on_price,
            Kind.ARRIVAL: self._on_arrival,
            Kind.START: self._on_start,
            Kind.WAKE: lambda decision: bool(decision == self._decision),
            Kind.PERIOD: self._on_period,
            Kind.PAID: lambda _: False,
        }
        while len(self.complete) + len(self.rejected) < len(self.jobs):
            if not self.events:
                self._give_up()
                break
            self.now_s = max(self.now_s, self.events.next_s)
            is_asked = False
            for kind, what in self.events.due(self.now_s):
                asks = handlers[kind](what)
                # The first of a moment is given as the cause of what is decided then.
                self._cause = cast("Cause", kind.name.lower()) if asks and not is_asked else self._cause
                is_asked |= asks
            if is_asked and len(self.complete) < len(self.jobs):
                self._ask()
            self._rest()
            is_idle = self.now_s > self._certain_s and all(self.jobs[j].there is None for j in self.known)
            self._idle = self._idle + 1 if is_idle else 0
            if self._idle > MOST_IDLE:
                self._give_up()
                break
        self.now_s = max(self.now_s, max((job.complete_s or 0.0 for job in self.jobs), default=0.0))
        self.store.close(self.now_s)
        for node in sorted(self.nodes.on_since_s):
            self.nodes.switch_off(node, self.now_s)
        for node, since in sorted(self._failed_s.items()):
            self.outages.append(Outage(pool=self._pool(node), node=node[1], since_s=since, until_s=None))

    def _rest(self) -> None:
        """Caches are as those that run need them; nodes that nothing needs go off, at once or when what is paid is
        over."""
        self.store.settle(self.now_s, self._running())
        self.nodes.switch_off_idle(self.now_s)
        for node in sorted(self.nodes.idle - self.nodes.held):
            paid = self.nodes.paid_until_s(node, self.now_s)
            if self._paid_s.get(node) != paid:
                self._paid_s[node] = paid
                self.events.push(paid, Kind.PAID, node)

    def _give_up(self) -> None:
        """What waits is rejected where that is allowed."""
        left = [job.index for job in self.jobs if job.complete_s is None and job.index not in self.rejected]
        stuck = [self.instance.jobs[j].id for j in left if self.instance.jobs[j].reject_cost is None]
        if stuck:
            names = ", ".join(stuck[:5]) + (" and others" if len(stuck) > 5 else "")
            raise NoPlan(f"policy {self.policy.name} leaves job(s) {names} waiting for ever")
        for j in left:
            if self.jobs[j].there is not None:
                self._end(self.jobs[j], "rejection")
        self.rejected += left

    def _pool(self, node: Node) -> str:
        return self.instance.pools[node[0]].id

    def _note(self, kind: Any, *, job: int | None = None, node: Node | None = None) -> None:
        self.happenings.append(
            Happening(
                at_s=self.now_s,
                kind=kind,
                job=None if job is None else self.instance.jobs[job].id,
                pool=None if node is None else self._pool(node),
                node=None if node is None else node[1],
            )
        )

    def _on_arrival(self, j: int) -> bool:
        self.known.append(j)
        self.known.sort(key=lambda k: (self.instance.jobs[k].release, k))
        self._note("arrival", job=j)
        running = self.instance.jobs[j].running
        if running is not None:
            pool = self.instance.pool_index[running.pool]
            mode = next(m for m in self._modes[j] if (m.name, m.pool, m.speed) == (running.mode, pool, 1.0))
            self.jobs[j].has_run = True
            self._begin(self.jobs[j], Allocation(mode, running.places), is_restart=False)
            shortage = self.store.shortage(self._running())
            if shortage is not None:
                raise NoPlan(f"jobs that run at the start cannot all read: {shortage}")
        return True

    def _on_completion(self, what: tuple[int, int]) -> bool:
        job = self.jobs[what[0]]
        if job.version != what[1] or job.there is None:
            return False
        self._end(job, "completion")
        job.complete_s = self.now_s
        self.complete.add(job.index)
        self.known.remove(job.index)
        self._note("completion", job=job.index)
        return True

    def _on_stop(self, what: tuple[int, int, int]) -> bool:
        decision, j, version = what
        job = self.jobs[j]
        if decision == self._decision and job.version == version and job.there is not None:
            self._end(job, "plan")
        return False

    def _on_start(self, what: tuple[int, Assignment]) -> bool:
        decision, assignment = what
        job = self.jobs[assignment.job]
        if decision != self._decision or job.complete_s is not None or job.there is not None:
            return decision == self._decision and job.there is not None
        if self._problem(job, assignment.allocation) is not None:
            return True  # someone else is late
        self._begin(job, assignment.allocation, is_restart=job.has_run)
        self._plan_end(assignment)
        return False

    def _on_failure(self, node: Node) -> bool:
        self.events.push(self.now_s + 3600.0 * self.options.repair_h, Kind.REPAIR, node)
        self._failed_s[node] = self.now_s
        self._note("failure", node=node)
        self._lose(node, "failure")
        self._close(node)
        return True

    def _on_repair(self, node: Node) -> bool:
        since = self._failed_s.pop(node)
        self.outages.append(Outage(pool=self._pool(node), node=node[1], since_s=since, until_s=self.now_s))
        self._note("repair", node=node)
        self.events.push(self.now_s + self.chance.wait_s(node), Kind.FAILURE, node)
        self._open(node)
        return True

    def _on_interruption(self, node: Node) -> bool:
        self.events.push(self.now_s + self.chance.wait_s(node), Kind.INTERRUPTION, node)
        if node not in self.nodes.on_since_s:
            return False
        self._note("interruption", node=node)
        self._lose(node, "interruption")
        return True

    def _on_closing(self, nodes: list[Node]) -> bool:
        for node in nodes:
            self._lose(node, "closing")
            self._close(node)
        return True

    def _on_opening(self, nodes: list[Node]) -> bool:
        for node in nodes:
            self._open(node)
        return True

    def _on_price(self, what: tuple[int, float, bool]) -> bool:
        p, factor, is_drawn = what
        self.market.change(p, factor, self.now_s)
        if is_drawn:
            self._await_price(p)
        return self.options.may_burst or not is_cloud(self.instance, p)

    def _await_price(self, p: int) -> None:
        wait_s, factor = self.chance.next_price(p)
        self.events.push(self.now_s + wait_s, Kind.PRICE, (p, factor, True))

    def _on_period(self, _: None) -> bool:
        assert self.options.period_s is not None
        self.events.push(self.now_s + self.options.period_s, Kind.PERIOD, None)
        return True

    def _close(self, node: Node) -> None:
        """A node cannot be used; windows and failures may overlap."""
        self._closed[node] = self._closed.get(node, 0) + 1
        self.nodes.down.add(node)

    def _open(self, node: Node) -> None:
        self._closed[node] -= 1
        if not self._closed[node]:
            self.nodes.down.discard(node)

    def _lose(self, node: Node, cause: Cause) -> None:
        """A node goes off, and what runs on it stops; what is done is kept."""
        for j in list(self.known):
            there = self.jobs[j].there
            if there is not None and node in self.nodes.nodes_of(there):
                self._end(self.jobs[j], "loss", cause)
        if node in self.nodes.on_since_s:
            self.nodes.switch_off(node, self.now_s)

    # --- the policy ----------------------------------------------------------------------------------------

    def state(self) -> State:
        """What the policy sees."""
        return State(
            now_s=self.now_s,
            instance=self.market.known,
            jobs=tuple(self._seen(self.jobs[j]) for j in self.known),
            complete=frozenset(self.complete),
            down=frozenset(self.nodes.down),
            on_since_s=dict(self.nodes.on_since_s),
            restart_s=self.options.restart_s,
            may_burst=self.options.may_burst,
        )

    def _seen(self, job: Job) -> JobState:
        done = job.done + (0.0 if job.there is None else job.work(self.now_s))
        remaining = max(LEAST_REMAINING, 1.0 - done * job.factor)
        return JobState(job.index, remaining, job.there, job.has_run, job.movable)

    def _ask(self) -> None:
        begun = time.perf_counter()
        decision = self.policy.decide(self.state())
        self.replan_s.append(time.perf_counter() - begun)
        self._decision += 1
        self._follow(decision)
        self.on_call(self.now_s, len(self.complete), len(self.jobs))

    def _follow(self, decision: Decision) -> None:
        """Let running jobs go on or stop, and begin and plan the others."""
        now = [a for a in decision.assignments if a.start_s <= self.now_s + EDGE_S]
        active = {a.job: a for a in now}
        if len(active) < len(now):
            raise self._wrong("gives a job two things to do at once")
        for j in list(self.known):
            job, planned = self.jobs[j], active.get(j)
            if job.there is None:
                continue
            if planned is None or planned.allocation != job.there:
                if not job.movable and j not in decision.reject:
                    raise self._wrong(f"stops job {self.instance.jobs[j].id}, which may not be moved")
                if j in decision.reject:
                    self._end(job, "rejection")
                else:
                    self._end(job, "replan", self._cause)
            else:
                self._plan_end(planned)
        self.nodes.hold(decision.hold, self.now_s)
        self.store.aim(decision.cached)
        for j in decision.reject:
            if j not in self.known or j in active or self.instance.jobs[j].reject_cost is None:
                raise self._wrong(f"rejects a job that is to run, must run or is unknown: {j}")
            self.known.remove(j)
            self.rejected.append(j)
        for planned in now:
            job = self.jobs[planned.job]
            if planned.job not in self.known:
                raise self._wrong(f"starts a job that is complete or unknown: {planned.job}")
            if job.there is None:
                problem = self._problem(job, planned.allocation)
                if problem is not None:
                    raise self._wrong(f"starts job {self.instance.jobs[planned.job].id}, but {problem}")
                self._begin(job, planned.allocation, is_restart=job.has_run)
                self._plan_end(planned)
        shortage = self.store.shortage(self._running())
        if shortage is not None:
            raise self._wrong(f"goes on with jobs that cannot all read: {shortage}")
        for later in decision.assignments:
            if later.start_s > self.now_s + EDGE_S:
                self.events.push(later.start_s, Kind.START, (self._decision, later))
        if decision.wake_s is not None:
            self.events.push(max(decision.wake_s, self.now_s + EDGE_S * 10), Kind.WAKE, self._decision)

    def _wrong(self, what: str) -> Defect:
        return Defect(f"policy {self.policy.name} {what}, {self.now_s:g} s after the start")

    def _problem(self, job: Job, there: Allocation) -> str | None:
        """Why a job cannot begin there now; None where it can."""
        record, pool = self.instance.jobs[job.index], self.instance.pools[there.mode.pool]
        if there.mode not in self._modes[job.index]:
            return f"it has no mode {there.mode.name} in pool {pool.id}"
        if any(i not in self.complete for i in self._before[job.index]):
            return f"not all of {', '.join(record.after)} are complete"
        if is_cloud(self.instance, there.mode.pool) and not self.options.may_burst:
            return f"pool {pool.id} may not be used"
        return self.nodes.misfit(there) or self.store.shortage(itertools.chain(self._running(), [there.mode]))

    def _running(self) -> Iterator[Mode]:
        """Modes of the jobs that run, one after another: where reading is free nobody goes through them."""
        places = (self.jobs[j].there for j in self.known)
        return (there.mode for there in places if there is not None)

    def _plan_end(self, assignment: Assignment) -> None:
        if assignment.end_s is not None:
            what = (self._decision, assignment.job, self.jobs[assignment.job].version)
            self.events.push(max(assignment.end_s, self.now_s), Kind.STOP, what)

    # --- stretches -----------------------------------------------------------------------------------------

    def _begin(self, job: Job, there: Allocation, *, is_restart: bool) -> None:
        ready_s = self.nodes.take(there, self.now_s)
        self.restarts += is_restart
        end_s = job.begin(there, self.now_s, ready_s, self.options.restart_s if is_restart else None)
        self.events.push(end_s, Kind.COMPLETION, (job.index, job.version))

    def _end(self, job: Job, ended: Ended, cause: Cause | None = None) -> None:
        there = job.there
        assert there is not None
        self.stretches.append(job.end(self.instance, self.now_s, ended, cause))
        self.modes.append(there.mode)
        self.nodes.leave(there)
