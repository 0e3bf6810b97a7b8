"""Which jobs to take off the nodes and put back anew: the moves of the search, each a small object.

A move is the jobs that are taken off, in the order in which they are put back. What else it changes for as long as
it is tried (a dataset that counts as cached, bandwidth that counts as bought) it sets on the occupancy; the search
takes that back.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping
from typing import Protocol

import numpy as np

from planner.engines.fast.guide import Guide
from planner.engines.fast.occupancy import Occupancy
from planner.engines.fast.table import Rows

# Large enough to rearrange some nodes, small enough to be tried thousands of times a second.
FEWEST, MOST = 2, 12
LONGER = 3
"""Times as long as a job are looked at at most for others to share its nodes."""


class Operator(Protocol):
    """Chooses jobs to take off and put back."""

    def choose(self, occupancy: Occupancy, draw: random.Random) -> list[int]:
        """Jobs in the order in which they are to be put back; none where there is nothing to try."""


class Situation:
    """Where the jobs are now: begin, end and pool of each, -1 where it does not run; of one that changes the last
    pool."""

    def __init__(self, occupancy: Occupancy):
        rows, row = occupancy.table.rows, occupancy.row
        self._all = occupancy.segments()
        self._pools, self._ends = rows.pool[self._all.row], self._all.slot + self._all.length
        runs = row >= 0
        self.pool = np.where(runs, rows.pool[row], -1)
        self.begin = np.where(runs, occupancy.slot, -1)
        self.end = np.where(runs, occupancy.slot + occupancy.length, -1)
        earlier = slice(int(runs.sum()), None)  # segments of jobs that change
        np.minimum.at(self.begin, self._all.job[earlier], self._all.slot[earlier])

    def during(self, p: int, begin: int, end: int) -> np.ndarray:
        """Jobs that run in a pool in some of the slots [begin, end)."""
        return np.unique(self._all.job[(self._pools == p) & (self._all.slot < end) & (self._ends > begin)])


def wish(guide: Guide, regret: np.ndarray, draw: random.Random) -> tuple[int, int, int] | None:
    """A job, the more it regrets its place the more likely, with row and slot of one of its best starts, the best most
    often; None where none regrets anything."""
    total = float(regret.sum())
    if total <= 0:
        return None
    j = int(np.searchsorted(np.cumsum(regret), draw.random() * total))
    listed = guide.listed(j)
    if listed.start == listed.stop:
        return None
    k = min(listed.stop - 1, listed.start + int(draw.expovariate(0.1)))
    return j, int(guide.row[k]), int(guide.slot[k])


def aimed(occupancy: Occupancy, starts: Mapping[int, tuple[int, int]]) -> list[int]:
    """Aim jobs at starts (row, slot); the jobs by these, the largest first. A run made of pieces is no start: its job
    goes where it likes."""
    rows = occupancy.table.rows
    jobs = sorted(starts, key=lambda j: (starts[j][1], -rows.width[starts[j][0]], j))
    whole = [j for j in jobs if rows.work[starts[j][0]] == 0]
    occupancy.aim(whole, [starts[j][0] for j in whole], [starts[j][1] for j in whole])
    return jobs


class Neighbours:
    """A job and those that run nearest to it in time, those of its pool first."""

    def choose(self, occupancy: Occupancy, draw: random.Random) -> list[int]:
        """Jobs in random order."""
        now = Situation(occupancy)
        number = len(now.pool)
        seed = draw.randrange(number)
        middle = (now.begin + now.end) / 2
        distance = np.abs(middle - middle[seed])
        distance = distance + (now.pool != now.pool[seed]) * draw.uniform(0, occupancy.table.num_slots / 3)
        noise = np.random.Generator(np.random.PCG64(draw.getrandbits(63))).random(number)
        count = min(number, draw.randint(FEWEST, MOST))
        # Not just the nearest: each is passed over now and then.
        near = np.argsort(distance / (0.05 + noise), kind="stable")[:count].tolist()
        if seed not in near:
            near[-1] = seed
        draw.shuffle(near)
        return near


class Window:
    """What runs in a pool about some time, the jobs that are badly placed there last to be put back."""

    def choose(self, occupancy: Occupancy, draw: random.Random) -> list[int]:
        """Jobs by size, or in random order."""
        now = Situation(occupancy)
        running = np.flatnonzero(now.pool >= 0)
        if not len(running):
            return []
        seed = int(running[draw.randrange(len(running))])
        p, at = int(now.pool[seed]), draw.randrange(int(now.begin[seed]), int(now.end[seed]))
        there = now.during(p, at, at + 1)
        jobs = draw.sample(there.tolist(), min(len(there), draw.randint(FEWEST, MOST)))
        draw.shuffle(jobs)
        return jobs


class Ejection:
    """A job that would rather be elsewhere, and what stands in its way there."""

    def __init__(self, guide: Guide):
        self.guide = guide

    def choose(self, occupancy: Occupancy, draw: random.Random) -> list[int]:
        """The job first, then those that it drives out."""
        regret = self.guide.regret(occupancy)
        wanted = wish(self.guide, regret, draw)
        if wanted is None:
            return []
        j, r, begin = wanted
        rows = occupancy.table.rows
        there = Situation(occupancy).during(int(rows.pool[r]), begin, begin + int(rows.duration[r]))
        others = [i for i in there.tolist() if i != j]
        driven = draw.sample(others, min(len(others), draw.randint(1, MOST)))
        if draw.random() < 0.5:
            driven.sort(key=lambda i: -regret[i])
        return [j, *driven]


class Regrets:
    """Several jobs that would rather be elsewhere, wherever they are."""

    def __init__(self, guide: Guide):
        self.guide = guide

    def choose(self, occupancy: Occupancy, draw: random.Random) -> list[int]:
        """The jobs with the most to gain first."""
        regret = self.guide.regret(occupancy)
        some = np.flatnonzero(regret > 0)
        if not len(some):
            return []
        count = min(len(some), draw.randint(FEWEST, MOST))
        key = np.array([draw.random() for _ in range(len(some))]) ** (1.0 / regret[some])
        return [int(j) for j in some[np.argsort(-key, kind="stable")[:count]]]


class Packing:
    """What runs in a pool about some time packed onto its nodes anew, jobs staying at their starts where they can:
    gaps of several nodes become one. Now and then with one more that would rather be there.

    In the order of their starts, the largest first, whole nodes always fit (they are intervals), and small runs fill
    nodes up before another is begun.
    """

    def __init__(self, guide: Guide):
        self.guide = guide

    def choose(self, occupancy: Occupancy, draw: random.Random) -> list[int]:
        """Jobs by their start."""
        now = Situation(occupancy)
        rows = occupancy.table.rows
        running = np.flatnonzero(now.pool >= 0)
        if not len(running):
            return []
        seed = int(running[draw.randrange(len(running))])
        row, slot = int(occupancy.row[seed]), int(occupancy.slot[seed])
        wanted = wish(self.guide, self.guide.regret(occupancy), draw) if draw.random() < 0.7 else None
        if wanted is not None:
            seed, row, slot = wanted
        there = now.during(int(rows.pool[row]), slot, slot + int(rows.duration[row])).tolist()
        starts = {j: (int(occupancy.row[j]), int(occupancy.slot[j])) for j in there}
        return aimed(occupancy, starts | {seed: (row, slot)})


class Gathering:
    """Jobs that would rather be in a pool about some time, as many as the nodes of one of them have room for, put there
    together.

    One by one none would pay for a node that several of them fill.
    """

    def __init__(self, guide: Guide):
        self.guide = guide

    def choose(self, occupancy: Occupancy, draw: random.Random) -> list[int]:
        """Jobs by their start."""
        rows, pools = occupancy.table.rows, occupancy.table.pools
        regret = self.guide.regret(occupancy)
        wanted = wish(self.guide, regret, draw)
        if wanted is None:
            return []
        seed, r, slot = wanted
        p, duration = int(rows.pool[r]), int(rows.duration[r])
        stretch = 1.0 if draw.random() < 0.5 else draw.uniform(1, LONGER)
        length = max(int(duration * stretch), int(pools.block[p]))
        begin = slot - draw.randint(0, length - duration)
        room = np.full(length, pools.node_slices[p] * rows.num_nodes[r])
        room[slot - begin : slot - begin + duration] -= rows.width[r]
        starts = {seed: (r, slot)}
        for j in draw.sample(range(len(regret)), min(len(regret), 4 * MOST)):
            if j == seed or regret[j] <= 0:
                continue
            found = self._start_of(j, rows, p, begin, room)
            if found is not None:
                starts[j] = found
        return aimed(occupancy, starts)

    def _start_of(self, j: int, rows: Rows, p: int, begin: int, room: np.ndarray) -> tuple[int, int] | None:
        """The cheapest start of a job in a pool for which there is room, slices from the slot `begin` on, which it then
        takes; None where there is none."""
        listed = self.guide.listed(j)
        row, first = self.guide.row[listed], self.guide.slot[listed] - begin
        after = first + rows.duration[row]
        for k in np.flatnonzero((rows.pool[row] == p) & (first >= 0) & (after <= len(room))).tolist():
            slots, width = slice(int(first[k]), int(after[k])), rows.width[row[k]]
            if room[slots].min() >= width:
                room[slots] -= width
                return int(row[k]), int(first[k]) + begin
        return None


class Exchange:
    """Some of what runs, here and there or all on a node, for some of what does not: of use where a budget has room for
    one or the other."""

    def __init__(self, guide: Guide):
        self.guide = guide

    def choose(self, occupancy: Occupancy, draw: random.Random) -> list[int]:
        """Jobs in random order, or those that do not run first; mostly with one at any of its starts, however dear: it
        takes what another leaves."""
        running, others = np.flatnonzero(occupancy.row >= 0).tolist(), np.flatnonzero(occupancy.row < 0).tolist()
        if not running or not others:
            return []
        if draw.random() < 0.5:
            left = draw.sample(running, min(len(running), draw.randint(1, 4)))
        else:
            node = int(draw.choice(occupancy.nodes_of(draw.choice(running)).tolist()))
            left = [j for j in running if node in occupancy.nodes_of(j)]
            left = draw.sample(left, min(len(left), MOST))
        taken = draw.sample(others, min(len(others), draw.randint(1, MOST)))
        jobs = [*left, *taken]
        draw.shuffle(jobs)
        if draw.random() < 0.5:
            jobs.sort(key=lambda j: j in left)
        aimed_at = draw.choice(jobs)
        listed = self.guide.listed(aimed_at)
        if draw.random() < 0.9 and listed.start < listed.stop:
            k = draw.randrange(listed.start, listed.stop)
            occupancy.aim([aimed_at], [int(self.guide.row[k])], [int(self.guide.slot[k])])
        return jobs


class Caching:
    """The readers of a dataset, as if it were cached somewhere already, or nowhere.

    One by one no reader would pay for a cache that others would use too, or give up one that they keep.
    """

    def __init__(self, occupancy: Occupancy):
        rows = occupancy.table.rows
        self.levels: dict[int, set[tuple[int, int]]] = defaultdict(set)
        self.readers: dict[int, set[int]] = defaultdict(set)
        for r in np.flatnonzero(rows.dataset >= 0).tolist():
            d = int(rows.dataset[r])
            self.readers[d].add(int(rows.job[r]))
            if rows.level[r] > 0:
                self.levels[d].add((int(rows.site[r]), int(rows.level[r])))

    def choose(self, occupancy: Occupancy, draw: random.Random) -> list[int]:
        """Readers in random order."""
        if not self.levels:
            return []
        d = draw.choice(sorted(self.levels))
        occupancy.allowed_level[:, d] = 0
        if draw.random() < 0.6:
            s, level = draw.choice(sorted(self.levels[d]))
            occupancy.allowed_level[s, d] = level
            occupancy.cache_is_paid[s, d] = True
        jobs = sorted(self.readers[d])
        jobs = draw.sample(jobs, min(len(jobs), 4 * MOST))
        draw.shuffle(jobs)
        return jobs


class Bandwidth:
    """Readers at a site, as if more bandwidth were bought already, or less could be had."""

    def choose(self, occupancy: Occupancy, draw: random.Random) -> list[int]:
        """Those that read when most is read, in random order."""
        rows = occupancy.table.rows
        row = occupancy.row
        reads = (row >= 0) & (rows.rate[row] > 0)
        if not reads.any():
            return []
        s = int(rows.site[row[draw.choice(np.flatnonzero(reads).tolist())]])
        peak = float(occupancy.peak[s])
        here = np.flatnonzero(reads & (rows.site[row] == s))
        if draw.random() < 0.5:
            occupancy.bought[s] = peak * draw.uniform(1.0, 1.5)
        else:
            occupancy.limit[s] = peak * draw.uniform(0.5, 1.0)
            usage = occupancy.state.bandwidth[s]
            at = int(np.argmax(usage))
            now = Situation(occupancy)
            here = here[(now.begin[here] <= at) & (now.end[here] > at)]
        jobs = draw.sample(here.tolist(), min(len(here), 2 * MOST))
        draw.shuffle(jobs)
        return jobs


def operators_of(occupancy: Occupancy, guide: Guide) -> list[tuple[Operator, float]]:
    """The moves of the search, each with how often it is tried."""
    found: list[tuple[Operator, float]] = [
        (Neighbours(), 1.0),
        (Window(), 1.0),
        (Ejection(guide), 1.0),
        (Regrets(guide), 0.5),
        (Packing(guide), 0.5),
        (Gathering(guide), 0.3),
    ]
    caching = Caching(occupancy)
    if caching.levels:
        found.append((caching, 0.3))
    if caching.readers:
        found.append((Bandwidth(), 0.3))
    return found
