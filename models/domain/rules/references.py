"""Names: each is given once, whatever refers to one finds it, and predecessors lead in no circle."""

from __future__ import annotations

import graphlib
from collections.abc import Iterator

from models.domain.rules.draft import Draft
from models.errors import Fault


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


def _refer(draft: Draft, section: str, name: str | None, *path: str | int) -> Iterator[Fault]:
    if name is not None and draft.is_known(section) and name not in (known := draft.known(section)):
        yield Fault(f"there is no such name in {section}", path, name, draft.suggest(name, known))


def predecessors_have_no_cycle(draft: Draft) -> Iterator[Fault]:
    """No job waits, by whatever way round, for itself."""
    index = {job.id: i for i, job in draft.jobs.items()}
    order: graphlib.TopologicalSorter[str] = graphlib.TopologicalSorter()
    for job in draft.jobs.values():
        order.add(job.id, *(name for name in job.after if name in index))
    try:
        order.prepare()
        return
    except graphlib.CycleError:
        import networkx  # each circle is told, not the first one only

    graph = networkx.DiGraph()
    graph.add_edges_from((name, job.id) for job in draft.jobs.values() for name in job.after if name in index)
    for component in networkx.strongly_connected_components(graph):
        start = min(component, key=index.__getitem__)
        if len(component) > 1 or graph.has_edge(start, start):
            edges = networkx.find_cycle(graph.subgraph(component), start)
            cycle = " -> ".join([*(edge[0] for edge in edges), edges[0][0]])
            yield Fault("waits for itself", ("jobs", index[start], "after"), cycle, "remove one of these predecessors")
