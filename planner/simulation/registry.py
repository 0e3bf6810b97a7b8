"""All policies by name. Importing this imports neither engines nor solvers; a policy imports what it needs."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from planner.simulation.state import Policy

_HOME = "planner.simulation.policies."


@dataclass(frozen=True)
class PolicyOptions:
    """What may be chosen about policies; each reads what concerns it."""

    seed: int = 0
    time_limit_s: float | None = None
    """Seconds for each call of `fast` and `exact`; None: by work (`exact`: 20 where that is not given either)."""
    work: int | None = None
    """Moves of their search at each call; None: 200 where no seconds are given either."""
    gap: float = 1e-3
    """Proven gap at which they stop."""
    slot_s: float | None = None
    """Length of the slots that they plan in; None: the instance's, or a multiple where that makes very many."""
    elastic: bool = True
    """Whether they plan changes of mode for every job that may be stopped, not for jobs that say so only."""
    move_price: float = 0.0
    """Money that each stop and restart of a job counts as, besides what it costs, where they plan."""
    iterations: int = 40
    """Steps that `random_greedy` makes at each call; the local searches try moves in proportion."""
    wait_s: float = 1800.0
    """How long a job waits before `burst_after_waiting` bursts it."""


Factory = Callable[[PolicyOptions], "Policy"]


def _load(module: str, name: str) -> Any:
    return getattr(importlib.import_module(_HOME + module), name)


def _listed(name: str, order: str, rule: str) -> Factory:
    def make(_: PolicyOptions) -> Policy:
        policy = _load("lists", "ListPolicy")(name, _load("lists", order), _load("lists", rule))
        return cast("Policy", policy)

    return make


def _rule(module: str, kind: str) -> Factory:
    return lambda _: cast("Policy", _load(module, kind)())


def _search(module: str, kind: str) -> Factory:
    return lambda options: cast("Policy", _load(module, kind)(options.seed, options.iterations))


def _burst(options: PolicyOptions) -> Policy:
    return cast("Policy", _load("clouds", "BurstAfterWaiting")(options.wait_s))


def _planned(engine: str) -> Factory:
    def make(options: PolicyOptions) -> Policy:
        policy = _load("planned", "Planned")(
            engine,
            seed=options.seed,
            time_limit_s=options.time_limit_s,
            work=options.work,
            gap=options.gap,
            slot_s=options.slot_s,
            elastic=options.elastic,
            move_price=options.move_price,
        )
        return cast("Policy", policy)

    return make


_ALL: dict[str, tuple[str, Factory]] = {
    "fifo": (
        "first come, first served, nodes shared; the cheapest mode in time, else the fastest",
        _listed("fifo", "by_arrival", "sharing"),
    ),
    "edf": ("earliest due date first, nodes shared", _listed("edf", "by_due_date", "sharing")),
    "priority": ("highest weight first, nodes shared", _listed("priority", "by_weight", "sharing")),
    "fifo_node": (
        "first come, first served, each job on a node of its own",
        _listed("fifo_node", "by_arrival", "whole_node"),
    ),
    "edf_node": (
        "earliest due date first, each job on a node of its own",
        _listed("edf_node", "by_due_date", "whole_node"),
    ),
    "priority_node": (
        "highest weight first, each job on a node of its own",
        _listed("priority_node", "by_weight", "whole_node"),
    ),
    "easy": ("first come, first served with EASY backfill", _rule("easy", "Easy")),
    "one_small": ("one GPU a job, in order of arrival, never changed", _listed("one_small", "by_arrival", "one_small")),
    "small_then_large": (
        "the cheapest mode, then a faster one at the last moment that meets the due date",
        _rule("elastic", "SmallThenLarge"),
    ),
    "pressure": ("published greedy by pressure; preempts and migrates at every event", _rule("pressure", "Pressure")),
    "random_greedy": ("published randomised greedy, the best of many", _search("pressure", "RandomGreedy")),
    "local_search": ("published local search from the greedy", _search("searches", "LocalSearch")),
    "path_relinking": ("published path relinking among an elite", _search("searches", "PathRelinking")),
    "cheapest_cloud": ("each job alone on its cheapest rented set-up, at once", _rule("clouds", "CheapestCloud")),
    "burst_after_waiting": ("earliest due date first on owned nodes; who waits too long bursts", _burst),
    "fast": ("this planner, fast engine, at every event", _planned("fast")),
    "exact": ("this planner, exact engine where the work is not too much for it", _planned("exact")),
}

POLICIES: dict[str, Factory] = {name: factory for name, (_, factory) in _ALL.items()}
"""What makes each policy."""
DESCRIPTIONS: dict[str, str] = {name: description for name, (description, _) in _ALL.items()}
"""What each policy does, in a line."""
