"""Storage: cached datasets, the bandwidth that the other readers share, and its concave tariff."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Any

import pyomo.environ as pyo

from models.formulation.context import Context, declare, linear
from models.storage.tariff import tariff_of


def declare_storage(model: pyo.ConcreteModel, context: Context) -> None:
    r"""k[d,s,l] in {0,1} for (d,s,l) in CACHED: the part l / L of dataset d is cached at site s;
    B[s] in [0,U[s]] for s in LINKED: bandwidth bought at site s;
    b[s,i] in [0,U[s]] for (s,i) in PIECE: bandwidth bought under piece i of the tariff of site s;
    w[s,i] in {0,1} for (s,i) in PIECE: piece i is used"""
    rows = [context.rows[r] for r in context.used_rows]
    cached = sorted({(row.dataset, row.site, row.level) for row in rows if row.level > 0})
    linked = sorted({row.site for row in rows if row.link_rate > 0})
    most = {s: _most_bandwidth(context, s) for s in linked}
    model.CACHED = pyo.Set(initialize=cached, dimen=3, ordered=True)
    model.LINKED = pyo.Set(initialize=linked, ordered=True)
    pieces = [(s, i) for s in linked for i in range(len(tariff_of(context.instance.sites[s].storage).lines))]
    model.PIECE = pyo.Set(initialize=pieces, dimen=2, ordered=True)
    model.k = pyo.Var(model.CACHED, domain=pyo.Binary)
    model.B = pyo.Var(model.LINKED, domain=pyo.NonNegativeReals, bounds=lambda _, s: (0, most[s]))
    model.b = pyo.Var(model.PIECE, domain=pyo.NonNegativeReals, bounds=lambda _, s, _i: (0, most[s]))
    model.w = pyo.Var(model.PIECE, domain=pyo.Binary)


def _most_bandwidth(context: Context, s: int) -> float:
    """The cap, or what all jobs reading at the site at once would take, whichever is less."""
    fastest: dict[int, float] = defaultdict(float)
    for r in context.used_rows:
        row = context.rows[r]
        if row.site == s:
            fastest[row.job] = max(fastest[row.job], row.link_rate)
    return min(tariff_of(context.instance.sites[s].storage).cap, math.fsum(fastest.values()))


def readers_share_the_bandwidth(model: pyo.ConcreteModel, context: Context) -> None:
    r"""taken[reading,s,t] <= B[s] for all s in LINKED, t in SLOT, where use[reading,r] = link_rate[r]"""
    rules = {}
    for s in model.LINKED:
        for t in model.SLOT:
            rates, runs = context.taken.at("reading", s, t)
            if runs:
                rules[s, t] = linear([*rates, -1.0], [*runs, model.B[s]]) <= 0
    declare(model, "readers_share_the_bandwidth", rules)


def readers_share_the_network(model: pyo.ConcreteModel, context: Context) -> None:
    r"""taken[crossing,o,t] <= bandwidth[o] for all links o with a bandwidth that some row reads across, t in SLOT,
    where use[crossing,r] = link_rate[r]"""
    index, rules = context.instance.site_index, {}
    for link in context.instance.network:
        owner = f"{index[link.source]}-{index[link.target]}"
        for t in model.SLOT if ("crossing", owner) in context.quantities else ():
            rates, runs = context.taken.at("crossing", owner, t)
            if runs:
                rules[link.source, link.target, t] = linear(rates, runs) <= link.bandwidth
    declare(model, "readers_share_the_network", rules)


def cached_readers_need_the_cache(model: pyo.ConcreteModel, context: Context) -> None:
    r"""sum over (r,t) of j at site s and level l: x[r,t] <= k[d,s,l] for all jobs j with dataset d that are not
    elastic, (d,s,l) in CACHED

    One row a job, tighter than one row for all readers of a dataset.
    """
    readers: dict[tuple[int, int, int], list[Any]] = defaultdict(list)
    dataset = {}
    for r in context.used_rows:
        row = context.rows[r]
        if row.level > 0 and not row.is_piece:
            readers[row.job, row.site, row.level] += [model.x[r, t] for t in context.slots_of_row[r]]
            dataset[row.job] = row.dataset
    rules = {
        (j, s, level): linear([1.0] * len(xs) + [-1.0], [*xs, model.k[dataset[j], s, level]]) <= 0
        for (j, s, level), xs in sorted(readers.items())
    }
    declare(model, "cached_readers_need_the_cache", rules)


def a_dataset_has_one_level(model: pyo.ConcreteModel, context: Context) -> None:
    r"""sum over l: k[d,s,l] <= 1 for all d, s with several levels in CACHED

    No cheapest plan has two, as the higher one serves the readers of both; this says so.
    """
    levels: dict[tuple[int, int], list[Any]] = defaultdict(list)
    for d, s, level in model.CACHED:
        levels[d, s].append(model.k[d, s, level])
    rules = {key: linear([1.0] * len(ks), ks) <= 1 for key, ks in levels.items() if len(ks) > 1}
    declare(model, "a_dataset_has_one_level", rules)


def cached_datasets_fit(model: pyo.ConcreteModel, context: Context) -> None:
    r"""sum over d, l: size[d] l / L k[d,s,l] <= cache_capacity[s] for all s with some (d,s,l) in CACHED"""
    sizes: dict[int, list[float]] = defaultdict(list)
    ks: dict[int, list[Any]] = defaultdict(list)
    for d, s, level in model.CACHED:
        sizes[s].append(context.instance.datasets[d].size * level / context.instance.cache_levels)
        ks[s].append(model.k[d, s, level])
    rules = {s: linear(sizes[s], ks[s]) <= context.instance.sites[s].storage.cache_capacity for s in sizes}
    declare(model, "cached_datasets_fit", rules)


def bandwidth_is_bought_by_pieces(model: pyo.ConcreteModel, context: Context) -> None:
    r"""B[s] = sum over i: b[s,i] for all s in LINKED with a tariff"""
    rules = {}
    for s in model.LINKED:
        pieces = [model.b[key] for key in model.PIECE if key[0] == s]
        if pieces:
            rules[s] = linear([1.0] * len(pieces) + [-1.0], [*pieces, model.B[s]]) == 0
    declare(model, "bandwidth_is_bought_by_pieces", rules)


def a_piece_is_used_or_empty(model: pyo.ConcreteModel, context: Context) -> None:
    r"""b[s,i] <= U[s] w[s,i] for all (s,i) in PIECE

    U[s] is the most bandwidth that can be of use: the cap, or what all readers take at once if that is less.
    """
    rules = {}
    for s, i in model.PIECE:
        most = _most_bandwidth(context, s)
        rules[s, i] = linear([1.0, -most], [model.b[s, i], model.w[s, i]]) <= 0
    declare(model, "a_piece_is_used_or_empty", rules)


def one_piece_is_used(model: pyo.ConcreteModel, context: Context) -> None:
    r"""sum over i: w[s,i] <= 1 for all s with several pieces in PIECE

    No cheapest plan uses two, as the tariff is concave; this says so.
    """
    rules = {}
    for s in model.LINKED:
        pieces = [model.w[key] for key in model.PIECE if key[0] == s]
        if len(pieces) > 1:
            rules[s] = linear([1.0] * len(pieces), pieces) <= 1
    declare(model, "one_piece_is_used", rules)
