"""The Lagrangian is a bound at any prices, pricing sees every start, and the steps of the proof never overshoot."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest

from models.domain import Instance
from models.formulation import build_model
from models.reductions import reduce_starts
from models.rentals import NodeRules, cheapest_intervals
from models.starts import all_starts
from models.storage.tariff import tariff_of
from planner.engines.base import Limits
from planner.engines.fallback import has_impossible_job
from planner.engines.fast.bound import _best_intervals
from planner.engines.fast.branches import stretches_of
from planner.engines.fast.certificate import Certificate
from planner.engines.fast.pricing import Prices
from planner.engines.fast.prover import Prover
from planner.engines.fast.table import Table
from planner.engines.highs import Compiled
from planner.engines.search import Search
from planner.horizon import num_slots_of
from tests.oracle import optimum
from tests.random_instances import FAMILIES, random_instance

SEEDS = range(12)
every_family = pytest.mark.parametrize("family", FAMILIES)


def table_of(family: str, seed: int) -> Table | None:
    """The table of a random instance; None where some job has no start."""
    instance = random_instance(family, np.random.default_rng(seed))
    starts = reduce_starts(all_starts(instance, num_slots_of(instance)))
    return None if has_impossible_job(starts) or not starts.rows else Table.of(starts)


def with_optimum(family: str) -> Iterator[tuple[int, Table, float]]:
    """Seeds with the table and the optimum of their instance, where there are such."""
    for seed in SEEDS:
        table = table_of(family, seed)
        best = None if table is None else optimum(table.instance)
        if table is not None and best is not None:
            yield seed, table, best


def random_prices(certificate: Certificate, rng: np.random.Generator) -> Prices:
    """Any prices at all, most of them near those that a node's price suggests."""
    first = certificate.centres[0].prices
    limits = first.limits * rng.uniform(0, 3, first.limits.shape) * (rng.random(first.limits.shape) < 0.8)
    limits = limits + (rng.random(first.limits.shape) < 0.1) * rng.uniform(0, 1)
    pairs = rng.uniform(0, 0.5, first.precedence.shape) * (rng.random(first.precedence.shape) < 0.3)
    return Prices(limits, pairs, rng.uniform(0, 0.05, first.cache.shape) * (rng.random() < 0.5))


def lp_value(instance: Instance) -> float | None:
    """The LP relaxation of the formulation."""
    starts = reduce_starts(all_starts(instance, num_slots_of(instance)))
    answer = Compiled(build_model(starts)).solve(time_limit_s=None, gap=0.0, seed=0, threads=1, relaxed=True)
    return answer.objective


@every_family
def test_the_lagrangian_at_any_prices_is_a_bound(family: str) -> None:
    tried = 0
    for seed, table, best in with_optimum(family):
        certificate = Certificate(table)
        rng = np.random.default_rng(seed)
        for _ in range(20):
            prices = random_prices(certificate, rng)
            value = certificate.lagrangian.value(certificate.pricing.cheapest(prices), prices)
            least = min(value.bound(centre.branch) for centre in certificate.centres)
            assert least <= best + 1e-6 * max(1.0, best), (family, seed)
            tried += 1
    assert tried > 50


@every_family
def test_the_proof_reaches_the_lp_and_never_the_other_side_of_the_optimum(family: str) -> None:
    reached = 0
    for seed, table, best in with_optimum(family):
        certificate = Certificate(table)
        prover = Prover(certificate, Search(table.starts, Limits(time_limit_s=None)))
        before = certificate.bound
        for _ in range(40):
            if not prover.step():
                break
            assert certificate.bound >= before - 1e-9 * max(1.0, abs(before)), (family, seed)
            before = certificate.bound
            assert before <= best + 1e-6 * max(1.0, best), (family, seed)
        relaxed = lp_value(table.instance)
        assert relaxed is not None
        # Tariffs and caches are branched on here, rental is exact by node: often well above the LP, hardly ever below.
        reached += before >= relaxed - 2e-3 * max(1.0, relaxed)
    assert reached >= 6


@every_family
def test_pricing_sees_every_start(family: str) -> None:
    for seed in SEEDS:
        table = table_of(family, seed)
        if table is None:
            continue
        certificate = Certificate(table)
        prices = random_prices(certificate, np.random.default_rng(seed))
        found, priced = certificate.pricing.cheapest(prices), certificate.pricing.at(prices)
        for r, row in enumerate(table.starts.rows):
            costs = row.costs.copy()
            begin, end = priced.begin, priced.end
            own = table.jobs.late[row.job, row.slots + row.duration]
            costs += end[row.job, row.slots + row.duration] - own
            if begin.shape[1] > 1:
                costs += begin[row.job, row.slots]
            uses = certificate.limits.uses
            for k in range(uses.start[r], uses.start[r + 1]):
                by_slot = prices.limits[uses.limit[k]]
                paid = [by_slot[t : t + row.duration].sum() for t in row.slots.tolist()]
                costs += uses.amount[k] * np.array(paid)
            assert found.cost[r] == pytest.approx(costs.min(), rel=1e-9, abs=1e-9)
            many = np.full(len(row.slots), r, dtype=np.int64)
            assert certificate.pricing.price_of(priced, many, row.slots) == pytest.approx(costs, rel=1e-9, abs=1e-9)
        start, rows, slots, costs = certificate.pricing.nearly_cheapest(priced, np.full(table.num_jobs, 1e300), 10**6)
        assert len(rows) == table.starts.num_starts
        assert {(int(r), int(t)) for r, t in zip(rows, slots, strict=True)} == {
            (r, t) for r, row in enumerate(table.starts.rows) for t in row.slots.tolist()
        }
        for j in range(table.num_jobs):
            assert (np.diff(costs[start[j] : start[j + 1]]) >= 0).all()


@every_family
def test_what_is_used_where_jobs_hardly_spread_is_what_their_cheapest_starts_use(family: str) -> None:
    for seed in SEEDS:
        table = table_of(family, seed)
        if table is None:
            continue
        certificate = Certificate(table)
        rng = np.random.default_rng(seed)
        prices = random_prices(certificate, rng)
        # Prices without ties: one start of each job is the cheapest.
        prices = prices._replace(limits=prices.limits + 1e-3 * rng.random(prices.limits.shape))
        lagrangian = certificate.lagrangian
        allowed = np.ones((table.num_jobs, lagrangian.num_variants), dtype=np.bool_)
        found, usage = certificate.pricing.spread(prices, allowed, lagrangian.variant_of_row, 1e-9)
        plain = certificate.pricing.cheapest(prices)
        assert found.cost.tolist() == plain.cost.tolist()
        expected = np.zeros_like(usage)
        uses = certificate.limits.uses
        is_plain = True
        for j in range(table.num_jobs):
            first, last = table.jobs.row_start[j], table.jobs.row_start[j + 1]
            order = np.argsort(plain.cost[first:last]) + first
            if table.jobs.reject[j] <= plain.cost[order[0]] + 1e-6:
                is_plain = is_plain and table.jobs.reject[j] < plain.cost[order[0]] - 1e-6
                continue
            if len(order) > 1 and plain.cost[order[1]] - plain.cost[order[0]] < 1e-6:
                is_plain = False
            r, t = order[0], plain.slot[order[0]]
            for k in range(uses.start[r], uses.start[r + 1]):
                expected[uses.limit[k], t : t + table.rows.duration[r]] += uses.amount[k]
        if is_plain:
            assert usage == pytest.approx(expected, rel=1e-3, abs=1e-3)


def test_identical_jobs_are_priced_once() -> None:
    document = random_instance("compute", np.random.default_rng(3)).model_dump(mode="json", exclude_defaults=True)
    job = {key: value for key, value in document["jobs"][0].items() if key not in ("after", "running")}
    document["jobs"] = [job | {"id": f"copy{k}"} for k in range(4)] + [job | {"id": "later", "release": 1800.0}]
    table = Table.of(all_starts(Instance.model_validate(document), 12))
    assert table.jobs.twin.tolist()[:4] == [0, 0, 0, 0]
    assert table.jobs.twin[4] == 4
    certificate = Certificate(table)
    found = certificate.pricing.cheapest(certificate.centres[0].prices)
    width = table.jobs.row_start[1]
    for k in range(1, 4):
        assert found.cost[k * width : (k + 1) * width].tolist() == found.cost[:width].tolist()


def test_stretches_are_the_tariff() -> None:
    checked = 0
    for seed in range(40):
        table = table_of("mixed", seed)
        for s, site in enumerate(table.instance.sites if table is not None else ()):
            assert table is not None
            stretches = stretches_of(table, s, 500.0)
            for mb_s in np.linspace(0.0, 500.0, 101):
                price = float(tariff_of(site.storage).envelope(mb_s)) * table.storage.hours[s]
                there = [c for c in stretches if c.low - 1e-9 <= mb_s <= c.high + 1e-9]
                assert min(c.fixed + c.slope * mb_s for c in there) == pytest.approx(price, rel=1e-9, abs=1e-9)
                checked += 1
    assert checked > 1000


def test_no_cover_of_a_node_is_worth_more_than_the_dynamic_programme_says() -> None:
    rng = np.random.default_rng(5)
    for _ in range(200):
        num_slots, block, boot = int(rng.integers(4, 14)), int(rng.integers(1, 4)), int(rng.integers(0, 3))
        price = rng.choice([0.5, 1.0, 2.0], num_slots + block)
        available = np.ones((1, num_slots), dtype=bool)
        warm = bool(rng.random() < 0.3)
        rules = NodeRules(block, boot, price, available, np.array([warm]))
        earnings = rng.uniform(0, 3, num_slots)
        sums = np.concatenate([[0.0], np.cumsum(price)])
        least = _best_intervals(sums, earnings, available[0], warm, block, boot)
        assert least <= 0.0
        busy = rng.random(num_slots) < 0.5
        if not warm:
            busy[:boot] = False
        try:
            intervals = cheapest_intervals(rules, 0, busy)
        except ValueError:
            continue
        cost = math.fsum(rules.cost(a, b) for a, b in intervals)
        assert least <= cost - float(earnings[busy].sum()) + 1e-9
