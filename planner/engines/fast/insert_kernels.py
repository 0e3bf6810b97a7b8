"""Jobs into the plan and out of it, compiled; and the journal that takes changes back."""

from __future__ import annotations

import math

import numpy as np

from planner.engines.fast.compiled import kernel
from planner.engines.fast.node_kernels import find_gang, find_node, full_slot, keep_best, take_nodes
from planner.engines.fast.state import (
    BEST_GPU,
    CHANGED,
    FOUND_GPU,
    MARKED,
    MISSING,
    MOST_SPENT,
    RANDOM,
    SERVICE,
    TOTAL,
    Facts,
    State,
)
from planner.engines.fast.storage_kernels import read, reading_cost
from planner.engines.fast.survey_kernels import leave, price_of_start, survey

# Starts without a place after which a job goes wherever there is room.
MOST_MISSES = 60
# Starts that are too dear, after which it is left out.
MOST_DEAR = 8

# A linear congruential generator (Park and Miller, revised 1993).
FACTOR, MODULUS = 48271, 2147483647


@kernel
def own_cost(f: Facts, r: int, slot: int, length: int) -> float:
    """What a start costs by itself; of a piece what so many slots cost, without what its job pays for changes and for
    its completion."""
    row = f.rows[r]
    end = slot + length
    energy = f.energy[row["pool"], end] - f.energy[row["pool"], slot]
    if row["work"] > 0:
        return row["fixed"] * length + row["busy"] * energy
    return row["fixed"] + row["busy"] * energy + f.late[row["job"], end]


@kernel
def is_start(f: Facts, r: int, slot: int) -> bool:
    """Whether a row may start in a slot at all."""
    row = f.rows[r]
    if slot < row["first"] or slot > row["last"]:
        return False
    return row["mask"] < 0 or f.masks[row["mask"], slot]


@kernel
def offer(f: Facts, s: State, r: int, slot: int, length: int) -> float:
    """What the cheapest place for a start, or so many slots of a piece, adds to the cost; infinite where it has none.
    The place is in `State.found` and its GPU in `State.counters`."""
    row = f.rows[r]
    end = slot + length
    if row["gpus"] > 0 and full_slot(s.spacious, row["pool"], row["gpus"], row["num_nodes"], slot, end) >= 0:
        return math.inf
    cost = reading_cost(f, s, r, slot, length)
    if cost == math.inf:
        return cost
    cost += find_gang(f, s, r, slot, length) if row["num_nodes"] > 1 else find_node(f, s, r, slot, length)
    return cost + own_cost(f, r, slot, length)


@kernel
def is_too_dear(f: Facts, s: State, r: int, slot: int, cost: float) -> bool:
    """Whether with a start that adds so much to the cost more would be spent than may be."""
    row = f.rows[r]
    late = f.late[row["job"], slot + row["duration"]]
    return s.money[TOTAL] - s.money[SERVICE] + cost - late > s.money[MOST_SPENT]


@kernel
def begin_of_run(f: Facts, s: State, j: int) -> int:
    """The slot in which a job begins that runs."""
    begin = s.chosen[j]["slot"]
    for q in range(f.jobs[j]["part"], f.jobs[j]["end_part"]):
        if s.chosen[q]["row"] >= 0:
            begin = min(begin, s.chosen[q]["slot"])
    return begin


@kernel
def window_of(f: Facts, s: State, j: int) -> tuple[int, int, bool, bool]:
    """Slot edges between which a job must run for its predecessors and successors that run, whether a predecessor
    does not run, and whether a successor does."""
    job = f.jobs[j]
    earliest, latest = 0, f.energy.shape[1] - 1
    waits, is_waited_for = False, False
    for k in range(job["before"], job["end_before"]):
        step = s.chosen[f.before[k]]
        if step["row"] < 0:
            waits = True
        else:
            earliest = max(earliest, step["slot"] + step["length"])
    for k in range(job["after"], job["end_after"]):
        step = s.chosen[f.after[k]]
        if step["row"] >= 0:
            is_waited_for = True
            latest = min(latest, begin_of_run(f, s, f.after[k]))
    return earliest, latest, waits, is_waited_for


@kernel
def uniform(s: State) -> float:
    """A random number below 1."""
    s.counters[RANDOM] = s.counters[RANDOM] * FACTOR % MODULUS
    return s.counters[RANDOM] / MODULUS


@kernel
def copy_segment(
    f: Facts, q: int, from_steps: np.ndarray, from_places: np.ndarray, steps: np.ndarray, places: np.ndarray
) -> None:
    """Write what a job or a part does from arrays like `State.chosen` and `State.places` into others."""
    step, copy = from_steps[q], steps[q]
    copy["row"], copy["slot"], copy["gpu"], copy["length"] = step["row"], step["slot"], step["gpu"], step["length"]
    if step["row"] >= 0:
        at = f.jobs[q]["place"]
        for k in range(at, at + f.rows[step["row"]]["num_nodes"]):
            places[k] = from_places[k]


@kernel
def copy_step(f: Facts, s: State, j: int, steps: np.ndarray, places: np.ndarray) -> None:
    """Write what a job does, and its nodes, into other arrays like `State.chosen` and `State.places`."""
    copy_segment(f, j, s.chosen, s.places, steps, places)
    for q in range(f.jobs[j]["part"], f.jobs[j]["end_part"]):
        copy_segment(f, q, s.chosen, s.places, steps, places)


@kernel
def note(f: Facts, s: State, j: int) -> None:
    """Put a job into the journal before it changes."""
    if s.counters[MARKED] == 0 or s.noted[j]:
        return
    s.noted[j] = True
    s.journal[s.counters[CHANGED]] = j
    s.counters[CHANGED] += 1
    copy_step(f, s, j, s.old, s.old_places)


@kernel
def count_rejection(f: Facts, s: State, j: int, sign: int) -> None:
    """A job that is not run any more, or (sign -1) is."""
    reject = f.jobs[j]["reject"]
    if reject == math.inf:
        s.counters[MISSING] += sign
    else:
        s.money[TOTAL] += sign * reject
        s.money[SERVICE] += sign * reject


@kernel
def count_own_cost(f: Facts, s: State, r: int, slot: int, length: int, sign: int) -> None:
    """A start that is in the plan, or (sign -1) is not any more."""
    row = f.rows[r]
    s.money[TOTAL] += sign * own_cost(f, r, slot, length)
    if row["work"] == 0:
        s.money[SERVICE] += sign * f.late[row["job"], slot + length]


@kernel
def count_changes(f: Facts, s: State, j: int, sign: int) -> None:
    """What a run of pieces that is in the plan, or (sign -1) is not any more, pays for its changes and completion."""
    job, step = f.jobs[j], s.chosen[j]
    changes, first, begin = 0, step["row"], step["slot"]
    for q in range(job["part"], job["end_part"]):
        if s.chosen[q]["row"] >= 0:
            changes += 1
            if s.chosen[q]["slot"] < begin:
                first, begin = s.chosen[q]["row"], s.chosen[q]["slot"]
    if job["runs"] and not f.rows[first]["kept"]:
        changes += 1
    late = f.late[j, step["slot"] + step["length"]]
    s.money[TOTAL] += sign * (late + changes * job["restart"])
    s.money[SERVICE] += sign * late


@kernel
def take_off(f: Facts, s: State, q: int) -> None:
    """Take off what a job or a part does."""
    step = s.chosen[q]
    r, slot, length = step["row"], step["slot"], step["length"]
    take_nodes(f, s, r, slot, length, s.places, f.jobs[q]["place"], step["gpu"], -1)
    read(f, s, r, slot, length, -1)
    count_own_cost(f, s, r, slot, length, -1)
    step["row"] = -1


@kernel
def put_on(f: Facts, s: State, q: int, r: int, slot: int, length: int, gpu: int, nodes: np.ndarray) -> None:
    """Let a job or a part run on the first of `nodes`."""
    step, place = s.chosen[q], f.jobs[q]["place"]
    step["row"], step["slot"], step["gpu"], step["length"] = r, slot, gpu, length
    for k in range(f.rows[r]["num_nodes"]):
        s.places[place + k] = nodes[k]
    take_nodes(f, s, r, slot, length, s.places, place, gpu, 1)
    read(f, s, r, slot, length, 1)
    count_own_cost(f, s, r, slot, length, 1)


@kernel
def drop(f: Facts, s: State, j: int) -> None:
    """Take a job off, if it runs."""
    r = s.chosen[j]["row"]
    if r < 0:
        return
    note(f, s, j)
    if f.rows[r]["work"] > 0:
        count_changes(f, s, j, -1)
    take_off(f, s, j)
    for q in range(f.jobs[j]["part"], f.jobs[j]["end_part"]):
        if s.chosen[q]["row"] >= 0:
            take_off(f, s, q)
    count_rejection(f, s, j, 1)


@kernel
def put(f: Facts, s: State, j: int, r: int, slot: int, gpu: int, nodes: np.ndarray) -> None:
    """Run a job on the first of `nodes`, where there is room; where it runs already it is taken off there."""
    drop(f, s, j)
    note(f, s, j)
    put_on(f, s, j, r, slot, f.rows[r]["duration"], gpu, nodes)
    count_rejection(f, s, j, -1)


@kernel
def put_as(f: Facts, s: State, j: int, steps: np.ndarray, places: np.ndarray) -> None:
    """Run a job that does not run as arrays like `State.chosen` and `State.places` say."""
    note(f, s, j)
    for q in range(f.jobs[j]["part"], f.jobs[j]["end_part"]):
        part = steps[q]
        if part["row"] >= 0:
            at = f.jobs[q]["place"]
            put_on(f, s, q, part["row"], part["slot"], part["length"], part["gpu"], places[at:])
    step = steps[j]
    put_on(f, s, j, step["row"], step["slot"], step["length"], step["gpu"], places[f.jobs[j]["place"] :])
    if f.rows[step["row"]]["work"] > 0:
        count_changes(f, s, j, 1)
    count_rejection(f, s, j, -1)


@kernel
def scan(f: Facts, s: State, j: int, earliest: int, latest: int) -> tuple[int, int, float]:
    """The cheapest of the earliest starts that the rows of a job find room for and money may be spent on, the shortest
    row of equal cost: row (-1 where there is none), slot and what it adds to the cost. Its place is in `State.best`."""
    best_row, best_slot, best = -1, -1, math.inf
    for k in range(f.jobs[j]["row"], f.jobs[j]["end_row"]):
        r = f.row_order[k]
        row = f.rows[r]
        slot = max(earliest, row["first"])
        last = min(latest - row["duration"], row["last"])
        while slot <= last:
            if row["gpus"] > 0:
                # No start up to the last full slot of the window has room either.
                end = slot + row["duration"]
                full = full_slot(s.spacious, row["pool"], row["gpus"], row["num_nodes"], slot, end)
                if full >= 0:
                    slot = full + 1
                    continue
            if is_start(f, r, slot):
                cost = offer(f, s, r, slot, row["duration"])
                if cost < math.inf:
                    if cost < best and not is_too_dear(f, s, r, slot, cost):
                        best_row, best_slot, best = r, slot, cost
                        keep_best(s, row["num_nodes"])
                    break
            slot += 1
    return best_row, best_slot, best


@kernel
def find(f: Facts, s: State, r: int, slot: int) -> float:
    """What the cheapest place for a start adds to the cost, if the job may start then."""
    earliest, latest, _, _ = window_of(f, s, f.rows[r]["job"])
    if not is_start(f, r, slot) or slot < earliest or slot + f.rows[r]["duration"] > latest:
        return math.inf
    return offer(f, s, r, slot, f.rows[r]["duration"])


@kernel
def insert(f: Facts, s: State, j: int, theta: float, tries: int, blink: float) -> bool:
    """Run a job where it is cheapest, or leave it out where that is cheaper; whether it could be done.

    One that has an aim goes there, on its cheapest nodes, if there is room. Otherwise its starts are taken in the order
    of the survey, each passed over with probability `blink`, until `tries` of them have a place or none can be better.
    Where none has one (or `tries` is 0) it goes to the cheapest of the earliest starts of its rows. A start for which
    more would be spent than may be is not taken.
    """
    earliest, latest, waits, is_waited_for = window_of(f, s, j)
    reject = f.jobs[j]["reject"]
    if is_waited_for:
        reject = math.inf
    if waits:
        return reject < math.inf
    aim = s.aims[j]
    if aim["row"] >= 0:
        cost = find(f, s, aim["row"], aim["slot"])
        if cost < math.inf and not is_too_dear(f, s, aim["row"], aim["slot"], cost):
            put(f, s, j, aim["row"], aim["slot"], s.counters[FOUND_GPU], s.found)
            return True
    best_row, best_slot, best_score, least = -1, -1, math.inf, math.inf
    first_row = f.jobs[j]["row"]
    number, tried, misses, dear = f.jobs[j]["end_row"] - first_row, 0, 0, 0
    if tries > 0 and number > 0:
        survey(f, s, j, earliest, latest, theta)
    while number > 0 and tried < tries and misses < MOST_MISSES and dear < MOST_DEAR:
        i = 0
        for k in range(1, number):
            if s.row_score[k] < s.row_score[i]:
                i = k
        score, r, slot = s.row_score[i], first_row + i, s.row_slot[i]
        if score >= best_score:
            break
        leave(f, s, r, slot)
        if blink > 0 and uniform(s) < blink:
            continue
        cost = offer(f, s, r, slot, f.rows[r]["duration"])
        if cost == math.inf:
            misses += 1
            continue
        if is_too_dear(f, s, r, slot, cost):
            dear += 1
            continue
        tried += 1
        least = min(least, cost)
        score = cost
        if theta > 0:
            score = (1 - theta) * cost + theta * price_of_start(f, s, r, slot)
        if score < best_score:
            best_row, best_slot, best_score = r, slot, score
            keep_best(s, f.rows[r]["num_nodes"])
    if best_row < 0 and dear == 0:
        best_row, best_slot, least = scan(f, s, j, earliest, latest)
    if best_row < 0 or reject < least:
        return reject < math.inf
    put(f, s, j, best_row, best_slot, s.counters[BEST_GPU], s.best)
    return True


@kernel
def is_segment(f: Facts, s: State, q: int, wanted: np.ndarray, places: np.ndarray) -> bool:
    """Whether a job or a part does what is wanted."""
    step, aim = s.chosen[q], wanted[q]
    if step["row"] != aim["row"]:
        return False
    if step["row"] < 0:
        return True
    if step["slot"] != aim["slot"] or step["gpu"] != aim["gpu"] or step["length"] != aim["length"]:
        return False
    at, is_same = f.jobs[q]["place"], True
    for k in range(at, at + f.rows[step["row"]]["num_nodes"]):
        is_same = is_same and s.places[k] == places[k]
    return is_same


@kernel
def is_as(f: Facts, s: State, j: int, wanted: np.ndarray, places: np.ndarray) -> bool:
    """Whether a job does what is wanted, in all of its segments."""
    is_same = is_segment(f, s, j, wanted, places)
    for q in range(f.jobs[j]["part"], f.jobs[j]["end_part"]):
        is_same = is_same and is_segment(f, s, q, wanted, places)
    return is_same


@kernel
def become(f: Facts, s: State, jobs: np.ndarray, wanted: np.ndarray, places: np.ndarray) -> None:
    """Change some jobs to what is wanted; all are off before the first is on again, so that they do not collide."""
    for j in jobs:
        if not is_as(f, s, j, wanted, places):
            drop(f, s, j)
    for j in jobs:
        if wanted[j]["row"] >= 0 and s.chosen[j]["row"] < 0:
            put_as(f, s, j, wanted, places)


@kernel
def commit(s: State) -> None:
    """Forget the mark and the journal."""
    for k in range(s.counters[CHANGED]):
        s.noted[s.journal[k]] = False
    s.counters[CHANGED] = 0
    s.counters[MARKED] = 0
