"""The arrays of the search: what a problem says (`Facts`), and what runs where (`State`).

Small records lie in structured arrays, large grids in arrays of their own. Compiled code takes each group as one
argument; the fewer arrays, the sooner a call begins.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from planner.engines.fast.run_kernels import room_for
from planner.engines.fast.table import UNLIMITED, Table

# One type of whole number for all that is not large: each mixture of types would be compiled by itself.
I8, F8 = np.int64, np.float64

ROW = np.dtype(
    [(name, I8) for name in ("job", "pool", "duration", "first", "last", "mask", "num_nodes", "gpus", "slices")]
    + [(name, I8) for name in ("cores", "site", "dataset", "level", "link", "kept")]
    + [(name, F8) for name in ("memory", "ram", "rate", "busy", "fixed", "work")],
)
# `cores_at` and the like: the place of the pool's first node in the grid of that name, -1 where the pool has none.
POOL = np.dtype(
    [(name, I8) for name in ("start", "end", "gpus", "slices_per_gpu", "block", "boot")]
    + [(name, I8) for name in ("cores_at", "ram_at", "slices_at", "memory_at", "rental_at")]
    + [("cores", I8), ("ram", F8), ("memory", F8)],
)
JOB = np.dtype(
    [
        (name, I8)
        for name in ("row", "end_row", "before", "end_before", "after", "end_after", "place", "kept", "end_kept")
    ]
    + [(name, I8) for name in ("piece", "end_piece", "part", "end_part", "changes", "runs", "kept_gpu")]
    + [("reject", F8), ("restart", F8)],
)
TARIFF = np.dtype([("piece", I8), ("end_piece", I8), ("hours", F8), ("cap", F8), ("cache", F8)])
CACHE = np.dtype([("cost", F8), ("size", F8)])

NODE = np.dtype([("cost", F8), ("runs", I8), ("stretches", I8)])
SITE = np.dtype([("limit", F8), ("bought", F8), ("peak", F8), ("cost", F8), ("cached", F8)])
CACHED = np.dtype([("readers", I8), ("level", I8), ("allowed", I8), ("paid", np.bool_)], align=True)
CHOICE = np.dtype([("row", I8), ("slot", I8), ("gpu", I8), ("length", I8)])

# Entries of `State.money`: cost of the plan, the same at the mark, the cost of the place found, what of the plan's cost
# service loses, the same at the mark, and what the rest may come to when jobs are put back.
TOTAL, MARKED_TOTAL, FOUND_COST, SERVICE, MARKED_SERVICE, MOST_SPENT = 0, 1, 2, 3, 4, 5
# Entries of `State.counters`: required jobs not run, state of the random numbers, jobs in the journal, whether there is
# a mark, a number for each look at the nodes, and the shared GPU of the place found and of the best one.
MISSING, RANDOM, CHANGED, MARKED, LOOK, FOUND_GPU, BEST_GPU = 0, 1, 2, 3, 4, 5, 6

FREE_CHOICE = -2
"""Of `CACHED.allowed`: any level."""


class Facts(NamedTuple):
    """What does not change. P pools, K kinds of nodes, J jobs, R rows, S sites, D datasets, T slots."""

    rows: np.ndarray
    masks: np.ndarray
    """Start slots allowed, shape (masks, T), bool."""
    pools: np.ndarray
    price: np.ndarray
    """Money for a node in each slot, shape (P, T + longest block)."""
    price_sums: np.ndarray
    energy: np.ndarray
    """Money for a busy GPU until each slot edge, shape (P, T + 1)."""
    kind: np.ndarray
    """Kind of each node."""
    unusable: np.ndarray
    """Slots before each edge in which nodes of a kind cannot be used, shape (K, T + 1)."""
    unavailable: np.ndarray
    """The same for slots in which they cannot be on."""
    warm: np.ndarray
    """Whether nodes of a kind are on at the start, shape (K,), bool."""
    jobs: np.ndarray
    late: np.ndarray
    """Money by completion slot edge, shape (J, T + 1)."""
    before: np.ndarray
    after: np.ndarray
    kept_node: np.ndarray
    row_order: np.ndarray
    """Rows of each job, the shortest first."""
    tariffs: np.ndarray
    pieces: np.ndarray
    """Price an hour and of each MB/s, shape (pieces, 2)."""
    caches: np.ndarray
    """Shape (S, D, levels + 1)."""
    link_cap: np.ndarray


class State(NamedTuple):
    """What runs where, sums over it, and room to work in. N nodes, G GPUs of a node at most; grids of what a pool does
    not state or nobody asks for have no rows for its nodes."""

    taken: np.ndarray
    """GPUs taken, shared ones included, shape (N, T), int16."""
    spacious: np.ndarray
    """Nodes with at least g free GPUs, whether they are available or not, shape (P, G + 1, T)."""
    cores: np.ndarray
    """CPU cores taken, shape (nodes, T)."""
    ram: np.ndarray
    slices: np.ndarray
    """Slices taken of each shared GPU, shape (nodes, T, G), int16."""
    memory: np.ndarray
    nodes: np.ndarray
    stretches: np.ndarray
    """Busy stretches [begin, end) of nodes with blocks or boots, shape (nodes, most stretches, 2)."""
    covers: np.ndarray
    """Lowest cost of the on-intervals of the first k stretches, and of those from the k-th on, shape
    (nodes, most stretches + 1, 2)."""
    sites: np.ndarray
    bandwidth: np.ndarray
    """MB/s read over the link of each site, shape (S, T)."""
    readers: np.ndarray
    """Runs that read over it, shape (S, T)."""
    crossing: np.ndarray
    """MB/s across each network link, shape (links, T)."""
    cached: np.ndarray
    """Shape (S, D)."""
    chosen: np.ndarray
    """Row (-1: not run), slot, shared GPU and slots of each job; of an elastic job that changes: of its last segment,
    with those before it in its parts, which follow all jobs."""
    places: np.ndarray
    """Nodes of each job and part, from `Facts.jobs.place` on."""
    old: np.ndarray
    """The same at the mark, for jobs in the journal."""
    old_places: np.ndarray
    wanted: np.ndarray
    """The same as it is to become."""
    wanted_places: np.ndarray
    tried: np.ndarray
    """The same as an elastic job could be."""
    tried_places: np.ndarray
    aims: np.ndarray
    """Row (-1: none) and slot at which jobs are to be put back."""
    journal: np.ndarray
    """Jobs changed since the mark."""
    noted: np.ndarray
    """Whether a job is in the journal."""
    use_start: np.ndarray
    """Where the uses of each row begin, shape (R + 1,)."""
    use_limit: np.ndarray
    use_amount: np.ndarray
    price_sums: np.ndarray
    """Prices of the limits until each slot edge, shape (Q, T + 1)."""
    surcharge: np.ndarray
    """What each row pays for the rows on the number of nodes until each edge, shape (R, T + 1), or (1, 1)."""
    price_begin: np.ndarray
    """What starting a job costs under the prices, shape (J, T + 1), or (1, 1) where it costs nothing."""
    price_end: np.ndarray
    """What completing it costs, shape (J, T + 1)."""
    money: np.ndarray
    counters: np.ndarray
    found: np.ndarray
    """Nodes of the place found last."""
    best: np.ndarray
    """Nodes of the best place so far."""
    rank: np.ndarray
    """Nodes of a gang by rounded cost, idle time around it, and cost, shape (most nodes, 3)."""
    seen: np.ndarray
    """For each kind the last look at the nodes and how many empty ones it has seen, shape (K, 2)."""
    level: np.ndarray
    """Of a survey of the starts of a job: money for nodes until each slot edge."""
    full: np.ndarray
    reading: np.ndarray
    queue: np.ndarray
    scores: np.ndarray
    """For each row of the job and each slot."""
    row_score: np.ndarray
    row_slot: np.ndarray
    row_begin: np.ndarray
    row_last: np.ndarray
    piece_cost: np.ndarray
    """Of running in each slot in each piece of a job, infinite where that cannot be; and whether it has been found
    that no node has room, shape (2, most pieces, T)."""
    run_value: np.ndarray
    """These and the following are `run_kernels.Room`."""
    run_done: np.ndarray
    run_origin: np.ndarray
    run_pause: np.ndarray
    run_edge: np.ndarray
    run_last: np.ndarray
    run_proven: np.ndarray
    run_paths: np.ndarray
    run_sums: np.ndarray
    run_best: np.ndarray
    """Piece in each slot of the run that is tried, -1 where it pauses, shape (T,)."""


def facts_of(table: Table) -> Facts:
    """The facts of a table."""
    rows, storage = table.rows, table.storage
    width = _widths(table)
    num_parts = table.jobs.changes.astype(I8)
    parts = table.num_jobs + np.cumsum(num_parts)
    jobs = _records(
        JOB,
        table.num_jobs,
        row=table.jobs.row_start[:-1],
        end_row=table.jobs.row_start[1:],
        before=table.jobs.before_start[:-1],
        end_before=table.jobs.before_start[1:],
        after=table.jobs.after_start[:-1],
        end_after=table.jobs.after_start[1:],
        kept=table.kept_start[:-1],
        end_kept=table.kept_start[1:],
        piece=table.jobs.piece_start[:-1],
        end_piece=table.jobs.piece_start[1:],
        part=parts - num_parts,
        end_part=parts,
        changes=table.jobs.changes,
        runs=table.jobs.runs,
        kept_gpu=table.kept_gpu,
        reject=table.jobs.reject,
        restart=table.jobs.restart,
    )
    # Parts have a place for their nodes, and nothing else of a job.
    jobs = np.concatenate([jobs, np.zeros(len(width) - table.num_jobs, dtype=JOB)])
    jobs["place"] = np.cumsum(width) - width
    names = [name for name in ROW.names or () if name in rows._fields]
    facts = Facts(
        rows=_records(ROW, len(rows.job), **{name: getattr(rows, name) for name in names}),
        masks=table.masks,
        pools=_pools(table),
        price=table.pools.price,
        price_sums=table.pools.price_sums,
        energy=table.pools.energy,
        kind=table.nodes.kind.astype(I8),
        unusable=_sums(~table.nodes.usable),
        unavailable=_sums(~table.nodes.available),
        warm=table.nodes.warm,
        jobs=jobs,
        late=table.jobs.late,
        before=table.jobs.before.astype(I8),
        after=table.jobs.after.astype(I8),
        kept_node=table.kept_node.astype(I8),
        row_order=np.lexsort((rows.duration, rows.job, rows.work > 0)).astype(I8),
        tariffs=_records(
            TARIFF,
            len(storage.hours),
            piece=storage.piece_start[:-1],
            end_piece=storage.piece_start[1:],
            hours=storage.hours,
            cap=storage.cap,
            cache=storage.cache_capacity,
        ),
        pieces=np.stack([storage.alpha, storage.beta], axis=1),
        caches=_records(CACHE, storage.cache_cost.shape, cost=storage.cache_cost, size=storage.cache_size),
        link_cap=storage.link_cap,
    )
    # One layout, so that one compiled form fits every instance.
    return Facts(*(np.ascontiguousarray(values) for values in facts))


def _widths(table: Table) -> np.ndarray:
    """Most nodes of each job, and after all jobs of each part of the elastic ones."""
    width = np.zeros(table.num_jobs, dtype=I8)
    np.maximum.at(width, table.rows.job, table.rows.num_nodes)
    return np.concatenate([width, np.repeat(width, table.jobs.changes)])


def _pools(table: Table) -> np.ndarray:
    pools, rows = table.pools, table.rows
    nodes = np.diff(pools.node_start)
    asked = {name: np.zeros(len(nodes), dtype=bool) for name in ("cores", "ram", "slices", "memory")}
    for name, found in asked.items():
        found[rows.pool[getattr(rows, name) > 0]] = True
    return _records(
        POOL,
        len(nodes),
        start=pools.node_start[:-1],
        end=pools.node_start[1:],
        gpus=pools.gpus,
        slices_per_gpu=pools.slices_per_gpu,
        block=pools.block,
        boot=pools.boot,
        cores=pools.cores,
        ram=pools.ram,
        memory=pools.gpu_memory,
        cores_at=_offsets(nodes, asked["cores"] & (pools.cores < UNLIMITED)),
        ram_at=_offsets(nodes, asked["ram"] & np.isfinite(pools.ram)),
        slices_at=_offsets(nodes, asked["slices"]),
        memory_at=_offsets(nodes, asked["memory"] & np.isfinite(pools.gpu_memory)),
        rental_at=_offsets(nodes, (pools.block > 1) | (pools.boot > 0)),
    )


def _records(dtype: np.dtype, shape: int | tuple[int, ...], **fields: np.ndarray) -> np.ndarray:
    """A structured array of these fields."""
    records = np.zeros(shape, dtype=dtype)
    for name, values in fields.items():
        records[name] = values
    return records


def _sums(mask: np.ndarray) -> np.ndarray:
    """How many are true before each edge of the last axis."""
    sums = np.zeros((mask.shape[0], mask.shape[1] + 1), dtype=I8)
    np.cumsum(mask, axis=1, out=sums[:, 1:])
    return sums


def _offsets(nodes: np.ndarray, is_there: np.ndarray) -> np.ndarray:
    """Where the nodes of each pool begin in a grid that has only some of the pools; -1 for the others."""
    sizes = np.where(is_there, nodes, 0)
    return np.where(is_there, np.cumsum(sizes) - sizes, -1)


def _rows_of(facts: Facts, name: str) -> int:
    """Nodes that a grid has rows for."""
    pools = facts.pools[facts.pools[name] >= 0]
    return int((pools["end"] - pools["start"]).sum())


def empty_state(facts: Facts) -> State:
    """Nothing runs. Grids are zero pages until something is put there, so a large cluster is no burden by itself."""
    num_nodes, num_slots = len(facts.kind), facts.energy.shape[1] - 1
    num_jobs, num_sites, num_links = len(facts.jobs), len(facts.tariffs), len(facts.link_cap)
    most = int(facts.pools["gpus"].max(initial=1))
    widest = int(facts.rows["num_nodes"].max(initial=1))
    shared = facts.pools[facts.pools["slices_at"] >= 0]
    per_node = int(shared["gpus"].max(initial=1))
    stretches = (num_slots + 1) // 2
    most_rows = int((facts.jobs["end_row"] - facts.jobs["row"]).max(initial=0))
    num_places = num_jobs and int(facts.jobs["place"][-1]) + widest
    most_pieces = int((facts.jobs["end_piece"] - facts.jobs["piece"]).max(initial=0))
    runs = room_for(most_pieces, num_slots)
    sites = _records(SITE, num_sites, limit=facts.tariffs["cap"])
    cached = np.zeros(facts.caches.shape[:2], dtype=CACHED)
    cached["allowed"] = FREE_CHOICE
    spacious = np.zeros((len(facts.pools), most + 1, num_slots), dtype=I8)
    for p, pool in enumerate(facts.pools):
        spacious[p, : pool["gpus"] + 1] = pool["end"] - pool["start"]
    nobody = np.full(num_jobs, -1, dtype=I8)
    choices = [_records(CHOICE, num_jobs, row=nobody) for _ in range(5)]
    places = [np.zeros(num_places, dtype=I8) for _ in range(4)]
    optional = np.isfinite(facts.jobs["reject"])
    rejected = float(facts.jobs["reject"][optional].sum())
    return State(
        taken=np.zeros((num_nodes, num_slots), dtype=np.int16),
        spacious=spacious,
        cores=np.zeros((_rows_of(facts, "cores_at"), num_slots), dtype=np.int32),
        ram=np.zeros((_rows_of(facts, "ram_at"), num_slots)),
        slices=np.zeros((_rows_of(facts, "slices_at"), num_slots, per_node), dtype=np.int16),
        memory=np.zeros((max(1, _rows_of(facts, "memory_at")), num_slots, per_node)),
        nodes=np.zeros(num_nodes, dtype=NODE),
        stretches=np.zeros((_rows_of(facts, "rental_at"), stretches, 2), dtype=I8),
        covers=np.zeros((_rows_of(facts, "rental_at"), stretches + 1, 2)),
        sites=sites,
        bandwidth=np.zeros((num_sites, num_slots)),
        readers=np.zeros((num_sites, num_slots), dtype=I8),
        crossing=np.zeros((num_links, num_slots)),
        cached=cached,
        chosen=choices[0],
        places=places[0],
        old=choices[1],
        old_places=places[1],
        wanted=choices[2],
        wanted_places=places[2],
        tried=choices[4],
        tried_places=places[3],
        aims=choices[3],
        journal=np.zeros(num_jobs, dtype=I8),
        noted=np.zeros(num_jobs, dtype=np.bool_),
        use_start=np.zeros(len(facts.rows) + 1, dtype=I8),
        use_limit=np.zeros(0, dtype=I8),
        use_amount=np.zeros(0),
        price_sums=np.zeros((0, num_slots + 1)),
        surcharge=np.zeros((1, 1)),
        price_begin=np.zeros((1, 1)),
        price_end=facts.late,
        money=np.array([rejected, 0.0, 0.0, rejected, 0.0, np.inf]),
        counters=np.array([int((~optional).sum()), 1, 0, 0, 0, 0, 0], dtype=I8),
        found=np.zeros(widest, dtype=I8),
        best=np.zeros(widest, dtype=I8),
        rank=np.zeros((widest, 3)),
        seen=np.zeros((len(facts.warm), 2), dtype=I8),
        level=np.zeros(num_slots + 1),
        full=np.zeros(num_slots, dtype=I8),
        reading=np.zeros(num_slots),
        queue=np.zeros(num_slots, dtype=I8),
        scores=np.zeros((most_rows, num_slots)),
        row_score=np.zeros(most_rows),
        row_slot=np.zeros(most_rows, dtype=I8),
        row_begin=np.zeros(most_rows, dtype=I8),
        row_last=np.zeros(most_rows, dtype=I8),
        piece_cost=np.zeros((2, most_pieces, num_slots)),
        run_value=runs.value,
        run_done=runs.done,
        run_origin=runs.origin,
        run_pause=runs.pause,
        run_edge=runs.edge,
        run_last=runs.last,
        run_proven=runs.proven,
        run_paths=runs.paths,
        run_sums=runs.sums,
        run_best=np.zeros(num_slots, dtype=I8),
    )
