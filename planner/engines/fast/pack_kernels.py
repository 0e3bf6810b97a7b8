"""Jobs packed onto nodes at given starts, compiled: one order after the other, and what found no room goes earlier.

Whether runs with fixed times fit on nodes is a packing problem that hangs on the order in which they are put there.
The search for an order is a squeaky wheel (Joslin and Clements, 1999): who was left out moves to the front, and drifts
back slowly. The order begins with the runs that take up most, for small ones find holes.
"""

from __future__ import annotations

import math

import numpy as np

from planner.engines.fast.compiled import kernel
from planner.engines.fast.insert_kernels import become, copy_step, drop, find, own_cost, put, uniform
from planner.engines.fast.node_kernels import STEP
from planner.engines.fast.state import FOUND_GPU, TOTAL, Facts, State
from planner.engines.fast.survey_kernels import price_of_start

# Places, as a part of all, by which a run that was left out moves forward at most; the part of the way back to its
# first place that each moves after each pass; and places by which the order is shaken.
FORWARD, BACK, SHAKE = 0.1, 0.02, 2.0
# Passes without a better packing after which it is given up.
PATIENCE = 200


@kernel
def pack_in_order(f: Facts, s: State, jobs: np.ndarray, order: np.ndarray, left_out: np.ndarray) -> None:
    """Put jobs at their aims in an order of their indices, where there is room; whether each was left out."""
    for j in jobs:
        drop(f, s, j)
    for i in order:
        aim = s.aims[jobs[i]]
        left_out[i] = find(f, s, aim["row"], aim["slot"]) == math.inf
        if not left_out[i]:
            put(f, s, jobs[i], aim["row"], aim["slot"], s.counters[FOUND_GPU], s.found)


@kernel
def pack(f: Facts, s: State, jobs: np.ndarray, passes: int) -> None:
    """Put jobs at their aims, as many and as valuable ones as `passes` orders find room for; the others do not run.

    A run that is left out counts as if it had nodes of its own, which are alone there, and what its start pays for
    what is scarce under the prices.
    """
    number = len(jobs)
    scarce, loss, begin = np.zeros(number), np.zeros(number), np.zeros(number)
    for i in range(number):
        aim, reject = s.aims[jobs[i]], f.jobs[jobs[i]]["reject"]
        row, slot = f.rows[aim["row"]], aim["slot"]
        cost, nodes = own_cost(f, aim["row"], slot, row["duration"]), f.price_sums[row["pool"]]
        scarce[i], begin[i] = price_of_start(f, s, aim["row"], slot) - cost, slot
        loss[i] = cost + row["num_nodes"] * (nodes[slot + row["duration"]] - nodes[slot]) + scarce[i]
        if reject < math.inf:
            loss[i] -= reject  # with which the total counts a job that does not run
    by_value = np.argsort(-scarce, kind="mergesort")
    by_begin = by_value[np.argsort(begin[by_value], kind="mergesort")]
    left_out, first, place = np.zeros(number, dtype=np.bool_), np.zeros(number), np.zeros(number)
    best, patience = math.inf, PATIENCE
    for k in range(passes):
        if k == 0:
            order = by_value
        elif k == 1:
            # Whole nodes always find room so where there is so much: intervals coloured in the order of their begins.
            order = by_begin
        else:
            shaken = np.empty(number)
            for i in range(number):
                place[i] += BACK * (first[i] - place[i])
                shaken[i] = place[i] + SHAKE * uniform(s)
            order = np.argsort(shaken)
        pack_in_order(f, s, jobs, order, left_out)
        # Of equal cost the one that leaves fewer out.
        cost = s.money[TOTAL] + loss[left_out].sum() + STEP * left_out.sum()
        patience -= 1
        if cost < best:
            best, patience = cost, PATIENCE
            for j in jobs:
                copy_step(f, s, j, s.wanted, s.wanted_places)
            if k < 2:
                first[order] = np.arange(number)
                place[:] = first
        if patience == 0 or not left_out.any():
            break
        for i in range(number):
            if left_out[i]:
                place[i] -= FORWARD * number * uniform(s)
    become(f, s, jobs, s.wanted, s.wanted_places)
