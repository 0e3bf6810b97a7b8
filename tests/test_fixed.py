"""Plans at fixed GPU counts: the restriction holds, and its bound is that of the restricted problem."""

from __future__ import annotations

import random

import pytest

from models.check import check
from models.domain import Instance
from models.errors import Infeasible
from planner.engines.base import Limits, Solution
from planner.fixed import at_fixed_gpus, solve_at_fixed_gpus
from planner.modes import Rule, modes_by
from planner.solve import solve
from tests.documents import HOUR
from tests.engines.samples import instance_of, mode, running, share
from tests.random_instances import random_instance

QUICK = Limits(time_limit_s=None, work=300, gap=1e-7)
RULES: tuple[Rule, ...] = ("cheapest", "fastest", "smallest")


def exactly(instance: Instance) -> Solution:
    """The optimum."""
    return solve(instance, "auto", QUICK)


@pytest.mark.parametrize("rule", RULES)
def test_every_run_has_the_gpus_of_the_rule(rule: Rule) -> None:
    seen = 0
    for seed in range(8):
        instance = random_instance("compute", random.Random(seed), "tiny")
        try:
            plan = solve_at_fixed_gpus(instance, rule, exactly).plan
            free = exactly(instance).plan
        except Infeasible:
            continue
        assert check(instance, plan).ok
        assert plan.fixed_gpus == rule
        assert free.cost <= plan.cost + 1e-6
        chosen = dict(zip((job.id for job in instance.jobs), modes_by(instance, rule), strict=True))
        for run in plan.runs:
            wanted, segment = chosen[run.job], run.segments[0]
            assert wanted is not None
            assert sum(len(place.gpus) for place in segment.places) == max(1, wanted.gpus)
            seen += 1
    assert seen


def test_what_the_counts_cost() -> None:
    """In time on two GPUs, an hour late on one."""
    job = {"due": HOUR, "weight": 8.0, "modes": [mode(2.0, 1), mode(1.0, 2)]}
    instance = instance_of([job])
    assert exactly(instance).plan.costs["tardiness"] == 0
    small = solve_at_fixed_gpus(instance, "smallest", exactly).plan
    assert small.costs["tardiness"] == pytest.approx(8.0)
    assert small.status == "optimal"
    assert small.dual_bound == pytest.approx(small.cost)


def test_other_pools_stay_open() -> None:
    job = {"modes": [mode(2.0, 1), mode(1.0, 2), mode(1.5, 1, "rent"), mode(1.0, 2, "rent")]}
    (fixed,) = at_fixed_gpus(instance_of([job]), "smallest").jobs
    assert [entry.id for entry in fixed.modes] == ["own1", "rent1"]


def test_shares_are_told_from_whole_gpus() -> None:
    job = {"modes": [mode(2.0, 1), share(4.0, 0.5), share(6.0, 0.25)]}
    (fixed,) = at_fixed_gpus(instance_of([job], pools__0__slices_per_gpu=4), "smallest").jobs
    assert [entry.share for entry in fixed.modes] == [0.25]


def test_what_runs_already_goes_on() -> None:
    job = {"modes": [mode(2.0, 1), mode(1.0, 2)], "running": running("own2", {0: [0, 1]})}
    instance = instance_of([job])
    plan = solve_at_fixed_gpus(instance, "smallest", exactly).plan
    assert plan.runs[0].segments[0].mode == "own2"


def test_infeasible_counts_are_told_as_such() -> None:
    job = {"deadline": HOUR, "modes": [mode(2.0, 1), mode(1.0, 2)]}
    with pytest.raises(Infeasible, match="fixed as in its smallest mode"):
        solve_at_fixed_gpus(instance_of([job]), "smallest", exactly)
