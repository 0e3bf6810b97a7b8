"""Times and prices of an instance as they look at a later moment: the clock moves on, nothing else changes."""

from __future__ import annotations

import itertools
import math
from datetime import timedelta

from models.domain import Instance
from models.domain.entities import (
    FairnessUtility,
    Job,
    LinearUtility,
    SigmoidUtility,
    StepUtility,
    Storage,
    Unavailable,
    Utility,
)
from models.domain.prices import EnergyTariff, HourlyTariff, Price
from models.grid import Meter


def at_moment(instance: Instance, now_s: float, slot_s: float) -> Instance:
    """The instance with its start at a moment and slots of some length; its jobs stay as they are.

    Windows of time-of-use prices are times of day, so they move with the start. Prices listed by slot are averaged anew
    over the new slots. The start is a whole second, as every instance's is; what that shifts is less than a second.
    """
    start = instance.start + timedelta(seconds=math.floor(now_s))
    pools = tuple(
        pool.model_copy(
            update={
                "price": _cut(instance, pool.price, now_s, slot_s),
                "unavailable": _windows_from(pool.unavailable, now_s),
            }
        )
        for pool in instance.pools
    )
    sites = tuple(
        site.model_copy(
            update={
                "energy_price": _cut(instance, site.energy_price, now_s, slot_s),
                "storage": _storage_for(site.storage, instance, now_s, slot_s),
            }
        )
        for site in instance.sites
    )
    return instance.altered(start=start, slot=slot_s, horizon="auto", pools=pools, sites=sites)


def _cut(instance: Instance, price: Price, now_s: float, slot_s: float) -> Price:
    if not isinstance(price, tuple):
        assert isinstance(price, float | int | HourlyTariff | EnergyTariff)
        return price
    num_slots = max(1, math.ceil((len(price) * instance.slot - now_s) / slot_s))
    meter = Meter(instance, price)
    # The entry after the last one holds for ever.
    edges = [now_s + k * slot_s for k in range(num_slots + 2)]
    spent = [meter.until(edge) for edge in edges]
    return tuple((after - before) / slot_s for before, after in itertools.pairwise(spent))


def _storage_for(storage: Storage, instance: Instance, now_s: float, slot_s: float) -> Storage:
    """A storage service that is paid for the horizon is so for what is left of it: the new one has no end. Beyond the
    horizon another one of the same length begins."""
    if storage.billed is not None or instance.horizon == "auto":
        return storage
    return storage.model_copy(update={"billed": max(slot_s, instance.horizon - now_s % instance.horizon)})


def _windows_from(windows: tuple[Unavailable, ...], now_s: float) -> tuple[Unavailable, ...]:
    """The windows that are not over, as times from now on."""
    return tuple(
        window.model_copy(update={"since": max(0.0, window.since - now_s), "until": window.until - now_s})
        for window in windows
        if window.until > now_s
    )


def job_at(job: Job, now_s: float) -> Job:
    """A job with all its times counted from a moment on; those that are over are negative."""
    return job.model_copy(
        update={
            "release": job.release - now_s,
            "due": None if job.due is None else job.due - now_s,
            "deadline": None if job.deadline is None else job.deadline - now_s,
            "value": tuple(step.model_copy(update={"by": step.by - now_s}) for step in job.value),
            "utility": None if job.utility is None else _utility_at(job.utility, now_s),
        }
    )


def _utility_at(utility: Utility, now_s: float) -> Utility:
    match utility:
        case LinearUtility():
            return utility.model_copy(
                update={"full_until": utility.full_until - now_s, "zero_at": utility.zero_at - now_s}
            )
        case StepUtility():
            return utility.model_copy(update={"by": utility.by - now_s})
        case SigmoidUtility():
            return utility.model_copy(update={"midpoint": utility.midpoint - now_s})
        case FairnessUtility():
            return utility  # counted from the release, which moves by itself
