"""A lower bound on what any policy can reach in a world, all arrivals known and nothing in slots.

Jobs change their mode freely in continuous time; what binds them together is only that no more GPUs of a pool are in
use than there are. With a price for a GPU in each pool and hour (a Lagrangian of that) every job is by itself: for a
completion C and a price mu of all its work it costs at least

    w (C - due)+ + mu + integral from its release to C of min(0, min over modes of (price a second - mu / duration)),

the largest over mu for each C, the least over C, and the sum over jobs less what the prices are worth on all GPUs is
the bound. Prices are constant within an hour, so between two edges it is enough to look at these, and at the due date.
The prices come from a linear programme, in which a job is late at least by what its work is late in the mean, and, as
no work is faster than the fastest mode, complete at least half its fastest time after its mean work. Any prices give a
bound; those only decide how good it is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array

from benchmarks.workloads import rate_of
from models.domain import Instance
from models.domain.modes import modes_of

HOUR = 3600.0
REACH = 1.5
"""Prices reach over so many times the time in which all GPUs would do the work."""
MOST_SLOTS = 240
"""Time beyond the last is one long slot, in which GPUs are not limited."""
PRICES_OF_WORK = 40
"""Prices mu that are tried at first, and then between the two that are best."""
STEPS, FIRST_STEP, LAST_STEP = 150, 1.0, 0.01
"""Of the ascent; the first and the last in terms of what a GPU costs."""


@dataclass(frozen=True)
class _Job:
    release: float
    due: float
    weight: float
    """Money a second of being late."""
    pool: np.ndarray
    gpus: np.ndarray
    seconds: np.ndarray
    money: np.ndarray
    """A second, by mode."""


def offline_bound(instance: Instance, steps: int = STEPS) -> float:
    """What no policy can be below in a world of this instance, in money; for instances of energy at one price a pool,
    else ValueError. So many steps of ascent follow the linear programme."""
    jobs = [_job(instance, j) for j in range(len(instance.jobs))]
    supply = np.array([float(pool.gpus_per_node * pool.nodes) for pool in instance.pools])
    edges = _edges(jobs, supply)
    most = supply[:, None] * np.diff(edges)
    prices = _prices(jobs, supply, edges)
    best, unit = -np.inf, float(np.median([job.money.min() / job.gpus.min() for job in jobs]))
    momentum, square = np.zeros_like(prices), np.zeros_like(prices)
    for step in range(steps + 1):
        used = np.zeros_like(prices)
        value = sum(_least(job, edges, prices, used) for job in jobs) - float((prices * most).sum())
        best = max(best, value)
        slope = used / most - 1.0
        momentum, square = 0.8 * momentum + 0.2 * slope, 0.98 * square + 0.02 * slope**2
        size = unit * FIRST_STEP * (LAST_STEP / FIRST_STEP) ** (step / max(1, steps))
        prices = np.maximum(0.0, prices + size * momentum / (np.sqrt(square) + 0.05))
    return best


def _job(instance: Instance, j: int) -> _Job:
    record = instance.jobs[j]
    modes = modes_of(instance, record)
    return _Job(
        max(0.0, record.release),
        np.inf if record.due is None else record.due,
        record.weight / HOUR,
        np.array([mode.pool for mode in modes]),
        np.array([mode.busy_gpus for mode in modes]),
        np.array([mode.duration_s for mode in modes]),
        np.array([mode.busy_gpus * rate_of(instance, mode.pool) / HOUR for mode in modes]),
    )


def _edges(jobs: list[_Job], supply: np.ndarray) -> np.ndarray:
    """Edges of the slots in seconds, from the first release on."""
    first = min(job.release for job in jobs)
    least = sum(float((job.gpus * job.seconds).min()) for job in jobs) / float(supply.sum())
    last = max(job.release + float(job.seconds.min()) for job in jobs)
    end = first + max(last - first, REACH * least, HOUR)
    slot = max(0.25 * HOUR, (end - first) / MOST_SLOTS)
    return np.arange(first, end + slot, slot)


def _prices(jobs: list[_Job], supply: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Money for a GPU and second, shape (pools, slots); nothing where the programme has no answer."""
    num_pools, num_slots = len(supply), len(edges) - 1
    columns: list[tuple[float, float]] = []  # cost, most
    equal: list[tuple[int, int, float]] = []
    above: list[tuple[int, int, float]] = []
    limits = [supply[p] * (edges[t + 1] - edges[t]) for p in range(num_pools) for t in range(num_slots)]
    for j, job in enumerate(jobs):
        mine = len(limits) - num_pools * num_slots
        begins = np.maximum(edges, job.release)  # the last edge begins the time beyond
        seconds = np.append(np.maximum(0.0, edges[1:] - begins[:-1]), np.inf)
        first = int(np.flatnonzero(seconds > 0)[0])
        is_due = np.isfinite(job.due) and job.weight > 0
        rows = num_pools * num_slots + mine
        keep = _hull(job)
        fastest = float(job.seconds.min())
        for t in range(first, num_slots + 1):
            limits_row = None
            for m in keep:
                column = len(columns)
                columns.append((job.money[m], min(seconds[t], 10 * job.seconds[m])))
                equal.append((j, column, 1.0 / job.seconds[m]))
                if t < num_slots:
                    above.append((int(job.pool[m]) * num_slots + t, column, float(job.gpus[m])))
                if is_due:
                    lateness = begins[t] - job.due
                    above.append((rows, column, max(0.0, lateness) / job.seconds[m]))
                    above.append((rows + 1, column, lateness / job.seconds[m]))
                if t < num_slots and len(keep) > 1:
                    limits_row = rows + (2 if is_due else 0) + t - first
                    above.append((limits_row, column, 1.0))
        if is_due:
            above += [(rows, len(columns), -1.0), (rows + 1, len(columns), -1.0)]
            columns.append((job.weight, np.inf))
            limits += [0.0, -fastest / 2]
        if len(keep) > 1:
            limits += [float(seconds[t]) for t in range(first, num_slots)]
    cost, most = (np.array(part) for part in zip(*columns, strict=True))
    found = linprog(
        cost,
        A_ub=_matrix(above, len(limits), len(columns)),
        b_ub=np.array(limits),
        A_eq=_matrix(equal, len(jobs), len(columns)),
        b_eq=np.ones(len(jobs)),
        bounds=np.column_stack([np.zeros(len(columns)), most]),
        method="highs",
    )
    if found.status != 0:
        return np.zeros((num_pools, num_slots))
    marginals = -np.asarray(found.ineqlin.marginals)[: num_pools * num_slots]
    return np.maximum(0.0, marginals).reshape(num_pools, num_slots)


def _matrix(entries: list[tuple[int, int, float]], rows: int, columns: int) -> coo_array:
    row, column, value = zip(*entries, strict=True)
    return coo_array((value, (row, column)), shape=(rows, columns))


def _hull(job: _Job) -> list[int]:
    """Modes that are worth it in some pool at some price of its GPUs: on the lower hull of GPUs over speed."""
    kept: list[int] = []
    for p in sorted(set(job.pool.tolist())):
        points = sorted((1.0 / job.seconds[m], job.gpus[m], int(m)) for m in np.flatnonzero(job.pool == p))
        hull: list[tuple[float, float, int]] = [(0.0, 0.0, -1)]
        for x, y, m in points:
            while len(hull) > 1 and y <= hull[-1][1]:
                hull.pop()
            while len(hull) > 1 and (hull[-1][1] - hull[-2][1]) * (x - hull[-2][0]) >= (y - hull[-2][1]) * (
                hull[-1][0] - hull[-2][0]
            ):
                hull.pop()
            if x > hull[-1][0]:
                hull.append((x, y, m))
        kept += [m for _, _, m in hull if m >= 0]
    return kept


def _least(job: _Job, edges: np.ndarray, prices: np.ndarray, used: np.ndarray) -> float:
    """What a job costs at least under prices; the GPU-seconds that it then takes are added to `used`, about."""
    far = edges[-1] + 10 * float(job.seconds.max())
    at = np.unique(np.append(np.clip([job.release, job.due, *edges, far], job.release, far), far))
    slot = np.clip(np.searchsorted(edges, at[:-1], side="right") - 1, 0, len(edges) - 1)
    lengths, rates = np.diff(at), 1.0 / job.seconds
    priced = np.column_stack([prices, np.zeros(len(prices))])  # nothing is charged beyond the last edge
    cost = job.money[:, None] + job.gpus[:, None] * priced[job.pool][:, slot]  # (modes, pieces)
    late = job.weight * np.maximum(0.0, at - job.due) if np.isfinite(job.due) else np.zeros(len(at))
    low = float((job.money / rates).min())
    high = float((cost / rates[:, None]).max()) + job.weight * (far - job.release)
    mu = np.geomspace(max(low, 1e-9) * 0.5, max(high, 1e-6), PRICES_OF_WORK)
    least = -np.inf
    for _ in range(3):
        net = cost[None] - mu[:, None, None] * rates[None, :, None]
        gain = np.minimum(0.0, net.min(axis=1)) * lengths
        total = mu[:, None] + np.concatenate([np.zeros((len(mu), 1)), np.cumsum(gain, axis=1)], axis=1)
        # Both ends of a piece at one price of the work: the cost in between is linear.
        ends = total + late
        pieces = np.minimum(ends[:, :-1], ends[:, 1:])
        best = pieces.max(axis=0)
        piece = int(best.argmin())
        least = max(least, float(best[piece]))
        k = int(pieces[:, piece].argmax())
        below, above = mu[max(0, k - 1)], mu[min(len(mu) - 1, k + 1)]
        if above - below <= 1e-6 * above:
            break
        last = net, piece, k
        mu = np.linspace(below, above, PRICES_OF_WORK // 2)
    net, piece, k = last
    _use(job, net, lengths, slot, piece, k, used)
    return least


def _use(
    job: _Job, net: np.ndarray, lengths: np.ndarray, slot: np.ndarray, piece: int, k: int, used: np.ndarray
) -> None:
    """Add what a job takes until the end of a piece, at two prices of its work and in parts that do just all of it."""
    runs = []
    for price in (max(0, k - 1), min(len(net) - 1, k + 1)):
        mode = net[price, :, : piece + 1].argmin(axis=0)
        works = net[price, mode, np.arange(piece + 1)] < 0
        runs.append((mode, works, float((lengths[: piece + 1] * works / job.seconds[mode]).sum())))
    (_, _, little), (_, _, much) = runs
    part = 0.0 if much <= little else min(1.0, max(0.0, (much - 1.0) / (much - little)))
    for weight, (mode, works, _) in zip((part, 1.0 - part), runs, strict=True):
        taken = weight * lengths[: piece + 1] * works * job.gpus[mode]
        inside = slot[: piece + 1] < used.shape[1]
        np.add.at(used, (job.pool[mode][inside], slot[: piece + 1][inside]), taken[inside])
