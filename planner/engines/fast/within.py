"""Plans within a budget: the search among starts at a price, in which jobs that would exceed it are left out.

At a price alike jobs all run or none does (`models.goal`), so what the engine finds at prices leaves dents. Here the
budget is kept to by every plan that the walk goes over, and the price only says where a job is put.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from models.goal import spent_of
from models.reductions import reduce_starts
from models.starts import Starts
from planner.engines.assemble import cost_of
from planner.engines.fast.ascent import Ascent
from planner.engines.fast.certificate import Certificate
from planner.engines.fast.guide import Guide
from planner.engines.fast.improve import Improve, value
from planner.engines.fast.mend import Mend
from planner.engines.fast.occupancy import Occupancy
from planner.engines.fast.operators import Exchange, operators_of
from planner.engines.fast.prover import CLIMB
from planner.engines.fast.table import Table
from planner.engines.schedule import Schedule

WARMTHS, COLDEST = (0.01, 0.03, 0.003), 1e-5
EXCHANGES = 2.0
"""How often they are tried: twice as often as each of the usual moves."""
TRIES = 3
"""Times that a plan which is dearer than it was reckoned is mended."""


class Within:
    """The search over starts at a price; `run` may be called again."""

    def __init__(self, starts: Starts, seed: int):
        self.table = Table.of(reduce_starts(starts))
        self.occupancy = Occupancy(self.table, seed)
        self.seed = seed
        self.runs = 0
        self.unreckoned = 0.0
        """The most by which a plan was dearer than it is reckoned here: power laws."""

    @cached_property
    def guide(self) -> Guide:
        """Starts that are cheap at the price, and what is scarce there."""
        certificate = Certificate(self.table)
        ascent, branch = Ascent(certificate), certificate.lowest.branch
        ascent.climb(ascent.first_state(branch), branch, CLIMB, go_on=lambda: True)
        guide = Guide(certificate.pricing, certificate.lowest.prices)
        self.occupancy.set_prices(guide.priced)
        return guide

    def run(
        self, schedule: Schedule, most: float, spending: float, moves: int, stop: Callable[[], bool]
    ) -> Schedule | None:
        """A schedule that spends no more than `most` at the price, of lower service + `spending` * spent than the one
        to begin with, if that spends no more; None where none is found. Both are over the starts of the table."""
        occupancy = self.occupancy
        occupancy.load(schedule)
        keeps = spent_of(cost_of(schedule).costs) <= most
        occupancy.allow(max(occupancy.spent, most - self.unreckoned) if keeps else most - self.unreckoned)
        before = value(occupancy, spending)
        if not Mend(occupancy, stop).run():
            return None
        if moves:
            operators = [*operators_of(occupancy, self.guide), (Exchange(self.guide), EXCHANGES)]
            loop = Improve(occupancy, operators, self.seed + 7919 * self.runs, spending)
            loop.run(moves, WARMTHS[self.runs % len(WARMTHS)], COLDEST, stop)
            self.runs += 1
        found = self._within(most, stop)
        return found if value(occupancy, spending) < before else None

    def _within(self, most: float, stop: Callable[[], bool]) -> Schedule | None:
        """What runs as a schedule; under power laws, where it may be dearer than it is reckoned here, with a little
        given up."""
        occupancy = self.occupancy
        for _ in range(TRIES):
            found = occupancy.to_schedule()
            unreckoned = spent_of(cost_of(found).costs) - occupancy.spent
            if occupancy.spent + unreckoned <= most:
                return found
            self.unreckoned = max(self.unreckoned, unreckoned)
            occupancy.allow(most - self.unreckoned)
            if not Mend(occupancy, stop).run():
                break
        return None
