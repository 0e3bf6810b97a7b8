"""The published pressure greedy, and its randomised form.

Jobs in order of their pressure, now + least time - due date, descending. Each takes the cheapest mode that meets its
due date, else the fastest; in it the node in use that fits best, else a new one; where a mode finds no node the next
one is tried, and where none does the job waits. Afterwards GPUs that are left on nodes in use go to the jobs that gain
most time by them. Running jobs that may be moved are dealt out anew each time; one that gets its own mode again stays
on its GPUs if they are free, which the published rule, to which moves are free, has no need to say.

The randomised form draws from the best 5 % of the modes and the best 20 % of the nodes, and swaps neighbours in the
order with odds by their weights; of many steps the one with the best score is taken.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from itertools import islice

from models.domain import Job
from planner.simulation.policies.desk import Desk
from planner.simulation.policies.menu import Choice, ModeTable
from planner.simulation.policies.step import Shop, Step, nodes_of
from planner.simulation.state import Allocation, Decision, State

MODE_SHARE = 0.05
"""Part of the modes that the randomised form draws from."""
NODE_SHARE = 0.2
"""Part of the nodes with room that it draws from."""
_MOST_NODES = 200
"""Nodes that are looked at for it."""


class Pressure:
    """The greedy by itself."""

    def __init__(self, name: str = "pressure") -> None:
        self.name = name
        self._table = ModeTable()

    def decide(self, state: State) -> Decision:
        """Deal out the GPUs."""
        return greedy(Shop(Desk(state, self._table))).decision()


class RandomGreedy:
    """The randomised greedy, a number of times."""

    def __init__(self, seed: int, iterations: int, name: str = "random_greedy") -> None:
        self.name, self._iterations = name, iterations
        self._draw = random.Random(seed)
        self._table = ModeTable()

    def decide(self, state: State) -> Decision:
        """The best of the greedy's step and of randomised ones."""
        shop = Shop(Desk(state, self._table))
        best = greedy(shop)
        score = best.score()
        for _ in range(self._iterations if len(shop.jobs) else 0):
            step = randomised(shop, self._draw)
            found = step.score()
            if found < score:
                best, score = step, found
        return best.decision()


def greedy(shop: Shop, order: Sequence[int] | None = None, draw: random.Random | None = None) -> Step:
    """A step by the rule, in another order where one is given, randomised with `draw`."""
    step = Step(shop)
    fill(step, shop.order if order is None else order, draw)
    _hand_out_spare_gpus(step)
    return step


def randomised(shop: Shop, draw: random.Random) -> Step:
    """A step by the randomised rule."""
    return greedy(shop, swapped_by_weight(shop.order, shop.desk.state.instance.jobs, draw), draw)


def fill(step: Step, order: Sequence[int], draw: random.Random | None = None) -> None:
    """Jobs that wait start where there is room, by the rule."""
    for j in order:
        if j not in step.put_at:
            allocation = _find(step, j, draw)
            if allocation is not None:
                step.put(j, allocation)


def _find(step: Step, j: int, draw: random.Random | None) -> Allocation | None:
    options: Sequence[Choice] = step.shop.options[j]
    if draw is not None:
        number = math.ceil(MODE_SHARE * len(options))
        options = [*draw.sample(options[:number], number), *options[number:]]
    for choice in options:
        allocation = step.place(j, choice)
        if allocation is not None:
            return allocation if draw is None else _elsewhere(step, j, choice, draw) or allocation
    return None


def _elsewhere(step: Step, j: int, choice: Choice, draw: random.Random) -> Allocation | None:
    """Nodes drawn from the best of those with room."""
    found = list(islice(step.room.node_sets(choice.mode, choice.seconds), _MOST_NODES))
    if len(found) < 2:
        return None
    return step.place(j, choice, draw.choice(found[: math.ceil(NODE_SHARE * len(found))]))


def _hand_out_spare_gpus(step: Step) -> None:
    """More GPUs of its node for the job that they make faster by most, until they make none faster."""
    while True:
        best: tuple[float, int, Allocation] | None = None
        for j, allocation in step.put_at.items():
            mode, node = allocation.mode, allocation.places[0].node
            if mode.is_gang or step.room.spare(mode.pool, node) == 0:
                continue
            now_s = step.seconds(j)
            for choice in step.shop.options[j]:
                gain = now_s - choice.seconds
                is_more = choice.mode.pool == mode.pool and choice.mode.slices > mode.slices
                if not is_more or choice.mode.is_gang or gain <= 1e-6 or (best is not None and gain <= best[0]):
                    continue
                step.room.free(allocation)
                wider = step.place(j, choice, (node,))
                step.room.take(allocation)
                if wider is not None:
                    best = (gain, j, wider)
        if best is None:
            return
        step.drop(best[1])
        step.put(best[1], best[2])


def swapped_by_weight(order: Sequence[int], jobs: Sequence[Job], draw: random.Random) -> list[int]:
    """An order of jobs after a pass of swaps of neighbours, likelier the heavier the one that moves up."""
    order, k = list(order), 0
    while k + 1 < len(order):
        ahead, behind = jobs[order[k]].weight, jobs[order[k + 1]].weight
        if draw.random() * (ahead + behind) < behind:
            order[k], order[k + 1] = order[k + 1], order[k]
            k += 1  # each moves by one place only
        k += 1
    return order


def same_place(one: Allocation | None, other: Allocation | None) -> bool:
    """Whether a job has the same mode and nodes in two steps."""
    if one is None or other is None:
        return one is other
    return one.mode == other.mode and nodes_of(one) == nodes_of(other)
