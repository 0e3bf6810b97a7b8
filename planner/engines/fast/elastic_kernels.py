"""An elastic job put back, compiled: as a run of one segment, and as runs made of pieces; the cheapest stays.

What a piece adds to the cost in each slot is reckoned slot by slot (a node that must be turned on, energy, bandwidth
beyond the peak as a part of what the whole run would buy), a run is made of that (`run_kernels`), and its segments are
put on nodes one after the other; what that really adds is what counts. A segment that no node holds throughout goes as
far as one does, and on elsewhere.
"""

from __future__ import annotations

import math

import numpy as np

from planner.engines.fast.compiled import kernel
from planner.engines.fast.insert_kernels import (
    copy_step,
    count_changes,
    count_rejection,
    drop,
    insert,
    is_start,
    note,
    offer,
    put_as,
    put_on,
    take_off,
    uniform,
    window_of,
)
from planner.engines.fast.run_kernels import Room, Task, cheapest_run
from planner.engines.fast.state import FOUND_GPU, MOST_SPENT, SERVICE, TOTAL, Facts, State
from planner.engines.fast.storage_kernels import cache_cost, reaching_cost
from planner.engines.fast.survey_kernels import nodes_by_slot

TRIES = 5
"""Runs that are made at most; another one where the last had too many segments, or found no room."""
DEARER = 0.03
"""Of a run's cost: what a change is taken to cost where a run with fewer of them is wanted, and three times that for
each further try."""


@kernel
def piece_costs(f: Facts, s: State, j: int, theta: float, blink: float) -> None:
    """What running in each slot adds to the cost, by piece, into `State.piece_cost`."""
    job, cost, blocked = f.jobs[j], s.piece_cost[0], s.piece_cost[1]
    num_slots = cost.shape[1]
    for m in range(job["end_piece"] - job["piece"]):
        r = job["piece"] + m
        row = f.rows[r]
        cost[m, :] = math.inf
        if blink > 0 and uniform(s) < blink:
            continue
        reads = row["dataset"] >= 0
        once = cache_cost(f, s, r) if reads and row["level"] > 0 else 0.0
        if once == math.inf:
            continue
        nodes_by_slot(f, s, r)
        energy, work = f.energy[row["pool"]], row["work"]
        for t in range(row["first"], min(num_slots, row["last"] + 1)):
            if s.full[t] == t or blocked[m, t] > 0 or not is_start(f, r, t):
                continue
            marginal = row["fixed"] + row["busy"] * (energy[t + 1] - energy[t])
            added = s.level[t + 1] - s.level[t] + once * work
            if reads and row["rate"] > 0:
                added += work * reaching_cost(f, s, row["site"], s.bandwidth[row["site"], t] + row["rate"])
            if theta > 0 and added < math.inf:
                priced = 0.0
                for k in range(s.use_start[r], s.use_start[r + 1]):
                    sums = s.price_sums[s.use_limit[k]]
                    priced += s.use_amount[k] * (sums[t + 1] - sums[t])
                added = (1 - theta) * added + theta * priced
            cost[m, t] = marginal + added


@kernel
def longest(f: Facts, s: State, r: int, slot: int, length: int) -> int:
    """Slots from one on, no more than so many, for which some node holds a piece; its place is found. 0: none."""
    if offer(f, s, r, slot, length) < math.inf:
        return length
    low, high = 0, length
    while high - low > 1:
        middle = (low + high) // 2
        if offer(f, s, r, slot, middle) < math.inf:
            low = middle
        else:
            high = middle
    if low > 0:
        offer(f, s, r, slot, low)
    return low


@kernel
def take_back(f: Facts, s: State, j: int) -> None:
    """Take off the segments of a run that is not whole."""
    if s.chosen[j]["row"] >= 0:
        take_off(f, s, j)
    for q in range(f.jobs[j]["part"], f.jobs[j]["end_part"]):
        if s.chosen[q]["row"] >= 0:
            take_off(f, s, q)


@kernel
def put_run(f: Facts, s: State, j: int, first: int, end: int) -> int:
    """Put the run of `State.run_best` on nodes. 1: done; 0: it has too many segments; -1: a piece finds no room in a
    slot, which is noted."""
    job, best = f.jobs[j], s.run_best
    last = end - 1
    while best[last] < 0:
        last -= 1
    t, q = first, job["part"]
    moved = 0
    while t <= last:
        m = best[t]
        if m < 0:
            t += 1
            continue
        length = 1
        while t + length <= last and best[t + length] == m:
            length += 1
        r = job["piece"] + m
        if q == job["part"] and job["runs"] and not f.rows[r]["kept"]:
            moved = 1
        room = longest(f, s, r, t, length)
        if room == 0:
            s.piece_cost[1, m, t] = 1.0
            take_back(f, s, j)
            return -1
        is_last = t + room > last
        if not is_last and q - job["part"] + moved >= job["changes"]:
            take_back(f, s, j)
            return 0
        put_on(f, s, j if is_last else q, r, t, room, s.counters[FOUND_GPU], s.found)
        q += 1
        t += room
        if f.rows[r]["kept"] and room < length:
            s.piece_cost[1, m, t] = 1.0
            take_back(f, s, j)
            return -1
    if q - job["part"] - 1 + moved > job["changes"]:
        take_back(f, s, j)
        return 0
    count_changes(f, s, j, 1)
    count_rejection(f, s, j, -1)
    return 1


@kernel
def insert_elastic(f: Facts, s: State, j: int, theta: float, tries: int, blink: float) -> bool:
    """Run an elastic job where it is cheapest, or leave it out where that is cheaper; whether it could be done."""
    job = f.jobs[j]
    off, spent_service = s.money[TOTAL], s.money[SERVICE]
    could = insert(f, s, j, theta, tries, blink)
    earliest, latest, waits, is_waited_for = window_of(f, s, j)
    if waits or tries == 0 or job["changes"] == 0:
        return could
    best, is_in = math.inf, s.chosen[j]["row"] >= 0
    if is_in:
        best = s.money[TOTAL]
    elif could and not is_waited_for:
        best = off
    copy_step(f, s, j, s.tried, s.tried_places)
    drop(f, s, j)
    note(f, s, j)
    number = job["end_piece"] - job["piece"]
    s.piece_cost[1, :number, :] = 0.0
    work, kept = np.empty(number), np.empty(number, dtype=np.bool_)
    for m in range(number):
        work[m], kept[m] = f.rows[job["piece"] + m]["work"], f.rows[job["piece"] + m]["kept"] != 0
    fresh = np.zeros(len(s.run_best) + 1)
    room = Room(
        s.run_value,
        s.run_done,
        s.run_origin,
        s.run_pause,
        s.run_edge,
        s.run_last,
        s.run_proven,
        s.run_paths,
        s.run_sums,
    )
    change, dearer = job["restart"], 0.0
    for _ in range(TRIES):
        piece_costs(f, s, j, theta, blink)
        fresh[:] = change if job["runs"] else 0.0
        task = Task(s.piece_cost[0, :number], work, kept, fresh, f.late[j], change, earliest, latest)
        reckoned = cheapest_run(task, room, s.run_best)
        if reckoned == math.inf:
            break
        outcome = put_run(f, s, j, earliest, latest)
        if outcome == 1:
            spent = s.money[TOTAL] - s.money[SERVICE]
            if s.money[TOTAL] < best - 1e-12 * abs(best) and spent <= s.money[MOST_SPENT]:
                best = s.money[TOTAL]
                copy_step(f, s, j, s.tried, s.tried_places)
            drop(f, s, j)
            break
        if outcome == 0:
            dearer = max(3.0 * dearer, DEARER * reckoned)
            change = job["restart"] + dearer
    # Sums that were added to and taken from drift in their last digits; the job is as it was.
    s.money[TOTAL], s.money[SERVICE] = off, spent_service
    if s.tried[j]["row"] < 0:
        return could
    put_as(f, s, j, s.tried, s.tried_places)
    return True
