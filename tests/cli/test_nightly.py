"""`planner nightly` as cron runs it: quiet on success, an exit code and a message where somebody should look."""

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

from models.errors import Infeasible, NoPlan
from planner.cli.exits import Exit
from planner.nightly import lock
from tests.cli.conftest import Run
from tests.cli.terminal import COMMAND, environment
from tests.documents import HOUR
from tests.engines.samples import mode
from tests.nightly.nights import JOBS, Cluster, hours

FAST = ("--engine", "fast", "--work-limit", "20")

# A solver that waits until it is stopped, and then gives the plan of a short search.
WAITING = """
import sys, time, types
from pathlib import Path
from dataclasses import replace
from tests.nightly.nights import with_few_moves

READY = Path(sys.argv.pop(1))

def solve(instance, engine, limits, start):
    made = with_few_moves(instance, start)
    try:
        READY.touch()
        time.sleep(60)
    except KeyboardInterrupt:
        return replace(made, plan=made.plan.model_copy(update={"status": "interrupted"}))
    return made

import planner.solve
planner.solve.solve = solve
from planner.cli.main import main
main()
"""


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    """A cluster with four jobs."""
    return Cluster(tmp_path)


def arguments(cluster: Cluster, *more: object) -> list[object]:
    """The command line of a night."""
    state = ("--state", cluster.state) if cluster.state.exists() else ()
    return ["nightly", cluster.instance, "--into", cluster.home.path, *state, *FAST, *more]


def test_success_is_one_short_summary_and_nothing_on_stderr(run: Run, cluster: Cluster) -> None:
    first = run(*arguments(cluster))
    assert (first.exit_code, first.stderr) == (0, "")
    assert len(first.stdout.splitlines()) == 5
    assert "no plan before" in first.stdout
    assert str(cluster.home.plans / "2026-01-12") in first.stdout
    second = run(*arguments(cluster))
    assert (second.exit_code, second.stderr) == (0, "")
    assert "since 2026-01-12: 0 of 4 jobs planned otherwise" in second.stdout


def test_quiet_says_nothing_at_all(run: Run, cluster: Cluster) -> None:
    result = run(*arguments(cluster, "--quiet"))
    assert (result.exit_code, result.output) == (0, "")
    assert cluster.names() == ["2026-01-12"]


def test_machines_get_one_document(run: Run, cluster: Cluster) -> None:
    run(*arguments(cluster))
    document = json.loads(run(*arguments(cluster, "--json")).stdout)
    assert document["run"]["number"] == 2
    assert document["difference"]["before"]["folder"] == "2026-01-12"
    assert document["folder"] == str(cluster.home.plans / "2026-01-12-2")
    assert document["dry_run"] is False


def test_a_dry_run_says_what_it_would_do(run: Run, cluster: Cluster) -> None:
    result = run(*arguments(cluster, "--dry-run"))
    assert (result.exit_code, result.stderr) == (0, "")
    assert "would write" in result.stdout
    assert not cluster.home.path.exists()


def test_another_run_under_way_is_75(run: Run, cluster: Cluster) -> None:
    run(*arguments(cluster))
    with lock.held(cluster.home.lock):
        result = run(*arguments(cluster, "--json"))
    assert result.exit_code == Exit.LOCKED == os.EX_TEMPFAIL
    assert "locked: another run holds" in " ".join(result.stderr.split())
    assert json.loads(result.stdout)["status"] == "locked"
    assert len(cluster.runs()) == 1


def test_all_faults_of_the_state_are_told_with_their_lines(run: Run, cluster: Cluster) -> None:
    cluster.state.write_text(
        '{"at": "2026-01-12T19:00:00+00:00",\n "complete": ["nobody"],\n "running": [{"job": "j0", "mode": "own7",\n'
        '  "pool": "own", "places": [{"node": 5, "gpus": [0]}]}],\n "down": [{"pool": "own", "until": "30m"}],\n'
        ' "colour": "red"}'
    )
    result = run(*arguments(cluster))
    said = " ".join(result.stderr.split())
    assert result.exit_code == Exit.INVALID
    assert "Traceback" not in said
    for words in ("complete[0]", "nobody", "own7", "down[0].until", "colour", "line 2", "line 3"):
        assert words in said
    assert cluster.runs()[0].status == "invalid"


def test_an_instance_without_a_plan_is_4_and_in_the_history(run: Run, cluster: Cluster) -> None:
    cluster.write([{"modes": [mode(2)], "deadline": HOUR}])
    result = run(*arguments(cluster))
    assert result.exit_code == Exit.INFEASIBLE
    assert "j0" in result.stderr
    assert cluster.runs()[0].status == "infeasible"


@pytest.mark.parametrize(("fault", "code"), [(NoPlan("none found"), 5), (Infeasible("none"), 4), (OSError(), 1)])
def test_failures_have_the_codes_of_plan(
    run: Run, cluster: Cluster, monkeypatch: pytest.MonkeyPatch, fault: Exception, code: int
) -> None:
    import planner.solve

    def fails(*_: Any) -> None:
        raise fault

    monkeypatch.setattr(planner.solve, "solve", fails)
    result = run(*arguments(cluster))
    assert result.exit_code == code
    assert result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_writes_the_best_plan_so_far(cluster: Cluster, tmp_path: Path, number: signal.Signals) -> None:
    ready = tmp_path / "ready"
    words = [str(word) for word in arguments(cluster, "--json")]
    process = subprocess.Popen(
        [sys.executable, "-c", WAITING, ready, *words],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(), text=True,
    )  # fmt: skip
    until = time.monotonic() + 60
    while not ready.exists() and time.monotonic() < until:
        time.sleep(0.02)
    process.send_signal(number)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == Exit.INTERRUPTED, stderr
    assert json.loads(stdout)["status"] == "interrupted"
    assert stderr == "interrupted; this is the best plan so far\n"
    (record,) = cluster.runs()
    assert (record.status, record.folder) == ("interrupted", "2026-01-12")


def test_two_at_once_make_one_plan(cluster: Cluster, tmp_path: Path) -> None:
    """The second finds the first at work, and says who it is."""
    ready = tmp_path / "ready"
    words = [str(word) for word in arguments(cluster)]
    first = subprocess.Popen(
        [sys.executable, "-c", WAITING, ready, *words], stdout=subprocess.DEVNULL, env=environment()
    )
    until = time.monotonic() + 60
    while not ready.exists() and time.monotonic() < until:
        time.sleep(0.02)
    second = subprocess.run([*COMMAND, *words], capture_output=True, text=True, env=environment(), check=False)
    first.send_signal(signal.SIGINT)
    assert first.wait(timeout=60) == Exit.INTERRUPTED
    assert second.returncode == Exit.LOCKED
    assert f"process {first.pid} on" in second.stderr
    assert cluster.names() == ["2026-01-12"]


def test_hostile_names_do_not_reach_the_terminal_or_the_page(run: Run, cluster: Cluster) -> None:
    """A name may hold what HTML reads, and a spreadsheet; what moves a cursor no instance may have at all."""
    name = "<script>alert(1)</script>=cmd|'&"
    cluster.write([job | {"id": f"{name}{k}"} for k, job in enumerate(JOBS)])
    run(*arguments(cluster))
    cluster.write([job | {"id": f"{name}{k + 1}"} for k, job in enumerate(JOBS)])
    cluster.say(hours(1))
    result = run(*arguments(cluster))
    assert result.exit_code == 0
    folder = cluster.home.latest
    page = (folder / "report.html").read_text()
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert json.loads((folder / "difference.json").read_text())["jobs"]


@pytest.mark.parametrize(
    "words",
    [("--gap", "2"), ("--time-limit", "soon"), ("--engine", "magic"), ("--seed", "-1")],
)
def test_wrong_use_is_2(run: Run, cluster: Cluster, words: tuple[str, ...]) -> None:
    result = run(*arguments(cluster, *words))
    assert result.exit_code == Exit.USAGE
    assert not cluster.home.path.exists()
