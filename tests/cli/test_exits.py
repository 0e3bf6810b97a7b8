"""Every exit code is reached, says why, and never with a traceback."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from models.errors import Clash, Defect, Fault, Infeasible, InvalidInput, Locked, NoPlan
from planner.cli.exits import MEANINGS, Exit
from planner.cli.failures import file_of, outcome_of
from tests.cli.conftest import Run, write_document
from tests.report.samples import instance_document

Install = Callable[[Any], Any]


def test_the_codes_are_part_of_the_interface() -> None:
    assert {code.name: int(code) for code in Exit} == {
        "OK": 0,
        "DEFECT": 1,
        "USAGE": 2,
        "INVALID": 3,
        "INFEASIBLE": 4,
        "NO_PLAN": 5,
        "VIOLATED": 6,
        "LOCKED": 75,
        "INTERRUPTED": 130,
    }
    assert set(MEANINGS) == set(Exit)


REASONS = (Clash("deadline of alpha", "2 h later", ("alpha", "[red]beta\x1b[0m"), "later"),)


@pytest.mark.parametrize(
    ("fault", "code", "status", "words"),
    [
        (
            Infeasible("alpha cannot end in time", REASONS),
            4,
            "infeasible",
            ["proven", "2 h later", "[red]beta\\x1b[0m"],
        ),
        (Infeasible("no reason known"), 4, "infeasible", ["no reason known"]),
        (NoPlan("nothing within 60 s"), 5, "no_plan", ["no plan: nothing within 60 s"]),
        (Locked("another run holds x/lock"), 75, "locked", ["locked: another run holds x/lock"]),
        (Defect("bound above plan"), 1, "defect", ["defect: bound above plan", "report"]),
        (ZeroDivisionError("x/0"), 1, "defect", ["defect: ZeroDivisionError: x/0", "report"]),
        (RecursionError(), 1, "defect", ["defect: RecursionError"]),
        (MemoryError(), 1, "defect", ["out of memory"]),
        (
            InvalidInput([Fault("is wrong", ("jobs", 0), "7", "mend it")]),
            3,
            "invalid",
            ["jobs[0]: is wrong (is 7); mend it"],
        ),
        (
            PermissionError(errno.EACCES, "Permission denied", "x.csv"),
            3,
            "invalid",
            ["x.csv", "permission denied"],
        ),
        (KeyboardInterrupt(), 130, "interrupted", ["interrupted: no plan had been found yet"]),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
@pytest.mark.parametrize("as_json", [False, True])
def test_every_failure_has_its_code_and_its_document(
    run: Run,
    no_solver: Install,
    instance_file: Path,
    fault: BaseException,
    code: int,
    status: str,
    words: list[str],
    as_json: bool,
) -> None:
    no_solver(fault)
    result = run("plan", instance_file, *(["--json"] if as_json else []))
    assert result.exit_code == code
    said = " ".join(result.stderr.split())
    for word in words:
        assert word in said
    assert "Traceback" not in result.output
    assert "\x1b" not in result.output
    if as_json:
        assert json.loads(result.stdout)["status"] == status
    else:
        assert result.stdout == ""


def test_debug_adds_the_traceback(
    run: Run, no_solver: Install, instance_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_solver(ZeroDivisionError("x"))
    monkeypatch.setenv("PLANNER_DEBUG", "1")
    assert "Traceback" in run("plan", instance_file).stderr


def test_documents_of_failures_carry_faults_and_reasons() -> None:
    fault = Fault("is wrong", ("jobs", 3, "due"), "x", "mend", "jobs.csv:4")
    assert outcome_of(InvalidInput([fault])).document == {
        "status": "invalid",
        "faults": [
            {
                "where": "jobs.csv:4",
                "path": "jobs[3].due",
                "value": "x",
                "problem": "is wrong",
                "mend": "mend",
            }
        ],
    }
    assert outcome_of(Infeasible("s", REASONS[:1])).document["reasons"] == [
        {"way": "later", "what": "deadline of alpha", "amount": "2 h later", "jobs": ["alpha", "[red]beta\x1b[0m"]}
    ]


def test_all_faults_are_told_by_file(run: Run, tmp_path: Path) -> None:
    document = instance_document()
    document["currency"] = "dollars"
    document["jobs"][0]["due"] = "yesterday"
    document["jobs"][1]["modes"][0]["gpus"] = "many"
    document["jobs"][2]["colour"] = "red"
    result = run("plan", write_document(tmp_path / "bad.json", document))
    assert result.exit_code == 3
    said = " ".join(result.stderr.split())
    assert "4 faults" in said
    for place in ("currency", "jobs[0].due", "gpus", "colour", "yesterday"):
        assert place in said
    assert said.count("bad.json") == 1, "the file is named once, above its faults"


def test_faults_in_two_files_are_grouped(tmp_path: Path, run: Run, no_solver: Install, instance_file: Path) -> None:
    one, two = tmp_path / "jobs.csv", tmp_path / "pools, new.csv"
    one.touch()
    two.touch()
    faults = [
        Fault("a", where=f"{one}:4"),
        Fault("b", where=f"{two}:2:5"),
        Fault("c", where=f"{one}, row 9"),
        Fault("d"),
    ]
    assert [file_of(fault) for fault in faults] == [str(one), str(two), str(one), ""]
    no_solver(InvalidInput(faults))
    said = run("plan", instance_file).stderr
    assert "4 faults in 2 files" in said
    flat = "".join(said.split())
    assert flat.count("jobs.csv") == 1
    assert "4:a" in flat
    assert "row9:c" in flat


@pytest.mark.parametrize(
    "args",
    [
        ("plan",),
        ("frobnicate",),
        ("plan", "x", "--engine", "magic"),
        ("plan", "x", "--gap", "2"),
        ("plan", "x", "--gap", "nan"),
        ("plan", "x", "--gap", "wide"),
        ("plan", "x", "--time-limit", "-1"),
        ("plan", "x", "--time-limit", "soon"),
        ("plan", "x", "--time-limit", "nan"),
        ("plan", "x", "--threads", "0"),
        ("plan", "x", "--threads", "1025"),
        ("plan", "x", "--seed", "-1"),
        ("plan", "x", "--seed", "2147483648"),
        ("show", "x", "--by", "colour"),
        ("generate", "nothing", "--out", "x"),
        ("generate", "mixed"),
        ("generate", "mixed", "--jobs", "-1", "--out", "x"),
        ("import",),
        ("import", "philly", "x"),
    ],
)
def test_wrong_use_is_2(run: Run, args: tuple[str, ...]) -> None:
    result = run(*args)
    assert result.exit_code == 2
    assert result.stderr or result.stdout
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    "args", [("plan", "x", "--seed", "-1", "--json"), ("plan", "x", "--json", "--gap", "2"), ("show", "--json")]
)
def test_wrong_use_is_told_as_json_too(run: Run, args: tuple[str, ...]) -> None:
    result = run(*args)
    assert result.exit_code == 2
    document = json.loads(result.stdout)
    assert document["status"] == "usage"
    assert document["message"]
    assert document["message"] in " ".join(result.stderr.split())


@pytest.mark.parametrize("args", [("plan",), ("show",), ("check", "PLAN"), ("convert", "out.yaml")])
def test_a_file_that_is_not_there_is_3(run: Run, tmp_path: Path, args: tuple[str, ...]) -> None:
    result = run(args[0], tmp_path / "nowhere.yaml", *args[1:])
    assert result.exit_code == 3
    assert "nowhere.yaml" in "".join(result.stderr.split())
    assert "defect" not in result.stderr
