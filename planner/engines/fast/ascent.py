"""Ascent on the Lagrangian: a good bound, and good prices, from some dozens of pricings and no LP.

The Lagrangian is concave in the prices, but its slope jumps: a start that is cheapest by a hair takes the whole job. So
the slope is taken of a smooth stand-in, in which a job spreads over its nearly cheapest starts (`pricing.spread`;
Nesterov, 2005), while the bound is always that of the exact Lagrangian at the same prices. Prices go up where more is
used than there is, and down where less, each in its own step (Adam; Kingma and Ba, 2015), with steps and spread that
shrink to nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from planner.engines.fast.branches import Branch
from planner.engines.fast.certificate import Centre, Certificate
from planner.engines.fast.pricing import Prices

FIRST_STEP, LAST_STEP = 0.5, 0.02
FIRST_WARMTH, LAST_WARMTH = 0.03, 0.0005
MOMENTUM, MEMORY = 0.8, 0.95


@dataclass
class State:
    """Prices of a branch on their way."""

    limits: np.ndarray
    """Above what a node's own price makes of them, shape (Q, T)."""
    reading: dict[int, tuple[float, np.ndarray]]
    """Of each site that is read at: the price of a MB/s throughout, and its parts by slot, which sum to 1."""
    cache: np.ndarray
    momentum: list[np.ndarray] = field(default_factory=list)
    square: list[np.ndarray] = field(default_factory=list)
    steps: int = 0


class Ascent:
    """Climbs the Lagrangian of one branch after another."""

    def __init__(self, certificate: Certificate):
        self.certificate, self.table, limits = certificate, certificate.table, certificate.limits
        self.limits, self.pricing, self.lagrangian = limits, certificate.pricing, certificate.lagrangian
        table, lagrangian = self.table, self.lagrangian
        num_slots = table.num_slots
        shape = (len(limits.limits), num_slots)
        self.base, self.supply, self.scale = np.zeros(shape), np.zeros(shape), np.zeros((shape[0], 1))
        number = lagrangian.num_available
        per_rate = self._money_per_rate()
        for q, limit in enumerate(limits.limits):
            if limit.kind == "node":
                price = table.pools.price[limit.owner, :num_slots] / limit.capacity
                if limit.name == "slices":
                    self.base[q] = price
                self.supply[q] = limit.capacity * number[limit.owner]
                self.scale[q] = max(float(price.mean()), 1e-12)
            elif limit.kind == "crossing":
                self.supply[q] = limit.capacity
                self.scale[q] = per_rate
        self.reading_limit = {limit.owner: q for q, limit in enumerate(limits.limits) if limit.kind == "reading"}
        self.per_rate = per_rate

    def _money_per_rate(self) -> float:
        """About what a MB/s for a slot is worth to a reader: its cheapest node price by what it reads."""
        rows, pools = self.table.rows, self.table.pools
        some = rows.rate > 0
        if not some.any():
            return 0.0
        node = pools.price[rows.pool[some], 0] * rows.num_nodes[some] / rows.rate[some]
        return 0.1 * float(np.median(node))

    def first_state(self, branch: Branch) -> State:
        """No price but that of the nodes, and for bandwidth its slope, spread evenly."""
        num_slots = self.table.num_slots
        even = np.full(num_slots, 1.0 / num_slots)
        return State(
            np.zeros_like(self.base),
            {s: (branch.stretches[s].slope, even.copy()) for s in self.reading_limit},
            np.zeros(len(self.table.storage.hours)),
        )

    def state_of(self, centre: Centre) -> State:
        """The best prices of a branch as a start, bandwidth at the slope of its stretch where it had none."""
        limits = centre.prices.limits - self.base
        reading = {}
        for s, q in self.reading_limit.items():
            total, stretch = float(centre.prices.limits[q].sum()), centre.branch.stretches[s]
            parts = centre.prices.limits[q] / total if total > 0 else np.full(limits.shape[1], 1.0 / limits.shape[1])
            reading[s] = (total if total > 0 and centre.climbed else stretch.slope, parts)
            limits[q] = 0.0
        return State(np.maximum(0.0, limits), reading, centre.prices.cache.copy())

    def prices_of(self, state: State) -> Prices:
        """The prices of a state."""
        limits = self.base + state.limits
        for s, q in self.reading_limit.items():
            total, parts = state.reading[s]
            limits[q] = total * parts
        return Prices(limits, np.zeros((len(self.pricing.pairs), self.table.num_slots)), state.cache)

    def climb(
        self,
        state: State,
        branch: Branch,
        iterations: int,
        *,
        go_on: Callable[[], bool] = lambda: True,
        shorten: float = 1.0,
    ) -> None:
        """So many steps, while `go_on` says so. `shorten` below 1 begins with smaller ones, from a good state."""
        allowed = np.ones((self.table.num_jobs, self.lagrangian.num_variants), dtype=np.bool_)
        allowed[self.table.elastic] = False  # what they use is counted by run
        for k in range(iterations):
            part = k / max(1, iterations - 1)
            step = FIRST_STEP * shorten * (LAST_STEP / (FIRST_STEP * shorten)) ** part
            warmth = FIRST_WARMTH * shorten * (LAST_WARMTH / (FIRST_WARMTH * shorten)) ** part
            prices = self.prices_of(state)
            found, usage = self.pricing.spread(prices, allowed, self.lagrangian.variant_of_row, warmth)
            value = self.lagrangian.value(found, prices)
            self.certificate.learn(prices, value)
            if not go_on():
                return
            choices = value.choices(branch)
            allowed = self.lagrangian.allowed(choices)
            self.pricing.elastics.use(found.priced, self.lagrangian.choice_of(choices), usage)
            self._move(state, branch, choices, usage, step)

    def _move(self, state: State, branch: Branch, choices: tuple[int, ...], usage: np.ndarray, step: float) -> None:
        supply = self.supply.copy()
        for q, limit in enumerate(self.limits.limits):
            if limit.kind == "node" and limit.owner in self.lagrangian.block_pools:
                # Of rented nodes there are more than are used; all of them at once would be an empty threat.
                supply[q] = np.minimum(supply[q], usage[q].max(initial=0.0))
        excess = (usage - supply) / np.maximum(supply.max(axis=1, keepdims=True), 1e-9)
        store = self.table.storage
        cached = np.zeros(len(state.cache))
        for cachable, c in zip(self.lagrangian.cachings.datasets, choices, strict=True):
            cached += cachable.sizes[c]
        room = np.where(np.isfinite(store.cache_capacity), store.cache_capacity, np.inf)
        over = np.where(np.isfinite(room), (cached - room) / np.maximum(room, 1e-9), -1.0)
        totals = []
        for s, q in self.reading_limit.items():
            total, parts = state.reading[s]
            stretch = branch.stretches[s]
            bought = stretch.low if total < stretch.slope else stretch.high
            peak = float(usage[q] @ parts)
            # Between its ends a stretch takes whatever is used at its own slope.
            inside = stretch.low <= peak <= stretch.high
            totals.append(stretch.slope - total if inside else (peak - bought))
            moved = parts * np.exp(np.clip(step * (usage[q] - peak) / max(peak, 1e-9), -1.0, 1.0))
            moved = np.maximum(moved, 1e-6 / len(parts))
            state.reading[s] = (total, moved / moved.sum())
        slopes = [excess, over, np.array(totals)]
        if not state.momentum:
            state.momentum = [np.zeros_like(slope) for slope in slopes]
            state.square = [np.zeros_like(slope) for slope in slopes]
        state.steps += 1
        moves = []
        for k, slope in enumerate(slopes):
            state.momentum[k] = MOMENTUM * state.momentum[k] + (1 - MOMENTUM) * slope
            state.square[k] = MEMORY * state.square[k] + (1 - MEMORY) * slope * slope
            mean = state.momentum[k] / (1 - MOMENTUM**state.steps)
            spread = np.sqrt(state.square[k] / (1 - MEMORY**state.steps))
            moves.append(step * mean / (spread + 1e-3))
        state.limits = np.maximum(0.0, state.limits + self.scale * moves[0])
        each_gb = store.cache_cost.max(initial=0.0) / max(float(store.cache_size.max(initial=0.0)), 1e-9)
        state.cache = np.maximum(0.0, state.cache + max(each_gb, 1e-12) * moves[1] * (over > -1.0))
        for (s, (total, parts)), move in zip(list(state.reading.items()), moves[2], strict=True):
            unit = max(branch.stretches[s].slope, 1e-9)
            state.reading[s] = (max(0.0, total + 0.3 * unit * float(move)), parts)
