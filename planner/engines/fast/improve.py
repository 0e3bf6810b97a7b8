"""The search loop: take some jobs off, put them back, keep what is better."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass

from planner.engines import interrupts
from planner.engines.fast.occupancy import Occupancy, Snapshot
from planner.engines.fast.operators import Operator

REFRESH = 50_000
"""Moves after which all sums are made anew."""


@dataclass(frozen=True)
class Manner:
    """How a move puts jobs back: see `Occupancy.recreate`."""

    theta: float
    tries: int
    blink: float


MANNERS = (Manner(0.0, 8, 0.0), Manner(0.0, 16, 0.1), Manner(0.3, 8, 0.1), Manner(0.7, 4, 0.05), Manner(0.0, 40, 0.0))


def value(occupancy: Occupancy, spending: float) -> float:
    """Service + `spending` * spent. Infinite where more is spent than is allowed: what jobs that are put back add may
    be reckoned under suppositions."""
    if occupancy.spent > occupancy.allowed:
        return math.inf
    return occupancy.cost - (1.0 - spending) * occupancy.spent


class Improve:
    """Ruin and recreate (Schrimpf et al., 2000) under simulated annealing: for the lowest service + `spending` * spent,
    which is the cost unless something else is asked for."""

    def __init__(self, occupancy: Occupancy, operators: list[tuple[Operator, float]], seed: int, spending: float = 1.0):
        self.occupancy, self.spending = occupancy, spending
        self.operators = [operator for operator, _ in operators]
        self.weights = [weight for _, weight in operators]
        self.draw = random.Random(seed)
        self.moves = 0
        self.best: Snapshot = occupancy.snapshot()
        self.least = value(occupancy, self.spending)

    def run(self, moves: int, warmth: float, end_warmth: float, stop: Callable[[], bool] = lambda: False) -> None:
        """So many moves, or until `stop`. `warmth` is the part of the cost by which a move that is about as likely as
        not to be kept makes the plan dearer; it falls to `end_warmth`."""
        occupancy, draw = self.occupancy, self.draw
        current = value(occupancy, self.spending)
        for k in range(moves):
            if k % 64 == 0:
                if stop():
                    break
                interrupts.safe_point()
            self.moves += 1
            operator = draw.choices(self.operators, self.weights)[0]
            occupancy.mark()
            jobs = occupancy.table.after_predecessors(operator.choose(occupancy, draw))
            manner = draw.choice(MANNERS)
            occupancy.drop(jobs)
            whole = occupancy.recreate(jobs, theta=manner.theta, tries=manner.tries, blink=manner.blink)
            occupancy.suppose_nothing()
            heat = warmth * (end_warmth / warmth) ** (k / moves) * self.best.cost
            allowed = current - heat * math.log(max(draw.random(), 1e-300)) if heat > 0 else current
            reached = value(occupancy, self.spending) if whole else math.inf
            if reached < allowed:
                current = reached
                if current < self.least - 1e-9 * abs(self.least):
                    self.best, self.least = occupancy.snapshot(), current
            else:
                occupancy.undo()
            if self.moves % REFRESH == 0:
                occupancy.commit()
                occupancy.refresh()
                current = value(occupancy, self.spending)
        self.finish()

    def finish(self) -> None:
        """Back to the best plan."""
        self.occupancy.commit()
        self.occupancy.restore(self.best)
        self.occupancy.refresh()
