"""A schedule on nodes under construction: what each job does, what that takes, and the cheapest next step.

All engines and policies build on it. It is exact in what it allows; the prices by which it chooses are marginal
ones (nodes not yet paid, bandwidth beyond what is bought, a cache not yet filled).
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from models import grid
from models.starts import START_TERMS, Row, Starts
from models.storage.tariff import tariff_of
from planner.engines.timeline import PoolTimeline, Spot


@dataclass(frozen=True)
class Step:
    """A start on its nodes, and about what it adds to the cost. Of an elastic job that changes: its last segment, with
    those before it."""

    row: int
    slot: int
    spot: Spot
    cost: float
    length: int | None = None
    """Slots of the segment where the row is a piece; None: as long as the row's mode."""
    earlier: tuple[Step, ...] = ()
    """Segments before this one, in order of time."""

    @property
    def segments(self) -> tuple[Step, ...]:
        """All segments of the run."""
        return (*self.earlier, self)

    @property
    def begin(self) -> int:
        """The slot in which the run begins."""
        return self.segments[0].slot


class SiteStorage:
    """Bandwidth and cache of one site as the schedule uses them."""

    def __init__(self, starts: Starts, s: int):
        self.site = starts.instance.sites[s]
        self.used = np.zeros(starts.num_slots)
        self.hours = grid.billed_hours(starts.instance, self.site, starts.num_slots)
        self.tariff = tariff_of(self.site.storage)
        self.cap = self.tariff.cap
        self.levels: dict[int, int] = {}
        self.readers: Counter[int] = Counter()
        self.cache_free = self.site.storage.cache_capacity
        # What a search supposes while it tries something: datasets at a level whose cache counts as paid,
        # bandwidth that counts as bought, and a limit below the cap.
        self.supposed: dict[int, int] = {}
        self.bought = 0.0
        self.limit = self.cap

    def suppose_nothing(self) -> None:
        """Back to what the schedule itself pays for."""
        self.supposed, self.bought, self.limit = {}, 0.0, self.cap

    def bandwidth_cost(self, peaks: np.ndarray) -> np.ndarray:
        """P(B) for the billed hours, for several B: what a plan pays, a power law itself and not its chords."""
        return self.tariff.price(peaks) * self.hours


class Schedule:
    """Starts on nodes; `put` and `drop` keep every sum up to date."""

    def __init__(self, starts: Starts):
        self.starts, self.instance, self.num_slots = starts, starts.instance, starts.num_slots
        self.pools = [PoolTimeline(self.instance, p, self.num_slots) for p in range(len(self.instance.pools))]
        self.storage = [SiteStorage(starts, s) for s in range(len(self.instance.sites))]
        self.links = {
            (self.instance.site_index[link.source], self.instance.site_index[link.target]): (
                np.zeros(self.num_slots),
                math.inf if link.bandwidth is None else link.bandwidth,
            )
            for link in self.instance.network
        }
        self.chosen: dict[int, Step] = {}
        self._terms: dict[int, tuple[Step, dict[str, float]]] = {}

    def copy(self) -> Schedule:
        """Another schedule with the same steps."""
        other = Schedule(self.starts)
        for j, step in self.chosen.items():
            other.put(j, step)
        return other

    def terms(self, step: Step) -> dict[str, float]:
        """What a start costs by itself, by term; kept until its job takes another step."""
        row = self.starts.rows[step.row]
        known = self._terms.get(row.job)
        if known is None or known[0] is not step:
            known = self._terms[row.job] = (step, self._terms_of(step))
        return known[1]

    def _terms_of(self, step: Step) -> dict[str, float]:
        row = self.starts.rows[step.row]
        if not row.is_piece:
            one = row.only(row.slots == step.slot)
            return {name: float(values[0]) for name, values in one.terms.items()}
        found, prices = dict.fromkeys(START_TERMS, 0.0), self.starts.prices
        for segment in step.segments:
            for name, value in self.starts.rows[segment.row].stretch_terms(segment.slot, self.length(segment)).items():
                found[name] += value
        end = np.array([self.end(step)])
        tardiness, lost = prices.tardiness(row.job, end), prices.lost_value(row.job, end)
        found["tardiness"] = 0.0 if tardiness is None else float(tardiness[0])
        found["lost_value"] = 0.0 if lost is None else float(lost[0])
        found["restart"] = self.instance.jobs[row.job].restart_cost * self.changes(step)
        return found

    def changes(self, step: Step) -> int:
        """How often a job changes: at each segment after the first, and at that where it ran and is not kept."""
        first = self.starts.rows[step.segments[0].row]
        is_moved = self.instance.jobs[first.job].running is not None and not first.kept
        return len(step.earlier) + is_moved

    def length(self, step: Step) -> int:
        """Slots of a segment."""
        return self.starts.rows[step.row].duration if step.length is None else step.length

    def end(self, step: Step) -> int:
        """The slot edge at which a segment ends."""
        return step.slot + self.length(step)

    def completion(self, j: int) -> int:
        """The slot edge at which a scheduled job completes."""
        return self.end(self.chosen[j])

    def ready(self, j: int) -> int | None:
        """The slot edge at which all predecessors of a job are complete; None where one does not run."""
        before = [self.instance.job_index[name] for name in self.instance.jobs[j].after]
        if any(i not in self.chosen for i in before):
            return None
        return max((self.completion(i) for i in before), default=0)

    def cheapest(self, j: int, earliest: int = 0) -> Step | None:
        """The start of a job that adds least to the cost, no earlier than some slot; None where it finds no room.

        Of equal costs the earliest completion wins, so that idle capacity is left behind rather than ahead.
        """
        best: tuple[float, int] | None = None
        found: Step | None = None
        for r in self.starts.rows_of_job[j]:
            row = self.starts.rows[r]
            step = self.offer(r, row.slots[row.slots >= earliest])
            if step is None:
                continue
            key = (round(step.cost, 9), step.slot + row.duration)
            if best is None or key < best:
                best, found = key, step
        return found

    def shortest(self, j: int, earliest: int = 0) -> Step | None:
        """The cheapest start in the shortest of a job's rows that finds room."""
        rows = self.starts.rows
        for r in sorted(self.starts.rows_of_job[j], key=lambda r: (not rows[r].kept, rows[r].duration, r)):
            step = self.offer(r, rows[r].slots[rows[r].slots >= earliest])
            if step is not None:
                return step
        return None

    def offer(self, r: int, slots: np.ndarray) -> Step | None:
        """The cheapest of some start slots of a row."""
        row = self.starts.rows[r]
        if not len(slots):
            return None
        costs = row.costs[np.searchsorted(row.slots, slots)] + self._storage_cost(row, slots)
        if row.kept:
            spot, timeline = self._kept_spot(row), self.pools[row.pool]
            if not np.isfinite(costs[0]) or not timeline.has_room(row, spot):
                return None
            return Step(r, 0, spot, float(costs[0]) + timeline.node_cost(row, spot))
        if not np.isfinite(costs).any():
            return None
        offer = self.pools[row.pool].offer(row.mode, slots)
        costs = costs + offer.cost
        k = int(np.argmin(costs))
        return Step(r, int(slots[k]), offer.spot(k), float(costs[k])) if np.isfinite(costs[k]) else None

    def offer_segment(self, r: int, slot: int, length: int) -> Step | None:
        """The cheapest place for so many slots of a piece; None where there is none, or no room to read."""
        row, timeline = self.starts.rows[r], self.pools[self.starts.rows[r].pool]
        mode = replace(row.mode, duration=length)
        reading = float(self._storage_cost(replace(row, mode=mode, is_piece=False), np.array([slot]))[0])
        if not math.isfinite(reading):
            return None
        cost = reading + math.fsum(row.stretch_terms(slot, length).values())
        if row.kept:
            spot = self._kept_spot(row)
            if slot > 0 or not timeline.has_room(row, spot, length):
                return None
            return Step(r, 0, spot, cost + timeline.node_cost(row, spot, length), length)
        offer = timeline.offer(mode, np.array([slot]))
        return Step(r, slot, offer.spot(0), cost + float(offer.cost[0]), length) if np.isfinite(offer.cost[0]) else None

    def _kept_spot(self, row: Row) -> Spot:
        running = self.instance.jobs[row.job].running
        assert running is not None
        if self.pools[row.pool].shares_gpu(row.mode):
            return (running.places[0].node, running.places[0].gpus[0])
        return tuple(place.node for place in running.places)

    def _storage_cost(self, row: Row, slots: np.ndarray) -> np.ndarray:
        """What reading adds: bandwidth beyond the peak so far, or a cache that is not there yet."""
        cost = np.zeros(len(slots))
        if row.dataset < 0:
            return cost
        storage = self.storage[row.site]
        if row.link_rate > 0:
            peak = np.max(storage.used, initial=storage.bought)
            after = np.maximum(peak, _window_max(storage.used, slots, row.duration) + row.link_rate)
            cost = storage.bandwidth_cost(after) - storage.bandwidth_cost(np.array([peak]))
            cost = np.where(after > max(storage.limit, peak) * (1 + 1e-9), np.inf, cost)
            cost = np.where(after > storage.cap * (1 + 1e-9), np.inf, cost)
            if row.link is not None:
                used, cap = self.links[row.link]
                through = _window_max(used, slots, row.duration) + row.link_rate
                cost = np.where(through > cap * (1 + 1e-9), np.inf, cost)
        if row.level > 0:
            cost = cost + self._cache_cost(row)
        return cost

    def _cache_cost(self, row: Row) -> float:
        storage = self.storage[row.site]
        level = storage.levels.get(row.dataset)
        if level is not None:
            return 0.0 if level == row.level else math.inf
        if storage.supposed.get(row.dataset, row.level) != row.level:
            return math.inf
        gb = self.instance.datasets[row.dataset].size * row.cached
        if gb > storage.cache_free * (1 + 1e-9):
            return math.inf
        if row.dataset in storage.supposed:
            return 0.0
        link = self.instance.links.get((self.instance.datasets[row.dataset].home, storage.site.id))
        staged = gb * link.price if link is not None else 0.0
        return gb * storage.site.storage.cache_price * storage.hours + staged

    def put(self, j: int, step: Step) -> None:
        """Schedule a job."""
        self._account(step, +1)
        self.chosen[j] = step

    def drop(self, j: int) -> Step:
        """Take a job off again."""
        step = self.chosen.pop(j)
        self._account(step, -1)
        return step

    def _account(self, step: Step, sign: int) -> None:
        for segment in step.segments:
            self._account_segment(segment, sign)

    def _account_segment(self, step: Step, sign: int) -> None:
        row = self.starts.rows[step.row]
        window = slice(step.slot, self.end(step))
        self.pools[row.pool].take(row, step.slot, step.spot, sign, self.length(step))
        if row.dataset < 0:
            return
        storage = self.storage[row.site]
        if row.link_rate > 0:
            storage.used[window] += sign * row.link_rate
            if row.link is not None:
                self.links[row.link][0][window] += sign * row.link_rate
        if row.level > 0:
            gb = self.instance.datasets[row.dataset].size * row.cached
            storage.readers[row.dataset] += sign
            if sign > 0 and storage.readers[row.dataset] == 1:
                storage.levels[row.dataset] = row.level
                storage.cache_free -= gb
            elif sign < 0 and storage.readers[row.dataset] == 0:
                del storage.levels[row.dataset]
                storage.cache_free += gb


def _window_max(values: np.ndarray, slots: np.ndarray, duration: int) -> np.ndarray:
    windows = np.lib.stride_tricks.sliding_window_view(values, duration)
    return np.asarray(windows[slots].max(axis=1))
