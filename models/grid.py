"""The time grid: prices, availability and windows of an instance as arrays over slots."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from models.domain.entities import Pool, Site, Unavailable
from models.domain.instance import Instance
from models.domain.modes import ROUNDING
from models.domain.prices import EnergyTariff, HourlyTariff, Price

DAY_S = 86400.0


class Meter:
    """The integral of one price over time: exact, wherever a time begins and ends."""

    def __init__(self, instance: Instance, price: Price):
        self._price, self._slot = price, instance.slot
        midnight = instance.start.replace(hour=0, minute=0, second=0)
        self.clock_s = (instance.start - midnight).total_seconds()
        self.pieces: list[tuple[float, float, float]] = []
        """Of a daily price the times of day between which it is constant, and what it is there."""
        if isinstance(price, HourlyTariff | EnergyTariff):
            edges = sorted({0.0, DAY_S, *(w.since for w in price.windows), *(w.until for w in price.windows)})
            self.pieces = [(a, b, _price_at(price, a)) for a, b in itertools.pairwise(edges)]
        self._day = math.fsum((b - a) * value for a, b, value in self.pieces)

    def until(self, seconds: float) -> float:
        """Price an hour times seconds up to a time after the instance's start, counted from the start, or of a daily
        price from midnight before it."""
        if isinstance(self._price, tuple):
            whole = min(int(seconds // self._slot), len(self._price) - 1)
            return math.fsum(self._price[:whole]) * self._slot + self._price[whole] * (seconds - whole * self._slot)
        if not self.pieces:
            return float(self._price) * seconds  # type: ignore[arg-type]
        days, rest = divmod(self.clock_s + seconds, DAY_S)
        return days * self._day + math.fsum((min(b, rest) - a) * value for a, b, value in self.pieces if a < rest)

    def piece(self, seconds: float) -> tuple[float, float]:
        """The times around one, counted like it, between which the price does not change; infinite where it never does
        again."""
        if isinstance(self._price, tuple):
            whole = min(int(seconds // self._slot), len(self._price) - 1)
            return whole * self._slot, math.inf if whole + 1 == len(self._price) else (whole + 1) * self._slot
        if len({value for _, _, value in self.pieces}) < 2:
            return -math.inf, math.inf
        midnight_s = seconds - (self.clock_s + seconds) % DAY_S
        days = [(midnight_s + day * DAY_S + a, value) for day in (-1, 0, 1, 2) for a, _, value in self.pieces]
        changes = [at_s for (_, before), (at_s, value) in itertools.pairwise(days) if value != before]
        return max(at_s for at_s in changes if at_s <= seconds), min(at_s for at_s in changes if at_s > seconds)

    def cost(self, start_s: float, end_s: float) -> float:
        """Money from one time after the instance's start to another."""
        return (self.until(end_s) - self.until(start_s)) / 3600.0


def price_by_slot(instance: Instance, price: Price, num_slots: int) -> np.ndarray:
    """The time average of a price over each slot, shape (num_slots,); a list goes on with its last entry."""
    if isinstance(price, tuple):
        listed = np.asarray(price, dtype=float)[:num_slots]
        return np.concatenate([listed, np.full(num_slots - len(listed), price[-1])])
    if not isinstance(price, HourlyTariff | EnergyTariff) or not price.windows:
        return np.full(num_slots, price.default if isinstance(price, HourlyTariff | EnergyTariff) else float(price))
    meter = Meter(instance, price)
    values = np.array([meter.until(t * instance.slot) for t in range(num_slots + 1)])
    average = np.diff(values) / instance.slot
    # A slot within one piece has exactly the price of the piece, without the rounding of the differences.
    for t in range(num_slots):
        clock = (meter.clock_s + t * instance.slot) % DAY_S
        for a, b, value in meter.pieces:
            if a <= clock and clock + instance.slot <= b:
                average[t] = value
    return average


def _price_at(price: HourlyTariff | EnergyTariff, clock: float) -> float:
    for window in price.windows:
        if window.since <= window.until:
            inside = window.since <= clock < window.until
        else:
            inside = clock >= window.since or clock < window.until
        if inside:
            return float(window.price)
    return float(price.default)


def is_cloud(instance: Instance, p: int) -> bool:
    """Whether the nodes of a pool are rented."""
    return instance.sites[instance.site_index[instance.pools[p].site]].kind == "cloud"


def node_prices(instance: Instance, pool: Pool, num_slots: int) -> np.ndarray:
    """Money for a node of the pool being on in each slot, billed tails beyond the horizon included:
    shape (num_slots + block,)."""
    return price_by_slot(instance, pool.price, num_slots + block_slots(instance, pool)) * instance.slot_h


def energy_prices(instance: Instance, site: Site, pool: Pool, num_slots: int) -> np.ndarray:
    """Money for the energy of one busy GPU in each slot, shape (num_slots,)."""
    return price_by_slot(instance, site.energy_price, num_slots) * (pool.gpu_power * instance.slot_h)


def block_slots(instance: Instance, pool: Pool) -> int:
    """Slots of a billing increment."""
    return max(1, round(pool.billing_increment / instance.slot)) if pool.billing_increment > instance.slot else 1


def boot_slots(instance: Instance, pool: Pool) -> int:
    """Slots from switching on until a node can be used."""
    return math.ceil(pool.boot_time / instance.slot - ROUNDING)


@dataclass(frozen=True, eq=False)
class NodeKinds:
    """The nodes of a pool by kind: those of one kind are available in the same slots, and alike at the start."""

    kind: np.ndarray
    """Kind of each node, shape (nodes,)."""
    number: np.ndarray
    """Nodes of each kind, shape (kinds,)."""
    available: np.ndarray
    """Whether nodes of a kind can be used in each slot, shape (kinds, T), bool."""
    usable: np.ndarray
    """And were available long enough before to boot, unless on since the start, shape (kinds, T), bool."""
    warm: np.ndarray
    """Whether they are on at the start and need no boot, shape (kinds,), bool."""


def closed_nodes(pool: Pool, window: Unavailable) -> Sequence[int]:
    """The nodes that cannot be used in a window: those listed, or so many with the highest indices, or all."""
    if isinstance(window.nodes, tuple):
        return window.nodes
    return range(0 if window.nodes is None else pool.nodes - window.nodes, pool.nodes)


def node_kinds(instance: Instance, pool: Pool, num_slots: int) -> NodeKinds:
    """The kinds of nodes of a pool; usually one or two, however many nodes there are."""
    code = on_at_start(instance, pool).astype(np.int64)
    windows = []
    for window in pool.unavailable:
        first = max(0, math.floor(window.since / instance.slot + ROUNDING))
        last = min(num_slots, math.ceil(window.until / instance.slot - ROUNDING))
        closed = np.zeros(pool.nodes, dtype=bool)
        closed[list(closed_nodes(pool, window))] = True
        windows.append((closed, first, last))
        # Kinds stay numbered from 0, so that any number of windows can be told apart.
        code = np.unique(2 * code + closed, return_inverse=True)[1].reshape(-1)
    values, examples, kind, number = np.unique(code, return_index=True, return_inverse=True, return_counts=True)
    open_slots = np.ones((len(values), num_slots), dtype=bool)
    for closed, first, last in windows:
        open_slots[closed[examples], first:last] = False
    warm = on_at_start(instance, pool)[examples]
    ready = open_slots.copy()
    for back in range(1, boot_slots(instance, pool) + 1):
        shifted = np.zeros_like(open_slots)
        shifted[:, back:] = open_slots[:, :-back]
        shifted[warm, :back] = True
        ready &= shifted
    return NodeKinds(kind.reshape(-1), number, open_slots, ready, warm)


def available(instance: Instance, pool: Pool, num_slots: int) -> np.ndarray:
    """Whether each node can be used in each slot, shape (nodes, num_slots), bool."""
    kinds = node_kinds(instance, pool, num_slots)
    return kinds.available[kinds.kind]


def usable(instance: Instance, pool: Pool, num_slots: int) -> np.ndarray:
    """Whether each node can run something in each slot, shape (nodes, num_slots), bool: it is available, and was long
    enough before to boot, unless it has been on since the start."""
    kinds = node_kinds(instance, pool, num_slots)
    return kinds.usable[kinds.kind]


def on_at_start(instance: Instance, pool: Pool) -> np.ndarray:
    """Whether each node is on at the start and needs no boot, shape (nodes,), bool."""
    on = np.zeros(pool.nodes, dtype=bool)
    on[: pool.nodes_on] = True
    for job in instance.jobs:
        if job.running is not None and job.running.pool == pool.id:
            on[[place.node for place in job.running.places]] = True
    return on


def release_slot(instance: Instance, release_s: float) -> int:
    """First slot edge no earlier than a time."""
    return max(0, math.ceil(release_s / instance.slot - ROUNDING))


def deadline_slot(instance: Instance, deadline_s: float) -> int:
    """Last slot edge no later than a time."""
    return math.floor(deadline_s / instance.slot + ROUNDING)


def billed_hours(instance: Instance, site: Site, num_slots: int) -> float:
    """Hours for which a site's bandwidth and cache are paid."""
    if site.storage.billed is not None:
        return site.storage.billed / 3600.0
    return num_slots * instance.slot_h
