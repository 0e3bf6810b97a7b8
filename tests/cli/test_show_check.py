"""`planner show` and `planner check` on plans as they are written, and on false ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from planner.io.instances import read_instance, write_instance
from planner.io.plans import plan_bytes, write_plan_folder
from tests.cli.conftest import Run, write_document
from tests.models.plans import CASES
from tests.report.samples import instance_document, plan_document, sample_plan, segment


@pytest.fixture
def false_plan(instance_file: Path, tmp_path: Path) -> Path:
    """A plan that cannot be: two hours of two GPUs for nothing, and a bound above its cost."""
    path = tmp_path / "plan.json"
    path.write_bytes(plan_bytes(sample_plan(read_instance(instance_file), costs={}, cost=1.0)))
    return path


@pytest.fixture
def folder(instance_file: Path, tmp_path: Path) -> Path:
    """A plan folder."""
    instance = read_instance(instance_file)
    write_plan_folder(sample_plan(instance), instance, tmp_path / "plan")
    return tmp_path / "plan"


def test_check_lists_violations_and_recomputed_costs(run: Run, instance_file: Path, false_plan: Path) -> None:
    result = run("check", instance_file, false_plan)
    assert result.exit_code == 6
    assert "violation" in result.stdout
    assert "Cost, recomputed" in result.stdout
    assert "total" in result.stdout


def test_check_as_json(run: Run, instance_file: Path, false_plan: Path) -> None:
    result = run("check", instance_file, false_plan, "--json")
    assert result.exit_code == 6
    document = json.loads(result.stdout)
    assert document["status"] == "violated"
    assert {"kind", "where", "amount", "message"} <= set(document["violations"][0])
    assert document["plan_cost"] == 1.0
    assert document["cost"] != 1.0


def test_a_solved_plan_passes_its_check(run: Run, instance_file: Path, tmp_path: Path) -> None:
    assert run("plan", instance_file, "--out", tmp_path / "plan", "--time-limit", "20").exit_code == 0
    for plan in (tmp_path / "plan", tmp_path / "plan" / "plan.json"):
        result = run("check", instance_file, plan)
        assert result.exit_code == 0
        assert "no violations" in result.stdout
        assert "not proven again" in " ".join(result.stdout.split())
    document = json.loads(run("check", instance_file, tmp_path / "plan", "--json").stdout)
    assert document["status"] == "ok"
    assert document["cost"] == pytest.approx(document["plan_cost"])


def test_a_plan_of_jobs_that_change_is_checked_and_shown(run: Run, tmp_path: Path) -> None:
    case = CASES["elastic"]
    write_instance(case.instance, tmp_path / "tonight.yaml")
    write_plan_folder(case.plan, case.instance, tmp_path / "plan")
    assert run("check", tmp_path / "tonight.yaml", tmp_path / "plan").exit_code == 0
    for by in ("pool", "job", "node"):
        said = run("show", tmp_path / "plan", "--by", by, "--instance", tmp_path / "tonight.yaml").stdout
        assert "2 (1 late, 0 rejected, 2 burst to rented nodes, 1 changed as they run)" in said
        assert "after a change" in said
    document = json.loads(plan_bytes(case.plan))
    document["runs"][0]["segments"][1]["places"][0]["gpus"] = [0]
    result = run("check", tmp_path / "tonight.yaml", write_document(tmp_path / "false.json", document), "--json")
    assert result.exit_code == 6
    assert [entry["where"] for entry in json.loads(result.stdout)["violations"]] == ["job grows, segment 2"]


@pytest.mark.parametrize("by", ["pool", "job", "node"])
def test_show_by(run: Run, folder: Path, instance_file: Path, by: str) -> None:
    result = run("show", folder, "--by", by, "--instance", instance_file)
    assert result.exit_code == 0
    for part in (
        "dual bound",
        "25.00 USD",
        "highspy 1.16.0",
        "late: gamma (by 30 min)",
        "rental",
        {"job": "alpha"}.get(by, "burst"),
    ):
        assert part in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 100


def test_show_as_json_has_the_plan_and_its_counts(run: Run, folder: Path, instance_file: Path) -> None:
    document = json.loads(run("show", folder, "--json", "--instance", instance_file).stdout)
    assert document["burst_jobs"] == 1
    assert [entry["job"] for entry in document["runs"]] == ["alpha", "beta", "gamma"]
    assert document["cost"] == 26.0


def test_show_refuses_another_instance(run: Run, folder: Path, tmp_path: Path) -> None:
    other = instance_document()
    other["slot"] = "1h"
    result = run("show", folder, "--instance", write_document(tmp_path / "other.json", other), "--json")
    assert result.exit_code == 3
    assert json.loads(result.stdout)["status"] == "invalid"
    assert "another instance" in result.stderr
    told = json.loads(result.stdout)["faults"][0]["value"]
    hashes = [read_instance(tmp_path / name).content_hash[:12] for name in ("other.json", "tonight.json")]
    assert told == f"sample {hashes[0]}, the plan's {hashes[1]}"


@pytest.mark.parametrize("by", ["pool", "node"])
def test_without_the_instance_no_kind_is_shown(run: Run, folder: Path, by: str) -> None:
    said = run("show", folder, "--by", by).stdout
    assert "unknown" not in said
    assert "kind" not in said
    assert "give --instance" in said


def test_the_smallest_slot_can_be_shown(run: Run, instance_file: Path, tmp_path: Path) -> None:
    document = plan_document(read_instance(instance_file)) | {"slot_s": 1e-6}
    for by in ("pool", "job", "node"):
        assert run("show", write_document(tmp_path / "plan.json", document), "--by", by).exit_code == 0


@pytest.mark.parametrize(
    "changes",
    [
        {"start": "yesterday"},
        {"start": "2026-01-12T18:00:00"},
        {"start": "9999-12-31T23:00:00+00:00"},
        {"slot_s": 0.0},
        {"slot_s": 1e300},
        {"slot_s": 1e-320},
        {"slot_s": 1e-7},
        {"slot_s": 86400.0 * 366, "runs": [[0, 1_000_000]]},
        {"runs": [[-1, 4]]},
        {"runs": [[4, 4]]},
        {"runs": [[0, 10**60]]},
    ],
)
def test_a_plan_whose_times_are_none_is_3(
    run: Run, instance_file: Path, tmp_path: Path, changes: dict[str, Any]
) -> None:
    document = plan_document(read_instance(instance_file)) | changes
    if "runs" in changes:
        document["runs"] = [
            {"job": "alpha", "segments": [segment("owned", *slots)], "completion": "", "tardiness_h": 0}
            for slots in changes["runs"]
        ]
    result = run("show", write_document(tmp_path / "plan.json", document))
    assert result.exit_code == 3
    assert "make the plan again" in result.stderr


def test_a_hostile_plan_commands_no_terminal(run: Run, instance_file: Path, tmp_path: Path) -> None:
    bad = "\x1b[31m\x9b2J[red]"
    document = plan_document(read_instance(instance_file)) | {
        "currency": bad,
        "engine": bad,
        "instance": bad,
        "rejected": [bad],
        "versions": {bad: bad},
        "costs": {bad: 26.0},
        "cached": [{"site": bad, "dataset": bad, "fraction": 1}],
    }
    document["runs"][0] |= {"job": bad}
    document["runs"][0]["segments"][0] |= {"mode": bad, "pool": bad}
    path = write_document(tmp_path / "plan.json", document)
    for by in ("pool", "job", "node"):
        result = run("show", path, "--by", by)
        assert result.exit_code == 0
        assert not set(result.output) & {"\x1b", "\x9b"}
        assert "[red]" in result.stdout
    for flags in ((), ("--json",)):
        result = run("check", instance_file, path, *flags)
        assert result.exit_code == 6
        assert not set(result.output) & {"\x1b", "\x9b"}


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"format": "burstplan-plan/1"}', b"\xff\xfe", b"\x00" * 10])
@pytest.mark.parametrize("command", ["show", "check"])
def test_what_is_no_plan_is_3(run: Run, instance_file: Path, tmp_path: Path, command: str, content: bytes) -> None:
    path = tmp_path / "plan.json"
    path.write_bytes(content)
    result = run(command, *([instance_file] if command == "check" else []), path)
    assert result.exit_code == 3
    assert "plan.json" in "".join(result.stderr.split())
    assert "Traceback" not in result.output
