"""The rules between fields: what pydantic cannot see of one record alone. Every fault is reported, none stops another.

The rules run over a draft, in which records with faults of their own are missing but their names are known, so
that one bad cell does not make a hundred dangling references.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from models.domain.rules.draft import SECTIONS, Draft, suggest
from models.domain.rules.jobs import modes_are_sound, times_are_in_order
from models.domain.rules.references import names_are_unique, predecessors_have_no_cycle, references_exist
from models.domain.rules.resources import (
    pools_are_sound,
    price_lists_have_an_entry_a_slot,
    slots_divide_the_horizon,
    storage_is_sound,
    the_grid_is_within_the_calendar,
)
from models.domain.rules.running import modes_fit_nodes, running_jobs_are_somewhere
from models.errors import Fault

__all__ = ["RULES", "SECTIONS", "Draft", "check_rules", "suggest"]

RULES: tuple[Callable[[Draft], Iterator[Fault]], ...] = (
    names_are_unique,
    references_exist,
    predecessors_have_no_cycle,
    slots_divide_the_horizon,
    the_grid_is_within_the_calendar,
    price_lists_have_an_entry_a_slot,
    pools_are_sound,
    storage_is_sound,
    times_are_in_order,
    modes_are_sound,
    modes_fit_nodes,
    running_jobs_are_somewhere,
)


def check_rules(draft: Draft) -> list[Fault]:
    """Every breach of every rule."""
    return [fault for rule in RULES for fault in rule(draft)]
