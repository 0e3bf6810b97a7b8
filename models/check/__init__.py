"""The checker: an instance and a plan in, every violation with its amount out.

It shares no code with the formulations, the engines or the cost model. It follows models/README.md alone and
believes nothing in a plan that can be recomputed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from models.check import goals, jobs, money, nodes, storage
from models.check.facts import Facts, read
from models.check.report import Report, Violation, total
from models.domain.instance import Instance
from models.domain.plan import Plan

__all__ = ["RULES", "Report", "Violation", "check"]

RULES: tuple[Callable[[Facts], Iterator[Violation]], ...] = (
    jobs.the_plan_is_of_this_instance,
    jobs.the_horizon_is_that_of_the_instance,
    jobs.everything_named_exists,
    jobs.each_job_runs_once_or_is_rejected,
    jobs.only_jobs_with_a_price_are_rejected,
    jobs.modes_are_usable,
    jobs.runs_last_as_long_as_their_mode,
    jobs.segments_follow_each_other,
    jobs.all_work_is_done,
    jobs.jobs_change_no_more_often_than_they_may,
    jobs.runs_lie_between_release_and_deadline,
    jobs.instants_agree_with_slots,
    jobs.tardiness_is_as_claimed,
    jobs.predecessors_complete_first,
    jobs.running_jobs_stay_where_they_must,
    nodes.places_are_what_the_mode_takes,
    nodes.no_gpu_is_overused,
    nodes.cores_and_ram_of_nodes_suffice,
    nodes.nodes_are_on_when_used,
    nodes.intervals_of_a_node_do_not_overlap,
    nodes.nodes_are_on_only_when_available,
    storage.caches_hold_whole_levels,
    storage.caches_are_large_enough,
    storage.runs_read_what_is_cached,
    storage.bandwidth_bought_is_for_sale,
    storage.bandwidth_bought_suffices,
    storage.links_between_sites_suffice,
    money.costs_are_as_claimed,
    money.the_certificate_holds,
    money.packing_is_a_part_of_the_cost,
    goals.the_budget_is_kept,
    goals.the_welfare_is_as_claimed,
)


def check(instance: Instance, plan: Plan) -> Report:
    """Every violation of every rule, and every cost term recomputed; no plan, however odd, raises."""
    facts = read(instance, plan)
    facts.costs = money.recompute(facts)
    violations = tuple(violation for rule in RULES for violation in rule(facts))
    return Report(violations, facts.costs, total(facts.costs.values()))
