"""Local search and path relinking on steps, by the published neighbourhoods and score.

Local search begins with the greedy's step. Swaps of two jobs' places: a tardy job with one that is expensive, a tardy
one with one of low pressure, one that waits with one that runs. Other modes for one job: a faster one, twice the GPUs,
half of them. The first move that lowers the score is made, until none does or the moves are used up.

Path relinking keeps an elite of steps, from the greedy, its randomised form and local search. It walks from the best
towards each of the others, job by job: a move gives one job the mode and nodes that it has there. Of a sample of moves
the one with the best score is made, even where it is worse than before; the best step that was met is taken.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from planner.simulation.policies.desk import Desk
from planner.simulation.policies.menu import Choice, ModeTable
from planner.simulation.policies.pressure import fill, greedy, randomised, same_place
from planner.simulation.policies.step import Shop, Step, nodes_of
from planner.simulation.state import Allocation, Decision, State

ELITE = 10
SAMPLE = 8
"""Moves that are tried at each step of a walk."""
NEAREST = 5
"""Partners that are tried for each job of a swap."""
_BETTER = 1 - 1e-9

Move = list[tuple[int, Choice, tuple[int, ...] | None]]
"""Jobs with their new choices, on some nodes or where they fit best; all are taken off first."""


class LocalSearch:
    """Descent from the greedy's step and from some randomised ones."""

    def __init__(self, seed: int, iterations: int, name: str = "local_search") -> None:
        self.name, self._moves = name, 4 * iterations
        self._draw = random.Random(seed)
        self._table = ModeTable()

    def decide(self, state: State) -> Decision:
        """The best step that was met."""
        shop = Shop(Desk(state, self._table))
        best = greedy(shop)
        score, moves = descend(best, self._moves // 2)
        # What is left of the moves goes to another beginning.
        if shop.jobs:
            other = randomised(shop, self._draw)
            found, _ = descend(other, self._moves - moves)
            if found < score:
                best = other
        return best.decision()


class PathRelinking:
    """Walks among an elite of steps."""

    def __init__(self, seed: int, iterations: int, name: str = "path_relinking") -> None:
        self.name, self._moves = name, iterations
        self._draw = random.Random(seed)
        self._table = ModeTable()

    def decide(self, state: State) -> Decision:
        """The best step of the elite and of the walks between them."""
        shop = Shop(Desk(state, self._table))
        first = greedy(shop)
        if not shop.jobs:
            return first.decision()
        elite = [
            first,
            *(randomised(shop, self._draw) for _ in range(ELITE - 1)),
        ]
        scored = [(descend(step, self._moves // ELITE)[0], k, step) for k, step in enumerate(elite)]
        scored.sort(key=lambda member: member[:2])
        score, _, best = start = scored[0]
        for _, _, guide in scored[1:]:
            walked = _walk(start[2], guide, self._draw)
            if walked is not None and walked[0] < score:
                score, best = walked
        # A walk may take jobs off for which there is room.
        fill(best, shop.order)
        return best.decision()


def descend(step: Step, most_moves: int) -> tuple[float, int]:
    """Improve a step in place; its score, and how many moves were tried."""
    score, tried, improved = step.score(), 0, True
    while improved and tried < most_moves:
        improved = False
        for move in _moves(step):
            if tried >= most_moves:
                break
            tried += 1
            after = _try(step, move, score * _BETTER)
            if after is not None:
                score, improved = after, True
                break
    return score, tried


def _try(step: Step, move: Move, below: float) -> float | None:
    """The score after a move where it is below some value; else the step is as before, and None."""
    before: dict[int, Allocation | None] = {j: step.drop(j) if j in step.put_at else None for j, _, _ in move}
    for j, choice, nodes in move:
        allocation = step.place(j, choice, nodes)
        if allocation is None:
            break
        step.put(j, allocation)
    else:
        score = step.score()
        if score < below:
            return score
    for j in before:
        if j in step.put_at:
            step.drop(j)
    for j, allocation in before.items():
        if allocation is not None:
            step.put(j, allocation)
    return None


def _moves(step: Step) -> Iterator[Move]:
    """All moves from a step as it is, neighbourhood by neighbourhood."""
    shop, menu = step.shop, step.desk.menu
    running = sorted(step.put_at)
    late = {j: menu.tardiness_cost(j, step.desk.now_s + step.seconds(j)) for j in running}
    tardy = sorted((j for j in running if late[j] > 0), key=lambda j: -late[j])
    expensive = sorted(running, key=lambda j: -menu.cost(step.put_at[j].mode, step.seconds(j)))
    pressures = {j: shop.pressure(j) for j in shop.jobs}
    relaxed = sorted(running, key=lambda j: pressures[j])
    for partners in (expensive, relaxed):
        for a in tardy:
            yield from _swaps(step, a, partners)
    postponed = [j for j in shop.jobs if j not in step.put_at]
    for a in sorted(postponed, key=lambda j: -pressures[j]):
        yield from _instead(step, a, relaxed)
    for j in dict.fromkeys((*tardy, *expensive)):
        yield from _other_modes(step, j)


def _swaps(step: Step, a: int, partners: list[int]) -> Iterator[Move]:
    """Each of two running jobs takes the other's nodes, in a mode for as many GPUs."""
    here = step.put_at[a]
    for b in [b for b in partners if b != a][:NEAREST]:
        there = step.put_at[b]
        of_a, of_b = step.shop.swap_mode(a, there), step.shop.swap_mode(b, here)
        if of_a is not None and of_b is not None:
            yield [(a, of_a, nodes_of(there)), (b, of_b, nodes_of(here))]


def _instead(step: Step, a: int, partners: list[int]) -> Iterator[Move]:
    """A job that waits takes the place of one that runs, which goes where it fits."""
    for b in partners[:NEAREST]:
        there = step.put_at[b]
        of_a = step.shop.swap_mode(a, there)
        if of_a is not None:
            for choice in step.shop.options[b][:2]:
                yield [(a, of_a, nodes_of(there)), (b, choice, None)]


def _other_modes(step: Step, j: int) -> Iterator[Move]:
    """A faster one anywhere, twice the GPUs, half of them."""
    now, now_s = step.put_at[j].mode, step.seconds(j)
    options = step.shop.options[j]
    faster = [choice for choice in options if choice.seconds < now_s - 1e-6]
    gpus = {choice.mode.gpus: choice for choice in options if choice.mode.pool == now.pool}
    double = [gpus[2 * now.gpus]] if now.gpus and 2 * now.gpus in gpus else []
    half = [gpus[now.gpus // 2]] if now.gpus > 1 and now.gpus % 2 == 0 and now.gpus // 2 in gpus else []
    for choice in (*faster[:2], *double, *half):
        yield [(j, choice, None)]


def _walk(start: Step, guide: Step, draw: random.Random) -> tuple[float, Step] | None:
    """The best step between two, both left out; None where there is none."""
    step = start.copy()
    best: tuple[float, Step] | None = None
    apart = [j for j in step.shop.jobs if not same_place(step.put_at.get(j), guide.put_at.get(j))]
    while len(apart) > 1:
        tried: list[tuple[float, int]] = []
        for j in draw.sample(apart, min(SAMPLE, len(apart))):
            score = _towards(step, j, guide, undo=True)
            if score is not None:
                tried.append((score, j))
        if not tried:
            return best  # the others are in the way
        score, chosen = min(tried)
        _towards(step, chosen, guide, undo=False)
        apart.remove(chosen)
        if best is None or score < best[0]:
            best = (score, step.copy())
    return best


def _towards(step: Step, j: int, guide: Step, *, undo: bool) -> float | None:
    """The score once a job has the mode and nodes that it has elsewhere; None where they are taken."""
    target = guide.put_at.get(j)
    before = step.drop(j) if j in step.put_at else None
    score: float | None = None
    found = None if target is None else step.room.on_nodes(target.mode, nodes_of(target), 0.0)
    if target is None or found is not None:
        if found is not None:
            step.put(j, found)
        score = step.score()
        if not undo:
            return score
        if found is not None:
            step.drop(j)
    if before is not None:
        step.put(j, before)
    return score
