"""Bandwidth, network links and caches, compiled: what a start adds to their cost, and what runs take of them."""

from __future__ import annotations

import math

from planner.engines.fast.compiled import kernel
from planner.engines.fast.state import FREE_CHOICE, TOTAL, Facts, State

# Sums of MB/s and GB that miss a limit by no more than this fit.
ROUNDING = 1 + 1e-9


@kernel
def bandwidth_cost(f: Facts, site: int, peak: float) -> float:
    """P(B) for the billed hours, or what the chords of a power law make of it."""
    tariff = f.tariffs[site]
    if peak <= 0 or tariff["piece"] == tariff["end_piece"]:
        return 0.0
    bought = min(peak, tariff["cap"])
    price = math.inf
    for k in range(tariff["piece"], tariff["end_piece"]):
        price = min(price, f.pieces[k, 0] + f.pieces[k, 1] * bought)
    return price * tariff["hours"]


@kernel
def cache_cost(f: Facts, s: State, r: int) -> float:
    """What reading at a cached level adds; infinite where the dataset cannot be had at it."""
    row = f.rows[r]
    site, dataset, level = row["site"], row["dataset"], row["level"]
    cached, cache = s.cached[site, dataset], f.caches[site, dataset, level]
    if cached["allowed"] != FREE_CHOICE and cached["allowed"] != level:
        return math.inf
    if cached["readers"] > 0:
        return 0.0 if cached["level"] == level else math.inf
    if s.sites[site]["cached"] + cache["size"] > f.tariffs[site]["cache"] * ROUNDING:
        return math.inf
    return 0.0 if cached["paid"] else cache["cost"]


@kernel
def reaching_cost(f: Facts, s: State, site: int, reached: float) -> float:
    """What it adds to the cost of bandwidth if so many MB/s are read at a time; infinite where there is not so much."""
    state, cap = s.sites[site], f.tariffs[site]["cap"]
    peak = max(state["peak"], state["bought"])
    if reached > cap * ROUNDING:
        return math.inf
    if reached <= peak:
        return 0.0
    if reached > max(state["limit"], peak) * ROUNDING:
        return math.inf
    return bandwidth_cost(f, site, reached) - bandwidth_cost(f, site, peak)


@kernel
def reading_cost(f: Facts, s: State, r: int, slot: int, length: int) -> float:
    """What reading adds: bandwidth beyond the peak so far, or a cache that is not there yet; infinite where there is
    not so much."""
    row = f.rows[r]
    if row["dataset"] < 0:
        return 0.0
    cost = cache_cost(f, s, r) if row["level"] > 0 else 0.0
    if row["rate"] <= 0 or cost == math.inf:
        return cost
    bandwidth = s.bandwidth[row["site"]]
    most, across = 0.0, 0.0
    for t in range(slot, slot + length):
        most = max(most, bandwidth[t])
    if row["link"] >= 0:
        for t in range(slot, slot + length):
            across = max(across, s.crossing[row["link"], t])
    if row["link"] >= 0 and across + row["rate"] > f.link_cap[row["link"]] * ROUNDING:
        return math.inf
    return cost + reaching_cost(f, s, row["site"], most + row["rate"])


@kernel
def read(f: Facts, s: State, r: int, slot: int, length: int, sign: int) -> None:
    """Let a run read, or (sign -1) stop it."""
    row = f.rows[r]
    if row["dataset"] < 0:
        return
    site = row["site"]
    state = s.sites[site]
    if row["rate"] > 0:
        readers, bandwidth = s.readers[site], s.bandwidth[site]
        for t in range(slot, slot + length):
            readers[t] += sign
            bandwidth[t] += sign * row["rate"]
            if readers[t] == 0:
                bandwidth[t] = 0.0  # whatever rounding has left would be billed the fixed price
        if row["link"] >= 0:
            for t in range(slot, slot + length):
                s.crossing[row["link"], t] += sign * row["rate"]
        peak = 0.0
        for t in range(len(bandwidth)):
            peak = max(peak, bandwidth[t])
        cost = bandwidth_cost(f, site, peak)
        s.money[TOTAL] += cost - state["cost"]
        state["peak"], state["cost"] = peak, cost
    if row["level"] > 0:
        cached, cache = s.cached[site, row["dataset"]], f.caches[site, row["dataset"], row["level"]]
        cached["readers"] += sign
        if sign > 0 and cached["readers"] == 1:
            cached["level"] = row["level"]
            state["cached"] += cache["size"]
            s.money[TOTAL] += cache["cost"]
        if sign < 0 and cached["readers"] == 0:
            cached["level"] = 0
            state["cached"] -= cache["size"]
            s.money[TOTAL] -= cache["cost"]
