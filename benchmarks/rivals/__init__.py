"""What the planner is held against: each rival is a function solve(instance, time_limit_s, threads, seed) -> Outcome.

highs_alone     the Pyomo model in HiGHS, without any heuristic of ours
cpsat           a model of its own in OR-Tools CP-SAT, with a list schedule as its hint
edf, weight     list scheduling in one order
pressure        the published greedy by pressure
random_greedy   that, randomised, for the whole time
local_search    the published neighbourhoods from the greedy's schedules
path_relinking  walks between ten elite schedules
cheapest_cloud  each job alone on rented nodes
"""

from __future__ import annotations

import importlib

from benchmarks.rivals.attempt import Attempt, Outcome, Rival

__all__ = ["RIVALS", "Attempt", "Outcome", "Rival", "rival"]

# Module and function of each; imported when asked for, since OR-Tools and Pyomo take a second.
RIVALS: dict[str, tuple[str, str]] = {
    "highs_alone": ("highs_alone", "solve"),
    "cpsat": ("cpsat", "solve"),
    "edf": ("lists", "edf"),
    "weight": ("lists", "weight"),
    "pressure": ("lists", "pressure"),
    "random_greedy": ("random_greedy", "solve"),
    "local_search": ("local_search", "solve"),
    "path_relinking": ("path_relinking", "solve"),
    "cheapest_cloud": ("cheapest_cloud", "solve"),
}


def rival(name: str) -> Rival:
    """The function of a rival."""
    module, function = RIVALS[name]
    found: Rival = getattr(importlib.import_module(f"benchmarks.rivals.{module}"), function)
    return found
