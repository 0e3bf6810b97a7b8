"""One replay of a plan: a simulated world in which it is carried out, in short.

The replay with index r of a seed is the same world whatever plan of the instance is carried out in it, whatever is
changed for a counterfactual, and wherever it is computed: its streams are those of the number `world_seed(seed, r)`.

Storage is as planned: caches hold what they are to hold, so much bandwidth is bought and no more, both are paid for the
time that the plan pays them, and every job reads as much as it was to read. So it costs in every replay what it costs
in the plan, and what happens in a replay shows in when jobs that read can start.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from models.domain import COST_TERMS, Instance, Plan
from models.domain.entities import Storage
from planner.simulation.chance import Options
from planner.simulation.policies.followed import Followed
from planner.simulation.policies.itinerary import Itinerary, itinerary_of
from planner.simulation.replayed import replayed
from planner.simulation.run import simulate

TERMS = tuple(COST_TERMS)
STORAGE_TERMS = ("bandwidth", "cache", "transfer")
INDICES = 2**32
"""Most replays of a seed."""


@dataclass(frozen=True)
class Setting:
    """What all replays of a plan have in common."""

    instance: Instance
    """With storage that is free and without limits, which is what a world can simulate."""
    orders: Itinerary
    """Which know the limits."""
    options: Options
    """Of which each replay has another seed."""
    early: bool = False
    storage: tuple[float, ...] = (0.0,) * len(TERMS)
    """What storage costs, by term: as much as is planned, whatever happens."""

    @classmethod
    def of(cls, instance: Instance, plan: Plan, options: Options, *, early: bool = False) -> Setting:
        """Of a plan that passes its check against the instance."""
        storage = tuple(plan.costs.get(term, 0.0) if term in STORAGE_TERMS else 0.0 for term in TERMS)
        return cls(_with_free_storage(instance), itinerary_of(instance, plan), options, early, storage)


@dataclass(frozen=True)
class Replay:
    """What came of a plan once. Times in seconds after the start, money in the instance's currency."""

    costs: tuple[float, ...]
    """By term, in the order of `TERMS`."""
    completions_s: tuple[float, ...]
    """By job; not a number for one that is rejected."""
    factors: tuple[float, ...]
    """Actual duration over the estimate, by job."""
    restarts: int
    failures: int
    interruptions: int


def world_seed(seed: int, index: int) -> int:
    """The number of a world, different for every pair."""
    return seed * INDICES + index


def replay(setting: Setting, index: int, relief: tuple[tuple[int, float], ...] = ()) -> Replay:
    """Replay number `index`, confirmed by the replay check. `relief`: by how much of their estimates jobs overrun less.

    Raises NoPlan where a job can never run, Defect where the check disagrees.
    """
    options = replace(setting.options, seed=world_seed(setting.options.seed, index), relief=relief)
    return _carried_out(setting, options)


def calm(setting: Setting) -> Replay:
    """The plan carried out where nothing goes wrong: estimates hold, nothing fails, no spot node is taken back."""
    return _carried_out(setting, replace(setting.options, duration_error=0.0, mtbf_h=None, spot=False))


def _carried_out(setting: Setting, options: Options) -> Replay:
    instance = setting.instance
    policy = Followed(setting.orders, setting.early)
    trace = replayed(instance, simulate(instance, policy, replace(options, asks_at_start=True))).trace
    return Replay(
        costs=tuple(trace.costs[term] + paid for term, paid in zip(TERMS, setting.storage, strict=True)),
        completions_s=tuple(trace.completions.get(job.id, math.nan) for job in instance.jobs),
        factors=tuple(trace.factors[job.id] for job in instance.jobs),
        restarts=sum(stretch.restart for stretch in trace.stretches),
        failures=sum(happening.kind == "failure" for happening in trace.happenings),
        interruptions=sum(happening.kind == "interruption" for happening in trace.happenings),
    )


def _with_free_storage(instance: Instance) -> Instance:
    sites = tuple(site.model_copy(update={"storage": Storage()}) for site in instance.sites)
    network = tuple(link.model_copy(update={"price": 0.0, "bandwidth": None}) for link in instance.network)
    return instance.altered(sites=sites, network=network)
