"""`planner simulate`: what it prints, what it writes, and how it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from planner.cli.exits import Exit
from planner.simulation.registry import DESCRIPTIONS, POLICIES
from tests.cli.conftest import Run, write_document
from tests.documents import HOUR, document
from tests.engines.samples import mode


@pytest.fixture
def week(tmp_path: Path) -> Path:
    """Three jobs, one of them late."""
    jobs = [
        {"modes": [mode(1, 1), mode(0.6, 2)]},
        {"modes": [mode(2, 2)], "release": HOUR / 2, "due": HOUR, "weight": 2.0},
        {"modes": [mode(1, 1, "rent")], "release": HOUR, "restart_cost": 0.5},
    ]
    return write_document(tmp_path / "week.json", document(jobs, horizon="auto"))


def test_a_simulation_is_shown(run: Run, week: Path) -> None:
    """Cost by term, who was late, how long decisions took."""
    result = run("simulate", week, "--policy", "edf")
    assert result.exit_code == 0
    for text in ("policy edf", "3 (1 late, 0 rejected)", "node_hours", "tardiness", "decisions"):
        assert text in result.stdout
    assert not result.stderr


def test_machines_get_json_and_the_trace_a_file(run: Run, week: Path, tmp_path: Path) -> None:
    """With all that is promised; the same seed writes the same bytes."""
    texts = []
    for k in range(2):
        out = tmp_path / f"trace{k}.json"
        options = ("--duration-error", 0.3, "--restart-cost", 2, "--mtbf", 5, "--seed", 7)
        result = run("simulate", week, "--policy", "pressure", *options, "--out", out, "--json")
        assert result.exit_code == 0
        document = json.loads(result.stdout)
        assert document["policy"] == "pressure"
        assert document["jobs"] == 3
        assert document["cost"] == pytest.approx(sum(document["costs"].values()))
        assert {"late_jobs", "replans"} <= set(document)
        assert set(document["replan_s"]) == {"median", "p99", "max"}
        texts.append(out.read_bytes())
        assert json.loads(texts[-1])["format"] == "burstplan-trace/1"
    assert texts[0] == texts[1]


def test_a_policy_that_is_none_is_named_with_those_that_are(run: Run, week: Path) -> None:
    """Wrong use, exit 2."""
    result = run("simulate", week, "--policy", "best")
    assert result.exit_code == Exit.USAGE
    assert all(name in result.stderr.replace("\n", " ") for name in ("'best'", "fifo"))
    assert set(POLICIES) == set(DESCRIPTIONS)


def test_what_cannot_run_is_told(run: Run, tmp_path: Path) -> None:
    """A job that only fits rented nodes, without them, and one that reads more than its site sells: no plan."""
    stuck = write_document(tmp_path / "stuck.json", document([{"modes": [mode(1, 1, "rent")]}], horizon="auto"))
    result = run("simulate", stuck, "--policy", "fifo", "--no-burst")
    assert result.exit_code == Exit.NO_PLAN
    assert "j0" in result.stderr
    jobs = [{"modes": [mode(1, 1, read_rate=10.0)], "dataset": "data"}]
    limited = document(jobs, horizon="auto", sites__0__storage={"bandwidth_cap": 5.0})
    result = run("simulate", write_document(tmp_path / "limited.json", limited), "--policy", "fifo")
    assert result.exit_code == Exit.NO_PLAN
    assert "j0" in result.stderr
