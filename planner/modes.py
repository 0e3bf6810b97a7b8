"""One mode for every job by a simple rule, where what is asked is not which mode is best."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from models import grid
from models.domain import Instance, Plan
from models.domain.modes import Mode, modes_of, nodes_taken
from models.errors import InvalidInput
from planner.io.plans import other_instance

Rule = Literal["cheapest", "fastest", "smallest"]


def run_cost(instance: Instance, mode: Mode) -> float:
    """Money for the part of a node that a run from the start would take, and for its energy."""
    pool = instance.pools[mode.pool]
    site = instance.sites[instance.site_index[pool.site]]
    nodes = grid.node_prices(instance, pool, mode.duration)[: mode.duration].sum()
    energy = grid.energy_prices(instance, site, pool, mode.duration).sum()
    return float(nodes_taken(mode, pool) * nodes + mode.busy_gpus * energy)


def modes_by(instance: Instance, rule: Rule) -> list[Mode | None]:
    """A mode at full speed for each job; None for one that has none.

    cheapest: by `run_cost`; fastest: by duration; smallest: by GPUs. The cheapest of equal ones.
    """
    first: dict[Rule, Callable[[Mode], float]] = {
        "cheapest": lambda _: 0.0,
        "fastest": lambda mode: mode.duration_s,
        "smallest": lambda mode: mode.busy_gpus,
    }
    found = []
    for job in instance.jobs:
        modes = [mode for mode in modes_of(instance, job) if mode.speed == 1.0]
        found.append(min(modes, key=lambda mode: (first[rule](mode), run_cost(instance, mode)), default=None))
    return found


def modes_in(instance: Instance, plan: Plan) -> list[Mode | None]:
    """The mode at full speed in which a plan runs each job; None for one that it does not run.

    Raises InvalidInput where the plan is not of this instance.
    """
    if (fault := other_instance(plan, instance)) is not None:
        raise InvalidInput([fault])
    chosen = {run.job: run.segments[-1] for run in plan.runs}
    found: list[Mode | None] = []
    for job in instance.jobs:
        segment = chosen.get(job.id)
        key = None if segment is None else (segment.mode, segment.pool)
        modes = [mode for mode in modes_of(instance, job) if (mode.name, instance.pools[mode.pool].id) == key]
        found.append(max(modes, key=lambda mode: mode.speed, default=None))
    return found
