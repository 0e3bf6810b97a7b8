"""What to do next for the bound: the ascent, the LP, or branches, always where the bound is the lowest."""

from __future__ import annotations

from collections.abc import Mapping

from planner.engines import clock
from planner.engines.fast.ascent import Ascent
from planner.engines.fast.certificate import Centre, Certificate
from planner.engines.fast.columns import Columns
from planner.engines.fast.construct import Weights
from planner.engines.fast.dive import Dive
from planner.engines.fast.master import Start
from planner.engines.search import Search

CLIMB, CLIMB_ON = 60, 30
"""Iterations of the ascent in the first branch and in each later one."""
SMALL_LP = 300_000
"""Jobs times limits times slots up to which the LP is solved whatever the time: a round takes some hundredths of a
second."""
LARGE_LP = 20_000_000
"""Up to which it is solved at all, in a part of the time."""
LARGE_DIVE = 3_000_000
"""Up to which there are ways down from it: each takes about a hundred more LPs."""
LP_PART = 0.25
LP_SIZE_PER_S = 150_000
"""Of its size for each second left, at most: what is broken off has cost time and given neither bound nor plan."""
LP_ROUNDS = 25
LP_GAP = 2e-4
LEAF_ROUNDS, LEAF_GAP = 8, 1e-3
"""In branches of starts: there are many, and their children take over what they have learnt."""
BRANCH_LP = 500_000
"""Size of an LP up to which rows on the number of nodes are added, and starts are branched on."""
CUT_ROUNDS, MOST_CUTS = 5, 500
"""Rounds of such rows in a branch that leaves all starts, and rows a round."""
MOST_BRANCHES = 2000
OFFER = 8
"""Of so many branches of starts one gives the search its LP solution."""
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
        self._steps = self._leaves = 0
        self._seen = -float("inf")
        table = certificate.table
        self.is_elastic = bool(table.elastic)
        """Runs of elastic jobs are no columns of the LP: the ascent does all there is to do."""
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
        elif not (self._cut(centre) or self._split(centre)):
            self.is_done = True
        return True

    def _split(self, centre: Centre) -> bool:
        """Tariffs and caches first: few choices, and all readers hang on each."""
        certificate = self.certificate
        if self.search.cost is not None:
            certificate.close(self.search.cost)
        if len(certificate.centres) > MOST_BRANCHES:
            return False
        if certificate.narrow(centre) or certificate.split(centre):
            return True
        return self.size <= BRANCH_LP and not self.is_elastic and certificate.part(centre)

    def _cut(self, centre: Centre) -> bool:
        """Rows on the number of nodes, for a branch that leaves all starts; slack ones go at the end."""
        columns = self.columns
        if columns is None or not self._may_solve() or self.size > BRANCH_LP or not centre.weights:
            return False
        if centre.branch.windows is not None or centre.cut > CUT_ROUNDS:
            return False
        centre.cut += 1
        if centre.cut <= CUT_ROUNDS and columns.cut(centre, MOST_CUTS):
            centre.solved = False
            return True
        centre.cut = CUT_ROUNDS + 1
        if columns.entered is centre:
            columns.master.cuts.drop_slack()
            centre.basis = columns.master.cuts.basis()
        return True

    def _must_climb(self, centre: Centre) -> bool:
        """The first branch always; where the LP is small it does the rest."""
        return not centre.climbed and (self._steps == 0 or self.is_elastic or self.size > SMALL_LP)

    def _climb(self, centre: Centre) -> None:
        is_first = self._steps == 0
        self._steps += 1
        state = self.ascent.first_state(centre.branch) if is_first else self.ascent.state_of(centre)
        iterations, shorten = (CLIMB, 1.0) if is_first else (CLIMB_ON, 0.3)
        self.ascent.climb(state, centre.branch, iterations, go_on=lambda: not self.search.is_over(), shorten=shorten)
        centre.climbed = True

    def _may_solve(self) -> bool:
        if self.is_elastic:
            return False
        left = self.search.left_s()
        return self.size <= SMALL_LP or (
            self.size <= LARGE_LP and left is not None and left * LP_SIZE_PER_S > self.size
        )

    def can_dive(self) -> bool:
        """Whether there is an LP to go down from, with all its rows."""
        centre = self.certificate.lowest
        has_rows = self.size > BRANCH_LP or centre.branch.windows is not None or centre.cut > CUT_ROUNDS
        return self.columns is not None and centre.solved and has_rows and self.size <= LARGE_DIVE

    def dive(self, settled: Mapping[int, Start], seconds: float | None) -> dict[int, Start]:
        """A start (row, slot) for each job, down from the LP of the branch with the lowest bound, within some seconds;
        those of some jobs are settled already."""
        assert self.columns is not None
        ends = None if seconds is None else clock.now() + seconds
        dive = Dive(self.columns, self.certificate.lowest)
        return dive.run(settled, lambda: None if ends is None else ends - clock.now())

    def _solve(self, centre: Centre) -> None:
        """Rounds of the LP until its value and the bound meet, or another branch has the lowest bound."""
        ends = self.search.deadline(LP_PART)
        if self.columns is None:
            self.columns = Columns(self.certificate)
        is_leaf = centre.branch.windows is not None
        for _ in range(LEAF_ROUNDS if is_leaf else LP_ROUNDS):
            budget = None if ends is None else ends - clock.now()
            if budget is not None and budget <= 0:
                break
            goes_on = self.columns.round(centre, time_limit_s=budget)
            if not goes_on or self.columns.gap_of_master() < (LEAF_GAP if is_leaf else LP_GAP):
                centre.solved = True
                break
            if not is_leaf and centre is not self.certificate.lowest:
                break
        self._keep(centre)

    def _keep(self, centre: Centre) -> None:
        """The LP solution: for splits, for children, and for the search."""
        assert self.columns is not None
        if self.columns.solved is None:
            return
        if centre.solved:
            centre.weights, centre.nodes = self.columns.solved.weights, self.columns.solved.nodes
            centre.basis = self.columns.master.cuts.basis()
        self._leaves += centre.branch.windows is not None
        if centre.branch.windows is None or self._leaves % OFFER == 1:
            self.weights = self.columns.solved.weights
