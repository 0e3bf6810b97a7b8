"""Runs of an elastic job, compiled: which mode in which slot, so that all of its work is done at the lowest cost.

Every mode (piece) costs `cost[m, t]` in slot t and does the part `work[m]` of the work; beginning costs `fresh[t]`,
each change `change`, completing at edge e `late[e]`. For a price `lam` of the whole work the best run that ends at each
edge is found by one pass over the slots,

    V[m, t] = cost[m, t] - lam work[m] + min(V[m, t - 1], fresh[t], min over t' < t, m': V[m', t'] + change),

and E(lam, e) + lam + late[e], with E the least V[m, e - 1], is at most what any run costs that completes at e: at least
all of the work is done. The best `lam` of an edge lies between one at which too little is done (the slow run) and one
at which enough is (the fast run). The run itself follows one of them up to some slot and the other from there on: small
first, and large at the last moment.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from planner.engines.fast.compiled import kernel

STAY, FRESH, AFTER = 0, 1, 2
"""Where a run in a slot comes from: it goes on, begins, or has changed."""
DONE, LEAST_DONE = 1 - 0.999e-9, 1 - 1.001e-9
"""Of the work: what a run has to do, and what any run does (`models.starts.WORK_DONE`); sums round."""
GRID, REFINED, EDGES = 8, 10, 3
"""Prices of the work tried at first, tried then where the best edge may be, and edges for which a run is made."""
MUCH = 1e4
"""Times the dearest work anywhere: a price at which as much is done as can be."""
CLOSE = 1e-4
"""A run whose cost is known up to this part needs no other price."""


class Room(NamedTuple):
    """Room for the runs of one job; M modes, T slots."""

    value: np.ndarray
    done: np.ndarray
    """Work that the best run has done, shape (M,)."""
    origin: np.ndarray
    """Shape (T, M)."""
    pause: np.ndarray
    """Slot and mode from which a change in each slot comes, shape (T, 2)."""
    edge: np.ndarray
    """Of each edge at one price: least value, and work of that run, shape (T + 1, 2)."""
    last: np.ndarray
    """Its mode in the last slot, shape (T + 1,)."""
    proven: np.ndarray
    """Of each edge the best bound, and the prices next to it at which too little and enough is done, and what the
    run at the latter costs, shape (T + 1, 4)."""
    paths: np.ndarray
    """Mode in each slot, -1 where it pauses: of the slow run, the fast run, and the best run, shape (3, T)."""
    sums: np.ndarray
    """Cost, work and begins until each edge, of the slow and of the fast run, shape (2, 3, T + 1)."""


class Task(NamedTuple):
    """What the run of a job is made of."""

    cost: np.ndarray
    """Of running in each slot; infinite where that cannot be, shape (M, T)."""
    work: np.ndarray
    """Part of the work that a slot does, shape (M,)."""
    kept: np.ndarray
    """Whether it is where the job runs already: that begins in slot 0 only, for nothing."""
    fresh: np.ndarray
    """What beginning in each slot costs, shape (T + 1,)."""
    late: np.ndarray
    """What completing at each edge costs, shape (T + 1,)."""
    change: float
    first: int
    end: int
    """Edges between which it runs."""


def room_for(num_modes: int, num_slots: int) -> Room:
    """Room for as many modes and slots."""
    return Room(
        np.zeros(num_modes),
        np.zeros(num_modes),
        np.zeros((num_slots, num_modes), dtype=np.int64),
        np.zeros((num_slots, 2), dtype=np.int64),
        np.zeros((num_slots + 1, 2)),
        np.zeros(num_slots + 1, dtype=np.int64),
        np.zeros((num_slots + 1, 4)),
        np.zeros((3, num_slots), dtype=np.int64),
        np.zeros((2, 3, num_slots + 1)),
    )


@kernel
def forward(task: Task, end: int, lam: float, room: Room) -> None:
    """The best run that ends at each edge up to `end`, at one price of the work."""
    cost, work, kept, fresh, change, first = task.cost, task.work, task.kept, task.fresh, task.change, task.first
    value, done, origin, pause, edge, last = room.value, room.done, room.origin, room.pause, room.edge, room.last
    num_modes = len(work)
    for m in range(num_modes):
        value[m], done[m] = math.inf, 0.0
    paused, paused_done, paused_slot, paused_mode = math.inf, 0.0, -1, -1
    for t in range(first, end):
        pause[t, 0], pause[t, 1] = paused_slot, paused_mode
        best, best_mode = math.inf, -1
        for m in range(num_modes):
            step = cost[m, t]
            if step == math.inf:
                value[m] = math.inf
                continue
            v, w, came = value[m], done[m], STAY
            if kept[m]:
                if t == 0:
                    v, w, came = 0.0, 0.0, FRESH
            else:
                if fresh[t] < v:
                    v, w, came = fresh[t], 0.0, FRESH
                if paused + change < v:
                    v, w, came = paused + change, paused_done, AFTER
            if v == math.inf:
                value[m] = math.inf
                continue
            value[m], done[m], origin[t, m] = v + step - lam * work[m], w + work[m], came
            if value[m] < best:
                best, best_mode = value[m], m
        edge[t + 1, 0], last[t + 1] = best, best_mode
        if best_mode >= 0:
            edge[t + 1, 1] = done[best_mode]
            if best < paused:
                paused, paused_done, paused_slot, paused_mode = best, done[best_mode], t, best_mode


@kernel
def trace(task: Task, e: int, room: Room, path: np.ndarray) -> None:
    """The run that ends at an edge, from the last `forward`."""
    path[task.first : task.end] = -1
    t, m = e - 1, room.last[e]
    while True:
        path[t] = m
        came = room.origin[t, m]
        if came == FRESH:
            return
        if came == AFTER:
            t, m = room.pause[t, 0], room.pause[t, 1]
        else:
            t -= 1


@kernel
def learn(task: Task, lam: float, room: Room) -> None:
    """What a price says of every edge."""
    edge, proven = room.edge, room.proven
    forward(task, task.end, lam, room)
    for e in range(task.first + 1, task.end + 1):
        if room.last[e] < 0:
            continue
        proven[e, 0] = max(proven[e, 0], edge[e, 0] + lam * LEAST_DONE)
        if edge[e, 1] < DONE:
            proven[e, 1] = max(proven[e, 1], lam)
        elif lam < proven[e, 2]:
            proven[e, 2], proven[e, 3] = lam, edge[e, 0] + lam * edge[e, 1]


@kernel
def best_edge(task: Task, proven: np.ndarray, beyond: float) -> int:
    """The edge with the lowest bound above some value at which the work can be done; -1 where there is none."""
    found, least = -1, math.inf
    for e in range(task.first + 1, task.end + 1):
        bound = proven[e, 0] + task.late[e]
        if proven[e, 2] < math.inf and beyond < bound < least:
            found, least = e, bound
    return found


@kernel
def price_work(task: Task, room: Room) -> int:
    """Prices of the work at which every edge is known well enough; the edge at which a run may cost least. -1 where
    there is no run."""
    cost, work, proven = task.cost, task.work, room.proven
    low, high = math.inf, 0.0
    for m in range(len(work)):
        for t in range(task.first, task.end):
            if cost[m, t] < math.inf:
                ratio = cost[m, t] / work[m]
                low, high = min(low, ratio), max(high, ratio)
    for e in range(task.first, task.end + 1):
        proven[e, 0], proven[e, 1], proven[e, 2], proven[e, 3] = -math.inf, 0.0, math.inf, math.inf
    if low == math.inf:
        return -1
    high = max(high, task.change) + 1e-9
    low = max(low, 1e-6 * high)
    # So dear that as much as possible is done: where even that is too little no run completes.
    learn(task, MUCH * high, room)
    for k in range(GRID):
        learn(task, low * (2.0 * high / low) ** (k / (GRID - 1.0)), room)
    for _ in range(REFINED):
        e = best_edge(task, proven, -math.inf)
        if e < 0 or proven[e, 3] - proven[e, 0] <= CLOSE * abs(proven[e, 0] + task.late[e]):
            return e
        under, over = max(proven[e, 1], 0.25 * low), proven[e, 2]
        if over <= under * (1 + 1e-3):
            return e
        learn(task, math.sqrt(under * over), room)
    return best_edge(task, proven, -math.inf)


@kernel
def add_up(task: Task, path: np.ndarray, sums: np.ndarray) -> None:
    """Cost, work and begins of a run until each edge."""
    first, before = task.first, -1
    sums[0, first], sums[1, first], sums[2, first] = 0.0, 0.0, 0.0
    for t in range(first, task.end):
        m = path[t]
        sums[0, t + 1], sums[1, t + 1], sums[2, t + 1] = sums[0, t], sums[1, t], sums[2, t]
        if m >= 0:
            sums[0, t + 1] += task.cost[m, t]
            sums[1, t + 1] += task.work[m]
            if m != before:
                sums[2, t + 1] += 1.0
        before = m


@kernel
def both_runs(task: Task, e: int, room: Room) -> None:
    """The slow and the fast run that end at an edge; the fast one twice where there is no slow one."""
    for k in range(2):
        lam = room.proven[e, 1 + k]
        if k == 0 and lam <= 0:
            lam = room.proven[e, 2]
        forward(task, e, lam, room)
        trace(task, e, room, room.paths[k])
        add_up(task, room.paths[k], room.sums[k])


@kernel
def join(task: Task, e: int, room: Room, less_than: float) -> float:
    """The cheapest of the runs that follow one of both up to some slot and the other from there, into the third path;
    its cost, infinite where none costs less than so much."""
    first, kept, paths = task.first, task.kept, room.paths
    best, best_order, best_slot = less_than, -1, -1
    for order in range(2):
        a, b = room.sums[order], room.sums[1 - order]
        for t in range(first, e + 1):
            if a[1, t] + b[1, e] - b[1, t] < DONE:
                continue
            begins = a[2, t] + b[2, e] - b[2, t]
            if first < t < e:
                before, after = paths[order, t - 1], paths[1 - order, t]
                if after >= 0 and kept[after] and after != before:
                    continue  # what was kept until now cannot be come back to
                if after >= 0 and after == paths[1 - order, t - 1]:
                    begins += 1.0  # what goes on in the other run begins in this one
                if after >= 0 and after == before:
                    begins -= 1.0
            total = a[0, t] + b[0, e] - b[0, t] + task.change * max(0.0, begins - 1.0)
            if total >= best:
                continue
            k, begin = (order, first) if a[2, t] > 0 else (1 - order, t)
            while paths[k, begin] < 0:
                begin += 1
            if not kept[paths[k, begin]]:
                total += task.fresh[begin]
            if total < best:
                best, best_order, best_slot = total, order, t
    if best_order < 0:
        return math.inf
    for t in range(first, e):
        paths[2, t] = paths[best_order, t] if t < best_slot else paths[1 - best_order, t]
    return best


@kernel
def cheapest_run(task: Task, room: Room, best: np.ndarray) -> float:
    """A run of about the lowest cost into `best`, the mode of each slot or -1; its cost as it is reckoned here,
    infinite where there is none."""
    proven, late = room.proven, task.late
    found, beyond = math.inf, -math.inf
    if price_work(task, room) < 0:
        return found
    for _ in range(EDGES):
        e = best_edge(task, proven, beyond)
        if e < 0 or proven[e, 0] + late[e] >= found:
            break
        beyond = proven[e, 0] + late[e]
        both_runs(task, e, room)
        total = join(task, e, room, found - late[e])
        if total < math.inf:
            found = total + late[e]
            for t in range(task.first, task.end):
                best[t] = room.paths[2, t] if t < e else -1
    return found
