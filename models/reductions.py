"""Starts that no optimal plan needs are not built. Each reduction states why it loses nothing; the tests compare the
optimum with that of the unreduced model.

All of them keep at least one optimal plan; none changes what a plan may be.
"""

from __future__ import annotations

import math
from collections import defaultdict

import numpy as np

from models.domain.modes import nodes_taken
from models.precedence import earliest_starts, latest_completions
from models.starts import WORK_DONE, Row, Starts


def reduce_starts(starts: Starts, cutoff: float | None = None) -> Starts:
    """All reductions; `cutoff` is the cost of a known plan, where there is one."""
    starts = within_chains(starts)
    starts = without_dominated_modes(starts)
    if cutoff is not None:
        starts = within_cutoff(starts, cutoff)
    return starts


def within_chains(starts: Starts) -> Starts:
    """Only starts that leave room for the chain of predecessors before and of successors after.

    A predecessor completes no earlier than its earliest start plus its shortest duration, so no plan starts a job
    before all of its predecessors can be complete; likewise backwards from the last completion of every successor
    that cannot be rejected.
    """
    if not any(job.after for job in starts.instance.jobs):
        return starts
    earliest, latest = earliest_starts(starts), latest_completions(starts)
    rows = [
        row.only((row.slots >= earliest[row.job]) & (row.slots + row.duration <= latest[row.job]))
        for row in starts.rows
    ]
    return starts.with_rows(rows)


def without_dominated_modes(starts: Starts) -> Starts:
    """No row that another row of the same job in the same pool at the same cache level makes useless.

    Let row a take, in the same pool, no more of anything than row b (nodes, slices, memory, cores, RAM, link rate, busy
    GPUs, volume read over a priced link) and no more slots. In any plan, replace a start of b by the start of a in the
    same slot on (some of) the same GPUs: it occupies a subset of what b occupied, so every other run still fits;
    it completes no later, so deadlines, successors, tardiness and value are no worse; its energy, transfer and
    interruption cost no more; and the same node-on intervals serve. So some optimal plan never uses b. Of equal
    rows the first is kept. The argument needs that a can start wherever b can, so a row b with a start that a
    lacks is kept. It holds for the pieces of an elastic job as it does for rows: a does no less work in every slot.
    """
    groups: dict[tuple[int, bool, int, int], list[Row]] = defaultdict(list)
    for row in starts.rows:
        groups[row.job, row.is_piece, row.pool, row.level].append(row)
    useless = {id(row) for rows in groups.values() if len(rows) > 1 for row in _dominated(rows)}
    return starts.with_rows([row for row in starts.rows if id(row) not in useless])


def _dominated(rows: list[Row]) -> list[Row]:
    """Those of a job's rows in one pool at one cache level that another of them makes useless."""
    uses = np.array([_uses(row) for row in rows])
    first, last = (np.array([row.slots[end] for row in rows]) for end in (0, -1))
    # dominates[a, b]: a takes no more of anything, and may start from b's first slot to its last.
    no_more = (uses[:, None, :] <= uses[None, :, :]).all(axis=2)
    dominates = no_more & (first[:, None] <= first[None, :]) & (last[:, None] >= last[None, :])
    equal = (uses[:, None, :] == uses[None, :, :]).all(axis=2)
    order = np.arange(len(rows))
    dominates &= ~equal | (order[:, None] < order[None, :])
    found = []
    for b, row in enumerate(rows):
        others = (rows[a] for a in np.flatnonzero(dominates[:, b]) if a != b)
        if not row.kept and any(not a.kept and _may_start_as(a, row) for a in others):
            found.append(row)
    return found


def _may_start_as(a: Row, b: Row) -> bool:
    """Whether row a has every start slot of row b."""
    if a.slots[-1] - a.slots[0] + 1 == len(a.slots):
        return True  # no holes, and its ends have been compared
    return bool(np.isin(b.slots, a.slots).all())


def _uses(row: Row) -> tuple[float, ...]:
    mode = row.mode
    volume = mode.volume_gb * (1 - row.cached) if row.link is not None else 0.0
    # Memory is shared on one GPU only between small jobs: whole GPUs take all that there is.
    memory = mode.memory_gb if mode.is_small else math.inf
    return (
        mode.num_nodes, mode.slices, memory, mode.cpu_cores, mode.ram_gb, mode.duration, mode.busy_gpus,
        row.link_rate, volume,
    )  # fmt: skip


def within_cutoff(starts: Starts, cutoff: float) -> Starts:
    """No start whose plans all cost more than a plan that is known: the latest useful finish of a weighted job. Pieces
    stay.

    A pool's node cost is at least the sum over its runs of the slot prices times the fraction of a node that the run
    takes (n >= used slices / slices of a node). With it every job has a least cost of its own, and a plan with start s
    of job j costs at least `least(s) + sum over i != j of least(i)`. Where that exceeds the known cost, s is in no
    plan that is better, nor in the known plan itself.
    """
    least_of_start = [row.costs + node_share(starts, row) for row in starts.rows]
    least = [_least(starts, j, least_of_start) for j in range(len(starts.instance.jobs))]
    if math.inf in least:
        return starts
    total = float(np.sum(least))
    slack = 1e-6 * abs(cutoff)
    rows = [
        row if row.is_piece else row.only(total - least[row.job] + cost <= cutoff + slack)
        for row, cost in zip(starts.rows, least_of_start, strict=True)
    ]
    return starts.with_rows(rows)


def _least(starts: Starts, j: int, costs: list[np.ndarray]) -> float:
    """What a job costs at least, from the least costs of the starts of all rows; infinite where it cannot run. The work
    of an elastic one, all done where it is cheapest."""
    if j in starts.elastic:
        values = [WORK_DONE * float(costs[r].min()) / starts.rows[r].progress for r in starts.pieces_of_job[j]]
    else:
        values = [float(costs[r].min()) for r in starts.rows_of_job[j]]
    reject = starts.instance.jobs[j].reject_cost
    return min([*values, math.inf if reject is None else reject])


def least_cost(starts: Starts) -> float:
    """A lower bound on the cost of every plan: the sum of what each job costs at least (see `within_cutoff`)."""
    costs = [row.costs + node_share(starts, row) for row in starts.rows]
    least = (_least(starts, j, costs) for j in range(len(starts.instance.jobs)))
    return math.fsum(value for value in least if math.isfinite(value))


def node_share(starts: Starts, row: Row) -> np.ndarray:
    """Slot prices over each start's run times the fraction of nodes that it takes, shape (n,)."""
    pool, sums = starts.instance.pools[row.pool], starts.node_price_sums[row.pool]
    return nodes_taken(row.mode, pool) * (sums[row.slots + row.duration] - sums[row.slots])
