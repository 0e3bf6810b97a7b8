"""The grid of slots and what there is on it: prices, pools, storage, links."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from models.domain.fields import MAX_SLOTS
from models.domain.rules.draft import TOLERANCE, Draft
from models.errors import Fault

_FIRST_YEAR, _LAST_YEAR = 1900, 7000


def slots_divide_the_horizon(draft: Draft) -> Iterator[Fault]:
    """The horizon is a whole number of slots, and not too many."""
    if draft.slot is None or not draft.is_slot_sane or not isinstance(draft.horizon, float | int):
        return
    slots = draft.horizon / draft.slot
    if slots > MAX_SLOTS:
        yield Fault(f"has more than {MAX_SLOTS} slots", ("horizon",), f"{slots:g} slots", "lengthen slot")
    elif abs(slots - round(slots)) > 1e-6 or round(slots) < 1:
        mend = f"{max(1, math.ceil(slots)) * draft.slot / 3600:g}h is whole"
        yield Fault(f"is not a whole number of slots of {draft.slot:g} s", ("horizon",), f"{draft.horizon:g} s", mend)


def the_grid_is_within_the_calendar(draft: Draft) -> Iterator[Fault]:
    """A slot has a length that can be meant, and so has the start, so that every slot has a date."""
    if draft.slot is not None and not draft.is_slot_sane:
        yield Fault("is shorter than 1 ms or longer than a week", ("slot",), f"{draft.slot:g} s", "write 5m, say")
    if draft.start is not None and not _FIRST_YEAR <= draft.start.year <= _LAST_YEAR:
        yield Fault(
            f"is not between the years {_FIRST_YEAR} and {_LAST_YEAR}",
            ("start",),
            draft.start.isoformat(),
            "correct the year",
        )


def price_lists_have_an_entry_a_slot(draft: Draft) -> Iterator[Fault]:
    """A price given as a list has exactly one entry for each slot of a stated horizon."""
    lists = [(("pools", i, "price"), pool.price) for i, pool in draft.pools.items()]
    lists += [(("sites", i, "energy_price"), site.energy_price) for i, site in draft.sites.items()]
    for path, price in lists:
        if not isinstance(price, tuple):
            continue
        if draft.horizon == "auto":
            yield Fault(
                "is a list, which needs a stated horizon",
                path,
                f"{len(price)} prices",
                "set horizon, or use windows",
            )
        elif draft.slot and isinstance(draft.horizon, float | int):
            slots = draft.horizon / draft.slot
            if abs(slots - len(price)) > 0.5:
                yield Fault("does not have one price for each slot", path, f"{len(price)} prices", f"give {slots:.0f}")


def pools_are_sound(draft: Draft) -> Iterator[Fault]:
    """Windows end after they begin, node indices exist, increments are whole slots, spot is marked as such."""
    for i, pool in draft.pools.items():
        at = ("pools", i)
        if draft.slot and pool.billing_increment > draft.slot:
            blocks = pool.billing_increment / draft.slot
            if abs(blocks - round(min(blocks, 1e15))) > 1e-6:
                yield Fault(
                    f"is longer than a slot of {draft.slot:g} s and not a whole number of them",
                    (*at, "billing_increment"), f"{pool.billing_increment:g} s", "choose a slot that divides it",
                )  # fmt: skip
        if pool.nodes_on > pool.nodes:
            yield Fault(
                f"is more than the pool's {pool.nodes} nodes",
                (*at, "nodes_on"),
                str(pool.nodes_on),
                "lower it",
            )
        if pool.interruption_rate > 0 and pool.market != "spot":
            yield Fault(
                "only spot nodes are interrupted",
                (*at, "interruption_rate"),
                f"{pool.interruption_rate:g}",
                "set market: spot",
            )
        for k, window in enumerate(pool.unavailable):
            if window.until <= window.since:
                yield Fault(
                    "ends no later than it begins",
                    (*at, "unavailable", k, "until"),
                    draft.when(window.until),
                    "swap since and until",
                )
            indices = window.nodes if isinstance(window.nodes, tuple) else ((window.nodes or 0) - 1,)
            for node in indices:
                if node >= pool.nodes:
                    yield Fault(
                        f"the pool has {pool.nodes} nodes, counted from 0",
                        (*at, "unavailable", k, "nodes"),
                        str(node),
                        "name nodes that exist",
                    )
                    break
    sites = {site.id: site for site in draft.sites.values()}
    for i, pool in draft.pools.items():
        site = sites.get(pool.site)
        if site is not None and site.kind == "on_prem" and pool.market == "spot":
            yield Fault(
                "nodes of an on_prem site are owned, not spot",
                ("pools", i, "market"),
                "spot",
                "remove it, or move the pool to a cloud site",
            )


def storage_is_sound(draft: Draft) -> Iterator[Fault]:
    """A tariff is concave and does not fall, given in one way; what is paid for has a time it is paid for."""
    for i, site in draft.sites.items():
        at, storage = ("sites", i, "storage"), site.storage
        given = [name for name in ("tariff", "points", "tiers", "power") if getattr(storage, name)]
        if len(given) > 1:
            keep = " or ".join([", ".join(given[:-1]), given[-1]])
            yield Fault("gives the tariff twice", (*at, given[1]), None, f"keep {keep}")
        yield from _points_are_concave(storage.points, at)
        yield from _tiers_are_concave(storage.tiers, at)
        is_paid = any(p.fixed or p.per_mb_s for p in storage.tariff) or any(p.price for p in storage.points)
        is_paid = is_paid or any(tier.per_mb_s for tier in storage.tiers)
        is_paid = is_paid or (storage.power is not None and storage.power.factor > 0)
        is_paid = is_paid or (storage.cache_price > 0 and storage.cache_capacity > 0)
        if is_paid and storage.billed is None and draft.horizon == "auto":
            yield Fault(
                "is needed where the horizon is auto: for how long are bandwidth and cache paid?",
                (*at, "billed"),
                None,
                "add billed: 24h, say",
            )
    for i, link in draft.network.items():
        if link.source == link.target:
            yield Fault("leads from a site to itself", ("network", i), link.source, "remove it")
    seen: set[tuple[str, str]] = set()
    for i, link in draft.network.items():
        if (link.source, link.target) in seen:
            yield Fault(
                "is a second link between the same sites",
                ("network", i),
                f"{link.source} -> {link.target}",
                "keep one",
            )
        seen.add((link.source, link.target))


def _points_are_concave(points: tuple[Any, ...], at: tuple[str | int, ...]) -> Iterator[Fault]:
    slope, last_mb_s, last_price = math.inf, 0.0, 0.0
    for k, point in enumerate(points):
        here = (*at, "points", k)
        if point.mb_s <= last_mb_s:
            yield Fault(
                "is no more than the point before",
                (*here, "mb_s"),
                f"{point.mb_s:g} MB/s",
                "sort the points by bandwidth",
            )
            return
        next_slope = (point.price - last_price) / (point.mb_s - last_mb_s)
        if next_slope < 0:
            yield Fault(
                "is cheaper than a point with less bandwidth",
                (*here, "price"),
                f"{point.price:g}",
                "drop the dearer point before it",
            )
        elif next_slope > slope * (1 + TOLERANCE) + 1e-15:
            yield Fault(
                "makes the tariff not concave: a MB/s here costs more than below the point before",
                (*here, "price"), f"{next_slope:g} after {slope:g} per MB/s",
                f"at most {last_price + slope * (point.mb_s - last_mb_s):g}",
            )  # fmt: skip
        slope, last_mb_s, last_price = next_slope, point.mb_s, point.price


def _tiers_are_concave(tiers: tuple[Any, ...], at: tuple[str | int, ...]) -> Iterator[Fault]:
    slope, end = math.inf, 0.0
    for k, tier in enumerate(tiers):
        here = (*at, "tiers", k)
        if tier.up_to is None and k < len(tiers) - 1:
            yield Fault("is missing: only the last tier has no end", (*here, "up_to"), None, "add up_to")
            return
        if tier.up_to is not None and tier.up_to <= end:
            yield Fault(
                "is no more than the end of the tier before",
                (*here, "up_to"),
                f"{tier.up_to:g} MB/s",
                "sort the tiers by up_to",
            )
            return
        if tier.per_mb_s > slope * (1 + TOLERANCE) + 1e-15:
            yield Fault(
                "makes the tariff not concave: a MB/s here costs more than in the tier before",
                (*here, "per_mb_s"), f"{tier.per_mb_s:g} after {slope:g} per MB/s", f"at most {slope:g}",
            )  # fmt: skip
        slope, end = tier.per_mb_s, end if tier.up_to is None else tier.up_to
