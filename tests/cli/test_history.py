"""`planner history`: the runs as a table, one in detail, one job through all of them, as text and as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from planner.cli.exits import Exit
from planner.cli.history import Outcome, parse_since
from planner.history.records import MEANINGS, JobEntry, RunRecord, Status
from planner.history.store import History
from planner.nightly.folder import Home
from tests.cli.conftest import Run
from tests.nightly.nights import Cluster, hours


def record(number: int, **fields: object) -> RunRecord:
    """A run."""
    made = {
        "number": number,
        "key": f"key{number}",
        "started": f"2026-01-{number:02}T17:00:00+00:00",
        "status": Status.PLANNED,
        "instance": "lab",
        "plan_start": f"2026-01-{number:02}T18:00:00+01:00",
        "currency": "USD",
        "cost": 100.0 + number,
        "dual_bound": 100.0,
        "gap": number / (100.0 + number),
        "jobs": 20,
        "late": 1,
        "rejected": 0,
        "changed": number,
        "folder": f"2026-01-{number:02}",
    }
    return RunRecord.model_validate(made | fields)


FAILED = {"cost": None, "gap": None, "folder": None, "jobs": None, "late": None, "rejected": None, "changed": None}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Thirty runs: the fourth failed, the fifth was cut off, the folder of the first is gone."""
    with History.open(Home(tmp_path).history) as history:
        for number in range(1, 31):
            fields: dict[str, object] = {}
            if number == 4:
                fields = FAILED | {"status": Status.INVALID, "reason": "now.yaml line 3: is wrong"}
            elif number == 5:
                fields = FAILED | {"status": Status.CRASHED, "reason": "cut off"}
            elif number == 1:
                fields = {"is_gone": True}
            entry = JobEntry(
                job="bert-17",
                state="planned",
                mode="2xA100",
                pool="dc1",
                start=hours(number),
                completion=hours(number + 2),
                changes=("later",) * (number % 2),
                reasons=("its due date is none, was 5",) * (number % 2),
            )
            history.finish(record(number, **fields), [] if number in (4, 5) else [entry])
    return tmp_path


def lines(run: Run, *args: object) -> list[str]:
    """Lines of the output of a run without a fault."""
    result = run("history", *args)
    assert (result.exit_code, result.stderr) == (0, "")
    return result.stdout.splitlines()


def numbers(run: Run, *args: object) -> list[int]:
    """Numbers of the runs that are listed."""
    return [one["number"] for one in json.loads("\n".join(lines(run, *args, "--json")))["runs"]]


def test_the_runs_are_a_table_with_the_trend_of_their_cost(run: Run, home: Path) -> None:
    shown = lines(run, home, "--last", 6)
    assert [line.split()[:4] for line in shown if "planned" in line][:2] == [
        ["30", "planned", "2026-01-30", "130.00"],
        ["29", "planned", "2026-01-29", "129.00"],
    ]
    assert shown[-1] == "cost of 6 plans in USD  ▁▂▄▅▇█  least 125.00, mean 127.50, most 130.00; last +0.8 %"
    text = "\n".join(lines(run, home, "--since", "2026-01-01"))
    assert "invalid" in text
    assert "run 4: now.yaml line 3: is wrong" in text
    assert "(gone)" in text


def test_runs_are_chosen(run: Run, home: Path) -> None:
    assert numbers(run, home) == list(range(30, 10, -1))
    assert numbers(run, home, "--last", 3) == [30, 29, 28]
    assert numbers(run, home, "--status", "invalid", "--status", "crashed") == [5, 4]
    assert numbers(run, home, "--since", "2026-01-28T17:00:00+00:00") == [30, 29, 28]
    assert numbers(run, home, "--since", "2026-01-28T17:00:01+00:00") == [30, 29]
    assert numbers(run, home, "--status", "planned", "--since", "2026-01-20", "--last", 1) == [30]
    assert "no such run" in "\n".join(lines(run, home, "--status", "kept"))


def test_one_run_is_shown_with_what_it_changed(run: Run, home: Path) -> None:
    text = "\n".join(lines(run, home, "--run", 7))
    for words in ("107.00 USD, at least 100.00", "bert-17: later", "2xA100 on dc1", "because  its due date is none"):
        assert words in text
    document = json.loads("\n".join(lines(run, home, "--run", 7, "--json")))
    assert document["run"]["number"] == 7
    assert document["jobs"][0]["reasons"] == ["its due date is none, was 5"]
    assert "now.yaml line 3: is wrong" in "\n".join(lines(run, home, "--run", 4))


def test_one_job_is_shown_through_all_runs(run: Run, home: Path) -> None:
    shown = [line for line in lines(run, home, "--job", "bert-17", "--last", 3) if "2xA100" in line]
    assert [line.split()[0] for line in shown] == ["30", "29", "28"]
    document = json.loads("\n".join(lines(run, home, "--job", "bert-17", "--json")))
    assert len(document["runs"]) == 28


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--run", 99), "the latest is 30"),
        (("--job", "nobody"), "no run that planned such a job"),
    ],
)
def test_what_is_not_there_is_told(run: Run, home: Path, args: tuple[object, ...], words: str) -> None:
    result = run("history", home, *args)
    assert result.exit_code == Exit.INVALID
    assert words in " ".join(result.stderr.split())


@pytest.mark.parametrize(
    "args",
    [("--run", "1", "--job", "a"), ("--run", "1", "--last", "2"), ("--job", "a", "--since", "2026-01-01"),
     ("--since", "soon"), ("--status", "fine"), ("--last", "0")],
)  # fmt: skip
def test_wrong_use_is_2(run: Run, home: Path, args: tuple[str, ...]) -> None:
    assert run("history", home, *args).exit_code == Exit.USAGE


def test_a_folder_without_a_history_is_told(run: Run, tmp_path: Path) -> None:
    result = run("history", tmp_path)
    assert result.exit_code == Exit.INVALID
    assert "does not exist" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_nights_are_in_it(run: Run, tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    cluster.run()
    cluster.run()
    assert numbers(run, cluster.home.path) == [2, 1]
    assert "j0" in run("history", cluster.home.path, "--job", "j0").stdout


def test_names_do_not_command_the_terminal(run: Run, tmp_path: Path) -> None:
    evil = "a\x1b[31mb\u202e[red]"
    with History.open(Home(tmp_path).history) as history:
        fields = {"folder": evil, "currency": evil, "instance": evil, "reason": evil, "started": evil, "engine": evil}
        entry = JobEntry(job=evil, state="planned", mode=evil, pool=evil, changes=(evil,), reasons=(evil,))
        history.finish(record(1, **fields), [entry])
    for args in ((), ("--run", 1), ("--job", evil)):
        text = "\n".join(lines(run, tmp_path, *args))
        assert "\x1b" not in text
        assert "\u202e" not in text
        assert "\\x1b[31m" in text.replace("\n", "").replace(" ", "")


def test_the_options_name_every_status() -> None:
    assert [one.value for one in Outcome] == [one.value for one in Status] == [one.value for one in MEANINGS]


def test_dates_are_instants_in_utc() -> None:
    assert parse_since("2026-01-12T18:00:00+01:00") == "2026-01-12T17:00:00+00:00"
    assert parse_since(None) is None
