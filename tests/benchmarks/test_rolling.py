"""The rolling benchmark: bounds that are bounds, workloads that are what they say, tables that count right."""

from __future__ import annotations

import csv
from typing import Any

import numpy as np
import pytest

from benchmarks import rolling
from benchmarks.offline import offline_bound
from benchmarks.rolling_tables import tables_of, worse_than
from benchmarks.trace_workloads import ITP_FILES, LONGEST_S, TraceWorkload
from benchmarks.workloads import DATA, PRICES, RENT, Workload, alone_cost, job_types
from models.domain import Instance
from planner.simulation.chance import Options
from planner.simulation.registry import POLICIES, PolicyOptions
from planner.simulation.run import simulate
from tests.simulation.states import HOUR, instance_of

needs_data = pytest.mark.skipif(not (DATA / "profiles").is_dir(), reason="the shared data are not beside the checkout")
SITES = [{"id": "home", "kind": "on_prem", "energy_price": 1.0}, {"id": "cloud", "kind": "cloud"}]


def energy_only(jobs: list[dict[str, Any]], **pool: Any) -> Instance:
    return instance_of([{"price": 0.0, "gpu_power": 1.0} | pool], jobs, sites=SITES)


def job(small_h: float, large_h: float, **fields: Any) -> dict[str, Any]:
    modes = [{"gpu": "A", "gpus": n, "duration": h * HOUR} for n, h in ((1, small_h), (4, large_h))]
    return {"modes": modes} | fields


# --- bounds -----------------------------------------------------------------------------------------------------


def test_a_job_alone_costs_what_its_two_modes_do() -> None:
    # Small for 1.2 hours and large for 1.05: see tests/simulation/test_alone.py.
    instance = energy_only([job(4, 1.5, due=2.25 * HOUR, weight=1000.0)])
    assert alone_cost(instance) == pytest.approx(5.4)
    assert offline_bound(instance, 5) == pytest.approx(5.4, rel=1e-3)
    relaxed = energy_only([job(4, 1.5, due=9 * HOUR, weight=1000.0)])
    assert alone_cost(relaxed) == pytest.approx(4.0)
    late = energy_only([job(4, 1.5, due=HOUR, weight=6.0)])
    # Large throughout: 6, and half an hour late at 6 an hour.
    assert alone_cost(late) == pytest.approx(9.0)
    assert offline_bound(late, 5) == pytest.approx(9.0, rel=1e-3)


def test_with_all_arrivals_known_the_bound_sees_that_gpus_are_few() -> None:
    # Six jobs of an hour on one GPU that are all due in an hour: the last is complete after six.
    one = {"modes": [{"gpu": "A", "gpus": 1, "duration": HOUR}], "due": HOUR, "weight": 2.0}
    instance = energy_only([one] * 6, gpus_per_node=1)
    best = 6.0 + 2.0 * sum(range(6))
    assert alone_cost(instance) == pytest.approx(6.0)
    assert 6.0 + 0.5 * 2.0 * sum(range(6)) < offline_bound(instance, 100) <= best + 1e-6


def test_costs_of_nodes_are_refused() -> None:
    dear = instance_of([{"price": 1.0}], [job(2, 1)])
    for bound in (alone_cost, offline_bound):
        with pytest.raises(ValueError, match="not of energy at one price"):
            bound(dear)


@needs_data
@pytest.mark.parametrize("arrivals", ["contended", "low"])
def test_no_policy_is_below_the_bounds(arrivals: Any) -> None:
    instance = Workload(2, arrivals, 3, jobs=12, small=0.3, burst=True).make()
    bounds = alone_cost(instance), offline_bound(instance, 20)
    for name in ("fast", "edf", "small_then_large", "one_small", "burst_after_waiting"):
        options = PolicyOptions(work=20)
        outcome = simulate(instance, POLICIES[name](options), Options())
        assert max(bounds) <= outcome.trace.cost * (1 + 1e-9)


# --- workloads --------------------------------------------------------------------------------------------------


@needs_data
def test_the_published_workload_is_as_described() -> None:
    instance = Workload(10, "relaxed", 2, burst=True).make()
    assert instance.content_hash == Workload(10, "relaxed", 2, burst=True).make().content_hash
    assert instance.content_hash != Workload(10, "relaxed", 3, burst=True).make().content_hash
    assert len(instance.jobs) == 100
    assert [pool.nodes for pool in instance.pools] == [5] * 4
    energy = {site.id: site.energy_price for site in instance.sites}
    assert energy == {"owned": 1.0, "rented": RENT}
    fastest = {round(t, 3) for kind in job_types() for t in kind.seconds.values()}
    for made in instance.jobs:
        shortest = min(float(mode.duration) for mode in made.modes)
        assert shortest in fastest
        assert 1.0 <= ((made.due or 0.0) - made.release) / shortest <= 3.0 + 1e-6
        assert 10.8 <= made.weight <= 54.0
    gaps = np.diff([0.0, *(made.release for made in instance.jobs)])
    assert 0.7 < gaps.mean() / 7500.0 < 1.3
    twice = Workload(10, "relaxed", 2, pace=2.0).make()
    assert twice.jobs[50].release == pytest.approx(instance.jobs[50].release / 2, abs=1e-2)


@needs_data
def test_the_trace_of_philly_keeps_arrivals_and_durations() -> None:
    instance = TraceWorkload("philly", 4, 2).make()
    assert len(instance.jobs) == 100
    with open(DATA / "traces" / "philly_jobs.csv", encoding="utf-8", newline="") as file:
        known = {min(float(row["duration"]), LONGEST_S) for row in csv.DictReader(file)}
    for made in instance.jobs:
        assert any(round(float(mode.duration), 3) in known for mode in made.modes)
        assert 0 <= made.release <= 2 * 86_400
    assert sum(any(mode.share for mode in made.modes) for made in instance.jobs) > 50
    assert set(PRICES) == {pool.gpu for pool in instance.pools}


@needs_data
@pytest.mark.parametrize("k", range(1, len(ITP_FILES) + 1))
def test_the_traces_of_itp_keep_deadlines_and_measured_speeds(k: int) -> None:
    instance = TraceWorkload("itp", 16, k, jobs=40).make()
    rows: dict[float, list[dict[str, str]]] = {}
    with open(DATA / "traces" / "itp" / f"{ITP_FILES[k - 1]}.csv", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            rows.setdefault(float(row["deadline"]) - float(row["submission_time"]), []).append(row)
    for made in instance.jobs:
        hours = {mode.gpus: float(mode.duration) for mode in made.modes}
        # What the trace says its own GPUs took follows from the same tables, roughly.
        ratios = [
            hours[int(row["num_gpu"])] / float(row["duration"])
            for row in rows[round((made.due or 0.0) - made.release, 3)]
            if int(row["num_gpu"]) in hours
        ]
        assert not ratios or any(0.5 < ratio < 2.0 for ratio in ratios)


# --- runs and tables --------------------------------------------------------------------------------------------


@needs_data
def test_a_run_says_what_it_cost() -> None:
    record = rolling.measured(rolling.Run("smoke", "contended", 2, 1, "edf", 8))
    assert record["cost"] == pytest.approx(record["run_cost"] + record["penalty"])
    assert record["alone"] <= record["cost"]
    assert record["replans"] == len(rolling.Run("smoke", "contended", 2, 1, "edf", 8).make().jobs) * 2 - 1


def test_every_set_names_policies_that_there_are() -> None:
    for name, runs in rolling.SETS.items():
        made = list(runs([1, 2]))
        assert len({run.key for run in made}) == len(made)
        assert {run.policy for run in made} <= set(POLICIES)
        assert {run.set for run in made} == {name}


def record_of(policy: str, k: int, cost: float, **fields: Any) -> dict[str, Any]:
    return {
        "set": "reference",
        "workload": "low",
        "nodes": 10,
        "small": 0.0,
        "jobs": 5,
        "policy": policy,
        "elastic": True,
        "k": k,
        "hash": f"h{k}",
        "key": f"{policy}{k}",
        "commit": "abc",
        "cost": cost,
        "run_cost": cost - 1.0,
        "penalty": 1.0,
        "alone": 8.0,
        "late": 1,
        "moves": 2,
        "replan_s": {"median": 0.1, "p99": 0.2, "max": 0.3},
        "pace": 1.0,
        "burst": False,
        "restart_min": 0.0,
        "note": "",
    } | fields


def test_tables_compare_means_over_the_same_instances() -> None:
    records = [record_of("fast", 1, 10.0), record_of("fast", 2, 20.0)]
    records += [record_of("edf", 1, 20.0), record_of("edf", 2, 40.0), record_of("fifo_node", 1, 14.0)]
    lines = tables_of(records, {"h1": 9.0}, "Made.")
    ours = next(line for line in lines if line.startswith("| fast |"))
    # Over bounds of 9 and 8: 1/9 and 12/8.
    assert "| 2 | 15 ± 7 | 14 | 1 | 80.56% | 150.00% | 0.0% |" in ours
    edf = next(line for line in lines if line.startswith("| edf |"))
    assert "| 50.0% |" in edf
    # One run of two instances is no mean of the family, but ours on the same instance is compared with it.
    assert "| 28.6% |" in next(line for line in lines if line.startswith("| fifo_node |"))
    assert any(
        line == "Policies that are better than `fast` by more than 1 % in the mean of a family: none." for line in lines
    )


def test_a_policy_that_is_better_is_named() -> None:
    records = [record_of("fast", 1, 10.2), record_of("edf", 1, 10.0)]
    family = ("reference", "low", 10, 0.0)
    assert worse_than({family: records}) == ["edf by 2.0% under low arrivals, 10 nodes"]
    assert worse_than({family: [record_of("fast", 1, 10.05), records[1]]}) == []
    assert "edf by 2.0%" in "\n".join(tables_of(records, {}, "Made."))
    # Only on some of the instances: not compared.
    assert worse_than({family: [*records, record_of("fast", 2, 5.0)]}) == []


def test_bursting_and_restarts_have_tables_of_their_own() -> None:
    records = [record_of("fast", 1, cost, set="burst", burst=burst) for cost, burst in ((10.0, False), (9.0, True))]
    records += [record_of("fast", 1, 10.0 + m, set="restart", restart_min=m) for m in (0.0, 2.0)]
    text = "\n".join(tables_of(records, {}, "Made."))
    assert "| 1 | 10 ± 0 | 9 ± 0 | 10.0% |" in text
    assert "| low | fast | 10 ± 0 | 25.0% | 2 | 12 ± 0 | 50.0% | 2 |" in text


def test_a_run_that_failed_is_told() -> None:
    text = "\n".join(tables_of([record_of("fast", 1, 10.0), {"cost": None, "key": "x", "note": "exit 1: why"}], {}, ""))
    assert "- x: exit 1: why" in text
