"""Rules on places: GPUs, slices, memory, cores and RAM, and nodes that are on when they are used."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping

from models.check.facts import Facts, On
from models.check.report import Violation, is_above, show, violation
from models.check.uses import Use
from models.domain.entities import Pool, Unavailable

Claim = tuple[int, int, float]
"""From a slot to another, so much."""
Spot = tuple[str, int, int | None]
"""Pool, node, GPU; None: the whole node."""


def places_are_what_the_mode_takes(facts: Facts) -> Iterator[Violation]:
    """GPUs of one node, or all GPUs of each node of a gang, or one GPU for a share; each is there, once."""
    for use in facts.uses:
        places = use.segment.places
        if len(places) != use.num_nodes:
            message = f"names {len(places)} nodes where mode {use.way.name} takes {use.num_nodes}"
            yield violation("node-count", use.where, message, len(places) - use.num_nodes)
        if len({place.node for place in places}) != len(places):
            yield violation("node-twice", use.where, "names a node twice")
        if use.segment.slices != use.slices:
            message = f"claims {show(use.segment.slices)} slices of each GPU where it takes {use.slices}"
            yield violation("slices-claim", use.where, message, use.segment.slices - use.slices)
        for place in places:
            yield from _place_is_right(use, place.node, place.gpus)


def _place_is_right(use: Use, node: int, gpus: tuple[int, ...]) -> Iterator[Violation]:
    pool = use.pool
    if node >= pool.nodes:
        message = f"names node {node} of pool {pool.id}, which has {pool.nodes} nodes, counted from 0"
        yield violation("unknown-node", use.where, message, node)
    if len(gpus) != use.gpus_per_node:
        message = f"names {len(gpus)} GPUs of node {node} where mode {use.way.name} takes {use.gpus_per_node}"
        yield violation("gpu-count", use.where, message, len(gpus) - use.gpus_per_node)
    if len(set(gpus)) != len(gpus):
        yield violation("gpu-twice", use.where, f"names a GPU of node {node} twice")
    if gpus and max(gpus) >= pool.gpus_per_node:
        message = f"names GPU {max(gpus)} of node {node}, which has {pool.gpus_per_node}, counted from 0"
        yield violation("unknown-gpu", use.where, message, max(gpus))


def no_gpu_is_overused(facts: Facts) -> Iterator[Violation]:
    """In every slot the slices taken of a GPU are no more than it has, and the memories of its users fit."""
    slices: dict[Spot, list[Claim]] = defaultdict(list)
    memory: dict[Spot, list[Claim]] = defaultdict(list)
    for use in facts.uses:
        for node, gpu in use.held:
            slices[use.pool.id, node, gpu].append((use.start, use.end, use.slices))
            memory[use.pool.id, node, gpu].append((use.start, use.end, use.way.memory_gb))
    most_slices = {pool.id: pool.slices_per_gpu for pool in facts.pools.values()}
    most_memory = {pool.id: pool.gpu_memory for pool in facts.pools.values()}
    yield from _fit("gpu-overused", "slices", slices, most_slices)
    yield from _fit("gpu-memory", "GB of GPU memory", memory, most_memory)


def cores_and_ram_of_nodes_suffice(facts: Facts) -> Iterator[Violation]:
    """In every slot the CPU cores and the RAM of the jobs on a node fit; a gang takes what there is."""
    cores: dict[Spot, list[Claim]] = defaultdict(list)
    ram: dict[Spot, list[Claim]] = defaultdict(list)
    for use in facts.uses:
        is_gang = use.num_nodes > 1
        need_cores = (use.pool.cpu_cores or 0) if is_gang else use.way.cpu_cores
        need_ram = (use.pool.ram or 0.0) if is_gang else use.way.ram_gb
        for node in use.nodes:
            cores[use.pool.id, node, None].append((use.start, use.end, need_cores))
            ram[use.pool.id, node, None].append((use.start, use.end, need_ram))
    most_cores = {pool.id: pool.cpu_cores for pool in facts.pools.values()}
    most_ram = {pool.id: pool.ram for pool in facts.pools.values()}
    yield from _fit("cpu-cores", "CPU cores", cores, most_cores)
    yield from _fit("ram", "GB of RAM", ram, most_ram)


def _fit(
    kind: str, unit: str, claims: Mapping[Spot, list[Claim]], most: Mapping[str, float | None]
) -> Iterator[Violation]:
    """One violation for each node or GPU whose claims do not fit together, at the slot of their peak."""
    for (pool, node, gpu), listed in claims.items():
        limit = most[pool]
        # One claim alone is judged with its mode, by `modes_are_usable`.
        if limit is None or len(listed) < 2:
            continue
        need, slot = peak(listed)
        if is_above(need, limit):
            where = ("" if gpu is None else f"GPU {gpu} of ") + f"node {node} of pool {pool}"
            message = f"its jobs take {need:g} {unit} in slot {slot} where there are {limit:g}"
            yield violation(kind, where, message, need - limit)


def peak(claims: Iterable[Claim]) -> tuple[float, int]:
    """The largest sum of claims that hold at a time, and the first slot of it."""
    changes: dict[int, list[float]] = defaultdict(list)
    for start, end, amount in claims:
        changes[start].append(amount)
        changes[end].append(-amount)
    level, most, when = 0.0, 0.0, 0
    for slot in sorted(changes):
        level += sum(changes[slot])
        if level > most:
            most, when = level, slot
    return most, when


def nodes_are_on_when_used(facts: Facts) -> Iterator[Violation]:
    """In every slot of a segment each of its nodes is on and has booted."""
    on, ready = _spans(facts.on, has_booted=False), _spans(facts.on, has_booted=True)
    for use in facts.uses:
        for node in use.nodes:
            key, length = (use.pool.id, node), use.end - use.start
            dark = length - _covered(on.get(key, []), use.start, use.end)
            booting = length - _covered(ready.get(key, []), use.start, use.end) - dark
            name = f"node {node} of pool {use.pool.id}"
            if dark:
                message = f"{name} is not on in {dark} of its {length} slots"
                yield violation("node-off", use.where, message, dark)
            if booting:
                message = f"{name} is still booting in {booting} of its {length} slots"
                yield violation("node-booting", use.where, message, booting)


def _spans(intervals: Iterable[On], *, has_booted: bool) -> dict[tuple[str, int], list[tuple[int, int]]]:
    """Slots in which each node is on, or has booted, as disjoint spans in order."""
    spans: dict[tuple[str, int], list[tuple[int, int]]] = defaultdict(list)
    for on in sorted(intervals, key=lambda on: on.ready if has_booted else on.start):
        first, known = on.ready if has_booted else on.start, spans[on.pool.id, on.claim.node]
        if known and first <= known[-1][1]:
            known[-1] = (known[-1][0], max(known[-1][1], on.end))
        elif first < on.end:
            known.append((first, on.end))
    return spans


def _covered(spans: Iterable[tuple[int, int]], start: int, end: int) -> int:
    return sum(max(0, min(end, b) - max(start, a)) for a, b in spans)


def intervals_of_a_node_do_not_overlap(facts: Facts) -> Iterator[Violation]:
    """A node is on in one interval at a time, and where two would touch they are one."""
    last: dict[tuple[str, int], On] = {}
    for on in sorted(facts.on, key=lambda on: (on.start, on.end)):
        before = last.get((on.pool.id, on.claim.node))
        if before is not None and on.start < before.end:
            shared = min(before.end, on.end) - on.start
            message = f"is on already from slot {before.start} to {before.end}: {shared} slots are in both"
            yield violation("interval-overlap", on.where, message, shared)
        elif before is not None and on.start == before.end:
            message = f"begins in slot {on.start}, where another of the node ends: the two are one interval"
            yield violation("interval-touches", on.where, message, 0)
        if before is None or on.end > before.end:
            last[on.pool.id, on.claim.node] = on


def nodes_are_on_only_when_available(facts: Facts) -> Iterator[Violation]:
    """No slot of a node-on interval is overlapped by a window in which the node is unavailable."""
    windows = {
        pool.id: [(window, _concerned(window, pool)) for window in pool.unavailable] for pool in facts.pools.values()
    }
    for on in facts.on:
        for window, nodes in windows[on.pool.id]:
            if on.claim.node not in nodes:
                continue
            first, last = facts.slots_down(window.since), facts.slots_up(window.until)
            if shared := _covered([(first, last)], on.start, on.end):
                message = f"cannot be used from slot {first} to {last}: {shared} slots of the interval"
                yield violation("node-unavailable", on.where, message, shared)


def _concerned(window: Unavailable, pool: Pool) -> Collection[int]:
    """A list names nodes; a number means those with the highest indices; neither means all."""
    if isinstance(window.nodes, tuple):
        return frozenset(window.nodes)
    return range(0 if window.nodes is None else pool.nodes - window.nodes, pool.nodes)
