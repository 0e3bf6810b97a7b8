"""The time grid: prices, availability and windows of an instance as arrays over slots."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np

from models.domain.entities import Pool, Site
from models.domain.instance import Instance
from models.domain.modes import ROUNDING
from models.domain.prices import EnergyTariff, HourlyTariff, Price

DAY_S = 86400.0


def price_by_slot(instance: Instance, price: Price, num_slots: int) -> np.ndarray:
    """The time average of a price over each slot, shape (num_slots,); a list goes on with its last entry."""
    if isinstance(price, tuple):
        listed = np.asarray(price, dtype=float)[:num_slots]
        return np.concatenate([listed, np.full(num_slots - len(listed), price[-1])])
    if not isinstance(price, HourlyTariff | EnergyTariff) or not price.windows:
        return np.full(num_slots, price.default if isinstance(price, HourlyTariff | EnergyTariff) else float(price))
    midnight = instance.start.replace(hour=0, minute=0, second=0)
    offset = (instance.start - midnight).total_seconds()
    # Within a day the price is constant between clock edges; slots are cut at each of them.
    edges = sorted({0.0, DAY_S, *(w.since for w in price.windows), *(w.until for w in price.windows)})
    pieces = [(a, b, _price_at(price, a)) for a, b in itertools.pairwise(edges)]
    day_total = math.fsum((b - a) * value for a, b, value in pieces)

    def spent(seconds: float) -> float:
        days, rest = divmod(seconds, DAY_S)
        return days * day_total + math.fsum((min(b, rest) - a) * value for a, b, value in pieces if a < rest)

    values = np.array([spent(offset + t * instance.slot) for t in range(num_slots + 1)])
    average = np.diff(values) / instance.slot
    # A slot within one piece has exactly the price of the piece, without the rounding of the differences.
    for t in range(num_slots):
        clock = (offset + t * instance.slot) % DAY_S
        for a, b, value in pieces:
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


def node_kinds(instance: Instance, pool: Pool, num_slots: int) -> NodeKinds:
    """The kinds of nodes of a pool; usually one or two, however many nodes there are."""
    code = on_at_start(instance, pool).astype(np.int64)
    windows = []
    for window in pool.unavailable:
        first = max(0, math.floor(window.since / instance.slot + ROUNDING))
        last = min(num_slots, math.ceil(window.until / instance.slot - ROUNDING))
        closed = np.zeros(pool.nodes, dtype=bool)
        if isinstance(window.nodes, tuple):
            closed[list(window.nodes)] = True
        else:
            closed[pool.nodes - (pool.nodes if window.nodes is None else window.nodes) :] = True
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
