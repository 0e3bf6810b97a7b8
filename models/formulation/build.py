"""The joint formulation, as its table of contents."""

from __future__ import annotations

import gc

import pyomo.environ as pyo

from models.formulation import capacity, elastic, levels, objective, placement, precedence, rental, scheduling, storage
from models.formulation.context import Context, Form
from models.goal import LOWEST_COST, Goal
from models.starts import Starts

VARIABLES = (
    scheduling.declare_starts,
    elastic.declare_completions,
    levels.declare_levels,
    capacity.declare_nodes,
    rental.declare_blocks,
    storage.declare_storage,
    placement.declare_places,
)
CONSTRAINTS = (
    scheduling.each_job_starts_once,
    elastic.an_elastic_job_completes_once,
    elastic.one_piece_runs_before_completion,
    elastic.a_job_runs_in_its_last_slot,
    elastic.all_work_is_done,
    elastic.whole_slots_do_the_work,
    elastic.changes_begin_segments,
    elastic.changes_are_limited,
    elastic.who_runs_begins,
    elastic.a_kept_run_goes_on_from_the_start,
    levels.levels_follow_starts_and_ends,
    capacity.runs_fit_on_usable_nodes,
    capacity.a_node_has_room_for_one_large_run,
    rental.nodes_are_paid,
    rental.booting_nodes_are_available,
    rental.blocks_begin_anew_or_go_on,
    precedence.predecessors_complete_first,
    storage.readers_share_the_bandwidth,
    storage.readers_share_the_network,
    storage.cached_readers_need_the_cache,
    elastic.cached_pieces_need_the_cache,
    storage.a_dataset_has_one_level,
    storage.cached_datasets_fit,
    storage.bandwidth_is_bought_by_pieces,
    storage.a_piece_is_used_or_empty,
    storage.one_piece_is_used,
    placement.a_run_takes_its_nodes,
    placement.runs_fit_on_their_node,
    placement.a_run_takes_its_gpus,
    placement.runs_fit_on_their_gpu,
    placement.a_segment_stays_on_its_nodes,
    placement.nodes_add_up,
    placement.a_node_is_paid_while_on,
    placement.a_node_boots_when_switched_on,
    placement.blocks_of_a_node_follow_each_other,
    placement.identical_nodes_are_ordered,
)
OBJECTIVE = objective.lowest_total_cost
BUDGET = objective.spending_is_within_the_budget


def build_model(
    starts: Starts,
    node_pools: frozenset[int] = frozenset(),
    jobs: frozenset[int] | None = None,
    form: Form = "auto",
    goal: Goal = LOWEST_COST,
) -> pyo.ConcreteModel:
    """The formulation over these starts, of all jobs or of some. In the pools of `node_pools` every run is given
    its nodes and GPUs in the model itself (see `placement`); in the others identical nodes are only counted. The
    form is that of `levels`. The objective is that of the goal, whose budget is a row."""
    context = Context(starts, node_pools, jobs, form, goal)
    model = pyo.ConcreteModel(name=starts.instance.name)
    collecting = gc.isenabled()
    gc.disable()  # tens of thousands of small objects, none of them garbage: the build takes half the time
    try:
        for declare in VARIABLES:
            declare(model, context)
        for constrain in CONSTRAINTS:
            constrain(model, context)
        OBJECTIVE(model, context)
        BUDGET(model, context)
    finally:
        if collecting:
            gc.enable()
    return model
