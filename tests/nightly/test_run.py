"""A night from beginning to end: what is written, what is compared, what is kept, what is refused."""

from __future__ import annotations

import json
import os
import sqlite3
import sys
from pathlib import Path
from typing import Any

import pytest

from models.check import check
from models.domain import Instance, Plan
from models.errors import Defect, Infeasible, InvalidInput, Locked, NoPlan
from planner.engines.base import Solution
from planner.history.records import Status
from planner.io.files import CannotWrite
from planner.io.instances import read_instance
from planner.io.plans import read_plan
from planner.nightly import lock
from planner.nightly import run as nights
from planner.nightly.folder import FILES
from tests.documents import HOUR
from tests.engines.samples import mode
from tests.engines.test_contract import no_list_finds_it
from tests.nightly.nights import JOBS, Cluster, hours, interrupted


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    """A cluster with four jobs."""
    return Cluster(tmp_path)


def snapshot(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Every file below a folder with its time and content, links and folders too."""
    found = {}
    for path in sorted(folder.rglob("*")):
        content = os.readlink(path).encode() if path.is_symlink() else path.read_bytes() if path.is_file() else b""
        found[str(path)] = (path.lstat().st_mtime_ns, content)
    return found


def test_the_first_night_writes_a_checked_plan_and_enters_it(cluster: Cluster) -> None:
    night = cluster.run()
    folder = cluster.home.plans / "2026-01-12"
    assert night.folder == folder
    assert night.difference is None
    assert {path.name for path in folder.iterdir()} == set(FILES) - {"difference.json", "difference.txt"}
    assert check(read_instance(folder / "instance.json"), read_plan(folder)).ok
    assert read_instance(folder / "instance.json").content_hash == read_plan(folder).instance_hash
    assert os.readlink(cluster.home.latest) == "plans/2026-01-12"
    (record,) = cluster.runs()
    assert record == night.record
    assert (record.number, record.status, record.folder) == (1, Status.PLANNED, "2026-01-12")
    assert (record.jobs, record.cost) == (4, night.plan.cost)


def test_the_second_night_is_compared_with_the_first(cluster: Cluster) -> None:
    first = cluster.run()
    cluster.later(first.plan, 2, down=[{"pool": "rent", "until": "24h"}])
    cluster.write([*JOBS, {"modes": [mode(1)]}])
    night = cluster.run()
    assert night.folder.name == "2026-01-12-2"
    assert night.plan.start == hours(2)
    difference = json.loads((night.folder / "difference.json").read_text())
    assert difference["before"]["folder"] == "2026-01-12"
    assert difference == night.difference.document() if night.difference else False
    kinds = {change["job"]: change["changes"] for change in difference["jobs"]}
    assert kinds["j4"] == ["new"]
    done = [run.job for run in first.plan.runs if run.completion <= hours(2)]
    assert done
    assert all(kinds[name] == ["completed"] for name in done)
    assert "j4: new" in (night.folder / "difference.txt").read_text()
    record = cluster.runs()[0]
    assert (record.last, record.added, record.removed) == ("2026-01-12", 1, len(done))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")
def test_each_step_is_on_the_disk_before_the_next(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """As far as a process can tell: what is synced when. The files, their folder, its new name, then the history."""
    cluster.run()
    steps: list[str] = []
    fsync, replace, connect = os.fsync, os.replace, sqlite3.connect

    def noted_sync(handle: int) -> None:
        steps.append(f"sync {Path(os.readlink(f'/proc/self/fd/{handle}')).name}")
        fsync(handle)

    def noted_replace(old: Path, new: Path) -> None:
        steps.append(f"to {Path(new).name}")
        replace(old, new)

    def noted(statement: str) -> None:
        steps.append(statement.split()[0])

    def traced(*args: Any, **options: Any) -> sqlite3.Connection:
        connection = connect(*args, **options)
        connection.set_trace_callback(noted)
        return connection

    monkeypatch.setattr(os, "fsync", noted_sync)
    monkeypatch.setattr(os, "replace", noted_replace)
    monkeypatch.setattr(sqlite3, "connect", traced)
    name = cluster.run().folder.name
    named = steps.index(f"to {name}")
    synced = [step for step in steps[:named] if step.startswith("sync ")]
    assert {f"sync {file}" for file in FILES} <= set(synced)
    assert synced[-1].endswith(".tmp"), "the folder itself, before it gets its name"
    assert steps[named + 1] == "sync plans"
    after = steps[named + 2 :]
    assert after.index("COMMIT") < after.index("to latest") < after.index(f"sync {cluster.home.path.name}")


def test_names_are_those_of_the_day_and_never_taken_twice(cluster: Cluster) -> None:
    for _ in range(3):
        cluster.run()
    cluster.say(hours(30))
    cluster.run()
    assert cluster.names() == ["2026-01-12", "2026-01-12-2", "2026-01-12-3", "2026-01-14"]
    assert os.readlink(cluster.home.latest) == "plans/2026-01-14"


def hard(tmp_path: Path) -> Cluster:
    """A cluster that has a plan which is not found without a search."""
    first = {"modes": [mode(2, 2)], "due": 2.5 * HOUR, "weight": 0.1}
    second = {"modes": [mode(2, 2)], "release": 2 * HOUR, "deadline": 5 * HOUR}
    return Cluster(tmp_path, [first, second], horizon=6 * HOUR, pools__0__price=[9, 9, 1, 1, 9, 9])


def finds_nothing(_: Instance, start: Plan | None) -> Solution:
    """A solve whose time is over before it has found a plan; what it was given to begin with it has."""
    if start is None:
        raise NoPlan("no plan was found within the limits")
    return Solution(start, 0.0)


def test_without_a_better_plan_the_last_one_is_kept(cluster: Cluster) -> None:
    first = cluster.run()
    cluster.later(first.plan, 1)
    night = cluster.run(finds_nothing)
    assert night.record.status == Status.KEPT
    assert any("2026-01-12" in note and "kept" in note for note in night.notes)
    assert night.difference is not None
    assert night.difference.num_replanned == 0
    assert check(night.instance, night.plan).ok
    before = {run.job: (run.completion, [segment.places for segment in run.segments]) for run in first.plan.runs}
    for run in night.plan.runs:
        assert (run.completion, [segment.places for segment in run.segments]) == before[run.job]
    assert cluster.runs()[0].status == Status.KEPT


def test_a_last_plan_that_no_longer_holds_is_not_kept(cluster: Cluster) -> None:
    """Its node is down for good, and the job must run by a deadline."""
    cluster.write([{"modes": [mode(2)], "deadline": 5 * HOUR}])
    cluster.run()
    cluster.say(hours(1), down=[{"pool": "own", "until": "100h"}])
    with pytest.raises(NoPlan):
        cluster.run(finds_nothing)
    record = cluster.runs()[0]
    assert (record.status, record.folder) == (Status.NO_PLAN, None)
    assert cluster.names() == ["2026-01-12"]
    assert os.readlink(cluster.home.latest) == "plans/2026-01-12"


def test_a_job_that_is_new_finds_its_place_in_the_plan_to_begin_with(cluster: Cluster) -> None:
    cluster.run()
    cluster.write([*JOBS, {"modes": [mode(1)]}])
    night = cluster.run(finds_nothing)
    assert night.record.status == Status.PLANNED
    assert night.difference is not None
    assert night.difference.counts == {"new": 1}


@pytest.mark.parametrize(
    ("fault", "status"),
    [
        (Infeasible("no way"), Status.INFEASIBLE),
        (NoPlan("none within 5 s"), Status.NO_PLAN),
        (Defect("bound above plan"), Status.FAILED),
        (ZeroDivisionError("x"), Status.FAILED),
        (KeyboardInterrupt(), Status.INTERRUPTED),
    ],
)
def test_a_night_that_fails_is_in_the_history_and_leaves_no_folder(
    cluster: Cluster, fault: BaseException, status: Status
) -> None:
    def fails(*_: object) -> Solution:
        raise fault

    with pytest.raises(type(fault)):
        cluster.run(fails)
    (record,) = cluster.runs()
    assert record.status == status
    assert record.reason
    assert record.ended is not None
    assert cluster.names() == []
    assert not cluster.home.latest.exists()
    assert cluster.run().record.number == 2


def test_faults_of_the_input_are_in_the_history(cluster: Cluster) -> None:
    cluster.say(hours(1), complete=["j9", "j0", "j0"])
    with pytest.raises(InvalidInput) as told:
        cluster.run()
    assert len(told.value.faults) == 2
    (record,) = cluster.runs()
    assert record.status == Status.INVALID
    assert "j9" in str(record.reason)
    assert "and 1 more" in str(record.reason)


def test_a_night_that_is_stopped_writes_the_best_plan_so_far(cluster: Cluster) -> None:
    night = cluster.run(interrupted)
    assert night.record.status == Status.INTERRUPTED
    assert read_plan(cluster.home.latest).status == "interrupted"


def test_while_a_run_is_under_way_another_is_refused_and_changes_nothing(cluster: Cluster) -> None:
    cluster.run()
    with lock.held(cluster.home.lock):
        before = snapshot(cluster.home.path)
        with pytest.raises(Locked, match=f"process {os.getpid()} on "):
            cluster.run()
        with pytest.raises(Locked):
            nights.dry_run(cluster.task())
        assert snapshot(cluster.home.path) == before
    assert cluster.run().record.number == 2


@pytest.mark.parametrize("num_nights", [0, 1, 2])
def test_a_dry_run_writes_nothing_and_plans_as_a_run_would(cluster: Cluster, num_nights: int) -> None:
    for _ in range(num_nights):
        cluster.run()
    before = snapshot(cluster.folder)
    tried = nights.dry_run(cluster.task())
    assert snapshot(cluster.folder) == before
    done = cluster.run()
    assert tried.plan == done.plan
    assert tried.folder == done.folder
    assert tried.record.number == done.record.number
    assert (tried.difference is None) == (num_nights == 0)


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path, cluster: Cluster) -> None:
    (tmp_path / "plans-of-nights").write_text("")
    with pytest.raises(CannotWrite, match="not a folder"):
        cluster.run()


def test_a_last_plan_that_is_damaged_is_passed_over(cluster: Cluster) -> None:
    cluster.run()
    second = cluster.run()
    (second.folder / "plan.json").write_text("{")
    third = cluster.run()
    assert third.record.last == "2026-01-12"
    assert any("2026-01-12-2 cannot be read" in note for note in third.notes)


def test_without_its_instance_a_last_plan_still_compares(cluster: Cluster) -> None:
    first = cluster.run()
    (first.folder / "instance.json").unlink()
    second = cluster.run()
    assert second.record.last == "2026-01-12"
    assert any("fewer causes" in note for note in second.notes)


def test_a_plan_that_takes_a_search_is_kept_where_there_is_no_time_for_one(tmp_path: Path) -> None:
    """With the real engine: no time at all finds none, but last night's plan holds."""
    from planner.engines.base import Limits
    from planner.solve import solve

    assert no_list_finds_it().jobs  # the same instance, for which no list schedule is a plan
    cluster = hard(tmp_path)
    cluster.run(lambda instance, start: solve(instance, "exact", Limits(time_limit_s=None, threads=1), start))
    night = cluster.run(lambda instance, start: solve(instance, "fast", Limits(time_limit_s=0.0), start))
    assert night.plan.cost == pytest.approx(20.0)
    assert night.record.status == Status.KEPT
