"""The rules between fields: what pydantic cannot see of one record alone. Every fault is reported, none stops another.

The rules run over a draft, in which records with faults of their own are missing but their names are known, so
that one bad cell does not make a hundred dangling references.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from models.domain.entities import Dataset, Job, Link, ModeEntry, Pool, Site, Throughput
from models.errors import Fault
from models.units import LARGEST

if TYPE_CHECKING:
    from models.domain.instance import Instance

SECTIONS = ("sites", "pools", "datasets", "network", "throughputs", "jobs")
_TOLERANCE = 1e-9
_SHORTEST_SLOT, _LONGEST_SLOT = 1e-3, 7 * 86400.0
_FIRST_YEAR, _LAST_YEAR = 1900, 7000
_MOST_SLOTS_OF_A_MODE = 1e9
_MOST_COMPARISONS = 200_000


@dataclass
class Draft:
    """The valid records of an instance by their index, every name that is written, and the head where it is valid."""

    sites: dict[int, Site] = field(default_factory=dict)
    pools: dict[int, Pool] = field(default_factory=dict)
    datasets: dict[int, Dataset] = field(default_factory=dict)
    network: dict[int, Link] = field(default_factory=dict)
    throughputs: dict[int, Throughput] = field(default_factory=dict)
    jobs: dict[int, Job] = field(default_factory=dict)
    names: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    slot: float | None = None
    horizon: float | str | None = None
    start: datetime | None = None
    sizes: dict[str, int] = field(default_factory=dict)
    """How many records are written in a section, faulty ones too; the whole draft is valid where it is not given."""
    unread: frozenset[str] = frozenset()
    """Sections of which not even the names could be read."""
    references: list[tuple[str, str, tuple[str | int, ...]]] = field(default_factory=list)
    """(section, name, path) of each reference that a faulty record makes."""
    _known: dict[str, set[str]] = field(default_factory=dict, init=False, repr=False)
    _compared: int = field(default=0, init=False, repr=False)

    @classmethod
    def of(cls, instance: Instance) -> Draft:
        """The draft of an instance all of whose records are valid."""
        tables: dict[str, Any] = {section: dict(enumerate(getattr(instance, section))) for section in SECTIONS}
        names = {
            section: [(index, record.id) for index, record in tables[section].items()]
            for section in ("sites", "pools", "datasets", "jobs")
        }
        return cls(**tables, names=names, slot=instance.slot, horizon=instance.horizon, start=instance.start)

    def known(self, section: str) -> set[str]:
        """Every name written in a section, of faulty records too."""
        if section not in self._known:
            self._known[section] = {name for _, name in self.names.get(section, ())}
        return self._known[section]

    def is_known(self, section: str) -> bool:
        """Whether the section could be read and has names, if it has records."""
        return section not in self.unread and bool(self.known(section) or not self.sizes.get(section))

    def is_whole(self, *sections: str) -> bool:
        """Whether no record of the sections is faulty."""
        return all(
            section not in self.unread
            and self.sizes.get(section, len(getattr(self, section))) == len(getattr(self, section))
            for section in sections
        )

    @property
    def is_slot_sane(self) -> bool:
        """Whether the slot, where it is known, has a length that can be meant."""
        return self.slot is None or _SHORTEST_SLOT <= self.slot <= _LONGEST_SLOT

    def suggest(self, name: str, known: Iterable[str]) -> str:
        """How to mend a name that is not known; a search takes its time, so not for any number of names."""
        names = list(known)
        self._compared += len(names)
        return suggest(name, names) if self._compared <= _MOST_COMPARISONS else "correct or remove it"

    def when(self, seconds: float) -> str:
        """A time as people read it."""
        if self.start is None:
            return f"{seconds:g} s after start"
        return (self.start + timedelta(seconds=seconds)).isoformat()


def check_rules(draft: Draft) -> list[Fault]:
    """Every breach of every rule."""
    return [fault for rule in RULES for fault in rule(draft)]


def suggest(name: str, known: Iterable[str]) -> str:
    """How to mend a name that is not known."""
    names = sorted(known)
    folded = {other.casefold(): other for other in reversed(names)}
    close = difflib.get_close_matches(name.casefold(), folded, n=1)
    if close:
        return f"did you mean {folded[close[0]]}?"
    if not names:
        return "there are none; remove it"
    return f"one of {', '.join(names[:8])}{', ...' if len(names) > 8 else ''}"


def _refer(draft: Draft, section: str, name: str | None, *path: str | int) -> Iterator[Fault]:
    if name is not None and draft.is_known(section) and name not in (known := draft.known(section)):
        yield Fault(f"there is no such name in {section}", path, name, draft.suggest(name, known))


def names_are_unique(draft: Draft) -> Iterator[Fault]:
    """No two records of a table have one name."""
    for section, names in draft.names.items():
        first: dict[str, int] = {}
        for index, name in names:
            if name in first:
                yield Fault(
                    f"is the name of {section}[{first[name]}] too",
                    (section, index, "id"),
                    name,
                    "rename one of them",
                )
            first.setdefault(name, index)


def references_exist(draft: Draft) -> Iterator[Fault]:
    """Every name that is used is the name of something."""
    gpus = {pool.gpu for pool in draft.pools.values()}
    models = {row.model for row in draft.throughputs.values()}
    for section, name, path in draft.references:
        yield from _refer(draft, section, name, *path)
    for i, pool in draft.pools.items():
        yield from _refer(draft, "sites", pool.site, "pools", i, "site")
    for i, dataset in draft.datasets.items():
        yield from _refer(draft, "sites", dataset.home, "datasets", i, "home")
    for i, link in draft.network.items():
        yield from _refer(draft, "sites", link.source, "network", i, "source")
        yield from _refer(draft, "sites", link.target, "network", i, "target")
    for i, job in draft.jobs.items():
        yield from _refer(draft, "datasets", job.dataset, "jobs", i, "dataset")
        for k, name in enumerate(job.after):
            yield from _refer(draft, "jobs", name, "jobs", i, "after", k)
        for k, mode in enumerate(job.modes):
            yield from _refer(draft, "pools", mode.pool, "jobs", i, "modes", k, "pool")
            if mode.gpu is not None and mode.gpu not in gpus and draft.is_whole("pools"):
                yield Fault(
                    "no pool has this GPU type",
                    ("jobs", i, "modes", k, "gpu"),
                    mode.gpu,
                    draft.suggest(mode.gpu, gpus),
                )
        if job.model is not None and job.model not in models and draft.is_whole("throughputs"):
            yield Fault(
                "no throughput is given for this model",
                ("jobs", i, "model"),
                job.model,
                draft.suggest(job.model, models) if models else "add throughputs, or give modes instead",
            )
        if job.running is not None:
            yield from _refer(draft, "pools", job.running.pool, "jobs", i, "running", "pool")


def predecessors_have_no_cycle(draft: Draft) -> Iterator[Fault]:
    """No job waits, by whatever way round, for itself."""
    import networkx

    index = {job.id: i for i, job in draft.jobs.items()}
    graph = networkx.DiGraph()
    graph.add_edges_from((name, job.id) for job in draft.jobs.values() for name in job.after if name in index)
    for component in networkx.strongly_connected_components(graph):
        start = min(component, key=index.__getitem__)
        if len(component) > 1 or graph.has_edge(start, start):
            edges = networkx.find_cycle(graph.subgraph(component), start)
            cycle = " -> ".join([*(edge[0] for edge in edges), edges[0][0]])
            yield Fault("waits for itself", ("jobs", index[start], "after"), cycle, "remove one of these predecessors")


def slots_divide_the_horizon(draft: Draft) -> Iterator[Fault]:
    """The horizon is a whole number of slots, and not too many."""
    from models.domain.instance import MAX_SLOTS

    if draft.slot is None or not draft.is_slot_sane or not isinstance(draft.horizon, float | int):
        return
    slots = draft.horizon / draft.slot
    if slots > MAX_SLOTS:
        yield Fault(f"has more than {MAX_SLOTS} slots", ("horizon",), f"{slots:g} slots", "lengthen slot")
    elif abs(slots - round(slots)) > 1e-6 or round(slots) < 1:
        mend = f"{max(1, math.ceil(slots)) * draft.slot / 3600:g}h is whole"
        yield Fault(f"is not a whole number of slots of {draft.slot:g} s", ("horizon",), f"{draft.horizon:g} s", mend)


def the_grid_is_within_the_calendar(draft: Draft) -> Iterator[Fault]:
    """A slot has a length that can be meant, and so has the start, so that every slot has a date."""
    if draft.slot is not None and not draft.is_slot_sane:
        yield Fault("is shorter than 1 ms or longer than a week", ("slot",), f"{draft.slot:g} s", "write 5m, say")
    if draft.start is not None and not _FIRST_YEAR <= draft.start.year <= _LAST_YEAR:
        yield Fault(
            f"is not between the years {_FIRST_YEAR} and {_LAST_YEAR}",
            ("start",),
            draft.start.isoformat(),
            "correct the year",
        )


def price_lists_have_an_entry_a_slot(draft: Draft) -> Iterator[Fault]:
    """A price given as a list has exactly one entry for each slot of a stated horizon."""
    lists = [(("pools", i, "price"), pool.price) for i, pool in draft.pools.items()]
    lists += [(("sites", i, "energy_price"), site.energy_price) for i, site in draft.sites.items()]
    for path, price in lists:
        if not isinstance(price, tuple):
            continue
        if draft.horizon == "auto":
            yield Fault(
                "is a list, which needs a stated horizon",
                path,
                f"{len(price)} prices",
                "set horizon, or use windows",
            )
        elif draft.slot and isinstance(draft.horizon, float | int):
            slots = draft.horizon / draft.slot
            if abs(slots - len(price)) > 0.5:
                yield Fault("does not have one price for each slot", path, f"{len(price)} prices", f"give {slots:.0f}")


def pools_are_sound(draft: Draft) -> Iterator[Fault]:
    """Windows end after they begin, node indices exist, increments are whole slots, spot is marked as such."""
    for i, pool in draft.pools.items():
        at = ("pools", i)
        if draft.slot and pool.billing_increment > draft.slot:
            blocks = pool.billing_increment / draft.slot
            if abs(blocks - round(min(blocks, 1e15))) > 1e-6:
                yield Fault(
                    f"is longer than a slot of {draft.slot:g} s and not a whole number of them",
                    (*at, "billing_increment"), f"{pool.billing_increment:g} s", "choose a slot that divides it",
                )  # fmt: skip
        if pool.nodes_on > pool.nodes:
            yield Fault(
                f"is more than the pool's {pool.nodes} nodes",
                (*at, "nodes_on"),
                str(pool.nodes_on),
                "lower it",
            )
        if pool.interruption_rate > 0 and pool.market != "spot":
            yield Fault(
                "only spot nodes are interrupted",
                (*at, "interruption_rate"),
                f"{pool.interruption_rate:g}",
                "set market: spot",
            )
        for k, window in enumerate(pool.unavailable):
            if window.until <= window.since:
                yield Fault(
                    "ends no later than it begins",
                    (*at, "unavailable", k, "until"),
                    draft.when(window.until),
                    "swap since and until",
                )
            indices = window.nodes if isinstance(window.nodes, tuple) else ((window.nodes or 0) - 1,)
            for node in indices:
                if node >= pool.nodes:
                    yield Fault(
                        f"the pool has {pool.nodes} nodes, counted from 0",
                        (*at, "unavailable", k, "nodes"),
                        str(node),
                        "name nodes that exist",
                    )
                    break
    sites = {site.id: site for site in draft.sites.values()}
    for i, pool in draft.pools.items():
        site = sites.get(pool.site)
        if site is not None and site.kind == "on_prem" and pool.market == "spot":
            yield Fault(
                "nodes of an on_prem site are owned, not spot",
                ("pools", i, "market"),
                "spot",
                "remove it, or move the pool to a cloud site",
            )


def storage_is_sound(draft: Draft) -> Iterator[Fault]:
    """A tariff is concave and does not fall, given in one way; what is paid for has a time it is paid for."""
    for i, site in draft.sites.items():
        at, storage = ("sites", i, "storage"), site.storage
        if storage.tariff and storage.points:
            yield Fault("gives the tariff twice", (*at, "points"), None, "keep tariff or points")
        yield from _points_are_concave(storage.points, at)
        is_paid = any(p.fixed or p.per_mb_s for p in storage.tariff) or any(p.price for p in storage.points)
        is_paid = is_paid or (storage.cache_price > 0 and storage.cache_capacity > 0)
        if is_paid and storage.billed is None and draft.horizon == "auto":
            yield Fault(
                "is needed where the horizon is auto: for how long are bandwidth and cache paid?",
                (*at, "billed"),
                None,
                "add billed: 24h, say",
            )
    for i, link in draft.network.items():
        if link.source == link.target:
            yield Fault("leads from a site to itself", ("network", i), link.source, "remove it")
    seen: set[tuple[str, str]] = set()
    for i, link in draft.network.items():
        if (link.source, link.target) in seen:
            yield Fault(
                "is a second link between the same sites",
                ("network", i),
                f"{link.source} -> {link.target}",
                "keep one",
            )
        seen.add((link.source, link.target))


def _points_are_concave(points: tuple[Any, ...], at: tuple[str | int, ...]) -> Iterator[Fault]:
    slope, last_mb_s, last_price = math.inf, 0.0, 0.0
    for k, point in enumerate(points):
        here = (*at, "points", k)
        if point.mb_s <= last_mb_s:
            yield Fault(
                "is no more than the point before",
                (*here, "mb_s"),
                f"{point.mb_s:g} MB/s",
                "sort the points by bandwidth",
            )
            return
        next_slope = (point.price - last_price) / (point.mb_s - last_mb_s)
        if next_slope < 0:
            yield Fault(
                "is cheaper than a point with less bandwidth",
                (*here, "price"),
                f"{point.price:g}",
                "drop the dearer point before it",
            )
        elif next_slope > slope * (1 + _TOLERANCE) + 1e-15:
            yield Fault(
                "makes the tariff not concave: a MB/s here costs more than below the point before",
                (*here, "price"), f"{next_slope:g} after {slope:g} per MB/s",
                f"at most {last_price + slope * (point.mb_s - last_mb_s):g}",
            )  # fmt: skip
        slope, last_mb_s, last_price = next_slope, point.mb_s, point.price


def times_are_in_order(draft: Draft) -> Iterator[Fault]:
    """Due dates and deadlines come after the release; a weight has a due date; worth falls with time."""
    for i, job in draft.jobs.items():
        at = ("jobs", i)
        for name in ("due", "deadline"):
            time = getattr(job, name)
            if time is not None and time < job.release:
                yield Fault(
                    f"is before the release at {draft.when(job.release)}",
                    (*at, name),
                    draft.when(time),
                    "correct one of them",
                )
        if job.weight > 0 and job.due is None:
            yield Fault(
                "has no due date to count from",
                (*at, "weight"),
                f"{job.weight:g}",
                "add due, or remove weight",
            )
        for k, (earlier, later) in enumerate(zip(job.value, job.value[1:], strict=False)):
            if later.by <= earlier.by or later.value > earlier.value:
                yield Fault(
                    "is not later and worth no more than the step before",
                    (*at, "value", k + 1),
                    None,
                    "sort the steps by time; worth must not rise",
                )


def modes_are_sound(draft: Draft) -> Iterator[Fault]:
    """A mode says one pool or GPU type and whole GPUs or a share; its name is its own; it fits some node."""
    from models.domain.modes import entry_name

    for i, job in draft.jobs.items():
        if bool(job.modes) == (job.model is not None):
            problem = "has modes and a model" if job.modes else "has no modes and no model"
            yield Fault(problem, ("jobs", i, "modes"), None, "give modes, or model with samples")
        if job.model is not None and job.samples is None:
            yield Fault("is needed with a model", ("jobs", i, "samples"), None, "add samples, all epochs together")
        if job.model is None and (job.samples is not None or job.sample_size is not None):
            name = "samples" if job.samples is not None else "sample_size"
            yield Fault("is of use only with a model", ("jobs", i, name), None, "add model, or remove it")
        if job.sample_size and job.dataset is None:
            yield Fault(
                "reads samples of no dataset",
                ("jobs", i, "dataset"),
                None,
                "name the dataset, or remove sample_size",
            )
        if len(job.after) != len(set(job.after)):
            yield Fault("names a job twice", ("jobs", i, "after"), None, "remove one")
        names: dict[str, int] = {}
        for k, mode in enumerate(job.modes):
            at = ("jobs", i, "modes", k)
            yield from _one_of(mode, "pool", "gpu", at)
            yield from _one_of(mode, "gpus", "share", at)
            if mode.slowdown != 1 and mode.share is None:
                yield Fault("holds for a share of a GPU only", (*at, "slowdown"), f"{mode.slowdown:g}", "remove it")
            if mode.read_rate > 0 and job.dataset is None:
                yield Fault(
                    "reads from no dataset",
                    (*at, "read_rate"),
                    f"{mode.read_rate:g} MB/s",
                    "name the job's dataset, or remove it",
                )
            if not _is_sound(mode):
                continue
            if (
                draft.slot
                and draft.is_slot_sane
                and mode.duration * mode.slowdown / min(job.speed_levels) / draft.slot > _MOST_SLOTS_OF_A_MODE
            ):
                yield Fault(
                    "is more than 1e9 slots at its slowest",
                    (*at, "duration"),
                    f"{mode.duration:g} s",
                    "check its unit",
                )
            name = entry_name(mode)
            if name in names:
                yield Fault(f"is the name of modes[{names[name]}] too", (*at, "id"), name, "give each an id")
            names.setdefault(name, k)
        for row_index in _overflowing(job, draft):
            yield Fault(
                f"at the speed of throughputs[{row_index}] takes all but no time, or more than 1e9 slots",
                ("jobs", i, "samples"), f"{job.samples:g}", "check samples, sample_size and samples_per_s",
            )  # fmt: skip
    for i, row in draft.throughputs.items():
        yield from _one_of(row, "gpus", "share", ("throughputs", i))
    seen: dict[Any, int] = {}
    for i, row in draft.throughputs.items():
        key = (row.model, row.gpu, row.gpus, row.share)
        if key in seen:
            yield Fault(
                f"is a second speed for the same as throughputs[{seen[key]}]",
                ("throughputs", i),
                row.model,
                "keep one",
            )
        seen.setdefault(key, i)


def _one_of(record: Any, one: str, other: str, at: tuple[str | int, ...]) -> Iterator[Fault]:
    if (getattr(record, one) is None) == (getattr(record, other) is None):
        both = getattr(record, one) is not None
        problem = f"has both {one} and {other}" if both else f"has neither {one} nor {other}"
        yield Fault(problem, at, None, f"give {one} or {other}")


def _is_sound(entry: ModeEntry) -> bool:
    """Whether the entry says what it runs on, once."""
    return (entry.pool is None) != (entry.gpu is None) and (entry.gpus is None) != (entry.share is None)


def _overflowing(job: Job, draft: Draft) -> list[int]:
    """Throughputs that make no sensible duration or read rate out of the job's samples."""
    if job.model is None or job.samples is None:
        return []
    slot = draft.slot if draft.slot is not None and draft.is_slot_sane else 60.0
    most = _MOST_SLOTS_OF_A_MODE * slot * min(job.speed_levels)
    return [
        i
        for i, row in draft.throughputs.items()
        if row.model == job.model
        and not (
            1e-12 < job.samples / row.samples_per_s < most
            and row.samples_per_s * (job.sample_size or 0.0) * 1000.0 < LARGEST
        )
    ]


def _entries(job: Job, draft: Draft) -> Iterator[tuple[int, ModeEntry]]:
    """The entries of a job that can be reasoned about, with their index."""
    from models.domain.modes import entries_of

    bad = set(_overflowing(job, draft))
    rows = tuple(
        row for i, row in draft.throughputs.items() if i not in bad and (row.gpus is None) != (row.share is None)
    )
    for k, entry in enumerate(entries_of(job, rows)):
        if _is_sound(entry):
            yield k, entry


def modes_fit_nodes(draft: Draft) -> Iterator[Fault]:
    """Every mode fits the pool it names, or some pool of its GPU type; every job has a mode that can be used."""
    from models.domain.modes import entry_name, misfit

    if not draft.is_whole("pools", "datasets", "sites", "network", "throughputs"):
        return
    used = {pool.site for pool in draft.pools.values()} | {dataset.home for dataset in draft.datasets.values()}
    used |= {name for link in draft.network.values() for name in (link.source, link.target)}
    if not used <= draft.known("sites"):
        return  # a site that is misspelt would make more faults than there are
    home = {dataset.id: dataset.home for dataset in draft.datasets.values()}
    links = {(link.source, link.target) for link in draft.network.values()}
    for i, job in draft.jobs.items():
        reasons: list[str] = []
        is_usable, num_misfits = False, 0
        entries = list(_entries(job, draft))
        for k, entry in entries:
            matching = [p for p in draft.pools.values() if entry.pool == p.id or entry.gpu == p.gpu]
            misfits = [why for pool in matching if (why := misfit(entry, pool, job))]
            if matching and len(misfits) == len(matching):
                if job.modes:
                    yield Fault(
                        "fits no node: it " + misfits[0],
                        ("jobs", i, "modes", k),
                        entry_name(entry),
                        "use a pool with larger nodes, or remove it",
                    )
                    num_misfits += 1
                reasons.append(misfits[0])
            for pool in matching:
                if misfit(entry, pool, job):
                    continue
                source = home.get(job.dataset) if job.dataset else None
                running_here = job.running is not None and job.running.pool == pool.id
                if pool.market == "spot" and not job.spot and not running_here:
                    reasons.append(f"pool {pool.id} is spot and the job does not say spot: true")
                elif (
                    entry.read_rate > 0
                    and source is not None
                    and source != pool.site
                    and (source, pool.site) not in links
                ):
                    reasons.append(f"no link leads from {source}, home of {job.dataset}, to {pool.site}")
                else:
                    is_usable = True
        if num_misfits and num_misfits == len(entries):
            continue  # each of its modes has been reported
        if entries and not is_usable and reasons:
            yield Fault(
                "has no mode that can be used: " + "; ".join(dict.fromkeys(reasons)),
                ("jobs", i),
                job.id,
                "add a mode, a link or a pool",
            )
        elif job.model is not None and not job.modes and entries and not is_usable:
            yield Fault(
                "has no mode that can be used: no pool has a GPU type of its model's throughputs",
                ("jobs", i),
                job.id,
                "add throughputs for a GPU type you have",
            )


def running_jobs_are_somewhere(draft: Draft) -> Iterator[Fault]:
    """A running job names a mode it has and GPUs that exist and are not taken by another."""
    from models.domain.modes import entry_name, misfit

    pools = {pool.id: pool for pool in draft.pools.values()}
    taken: dict[tuple[str, int, int], float] = {}
    for i, job in draft.jobs.items():
        if job.running is None:
            continue
        at: tuple[str | int, ...] = ("jobs", i, "running")
        entries = {entry_name(entry): entry for _, entry in _entries(job, draft)}
        entry, pool = entries.get(job.running.mode), pools.get(job.running.pool)
        if job.release > 0 or job.after:
            yield Fault(
                "runs already, so it can have no release after start and no predecessors",
                at,
                None,
                "remove them",
            )
        if entry is None and (job.modes or draft.is_whole("throughputs")):
            yield Fault(
                "is not a mode of the job",
                (*at, "mode"),
                job.running.mode,
                draft.suggest(job.running.mode, entries),
            )
        if entry is None or pool is None:
            continue
        if (entry.pool != pool.id and entry.gpu != pool.gpu) or misfit(entry, pool, job):
            yield Fault(
                f"does not hold for pool {pool.id}",
                (*at, "mode"),
                job.running.mode,
                "name the pool it runs in",
            )
            continue
        if 1.0 not in job.speed_levels:
            yield Fault("lacks 1, full speed, at which a running job runs", ("jobs", i, "speed_levels"), None, "add 1")
        home = next((d.home for d in draft.datasets.values() if d.id == job.dataset), pool.site)
        links = {(link.source, link.target) for link in draft.network.values()}
        if entry.read_rate > 0 and home != pool.site and (home, pool.site) not in links:
            problem = f"reads {job.dataset}, and no link leads from its home {home} to {pool.site}"
            yield Fault(problem, (*at, "pool"), pool.id, "add the link to network")
        num_nodes = math.ceil((entry.gpus or 1) / pool.gpus_per_node)
        per_node = pool.gpus_per_node if num_nodes > 1 else (entry.gpus or 1)
        places = job.running.places
        if len(places) != num_nodes or any(len(set(p.gpus)) != per_node or len(p.gpus) != per_node for p in places):
            yield Fault(
                f"mode {job.running.mode} takes {per_node} GPUs on {num_nodes} node(s)",
                (*at, "places"),
                None,
                "list exactly those",
            )
        if len({place.node for place in places}) != len(places):
            yield Fault("names a node twice", (*at, "places"), None, "list its GPUs in one place")
        slices = math.ceil((entry.share or 1.0) * pool.slices_per_gpu - _TOLERANCE) / pool.slices_per_gpu
        for k, place in enumerate(places):
            if place.node >= pool.nodes or any(gpu >= pool.gpus_per_node for gpu in place.gpus):
                yield Fault(
                    f"pool {pool.id} has {pool.nodes} nodes with {pool.gpus_per_node} GPUs, counted from 0",
                    (*at, "places", k),
                    None,
                    "name GPUs that exist",
                )
            for gpu in set(place.gpus):
                key = (pool.id, place.node, gpu)
                taken[key] = taken.get(key, 0.0) + slices
                if taken[key] > 1 + _TOLERANCE:
                    yield Fault(
                        f"GPU {gpu} of node {place.node} in pool {pool.id} is taken by running jobs listed before",
                        (*at, "places", k),
                        None,
                        "correct the places",
                    )


RULES: tuple[Callable[[Draft], Iterator[Fault]], ...] = (
    names_are_unique,
    references_exist,
    predecessors_have_no_cycle,
    slots_divide_the_horizon,
    the_grid_is_within_the_calendar,
    price_lists_have_an_entry_a_slot,
    pools_are_sound,
    storage_is_sound,
    times_are_in_order,
    modes_are_sound,
    modes_fit_nodes,
    running_jobs_are_somewhere,
)
