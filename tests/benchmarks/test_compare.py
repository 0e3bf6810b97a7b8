"""The comparison: lines are whole, bests only get better, tables and charts say what was recorded."""

from __future__ import annotations

import json
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from benchmarks import trajectory
from benchmarks.best_known import PATH, BestKnown, Contradiction
from benchmarks.common import append_line, read_lines, use_of
from benchmarks.compare import main
from benchmarks.running import GAPS, Job, empty, first_within, measure, record_of, run_apart, thinned
from benchmarks.sets import SETS, Case
from benchmarks.tables import tables_of
from planner.engines.base import Limits, Progress
from planner.generate import FAMILIES
from planner.solve import solve

ROOT = Path(__file__).resolve().parent.parent.parent
CASE = Case("busy", 5, 12, 0.5, False, 1)


def record(
    solver: str = "fast", cost: float | None = 110.0, bound: float | None = 100.0, **more: Any
) -> dict[str, Any]:
    """A recorded run."""
    gap = None if cost is None or bound is None else (cost - bound) / cost
    found = empty("") | {"cost": cost, "bound": bound, "gap": gap, "wall_s": 2.0, "utilisation": 0.5}
    found |= {"burst_share": 0.1, "late_share": 0.2, "trajectory": [[0.5, 120.0, 90.0], [2.0, cost, bound]]}
    found |= {"family": "busy", "jobs": 5, "nodes": 12, "load": 0.5, "storage": False, "seed": 1, "time_limit_s": 5.0}
    return found | {"instance": "a", "hash": "h", "solver": solver} | more


# --- lines and bests -------------------------------------------------------------------------------------


def test_a_half_written_line_goes(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    append_line(path, {"a": 1})
    with open(path, "ab") as file:
        file.write(b'{"a": 2, "b"')
    assert list(read_lines(path)) == [{"a": 1}]
    append_line(path, {"a": 3})
    assert list(read_lines(path)) == [{"a": 1}, {"a": 3}]
    assert path.read_bytes().endswith(b"\n")


def test_bests_only_get_better_and_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "best.csv"
    known = BestKnown(path)
    assert known.learn("a, b", "h1", 10.0, None, "edf, 5 s", "c1")
    assert not known.learn("a, b", "h1", 11.0, None, "weight, 5 s", "c2")
    assert known.learn("a, b", "h1", 12.0, 8.0, "cpsat, 5 s", "c2")
    assert not known.learn("a, b", "h1", None, 7.0, "highs_alone, 5 s", "c3")
    again = BestKnown(path).of("a, b", "h1")
    assert (again.cost, again.cost_by, again.bound, again.bound_by) == (10.0, "edf, 5 s", 8.0, "cpsat, 5 s")
    assert again.commit == "c2"


def test_another_instance_of_the_same_name_is_refused(tmp_path: Path) -> None:
    known = BestKnown(tmp_path / "best.csv")
    known.learn("a", "h1", 10.0, 8.0, "x", "c")
    with pytest.raises(Contradiction, match="has changed"):
        known.learn("a", "h2", 9.0, None, "x", "c")


def test_a_bound_above_a_plan_is_refused(tmp_path: Path) -> None:
    known = BestKnown(tmp_path / "best.csv")
    known.learn("a", "h1", 10.0, 8.0, "x", "c")
    with pytest.raises(Contradiction, match="above a plan"):
        known.learn("a", "h1", None, 10.1, "y", "c")
    with pytest.raises(Contradiction, match="above a plan"):
        known.learn("a", "h1", 7.9, None, "y", "c")
    assert known.of("a", "h1").cost == 10.0
    known.learn("a", "h1", None, 10.0, "z", "c")


def test_the_kept_table_can_be_read_and_its_instances_made() -> None:
    known = BestKnown(PATH)
    assert PATH.read_text(encoding="utf-8").startswith("instance,hash,cost,cost_by,bound,bound_by,commit\n")
    for row in known.rows.values():
        assert row.cost is not None or row.bound is not None
        assert row.instance.split("-")[0] in FAMILIES


# --- runs ------------------------------------------------------------------------------------------------


def test_times_to_gaps_are_those_of_the_trajectory() -> None:
    points = [(0.1, None, 90.0), (0.5, 100.0, 90.0), (1.0, 95.0, 94.0), (2.0, 94.0, 94.0)]
    assert first_within(points, 0.05) == 1.0
    assert first_within(points, 0.001) == 2.0
    assert first_within(points, 0.2) == 0.5
    assert first_within(points, 0.01, bound=80.0) is None
    assert first_within([(0.1, 5.0, None)], 0.5) is None
    assert len(thinned([(float(k), float(-k), None) for k in range(5000)])) <= 401


def test_a_run_says_what_the_plan_does() -> None:
    instance = CASE.make()
    solution = solve(instance, "fast", Limits(time_limit_s=2.0))
    plan = solution.plan
    found = record_of(instance, plan, plan.dual_bound, 1.0, [Progress("x", 0.5, plan.cost, None)], "")
    json.dumps(found, allow_nan=False)
    use = use_of(instance, plan)
    assert 0 < use.utilisation <= 1
    assert 0 <= use.burst_share <= 1
    assert found["late_share"] == sum(run.tardiness_h > 0 for run in plan.runs) / 5
    assert len(found["proven_s"]) == len(GAPS)


@pytest.mark.parametrize("solver", ["fast", "edf"])
def test_a_solver_is_measured(solver: str) -> None:
    found = measure(Job(CASE, solver, 2.0, 1, 1e-4))
    assert found["cost"] > 0
    assert found["wall_s"] > 0
    assert found["slots"] > 0


def test_a_run_that_breaks_leaves_a_record() -> None:
    found = run_apart(Job(Case("busy", 2, 12, 99.0, False, 1), "edf", 1.0, 1, 1e-4))
    assert found["cost"] is None
    assert found["note"].startswith("exit 1")


def test_the_smoke_size_runs() -> None:
    command = [sys.executable, "-m", "benchmarks.compare", "--smoke"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    rows = [line.split(" | ")[0].strip("| ") for line in done.stdout.splitlines() if line.startswith("| ")]
    assert [row for row in rows if row != "solver"] == ["fast", "shell", "cpsat", "pressure"] * 2
    assert "no plan" not in done.stdout


def test_a_recorded_run_is_not_made_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    monkey = pytest.MonkeyPatch()
    monkey.setattr("benchmarks.compare.BestKnown", lambda: BestKnown(tmp_path / "best.csv"))
    command = ["busy", "--sizes", "4x12", "--loads", "0.4", "--storage", "off", "--seeds", "1", "--time-limit", "1"]
    command += ["--solvers", "edf,pressure", "--results", str(tmp_path)]
    try:
        assert main(command) == 0
        assert main(command) == 0
        assert main([*command, "--table"]) == 0
    finally:
        monkey.undo()
    assert len(list(read_lines(tmp_path / "compare-busy.jsonl"))) == 2
    text = (tmp_path / "compare-busy.md").read_text(encoding="utf-8")
    assert "`python -m benchmarks.compare busy" in text
    assert "Machine: " in text
    assert "Commit " in text
    assert len(BestKnown(tmp_path / "best.csv").rows) == 1
    assert "## busy, 4 jobs x 12 nodes" in capsys.readouterr().out


def test_sets_name_families() -> None:
    assert {found.family for found in SETS.values()} <= set(FAMILIES)
    cases = list(SETS["headline"].cases((1, 2)))
    assert len(cases) == 3 * 2 * 2
    assert {(case.jobs, case.nodes) for case in cases} == {(50, 300)}


# --- tables and charts -----------------------------------------------------------------------------------


def test_tables_have_medians_and_worst() -> None:
    records = [
        record(seed=1, hash="h1", cost=110.0, proven_s=[1.0, None, None, None]),
        record(seed=2, hash="h2", cost=125.0),
        record("edf", seed=1, hash="h1", cost=121.0, bound=None),
        record("edf", seed=2, hash="h2", cost=None, bound=None, trajectory=[]),
    ]
    longer = tables_of([*records, record(seed=1, hash="h1", cost=105.0) | {"time_limit_s": 60.0}], {})
    assert [line.rsplit(", ", 1)[1] for line in longer if line.startswith("## ")] == ["5 s", "60 s"]
    lines = tables_of(records, {"h2": 120.0})
    fast = next(line for line in lines if line.startswith("| fast"))
    assert "2 of 2" in fast
    assert "| 14.55% | 20.00% |" in fast  # own gaps: 9.09 % and 20 %
    assert "| 6.55% | 9.09% |" in fast  # over the best bounds: 9.09 % and 4 %
    edf = next(line for line in lines if line.startswith("| edf"))
    assert "| 1 of 2 | 2.00 | 10.00% | 10.00% | - | - |" in edf
    assert "1.00 (1/2)" in next(line for line in reversed(lines) if line.startswith("| fast"))


def test_a_chart_is_sound_whatever_the_names(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    append_line(path, record(instance="<a> & b") | {"solver": "x<y"})
    append_line(path, record("edf", cost=None, bound=None, instance="<a> & b"))
    assert trajectory.main([str(path), "--out", str(tmp_path / "chart.svg")]) == 0
    root = ET.fromstring((tmp_path / "chart.svg").read_text(encoding="utf-8"))
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "<a> & b" in texts
    assert "x<y" in texts
    assert len(list(root.iter("{http://www.w3.org/2000/svg}circle"))) == 1


def test_a_chart_of_nothing_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert trajectory.main([str(tmp_path / "none.jsonl")]) == 1
    assert "no such run" in capsys.readouterr().err
