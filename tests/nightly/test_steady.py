"""What need not change is kept: known answers, and on random instances that the sum it is about never rises."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from models.check import check
from models.domain import Instance, Plan
from models.errors import Infeasible, NoPlan
from planner.engines.base import Limits
from planner.nightly import run as nights
from planner.nightly.carried import carried
from planner.nightly.steady import Steadied, steadied
from planner.solve import solve
from tests.documents import HOUR
from tests.engines.samples import instance_of, mode, share
from tests.nightly.courses import plan as by_hand
from tests.nightly.courses import stretch
from tests.nightly.nights import Cluster
from tests.random_instances import FAMILIES, random_instance

ONE_GPU = {"pools__0__gpus_per_node": 1, "pools__0__nodes": 2}
DEAR: dict[str, Any] = {"pools__0__price": [1, 1, 1, 1, 3, 3, 3, 3], "horizon": 8 * HOUR}
"""Nodes are dear from the fifth hour on."""


def of_hands(instance: Instance, jobs: dict[str, list[Any]]) -> Plan:
    """A plan with these stretches, all else worked out."""
    found = carried(by_hand(0, jobs), instance)
    assert found is not None
    assert found.placed == ()
    return found.plan


def mended(instance: Instance, last: dict[str, list[Any]], new: dict[str, list[Any]], price: float) -> Steadied:
    """The new plan, mended; `last` may lack jobs, which are new then."""
    before = carried(by_hand(0, last), instance)
    assert before is not None
    found = steadied(of_hands(instance, new), before, instance, price)
    assert check(instance, found.plan).violations == ()
    return found


def where(plan: Plan) -> dict[str, list[Any]]:
    """When and on which nodes each job runs."""
    return {
        run.job: [(s.start_slot, s.end_slot, s.mode, s.pool, [p.node for p in s.places]) for s in run.segments]
        for run in plan.runs
    }


def on_node(begin: float, end: float, node: int) -> Any:
    return stretch(begin, end, places=[{"node": node, "gpus": [0]}])


def test_two_that_have_changed_places_for_nothing_change_back() -> None:
    instance = instance_of([{"modes": [mode(2)]}, {"modes": [mode(2)]}], **ONE_GPU)
    last = {"j0": [on_node(0, 2, 0)], "j1": [on_node(0, 2, 1)]}
    new = {"j0": [on_node(0, 2, 1)], "j1": [on_node(0, 2, 0)]}
    found = mended(instance, last, new, 0.0)
    assert where(found.plan) == where(of_hands(instance, last))
    assert (found.changed, found.undone, found.cost) == (0, 2, 0.0)


def test_a_change_is_made_where_it_saves_more_than_its_price() -> None:
    # From the fifth hour on a node costs 3: to be there earlier saves 4.
    instance = instance_of([{"modes": [mode(2)]}], **DEAR)
    last, new = {"j0": [on_node(4, 6, 0)]}, {"j0": [on_node(0, 2, 0)]}
    for price, undone in ((0.0, 0), (3.9, 0), (4.1, 1)):
        found = mended(instance, last, new, price)
        assert (found.undone, found.changed) == (undone, 1 - undone)
        assert found.cost == pytest.approx(4.0 * undone)
        assert where(found.plan) == where(of_hands(instance, last if undone else new))


def test_of_two_changes_only_the_one_that_saves_is_kept() -> None:
    instance = instance_of([{"modes": [mode(2)]}, {"modes": [mode(2)]}], **(DEAR | ONE_GPU))
    last = {"j0": [on_node(4, 6, 0)], "j1": [on_node(0, 2, 1)]}
    new = {"j0": [on_node(0, 2, 1)], "j1": [on_node(2, 4, 1)]}
    found = mended(instance, last, new, 1.0)
    # The first is where the second was: only by going to where it was can both keep apart, which costs 4 and saves 2.
    assert where(found.plan) == where(of_hands(instance, new))
    assert where(mended(instance, last, new, 2.1).plan) == where(of_hands(instance, last))
    beside = new | {"j0": [on_node(0, 2, 0)]}
    found = mended(instance, last, beside, 1.0)
    assert where(found.plan) == where(of_hands(instance, last | {"j0": beside["j0"]}))
    assert (found.changed, found.undone) == (1, 1)


def test_a_new_job_makes_room_for_an_old_one() -> None:
    instance = instance_of([{"modes": [mode(2)]}, {"modes": [mode(2)]}], **(DEAR | ONE_GPU | {"pools__0__nodes": 1}))
    last = {"j0": [on_node(0, 2, 0)]}
    new = {"j0": [on_node(2, 4, 0)], "j1": [on_node(0, 2, 0)]}
    found = mended(instance, last, new, 0.0)
    assert where(found.plan) == {"j0": [(0, 2, "own1", "own", [0])], "j1": [(2, 4, "own1", "own", [0])]}


def test_predecessors_and_successors_come_along() -> None:
    jobs = [{"modes": [mode(1)]}, {"modes": [mode(1)], "after": ["j0"]}, {"modes": [mode(2)]}]
    instance = instance_of(jobs, **(DEAR | ONE_GPU))
    last = {"j0": [on_node(4, 5, 0)], "j1": [on_node(5, 6, 0)], "j2": [on_node(4, 6, 1)]}
    new = {"j0": [on_node(0, 1, 0)], "j1": [on_node(1, 2, 0)], "j2": [on_node(0, 2, 1)]}
    # To put the first back the second has to come along, which costs 2 for each; the third costs 4.
    assert mended(instance, last, new, 1.9).undone == 0
    assert where(mended(instance, last, new, 2.1).plan) == where(of_hands(instance, last | {"j2": new["j2"]}))
    # Here the second would not go back by itself, for 1, and with it the first saves 4.
    prices: dict[str, Any] = {"pools__0__price": [5, 1, 1, 1, 1, 2, 2, 2], "horizon": 8 * HOUR}
    dear_first = instance_of(jobs, **(ONE_GPU | prices))
    last, new = last | {"j2": [on_node(5, 7, 1)]}, new | {"j2": [on_node(1, 3, 1)]}
    found = mended(dear_first, last, new, 0.5)
    assert where(found.plan) == where(of_hands(dear_first, last | {"j2": new["j2"]}))


def test_all_go_back_together_where_only_that_is_worth_it() -> None:
    # Beside each other two cost no more than one: to put one back costs 6, to put both back 4.
    instance = instance_of([{"modes": [mode(2)]}, {"modes": [mode(2)]}], **DEAR)
    last = {"j0": [on_node(4, 6, 0)], "j1": [stretch(4, 6, places=[{"node": 0, "gpus": [1]}])]}
    new = {"j0": [on_node(0, 2, 0)], "j1": [stretch(0, 2, places=[{"node": 0, "gpus": [1]}])]}
    assert mended(instance, last, new, 1.9).undone == 0
    found = mended(instance, last, new, 3.0)
    assert where(found.plan) == where(of_hands(instance, last))
    assert (found.undone, found.cost) == (2, pytest.approx(4.0))


def test_who_is_elsewhere_is_not_in_the_way() -> None:
    # The second is back for nothing; the third is beside it on another node and stays where it saves.
    jobs = [{"modes": [mode(2)]}, {"modes": [mode(2)]}, {"modes": [mode(2)]}]
    instance = instance_of(jobs, **(DEAR | ONE_GPU | {"pools__0__nodes": 3}))
    last = {"j0": [on_node(0, 2, 0)], "j1": [on_node(2, 4, 0)], "j2": [on_node(4, 6, 2)]}
    new = {"j0": [on_node(2, 4, 0)], "j1": [on_node(0, 2, 0)], "j2": [on_node(1, 3, 2)]}
    found = mended(instance, last, new, 1.0)
    assert where(found.plan) == where(of_hands(instance, last | {"j2": new["j2"]}))
    assert (found.changed, found.undone) == (1, 2)


def test_a_job_that_was_rejected_is_rejected_again() -> None:
    instance = instance_of([{"modes": [mode(2)], "reject_cost": 3.0}])
    last: dict[str, list[Any]] = {"j0": []}
    new = {"j0": [on_node(0, 2, 0)]}
    ran = of_hands(instance, new).cost
    assert mended(instance, last, new, 0.0).plan.rejected == (("j0",) if ran >= 3.0 else ())
    found = mended(instance, last, new, 100.0)
    assert found.plan.rejected == ("j0",)
    assert found.cost == pytest.approx(3.0 - ran)


def test_shares_go_back_to_their_gpu() -> None:
    instance = instance_of([{"modes": [share(2, 0.5)]}, {"modes": [share(2, 0.5)]}], pools__0__slices_per_gpu=2)
    on = {k: stretch(0, 2, mode="half", places=[{"node": 0, "gpus": [k]}]) for k in (0, 1)}
    name = instance.jobs[0].modes[0].id
    on = {k: (begin, end, fields | {"mode": name}) for k, (begin, end, fields) in on.items()}
    found = mended(instance, {"j0": [on[0]], "j1": [on[0]]}, {"j0": [on[1]], "j1": [on[0]]}, 0.5)
    places = [run.segments[0].places[0].gpus for run in found.plan.runs]
    assert places[0] == places[1]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("seed", range(6))
def test_the_sum_never_rises(family: str, seed: int) -> None:
    """Two plans of one random instance, the better one mended towards the other at several prices."""
    draw = np.random.default_rng(70_000 + seed)
    instance = random_instance(family, draw)
    few, more = (Limits(time_limit_s=None, work=work, threads=1, seed=work) for work in (0, 60))
    try:
        before, after = (solve(instance, "fast", limits).plan for limits in (few, more))
    except (Infeasible, NoPlan):
        return
    last = carried(before, instance)
    if last is None:
        return
    old = where(last.plan)

    def changed(plan: Plan) -> int:
        new, names = where(plan), [job.id for job in instance.jobs if job.id not in last.placed]
        return sum(new.get(name) != old.get(name) for name in names)

    for price in (0.0, 0.1 * after.cost, 1e9):
        found = steadied(after, last, instance, price)
        assert check(instance, found.plan).violations == ()
        assert found.plan.dual_bound is None or found.plan.dual_bound <= found.plan.cost
        assert found.plan.status != "optimal" or found.plan.gap is not None
        assert changed(found.plan) <= found.changed <= changed(after)
        total = found.plan.cost + price * changed(found.plan)
        slack = 1e-6 * max(1.0, after.cost)
        assert total <= after.cost + price * changed(after) + slack
        assert total <= last.plan.cost + slack or not changed(after)
        if price == 1e9:
            assert changed(found.plan) == 0


def test_a_night_says_what_was_undone(tmp_path: Path) -> None:
    jobs = [{"modes": [mode(2)]}]
    cluster = Cluster(tmp_path, jobs, **DEAR)
    cluster.run()
    first = solve(instance_of(jobs, **DEAR), "fast", Limits(time_limit_s=None, work=0, threads=1)).plan
    assert first.runs[0].segments[0].start_slot == 0
    # The price list changes: now the first hours are the dear ones, but not by as much as is asked for.
    cluster.write(jobs, **(DEAR | {"pools__0__price": [3, 3, 3, 3, 1, 1, 1, 1]}))
    task = cluster.task()
    kept = nights.dry_run(nights.Task(task.home, task.instance, task.state, task.solve, change_price=5.0))
    assert kept.plan.runs[0].segments[0].start_slot == 0
    (note,) = [note for note in kept.notes if "undone" in note]
    assert note == "1 change of the plan since the last is undone, which costs 4.00 USD more; 0 remain"
    free = nights.dry_run(nights.Task(task.home, task.instance, task.state, task.solve, change_price=3.0))
    assert free.plan.runs[0].segments[0].start_slot == 4
    assert not [note for note in free.notes if "undone" in note]
