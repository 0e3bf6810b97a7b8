"""Why a job is planned otherwise than before, as far as facts say it.

Each reason is something that can be looked up in the two plans and their instances: that the job itself was changed,
that its pool was, that a predecessor moved, that its place is down or another's now. Which of several was decisive no
comparison can tell, and none is claimed; where there is no such fact, that is said.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime, timedelta
from typing import Any

from models.domain import Instance, Job, Pool
from planner.nightly.courses import SAME_S, Course, JobChange, Side

MOST_NAMES = 3
NO_CAUSE = "nothing of its own has changed: the rest of the plan has, or another place costs no more"

_TIMES = {"due": "due date", "deadline": "deadline"}
_PLAIN = {
    "weight": "weight",
    "dataset": "dataset",
    "speed_levels": "speed levels",
    "memory": "memory",
    "cpu_cores": "CPU cores",
    "ram": "RAM",
    "reject_cost": "cost of rejecting it",
    "restart_cost": "restart cost",
    "spot": "leave to run on spot nodes",
    "elastic": "leave to change while it runs",
}
_WORK = {"modes": "modes", "model": "model", "samples": "samples", "sample_size": "sample size"}


class Causes:
    """The reasons for the changes from one plan to the next."""

    def __init__(
        self,
        before: Side,
        after: Side,
        changed: frozenset[str],
        running: frozenset[str],
        paused: frozenset[str] = frozenset(),
    ) -> None:
        self.before, self.after = before, after
        self.running, self.paused = running, paused
        self.now = datetime.fromisoformat(after.plan.start)
        self._changed = changed
        self._pools: dict[str, list[str]] = {}
        self._taken: dict[tuple[str, int], list[tuple[datetime, datetime, frozenset[int], str]]] = defaultdict(list)
        for name, course in after.courses.items():
            for stretch in course.stretches:
                for node, gpus in stretch.places:
                    self._taken[stretch.pool, node].append((stretch.start, stretch.end, frozenset(gpus), name))

    def of(self, change: JobChange) -> tuple[str, ...]:
        """The reasons for the change of one job."""
        if change.after is None:
            gone = "the state says that it is complete" if "completed" in change.changes else None
            return (gone or "the instance has it no more",)
        new = self._job(self.after.instance, change.job)
        if change.before is None:
            return ("the instance did not have it before",)
        reasons = self._standing(change)
        old = self._job(self.before.instance, change.job)
        if old is not None and new is not None:
            reasons += self._own(old, new)
        used = [stretch.pool for course in (change.before, change.after) for stretch in course.stretches]
        for pool in dict.fromkeys(used):
            reasons += self._of_pool(pool)
        reasons += self._predecessors(new)
        reasons += self._place(change.job, change.before)
        return tuple(dict.fromkeys(reasons)) or (NO_CAUSE,)

    def _job(self, instance: Instance | None, name: str) -> Job | None:
        index = None if instance is None else instance.job_index.get(name)
        return None if instance is None or index is None else instance.jobs[index]

    def _standing(self, change: JobChange) -> list[str]:
        """How things stand against what the last plan expected by now."""
        assert change.before is not None
        start, completion = change.before.start, change.before.completion
        if start is None or completion is None:
            return []
        is_running = change.job in self.running
        if is_running and start > self.now:
            return [f"it runs already, and was to start at {self._clock(start)}"]
        if is_running and completion <= self.now:
            return [f"it still runs, and was to be complete at {self._clock(completion)}"]
        was_to_run = [stretch for stretch in change.before.stretches if stretch.start <= self.now < stretch.end]
        if change.job in self.paused and was_to_run:
            return [f"it is paused, and was to run from {self._clock(was_to_run[0].start)}"]
        has_begun = was_to_run or completion <= self.now
        if not is_running and has_begun and start < self.now - timedelta(seconds=SAME_S):
            return [f"it does not run, and was to start at {self._clock(start)}"]
        is_throttled = any(stretch.speed != 1 for stretch in was_to_run)
        return ["it runs, and what runs is taken to run at full speed"] if is_running and is_throttled else []

    def _own(self, old: Job, new: Job) -> list[str]:
        """What of the job itself is not as it was. Of one that has begun the work is what is left, so it changes."""
        assert self.before.instance is not None
        assert self.after.instance is not None
        reasons = []
        for name, words in _TIMES.items():
            was = self._instant(self.before.instance, getattr(old, name))
            now = self._instant(self.after.instance, getattr(new, name))
            if _differ(was, now):
                reasons.append(f"its {words} is {self._clock(now)}, was {self._clock(was)}")
        for name, words in _PLAIN.items():
            was, now = getattr(old, name, None), getattr(new, name, None)
            if was != now:
                reasons.append(f"its {words} is {_text(now)}, was {_text(was)}")
        if self._worth(self.before.instance, old) != self._worth(self.after.instance, new):
            reasons.append("what it is worth has changed")
        if old.running is None and new.running is None and new.id not in self.paused:
            work = [words for name, words in _WORK.items() if getattr(old, name) != getattr(new, name)]
            reasons += [f"its {words} changed" for words in work]
            # A release that has passed says nothing any more.
            was = max(self.now, self._instant(self.before.instance, old.release) or self.now)
            now = max(self.now, self._instant(self.after.instance, new.release) or self.now)
            if _differ(was, now):
                reasons.append(f"its release is {self._clock(now)}, was {self._clock(was)}")
        added = [name for name in new.after if name not in old.after]
        if added:
            reasons.append(f"it has to wait for {_some(added)}")
        return reasons

    def _worth(self, instance: Instance, job: Job) -> Any:
        """What a job is worth, with times by the clock."""
        steps = [(self._instant(instance, step.by), step.value) for step in job.value]
        if job.utility is None:
            return steps
        fields: dict[str, Any] = job.utility.model_dump()
        for name in ("full_until", "zero_at", "by", "midpoint"):
            if name in fields:
                fields[name] = self._instant(instance, fields[name])
        return fields

    def _of_pool(self, name: str) -> list[str]:
        if name not in self._pools:
            self._pools[name] = self._pool_reasons(name)
        return self._pools[name]

    def _pool_reasons(self, name: str) -> list[str]:
        """What of a pool is not as it was."""
        sides = [side.instance for side in (self.before, self.after)]
        if sides[0] is None or sides[1] is None:
            return []
        if name not in sides[1].pool_index:
            return [f"pool {name} is there no more"]
        if name not in sides[0].pool_index:
            return [f"pool {name} is new"]
        old, new = (instance.pools[instance.pool_index[name]] for instance in sides if instance is not None)
        reasons = []
        if old.nodes != new.nodes:
            reasons.append(f"pool {name} has {new.nodes} nodes, had {old.nodes}")
        if self._prices_differ(old, new):
            reasons.append(f"pool {name} has another price")
        return reasons

    def _prices_differ(self, old: Pool, new: Pool) -> bool:
        """Whether the price of a pool changed; of lists, in the slots that both plans have."""
        if not isinstance(old.price, tuple) or not isinstance(new.price, tuple):
            return bool(old.price != new.price)
        slot = self.after.plan.slot_s
        slots = (self.now - datetime.fromisoformat(self.before.plan.start)).total_seconds() / slot
        if slot != self.before.plan.slot_s or slots < 0 or slots != round(slots):
            return False  # they cannot be laid one beside the other
        return any(was != now for was, now in zip(old.price[round(slots) :], new.price, strict=False))

    def _predecessors(self, job: Job | None) -> list[str]:
        reasons = []
        for name in () if job is None else job.after:
            was, now = (side.courses.get(name) for side in (self.before, self.after))
            if was is None or now is None or was.completion is None or now.completion is None:
                continue
            if _differ(was.completion, now.completion):
                times = f"{self._clock(now.completion)}, not {self._clock(was.completion)}"
                reasons.append(f"its predecessor {name} completes at {times}")
        return reasons[:MOST_NAMES]

    def _place(self, name: str, before: Course) -> list[str]:
        """What has become of the place that it had: down, or used by jobs that were not there before."""
        down: dict[tuple[str, int], None] = {}
        others: dict[str, None] = {}
        for stretch in before.stretches:
            since = max(stretch.start, self.now)
            for node, gpus in stretch.places:
                if self._is_down(stretch.pool, node, since, stretch.end):
                    down[stretch.pool, node] = None
                for start, end, taken, other in self._taken[stretch.pool, node]:
                    overlaps = start < stretch.end and since < end and not taken.isdisjoint(gpus)
                    if overlaps and other != name and other in self._changed:
                        others[other] = None
        reasons = [f"node {node} of pool {pool} is down" for pool, node in list(down)[:MOST_NAMES]]
        if others:
            reasons.append(f"the GPUs that it had are used by {_some(list(others))}")
        return reasons

    def _is_down(self, pool: str, node: int, since: datetime, until: datetime) -> bool:
        instance = self.after.instance
        if instance is None or pool not in instance.pool_index:
            return False
        record = instance.pools[instance.pool_index[pool]]
        for window in record.unavailable:
            if isinstance(window.nodes, tuple):
                is_meant = node in window.nodes
            else:
                is_meant = window.nodes is None or node >= record.nodes - window.nodes
            begin, end = (instance.start + timedelta(seconds=time) for time in (window.since, window.until))
            if is_meant and begin < until and since < end:
                return True
        return False

    def _instant(self, instance: Instance | None, seconds: float | None) -> datetime | None:
        return None if instance is None or seconds is None else instance.start + timedelta(seconds=seconds)

    def _clock(self, moment: datetime | None) -> str:
        """A moment in the zone of the new plan."""
        if moment is None:
            return "none"
        moment = moment.astimezone(self.now.tzinfo)
        return moment.strftime("%Y-%m-%d %H:%M:%S" if moment.second else "%Y-%m-%d %H:%M")


def _differ(was: datetime | None, now: datetime | None) -> bool:
    if was is None or now is None:
        return was is not now
    return abs((now - was).total_seconds()) > SAME_S


def _text(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "given" if value else "not given"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, tuple):
        return _some(list(value))
    return str(value) if isinstance(value, str | int) else "another"


def _some(names: list[Any]) -> str:
    shown = ", ".join(_text(name) for name in names[:MOST_NAMES])
    return shown + (f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else "")
