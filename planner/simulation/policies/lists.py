"""List dispatching without preemption: jobs in some order, each started as soon as there is room.

Running jobs stay. Waiting ones are taken in a strict order: where the first finds no room those behind it wait too (no
backfill; `easy` has it). Owned nodes come first; where none has room, and cloud nodes may be used, the job bursts at
once. Jobs that wait for predecessors, or that no pool in use could hold, are not in the queue.
"""

from __future__ import annotations

from collections.abc import Callable

from planner.simulation.policies.desk import Desk
from planner.simulation.policies.menu import Choice, ModeTable
from planner.simulation.state import Allocation, Decision, JobState, State

Order = Callable[[Desk, JobState], float]
Rule = Callable[[Desk, JobState], Allocation | None]
"""Where a job is to start now; None: there is no room."""


def by_arrival(desk: Desk, job: JobState) -> float:
    """First come, first served."""
    return desk.state.instance.jobs[job.job].release


def by_due_date(desk: Desk, job: JobState) -> float:
    """Earliest due date first; those without one last."""
    return desk.menu.due_s(job.job)


def by_weight(desk: Desk, job: JobState) -> float:
    """Highest price of being late first."""
    return -desk.state.instance.jobs[job.job].weight


class ListPolicy:
    """Jobs in an order, placed by a rule."""

    def __init__(self, name: str, order: Order, rule: Rule) -> None:
        self.name, self._order, self._rule = name, order, rule
        self._table = ModeTable()

    def decide(self, state: State) -> Decision:
        """Start jobs until one finds no room."""
        desk = Desk(state, self._table)
        assignments = desk.keep(desk.running)
        for job in sorted(desk.waiting, key=lambda job: self._order(desk, job)):
            allocation = self._rule(desk, job)
            if allocation is None:
                break
            assignments.append(desk.start(job, allocation))
        return Decision(tuple(assignments))


def first_fit(desk: Desk, choices: list[Choice], *, alone: bool = False) -> Allocation | None:
    """The first of some choices that finds room, on the nodes that it fits best."""
    for choice in choices:
        allocation = desk.room.fit(choice.mode, choice.seconds, alone=alone)
        if allocation is not None:
            return allocation
    return None


def owned_first(
    desk: Desk, job: JobState, order: Callable[[list[Choice]], list[Choice]], *, alone: bool = False
) -> Allocation | None:
    """The first choice that finds room on owned nodes, else on rented ones."""
    choices = desk.menu.of(job)
    owned = first_fit(desk, order([choice for choice in choices if choice.is_owned]), alone=alone)
    if owned is not None:
        return owned
    return first_fit(desk, order([choice for choice in choices if not choice.is_owned]), alone=alone)


def sharing(desk: Desk, job: JobState) -> Allocation | None:
    """Nodes are shared: the cheapest mode that meets the due date, else the fastest that fits."""
    return owned_first(desk, job, lambda choices: desk.preferred(job, choices))


def whole_node(desk: Desk, job: JobState) -> Allocation | None:
    """A job takes a node for itself, in the mode with most GPUs of those that fit one node; of several pools the one
    where that is fastest. Only a job that fits no single node takes several."""
    return owned_first(desk, job, _widest_first, alone=True)


def _widest_first(choices: list[Choice]) -> list[Choice]:
    widest: dict[int, Choice] = {}
    for choice in choices:
        known = widest.get(choice.mode.pool)
        if known is None or _width(choice) < _width(known):
            widest[choice.mode.pool] = choice
    return sorted(widest.values(), key=lambda choice: (choice.mode.is_gang, choice.seconds))


def _width(choice: Choice) -> tuple[float, float, float]:
    nodes = choice.mode.num_nodes
    return (nodes, -choice.mode.busy_gpus if nodes == 1 else 0.0, choice.seconds)


def one_small(desk: Desk, job: JobState) -> Allocation | None:
    """The smallest set-up: one GPU, or as few as it can do with; the cheapest of those, and never changed. A share of a
    GPU is taken only by a job that cannot have a whole one."""
    choices = desk.menu.of(job)
    fewest = min((choice.mode.gpus for choice in choices if choice.mode.gpus), default=0)
    return owned_first(desk, job, lambda some: [choice for choice in some if choice.mode.gpus == fewest])
