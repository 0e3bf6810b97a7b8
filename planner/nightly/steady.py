"""A plan that keeps what need not change: last night's times and places, unless leaving them saves enough.

With a price m on each job that is planned otherwise than it would be if the last plan went on, what is to be least is

    cost of the plan + m * number of jobs planned otherwise.

From the new plan, one changed job after the other goes back to where it was, together with those that are in its way
there or that it must not overtake, as long as that lowers the sum; jobs that are new make room and take the cheapest
place that is left. In the end the last plan itself, carried over, is taken where it comes to less. A price of nothing
undoes the changes that save nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from models.check.report import OPTIMAL_GAP
from models.domain import Instance, Plan, relative_gap
from models.starts import all_starts
from planner.engines.assemble import cost_of, plan_of
from planner.engines.replay import schedule_of
from planner.engines.schedule import Step
from planner.horizon import num_slots_of
from planner.nightly.carried import Carried, fits
from planner.solve import must_pass

ROUNDS = 3
"""Times that all changed jobs are gone through."""
MOST_TRIES = 500
"""Groups of jobs that are tried in all; each costs a recount of the plan."""
_NOTHING = 1e-9
"""Part of the cost that counts as nothing."""


@dataclass(frozen=True)
class Steadied:
    """A plan after changes that were not worth it have been undone."""

    plan: Plan
    changed: int
    """Jobs planned otherwise than the last plan would have gone on."""
    undone: int
    """Jobs that were planned otherwise before, and are not any more."""
    cost: float
    """What that costs more than before."""


def steadied(plan: Plan, last: Carried, instance: Instance, price: float) -> Steadied:
    """The plan, mended so that few jobs change; as it is where nothing speaks for mending it. `price` is money for each
    job that is planned otherwise."""
    mender = _Mender(plan, last, instance, price)
    before = len(mender.changed())
    mender.mend()
    changed, made = len(mender.changed()), mender.schedule
    if changed and last.plan.cost <= mender.cost + price * changed + mender.nothing:
        changed, made = 0, mender.kept
    elif not mender.accepted:
        return Steadied(plan, changed, 0, 0.0)
    gap = relative_gap(cost_of(made).cost, plan.dual_bound)
    is_proven = plan.status == "optimal" and gap is not None and gap <= OPTIMAL_GAP
    mended = plan_of(
        made,
        status="interrupted" if plan.status == "interrupted" else "optimal" if is_proven else "feasible",
        engine=plan.engine,
        seed=plan.seed,
        versions=plan.versions,
        dual_bound=plan.dual_bound,
        packing_cost=plan.packing_cost,
    )
    must_pass(instance, mended)
    return Steadied(mended, changed, before - changed, mended.cost - plan.cost)


class _Mender:
    def __init__(self, plan: Plan, last: Carried, instance: Instance, price: float) -> None:
        self.instance, self.price = instance, price
        starts = all_starts(instance, num_slots_of(instance))
        schedule, kept = schedule_of(plan, starts), schedule_of(last.plan, starts)
        # Both have been made over these starts.
        assert schedule is not None
        assert kept is not None
        self.schedule, self.kept = schedule, kept
        placed = {instance.job_index[name] for name in last.placed}
        self.old = {j: kept.chosen.get(j) for j in range(len(instance.jobs)) if j not in placed}
        """What each job would do if the last plan went on; None: it is rejected."""
        self.cost = cost_of(schedule).cost
        self.nothing = _NOTHING * abs(self.cost)
        self.accepted = self.tries = 0
        self._after: dict[int, list[int]] = {j: [] for j in range(len(instance.jobs))}
        for j, job in enumerate(instance.jobs):
            for name in job.after:
                self._after[instance.job_index[name]].append(j)

    def changed(self) -> list[int]:
        """Jobs that do something else than they would."""
        return [j for j, step in self.old.items() if not _are_same(step, self.schedule.chosen.get(j))]

    def mend(self) -> None:
        """Put back what is not worth its change."""
        for _ in range(ROUNDS):
            before = self.accepted
            for j in self.changed():
                if self.tries >= MOST_TRIES:
                    return
                if not _are_same(self.old[j], self.schedule.chosen.get(j)):
                    self._try(j)
            if self.accepted == before:
                return

    def _try(self, j: int) -> None:
        """Put a job back, with those that have to come along, if that lowers the sum."""
        self.tries += 1
        was = dict(self.schedule.chosen)
        back = self._put_back(j)
        if back is None:
            self._restore(was)
            return
        cost = cost_of(self.schedule).cost
        if cost - self.cost <= self.price * back + self.nothing:
            self.cost, self.accepted = cost, self.accepted + 1
        else:
            self._restore(was)

    def _put_back(self, first: int) -> int | None:
        """Put a job where it was, and whoever is in its way; how many went back, or None where that is not possible."""
        group, new = {first}, set[int]()
        while True:
            for j in [*group, *new]:
                if j in self.schedule.chosen:
                    self.schedule.drop(j)
            blocked = self._settle(group)
            if blocked is None:
                break
            more = {j for j in blocked if j not in group and j not in new}
            fresh = {j for j in more if j not in self.old}
            if not more or any(_are_same(self.old[j], self.schedule.chosen.get(j)) for j in more - fresh):
                return None
            group |= more - fresh
            new |= fresh
        for j in sorted(new, key=lambda j: (len(self.instance.jobs[j].after), j)):
            ready = self.schedule.ready(j)
            step = None if ready is None else self.schedule.cheapest(j, ready)
            if step is not None:
                self.schedule.put(j, step)
            elif self.instance.jobs[j].reject_cost is None:
                return None
        return len(group) if self._is_in_order(group | new) else None

    def _settle(self, group: set[int]) -> set[int] | None:
        """Put all of a group back; or, where one finds no room, those that are in its way."""
        for j in sorted(group):
            step = self.old[j]
            if step is None:
                continue
            if not fits(self.schedule, step):
                return self._in_the_way(step)
            self.schedule.put(j, step)
        late = {i for j in group for i in self._out_of_order(j)}
        return late - group or None

    def _in_the_way(self, step: Step) -> set[int]:
        """Jobs that are on its nodes meanwhile."""
        found = set()
        for j, other in self.schedule.chosen.items():
            if any(self._meet(mine, theirs) for mine in step.segments for theirs in other.segments):
                found.add(j)
        return found

    def _meet(self, a: Step, b: Step) -> bool:
        rows, schedule = self.schedule.starts.rows, self.schedule
        if rows[a.row].pool != rows[b.row].pool:
            return False
        timeline = schedule.pools[rows[a.row].pool]
        nodes = [set(timeline.nodes_of(rows[step.row].mode, step.spot)) for step in (a, b)]
        return bool(nodes[0] & nodes[1]) and a.slot < schedule.end(b) and b.slot < schedule.end(a)

    def _out_of_order(self, j: int) -> set[int]:
        """Predecessors that complete too late for a job, and successors that begin before it completes."""
        chosen, schedule = self.schedule.chosen, self.schedule
        if j not in chosen:
            return {i for i in self._after[j] if i in chosen}
        before = [self.instance.job_index[name] for name in self.instance.jobs[j].after]
        late = {i for i in before if i not in chosen or schedule.completion(i) > chosen[j].begin}
        early = {i for i in self._after[j] if i in chosen and chosen[i].begin < schedule.completion(j)}
        return late | early

    def _is_in_order(self, jobs: set[int]) -> bool:
        return not any(self._out_of_order(j) for j in jobs)

    def _restore(self, was: dict[int, Step]) -> None:
        for j in [j for j, step in self.schedule.chosen.items() if was.get(j) is not step]:
            self.schedule.drop(j)
        for j, step in was.items():
            if j not in self.schedule.chosen:
                self.schedule.put(j, step)


def _are_same(a: Step | None, b: Step | None) -> bool:
    """Whether two runs are the same: rows, times and nodes."""
    if a is None or b is None:
        return a is b
    return [(s.row, s.slot, s.spot, s.length) for s in a.segments] == [
        (s.row, s.slot, s.spot, s.length) for s in b.segments
    ]
