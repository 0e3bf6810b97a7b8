"""Places on nodes, compiled: the cheapest one for a start, and taking it.

What fits is what `planner.engines.timeline.PoolTimeline` lets fit: whole GPUs have no index, a shared GPU counts as
taken while anything runs on it. The cost is exact: what the node's cheapest on-intervals cost with the run, less what
they cost without.
"""

from __future__ import annotations

import math

import numpy as np

from planner.engines.fast.compiled import kernel
from planner.engines.fast.rental_kernels import cost_with, cover, find_stretches
from planner.engines.fast.state import BEST_GPU, FOUND_GPU, LOOK, TOTAL, Facts, State

# Money is compared in steps of this, so that rounding errors do not decide between places of equal cost.
STEP = 1e-9
# Sums of GB that miss a limit by no more than this fit.
ROUNDING = 1 + 1e-12


@kernel
def full_slot(spacious: np.ndarray, p: int, gpus: int, num_nodes: int, begin: int, end: int) -> int:
    """The last slot in which fewer nodes than needed have so many free GPUs, shape of `spacious` (P, G + 1, T); -1
    where there is none."""
    for t in range(end - 1, begin - 1, -1):
        if spacious[p, gpus, t] < num_nodes:
            return t
    return -1


@kernel
def find_gpu(
    slices: np.ndarray, memory: np.ndarray, taken: np.ndarray, pool_gpus: int, most: int, most_memory: float,
    first: int, last: int, need: int, need_memory: float, begin: int, end: int, most_fresh: int,
) -> tuple[int, int]:  # fmt: skip
    """A shared GPU of a node, from `first` to `last`, with room throughout, and in how many slots it is taken afresh:
    the fewest, no more than `most_fresh`. GPU -1 where there is none. `slices` and `memory` have the shape (T, G),
    `taken` (T,)."""
    found = -1
    for gpu in range(first, last + 1):
        fresh = 0
        fits = True
        for t in range(begin, end):
            used = slices[t, gpu]
            if used == 0:
                fresh += 1
            if (
                used + need > most
                or (used == 0 and (fresh > most_fresh or taken[t] >= pool_gpus))
                or memory[t, gpu] + need_memory > most_memory
            ):
                fits = False
                break
        if fits:
            found, most_fresh = gpu, fresh - 1
            if fresh == 0:
                break
    return found, most_fresh + 1


@kernel
def cores_and_ram_fit(f: Facts, s: State, r: int, node: int, begin: int, end: int) -> bool:
    """Whether a node has the cores and the RAM of a row throughout."""
    row = f.rows[r]
    pool = f.pools[row["pool"]]
    if pool["cores_at"] >= 0:
        k = pool["cores_at"] + node - pool["start"]
        for t in range(begin, end):
            if s.cores[k, t] + row["cores"] > pool["cores"]:
                return False
    if pool["ram_at"] >= 0:
        k = pool["ram_at"] + node - pool["start"]
        for t in range(begin, end):
            if s.ram[k, t] + row["ram"] > pool["ram"] * ROUNDING:
                return False
    return True


@kernel
def added_rental(f: Facts, s: State, p: int, node: int, begin: int, end: int) -> float:
    """What being busy in [begin, end) adds to the cost of a node with blocks or boots."""
    pool = f.pools[p]
    k, kind = pool["rental_at"] + node - pool["start"], f.kind[node]
    state = s.nodes[node]
    cost = cost_with(
        f.price_sums[p], f.unavailable[kind], pool["block"], pool["boot"], f.warm[kind],
        s.stretches[k], s.covers[k], state["stretches"], begin, end,
    )  # fmt: skip
    return max(0.0, cost - state["cost"])


@kernel
def find_node(f: Facts, s: State, r: int, slot: int, length: int) -> float:
    """What the cheapest place on one node adds to its cost; infinite where there is none. Of equal cost the one that
    takes a shared GPU afresh in the fewest slots, then the one with the fewest GPUs to spare: a nearly full node is
    better left to fill up."""
    row = f.rows[r]
    p, gpus, end = row["pool"], row["gpus"], slot + length
    pool, job = f.pools[p], f.jobs[row["job"]]
    most, price, is_plain = pool["gpus"], f.price[p], pool["rental_at"] < 0
    shares, kept, has_memory = gpus == 0, row["kept"] != 0, pool["memory_at"] >= 0
    # Arrays that the loop over the nodes reads: each look into a group costs more than what is read there.
    kinds, unusable, kept_node, nodes, grid, seen = f.kind, f.unusable, f.kept_node, s.nodes, s.taken, s.seen
    s.counters[LOOK] += 1
    look, first = s.counters[LOOK], job["kept"] if kept else pool["start"]
    has_limits = pool["cores_at"] >= 0 or pool["ram_at"] >= 0
    best, best_value, best_fresh, best_spare = math.inf, math.inf, 0, 0
    cost_bound, spare_bound = math.inf, most * (end - slot) + 1
    for k in range(job["end_kept"] - first if kept else pool["end"] - first):
        node = kept_node[first + k] if kept else first + k
        kind = kinds[node]
        if nodes[node]["runs"] == 0 and not kept:
            # Empty nodes of a kind are alike.
            if seen[kind, 0] == look:
                continue
            seen[kind, 0] = look
        if unusable[kind, end] != unusable[kind, slot]:
            continue
        cost, spare, idle = 0.0, 0, False
        fits = True
        for t in range(slot, end):
            used = grid[node, t]
            if used == 0:
                idle = True
                cost += price[t]
            spare += most - used
            # Nothing is cheaper than a place for nothing, so there the one with the fewest to spare is sought.
            if used + gpus > most or spare >= spare_bound or cost > cost_bound:
                fits = False
                break
        if not fits:
            continue
        if has_limits and not cores_and_ram_fit(f, s, r, node, slot, end):
            continue
        gpu, fresh = -1, 0
        if shares:
            at, most_fresh = node - pool["start"], end - slot
            # A place of the same cost is no better if it takes its GPU afresh in more slots.
            if best_value == 0 or (is_plain and np.floor(cost / STEP + 0.5) == best_value):
                most_fresh = best_fresh if spare < best_spare else best_fresh - 1
            gpu, fresh = find_gpu(
                s.slices[pool["slices_at"] + at], s.memory[pool["memory_at"] + at if has_memory else 0], grid[node],
                most, pool["slices_per_gpu"], pool["memory"] * ROUNDING if has_memory else math.inf,
                job["kept_gpu"] if kept else 0, job["kept_gpu"] if kept else most - 1,
                row["slices"], row["memory"], slot, end, most_fresh,
            )  # fmt: skip
            if gpu < 0:
                continue
        if not is_plain:
            cost = added_rental(f, s, p, node, slot, end) if idle else 0.0
        value = np.floor(cost / STEP + 0.5)
        if value > best_value or (value == best_value and (fresh, spare) >= (best_fresh, best_spare)):
            continue
        best, best_value, best_fresh, best_spare = cost, value, fresh, spare
        if is_plain:
            cost_bound = best + STEP
        if value == 0 and fresh == 0:
            spare_bound = spare
        s.found[0] = node
        s.counters[FOUND_GPU] = gpu
        if value == 0 and fresh == 0 and spare == gpus * (end - slot):
            break
    return best


@kernel
def find_gang(f: Facts, s: State, r: int, slot: int, length: int) -> float:
    """What the cheapest nodes for a gang add to their cost; infinite where there are too few. Of equal cost those that
    are idle for the shortest time around it."""
    row = f.rows[r]
    p, number, end = row["pool"], row["num_nodes"], slot + length
    pool, job = f.pools[p], f.jobs[row["job"]]
    price, is_plain, kept, num_slots = f.price[p], pool["rental_at"] < 0, row["kept"] != 0, s.taken.shape[1]
    kinds, unusable, kept_node, nodes, grid, seen = f.kind, f.unusable, f.kept_node, s.nodes, s.taken, s.seen
    rank, found = s.rank, s.found
    s.counters[LOOK] += 1
    look, first = s.counters[LOOK], job["kept"] if kept else pool["start"]
    count = 0
    for k in range(job["end_kept"] - first if kept else pool["end"] - first):
        node = kept_node[first + k] if kept else first + k
        kind = kinds[node]
        if nodes[node]["runs"] == 0 and not kept:
            if seen[kind, 0] != look:
                seen[kind, 0], seen[kind, 1] = look, 0
            seen[kind, 1] += 1
            if seen[kind, 1] > number:
                continue
        if unusable[kind, end] != unusable[kind, slot]:
            continue
        cost = 0.0
        fits = True
        for t in range(slot, end):
            if grid[node, t] > 0:
                fits = False
                break
            cost += price[t]
        if not fits:
            continue
        if not is_plain:
            cost = added_rental(f, s, p, node, slot, end)
        before, after = slot, end
        while before > 0 and grid[node, before - 1] == 0:
            before -= 1
        while after < num_slots and grid[node, after] == 0:
            after += 1
        value, gap = np.floor(cost / STEP + 0.5), float(after - before)
        # The best so far are kept in order.
        if count == number:
            if (value, gap) >= (rank[count - 1, 0], rank[count - 1, 1]):
                continue
            count -= 1
        at = count
        while at > 0 and (value, gap) < (rank[at - 1, 0], rank[at - 1, 1]):
            rank[at, 0], rank[at, 1], rank[at, 2] = rank[at - 1, 0], rank[at - 1, 1], rank[at - 1, 2]
            found[at] = found[at - 1]
            at -= 1
        rank[at, 0], rank[at, 1], rank[at, 2] = value, gap, cost
        found[at] = node
        count += 1
    if count < number:
        return math.inf
    s.counters[FOUND_GPU] = -1
    total = 0.0
    for k in range(number):
        total += s.rank[k, 2]
    return total


@kernel
def take_gpus(f: Facts, s: State, r: int, node: int, gpu: int, begin: int, end: int, sign: int) -> None:
    """Put a run on the GPUs of one of its nodes, or (sign -1) take it off again."""
    row = f.rows[r]
    p, gpus = row["pool"], row["gpus"]
    pool = f.pools[p]
    most, at = pool["gpus"], node - pool["start"]
    grid, spacious, slices = s.taken, s.spacious, s.slices
    k_slices, k_memory = pool["slices_at"] + at, pool["memory_at"] + at
    for t in range(begin, end):
        change = sign * gpus
        if gpus == 0:
            before = slices[k_slices, t, gpu]
            after = before + sign * row["slices"]
            slices[k_slices, t, gpu] = after
            change = int(after > 0) - int(before > 0)
            if pool["memory_at"] >= 0:
                s.memory[k_memory, t, gpu] += sign * row["memory"]
                if after == 0:
                    s.memory[k_memory, t, gpu] = 0.0  # whatever rounding has left
        free = most - grid[node, t]
        grid[node, t] += change
        for g in range(free - change + 1, free + 1):
            spacious[p, g, t] -= 1
        for g in range(free + 1, free - change + 1):
            spacious[p, g, t] += 1
    if pool["cores_at"] >= 0:
        for t in range(begin, end):
            s.cores[pool["cores_at"] + at, t] += sign * row["cores"]
    if pool["ram_at"] >= 0:
        for t in range(begin, end):
            s.ram[pool["ram_at"] + at, t] += sign * row["ram"]
            if grid[node, t] == 0:
                s.ram[pool["ram_at"] + at, t] = 0.0


@kernel
def pay(f: Facts, s: State, p: int, node: int) -> None:
    """The cost of a node, after something was put there or taken off."""
    pool, state = f.pools[p], s.nodes[node]
    cost = 0.0
    if pool["rental_at"] < 0:
        taken, price = s.taken[node], f.price[p]
        for t in range(len(taken)):
            if taken[t] > 0:
                cost += price[t]
    else:
        k, kind = pool["rental_at"] + node - pool["start"], f.kind[node]
        state["stretches"] = find_stretches(s.taken[node], s.stretches[k])
        cost = cover(
            f.price_sums[p], f.unavailable[kind], pool["block"], pool["boot"], f.warm[kind],
            s.stretches[k], s.covers[k], state["stretches"],
        )  # fmt: skip
    s.money[TOTAL] += cost - state["cost"]
    state["cost"] = cost


@kernel
def take_nodes(
    f: Facts, s: State, r: int, slot: int, length: int, places: np.ndarray, at: int, gpu: int, sign: int
) -> None:
    """Put a run on its nodes, `places[at]` and the following, or (sign -1) take it off again."""
    row = f.rows[r]
    for k in range(row["num_nodes"]):
        node = places[at + k]
        take_gpus(f, s, r, node, gpu, slot, slot + length, sign)
        s.nodes[node]["runs"] += sign
        pay(f, s, row["pool"], node)


@kernel
def keep_best(s: State, number: int) -> None:
    """Note the place found last as the best one."""
    s.counters[BEST_GPU] = s.counters[FOUND_GPU]
    for k in range(number):
        s.best[k] = s.found[k]
