"""A night killed with SIGKILL: nothing that was there is lost, no half plan is seen, and the next night completes.

Two ways. At every step in turn (each sync, rename, link and statement of the history), which is the same in every run;
and at random moments of the process, which know nothing of steps.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from models.check import check
from planner.history.records import RunRecord, Status
from planner.history.store import History
from planner.io.instances import read_instance
from planner.io.plans import read_plan
from planner.nightly.folder import FILES, NAME, Home
from tests.nightly.forked import Runner
from tests.nightly.nights import Cluster, hours

SEED = 20260112


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    """What forks the processes."""
    made = Runner()
    yield made
    made.close()


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    """A cluster with two nights behind it."""
    made = Cluster(tmp_path)
    first = made.run()
    made.later(first.plan, 1)
    made.run()
    return made


def task(cluster: Cluster) -> list[str | None]:
    """The night as words."""
    return [str(cluster.instance), str(cluster.state), str(cluster.home.path)]


def assert_in_order(folder: Path, known: list[RunRecord]) -> None:
    """What must hold at any moment: every plan folder is whole and passes, and nothing known is lost."""
    home = Home(folder)
    for path in home.plans.iterdir():
        if NAME.fullmatch(path.name):
            names = {file.name for file in path.iterdir()}
            assert names <= set(FILES)
            assert {"plan.json", "run.json", "instance.json", "report.html", "assignments.csv"} <= names
            assert check(read_instance(path / "instance.json"), read_plan(path)).ok
        else:
            assert path.name.endswith(".tmp"), path.name
    assert check(read_instance(home.latest / "instance.json"), read_plan(home.latest)).ok
    with History.read(home.history) as history:
        kept = {record.key: record for record in history.runs()}
    for record in known:
        if record.status != Status.RUNNING:
            assert kept[record.key] == record


def assert_completed(cluster: Cluster, known: list[RunRecord]) -> None:
    """What holds after a night that nothing has cut off: every folder is in the history, once, and nothing is left."""
    assert_in_order(cluster.home.path, known)
    runs = cluster.runs()
    assert runs[0].status in (Status.PLANNED, Status.KEPT)
    assert not any(record.status == Status.RUNNING for record in runs)
    assert sorted(record.folder for record in runs if record.folder is not None) == cluster.names()
    assert os.readlink(cluster.home.latest) == f"plans/{runs[0].folder}"
    assert not [path for path in cluster.home.path.iterdir() if path.name.startswith(".")]
    with History.read(cluster.home.history) as history:
        for record in runs:
            assert (len(history.entries(record.number)) > 0) == (record.folder is not None)


def cut_off(cluster: Cluster, runner: Runner, step: int | None = None, delay_s: float | None = None) -> bool:
    """A night that is killed, and what must hold then; whether it was killed."""
    known = cluster.runs()
    answer = runner.run(task(cluster), step, delay_s)
    assert answer["code"] == 0
    # In a copy: to read a history undoes what was cut off in it, and that the next night must do by itself.
    copy = cluster.folder / "copy"
    shutil.copytree(cluster.home.path, copy, symlinks=True)
    assert_in_order(copy, known)
    shutil.rmtree(copy)
    return bool(answer["signal"] == signal.SIGKILL)


def the_next_completes(cluster: Cluster, runner: Runner, known: list[RunRecord]) -> None:
    """The night after, which nothing cuts off."""
    answer = runner.run(task(cluster))
    assert (answer["signal"], answer["code"]) == (0, 0)
    assert_completed(cluster, known)


def steps_of_a_night(cluster: Cluster, runner: Runner) -> int:
    """How many there are."""
    copy = cluster.folder / "copy"
    shutil.copytree(cluster.home.path, copy, symlinks=True)
    number = runner.run([str(cluster.instance), str(cluster.state), str(copy)])["steps"]
    shutil.rmtree(copy)
    assert number > 50
    return int(number)


def test_killed_at_some_steps_of_the_night(cluster: Cluster, runner: Runner) -> None:
    """Some of all steps, evenly: one after the other in the same folder, as on a machine that is in trouble."""
    known, number = cluster.runs(), steps_of_a_night(cluster, runner)
    for step in range(1, number + 1, max(1, number // 12)):
        assert cut_off(cluster, runner, step=step)
    the_next_completes(cluster, runner, known)


@pytest.mark.slow
def test_killed_at_every_step_of_the_night(cluster: Cluster, runner: Runner) -> None:
    """Each step by itself, and the night after it."""
    known = cluster.runs()
    for step in range(1, steps_of_a_night(cluster, runner) + 1):
        assert cut_off(cluster, runner, step=step)
        the_next_completes(cluster, runner, known)


def kill_at_random(cluster: Cluster, runner: Runner, count: int) -> None:
    """So many nights that are killed at moments drawn over a night's whole time, each followed by one that completes.

    A night that comes to its end before its moment does not count, however fast the machine is.
    """
    draw = random.Random(SEED)
    known, wall_s = cluster.runs(), max(runner.run(task(cluster))["wall_s"] for _ in range(2))
    killed = tries = 0
    while killed < count:
        tries += 1
        assert tries < 20 * count
        killed += cut_off(cluster, runner, delay_s=draw.uniform(0.0, wall_s))
        the_next_completes(cluster, runner, known)


def test_killed_at_a_few_random_moments(cluster: Cluster, runner: Runner) -> None:
    """The history is intact, no half plan is there, the next run completes."""
    kill_at_random(cluster, runner, 4)


@pytest.mark.slow
def test_killed_at_a_hundred_random_moments(cluster: Cluster, runner: Runner) -> None:
    """The same a hundred times."""
    kill_at_random(cluster, runner, 100)


@pytest.mark.parametrize("is_removed", [False, True])
def test_the_first_night_killed_at_some_steps(tmp_path: Path, runner: Runner, is_removed: bool) -> None:
    """Before there is anything: no folder, no history; or only what first nights have left that were killed before."""
    cluster = Cluster(tmp_path)
    cluster.say(hours(0))
    for step in range(1, 45, 11):
        assert runner.run(task(cluster), step)["signal"] == signal.SIGKILL
        if is_removed:
            shutil.rmtree(cluster.home.path, ignore_errors=True)
    the_next_completes(cluster, runner, [])
