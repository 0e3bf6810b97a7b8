"""What to do next for the bound: the ascent, the LP, or branches, always where the bound is the lowest."""

from __future__ import annotations

import time

from planner.engines.fast.ascent import Ascent
from planner.engines.fast.certificate import Centre, Certificate
from planner.engines.fast.columns import Columns
from planner.engines.fast.construct import Weights
from planner.engines.search import Search

CLIMB, CLIMB_ON = 60, 30
"""Iterations of the ascent in the first branch and in each later one."""
SMALL_LP = 300_000
"""Jobs times limits times slots up to which the LP is solved whatever the time: a round takes some hundredths of a
second."""
LARGE_LP = 3_000_000
"""Up to which it is solved at all, in a part of the time."""
LP_PART = 0.25
LP_ROUNDS = 25
LP_GAP = 2e-4
MOST_BRANCHES = 400
NEWS = 0.001
"""The bound has risen by this part of it since the search last looked at the prices."""


class Prover:
    """Raises the bound of a certificate step by step."""

    def __init__(self, certificate: Certificate, search: Search):
        self.certificate, self.search = certificate, search
        self.ascent = Ascent(certificate)
        self.columns: Columns | None = None
        self.weights: Weights = {}
        self.is_done = False
        self._steps = 0
        self._seen = -float("inf")
        table = certificate.table
        self.size = table.num_jobs * len(certificate.limits.limits) * table.num_slots

    def has_news(self) -> bool:
        """Whether there is something to go by that the search has not seen."""
        bound = self.certificate.bound
        if bound > self._seen + NEWS * abs(self._seen) or self.weights or self._seen == -float("inf"):
            self._seen = bound
            return True
        return False

    def step(self) -> bool:
        """One piece of work on the branch with the lowest bound; False where there is none left."""
        if self.is_done:
            return False
        centre = self.certificate.lowest
        if self._must_climb(centre):
            self._climb(centre)
        elif not centre.solved and self._may_solve():
            self._solve(centre)
        elif len(self.certificate.centres) > MOST_BRANCHES or not self.certificate.split(centre):
            self.is_done = True
        return True

    def _must_climb(self, centre: Centre) -> bool:
        """The first branch always; where the LP is small it does the rest."""
        return not centre.climbed and (self._steps == 0 or self.size > SMALL_LP)

    def _climb(self, centre: Centre) -> None:
        is_first = self._steps == 0
        self._steps += 1
        state = self.ascent.first_state(centre.branch) if is_first else self.ascent.state_of(centre)
        iterations, shorten = (CLIMB, 1.0) if is_first else (CLIMB_ON, 0.3)
        self.ascent.climb(state, centre.branch, iterations, go_on=lambda: not self.search.is_over(), shorten=shorten)
        centre.climbed = True

    def _may_solve(self) -> bool:
        left = self.search.left_s()
        return self.size <= SMALL_LP or (self.size <= LARGE_LP and left is not None and left > 10.0)

    def _solve(self, centre: Centre) -> None:
        """Rounds of the LP until its value and the bound meet, or another branch has the lowest bound."""
        left = self.search.left_s()
        ends = None if left is None else time.monotonic() + left * LP_PART
        if self.columns is None:
            self.columns = Columns(self.certificate)
        for _ in range(LP_ROUNDS):
            budget = None if ends is None else ends - time.monotonic()
            if budget is not None and budget <= 0:
                return
            goes_on = self.columns.round(centre, time_limit_s=budget)
            if not goes_on or self.columns.gap_of_master() < LP_GAP:
                centre.solved = True
                break
            if centre is not self.certificate.lowest:
                break
        if self.columns.solved is not None:
            self.weights = self.columns.solved.weights
