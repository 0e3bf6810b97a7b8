"""Rules for renting: everything in the cloud, or what has waited too long."""

from __future__ import annotations

import math

from planner.simulation.policies.desk import Desk
from planner.simulation.policies.lists import by_due_date, first_fit
from planner.simulation.policies.menu import Choice, ModeTable
from planner.simulation.state import Decision, JobState, State


class CheapestCloud:
    """Every job by itself on the cheapest rented set-up that meets its due date, at once.

    Rent is counted in whole billing increments with the boot, as for a node of one's own. Free owned nodes are not
    used, except by a job that no cloud mode or no quota is left for, or where cloud nodes may not be used at all.
    """

    def __init__(self, name: str = "cheapest_cloud") -> None:
        self.name = name
        self._table = ModeTable()

    def decide(self, state: State) -> Decision:
        """Rent for every job that waits, in order of arrival; one without room holds up no other."""
        desk = Desk(state, self._table)
        assignments = desk.keep(desk.running)
        for job in desk.waiting:
            choices = desk.menu.of(job)
            rented = sorted((c for c in choices if not c.is_owned), key=lambda choice: _rent(desk, choice))
            allocation = first_fit(desk, desk.preferred(job, rented), alone=True)
            if allocation is None:
                allocation = first_fit(desk, desk.preferred(job, [c for c in choices if c.is_owned]))
            if allocation is not None:
                assignments.append(desk.start(job, allocation))
        return Decision(tuple(assignments))


def _rent(desk: Desk, choice: Choice) -> tuple[float, float]:
    """Money for whole nodes in whole increments and for energy; the shorter of equal ones first."""
    mode = choice.mode
    increment = desk.state.instance.pools[mode.pool].billing_increment
    billed = math.ceil(choice.seconds / increment - 1e-9) * increment if increment > 0 else choice.seconds
    cost = mode.num_nodes * desk.menu.node_cost(mode.pool, billed) + desk.menu.energy_cost(mode, choice.seconds)
    return cost, choice.seconds


class BurstAfterWaiting:
    """Earliest due date first on owned nodes; a job bursts when it has waited longer than a threshold, or when it would
    be late if it waited for the next running job to end."""

    def __init__(self, wait_s: float, name: str = "burst_after_waiting") -> None:
        self.name, self._wait_s = name, wait_s
        self._table = ModeTable()

    def decide(self, state: State) -> Decision:
        """Start on owned nodes in strict order, then burst those that cannot wait."""
        desk = Desk(state, self._table)
        assignments = desk.keep(desk.running)
        on_owned = [
            desk.completion_s(job, place)
            for job in desk.running
            if (place := desk.place_of(job)) is not None and not desk.menu.is_cloud[place.mode.pool]
        ]
        is_blocked = False
        wake_s = math.inf
        for job in sorted(desk.waiting, key=lambda job: by_due_date(desk, job)):
            choices = desk.menu.of(job)
            owned = [choice for choice in choices if choice.is_owned]
            allocation = None if is_blocked else first_fit(desk, desk.preferred(job, owned))
            if allocation is not None:
                assignments.append(desk.start(job, allocation))
                on_owned.append(desk.completion_s(job, allocation))
                continue
            bursts_at = self._bursts_at(desk, job, owned, min(on_owned, default=desk.now_s))
            rented = [choice for choice in choices if not choice.is_owned]
            if rented and bursts_at <= desk.now_s + 1e-6:
                allocation = first_fit(desk, desk.preferred(job, rented))
            if allocation is not None:
                assignments.append(desk.start(job, allocation))
                continue
            # Those behind wait for it too, unless it can run in the cloud only.
            is_blocked |= bool(owned)
            if rented and bursts_at > desk.now_s + 1e-6:
                wake_s = min(wake_s, bursts_at)
        return Decision(tuple(assignments), None if math.isinf(wake_s) else wake_s)

    def _bursts_at(self, desk: Desk, job: JobState, owned: list[Choice], next_end_s: float) -> float:
        """When a job that waits has waited enough; at once where it will be late on owned nodes."""
        fastest = min((choice.seconds for choice in owned), default=math.inf)
        if next_end_s + fastest > desk.menu.due_s(job.job) + 1e-6 or not owned:
            return desk.now_s
        return desk.state.instance.jobs[job.job].release + self._wait_s
