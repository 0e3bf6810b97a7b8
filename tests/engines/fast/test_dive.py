"""A dive gives every job a start, keeps what is settled, and leaves the LP as it was."""

from __future__ import annotations

import numpy as np
import pytest

from models.domain import Instance
from models.reductions import reduce_starts
from models.starts import all_starts
from planner.engines.base import Limits
from planner.engines.fast.certificate import Certificate
from planner.engines.fast.construct import best_construction, place_starts
from planner.engines.fast.guide import Guide
from planner.engines.fast.master import Start
from planner.engines.fast.occupancy import Occupancy
from planner.engines.fast.prover import Prover
from planner.engines.fast.table import Table
from planner.engines.search import Search
from planner.generate import generate
from planner.horizon import num_slots_of
from planner.solve import solve
from tests.engines.samples import Doc, instance_of, mode

CASES = [("compute", 12, 8, 0.8), ("contended", 20, 8, 1.0), ("mixed", 12, 8, 0.8)]


class Ground:
    """The LP of an instance, solved with all its rows, and a plan."""

    def __init__(self, instance: Instance):
        starts = reduce_starts(all_starts(instance, num_slots_of(instance)))
        self.table = Table.of(starts)
        self.prover = Prover(Certificate(self.table), Search(starts, Limits(time_limit_s=None)))
        while not self.prover.can_dive():
            assert self.prover.step()
        self.centre = self.prover.certificate.lowest
        self.must_run = set(np.flatnonzero(np.isinf(self.table.jobs.reject)).tolist())
        self.guide = Guide(self.prover.certificate.pricing, self.centre.prices)
        self.occupancy = Occupancy(self.table)
        self.occupancy.set_prices(self.guide.priced)
        plan = best_construction(self.occupancy, self.guide)
        assert plan is not None
        self.plan = {j: (int(step["row"]), int(step["slot"])) for j, step in enumerate(plan.chosen) if step["row"] >= 0}

    def dive(self, settled: dict[int, Start], seconds: float | None = None) -> dict[int, Start]:
        """Starts, each of its own job."""
        found = self.prover.dive(settled, seconds)
        rows = self.table.rows
        for j, (r, t) in found.items():
            assert rows.job[r] == j
            assert rows.first[r] <= t <= rows.last[r]
        return found

    def lp(self) -> float:
        """The value of the LP of the branch with the lowest bound, over the starts known so far."""
        columns = self.prover.columns
        assert columns is not None
        columns.enter(self.centre)
        solved = columns.master.solve()
        assert solved is not None
        return solved.value


def drawn(case: tuple[str, int, int, float]) -> Instance:
    """The instance of a case."""
    family, jobs, nodes, load = case
    return generate(family, jobs, nodes, load, seed=3)


@pytest.fixture(scope="module", params=CASES, ids=[family for family, *_ in CASES])
def ground(request: pytest.FixtureRequest) -> Ground:
    return Ground(drawn(request.param))


def test_every_job_has_a_start_and_the_lp_is_as_before(ground: Ground) -> None:
    before = ground.lp()
    found = ground.dive({})
    assert ground.must_run <= set(found)
    # Starts that the dive has added may lower the value a little, to the bound at most.
    assert ground.centre.bound - 1e-6 <= ground.lp() <= before + 1e-6
    columns = ground.prover.columns
    assert columns is not None
    columns.round(ground.centre)
    assert columns.solved is not None
    assert columns.solved.value <= before + 1e-6
    ground.occupancy.drop(range(ground.table.num_jobs))
    assert place_starts(ground.occupancy, ground.guide, found)
    assert ground.occupancy.missing == 0


def test_most_of_the_starts_have_room(ground: Ground) -> None:
    """The LP counts nodes, so few starts of a dive have none."""
    found = ground.dive({})
    ground.occupancy.drop(range(ground.table.num_jobs))
    assert place_starts(ground.occupancy, ground.guide, found)
    there = [(int(ground.occupancy.row[j]), int(ground.occupancy.slot[j])) == start for j, start in found.items()]
    assert sum(there) >= 0.7 * len(there)


def test_what_is_settled_stays(ground: Ground) -> None:
    before = ground.lp()
    half = {j: start for j, start in ground.plan.items() if j % 2}
    found = ground.dive(half)
    assert {j: found[j] for j in half} == half
    assert ground.lp() <= before + 1e-6
    assert ground.dive(ground.plan) == ground.plan
    assert ground.lp() <= before + 1e-6


def test_others_keep_clear_of_what_is_settled() -> None:
    """Two jobs that fill the only node for two hours, each in a hurry."""
    hurried: Doc = {"modes": [mode(2, 2)], "due": 0.0, "weight": 1.0}
    ground = Ground(instance_of([hurried] * 2))
    for first, second in ((0, 1), (1, 0)):
        for slot in (0, 2):
            found = ground.dive({first: (first, slot)})
            assert found == {first: (first, slot), second: (second, 2 - slot)}
    assert sorted(slot for _, slot in ground.dive({}).values()) == [0, 2]


def test_a_dive_without_time_keeps_what_is_settled(ground: Ground) -> None:
    before = ground.lp()
    half = {j: start for j, start in ground.plan.items() if j % 2}
    found = ground.dive(half, 0.0)
    assert {j: found[j] for j in half} == half
    assert ground.lp() <= before + 1e-6


@pytest.mark.parametrize("case", CASES, ids=[family for family, *_ in CASES])
def test_a_dive_is_the_same_again(case: tuple[str, int, int, float]) -> None:
    instance = drawn(case)
    assert Ground(instance).dive({}) == Ground(instance).dive({})


def test_a_dive_where_no_job_runs_is_open_to_all() -> None:
    """The best plan at first runs nothing: a node costs more than any one job is worth, less than several are."""
    hours_and_gpus = [(4, 1), (1, 1), (3, 1), (2, 1), (1, 5), (4, 1), (2, 1), (4, 1), (1, 2), (1, 5)]
    jobs: list[Doc] = [{"modes": [mode(h, gpus)], "reject_cost": 0.15 * h * gpus} for h, gpus in hours_and_gpus]
    instance = instance_of(jobs, pools__0__gpus_per_node=8, pools__0__nodes=3)
    plan = solve(instance, "fast", Limits(time_limit_s=None, work=6000, gap=0.0)).plan
    assert plan.runs
