"""The fast engine: a bound by ascent and column generation, plans by construction, rounding, and ruin and recreate.

    prices      ascent on the Lagrangian, then the LP where it is small enough to pay: bound and prices
    plan        jobs in several orders, and the LP rounded, on nodes
    search      some jobs off and on again, under the prices, until the gap is proven or the time is over

At every point the best plan and the best bound are known.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from models.reductions import reduce_starts
from models.starts import has_impossible_job
from planner.engines import clock
from planner.engines.assemble import BOUND_TOLERANCE
from planner.engines.fallback import solve_by_list
from planner.engines.fast.certificate import Certificate
from planner.engines.fast.construct import best_construction, place_starts, round_weights
from planner.engines.fast.guide import Guide
from planner.engines.fast.improve import Improve
from planner.engines.fast.occupancy import Occupancy
from planner.engines.fast.operators import operators_of
from planner.engines.fast.prover import Prover
from planner.engines.fast.shares import Shares
from planner.engines.fast.table import Table
from planner.engines.schedule import Schedule, Step
from planner.engines.search import ProvenInfeasible, Search

MOVES_PER_JOB = 60
"""Moves of a search that no limit ends."""
PATIENCE = 80
"""A search that has time left but nothing to prove ends after so many moves without a better plan, times the jobs
squared: seconds for five jobs, minutes for fifty."""
EPOCH, SPELL, BREATH, TRIAL = 2000, 400, 60, 100
"""Moves from one warmth to the lowest; while there is more to prove; before there is an LP to go down from; and from a
rounded LP, which is tried where it is no dearer than so many times the best plan:"""
NEAR = 1.03
MANY_JOBS, FEW_TIMES = 200, 4
"""Up to which plans are constructed anew the first times that the prices change."""
FIRST_PART, FIRST_PART_OF_MANY = 0.3, 0.1
"""Of the time, for constructing the first plan; where jobs are many the LP rounded makes a better one."""
STEPS, MOST_STEPS = 8, 40
"""Of the proof between two epochs of the search; at most where the time is divided between both."""
DIVE_EVERY = 6
"""Epochs of the search from one way down from the LP to the next."""
DIVE_PART = 0.5
"""Part of the time left for a way down from the LP."""
WARMTH, COLDEST = 0.001, 2e-6


class Fast:
    """The engine over one search; `improve` may be called again for more."""

    def __init__(self, search: Search):
        self.search = search
        reduced = reduce_starts(search.starts)
        if has_impossible_job(reduced):
            raise ProvenInfeasible(frozenset())
        self.table = Table.of(reduced)
        self.occupancy = Occupancy(self.table, search.limits.seed)
        self.certificate: Certificate | None = None
        self.guide: Guide | None = None
        self.prover: Prover | None = None
        self.guided = 0
        self.last_found = 0
        self.moves = 0
        self.epochs = 0
        self.dives = 0
        self.next_dive = 0
        self.shares = Shares()

    def solve(self, moves: int | None = None, until: Callable[[], bool] = lambda: False) -> None:
        """A first bound and plan; then proof and search by turns, for so many moves, until something holds, or as long
        as the limits allow."""
        search = self.search
        if not len(self.table.rows.job):
            solve_by_list(search)
            return
        search.report("prices")
        self.certificate = Certificate(self.table)
        self.prover = Prover(self.certificate, search)
        search.raise_bound(self.certificate.bound)
        self._first_plan()
        if search.schedule is None:
            solve_by_list(search)
            if search.schedule is None:
                return
            self._become(search.schedule)
        self.improve(moves, until)

    def _note_bound(self, phase: str) -> None:
        assert self.certificate is not None
        bound = self.certificate.bound
        # Both are sums of many numbers: what is above a plan by rounding alone is that plan's cost.
        if self.search.cost is not None and self.search.cost < bound <= self.search.cost * (1 + BOUND_TOLERANCE):
            bound = self.search.cost
        self.search.raise_bound(bound)
        self.search.report(phase)

    # Plans

    def _guide(self) -> Guide:
        assert self.certificate is not None
        self.guide = Guide(self.certificate.pricing, self.certificate.lowest.prices)
        self.guided += 1
        self.occupancy.set_prices(self.guide.priced)
        return self.guide

    def _first_plan(self) -> None:
        """Any plan at all, before anything that takes long; the one to begin with where that is better."""
        known = self.search.schedule
        part = FIRST_PART if self.table.num_jobs <= MANY_JOBS else FIRST_PART_OF_MANY
        best = best_construction(self.occupancy, self._guide(), lambda: self.search.has_spent(part))
        if best is not None:
            self.occupancy.restore(best)
            self._offer("construct")
        if known is not None and self.search.schedule is known:
            self._become(known)

    def _follow(self) -> None:
        """Go on under the prices of the branch with the lowest bound, from its LP rounded where that is better."""
        assert self.prover is not None
        guide, weights = self._guide(), self.prover.weights
        self.prover.weights = {}
        before = self.occupancy.snapshot()
        best = before
        if self.guided <= (FEW_TIMES if self.table.num_jobs <= MANY_JOBS else 1):
            found = best_construction(self.occupancy, guide, lambda: self.search.has_spent(0.5))
            if found is not None and found.cost < best.cost:
                best = found
        if weights and round_weights(self.occupancy, guide, weights):
            if self.occupancy.cost < best.cost * NEAR:
                self._try(TRIAL, WARMTH, self.guided)
            if self.occupancy.cost < best.cost:
                best = self.occupancy.snapshot()
        self.occupancy.restore(best)
        self._offer("rounded")

    def _dive(self) -> None:
        """Down from the LP: all jobs the first time, later some that run about one time, the others as they are."""
        assert self.prover is not None
        assert self.guide is not None
        left = self.search.left_s()
        before, row, slot = self.occupancy.snapshot(), self.occupancy.row, self.occupancy.slot
        self.occupancy.drop(self._some() if self.dives else range(self.table.num_jobs))
        settled = {j: (int(row[j]), int(slot[j])) for j in np.flatnonzero(row >= 0).tolist()}
        starts = self.prover.dive(settled, None if left is None else left * DIVE_PART)
        place_starts(self.occupancy, self.guide, starts)
        if not self.occupancy.missing:
            self._try(TRIAL if self.dives else max(TRIAL, 4 * self.table.num_jobs), WARMTH / 10, self.dives)
        self.dives += 1
        if self.occupancy.missing or self.occupancy.cost >= before.cost:
            self.occupancy.restore(before)
        self._offer("dive")

    def _try(self, moves: int, warmth: float, seed: int) -> None:
        """A short search from a plan that was made otherwise."""
        loop = self._loop(seed)
        loop.run(moves, warmth, COLDEST, stop=self.search.is_out_of_time)
        self.moves += loop.moves

    def _some(self) -> list[int]:
        """Jobs that run about one time, a sixth of all; none where no job runs."""
        draw = random.Random(self.search.limits.seed + 31 * self.dives)
        row, slot, rows = self.occupancy.row, self.occupancy.slot, self.table.rows
        runs = np.flatnonzero(row >= 0)
        if not len(runs):
            return []
        seed = int(draw.choice(runs.tolist()))
        middle = slot + rows.duration[row] / 2
        distance = np.abs(middle - middle[seed]) * (0.5 + np.array([draw.random() for _ in range(len(row))]))
        order = runs[np.argsort(distance[runs], kind="stable")]
        # What runs after a job that is taken off is taken off too.
        return self.table.with_successors(order[: max(10, len(runs) // 6)].tolist())

    def _become(self, schedule: Schedule) -> bool:
        """Go on from a schedule over other rows of the same problem; whether they are all known here."""
        starts = self.table.starts
        index = {starts.identity(r): r for r in range(len(starts.rows))}
        same = Schedule(starts)
        for j, step in schedule.chosen.items():
            if len(step.earlier) > self.table.jobs.changes[j]:
                return False
            segments: list[Step] = []
            for segment in step.segments:
                r = index.get(schedule.starts.identity(segment.row))
                slots = np.arange(segment.slot, segment.slot + (segment.length or 1))
                if r is None or not np.isin(slots, starts.rows[r].slots).all():
                    return False
                segments.append(replace(segment, row=r))
            same.put(j, replace(segments[-1], earlier=tuple(segments[:-1])))
        self.occupancy.load(same)
        return True

    def _offer(self, phase: str) -> None:
        if self.occupancy.missing:
            return
        cost = self.search.cost
        if cost is None or self.occupancy.cost < cost * (1 - 1e-12):
            self.search.offer(self.occupancy.to_schedule(), "fast")
            if self.search.cost != cost:  # under power laws a plan may be dearer than it is reckoned here
                self.last_found = self.moves
                self.search.report(phase)

    def _loop(self, seed: int) -> Improve:
        assert self.guide is not None
        return Improve(self.occupancy, operators_of(self.occupancy, self.guide), self.search.limits.seed + seed)

    def improve(self, moves: int | None = None, until: Callable[[], bool] = lambda: False) -> None:
        """Proof and search by turns: so many moves, until something holds, or as long as the limits allow, or
        `MOVES_PER_JOB`."""
        search, limits = self.search, self.search.limits
        if moves is None:
            moves = limits.work
        if moves is None and limits.time_limit_s is None:
            moves = MOVES_PER_JOB * self.table.num_jobs
        assert self.prover is not None
        last = None if moves is None else self.moves + moves
        loop: Improve | None = None
        try:
            while (last is None or self.moves < last) and not (
                search.is_over() or self._is_stuck() or self._is_settled() or until()
            ):
                self._prove()
                if search.is_over():
                    break
                began, cost = clock.now(), self.occupancy.cost
                if self.prover.has_news():
                    self._follow()
                if self.prover.can_dive() and (not self.dives or self.epochs >= self.next_dive):
                    self._dive()
                    self.next_dive = self.epochs + DIVE_EVERY
                    if search.is_over():
                        break
                count = EPOCH if self.prover.is_done else SPELL if self.dives else BREATH
                if last is not None:
                    count = min(count, max(1, last - self.moves))
                loop = self._loop(7919 * self.epochs)
                loop.run(count, WARMTH / (1 + self.epochs % 8), COLDEST, stop=self._may_stop(loop))
                self.moves += loop.moves
                self.epochs += 1
                self.shares.note_search(clock.now() - began, cost - self.occupancy.cost)
                self._offer("search")
                search.report("search")
        except KeyboardInterrupt:
            if loop is not None:
                loop.finish()
                self._offer("search")
            search.interrupted = True

    def _prove(self) -> None:
        """Some steps of the proof: a fixed number, or where time counts as long as its share says."""
        assert self.prover is not None
        is_timed = self.search.limits.time_limit_s is not None
        for k in range(MOST_STEPS if is_timed else STEPS):
            if k > 0 and is_timed and not self.shares.is_due():
                break
            began, bound = clock.now(), self.search.dual_bound or 0.0
            goes_on = self.prover.step()
            if not goes_on:
                break
            self._note_bound("proof")
            self.shares.note_proof(clock.now() - began, (self.search.dual_bound or 0.0) - bound)
            if self.search.is_over() or (not self.dives and self.prover.can_dive()):
                break

    def _is_stuck(self) -> bool:
        """Whether nothing is left to prove, and nothing better was found for long."""
        assert self.prover is not None
        return self.prover.is_done and self.moves - self.last_found > PATIENCE * self.table.num_jobs**2

    def _is_settled(self) -> bool:
        """Whether the gap asked for is reached as plans are reckoned here, and cannot be by what they pay: power laws
        cost so much more than their chords."""
        cost, bound = self.search.cost, self.search.dual_bound
        if not self.table.storage.chord_error or cost is None or bound is None or self.occupancy.missing:
            return False
        slack = max(self.search.limits.gap, BOUND_TOLERANCE) * abs(cost)
        return self.occupancy.cost - bound <= slack < cost - self.occupancy.cost

    def resume(self) -> None:
        """Go on from the best plan, whoever found it, in the time that is left."""
        search = self.search
        if self.guide is None or search.schedule is None or search.is_over():
            return
        if self._become(search.schedule):
            self.improve()

    def _may_stop(self, loop: Improve) -> Callable[[], bool]:
        search, chord_error = self.search, self.table.storage.chord_error

        def may_stop() -> bool:
            bound, cost = search.dual_bound, loop.best.cost + chord_error
            if bound is not None and cost - bound <= search.limits.gap * abs(cost):
                return True
            return search.is_out_of_time()

        return may_stop
