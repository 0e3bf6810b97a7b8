"""No family of rows is idle: without it some case costs less than it can, or admits what is no plan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyomo.environ as pyo
import pytest

from models.formulation import build, build_model
from planner.engines.highs import Compiled
from tests.formulation.cases import CASES, OPTIMA
from tests.formulation.solving import value

# Without these rows the case costs so much.
CHEAPER_WITHOUT: dict[str, tuple[str, float]] = {
    "each_job_starts_once": ("scheduling", 0.0),
    "an_elastic_job_completes_once": ("elastic", 0.0),
    "one_piece_runs_before_completion": ("elastic", 5.5),  # on both nodes at once, and in time
    "all_work_is_done": ("elastic", 1.0),  # an hour
    "changes_begin_segments": ("elastic", 5.25),  # changes are free
    "changes_are_limited": ("elastic_kept", 3 + 2 * 0.5),  # to p1 and back
    "a_kept_run_goes_on_from_the_start": ("elastic_kept", 3.5),  # back to where it ran, for nothing
    "cached_pieces_need_the_cache": ("elastic_reader", 2.0),
    "a_segment_stays_on_its_nodes": ("elastic_on_nodes", 4.0),
    "levels_follow_starts_and_ends": ("capacity_as_levels", 0.0),
    "runs_fit_on_usable_nodes": ("precedence", 2.0),  # the node is not paid
    "a_node_has_room_for_one_large_run": ("capacity", 4.0),  # three runs of three GPUs on two nodes of five
    "nodes_are_paid": ("rental", 0.0),
    "booting_nodes_are_available": ("rental", 3 * 6.0),  # the second node boots when it is unavailable
    "blocks_begin_anew_or_go_on": ("rental", 2 * 6.0),  # nothing boots
    "predecessors_complete_first": ("precedence", 1.0),  # both at once
    "readers_share_the_bandwidth": ("storage", 16.1 - 1.9),  # neither bandwidth nor cache at home
    "readers_share_the_network": ("storage", 16.1 - 3.0),  # both readers in the cloud at once
    "cached_readers_need_the_cache": ("storage", 16.1 - 1.9),
    "cached_datasets_fit": ("storage", 16.1 - 1.9 + 1.2),  # both datasets, no bandwidth
    "bandwidth_is_bought_by_pieces": ("storage", 16.1 - 1.6),  # both uncached if need be, half of each here
    "a_piece_is_used_or_empty": ("storage", 16.1 - 0.5),  # the slope of the second piece without its fixed price
    "a_run_takes_its_nodes": ("nodes", 2.0),
    "runs_fit_on_their_node": ("nodes", 2.0),  # fifteen cores of sixteen
    "a_run_takes_its_gpus": ("gpus", 1.0),
    "runs_fit_on_their_gpu": ("gpus", 1.0),  # eight slices of eight
    "nodes_add_up": ("blocks_of_nodes", 4.0),
    "a_node_is_paid_while_on": ("blocks_of_nodes", 4.0),  # the tail of one node's block for the other
    "a_node_boots_when_switched_on": ("blocks_of_nodes", 6.0),  # a new block in slot 1 of a node that is on
    "blocks_of_a_node_follow_each_other": ("blocks_of_nodes", 6.0),
}


def _both_pieces(model: pyo.ConcreteModel) -> None:
    for key in model.PIECE:
        model.w[key].setlb(1)


def _two_levels(model: pyo.ConcreteModel) -> None:
    model.k[0, 0, 1].setlb(1)
    model.k[0, 0, 2].setlb(1)


def _second_node_busier(model: pyo.ConcreteModel) -> None:
    model.m[0, 0, 1].setub(0)
    model.m[0, 1, 1].setlb(1)
    model.m[0, 1, 0].setlb(1)


# These rows are implied for whole slots: the optimum of the case is the same without them, and its LP value lower.
TIGHTENS = {"whole_slots_do_the_work": "elastic_reader", "who_runs_begins": "elastic_reader"}


def _completes_late(model: pyo.ConcreteModel) -> None:
    model.complete[0, 3].setlb(1)
    for r, t in model.START:
        if t == 2:
            model.x[r, t].setub(0)


# These rows lose no plan worth having and make none dearer; they take away what costs as much or more.
FORBIDS: dict[str, tuple[str, Callable[[pyo.ConcreteModel], None]]] = {
    "a_job_runs_in_its_last_slot": ("elastic", _completes_late),
    "one_piece_is_used": ("storage", _both_pieces),
    "a_dataset_has_one_level": ("storage", _two_levels),
    "identical_nodes_are_ordered": ("nodes", _second_node_busier),
}


def _without(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    left = tuple(rule for rule in build.CONSTRAINTS if rule.__name__ != name)
    assert len(left) == len(build.CONSTRAINTS) - 1
    monkeypatch.setattr(build, "CONSTRAINTS", left)


def _optimum(case: str) -> float | None:
    return value(CASES[case].starts, CASES[case].node_pools, form=CASES[case].form)


def test_every_family_is_looked_at() -> None:
    names = [rule.__name__ for rule in build.CONSTRAINTS]
    assert sorted(names) == sorted([*CHEAPER_WITHOUT, *TIGHTENS, *FORBIDS])


@pytest.mark.parametrize("case", CASES)
def test_the_optimum_is_that_computed_by_hand(case: str) -> None:
    assert _optimum(case) == pytest.approx(OPTIMA[case], abs=1e-6)


@pytest.mark.parametrize("name", CHEAPER_WITHOUT)
def test_the_optimum_is_lower_without_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case, cheaper = CHEAPER_WITHOUT[name]
    _without(monkeypatch, name)
    assert cheaper < OPTIMA[case] - 0.1
    assert _optimum(case) == pytest.approx(cheaper, abs=1e-6)


@pytest.mark.parametrize("name", TIGHTENS)
def test_the_lp_is_lower_without_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case = CASES[TIGHTENS[name]]
    relaxed = value(case.starts, case.node_pools, relaxed=True)
    _without(monkeypatch, name)
    without = value(case.starts, case.node_pools, relaxed=True)
    assert relaxed is not None
    assert without is not None
    assert without < relaxed - 1e-3
    assert _optimum(TIGHTENS[name]) == pytest.approx(OPTIMA[TIGHTENS[name]], abs=1e-6)


@pytest.mark.parametrize("name", FORBIDS)
def test_what_it_forbids_is_possible_without_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case, ask_for = FORBIDS[name]
    assert _outcome(case, ask_for) == "infeasible"
    _without(monkeypatch, name)
    assert _outcome(case, ask_for) == "optimal"
    assert _optimum(case) == pytest.approx(OPTIMA[case], abs=1e-6)


def _outcome(case: str, ask_for: Callable[[Any], None]) -> str:
    model = build_model(CASES[case].starts, CASES[case].node_pools, form=CASES[case].form)
    ask_for(model)
    return Compiled(model).solve(time_limit_s=None, gap=0.0, seed=0, threads=1).outcome
