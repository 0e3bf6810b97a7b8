"""What jobs in given modes read at each site: the caching problem of an instance."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from models.domain.entities import Site
from models.domain.instance import Instance
from models.domain.modes import Mode
from models.storage.problem import CacheProblem
from models.storage.tariff import tariff_of
from models.storage.transfers import Crossed, Transfers

Readers = Sequence[Sequence[tuple[str, Mode]]]
"""The readers of each dataset, by the names of their jobs."""


@dataclass(frozen=True, eq=False)
class Demand:
    """The readers of a site, and the caching problem that they make."""

    site: str
    datasets: tuple[str, ...]
    readers: tuple[tuple[str, ...], ...]
    """Jobs that read each dataset, in the order of the problem's readers."""
    problem: CacheProblem
    hours: float
    """Over which it spreads what is paid once: those billed, or of the longest run where nothing but transfers costs
    anything and the horizon is open."""


def demands(instance: Instance, modes: Sequence[Mode | None]) -> list[Demand]:
    """The demand of every site at which something is read, if each job runs in its mode, all at once.

    A dataset that is at home elsewhere pays the price of the link for each GB that comes into the cache, once, and for
    each that its readers read past the cache from beginning to end, as in a plan.
    """
    read: dict[str, dict[str, list[tuple[str, Mode]]]] = defaultdict(lambda: defaultdict(list))
    for job, mode in zip(instance.jobs, modes, strict=True):
        if mode is not None and mode.dataset is not None:
            read[instance.pools[mode.pool].site][mode.dataset].append((job.id, mode))
    return [demand_at(instance, site, read[site.id]) for site in instance.sites if site.id in read]


def demand_at(instance: Instance, site: Site, read: Mapping[str, Sequence[tuple[str, Mode]]]) -> Demand:
    """The demand of a site by the readers of each dataset there, at least one."""
    names = [dataset.id for dataset in instance.datasets if dataset.id in read]
    readers = [read[name] for name in names]
    hours = _hours(instance, site, readers)
    storage = site.storage
    problem = CacheProblem(
        sizes=np.array([instance.datasets[instance.dataset_index[name]].size for name in names]),
        readers=tuple(tuple(mode.read_rate_mb_s for _, mode in group) for group in readers),
        tariff=tariff_of(storage),
        cache_price=storage.cache_price,
        cache_capacity=storage.cache_capacity,
        cache_speed=np.inf if storage.cache_speed is None else storage.cache_speed,
        transfers=_transfers(instance, site, names, readers, hours),
    )
    jobs = tuple(tuple(job for job, _ in group) for group in readers)
    return Demand(site.id, tuple(names), jobs, problem, hours)


def _hours(instance: Instance, site: Site, readers: Readers) -> float:
    if site.storage.billed is not None:
        return site.storage.billed / 3600.0
    if instance.horizon != "auto":
        return instance.horizon / 3600.0
    return max(mode.duration for group in readers for _, mode in group) * instance.slot_h


def _transfers(
    instance: Instance, site: Site, names: Sequence[str], readers: Readers, hours: float
) -> Transfers | None:
    """What crosses to the site; None where that costs nothing and is not limited."""
    datasets = [instance.datasets[instance.dataset_index[name]] for name in names]
    links = [instance.links.get((dataset.home, site.id)) for dataset in datasets]
    prices = [0.0 if link is None else link.price / hours for link in links]
    limits = tuple(
        Crossed(link.source, tuple(d for d, other in enumerate(links) if other is link), link.bandwidth)
        for link in dict.fromkeys(links)
        if link is not None and link.bandwidth is not None
    )
    if not any(prices) and not limits:
        return None
    return Transfers(
        np.array([price * dataset.size for price, dataset in zip(prices, datasets, strict=True)]),
        tuple(tuple(price * mode.volume_gb for _, mode in group) for price, group in zip(prices, readers, strict=True)),
        limits,
    )
