"""The storage rows of the CP-SAT model: caches, bandwidth on a tariff, links between sites."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING

from ortools.sat.python.cp_model import IntVar, LinearExpr

from benchmarks.rivals.units import FINE, MONEY, RATE
from models import grid
from models.storage.tariff import tariff_of

if TYPE_CHECKING:
    from benchmarks.rivals.cpsat_model import Model


def datasets_are_cached(model: Model) -> None:
    """What is read from a cache is in it, once for all readers; a dataset has one level, and they fit the cache."""
    readers: dict[tuple[int, int, int], list[int]] = defaultdict(list)
    for r, row in enumerate(model.starts.rows):
        if row.level > 0:
            readers[row.dataset, row.site, row.level].append(r)
    levels: dict[tuple[int, int], list[IntVar]] = defaultdict(list)
    held: dict[int, list[tuple[IntVar, float]]] = defaultdict(list)
    for (d, s, level), rows in sorted(readers.items()):
        dataset, site = model.instance.datasets[d], model.instance.sites[s]
        cached = model.cached[d, s, level] = model.cp.new_bool_var(f"cached {d} {s} {level}")
        gb = dataset.size * level / model.instance.cache_levels
        link = model.instance.links.get((dataset.home, site.id))
        hours = grid.billed_hours(model.instance, site, model.num_slots)
        model.pay(cached, gb * (site.storage.cache_price * hours + (0.0 if link is None else link.price)))
        levels[d, s].append(cached)
        held[s].append((cached, gb))
        by_job: dict[int, list[IntVar]] = defaultdict(list)
        for r in rows:
            by_job[model.starts.rows[r].job].append(model.taken[r])
        for taken in by_job.values():
            model.cp.add(LinearExpr.sum(taken) <= cached)
    for alternatives in levels.values():
        model.cp.add_at_most_one(alternatives)
    for s, amounts in held.items():
        capacity = model.instance.sites[s].storage.cache_capacity
        model.cp.add(
            LinearExpr.weighted_sum([v for v, _ in amounts], [math.floor(100 * gb) for _, gb in amounts])
            <= math.ceil(100 * capacity)
        )


def bandwidth_is_bought(model: Model) -> None:
    """What is read at a site at once, on one piece of its tariff; the pieces of a power law are chords, below it."""
    for s, site in enumerate(model.instance.sites):
        rows = [r for r, row in enumerate(model.starts.rows) if row.site == s and row.link_rate > 0]
        if not rows:
            continue
        most = _most_bandwidth(model, rows)
        tariff = tariff_of(site.storage)
        cap, pieces = tariff.cap, tariff.lines
        top = min(most, math.ceil(cap * RATE)) if math.isfinite(cap) else most
        bought = model.bought[s] = model.cp.new_int_var(0, top, f"bandwidth {s}")
        model.top[s] = top
        rates = [math.floor(model.starts.rows[r].link_rate * RATE + 1e-6) for r in rows]
        model.cp.add_cumulative([model.interval[r] for r in rows], rates, bought)
        if not pieces:
            continue
        hours = grid.billed_hours(model.instance, site, model.num_slots)
        amount = model.paid(f"tariff {s}", min(a + b * top / RATE for a, b in pieces) * hours + 1.0)
        on_piece = [model.cp.new_bool_var(f"piece {s} {i}") for i in range(len(pieces))]
        lines = [
            (math.floor(alpha * hours * MONEY), math.floor(beta * hours * MONEY * FINE / RATE))
            for alpha, beta in pieces
        ]
        for chosen, (fixed, slope) in zip(on_piece, lines, strict=True):
            model.cp.add(FINE * (amount + 1) > FINE * fixed + slope * bought).only_enforce_if(chosen)
        model.tariff[s] = (amount, [(v, *line) for v, line in zip(on_piece, lines, strict=True)])
        model.cp.add(bought == 0).only_enforce_if([~chosen for chosen in on_piece])
        model.cp.add_at_most_one(on_piece)
        # A run that reads over the link needs at least its own rate.
        for r, rate in zip(rows, rates, strict=True):
            model.cp.add(bought >= rate).only_enforce_if(model.taken[r])


def _most_bandwidth(model: Model, rows: list[int]) -> int:
    """What all jobs would read at once, in units."""
    fastest: dict[int, float] = defaultdict(float)
    for r in rows:
        row = model.starts.rows[r]
        fastest[row.job] = max(fastest[row.job], row.link_rate)
    return math.ceil(RATE * sum(fastest.values()))


def links_carry_what_is_read(model: Model) -> None:
    """Over a network link goes no more than its bandwidth."""
    for link in model.instance.network:
        key = (model.instance.site_index[link.source], model.instance.site_index[link.target])
        rows = [r for r, row in enumerate(model.starts.rows) if row.link == key and row.link_rate > 0]
        if link.bandwidth is None or not rows:
            continue
        rates = [math.floor(model.starts.rows[r].link_rate * RATE + 1e-6) for r in rows]
        model.cp.add_cumulative([model.interval[r] for r in rows], rates, math.ceil(link.bandwidth * RATE))
