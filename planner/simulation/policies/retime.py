"""Plans are made in slots, and the world has none: the times of a plan made exact.

Which job runs where, in which mode and after which other stays as it was planned; when each stretch begins and ends is
chosen anew by a linear programme in continuous time, at the lowest cost:

    work of a job               sum over its stretches (end - start - idle) / duration  =  what is left of it
    one after the other         end <= start of what comes next: of the same job, and on each GPU (where two shares
                                meet in the plan they may meet), and of jobs that read at one site, if that costs
                                anything or is limited, where they do not meet in the plan
    nodes                       on <= start, end <= off of each stretch on a node that stays on
    tardiness                   late >= end of the last stretch - due date

`idle` is the time in which a stretch does no work: a restart, and a boot. So a job that would be complete before the
end of its last slot goes on in its cheap mode for longer, one that is due within a slot is complete by then, and
restarts take the time that they take. A price that changes with time holds a start or an end between the two changes
around its planned time; rent is not more increments than planned; windows in which nodes are closed stay free; what a
completion is worth by steps or curves, or a deadline, keeps it from being later than planned. Where that leaves no way
out, as when a restart had no time in the plan, all but the windows is given up.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations, pairwise
from typing import Any

import highspy
import numpy as np

from models.domain import Instance
from models.grid import Meter, closed_nodes
from planner.engines.highs import new_highs
from planner.simulation.policies.menu import OVERDUE_S
from planner.simulation.policies.timetable import EDGE_S
from planner.simulation.state import Assignment, JobState, State

EARLY = 1e-5
"""Of the highest rate of costs, what the time of every completion is taken to cost besides: of equal ways the earlier
one. Less would be within the solver's tolerance."""

Node = tuple[int, int]


def retimed(state: State, assignments: Sequence[Assignment], *, is_free: bool = True) -> tuple[Assignment, ...]:
    """The same assignments at the times that cost least, all ends stated, by the estimates; as they were where no such
    times exist. Starts at this moment stay there. `is_free`: what is read neither costs anything nor meets a limit."""
    for strict in (True, False):
        programme = _Programme(state, assignments, strict=strict, is_free=is_free)
        times = programme.solve()
        if times is not None:
            return _applied(state, assignments, times)
    return tuple(replace(a, end_s=end) for a, (_, end) in zip(assignments, programme.planned, strict=True))


def opened(assignments: Iterable[Assignment]) -> tuple[Assignment, ...]:
    """The assignments, in order of time for each job, with the last one of each going on until it completes."""
    by_job: dict[int, list[Assignment]] = defaultdict(list)
    for a in assignments:
        by_job[a.job].append(a)
    return tuple(a for own in by_job.values() for a in (*own[:-1], replace(own[-1], end_s=None)))


class _Programme:
    """The linear programme. Columns: start and end of each assignment, on and off of each group of stretches for which
    a node stays on, tardiness of each job. Times in seconds from now."""

    def __init__(self, state: State, assignments: Sequence[Assignment], *, strict: bool, is_free: bool) -> None:
        self.state, self.assignments, self.strict, self.is_free = state, assignments, strict, is_free
        self.jobs = {job.job: job for job in state.jobs}
        self.lower: list[float] = []
        self.upper: list[float] = []
        self.cost: list[float] = []
        self.rows: list[tuple[list[int], list[float], float, float]] = []
        self.prices = _Prices(state.instance)
        self.planned = [(a.start_s, math.inf if a.end_s is None else a.end_s) for a in assignments]
        self.by_job: dict[int, list[int]] = defaultdict(list)
        for k in sorted(range(len(assignments)), key=lambda k: assignments[k].start_s):
            self.by_job[assignments[k].job].append(k)
        self.left = {j: self._left(own) for j, own in self.by_job.items()}
        self.leaves = [end for _, end in self.planned]
        self.idle = self._idle_times()
        self._close_ends()
        self._stretches()
        self._sequences()
        self._work()
        self._nodes()

    # --- what is known of the plan ---------------------------------------------------------------------------

    def _left(self, own: list[int]) -> float:
        """Part of a job's work that is left: if it has outlived its estimate a little, as in the plan."""
        first = self.assignments[own[0]]
        job = self.jobs[first.job]
        least_s = OVERDUE_S if job.has_run else 0.0
        return max(job.remaining, least_s / first.allocation.mode.duration_s)

    def _idle_times(self) -> list[float]:
        """Seconds of each stretch without work."""
        idle = [0.0] * len(self.assignments)
        first_on: dict[Node, float] = {}
        for a in self.assignments:
            for node in _nodes(a):
                first_on[node] = min(first_on.get(node, math.inf), a.start_s)
        for j, own in self.by_job.items():
            job = self.jobs[j]
            for place, k in enumerate(own):
                a = self.assignments[k]
                is_restart = job.has_run if place == 0 else True
                if is_restart and not (place == 0 and self._stays(job, a)):
                    idle[k] += self.state.restart_s
                boots = any(node not in self.state.on_since_s and first_on[node] == a.start_s for node in _nodes(a))
                if boots:
                    idle[k] += self.state.instance.pools[a.allocation.mode.pool].boot_time
        return idle

    def _stays(self, job: JobState, a: Assignment) -> bool:
        return a.allocation == job.running and a.start_s <= self.state.now_s + EDGE_S

    def _close_ends(self) -> None:
        """The end of a last stretch, which runs until the job completes, by the estimates; and when the plan, in which
        a change takes no time, has it ended."""
        for j, own in self.by_job.items():
            left = left_in_plan = self.left[j]
            last = own[-1]
            for k in own[:-1]:
                start, end = self.planned[k]
                rate = 1.0 / self.assignments[k].allocation.mode.duration_s
                left -= max(0.0, end - start - self.idle[k]) * rate
                left_in_plan -= (end - start) * rate
            start, seconds = self.planned[last][0], self.assignments[last].allocation.mode.duration_s
            self.leaves[last] = start + max(0.0, left_in_plan) * seconds
            self.planned[last] = (start, start + self.idle[last] + max(0.0, left) * seconds)

    # --- columns and rows --------------------------------------------------------------------------------------

    def _column(self, lower: float, upper: float, cost: float) -> int:
        self.lower.append(lower)
        self.upper.append(max(lower, upper))
        self.cost.append(cost)
        return len(self.cost) - 1

    def _at_least(self, later: int, earlier: int, by: float = 0.0) -> None:
        self.rows.append(([later, earlier], [1.0, -1.0], by, math.inf))

    def _stretches(self) -> None:
        """Start and end of each, at what their energy costs around the planned times."""
        now_s = self.state.now_s
        for a, (start, end) in zip(self.assignments, self.planned, strict=True):
            mode = a.allocation.mode
            is_now = start <= now_s + EDGE_S
            first, last = self._open(_nodes(a), start, end)
            for at_s, sign in ((start, -1.0), (end, 1.0)):
                low, high = self.prices.steady(mode.pool, at_s, self.strict)
                low, high = max(low, first, now_s), min(high, last)
                if sign < 0 and is_now:
                    low = high = now_s
                price = self.prices.energy(mode.pool, at_s) * mode.busy_gpus
                self._column(low - now_s, high - now_s, sign * price)
        for k in range(len(self.assignments)):
            self._at_least(2 * k + 1, 2 * k, self.idle[k])

    def _open(self, nodes: Iterable[Node], start: float, end: float) -> tuple[float, float]:
        """Between which times the nodes are open, around a stretch."""
        first, last = -math.inf, math.inf
        for p, node in nodes:
            pool = self.state.instance.pools[p]
            for window in pool.unavailable:
                if node in closed_nodes(pool, window):
                    if window.until <= start + EDGE_S:
                        first = max(first, window.until)
                    elif window.since >= end - EDGE_S:
                        last = min(last, window.since)
        return first, last

    def _sequences(self) -> None:
        """What comes after what: of a job, on a GPU, and on a node whose cores or memory count."""
        for own in self.by_job.values():
            for before, after in pairwise(own):
                self._at_least(2 * after, 2 * before + 1)
        users: dict[tuple[int, ...], list[int]] = defaultdict(list)
        for k, a in enumerate(self.assignments):
            pool = self.state.instance.pools[a.allocation.mode.pool]
            is_counted = pool.cpu_cores is not None or pool.ram is not None
            for node, place in zip(_nodes(a), a.allocation.places, strict=True):
                for gpu in place.gpus:
                    users[*node, gpu].append(k)
                if is_counted:
                    users[node].append(k)
            if a.allocation.mode.dataset is not None and not self.is_free:
                users[(self.state.instance.site_index[pool.site],)].append(k)
        pairs: set[tuple[int, int]] = set()
        for key, found in users.items():
            order = sorted(found, key=lambda k: (self.planned[k], k))
            pairs.update(self._orders(order, all_may_meet=len(key) < 3))
        for before, after in sorted(pairs):
            if self.assignments[before].job != self.assignments[after].job:
                self._at_least(2 * after, 2 * before + 1)

    def _orders(self, users: list[int], *, all_may_meet: bool) -> Iterator[tuple[int, int]]:
        """Pairs of users of one thing, in order, that may not meet: on a GPU two of which one needs the whole, and
        everywhere those that do not meet in the plan."""
        for before, after in combinations(users, 2):
            are_shares = all(self.assignments[k].allocation.mode.is_small for k in (before, after))
            apart = self.leaves[before] <= self.planned[after][0] + EDGE_S
            if apart or not (are_shares or all_may_meet):
                yield before, after

    def _work(self) -> None:
        """What is left of each job is done, and how late it may be."""
        instance, now_s = self.state.instance, self.state.now_s
        for j, own in self.by_job.items():
            columns, values, done = [], [], self.left[j]
            for k in own:
                rate = 1.0 / self.assignments[k].allocation.mode.duration_s
                columns += [2 * k + 1, 2 * k]
                values += [rate, -rate]
                done += rate * self.idle[k]
            # In parts of the longest mode, so that the coefficients are about one.
            scale = 1.0 / max(values)
            self.rows.append((columns, [scale * v for v in values], scale * done, scale * done))
            record, end = instance.jobs[j], 2 * own[-1] + 1
            planned = self.planned[own[-1]][1] - now_s
            if record.due is not None and record.weight > 0:
                late = self._column(0.0, math.inf, record.weight)
                self.rows.append(([late, end], [1.0, -1.0], now_s - record.due, math.inf))
            if record.utility is not None or record.value:
                self.upper[end] = min(self.upper[end], max(planned, self.lower[end]))
            elif record.deadline is not None and self.strict:
                self.upper[end] = min(self.upper[end], max(record.deadline - now_s, planned, self.lower[end]))

    def _nodes(self) -> None:
        """Nodes that stay on from one stretch to the next, and what that costs."""
        users: dict[Node, list[int]] = defaultdict(list)
        for k, a in enumerate(self.assignments):
            for node in _nodes(a):
                users[node].append(k)
        for node, found in sorted(users.items()):
            pool = self.state.instance.pools[node[0]]
            if pool.price == 0.0:
                continue
            found.sort(key=lambda k: self.planned[k])
            groups: list[list[int]] = [[found[0]]]
            for k in found[1:]:
                gap = self.planned[k][0] - max(self.planned[i][1] for i in groups[-1])
                if gap > max(EDGE_S, pool.billing_increment):
                    groups.append([])
                groups[-1].append(k)
            for number, group in enumerate(groups):
                self._group(node, group, is_first=number == 0)

    def _group(self, node: Node, group: list[int], *, is_first: bool) -> None:
        now_s, pool = self.state.now_s, self.state.instance.pools[node[0]]
        start = min(self.planned[k][0] for k in group)
        end = max(self.planned[k][1] for k in group)
        since = self.state.on_since_s.get(node, math.inf) if is_first else math.inf
        if pool.billing_increment > 0:
            begin = min(since, start)
            paid = max(1, math.ceil((end - begin) / pool.billing_increment - 1e-9)) * pool.billing_increment
            if not self.strict:
                return
            if begin < now_s:
                for k in group:
                    self.upper[2 * k + 1] = min(self.upper[2 * k + 1], max(begin + paid - now_s, self.lower[2 * k + 1]))
                return
            on = self._column(0.0, math.inf, 0.0)
            for k in group:
                self._at_least(2 * k, on)
                self.rows.append(([on, 2 * k + 1], [1.0, -1.0], -paid, math.inf))
            return
        low, high = self.prices.steady_node(node[0], end, self.strict)
        off = self._column(low - now_s, high - now_s, self.prices.node(node[0], end))
        for k in group:
            self._at_least(off, 2 * k + 1)
        if since > now_s:
            low, high = self.prices.steady_node(node[0], start, self.strict)
            on = self._column(max(0.0, low - now_s), high - now_s, -self.prices.node(node[0], start))
            for k in group:
                self._at_least(2 * k, on)

    # --- the answer ------------------------------------------------------------------------------------------

    def solve(self) -> list[tuple[float, float]] | None:
        """Start and end of each assignment; None where there is no way."""
        if not self.assignments:
            return []
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = len(self.cost), len(self.rows)
        cost = np.array(self.cost) / max(1e-12, *map(abs, self.cost))
        cost[[2 * own[-1] + 1 for own in self.by_job.values()]] += EARLY
        lp.col_cost_ = cost
        lp.col_lower_, lp.col_upper_ = np.array(self.lower), np.array(self.upper)
        lp.row_lower_ = np.array([row[2] for row in self.rows])
        lp.row_upper_ = np.array([row[3] for row in self.rows])
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.start_ = np.cumsum([0, *(len(row[0]) for row in self.rows)]).astype(np.int32)
        lp.a_matrix_.index_ = np.array([c for row in self.rows for c in row[0]], dtype=np.int32)
        lp.a_matrix_.value_ = np.array([v for row in self.rows for v in row[1]])
        highs: Any = new_highs()
        highs.setOptionValue("threads", 1)
        highs.passModel(lp)
        highs.run()
        if highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return None
        values = np.array(highs.getSolution().col_value) + self.state.now_s
        return [(float(values[2 * k]), float(values[2 * k + 1])) for k in range(len(self.assignments))]


class _Prices:
    """Money a second around a time, and between which times it is so."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self._nodes = [Meter(instance, pool.price) for pool in instance.pools]
        self._energy = [
            Meter(instance, instance.sites[instance.site_index[pool.site]].energy_price) for pool in instance.pools
        ]

    def node(self, p: int, at_s: float) -> float:
        """Of a node of a pool that is on, an hour."""
        return self._nodes[p].cost(at_s, at_s + 1.0) * 3600.0

    def energy(self, p: int, at_s: float) -> float:
        """Of the energy of a busy GPU of a pool, an hour."""
        return self._energy[p].cost(at_s, at_s + 1.0) * 3600.0 * self._instance.pools[p].gpu_power

    def steady_node(self, p: int, at_s: float, strict: bool) -> tuple[float, float]:
        """Between which times the price of a node is as it is then."""
        return self._nodes[p].piece(at_s) if strict else (-math.inf, math.inf)

    def steady(self, p: int, at_s: float, strict: bool) -> tuple[float, float]:
        """Between which times both prices are."""
        pieces = [meter.piece(at_s) for meter in (self._nodes[p], self._energy[p])] if strict else []
        return max((low for low, _ in pieces), default=-math.inf), min((high for _, high in pieces), default=math.inf)


def _nodes(a: Assignment) -> list[Node]:
    return [(a.allocation.mode.pool, place.node) for place in a.allocation.places]


def _applied(
    state: State, assignments: Sequence[Assignment], times: list[tuple[float, float]]
) -> tuple[Assignment, ...]:
    """The assignments at their times, without those that have become nothing; every job keeps one."""
    made: dict[int, list[Assignment]] = defaultdict(list)
    for k in sorted(range(len(assignments)), key=lambda k: (times[k], assignments[k].start_s, k)):
        start, end = times[k]
        begin = state.now_s if start <= state.now_s + EDGE_S else start
        made[assignments[k].job].append(replace(assignments[k], start_s=begin, end_s=end))
    return tuple(
        a for own in made.values() for a in [a for a in own if (a.end_s or 0.0) - a.start_s > EDGE_S] or own[-1:]
    )
