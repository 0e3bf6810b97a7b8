"""This planner as a policy: at each call what is left is planned anew, by the fast engine or the exact one.

The plan is checked as every plan is. Where no plan is found within the limits, or none exists, the pressure greedy
decides; `fallbacks` counts that. Deadlines that clash are given up before: a late job is better than none.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from models.domain import Instance, Plan
from models.domain.modes import Mode, modes_of
from models.errors import Infeasible, NoPlan
from planner.simulation.events import EDGE_S
from planner.simulation.policies.alone import Courses
from planner.simulation.policies.menu import ModeTable
from planner.simulation.policies.pressure import Pressure
from planner.simulation.policies.remaining import Remaining, remaining_of
from planner.simulation.reading import Reading
from planner.simulation.state import Decision, State

WORK = 200
"""Moves of the search at each call, where neither they nor seconds are limited."""
EXACT_S = 20.0
"""Seconds for the exact engine at each call where neither they nor moves are given: its solver does not count moves."""
SLOTS = 128
"""Slots that the time until the last due date is cut into at most, where their length is not given."""


class Planned:
    """Plan what is left, every time."""

    def __init__(
        self,
        engine: Literal["fast", "exact"],
        *,
        seed: int = 0,
        time_limit_s: float | None = None,
        work: int | None = None,
        gap: float = 1e-3,
        slot_s: float | None = None,
        elastic: bool = True,
        move_price: float = 0.0,
        name: str | None = None,
    ) -> None:
        self.name: str = name or engine
        self.engine, self.seed, self.gap = engine, seed, gap
        # The exact engine's part comes after the search's, so moves are not what limits it.
        self.work = WORK if engine == "fast" and work is None and time_limit_s is None else work
        is_unlimited = time_limit_s is None and work is None
        self.time_limit_s = EXACT_S if engine == "exact" and is_unlimited else time_limit_s
        self.slot_s, self.elastic, self.move_price = slot_s, elastic, move_price
        self.fallbacks = 0
        """Calls in which the greedy had to decide."""
        self._greedy = Pressure()
        self._table = ModeTable()
        self._priced: tuple[Instance, Instance] | None = None
        """The last instance, and as it is with the price of moving."""

    def decide(self, state: State) -> Decision:
        """Plan, and do what the plan says until the next call."""
        from planner.simulation.policies.retime import opened, retimed

        state = self._with_move_price(state)
        reading = self._table.reading(state.instance)
        # What a job would do alone is no guide where it shares what its readers pay for.
        courses = Courses(state, self._table) if self.elastic and reading.is_free else None
        alone = courses.together() if courses is not None else None
        if alone is not None:
            return Decision(opened(alone))
        slot_s = self.slot_s or slot_of(state)
        for deadlines in (True, False):
            left = remaining_of(state, slot_s, elastic=self.elastic, deadlines=deadlines, is_free=reading.is_free)
            if not left.instance.jobs:
                return Decision(())
            try:
                plan = self._plan(left)
                timed = retimed(state, left.assignments(plan), is_free=reading.is_free)
                if reading.is_free:
                    return Decision(opened(timed if courses is None else courses.settled(timed)))
                cached = {(part.site, part.dataset): part.fraction for part in plan.cached}
                return _served(Decision(opened(timed), cached=cached), state, reading)
            except (NoPlan, Infeasible):
                if not any(job.deadline is not None for job in left.instance.jobs):
                    break
        self.fallbacks += 1
        return self._greedy.decide(state)

    def _with_move_price(self, state: State) -> State:
        """The state with the price of a move in the restart costs."""
        if not self.move_price:
            return state
        if self._priced is None or self._priced[0] is not state.instance:
            jobs = tuple(
                job.model_copy(update={"restart_cost": job.restart_cost + self.move_price})
                for job in state.instance.jobs
            )
            self._priced = state.instance, state.instance.altered(jobs=jobs)
        return replace(state, instance=self._priced[1])

    def _plan(self, left: Remaining) -> Plan:
        from planner.engines.base import Limits
        from planner.solve import solve

        limits = Limits(time_limit_s=self.time_limit_s, work=self.work, gap=self.gap, seed=self.seed)
        return solve(left.instance, "fast" if self.engine == "fast" else "auto", limits).plan


def _served(decision: Decision, state: State, reading: Reading) -> Decision:
    """The decision without starts that would have too much read now: a node that has to boot is taken by so much
    earlier than in the plan, where someone else may still read. They are asked for again at the next event."""
    assert decision.cached is not None
    running = {job.job: job.running for job in state.jobs}
    now = [a for a in decision.assignments if a.start_s <= state.now_s + EDGE_S]
    now.sort(key=lambda a: running[a.job] != a.allocation)
    modes: list[Mode] = []
    waiting: set[int] = set()
    for a in now:
        more = [*modes, a.allocation.mode]
        stays = running[a.job] == a.allocation
        if stays or reading.shortage(reading.at_sites(more), decision.cached) is None:
            modes = more
        else:
            waiting.add(a.job)
    return replace(decision, assignments=tuple(a for a in decision.assignments if a.job not in waiting))


def slot_of(state: State) -> float:
    """A length of slots: the instance's, or so many times that as leave no more of them than needed. What a longer slot
    loses in a plan is won back when its times are made exact."""
    ends = [state.now_s]
    for job in state.jobs:
        record = state.instance.jobs[job.job]
        shortest = min((mode.duration_s for mode in modes_of(state.instance, record)), default=0.0)
        ends.append(max(record.due or 0.0, state.now_s + job.remaining * shortest))
    slot = state.instance.slot
    return slot * max(1, round((max(ends) - state.now_s) / (SLOTS * slot)))
