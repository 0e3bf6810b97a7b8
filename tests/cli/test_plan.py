"""`planner plan`: what it prints, what it writes, what it does when it cannot."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from models.errors import NoPlan
from planner.cli import target
from planner.cli.plan import parse_gap, parse_time_limit
from tests.cli.conftest import Run, write_document
from tests.report.samples import instance_document

Install = Callable[[Any], Any]

KEYS = {
    "status",
    "engine",
    "cost",
    "costs",
    "dual_bound",
    "gap",
    "jobs",
    "late_jobs",
    "rejected_jobs",
    "burst_jobs",
    "wall_s",
    "seed",
    "instance_hash",
    "versions",
    "out",
}


def test_json_is_one_document_with_every_key(run: Run, no_solver: Install, instance_file: Path) -> None:
    no_solver({})
    result = run("plan", instance_file, "--json", "--engine", "fast")
    assert result.exit_code == 0
    document = json.loads(result.stdout)
    assert set(document) >= KEYS
    assert [document[key] for key in ("jobs", "late_jobs", "rejected_jobs", "burst_jobs")] == [4, 1, 1, 1]
    assert document["out"] is None
    assert document["engine"] == "fast"
    assert document["notes"] == ["a note"]
    assert result.stderr == ""


def test_text_has_summary_and_chart_and_no_progress_off_a_terminal(
    run: Run, no_solver: Install, instance_file: Path
) -> None:
    calls = no_solver({})
    result = run("plan", instance_file)
    assert result.exit_code == 0
    for part in (
        "26.00 USD",
        "no plan can cost less than 25.00 USD",
        "rental",
        "[alpha",
        "late: gamma",
        "a note",
    ):
        assert part in result.stdout
    assert result.stderr == ""
    assert "\x1b" not in result.stdout
    assert calls[0].on_progress is None
    assert max(map(len, result.stdout.splitlines())) <= 100
    assert not any(line.endswith(" ") for line in result.stdout.splitlines())


def test_options_reach_the_engine(run: Run, no_solver: Install, instance_file: Path) -> None:
    calls = no_solver({})
    run("plan", instance_file, "--time-limit", "2m", "--gap", "1%", "--seed", "7", "--threads", "1", "--quiet")
    limits = calls[0]
    assert (limits.time_limit_s, limits.gap, limits.seed, limits.threads) == (120.0, 0.01, 7, 1)


def test_quiet_is_silent_and_json_speaks_nevertheless(run: Run, no_solver: Install, instance_file: Path) -> None:
    no_solver({})
    assert run("plan", instance_file, "--quiet").output == ""
    assert json.loads(run("plan", instance_file, "--quiet", "--json").stdout)["status"] == "feasible"


def test_out_holds_a_plan_that_show_reads(run: Run, no_solver: Install, instance_file: Path, tmp_path: Path) -> None:
    no_solver({})
    out = tmp_path / "plans" / "tonight"
    result = run("plan", instance_file, "--out", out, "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["out"] == str(out)
    assert json.loads((out / "plan.json").read_text())["cost"] == 26.0
    assert run("show", out).exit_code == 0


def test_interrupted_writes_the_plan_and_says_so(
    run: Run, no_solver: Install, instance_file: Path, tmp_path: Path
) -> None:
    no_solver({"status": "interrupted"})
    result = run("plan", instance_file, "--out", tmp_path / "p", "--json")
    assert result.exit_code == 130
    assert json.loads(result.stdout)["status"] == "interrupted"
    assert json.loads((tmp_path / "p" / "plan.json").read_text())["status"] == "interrupted"
    assert "best plan so far" in result.stderr
    assert "not written" in run("plan", instance_file).stderr


@pytest.mark.parametrize(
    "place", ["file", "below a file", "proc", "full device", "other things", "beside a plan", "loop"]
)
def test_an_unwritable_out_is_told_before_solving(
    run: Run, no_solver: Install, instance_file: Path, tmp_path: Path, place: str
) -> None:
    calls = no_solver({})
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "plan").mkdir()
    for name in ("plan.json", "thesis.txt"):
        (tmp_path / "plan" / name).touch()
    out = {
        "file": tmp_path / "file",
        "below a file": tmp_path / "file" / "plan",
        "proc": Path("/proc/nothing/plan"),
        "full device": Path("/dev/full"),
        "other things": tmp_path,
        "beside a plan": tmp_path / "plan",
        "loop": tmp_path / "loop",
    }[place]
    result = run("plan", instance_file, "--out", out, "--json")
    assert result.exit_code == 3
    assert "cannot write" in result.stderr
    assert json.loads(result.stdout)["status"] == "unwritable"
    assert calls == []


def test_the_current_folder_is_refused_before_solving(
    run: Run, no_solver: Install, instance_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = no_solver({})
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    result = run("plan", instance_file, "--out", ".")
    assert result.exit_code == 3
    assert "it is the current folder" in result.stderr
    assert calls == []
    assert run("plan", instance_file, "--out", "plan").exit_code == 0


def test_a_full_disk_is_told_before_solving(
    run: Run, no_solver: Install, instance_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = no_solver({})

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    result = run("plan", instance_file, "--out", tmp_path / "p")
    assert result.exit_code == 3
    assert "the disk is full" in result.stderr
    assert calls == []
    assert [path.name for path in tmp_path.iterdir()] == [instance_file.name], "nothing of the trial remains"


def test_the_probe_leaves_nothing(run: Run, no_solver: Install, instance_file: Path, tmp_path: Path) -> None:
    no_solver(NoPlan("none"))
    assert run("plan", instance_file, "--out", tmp_path / "a" / "b").exit_code == 5
    assert [path.name for path in tmp_path.iterdir()] == [instance_file.name]


@pytest.mark.parametrize("as_json", [False, True])
def test_a_disk_that_fills_while_solving_does_not_lose_the_plan(
    run: Run,
    no_solver: Install,
    instance_file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    as_json: bool,
) -> None:
    from planner.io import plans

    no_solver({})
    out, write = tmp_path / "p", plans.write_plan_folder

    def full(plan: Any, instance: Any, path: Path) -> None:
        if Path(path) == out:
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        write(plan, instance, path)

    monkeypatch.setattr(plans, "write_plan_folder", full)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(target.tempfile, "tempdir", None)
    result = run("plan", instance_file, "--out", out, *(["--json"] if as_json else []))
    assert result.exit_code == 3
    assert "No space left" in " ".join(result.stderr.split())
    saved = list(tmp_path.glob("planner-*/p/plan.json"))
    assert len(saved) == 1
    assert "".join(str(saved[0].parent).split()) in "".join(result.stderr.split())
    if as_json:
        document = json.loads(result.stdout)
        assert document["out"] is None
        assert str(saved[0].parent) in document["unwritable"]
    else:
        assert "26.00 USD" in result.stdout


def test_hostile_names_command_no_terminal(run: Run, no_solver: Install, tmp_path: Path) -> None:
    names = ("[red]a[/red]", "\xadb", "\u200ec", ":smile:")
    document = instance_document(names)
    document["name"] = "[link=http://x]n[/link]"
    no_solver({})
    path = write_document(tmp_path / "tonight.json", document)
    for args in (
        ("plan", path),
        ("plan", path, "--out", tmp_path / "p"),
        ("show", tmp_path / "p", "--by", "job"),
    ):
        result = run(*args)
        assert result.exit_code == 0, result.output
        assert not set(result.output) & {"\x1b", "\xad", "\u200e"}
        for name in ("[red]a[/red]", "\\xadb", "\\u200ec", ":smile:"):
            assert name in result.stdout
    assert json.loads(run("plan", path, "--json").stdout)["instance"] == "[link=http://x]n[/link]"


@pytest.mark.parametrize(("text", "gap"), [("0.01", 0.01), ("1%", 0.01), (" 0 ", 0.0), ("100%", 1.0), ("1e-4", 1e-4)])
def test_gaps(text: str, gap: float) -> None:
    assert parse_gap(text) == gap


@pytest.mark.parametrize(
    ("text", "limit"),
    [("60", 60.0), ("0", 0.0), ("90s", 90.0), ("10m", 600.0), ("1h30m", 5400.0), ("none", None)],
)
def test_time_limits(text: str, limit: float | None) -> None:
    assert parse_time_limit(text) == limit
