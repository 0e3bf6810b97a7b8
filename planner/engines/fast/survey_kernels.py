"""What every start of a job would about cost, compiled: one pass over the slots of each of its rows.

Of the nodes only the numbers are looked at: how many are empty in each slot, how many have so many GPUs free. Where
nodes are billed by the slot that gives a lower bound on what a start adds to the cost (a place throughout may be
harder to find than one in each slot), so starts taken in this order can be given up once they are no cheaper than the
best place found. With blocks and boots it is an estimate.
"""

from __future__ import annotations

import math

from planner.engines.fast.compiled import kernel
from planner.engines.fast.state import Facts, State
from planner.engines.fast.storage_kernels import cache_cost, reaching_cost


@kernel
def nodes_by_slot(f: Facts, s: State, r: int) -> None:
    """Into `State.level` what nodes must be turned on for until each slot edge, and into `State.full` the last slot up
    to each in which there is no room for a row."""
    row = f.rows[r]
    p, gpus, number = row["pool"], row["gpus"], row["num_nodes"]
    pool = f.pools[p]
    empty, room, price, level, full = s.spacious[p, pool["gpus"]], s.spacious[p, gpus], f.price[p], s.level, s.full
    every = pool["end"] - pool["start"]
    paid, last = 0.0, -1
    level[0] = 0.0
    for t in range(len(full)):
        if number > 1:
            paid += number * price[t]
            if empty[t] < number:
                last = t
        elif gpus > 0:
            if room[t] == empty[t]:
                paid += price[t]
            if room[t] == 0:
                last = t
        elif empty[t] == every:
            paid += price[t]
        full[t] = last
        level[t + 1] = paid


@kernel
def reading_by_slot(f: Facts, s: State, r: int, begin: int, last: int) -> bool:
    """Into `State.reading` what reading from each slot on adds, `reading_cost` but for links; whether there is
    anything that can be read."""
    row, reading = f.rows[r], s.reading
    cost = cache_cost(f, s, r) if row["level"] > 0 else 0.0
    if cost == math.inf:
        return False
    site, duration, rate, queue = row["site"], row["duration"], row["rate"], s.queue
    if rate <= 0:
        reading[begin : last + 1] = cost
        return True
    bandwidth = s.bandwidth[site]
    # The largest of each window of `duration` slots: those that no later one exceeds wait in a queue.
    head, tail = 0, 0
    for t in range(begin, last + duration):
        while tail > head and bandwidth[queue[tail - 1]] <= bandwidth[t]:
            tail -= 1
        queue[tail] = t
        tail += 1
        first = t - duration + 1
        if first < begin:
            continue
        if queue[head] < first:
            head += 1
        reading[first] = cost + reaching_cost(f, s, site, bandwidth[queue[head]] + rate)
    return True


@kernel
def price_of_start(f: Facts, s: State, r: int, slot: int) -> float:
    """What a start costs under the prices, as in `planner.engines.fast.pricing`."""
    row = f.rows[r]
    j, end, energy = row["job"], slot + row["duration"], f.energy[row["pool"]]
    paid = row["fixed"] + row["busy"] * (energy[end] - energy[slot]) + s.price_end[j, end]
    if s.price_begin.shape[1] > 1:
        paid += s.price_begin[j, slot]
    if s.surcharge.shape[1] > 1:
        paid += s.surcharge[r, end] - s.surcharge[r, slot]
    for k in range(s.use_start[r], s.use_start[r + 1]):
        sums = s.price_sums[s.use_limit[k]]
        paid += s.use_amount[k] * (sums[end] - sums[slot])
    return paid


@kernel
def survey(f: Facts, s: State, j: int, earliest: int, latest: int, theta: float) -> None:
    """Into `State.scores` (1 - theta) times the estimate and theta times the price of each start of a job that runs
    between two edges, infinite where it has no room; the least of each row into `State.row_score` and its slot into
    `State.row_slot`."""
    first_row, pool, gpus, number = f.jobs[j]["row"], -1, -1, -1
    level, full, late, reading = s.level, s.full, f.late[j], s.reading
    for r in range(first_row, f.jobs[j]["end_row"]):
        row, scores = f.rows[r], s.scores[r - first_row]
        s.row_score[r - first_row], s.row_begin[r - first_row], s.row_last[r - first_row] = math.inf, 0, -1
        duration, mask = row["duration"], row["mask"]
        begin, last = max(earliest, row["first"]), min(latest - duration, row["last"])
        if last < begin:
            continue
        reads = row["dataset"] >= 0
        if reads and not reading_by_slot(f, s, r, begin, last):
            continue
        if row["pool"] != pool or row["gpus"] != gpus or row["num_nodes"] != number:
            nodes_by_slot(f, s, r)
            pool, gpus, number = row["pool"], row["gpus"], row["num_nodes"]
        energy, fixed, busy = f.energy[pool], row["fixed"], row["busy"]
        least, where = math.inf, -1
        s.row_begin[r - first_row], s.row_last[r - first_row] = begin, last
        for t in range(begin, last + 1):
            end = t + duration
            score = math.inf
            if full[end - 1] < t and (mask < 0 or f.masks[mask, t]):
                score = fixed + busy * (energy[end] - energy[t]) + late[end] + level[end] - level[t]
                if reads:
                    score += reading[t]
                if theta > 0 and score < math.inf:
                    score = (1 - theta) * score + theta * price_of_start(f, s, r, t)
                if score < least:
                    least, where = score, t
            scores[t] = score
        s.row_score[r - first_row], s.row_slot[r - first_row] = least, where


@kernel
def leave(f: Facts, s: State, r: int, slot: int) -> None:
    """Leave a start out of those that a survey has found."""
    row = f.rows[r]
    i = r - f.jobs[row["job"]]["row"]
    scores = s.scores[i]
    scores[slot] = math.inf
    least, where = math.inf, -1
    # Before its first and after its last slot is what other jobs have left.
    for t in range(s.row_begin[i], s.row_last[i] + 1):
        if scores[t] < least:
            least, where = scores[t], t
    s.row_score[i], s.row_slot[i] = least, where
