"""When a node is on, compiled: the lowest cost of on-intervals as `models.rentals.cheapest_intervals` finds it, and
what one more run adds to it.

For each node with blocks or boots two sums are kept for every k: the lowest cost of intervals over the first k busy
stretches, and over those from the k-th on. A run that joins the node changes one stretch in the middle; the best
interval over it is looked for between the two sums, without going through the rest of the node again.

Throughout, `sums` is the money for a node until each slot edge, shape (T + block + 1,), `closed` the slots before each
edge in which it cannot be on, shape (T + 1,), `warm` whether it is on at the start; `stretches` and `covers` are those
of the node in `State`, `count` its stretches.
"""

from __future__ import annotations

import math

import numpy as np

from planner.engines.fast.compiled import kernel


@kernel
def find_stretches(taken: np.ndarray, stretches: np.ndarray) -> int:
    """Busy stretches [begin, end) of a node into `stretches`; how many there are. `taken` has shape (T,)."""
    count = 0
    was_busy = False
    for t in range(len(taken)):
        is_busy = taken[t] > 0
        if is_busy and not was_busy:
            stretches[count, 0] = t
        if was_busy and not is_busy:
            stretches[count, 1] = t
            count += 1
        was_busy = is_busy
    if was_busy:
        stretches[count, 1] = len(taken)
        count += 1
    return count


@kernel
def begin_of(k: int, block: int, boot: int, first: int, earliest: int, from_start: bool) -> int:
    """The k-th begin of an interval whose first stretch begins at `first`: a boot before it in one of the phases of
    the blocks, or slot 0 where the node is on since the start. -1: not possible."""
    if k < block:
        begin = first - boot - k
        return begin if begin >= earliest else -1
    return 0 if from_start else -1


@kernel
def price_of(sums: np.ndarray, block: int, begin: int, end: int) -> float:
    """Money for an interval: whole blocks from its begin."""
    billed = begin + (end - begin + block - 1) // block * block
    return sums[billed] - sums[begin]


@kernel
def cost_from(
    sums: np.ndarray,
    closed: np.ndarray,
    block: int,
    boot: int,
    warm: bool,
    stretches: np.ndarray,
    covers: np.ndarray,
    count: int,
    i: int,
    earliest: int,
) -> float:
    """Lowest cost of the stretches from the i-th on, the first interval beginning at `earliest` or later."""
    best = math.inf
    for k in range(block + 1):
        begin = begin_of(k, block, boot, stretches[i, 0], earliest, warm and earliest == 0)
        if begin < 0:
            continue
        for j in range(i, count):
            end = stretches[j, 1]
            if closed[end] != closed[begin]:
                break
            cost = price_of(sums, block, begin, end)
            if cost >= best:
                break
            best = min(best, cost + covers[j + 1, 1])
    return best


@kernel
def cover(
    sums: np.ndarray,
    closed: np.ndarray,
    block: int,
    boot: int,
    warm: bool,
    stretches: np.ndarray,
    covers: np.ndarray,
    count: int,
) -> float:
    """Both sums of a node, and its cost."""
    covers[0, 0] = 0.0
    for j in range(count):
        covers[j + 1, 0] = math.inf
    for i in range(count):
        earliest = stretches[i - 1, 1] + 1 if i > 0 else 0
        for k in range(block + 1):
            begin = begin_of(k, block, boot, stretches[i, 0], earliest, warm and earliest == 0)
            if begin < 0:
                continue
            for j in range(i, count):
                end = stretches[j, 1]
                if closed[end] != closed[begin]:
                    break
                cost = covers[i, 0] + price_of(sums, block, begin, end)
                covers[j + 1, 0] = min(covers[j + 1, 0], cost)
    covers[count, 1] = 0.0
    for i in range(count - 1, -1, -1):
        earliest = stretches[i - 1, 1] + 1 if i > 0 else 0
        covers[i, 1] = cost_from(sums, closed, block, boot, warm, stretches, covers, count, i, earliest)
    return covers[count, 0]


@kernel
def cost_with(
    sums: np.ndarray,
    closed: np.ndarray,
    block: int,
    boot: int,
    warm: bool,
    stretches: np.ndarray,
    covers: np.ndarray,
    count: int,
    begin: int,
    end: int,
) -> float:
    """Cost of a node that is busy in [begin, end) too."""
    # Stretches before `left` and from `right` on stay; those between become one with the new one.
    left = 0
    while left < count and stretches[left, 1] < begin:
        left += 1
    right = left
    while right < count and stretches[right, 0] <= end:
        right += 1
    if left < right:
        if stretches[left, 0] <= begin and end <= stretches[left, 1]:
            return covers[count, 0]
        begin = min(begin, stretches[left, 0])
        end = max(end, stretches[right - 1, 1])
    rest = 0.0
    if right < count:
        rest = cost_from(sums, closed, block, boot, warm, stretches, covers, count, right, end + 1)
    best = math.inf
    for i in range(left, -1, -1):
        first = begin if i == left else stretches[i, 0]
        if sums[end] - sums[first] >= best:
            break
        earliest = stretches[i - 1, 1] + 1 if i > 0 else 0
        for k in range(block + 1):
            on = begin_of(k, block, boot, first, earliest, warm and earliest == 0)
            if on < 0 or closed[end] != closed[on]:
                continue
            best = min(best, covers[i, 0] + price_of(sums, block, on, end) + rest)
            for j in range(right, count):
                off = stretches[j, 1]
                if closed[off] != closed[on]:
                    break
                cost = covers[i, 0] + price_of(sums, block, on, off)
                if cost >= best:
                    break
                best = min(best, cost + covers[j + 1, 1])
    return best
