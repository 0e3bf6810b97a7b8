"""Random changes to the state of the fast search, and recounts of what it says."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from typing import Any

import networkx
import numpy as np

from models.domain import Instance
from models.precedence import precedence_graph
from models.starts import all_starts
from planner.engines.assemble import cost_of
from planner.engines.fast.limits import Limits, Priced
from planner.engines.fast.occupancy import Occupancy
from planner.engines.fast.pricing import Prices, Pricing
from planner.engines.fast.table import Table
from planner.engines.schedule import Schedule, Step
from planner.horizon import num_slots_of
from tests.engines.recount import Recount, Taken
from tests.random_instances import FAMILIES, random_instance


def occupancy_of(instance: Instance) -> Occupancy:
    """Nothing runs, over all starts."""
    return Occupancy(Table.of(all_starts(instance, num_slots_of(instance))))


def set_random_prices(occupancy: Occupancy, draw: random.Random) -> tuple[Pricing, Priced]:
    """Any prices, a part of them zero; and what they say of a start."""
    table = occupancy.table
    pricing = Pricing(table, Limits.of(table))
    rng = np.random.default_rng(draw.getrandbits(32))
    shape = (len(pricing.limits.limits), table.num_slots)
    limits = rng.uniform(0, 2, shape) * (rng.random(shape) < 0.7)
    pairs = rng.uniform(0, 0.5, (len(pricing.pairs), table.num_slots))
    priced = pricing.at(Prices(limits, pairs, np.zeros(len(table.storage.hours))))
    occupancy.set_prices(priced)
    return pricing, priced


def total(schedule: Schedule) -> float:
    """The cost by the rules of plans, but for power laws, which are reckoned by their chords; jobs that must run and do
    not cost nothing."""
    costed, instance = cost_of(schedule), schedule.instance
    costs = {name: value for name, value in costed.costs.items() if name not in ("rejection", "bandwidth")}
    for bought in costed.bandwidth:
        storage = schedule.storage[instance.site_index[bought.site]]
        costs[bought.site] = float(storage.tariff.envelope(bought.mb_s)) * storage.hours
    jobs = enumerate(instance.jobs)
    return math.fsum([*costs.values(), *(job.reject_cost or 0.0 for j, job in jobs if j not in schedule.chosen)])


def walk(occupancy: Occupancy, draw: random.Random, steps: int) -> Iterator[str]:
    """Random changes; after each its name."""
    instance, table = occupancy.table.instance, occupancy.table
    graph = precedence_graph(instance)
    order = list(networkx.topological_sort(graph))
    jobs = range(len(instance.jobs))
    kept = occupancy.snapshot()
    for _ in range(steps):
        some = draw.sample(jobs, draw.randint(1, len(jobs)))
        some = sorted({k for j in some for k in (j, *networkx.descendants(graph, j))}, key=lambda _: draw.random())
        what = draw.choice(("move", "move", "move", "put", "put", "drop", "restore", "refresh"))
        if what == "move":
            if draw.random() < 0.4:
                suppose(occupancy, draw)
            occupancy.mark()
            occupancy.drop(some)
            if graph.number_of_edges():
                some.sort(key=order.index)
            manner: dict[str, Any] = {
                "theta": draw.choice((0.0, 0.5, 1.0)),
                "blink": draw.choice((0.0, 0.3)),
                "tries": draw.randint(0, 9),
            }
            if not occupancy.recreate(some, **manner) or draw.random() < 0.3:
                occupancy.undo()
            occupancy.suppose_nothing()
            occupancy.commit()
        elif what == "put":
            whole = np.flatnonzero(table.rows.work == 0).tolist()
            rows = [r for r in whole if can_run(occupancy, graph, int(table.rows.job[r]))]
            if not rows:
                continue
            r = draw.choice(rows)
            slot = int(draw.choice(table.starts.rows[r].slots))
            if (found := occupancy.find(r, slot)) is not None:
                occupancy.put(int(table.rows.job[r]), r, slot, found.nodes, found.gpu)
        elif what == "drop":
            occupancy.drop(some)
        elif what == "restore":
            now = occupancy.snapshot()
            occupancy.restore(kept)
            kept = now
        else:
            occupancy.refresh()
        yield what


def can_run(occupancy: Occupancy, graph: networkx.DiGraph, j: int) -> bool:
    """Whether a job does not run and those before it do."""
    return occupancy.row[j] < 0 and all(occupancy.row[i] >= 0 for i in graph.predecessors(j))


def suppose(occupancy: Occupancy, draw: random.Random) -> None:
    """Something about storage."""
    s = draw.randrange(len(occupancy.limit))
    if draw.random() < 0.5:
        occupancy.limit[s] = draw.choice((0.0, 96.0, 200.0))
    else:
        occupancy.bought[s] = draw.choice((48.0, 288.0))
    if occupancy.allowed_level.size:
        d = draw.randrange(occupancy.allowed_level.shape[1])
        occupancy.allowed_level[s, d] = draw.choice((0, 1))
        occupancy.cache_is_paid[s, d] = True


def added_costs(occupancy: Occupancy, r: int, slot: int) -> dict[tuple[int, ...], float]:
    """What a start adds to the cost on each of the nodes that have room for it, by recounts."""
    starts, schedule = occupancy.table.starts, occupancy.to_schedule()
    row, before = starts.rows[r], total(occupancy.to_schedule())
    job = starts.instance.jobs[row.job]
    if not math.isfinite(schedule._storage_cost(row, np.array([slot]))[0]):
        return {}
    for i in (starts.instance.job_index[name] for name in job.after):
        if i in schedule.chosen and schedule.completion(i) > slot:
            return {}
    for k, other in enumerate(starts.instance.jobs):
        if job.id in other.after and k in schedule.chosen and schedule.chosen[k].slot < slot + row.duration:
            return {}
    recount = Recount(starts.instance, row.pool, starts.num_slots)
    for step in schedule.chosen.values():
        if starts.rows[step.row].pool == row.pool:
            recount.runs.append(Taken(starts.rows[step.row], step.slot, step.spot))
    found: dict[tuple[int, ...], float] = {}
    for spot in [schedule._kept_spot(row)] if row.kept else recount.spots(row.mode):
        run = Taken(row, slot, spot)
        nodes = tuple(sorted(recount.nodes_of(run)))
        if nodes in found or not recount.fits(run):
            continue
        schedule.put(row.job, Step(r, slot, spot, 0.0))
        found[nodes] = total(schedule) - before + (job.reject_cost or 0.0)
        schedule.drop(row.job)
    return found


def trace(seeds: range) -> list[str]:
    """Every cost to the last bit, and what runs, along random changes."""
    found = []
    for seed in seeds:
        for family in FAMILIES:
            occupancy, draw = occupancy_of(random_instance(family, np.random.default_rng(seed))), random.Random(seed)
            set_random_prices(occupancy, draw)
            found += [f"{what} {occupancy.cost.hex()} {occupancy.steps()}" for what in walk(occupancy, draw, 10)]
    return found
