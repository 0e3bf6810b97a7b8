"""Branches: in each of them the bandwidth of every site lies in one stretch of its tariff, on which the price is a
line; of some datasets it is decided what is cached, and of some jobs in which rows and slots they may start.

A concave price is below every line between two of its points, so the Lagrangian of the whole sees no more of it than
its chord. On each stretch by itself nothing is lost, and the least of the bounds of all branches is a bound.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.engines.fast.limits import Limits
from planner.engines.fast.splits import Split
from planner.engines.fast.table import Table

MOST_BRANCHES = 16


@dataclass(frozen=True)
class Stretch:
    """Bandwidth from `low` to `high` MB/s costs `fixed + slope * bandwidth` for the whole plan."""

    low: float
    high: float
    fixed: float
    slope: float
    parts: tuple[Stretch, ...] = ()
    """The stretches below whose price this line lies, where it is a chord; none where it is the price."""

    def at(self, mb_s: float) -> float:
        """The price of so much bandwidth."""
        return self.fixed + self.slope * mb_s

    @property
    def missed(self) -> float:
        """How far the chord is below the price at most: at an end of a part, as the price is concave."""
        ends = [(part, mb_s) for part in self.parts for mb_s in (part.low, part.high)]
        return max((part.at(mb_s) - self.at(mb_s) for part, mb_s in ends), default=0.0)

    def halves(self) -> tuple[Stretch, Stretch]:
        """The stretch in two, at the edge where the chord is farthest from the price."""
        gaps = [part.at(part.high) - self.at(part.high) for part in self.parts[:-1]]
        k = 1 + int(np.argmax(gaps))
        return chord(self.parts[:k]), chord(self.parts[k:])

    def least(self, price: float) -> float:
        """The least of the cost of bandwidth less what it earns at a price for a MB/s."""
        net = self.slope - price
        return self.fixed + net * (self.low if net > 0 else self.high)


@dataclass(frozen=True, eq=False)
class Windows:
    """From which slot to which a run of each row may start, shape (R,) both; nowhere where the first is the later."""

    first: np.ndarray
    last: np.ndarray
    must_run: frozenset[int] = frozenset()
    """Jobs that are not rejected."""

    @classmethod
    def of(cls, table: Table) -> Windows:
        """All starts of a table."""
        return cls(table.rows.first, table.rows.last)

    def inside(self, split: Split) -> Windows:
        """The part in which the split's job starts as it says."""
        last = self.last.copy()
        last[split.others] = -1
        last[split.rows] = np.minimum(last[split.rows], split.until)
        return Windows(self.first, last, self.must_run | {split.job})

    def outside(self, split: Split) -> Windows:
        """The other part: it starts otherwise, or is rejected."""
        first = self.first.copy()
        first[split.rows] = np.maximum(first[split.rows], split.until + 1)
        return Windows(first, self.last, self.must_run)

    def hold(self, r: np.ndarray | int, t: np.ndarray | int) -> np.ndarray:
        """Whether starts are among them, from their rows and slots."""
        return np.asarray((self.first[r] <= t) & (t <= self.last[r]))

    @property
    def barred(self) -> np.ndarray:
        """Rows without any start, shape (R,)."""
        return np.asarray(self.first > self.last)


@dataclass(frozen=True, eq=False)
class Branch:
    """A part of all plans: a stretch for each site where bandwidth is read; what is decided of caches and of starts."""

    stretches: dict[int, Stretch]
    fixed: dict[int, int]
    """Choice made for some of the datasets of `Cachings.datasets`."""
    windows: Windows | None = None
    """None where every start may be used."""

    def children(self, k: int, number: int) -> list[Branch]:
        """The branch for each choice of one more dataset."""
        return [replace(self, fixed={**self.fixed, k: c}) for c in range(number)]

    def narrowed(self, least: float) -> list[Branch]:
        """The branch in two, where the chord of a site is farthest from its price; none where no chord misses more than
        `least`."""
        s = max(self.stretches, key=lambda s: self.stretches[s].missed, default=-1)
        if s < 0 or self.stretches[s].missed <= least:
            return []
        return [replace(self, stretches={**self.stretches, s: half}) for half in self.stretches[s].halves()]

    def parts(self, split: Split, table: Table) -> list[Branch]:
        """The two parts of a split."""
        windows = self.windows or Windows.of(table)
        return [replace(self, windows=windows.inside(split)), replace(self, windows=windows.outside(split))]


def stretches_of(table: Table, s: int, most: float) -> list[Stretch]:
    """The stretches of a site's tariff up to the bandwidth that a plan can use."""
    store = table.storage
    pieces = range(int(store.piece_start[s]), int(store.piece_start[s + 1]))
    lines = [(float(store.alpha[k] * store.hours[s]), float(store.beta[k] * store.hours[s])) for k in pieces]
    if not lines or most <= 0:
        return [Stretch(0.0, most, 0.0, 0.0)]
    crossings = {
        (b - a) / (slope_a - slope_b)
        for (a, slope_a), (b, slope_b) in itertools.combinations(lines, 2)
        if slope_a != slope_b
    }
    edges = [0.0, *sorted(x for x in crossings if 0 < x < most), most]
    found: list[Stretch] = []
    for low, high in itertools.pairwise(edges):
        middle = (low + high) / 2
        fixed, slope = min(lines, key=lambda line: (line[0] + line[1] * middle, line))
        if found and (found[-1].fixed, found[-1].slope) == (fixed, slope):
            found[-1] = Stretch(found[-1].low, high, fixed, slope)
        else:
            found.append(Stretch(low, high, fixed, slope))
    if found[0].fixed > 0:
        found.insert(0, Stretch(0.0, 0.0, 0.0, 0.0))  # nothing bought, nothing paid
    return found


def chord(stretches: Sequence[Stretch]) -> Stretch:
    """The line from the price at the beginning of some stretches to that at their end: no dearer anywhere between, as
    the price is concave."""
    first, last = stretches[0], stretches[-1]
    if len(stretches) == 1 or last.high <= first.low:
        return last
    slope = (last.at(last.high) - first.at(first.low)) / (last.high - first.low)
    return Stretch(first.low, last.high, first.at(first.low) - slope * first.low, slope, tuple(stretches))


def branches_of(table: Table, limits: Limits) -> list[Branch]:
    """All combinations of the sites' stretches; where they are too many, the sites with the least at stake begin with
    their chord, which is parted where the bound hangs on it."""
    by_site = {
        limit.owner: stretches_of(table, limit.owner, limit.capacity)
        for limit in limits.limits
        if limit.kind == "reading"
    }
    # What the chord may miss is at most the fixed price of the last stretch.
    order = sorted(by_site, key=lambda s: -by_site[s][-1].fixed)
    count, choices = 1, {}
    for s in order:
        stretches = by_site[s]
        if count * len(stretches) > MOST_BRANCHES:
            stretches = [chord(stretches)]
        count *= len(stretches)
        choices[s] = stretches
    combinations = itertools.product(*choices.values())
    return [Branch(dict(zip(choices, combination, strict=True)), {}) for combination in combinations]
