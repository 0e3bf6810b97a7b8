"""A plan from the LP: starts are settled a few at a time, those of the widest jobs first, and the LP solved in between.

Rounded all at once, an LP that fills a pool leaves the wide jobs without room. Settled first they keep it, and the
narrow ones, of which there is always one that fits, move out of their way. The LP only counts nodes: what it settles
is put on them afterwards, and not all of it finds room there.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping

from planner.engines import clock
from planner.engines.fast.certificate import Centre
from planner.engines.fast.columns import Columns
from planner.engines.fast.master import Solved, Start

SURE, WHOLE = 0.8, 1 - 1e-6
"""A start of which the LP takes so much is settled at once; all of it: the LP stays as it is."""
ALIKE = 0.6
"""Jobs at least so wide as the widest that is open come with it."""
PARTS = ((4.0, 0.2), (2.0, 0.34), (1.0, 0.5), (0.0, 1.0))
"""The part of them that is settled in a step at least, by the nodes that they take."""
NEWS = 3e-4
"""A step that makes the LP so much dearer has others to look at than those that are known."""
WORSE = 1.05
"""A step that makes the LP so much dearer is not taken as it is."""


class Dive:
    """Goes down from the LP of a branch to a start for every job, over the columns of a master."""

    def __init__(self, columns: Columns, centre: Centre):
        self.columns, self.master, self.centre = columns, columns.master, centre
        rows, pools = columns.table.rows, columns.table.pools
        self.jobs = rows.job
        self.nodes = rows.width / pools.node_slices[rows.pool]
        self.settled: dict[int, Start] = {}
        self.barred: set[Start] = set()

    def run(self, settled: Mapping[int, Start], left: Callable[[], float | None]) -> dict[int, Start]:
        """The start of each job, those of some being settled already; of fewer where `left`, the seconds that it may
        take (None: any), comes to 0 before the end."""
        try:
            solved = self._first(settled, left())
            while solved is not None:
                seconds = left()
                heaviest = self._heaviest(solved)
                if not heaviest or (seconds is not None and seconds <= 0):
                    # Out of time: what is left goes where the last LP would have most of it.
                    return {**{j: start for j, (_, start) in heaviest.items()}, **self.settled}
                solved = self._settle(self._next(solved, heaviest), solved, seconds)
            return dict(self.settled)
        finally:
            self._bound([*self.settled.values(), *self.barred], 0.0, math.inf)
            self.columns.entered = None

    def _first(self, settled: Mapping[int, Start], seconds: float | None) -> Solved | None:
        self.columns.enter(self.centre)
        starts = list(settled.values())
        self.master.add(starts)
        self._bound(starts, 1.0, 1.0)
        self.settled.update(settled)
        solved = self.master.solve(seconds)
        if solved is not None and starts and self.columns.add_for(solved, self.settled):
            solved = self.master.solve(seconds)
        return solved

    def _heaviest(self, solved: Solved) -> dict[int, tuple[float, Start]]:
        """Of each open job the start that the LP takes most of."""
        found: dict[int, tuple[float, Start]] = {}
        for start, weight in solved.weights.items():
            j = int(self.jobs[start[0]])
            if j not in self.settled and start not in self.barred and (weight, start) > found.get(j, (0.0, (-1, -1))):
                found[j] = (weight, start)
        return found

    def _next(self, solved: Solved, heaviest: dict[int, tuple[float, Start]]) -> list[Start]:
        """What to settle next, the surest first."""
        width: dict[int, float] = defaultdict(float)
        for (r, _), weight in solved.weights.items():
            if weight > 0.05:
                j = int(self.jobs[r])
                width[j] = max(width[j], float(self.nodes[r]))
        widest = max(width[j] for j in heaviest)
        order = sorted((j for j in heaviest if width[j] >= ALIKE * widest), key=lambda j: (-heaviest[j][0], j))
        part = next(part for nodes, part in PARTS if widest >= nodes)
        number = max(math.ceil(part * len(order)), sum(heaviest[j][0] >= SURE for j in order))
        return [heaviest[j][1] for j in order[:number]]

    def _settle(self, chosen: list[Start], before: Solved, seconds: float | None) -> Solved | None:
        """Settle these starts, or as many of them as the LP bears; then look for starts that are better now. None
        where there is no time for it."""
        ends = math.inf if seconds is None else clock.now() + seconds
        is_same = all(before.weights.get(start, 0.0) >= WHOLE for start in chosen)
        while True:
            self._bound(chosen, 1.0, 1.0)
            solved = before if is_same else self._solve(ends)
            if solved is not None and solved.value <= before.value + (WORSE - 1) * abs(before.value):
                break
            self._bound(chosen, 0.0, math.inf)
            if clock.now() >= ends:
                return None
            if len(chosen) == 1:
                return self._bar(chosen, solved, ends)
            chosen = chosen[: len(chosen) // 3 or 1]
        self.settled.update({int(self.jobs[r]): (r, t) for r, t in chosen})
        is_news = solved.value > before.value + NEWS * abs(before.value)
        if is_news and self.columns.add_for(solved, self.settled):
            return self._solve(ends) or solved
        return solved

    def _bar(self, chosen: list[Start], settled: Solved | None, ends: float) -> Solved | None:
        """Do without one start, unless that is dearer still than to settle it."""
        self._bound(chosen, 0.0, 0.0)
        without = self._solve(ends)
        if without is not None and self.columns.add_for(without, self.settled):
            without = self._solve(ends) or without
        if without is None or settled is None or without.value <= settled.value:
            self.barred.update(chosen)
            return without
        self._bound(chosen, 1.0, 1.0)
        self.settled.update({int(self.jobs[r]): (r, t) for r, t in chosen})
        return self._solve(ends)

    def _solve(self, ends: float) -> Solved | None:
        return self.master.solve(None if ends == math.inf else max(0.0, ends - clock.now()))

    def _bound(self, starts: list[Start], low: float, high: float) -> None:
        for start in starts:
            self.master.bound_start(start, low, high)
