"""`planner risk`: what it prints, what it writes, how it refuses, and how it is stopped."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from models.domain import Instance, Plan
from planner.cli.exits import Exit
from planner.io.plans import write_plan_folder
from planner.risk.parallel import Batch, Workers
from tests.cli.conftest import Run, write_document
from tests.cli.terminal import environment, on_terminal, piped
from tests.documents import HOUR
from tests.engines.samples import mode
from tests.risk.cases import planned

ODD = "[bold red]=1+1"


def night() -> tuple[Instance, Plan]:
    """Three jobs in a row with an odd name among them, and one that need not be in time."""
    jobs: list[dict[str, Any]] = [
        {"modes": [mode(2)]},
        {"id": ODD, "modes": [mode(2)], "due": 4 * HOUR, "weight": 6.0},
        {"modes": [mode(1, 1, "rent")], "after": ["j0"], "deadline": 4 * HOUR},
    ]
    runs: Any = [[("own1", 0, 2, {0: [0]})], [("own1", 2, 4, {0: [0]})], [("rent1", 2, 3, {0: [1]})]]
    return planned(jobs, runs, {("own", 0): [(0, 4)], ("rent", 0): [(2, 3)]}, name="night")


def write(folder: Path, case: tuple[Instance, Plan]) -> tuple[Path, Path]:
    """The instance in a file and the plan in a folder."""
    instance, plan = case
    write_plan_folder(plan, instance, folder / "plan")
    return write_document(folder / "night.json", instance.model_dump(mode="json")), folder / "plan"


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """Of that night."""
    return write(tmp_path, night())


def test_the_risk_of_a_plan_is_shown(run: Run, files: tuple[Path, Path]) -> None:
    """Its cost by term, chances with their intervals, whom to give slack; names are no markup."""
    options = ("--replays", 60, "--duration-error", 0.4, "--mtbf", 50, "--restart-cost", 5, "--seed", 3)
    result = run("risk", *files, *options, "--workers", 1)
    assert result.exit_code == 0
    assert not result.stderr
    for text in (
        "risk of     night, planned at 8.00 USD",
        "replays     60, seed 3\n",
        "world       duration error 0.4, a node fails every 2 d 2 h for 4 h, restarts take 5 min\n",
        "undisturbed",
        "95 % interval",
        "Which job to give slack",
        "1 job without a due date left out",
        ODD,
    ):
        assert text in result.stdout, text


def test_machines_get_the_same_bytes_whatever_the_number_of_workers(
    run: Run, files: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the document and in the file, which has every replay."""
    import planner.risk.study

    monkeypatch.setattr(planner.risk.study, "WORTHWHILE_S", 0.0)
    texts = []
    for workers in (1, 2):
        out = tmp_path / f"risk{workers}.json"
        options = ("--replays", 40, "--duration-error", 0.4, "--mtbf", 20, "--seed", 7, "--workers", workers)
        result = run("risk", *files, *options, "--out", out, "--json")
        assert result.exit_code == 0
        document = json.loads(result.stdout)
        assert document.pop("out") == str(out)
        whole = json.loads(out.read_text())
        rows = whole.pop("by_replay")
        assert whole == document
        assert len(rows) == document["replays"] == 40
        assert sum(row["cost"] for row in rows) / 40 == pytest.approx(document["cost"]["mean"])
        texts.append(out.read_bytes())
    assert texts[0] == texts[1]


def test_without_chance_nothing_is_late_and_no_slack_is_missed(run: Run, files: tuple[Path, Path]) -> None:
    """And it says so."""
    result = run("risk", *files, "--replays", 5, "--duration-error", 0)
    assert result.exit_code == 0
    assert "all jobs in 100.00 % (56.6 to 100.0 %)" in result.stdout
    assert "more slack for one saves nothing" in result.stdout


def test_all_faults_are_told_at_once(run: Run, files: tuple[Path, Path], tmp_path: Path) -> None:
    """Of the instance and of the plan; another instance's plan. Always exit 3."""
    wrong = write_document(tmp_path / "wrong.json", {"currency": "USD"})
    torn = tmp_path / "torn.json"
    torn.write_text("{")
    result = run("risk", wrong, torn)
    assert result.exit_code == Exit.INVALID
    assert "wrong.json" in result.stderr
    assert "torn.json" in result.stderr
    other = json.loads(files[0].read_text()) | {"slot": 1800.0}
    result = run("risk", write_document(tmp_path / "other.json", other), files[1])
    assert result.exit_code == Exit.INVALID
    assert "is another instance than that of the plan" in result.stderr
    assert run("risk", tmp_path / "none.yaml", files[1]).exit_code == Exit.INVALID
    assert run("risk", *files, "--replays", 0).exit_code == Exit.USAGE
    for option in ("--mtbf", "--repair", "--duration-error", "--restart-cost", "--slack"):
        for value in ("nan", "inf"):
            assert run("risk", *files, option, value).exit_code == Exit.USAGE, (option, value)


def test_a_job_that_never_gets_to_work_is_told(run: Run, files: tuple[Path, Path]) -> None:
    """A failure every three minutes, and an hour to start again: no end, so exit 5, with the way out; not a loop."""
    for workers in (1, 2):
        options = ("--mtbf", 0.05, "--repair", 0.1, "--restart-cost", 60, "--replays", 4, "--workers", workers)
        result = run("risk", *files, *options)
        assert result.exit_code == Exit.NO_PLAN
        assert "is stopped more often than it can start again" in result.stderr


def test_a_worker_that_dies_is_told_with_what_there_is(
    run: Run, files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit 1, and the results of the replays that came before; without any, exit 5."""
    whole = Workers.run
    left = [7]

    def run_until_death(self: Workers, tasks: Any, *rest: Any) -> Batch:
        return Batch(whole(self, tasks[: left[0]], *rest).replays, "worker died")

    monkeypatch.setattr(Workers, "run", run_until_death)
    result = run("risk", *files, "--replays", 20, "--json")
    assert result.exit_code == Exit.DEFECT
    assert json.loads(result.stdout)["status"] == "incomplete"
    assert "a worker process died" in result.stderr
    assert "this is what 7 of 20 replays say; try fewer --workers" in result.stderr
    left[0] = 0
    result = run("risk", *files, "--replays", 20)
    assert result.exit_code == Exit.NO_PLAN
    assert "died before the first replay was done" in result.stderr


def test_a_plan_of_nothing_has_no_risk(run: Run, tmp_path: Path) -> None:
    """No jobs: nothing is late, and nothing costs anything."""
    result = run("risk", *write(tmp_path, planned([], [], {})), "--replays", 3, "--json")
    assert result.exit_code == 0, result.stderr
    document = json.loads(result.stdout)
    assert (document["cost"]["mean"], document["jobs"], document["all_in_time"]["share"]) == (0.0, [], 1.0)
    assert run("risk", *write(tmp_path, planned([], [], {})), "--replays", 1).exit_code == 0


def test_a_plan_that_fails_its_check_is_not_replayed(run: Run, tmp_path: Path) -> None:
    """Exit 6, with the violations; for machines, too."""
    instance, plan = night()
    false = plan.model_copy(update={"runs": plan.runs[1:]})
    files = write(tmp_path, (instance, false))
    result = run("risk", *files)
    assert result.exit_code == Exit.VIOLATED
    assert "is neither run nor rejected" in result.stderr
    assert not result.stdout
    document = json.loads(run("risk", *files, "--json").stdout)
    assert document["status"] == "violated"
    assert {violation["kind"] for violation in document["violations"]} >= {"job-missing"}


def test_the_help_imports_nothing_heavy() -> None:
    """No library that takes time."""
    # pydantic is what typer itself loads for the help of a command.
    code = (
        "import sys; sys.argv = ['planner', 'risk', '--help']\n"
        "from planner.cli.main import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"numpy", "yaml", "rich", "pyomo", "pandas", "scipy", "multiprocessing", "concurrent.futures"}
    assert not set(done.stderr.split()) & heavy
    assert "--duration-error" in done.stdout


# The command as it is, but that its progress goes to a file, which says when there is something to be kept.
WATCHED = """
import contextlib, sys
from pathlib import Path
import planner.cli.risk

READY = Path(sys.argv.pop(1))

@contextlib.contextmanager
def told(quiet):
    yield lambda what, done, of: done >= 20 and READY.touch()

planner.cli.risk._told = told
from planner.cli.main import main
main()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("workers", [1, 2])
def test_a_signal_ends_with_the_replays_so_far(
    files: tuple[Path, Path], tmp_path: Path, workers: int, number: signal.Signals
) -> None:
    """Sent to all processes, as a terminal and a batch system do: exit 130, what is done is shown, no traceback."""
    ready, out = tmp_path / "ready", tmp_path / "risk.json"
    options = ("--replays", "100000", "--workers", str(workers), "--json", "--out", str(out), "--candidates", "0")
    process = subprocess.Popen(
        [sys.executable, "-c", WATCHED, str(ready), "risk", *map(str, files), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
        text=True,
        start_new_session=True,
    )
    while not ready.exists() and process.poll() is None:
        time.sleep(0.05)
    os.killpg(process.pid, number)
    stdout, stderr = process.communicate(timeout=120)
    assert process.returncode == 130, stderr
    assert "Traceback" not in stderr
    document = json.loads(stdout)
    assert document["status"] == "interrupted"
    assert 0 < document["replays"] < 100_000
    assert f"interrupted; this is what {document['replays']} of 100000 replays say" in stderr
    assert len(json.loads(out.read_text())["by_replay"]) == document["replays"]


@pytest.mark.skipif(sys.platform == "win32", reason="terminals of POSIX")
def test_progress_is_on_a_terminal_only_and_goes_away(files: tuple[Path, Path]) -> None:
    """On stderr, and quiet where that is asked for."""
    options = ("--replays", 30, "--workers", 1, "--json")
    screen = on_terminal("risk", *files, *options)
    assert screen.code == 0
    assert "replays: 30 of 30" in screen.text
    assert screen.text.rstrip(" ").endswith("\r")
    assert json.loads(screen.stdout)["replays"] == 30
    assert "replays:" not in on_terminal("risk", *files, *options, "--quiet").text
    assert piped("risk", *files, *options).stderr == ""
