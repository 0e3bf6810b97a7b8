"""What jobs in given modes read at each site: the caching problem of an instance."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from models.domain.instance import Instance
from models.domain.modes import Mode
from models.storage.cba import CacheProblem
from models.storage.tariff import tariff_of


@dataclass(frozen=True, eq=False)
class Demand:
    """The readers of a site, and the caching problem that they make."""

    site: str
    datasets: tuple[str, ...]
    readers: tuple[tuple[str, ...], ...]
    """Jobs that read each dataset, in the order of the problem's readers."""
    problem: CacheProblem


def demands(instance: Instance, modes: Sequence[Mode | None]) -> list[Demand]:
    """The demand of every site at which something is read, if each job runs in its mode, all at once.

    Where a dataset is at home elsewhere it counts like any other of the site: what crosses to the site, and what that
    costs, is not part of CBA.
    """
    read: dict[str, dict[str, list[tuple[str, float]]]] = defaultdict(lambda: defaultdict(list))
    for job, mode in zip(instance.jobs, modes, strict=True):
        if mode is not None and job.dataset is not None and mode.read_rate_mb_s > 0:
            site = instance.pools[mode.pool].site
            read[site][job.dataset].append((job.id, mode.read_rate_mb_s))
    found = []
    for place in instance.sites:
        if place.id not in read:
            continue
        names = [dataset.id for dataset in instance.datasets if dataset.id in read[place.id]]
        readers = [read[place.id][name] for name in names]
        storage = place.storage
        problem = CacheProblem(
            sizes=np.array([instance.datasets[instance.dataset_index[name]].size for name in names]),
            readers=tuple(tuple(rate for _, rate in group) for group in readers),
            tariff=tariff_of(storage),
            cache_price=storage.cache_price,
            cache_capacity=storage.cache_capacity,
            cache_speed=np.inf if storage.cache_speed is None else storage.cache_speed,
        )
        found.append(
            Demand(place.id, tuple(names), tuple(tuple(job for job, _ in group) for group in readers), problem)
        )
    return found
