"""A study of an instance's storage: each site's optimum, what more of it would save, and the usual rules beside."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from models import grid
from models.domain import Instance
from models.domain.modes import Mode
from models.storage.baselines import BASELINES, baseline
from models.storage.cba import Curve, Marginal, Optimum, allocate, curve, marginal_values
from models.storage.demand import Demand, demands
from models.storage.problem import Allocation
from planner.horizon import num_slots_of


@dataclass(frozen=True, eq=False)
class SiteStudy:
    """What is best at one site, and what else could be done. Money is per hour."""

    demand: Demand
    optimum: Optimum
    marginal: Marginal
    curve: Curve
    baselines: dict[str, Allocation | None]
    billed_h: float | None
    """Hours for which it is paid; None where the instance leaves the horizon open."""
    whole: bool
    """Whether datasets are cached wholly or not at all, by the optimum and by the rules."""

    def more(self, other: Allocation) -> float | None:
        """By which part another allocation is dearer than the optimum; None where the optimum costs nothing."""
        return other.cost / self.best.cost - 1 if self.best.cost > 0 else None

    @property
    def best(self) -> Allocation:
        """The optimum's allocation."""
        return self.optimum.allocation

    def document(self) -> dict[str, Any]:
        """The study as JSON."""
        problem, best = self.demand.problem, self.best
        datasets = [
            {
                "dataset": name,
                "size_gb": float(problem.sizes[d]),
                "readers": list(self.demand.readers[d]),
                "read_mb_s": float(problem.demand[d]),
                "mb_s_per_gb": float(problem.demand[d] / problem.sizes[d]),
                "copy_per_hour": float(problem.copying[d]),
                "reading_across_per_hour": math.fsum(problem.read_across[d]),
                "cached": float(best.cached[d]),
            }
            for d, name in enumerate(self.demand.datasets)
        ]
        lines = zip(
            ["", *(self.demand.datasets[d] for d in problem.order)],
            *(values.tolist() for values in (self.curve.cached_gb, self.curve.bandwidth_mb_s)),
            *(values.tolist() for values in (self.curve.cost, self.curve.is_allowed)),
            strict=True,
        )
        return {
            "site": self.demand.site,
            "datasets": datasets,
            **_allocation(best),
            "cost": None if self.billed_h is None else best.cost * self.billed_h,
            "billed_h": self.billed_h,
            "transfers_spread_over_h": self.demand.hours,
            "bound_per_hour": self.optimum.bound,
            "is_proven": self.optimum.is_proven,
            "marginal": {
                "cache_gb": self.marginal.cache_gb,
                "bandwidth_mb_s": self.marginal.bandwidth_mb_s,
                "price_of_mb_s": self.marginal.price_of_mb_s,
            },
            "curve": [
                dict(zip(("dataset", "cached_gb", "bandwidth_mb_s", "cost_per_hour", "is_allowed"), line, strict=True))
                for line in lines
            ],
            "baselines": [
                {"name": name, **({"cost_per_hour": None} if other is None else self._beside(other))}
                for name, other in self.baselines.items()
            ],
        }

    def _beside(self, other: Allocation) -> dict[str, Any]:
        cached = {name: float(part) for name, part in zip(self.demand.datasets, other.cached, strict=True) if part > 0}
        return {**_allocation(other), "more": self.more(other), "cached": cached}


def _allocation(allocation: Allocation) -> dict[str, Any]:
    return {
        "cached_gb": allocation.cached_gb,
        "bandwidth_mb_s": allocation.bandwidth_mb_s,
        "cache_cost_per_hour": allocation.cache_cost,
        "bandwidth_cost_per_hour": allocation.bandwidth_cost,
        "transfer_cost_per_hour": allocation.transfer_cost,
        "cost_per_hour": allocation.cost,
    }


def study(instance: Instance, modes: Sequence[Mode | None], *, whole: bool = False) -> list[SiteStudy]:
    """Every site at which something is read, if each job runs in its mode, all at once, without waiting for data.

    With `whole` datasets are cached wholly or not at all, by every rule too. Raises Infeasible where the bandwidth that
    a site sells, its cache, and the links to it do not suffice for that; NoPlan where that is open.
    """
    found = []
    for demand in demands(instance, modes):
        best = allocate(demand.problem, whole=whole)
        found.append(
            SiteStudy(
                demand,
                best,
                marginal_values(demand.problem, best, whole=whole),
                curve(demand.problem),
                {name: baseline(demand.problem, name, whole=whole) for name in BASELINES},
                _billed_h(instance, demand.site),
                whole,
            )
        )
    return found


def _billed_h(instance: Instance, name: str) -> float | None:
    site = instance.sites[instance.site_index[name]]
    if site.storage.billed is None and instance.horizon == "auto":
        return None
    return grid.billed_hours(instance, site, 0 if instance.horizon == "auto" else num_slots_of(instance))
