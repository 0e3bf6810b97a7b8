"""What runs on which node in which slot, with its cost kept up to date: the state of the fast search.

Each method is one call into compiled code. Where several jobs change, give them to one call.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from planner.engines.fast import perform_kernels as kernels
from planner.engines.fast.by_reference import referred
from planner.engines.fast.insert_kernels import MODULUS
from planner.engines.fast.limits import Priced
from planner.engines.fast.state import (
    CHANGED,
    FOUND_COST,
    FOUND_GPU,
    FREE_CHOICE,
    MARKED,
    MISSING,
    MOST_SPENT,
    RANDOM,
    SERVICE,
    TOTAL,
    empty_state,
    facts_of,
)
from planner.engines.fast.table import Table
from planner.engines.schedule import Schedule, Step
from planner.engines.timeline import Spot


class Snapshot(NamedTuple):
    """What every job does."""

    chosen: np.ndarray
    places: np.ndarray
    cost: float


class Found(NamedTuple):
    """The cheapest place for a start: what it adds to the cost, its nodes (counted over all pools), and the shared
    GPU, -1 where it takes whole ones."""

    delta: float
    nodes: np.ndarray
    gpu: int


class Segments(NamedTuple):
    """Job, row, begin and slots of all that runs."""

    job: np.ndarray
    row: np.ndarray
    slot: np.ndarray
    length: np.ndarray


class Occupancy:
    """Jobs on nodes. Jobs, rows and nodes are numbers as in the table; nodes are counted over all pools."""

    def __init__(self, table: Table, seed: int = 0):
        self.table = table
        self.facts = facts_of(table)
        self.state = empty_state(self.facts)
        self._arrays = referred(self.facts, self.state)
        every = np.arange(table.num_jobs)
        self._owner = np.concatenate([every, np.repeat(every, table.jobs.changes)])
        """The job of each entry of `State.chosen`."""
        self.seed(seed)

    # --- what there is -----------------------------------------------------------------------------------

    @property
    def cost(self) -> float:
        """Cost of the plan, rejected jobs included; jobs that must run and do not (`missing`) are not in it. Power laws
        are reckoned by their chords, so the plan may cost up to `Table.storage.chord_error` more."""
        return float(self.state.money[TOTAL])

    @property
    def service(self) -> float:
        """What of it service loses: tardiness, value lost by later completion, rejections."""
        return float(self.state.money[SERVICE])

    @property
    def spent(self) -> float:
        """The rest of it."""
        return self.cost - self.service

    @property
    def missing(self) -> int:
        """Jobs that must run and do not."""
        return int(self.state.counters[MISSING])

    @property
    def row(self) -> np.ndarray:
        """Row of each job, -1 where it does not run. A view, as are the following."""
        return self.state.chosen["row"][: self.table.num_jobs]

    @property
    def slot(self) -> np.ndarray:
        """Start slot of each job that runs."""
        return self.state.chosen["slot"][: self.table.num_jobs]

    @property
    def gpu(self) -> np.ndarray:
        """Shared GPU of each job that runs on a share of one; else -1."""
        return self.state.chosen["gpu"][: self.table.num_jobs]

    @property
    def length(self) -> np.ndarray:
        """Slots of each job that runs; of one that changes, of its last segment, whose row and start the others are."""
        return self.state.chosen["length"][: self.table.num_jobs]

    def segments(self) -> Segments:
        """All that runs, the jobs first and then the earlier segments of those that change."""
        chosen, runs = self.state.chosen, self.state.chosen["row"] >= 0
        return Segments(self._owner[runs], chosen["row"][runs], chosen["slot"][runs], chosen["length"][runs])

    @property
    def peak(self) -> np.ndarray:
        """Most MB/s read at a time at each site."""
        return self.state.sites["peak"]

    @property
    def node_cost(self) -> np.ndarray:
        """Money for each node."""
        return self.state.nodes["cost"]

    def nodes_of(self, j: int) -> np.ndarray:
        """Nodes of a job that runs."""
        at = self.facts.jobs["place"][j]
        return self.state.places[at : at + self.facts.rows["num_nodes"][self.row[j]]]

    # --- suppositions of a search, which change what places are offered and not the cost of the plan -----

    @property
    def limit(self) -> np.ndarray:
        """MB/s of each site that offers may reach, unless the peak is higher already."""
        return self.state.sites["limit"]

    @property
    def bought(self) -> np.ndarray:
        """MB/s of each site that offers take as paid."""
        return self.state.sites["bought"]

    @property
    def allowed_level(self) -> np.ndarray:
        """Besides 0 the only level at which offers read a dataset at a site, shape (S, D); -2: any."""
        return self.state.cached["allowed"]

    @property
    def cache_is_paid(self) -> np.ndarray:
        """Whether offers take the cache of a dataset at a site as paid, shape (S, D)."""
        return self.state.cached["paid"]

    def aim(self, jobs: Sequence[int], rows: Sequence[int] | np.ndarray, slots: Sequence[int] | np.ndarray) -> None:
        """Starts at which `recreate` puts some jobs, on their cheapest nodes, if they have room."""
        aims = self.state.aims
        aims["row"][jobs], aims["slot"][jobs] = rows, slots

    def suppose_nothing(self) -> None:
        """Back to what the plan itself pays for, and no aims."""
        self.state.aims["row"] = -1
        self.limit[:] = self.facts.tariffs["cap"]
        self.bought[:] = 0.0
        self.allowed_level[:] = FREE_CHOICE
        self.cache_is_paid[:] = False

    # --- changes -----------------------------------------------------------------------------------------

    def _perform(
        self,
        what: int,
        numbers: Iterable[int] | np.ndarray = (),
        theta: float = 0.0,
        tries: int = 1,
        blink: float = 0.0,
    ) -> bool:
        whole = np.ascontiguousarray(numbers if isinstance(numbers, np.ndarray) else list(numbers), dtype=np.int64)
        return bool(kernels.perform(*self._arrays, what, whole, float(theta), int(tries), float(blink)))

    def seed(self, seed: int) -> None:
        """Begin the random numbers anew."""
        # Spread out, as the first numbers after small ones are small.
        self.state.counters[RANDOM] = 1 + (seed * 1103515245 + 12345) % (MODULUS - 1)

    def set_prices(self, priced: Priced) -> None:
        """The prices that `recreate` goes by where theta is above 0."""
        whole = {name: np.ascontiguousarray(values, dtype=np.int64) for name, values in (
            ("use_start", priced.uses.start), ("use_limit", priced.uses.limit))}  # fmt: skip
        self.state = self.state._replace(
            use_amount=priced.uses.amount,
            price_sums=priced.sums,
            surcharge=priced.surcharge,
            price_begin=priced.begin,
            price_end=priced.end,
            **whole,
        )
        self._arrays = referred(self.facts, self.state)

    def drop(self, jobs: Iterable[int] | np.ndarray) -> None:
        """Take jobs off; those that do not run are passed over."""
        self._perform(kernels.DROP, jobs)

    def put(self, j: int, row: int, slot: int, nodes: Sequence[int] | np.ndarray, gpu: int = -1) -> None:
        """Run a job where `find` has found a place; where it runs already it is taken off there."""
        if len(nodes) != self.facts.rows["num_nodes"][row]:
            raise ValueError(f"row {row} takes {self.facts.rows['num_nodes'][row]} nodes, not {len(nodes)}")
        self._perform(kernels.PUT, [j, row, slot, gpu, *nodes])

    def find(self, row: int, slot: int) -> Found | None:
        """The cheapest place for a start of a job that does not run; None where there is none, or where the job's
        predecessors and successors that run leave no time for it."""
        self._perform(kernels.FIND, [row, slot])
        delta = float(self.state.money[FOUND_COST])
        if math.isinf(delta):
            return None
        nodes = self.state.found[: self.facts.rows["num_nodes"][row]].copy()
        return Found(delta, nodes, int(self.state.counters[FOUND_GPU]))

    def allow(self, most: float) -> None:
        """What `recreate` may spend; infinite at first."""
        self.state.money[MOST_SPENT] = most

    @property
    def allowed(self) -> float:
        """What it may spend."""
        return float(self.state.money[MOST_SPENT])

    def recreate(
        self, jobs: Iterable[int] | np.ndarray, *, theta: float = 0.0, tries: int = 8, blink: float = 0.0
    ) -> bool:
        """Run jobs one after the other, each at the best of the first `tries` starts that have a place, in the order of
        about what they cost, or leave it out where that is cheaper. The best has the lowest (1 - theta) cost added +
        theta cost under the prices; a start is passed over with probability `blink`. With `tries` 0 a job goes to the
        cheapest of the earliest starts of its rows. Starts for which more would be spent than `allowed` have no
        place.

        False where a job that must run, itself or for one that runs after it, has no place; the jobs before it stay.
        """
        return self._perform(kernels.RECREATE, jobs, theta, tries, blink)

    def pack(self, jobs: Sequence[int] | np.ndarray, passes: int) -> None:
        """Run jobs that have aims there, as many and as valuable ones as so many orders find room for; the others are
        left out."""
        self._perform(kernels.PACK, jobs, tries=passes)

    def mark(self) -> None:
        """Note changes from here on."""
        self._perform(kernels.MARK)

    def undo(self) -> None:
        """Back to the mark, which stays."""
        if not self.state.counters[MARKED]:
            raise ValueError("there is no mark to go back to")
        self._perform(kernels.UNDO)

    def commit(self) -> None:
        """Forget the mark."""
        self._perform(kernels.COMMIT)

    def changed(self) -> np.ndarray:
        """Jobs touched since the mark."""
        return self.state.journal[: self.state.counters[CHANGED]].copy()

    def refresh(self) -> None:
        """All sums anew, without what rounding has left in them; now and then, after some 100,000 changes."""
        state, kept = self.state, self.snapshot()
        marked, state.counters[MARKED] = int(state.counters[MARKED]), 0  # what any job does stays as it is
        jobs = np.arange(self.table.num_jobs)
        self.drop(jobs)
        state.crossing[:] = 0.0
        state.sites["cached"] = 0.0
        reject = self.facts.jobs["reject"]
        state.money[[TOTAL, SERVICE]] = reject[np.isfinite(reject)].sum()
        self.restore(kept)
        state.counters[MARKED] = marked

    # --- as a whole --------------------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """What every job does, to come back to."""
        return Snapshot(self.state.chosen.copy(), self.state.places.copy(), self.cost)

    def restore(self, snapshot: Snapshot) -> None:
        """What every job did at a snapshot, of this table."""
        self.state.wanted[:], self.state.wanted_places[:] = snapshot.chosen, snapshot.places
        self._perform(kernels.BECOME, np.arange(self.table.num_jobs))

    def load(self, schedule: Schedule) -> None:
        """Become a schedule over the same starts."""
        wanted, places = self.state.wanted, self.state.wanted_places
        wanted["row"] = -1
        for j, step in schedule.chosen.items():
            part = int(self.facts.jobs["part"][j])
            if len(step.earlier) > self.facts.jobs["end_part"][j] - part:
                raise ValueError(f"job {j} changes more often than there is room for")
            entries = [*range(part, part + len(step.earlier)), j]
            for entry, segment in zip(entries, step.segments, strict=True):
                row = self.facts.rows[segment.row]
                first, at = self.facts.pools["start"][row["pool"]], self.facts.jobs["place"][entry]
                nodes, gpu = (segment.spot[:1], segment.spot[1]) if row["gpus"] == 0 else (segment.spot, -1)
                wanted[entry] = (segment.row, segment.slot, gpu, schedule.length(segment))
                places[at : at + len(nodes)] = first + np.array(nodes)
        self._perform(kernels.BECOME, np.arange(self.table.num_jobs))

    def steps(self) -> list[tuple[int, Step]]:
        """Each job that runs, and how; nodes are counted within their pool here."""
        found = []
        for j in np.flatnonzero(self.row >= 0).tolist():
            parts = range(*self.facts.jobs[["part", "end_part"]][j].item())
            earlier = sorted((self._step(q) for q in parts if self.state.chosen["row"][q] >= 0), key=lambda s: s.slot)
            found.append((j, replace(self._step(j), earlier=tuple(earlier))))
        return found

    def _step(self, entry: int) -> Step:
        row, slot, gpu, length = self.state.chosen[entry].item()
        at, record = self.facts.jobs["place"][entry], self.facts.rows[row]
        nodes = self.state.places[at : at + record["num_nodes"]] - self.facts.pools["start"][record["pool"]]
        spot: Spot = (*nodes.tolist(), *([gpu] if gpu >= 0 else []))
        if record["work"] > 0:
            return Step(row, slot, spot, 0.0, length)
        return Step(row, slot, spot, self.own_cost(row, slot))

    def own_cost(self, row: int, slot: int) -> float:
        """What a start costs by itself."""
        record = self.facts.rows[row]
        end, energy = slot + record["duration"], self.facts.energy[record["pool"]]
        own = record["fixed"] + record["busy"] * (energy[end] - energy[slot]) + self.facts.late[record["job"], end]
        return float(own)

    def to_schedule(self) -> Schedule:
        """The same as a schedule."""
        schedule = Schedule(self.table.starts)
        for j, step in self.steps():
            schedule.put(j, step)
        return schedule
