"""The two parts of a split are the whole, the bound of each is below every plan in it, and they close gaps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from models.formulation import build_model
from models.starts import Starts, all_starts
from planner.engines.base import Limits
from planner.engines.fast.branches import Branch, Windows
from planner.engines.fast.certificate import Certificate
from planner.engines.fast.prover import Prover
from planner.engines.fast.splits import Split, splits_of
from planner.engines.fast.table import Table
from planner.engines.highs import Compiled
from planner.engines.search import Search
from tests.engines.fast.test_bound import SEEDS, every_family, random_prices, table_of, with_optimum
from tests.engines.fast.test_cuts import add_random_cuts, proven, with_random_cuts
from tests.engines.samples import HOUR, Doc, instance_of
from tests.oracle import optimum


def random_weights(table: Table, rng: np.random.Generator) -> dict[tuple[int, int], float]:
    """Every job spread over up to three of its starts."""
    weights: dict[tuple[int, int], float] = {}
    for j in range(table.num_jobs):
        rows = np.arange(table.jobs.row_start[j], table.jobs.row_start[j + 1])
        for r in rng.choice(rows, 3).tolist() if len(rows) else ():
            t = int(rng.choice(table.starts.rows[r].slots))
            weights[r, t] = weights.get((r, t), 0.0) + 1 / 3
    return weights


def random_split(table: Table, rng: np.random.Generator) -> Split | None:
    """One of those that some LP solution could offer."""
    found = splits_of(table, random_weights(table, rng))
    return found[int(rng.integers(len(found)))] if found else None


def starts_in(table: Table, windows: Windows | None) -> set[tuple[int, int]]:
    """Every start that windows leave."""
    windows = windows or Windows.of(table)
    return {
        (r, t)
        for r, row in enumerate(table.starts.rows)
        for t in row.slots.tolist()
        if windows.first[r] <= t <= windows.last[r]
    }


def best_in(table: Table, branch: Branch) -> float | None:
    """Cost of the best schedule of the starts of a branch, all jobs of which must run; None where there is none."""
    kept = starts_in(table, branch.windows)
    rows = []
    for r, row in enumerate(table.starts.rows):
        slots = np.array([t for t in row.slots.tolist() if (r, t) in kept], dtype=row.slots.dtype)
        if len(slots):
            rows.append(replace(row, slots=slots))
    starts: Starts = replace(table.starts, rows=tuple(rows))
    if len({row.job for row in rows}) < table.num_jobs:
        return None
    return Compiled(build_model(starts)).solve(time_limit_s=None, gap=0.0, seed=0, threads=1).objective


@every_family
def test_the_parts_of_a_split_are_the_whole(family: str) -> None:
    kinds = set()
    for seed in SEEDS:
        table = table_of(family, seed)
        if table is None:
            continue
        rng = np.random.default_rng(seed)
        branch = Branch({}, {})
        for _ in range(4):
            split = random_split(table, rng)
            if split is None:
                break
            kinds.add(split.kind)
            inside, outside = branch.parts(split, table)
            of_job = {start for start in starts_in(table, branch.windows) if table.rows.job[start[0]] == split.job}
            others = starts_in(table, branch.windows) - of_job
            in_both = starts_in(table, inside.windows) & starts_in(table, outside.windows)
            assert in_both == others
            assert starts_in(table, inside.windows) | starts_in(table, outside.windows) == others | of_job
            assert inside.windows is not None
            assert outside.windows is not None
            assert split.job in inside.windows.must_run
            assert outside.windows.must_run == (frozenset() if branch.windows is None else branch.windows.must_run)
            branch = (inside, outside)[int(rng.integers(2))]
    assert kinds >= {"slot", "size"} or kinds >= {"slot", "pool"}


@every_family
def test_pricing_sees_every_start_of_a_branch_and_no_other(family: str) -> None:
    for seed in SEEDS:
        table = table_of(family, seed)
        if table is None:
            continue
        certificate, rng = Certificate(table), np.random.default_rng(seed)
        branch = certificate.centres[0].branch
        for _ in range(3):
            split = random_split(table, rng)
            if split is not None:
                branch = branch.parts(split, table)[int(rng.integers(2))]
        prices, pricing = random_prices(certificate, rng), certificate.pricing
        found, priced = pricing.cheapest(prices, branch.windows), pricing.at(prices)
        kept = starts_in(table, branch.windows)
        for r, row in enumerate(table.starts.rows):
            slots = np.array([t for t in row.slots.tolist() if (r, t) in kept], dtype=np.int64)
            costs = pricing.price_of(priced, np.full(len(slots), r, dtype=np.int64), slots)
            assert found.cost[r] == pytest.approx(costs.min(initial=np.inf), rel=1e-9, abs=1e-9)


@every_family
def test_the_bound_of_a_branch_is_below_all_that_it_holds(family: str) -> None:
    tried = 0
    for seed in SEEDS:
        table = table_of(family, seed)
        if table is None or np.isfinite(table.jobs.reject).any():
            continue
        certificate, rng = Certificate(table), np.random.default_rng(seed)
        add_random_cuts(certificate, rng, 10)
        for _ in range(4):
            branches = [centre.branch for centre in certificate.centres]
            for _ in range(int(rng.integers(1, 4))):
                split, side = random_split(table, rng), int(rng.integers(2))
                if split is not None:
                    branches = [branch.parts(split, table)[side] for branch in branches]
            best = best_in(table, branches[0])
            for _ in range(5):
                prices = with_random_cuts(certificate, random_prices(certificate, rng), rng)
                shared = certificate.lagrangian.value(certificate.pricing.cheapest(prices), prices)
                found = certificate.pricing.cheapest(prices, branches[0].windows)
                own = certificate.lagrangian.value(found, prices)
                least = min(own.bound(branch) for branch in branches)
                assert min(shared.bound(branch) for branch in branches) <= least + 1e-9
                assert best is None or least <= best + 1e-6 * max(1.0, best), (family, seed)
                tried += 1
    assert tried > 60


@every_family
def test_a_proof_with_a_plan_at_hand_stays_below_the_optimum(family: str) -> None:
    """Branches above the cost of a plan are forgotten; their bounds are not."""
    for seed, table, best in with_optimum(family):
        certificate = Certificate(table)
        prover = Prover(certificate, Search(table.starts, Limits(time_limit_s=None)))
        for _ in range(60):
            if not prover.step():
                break
            # Closed at half of it too, which is no plan's cost: what is closed still counts.
            certificate.close(best * (1.0 if seed % 2 else 0.5))
            assert certificate.bound <= best + 1e-6 * max(1.0, best), (family, seed)


def test_who_must_run_is_not_rejected() -> None:
    job: Doc = {"modes": [{"pool": "own", "gpus": 1, "duration": HOUR}], "due": 6 * HOUR, "reject_cost": 0.01}
    table = Table.of(all_starts(instance_of([job]), 6))
    certificate = Certificate(table)
    branch = certificate.centres[0].branch
    split = splits_of(table, {(0, 0): 0.5, (0, 1): 0.5})[0]
    prices = certificate.centres[0].prices
    bounds = []
    for part in branch.parts(split, table):
        value = certificate.lagrangian.value(certificate.pricing.cheapest(prices, part.windows), prices)
        bounds.append(value.bound(part))
    assert bounds == pytest.approx([0.5, 0.01])


def test_a_branch_in_which_a_job_has_no_start_is_infinite() -> None:
    job: Doc = {"modes": [{"pool": "own", "gpus": 1, "duration": HOUR}], "due": 6 * HOUR}
    table = Table.of(all_starts(instance_of([job]), 6))
    certificate = Certificate(table)
    windows = Windows(table.rows.last + 1, table.rows.last)
    branch = replace(certificate.centres[0].branch, windows=windows)
    assert certificate.centres[0].value.bound(branch) == float("inf")


def test_branching_closes_what_the_lp_leaves_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of three jobs fit on the own node, the LP finds room for two and two thirds."""
    modes = [{"pool": pool, "gpus": 3, "duration": 6 * HOUR} for pool in ("own", "rent")]
    jobs: list[Doc] = [{"modes": modes, "due": 6 * HOUR}] * 3
    changes = {"pools__0__gpus_per_node": 8, "pools__1__gpus_per_node": 3, "pools__1__nodes": 3}
    best = optimum(instance_of(jobs, **changes))
    assert best == pytest.approx(6 * 1.0 + 6 * 4.0)
    assert proven(monkeypatch, jobs, cuts=0, branches=0, **changes) == pytest.approx(6.0 + 24 / 3, rel=1e-2)
    # Branching finds the rented node; that six of eight GPUs pay for a whole node is for the cuts to see.
    assert proven(monkeypatch, jobs, cuts=0, branches=100, **changes) == pytest.approx(6.0 * 6 / 8 + 24.0, rel=1e-3)
    assert proven(monkeypatch, jobs, cuts=5, branches=100, **changes) == pytest.approx(best, rel=1e-3)
