"""Rows on the number of nodes cut off no plan, whatever jobs they are made of, and close what the LP leaves open."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from models.starts import all_starts
from planner.engines.base import Limits
from planner.engines.fast import prover as proofs
from planner.engines.fast.certificate import Certificate
from planner.engines.fast.cuts import LEAST_PART, filling_row, rounding_row
from planner.engines.fast.pricing import Prices
from planner.engines.fast.prover import Prover
from planner.engines.fast.table import Table
from planner.engines.search import Search
from tests.engines.fast.test_bound import SEEDS, every_family, random_prices, table_of, with_optimum
from tests.engines.samples import HOUR, Doc, instance_of
from tests.oracle import optimum


def may_be_rounded(wanted: np.ndarray) -> bool:
    """Whether a row can be made of what jobs want."""
    return is_part(float(wanted.sum()))


def is_part(value: float) -> bool:
    """Whether a number is far enough from whole ones."""
    return LEAST_PART <= value % 1.0 <= 1 - LEAST_PART


def test_no_choice_of_runs_is_cut_off() -> None:
    rng = np.random.default_rng(1)
    tried, tight = 0, 0
    for _ in range(1500):
        num_jobs, size = int(rng.integers(1, 5)), int(rng.choice([3, 4, 6, 8]))
        jobs = np.sort(rng.integers(0, num_jobs, int(rng.integers(1, 8))))
        nodes = rng.integers(1, 2 * size + 2, len(jobs)) / size
        wanted = rng.integers(0, 2 * size, num_jobs) / size * (rng.random(num_jobs) < 0.7)
        if not may_be_rounded(wanted):
            continue
        coefficients, most = rounding_row(jobs, nodes, wanted)
        slack = np.inf
        for chosen in itertools.product(*([-1, *np.flatnonzero(jobs == j)] for j in range(num_jobs))):
            runs = [k for k in chosen if k >= 0]
            on = np.ceil(nodes[runs].sum() - 1e-9)
            slack = min(slack, most - (coefficients[runs].sum() - on))
        assert slack >= -1e-9
        tried += 1
        tight += slack < 1e-9
    assert tried > 700
    assert tight > 300


def test_no_choice_of_runs_that_fit_is_cut_off() -> None:
    rng = np.random.default_rng(2)
    tried, tight, strong = 0, 0, 0
    for _ in range(2500):
        num_jobs = int(rng.integers(1, 6))
        jobs = np.sort(rng.integers(0, num_jobs, int(rng.integers(1, 9))))
        nodes = rng.integers(1, 9, len(jobs)) * rng.choice([1.0, 1.0, 0.5, 1 / 3])
        wanted = rng.integers(0, 9, num_jobs) * (rng.random(num_jobs) < 0.5)
        unit, room = float(rng.choice(nodes)), float(rng.integers(1, 12))
        if not is_part((room - wanted.sum()) / unit):
            continue
        coefficients, most = filling_row(jobs, nodes, wanted.astype(float), unit, room)
        slack, parts = np.inf, 0.0
        for chosen in itertools.product(*([-1, *np.flatnonzero(jobs == j)] for j in range(num_jobs))):
            runs = [k for k in chosen if k >= 0]
            needed = nodes[runs].sum()
            if needed <= room + 1e-9:
                slack = min(slack, most - coefficients[runs].sum())
            else:  # as much of all of them as there is room for
                parts = max(parts, coefficients[runs].sum() * room / needed - most)
        assert slack >= -1e-9
        tried += 1
        tight += slack < 1e-9
        strong += parts > 1e-6
    assert tried > 1000
    assert tight > 500
    assert strong > 300


def add_random_cuts(certificate: Certificate, rng: np.random.Generator, number: int) -> None:
    """Cuts of random sets of jobs, which want what some of their rows take."""
    cuts, table = certificate.pricing.cuts, certificate.table
    for _ in range(number):
        need = cuts.needs[int(rng.integers(len(cuts.needs)))]
        wanted = np.zeros(table.num_jobs)
        for k in rng.permutation(len(need.rows)):
            wanted[table.rows.job[need.rows[k]]] = need.nodes[k] * (rng.random() < 0.8)
        slot, unit = int(rng.integers(table.num_slots)), float(rng.choice(need.nodes))
        if may_be_rounded(wanted):
            cuts.add(need, slot, wanted)
        if unit > 0 and is_part((cuts.room[need.pool, slot] - wanted.sum()) / unit):
            cuts.add(need, slot, wanted, unit)


def with_random_cuts(certificate: Certificate, prices: Prices, rng: np.random.Generator) -> Prices:
    """Any prices of the cuts, and often less of what their nodes cost already."""
    number = len(certificate.pricing.cuts)
    priced = rng.uniform(0, 1.0, number) * (rng.random(number) < 0.25) * rng.choice([0.1, 1.0, 3.0])
    return prices._replace(limits=prices.limits * rng.choice([0.3, 1.0]), cuts=priced)


@every_family
def test_the_lagrangian_at_any_prices_of_cuts_is_a_bound(family: str) -> None:
    tried, gained = 0, 0
    for seed, table, best in with_optimum(family):
        certificate, rng = Certificate(table), np.random.default_rng(seed)
        add_random_cuts(certificate, rng, 30)
        for _ in range(30):
            prices = with_random_cuts(certificate, random_prices(certificate, rng), rng)
            bounds = []
            for some in (prices, prices._replace(cuts=np.zeros(0))):
                value = certificate.lagrangian.value(certificate.pricing.cheapest(some), some)
                bounds.append(min(value.bound(centre.branch) for centre in certificate.centres))
                assert bounds[-1] <= best + 1e-6 * max(1.0, best), (family, seed)
            tried += 1
            gained += bounds[0] > bounds[1]
    assert tried > 100
    assert gained > 10


@every_family
def test_a_row_pays_for_the_cuts_that_it_is_in(family: str) -> None:
    for seed in SEEDS[:6]:
        table = table_of(family, seed)
        if table is None:
            continue
        certificate, rng = Certificate(table), np.random.default_rng(seed)
        add_random_cuts(certificate, rng, 20)
        prices = with_random_cuts(certificate, random_prices(certificate, rng), rng)
        plain = prices._replace(cuts=np.zeros(0))
        pricing, cuts = certificate.pricing, certificate.pricing.cuts
        for r, row in enumerate(table.starts.rows):
            many = np.full(len(row.slots), r, dtype=np.int64)
            costs = pricing.price_of(pricing.at(plain), many, row.slots)
            for cut, price in zip(cuts.cuts, prices.cuts, strict=True):
                if cut.pool == table.rows.pool[r]:
                    mine = cut.coefficients[np.searchsorted(cuts.rows[cut.pool], r)]
                    costs = costs + price * mine * ((row.slots <= cut.slot) & (cut.slot < row.slots + row.duration))
            assert pricing.price_of(pricing.at(prices), many, row.slots) == pytest.approx(costs, rel=1e-9, abs=1e-9)
            assert pricing.cheapest(prices).cost[r] == pytest.approx(costs.min(), rel=1e-9, abs=1e-9)


def test_prices_meet_whatever_cuts_they_know() -> None:
    old = Prices(np.ones((1, 2)), np.zeros((0, 2)), np.zeros(1), np.array([2.0]))
    new = Prices(np.zeros((1, 2)), np.zeros((0, 2)), np.zeros(1), np.array([1.0, 4.0]))
    assert old.towards(new, 0.5).cuts.tolist() == [1.5, 2.0]
    assert new.towards(old, 0.5).cuts.tolist() == [1.5, 2.0]


THREE_OF_EIGHT: list[Doc] = [{"modes": [{"pool": "own", "gpus": 3, "duration": 6 * HOUR}], "due": 6 * HOUR}] * 3


def test_a_cut_tells_identical_jobs_apart() -> None:
    table = Table.of(all_starts(instance_of(THREE_OF_EIGHT, pools__0__gpus_per_node=8, pools__0__nodes=3), 6))
    assert table.jobs.twin.tolist() == [0, 0, 0]
    certificate = Certificate(table)
    cuts, prices = certificate.pricing.cuts, certificate.centres[0].prices
    cuts.add(cuts.needs[0], 0, np.array([3 / 8, 0.0, 0.0]))
    cost = certificate.pricing.cheapest(prices._replace(cuts=np.array([1.0]))).cost
    assert (cost - certificate.pricing.cheapest(prices).cost).tolist() == pytest.approx([1.0, 0.0, 0.0])


def proven(monkeypatch: pytest.MonkeyPatch, jobs: list[Doc], *, cuts: int, branches: int, **changes: float) -> float:
    """The bound after all steps of the proof, with so many rounds of cuts and so many branches."""
    monkeypatch.setattr(proofs, "CUT_ROUNDS", cuts)
    monkeypatch.setattr(proofs, "MOST_BRANCHES", branches)
    starts = all_starts(instance_of(jobs, **changes), 6)
    prover = Prover(Certificate(Table.of(starts)), Search(starts, Limits(time_limit_s=None)))
    for _ in range(200):
        if not prover.step():
            break
    return prover.certificate.bound


THREE_GANGS: list[Doc] = [{"modes": [{"pool": "own", "gpus": 6, "duration": 6 * HOUR}], "reject_cost": 90.0}] * 3


def test_two_gangs_of_three_nodes_leave_no_half_of_one_on_eight(monkeypatch: pytest.MonkeyPatch) -> None:
    changes = {"pools__0__gpus_per_node": 2, "pools__0__nodes": 8}
    best = optimum(instance_of(THREE_GANGS, **changes))
    assert best is not None
    without = proven(monkeypatch, THREE_GANGS, cuts=0, branches=0, **changes)
    assert without < best - 20
    assert proven(monkeypatch, THREE_GANGS, cuts=5, branches=0, **changes) == pytest.approx(best, rel=1e-3)


def test_three_jobs_of_three_gpus_need_two_nodes_of_eight(monkeypatch: pytest.MonkeyPatch) -> None:
    changes = {"pools__0__gpus_per_node": 8, "pools__0__nodes": 3}
    assert optimum(instance_of(THREE_OF_EIGHT, **changes)) == pytest.approx(12.0)
    without = proven(monkeypatch, THREE_OF_EIGHT, cuts=0, branches=0, **changes)
    assert without == pytest.approx(9 / 8 * 6, rel=1e-3)
    assert proven(monkeypatch, THREE_OF_EIGHT, cuts=5, branches=0, **changes) == pytest.approx(12.0, rel=1e-3)
