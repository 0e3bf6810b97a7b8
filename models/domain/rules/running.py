"""Jobs on the nodes there are: every job fits somewhere, and those that run already are somewhere."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator

from models.domain.entities import Pool
from models.domain.modes import entry_name, misfit
from models.domain.rules.draft import TOLERANCE, Draft
from models.domain.rules.jobs import sound_entries
from models.errors import Fault


def modes_fit_nodes(draft: Draft) -> Iterator[Fault]:
    """Every mode fits the pool it names, or some pool of its GPU type; every job has a mode that can be used."""
    if not draft.is_whole("pools", "datasets", "sites", "network", "throughputs"):
        return
    used = {pool.site for pool in draft.pools.values()} | {dataset.home for dataset in draft.datasets.values()}
    used |= {name for link in draft.network.values() for name in (link.source, link.target)}
    if not used <= draft.known("sites"):
        return  # a site that is misspelt would make more faults than there are
    home = {dataset.id: dataset.home for dataset in draft.datasets.values()}
    links = {(link.source, link.target) for link in draft.network.values()}
    named: dict[str, list[Pool]] = defaultdict(list)
    of_type: dict[str, list[Pool]] = defaultdict(list)
    for pool in draft.pools.values():
        named[pool.id].append(pool)
        of_type[pool.gpu].append(pool)
    for i, job in draft.jobs.items():
        reasons: list[str] = []
        is_usable, num_misfits = False, 0
        entries = list(sound_entries(job, draft))
        for k, entry in entries:
            matching = named.get(entry.pool, []) if entry.pool is not None else of_type.get(entry.gpu or "", [])
            reasons_not_to_fit = [misfit(entry, pool, job) for pool in matching]
            misfits = [why for why in reasons_not_to_fit if why is not None]
            fitting = [pool for pool, why in zip(matching, reasons_not_to_fit, strict=True) if why is None]
            if matching and not fitting:
                if job.modes:
                    yield Fault(
                        "fits no node: it " + misfits[0],
                        ("jobs", i, "modes", k),
                        entry_name(entry),
                        "use a pool with larger nodes, or remove it",
                    )
                    num_misfits += 1
                reasons.append(misfits[0])
            for pool in fitting:
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
    pools = {pool.id: pool for pool in draft.pools.values()}
    taken: dict[tuple[str, int, int], float] = {}
    for i, job in draft.jobs.items():
        if job.running is None:
            continue
        at: tuple[str | int, ...] = ("jobs", i, "running")
        entries = {entry_name(entry): entry for _, entry in sound_entries(job, draft)}
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
        slices = math.ceil((entry.share or 1.0) * pool.slices_per_gpu - TOLERANCE) / pool.slices_per_gpu
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
                if taken[key] > 1 + TOLERANCE:
                    yield Fault(
                        f"GPU {gpu} of node {place.node} in pool {pool.id} is taken by running jobs listed before",
                        (*at, "places", k),
                        None,
                        "correct the places",
                    )
