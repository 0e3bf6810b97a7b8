"""The graph of predecessors: order, earliest starts and latest completions along chains.

networkx is imported where it is used: it takes a tenth of a second, and most instances have no predecessors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from models.domain.instance import Instance
from models.starts import Starts

if TYPE_CHECKING:
    import networkx


def precedence_graph(instance: Instance) -> networkx.DiGraph:
    """An edge from each predecessor to each job after it, over job indices."""
    import networkx

    graph = networkx.DiGraph()
    graph.add_nodes_from(range(len(instance.jobs)))
    graph.add_edges_from((instance.job_index[name], j) for j, job in enumerate(instance.jobs) for name in job.after)
    return graph


def topological_order(instance: Instance) -> list[int]:
    """Jobs with every predecessor before its successors, otherwise in the order of the instance."""
    import networkx

    return list(networkx.lexicographical_topological_sort(precedence_graph(instance)))


def descendants(graph: networkx.DiGraph, j: int) -> set[int]:
    """All jobs that must run after a job."""
    import networkx

    return set(networkx.descendants(graph, j))


def shortest(starts: Starts, j: int) -> int:
    """Slots that a job takes at least; 0 for one that cannot run. However it changes, an elastic job is no faster than
    in its fastest mode."""
    return min((row.mode.duration for row in starts.runs_of_job(j)), default=0)


def earliest_starts(starts: Starts) -> list[int]:
    """For each job a slot before which it starts in no plan: its first start, and after the chain before it."""
    import networkx

    graph = precedence_graph(starts.instance)
    earliest = [starts.num_slots] * len(starts.instance.jobs)
    completion = list(earliest)
    for j in networkx.topological_sort(graph):
        ready = max((completion[i] for i in graph.predecessors(j)), default=0)
        rows = starts.runs_of_job(j)
        earliest[j] = max(ready, min((int(row.slots[0]) for row in rows), default=starts.num_slots))
        if j in starts.elastic:
            completion[j] = earliest[j] + shortest(starts, j)
        else:
            completion[j] = min(
                (max(ready, int(row.slots[0])) + row.duration for row in rows), default=starts.num_slots
            )
    return earliest


def latest_completions(starts: Starts) -> list[int]:
    """For each job a slot edge after which it completes in no plan: before the chains of what must run after it.

    A successor that may be rejected bounds nothing.
    """
    import networkx

    graph = precedence_graph(starts.instance)
    latest = [starts.num_slots] * len(starts.instance.jobs)
    for j in reversed(list(networkx.topological_sort(graph))):
        own = max((int(row.slots[-1]) + row.duration for row in starts.runs_of_job(j)), default=0)
        after = [
            latest[k] - shortest(starts, k) for k in graph.successors(j) if starts.instance.jobs[k].reject_cost is None
        ]
        latest[j] = min([own, *after])
    return latest
