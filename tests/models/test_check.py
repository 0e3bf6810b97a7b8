"""The checker: valid plans pass, and every kind of fault is caught by its name."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import models.check
from models.check import RULES, check
from models.domain import COST_TERMS
from tests.models.changes import Change, changed, kinds, moved, switched, twice, without, without_term
from tests.models.plans import CASES
from tests.models.test_check_elastic import ELASTIC_CORRUPTIONS
from tests.models.test_check_goals import FALSE_CLAIMS


@pytest.mark.parametrize("name", CASES)
def test_a_valid_plan_passes(name: str) -> None:
    case = CASES[name]
    report = check(case.instance, case.plan)
    assert report.violations == ()
    assert report.ok
    assert report.cost == pytest.approx(case.plan.cost, rel=1e-12)
    assert list(report.costs) == list(COST_TERMS)
    assert report.costs == pytest.approx(case.plan.costs, rel=1e-12)


S = "runs.0.segments.0"
# (case, what is changed, every kind that must be reported and no other)
CORRUPTIONS: list[tuple[str, Change, set[str]]] = [
    # The plan as a whole
    ("gang", {"instance_hash": "0" * 64}, {"other-instance"}),
    ("gang", {"currency": "USD"}, {"currency"}),
    ("gang", {"start": "2026-01-12T18:00:00Z"}, {"instant"}),
    ("gang", {"slot_s": 3600.0}, {"slot-length"}),
    ("gang", {"num_slots": 13}, {"num-slots"}),
    ("order", {"num_slots": 10**18}, {"num-slots"}),
    ("empty", {"num_slots": -1}, {"num-slots"}),
    # Names
    ("gang", {"runs.1.job": "nobody"}, {"unknown-job", "job-missing", "term-cost", "total-cost"}),
    ("order", {"rejected": ["third", "nobody"]}, {"unknown-job"}),
    ("choices", {f"{S}.pool": "nowhere"}, {"unknown-pool"}),
    ("choices", {f"{S}.mode": "2xA"}, {"unknown-mode"}),
    ("choices", {f"{S}.pool": "other"}, {"mode-elsewhere"}),
    ("choices", {f"{S}.speed": 0.5}, {"unknown-speed"}),
    ("choices", {"nodes_on.0.pool": "nowhere"}, {"unknown-pool", "node-off", "term-cost", "total-cost"}),
    ("choices", {"nodes_on.0.node": 1}, {"unknown-node", "node-off", "term-cost", "total-cost"}),
    ("choices", {"nodes_on.0.node": -1}, {"unknown-node", "node-off", "term-cost", "total-cost"}),
    ("reading", {"cached.1.site": "nowhere"},
     {"unknown-site", "cached-claim", "term-cost", "total-cost", "bandwidth-short", "link-short"}),
    ("reading", {"cached.0.dataset": "nothing"},
     {"unknown-dataset", "cached-claim", "term-cost", "total-cost", "bandwidth-short"}),
    ("listed", {"bandwidth.0.site": "nowhere"}, {"unknown-site", "bandwidth-short"}),
    # Each job once
    ("gang", {"runs": without(1)}, {"job-missing", "term-cost", "total-cost"}),
    ("order", {"rejected": []}, {"job-missing", "term-cost", "total-cost", "bound-above-cost"}),
    ("choices", {"runs": twice}, {"job-twice", "gpu-overused", "bandwidth-short"}),
    ("order", {"rejected": ["third", "fourth"]}, {"job-twice", "not-rejectable"}),
    ("order", {"rejected": twice}, {"job-twice"}),
    ("gang", {"runs": without(1), "rejected": ["solo"]}, {"not-rejectable", "term-cost", "total-cost"}),
    ("choices", {"runs.0.segments": twice}, {"segments"}),
    ("choices", {"runs.0.segments": []}, {"segments"}),
    # Modes
    ("choices", {f"{S}.pool": "small", "nodes_on.0.pool": "small"}, {"mode-unfit"}),
    ("choices", {f"{S}.pool": "spot", "nodes_on.0.pool": "spot",
                 "costs.node_hours": 0.0, "costs.rental": 1.0}, {"spot-forbidden"}),
    ("choices", {f"{S}.pool": "unlinked", "nodes_on.0.pool": "unlinked",
                 "costs.node_hours": 0.0, "costs.rental": 1.0}, {"data-unreachable"}),
    # Time
    ("choices", {f"{S}.end_slot": 2}, {"duration", "instant"}),
    ("shares", moved("shares", 1, 0, 4), {"duration", "instant"}),
    ("order", moved("order", 0, 0, 2), {"release", "node-off"}),
    ("order", moved("order", 0, 3, 5), {"deadline", "predecessor", "gpu-overused"}),
    ("order", moved("order", 1, 2, 4),
     {"predecessor", "gpu-overused", "tardiness-claim", "term-cost", "total-cost", "bound-above-cost"}),
    ("order", {"runs": without(0)}, {"job-missing", "predecessor-not-run"}),
    ("order", {"num_slots": 5},
     {"beyond-horizon", "interval-range", "node-off", "node-cost", "term-cost", "total-cost",
      "bound-above-cost"}),
    ("listed", moved("listed", 0, 3, 5), {"beyond-horizon", "node-off"}),
    ("listed", moved("listed", 0, -1, 1), {"slot-range"}),
    ("listed", {f"{S}.start_slot": 10**12}, {"slot-range"}),
    ("listed", {f"{S}.end_slot": 10**5000}, {"duration", "instant"}),
    ("listed", {f"{S}.start": "2026-01-12T20:00:00"}, {"instant"}),
    ("listed", {f"{S}.end": "2026-01-12T23:00:00+01:00"}, {"instant"}),
    ("listed", {"runs.0.completion": "tomorrow"}, {"instant"}),
    ("listed", {"nodes_on.0.end": "2026-01-12T22:00:01+01:00"}, {"instant"}),
    ("gang", {"runs.0.tardiness_h": 0.9}, {"tardiness-claim"}),
    ("gang", {"runs.1.tardiness_h": 1.0}, {"tardiness-claim"}),
    ("worths", moved("worths", 1, 2, 3), {"gpu-overused", "term-cost", "total-cost"}),
    ("worths", {"rejected": [], "costs.rejection": 0.0, "cost": 18.25}, {"job-missing"}),
    # Running jobs
    ("running", {f"{S}.kept": False}, {"kept-flag"}),
    ("running", {"runs.1.segments.0.kept": True}, {"kept-flag"}),
    ("running", {"runs.3.segments.0.kept": False}, {"kept-flag"}),
    ("running", moved("running", 0, 1, 4), {"running-moved", "kept-flag", "node-off"}),
    ("running", {"runs.3.segments.0.places.0.node": 0},
     {"running-moved", "kept-flag", "gpu-overused", "node-booting", "spot-forbidden", "term-cost",
      "total-cost"}),
    ("running", {"costs.restart": 0.0}, {"term-cost"}),
    # Places
    ("gang", {f"{S}.places": without(1)}, {"node-count"}),
    ("gang", {f"{S}.places.1.node": 0}, {"node-twice"}),
    ("gang", {f"{S}.places.1.node": 3}, {"unknown-node"}),
    ("gang", {f"{S}.places.1.gpus": [0, 1]}, {"gpu-count"}),
    ("gang", {f"{S}.places.1.gpus": [0, 1, 2, 4]}, {"unknown-gpu"}),
    ("gang", {"runs.1.segments.0.places.0.gpus": [1, 1]}, {"gpu-twice"}),
    ("gang", {"runs.1.segments.0.places.0.gpus": [0, 1, 2]}, {"gpu-count"}),
    ("gang", {f"{S}.slices": 4}, {"slices-claim"}),
    ("shares", {"runs.2.segments.0.slices": 1}, {"slices-claim"}),
    ("shares", {f"{S}.places.0.gpus": [0]}, {"gpu-overused", "gpu-memory"}),
    ("shares", moved("shares", 3, 1, 3), {"gpu-memory"}),
    ("shares", moved("shares", 1, 3, 8), {"cpu-cores", "ram"}),
    ("gang", moved("gang", 1, 5, 6), {"gpu-overused", "cpu-cores"}),
    # Nodes that are on
    ("gang", {"nodes_on": without(1)}, {"node-off", "term-cost", "total-cost", "bound-above-cost"}),
    ("gang", switched("gang", 1, 1, 6), {"node-booting"}),
    ("gang", switched("gang", 1, 0, 5), {"node-off"}),
    ("running", switched("running", 0, 1, 3), {"node-booting", "node-cost", "term-cost", "total-cost"}),
    ("gang", switched("gang", 1, 6, 6),
     {"interval-range", "node-off", "term-cost", "total-cost", "bound-above-cost"}),
    ("gang", switched("gang", 1, -1, 6), {"interval-range"}),
    ("gang", {"nodes_on.1.end_slot": 10**12},
     {"interval-range", "instant", "node-cost", "term-cost", "total-cost"}),
    ("choices", {"nodes_on": twice}, {"interval-overlap", "term-cost", "total-cost"}),
    ("gang", {"nodes_on.1.node": 0}, {"interval-overlap", "node-off"}),
    ("gang", {"nodes_on.1.node": 0, **switched("gang", 1, 7, 12)}, {"interval-touches", "node-off"}),
    ("order", {**switched("order", 1, 3, 6), "nodes_on.1.cost": 3.0, "costs.node_hours": 7.0, "cost": 25.0,
               "status": "feasible", "gap": 1 / 25}, {"node-unavailable"}),
    # Storage
    ("reading", {"cached": twice}, {"cached-twice"}),
    ("reading", {"cached.0.fraction": 0.6, f"{S}.cached": 0.6},
     {"cache-level", "term-cost", "total-cost"}),
    ("reading", {"cached.0.fraction": 0.75, f"{S}.cached": 0.75},
     {"cache-capacity", "term-cost", "total-cost"}),
    ("reading", {"cached.0.fraction": 1.5},
     {"cache-fraction", "cached-claim", "bandwidth-short", "term-cost", "total-cost"}),
    ("reading", {"cached": lambda cached: [*cached, {"site": "far", "dataset": "text", "fraction": 1.0}]},
     {"cache-unreachable"}),
    ("reading", {f"{S}.cached": 0.25}, {"cached-claim", "bandwidth-short"}),
    ("reading", {f"{S}.cached": 0.0}, {"bandwidth-short"}),
    ("gang", {f"{S}.cached": 1.0}, {"cached-claim"}),
    ("reading", {"bandwidth.0.mb_s": 199.0}, {"bandwidth-short", "term-cost", "total-cost"}),
    ("reading", {"bandwidth": []}, {"bandwidth-short", "term-cost", "total-cost"}),
    ("reading", {"bandwidth": twice}, {"bandwidth-twice"}),
    ("listed", {"bandwidth.0.mb_s": -50.0}, {"bandwidth-amount", "bandwidth-short"}),
    ("reading", {"bandwidth.0.mb_s": 1001.0}, {"bandwidth-cap", "term-cost", "total-cost"}),
    ("reading", {"bandwidth.1.mb_s": 301.0}, {"bandwidth-cap", "term-cost", "total-cost"}),
    ("reading", {"runs.3.segments.0.cached": 0.0, "bandwidth.1.mb_s": 140.0},
     {"link-short", "term-cost", "total-cost"}),
    # What would do if caches served at any speed: 50 + 200 at the lab, 75 in the sky.
    ("serving", {"bandwidth.0.mb_s": 250.0, "costs.bandwidth": 29.0, "cost": 44.4}, {"bandwidth-short"}),
    ("serving", {"bandwidth.1.mb_s": 75.0}, {"bandwidth-short", "term-cost", "total-cost"}),
    ("serving", {"runs.1.segments.0.cached": 0.5}, {"cache-speed"}),
    ("serving", {"runs.2.segments.0.cached": 0.0},
     {"bandwidth-short", "link-short", "term-cost", "total-cost"}),
    ("serving", {"bandwidth.0.mb_s": 401.0}, {"bandwidth-cap", "term-cost", "total-cost"}),
    ("serving", {"bandwidth.1.mb_s": 901.0}, {"bandwidth-cap", "term-cost", "total-cost"}),
    # The power law less a part that its chords may miss.
    ("serving", {"costs.bandwidth": 29.95, "cost": 45.35}, {"term-cost", "total-cost"}),
    # Money and certificate
    ("gang", {"nodes_on.0.cost": 42.0}, {"node-cost"}),
    ("gang", {"costs.energy": 0.41}, {"term-cost"}),
    ("gang", {"costs": without_term}, {"term-missing"}),
    ("gang", {"costs.tips": 1.0}, {"term-unknown"}),
    ("gang", {"cost": 102.0}, {"total-cost", "gap-claim"}),
    ("gang", {"dual_bound": 103.0, "gap": (102.4 - 103.0) / 102.4}, {"bound-above-cost"}),
    ("gang", {"gap": 0.09}, {"gap-claim"}),
    ("gang", {"gap": None}, {"gap-claim"}),
    ("gang", {"dual_bound": None}, {"gap-claim"}),
    ("gang", {"status": "optimal"}, {"not-optimal"}),
    ("order", {"dual_bound": None, "gap": None}, {"optimal-without-bound"}),
    ("empty", {"dual_bound": -1.0}, {"gap-claim", "not-optimal"}),
    ("gang", {"packing_cost": -1e308}, {"packing-cost"}),
    ("gang", {"packing_cost": -0.01}, {"packing-cost"}),
    ("gang", {"packing_cost": 102.5}, {"packing-cost"}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "changes", "expected"), CORRUPTIONS)
def test_a_corrupt_plan_is_caught(name: str, changes: Change, expected: set[str]) -> None:
    case = CASES[name]
    report = check(case.instance, changed(case.plan, changes))
    assert kinds(report) == expected
    assert not report.ok


def test_every_kind_in_the_code_is_tested() -> None:
    tested = set().union(*(expected for _, _, expected in (*CORRUPTIONS, *ELASTIC_CORRUPTIONS)))
    assert set(_kinds_in_code()) == tested | {kind for _, kind in FALSE_CLAIMS}


def _kinds_in_code() -> Iterator[str]:
    files = set(Path(models.check.__file__).parent.glob("*.py"))
    # What a replay of a simulation finds is no kind of a plan's violations: not of these files.
    for file in sorted(files):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id in ("violation", "_wrong", "_fit")
                and isinstance(node.args[0], ast.Constant)
            ):
                yield str(node.args[0].value)


def test_every_rule_says_what_it_holds() -> None:
    assert all(rule.__doc__ and len(rule.__doc__) > 20 for rule in RULES)
    assert len(set(RULES)) == len(RULES)
