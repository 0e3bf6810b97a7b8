"""What a plan is made for: the lowest total cost, or the highest welfare (AutoCBA), within a budget.

A plan's cost terms fall into what is *spent* (nodes, energy, storage, transfers, restarts) and what *service* loses
(tardiness, value lost by later completion, rejections). The objective `cost` minimises spent + service; `welfare`
maximises the sum of what completed jobs are worth, that is, it minimises

    service of welfare = sum over jobs: worth at most - worth at completion, all of it where the job is rejected

and due dates count only as far as values and utilities say so. A budget X limits what is spent, in both.

The budget is priced (Everett, 1963): with every price of an instance times p >= 0, any engine finds plans of low
p spent + service, and a bound D(p) on it. For any plan that spends no more than X

    service >= D(p) - p X                      (welfare)
    spent + service >= D(p) - (p - 1) X        (cost, p >= 1)

so the best over all prices tried is a bound under the budget, whatever the engine and however good its plans are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from models.domain import SERVICE_TERMS, Instance, Job, Plan
from models.domain.prices import EnergyTariff, HourlyTariff, Price
from models.utilities import most_worth, worth_at

Objective = Literal["cost", "welfare"]
ROUNDING = 1e-9
"""Part of a budget, and money, by which it may be exceeded."""


@dataclass(frozen=True)
class Goal:
    """An objective, and what may be spent for it; None: any amount. Of an instance `at_price`, where the objective is
    welfare: there its service terms are what welfare loses."""

    objective: Objective = "cost"
    budget: float | None = None

    @property
    def most(self) -> float:
        """What may be spent, up to rounding."""
        return math.inf if self.budget is None else self.budget * (1 + ROUNDING) + ROUNDING

    def allows(self, spent: float) -> bool:
        """Whether so much may be spent."""
        return spent <= self.most

    def value(self, costs: Mapping[str, float]) -> float | None:
        """What is minimised, from a plan's costs by term; None where it spends more than the budget."""
        if not self.allows(spent_of(costs)):
            return None
        if self.objective == "cost":
            return math.fsum(costs.values())
        return service_of(costs)


LOWEST_COST = Goal()


def spent_of(costs: Mapping[str, float]) -> float:
    """What a plan spends, from its costs by term."""
    return math.fsum(amount for term, amount in costs.items() if term not in SERVICE_TERMS)


def service_of(costs: Mapping[str, float]) -> float:
    """What service loses, from costs by term."""
    return math.fsum(costs.get(term, 0.0) for term in SERVICE_TERMS)


def most_welfare(instance: Instance) -> float:
    """What all jobs together are worth at most."""
    return math.fsum(most_worth(job) for job in instance.jobs)


def welfare_of(instance: Instance, plan: Plan) -> float:
    """What the jobs that a plan completes are worth when it completes them."""
    return welfare_at(instance, {instance.job_index[run.job]: run.segments[-1].end_slot for run in plan.runs})


def welfare_at(instance: Instance, completions: Mapping[int, int]) -> float:
    """What jobs are worth, by index, when they complete at slot edges."""
    slot = instance.slot
    return math.fsum(worth_at(instance.jobs[j], end * slot, 1e-9 * slot) for j, end in completions.items())


def at_price(instance: Instance, objective: Objective, price: float, num_slots: int) -> Instance:
    """The instance whose total cost is price * spent + service of the objective, on a grid of so many slots."""
    return _changed(instance, price, [_job(job, objective, price) for job in instance.jobs], num_slots)


def spending_alone(instance: Instance, num_slots: int) -> Instance:
    """The instance whose total cost is what is spent: its cheapest plan needs the smallest budget."""
    freed = [
        _copy(job, weight=0.0, value=(), utility=None, reject_cost=None if job.reject_cost is None else 0.0)
        for job in instance.jobs
    ]
    return _changed(instance, 1.0, freed, num_slots)


def _job(job: Job, objective: Objective, price: float) -> Job:
    restart = job.restart_cost * price
    if objective == "cost":
        return _copy(job, restart_cost=restart)
    reject = None if job.reject_cost is None else most_worth(job)
    return _copy(job, restart_cost=restart, weight=0.0, reject_cost=reject)


def _changed(instance: Instance, price: float, jobs: Iterable[Job], num_slots: int) -> Instance:
    """A copy with every price times `price`, and these jobs."""
    return instance.altered(
        horizon=num_slots * instance.slot,
        jobs=tuple(jobs),
        pools=tuple(_copy(pool, price=_times(pool.price, price)) for pool in instance.pools),
        network=tuple(_copy(link, price=link.price * price) for link in instance.network),
        sites=tuple(
            _copy(site, energy_price=_times(site.energy_price, price), storage=_storage(site.storage, price))
            for site in instance.sites
        ),
    )


def _storage(storage: Any, price: float) -> Any:
    return _copy(
        storage,
        cache_price=storage.cache_price * price,
        tariff=tuple(_copy(p, fixed=p.fixed * price, per_mb_s=p.per_mb_s * price) for p in storage.tariff),
        points=tuple(_copy(point, price=point.price * price) for point in storage.points),
        tiers=tuple(_copy(tier, per_mb_s=tier.per_mb_s * price) for tier in storage.tiers),
        power=None if storage.power is None else _copy(storage.power, factor=storage.power.factor * price),
    )


def _times(price: Price, factor: float) -> Price:
    if isinstance(price, HourlyTariff | EnergyTariff):
        windows = tuple(_copy(window, price=window.price * factor) for window in price.windows)
        changed: Price = _copy(price, default=price.default * factor, windows=windows)
        return changed
    return tuple(each * factor for each in price) if isinstance(price, tuple) else price * factor


def _copy(entity: Any, **changes: Any) -> Any:
    return entity.model_copy(update=changes)
