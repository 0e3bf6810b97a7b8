"""What a run puts in order before it begins: each thing that a killed run, or somebody, may have left."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from planner.history.records import Status
from planner.history.store import History
from planner.io.files import CannotWrite
from planner.nightly import run as nights
from tests.nightly.nights import Cluster


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    """A cluster with two nights behind it."""
    made = Cluster(tmp_path)
    made.run()
    made.run()
    return made


def leave(folder: Path, *names: str) -> Path:
    """A folder with files."""
    folder.mkdir()
    for name in names:
        (folder / name).write_text("{")
    return folder


def test_leftovers_of_killed_runs_go_and_what_is_of_others_stays(cluster: Cluster) -> None:
    ours = leave(cluster.home.plans / ".2026-01-12-3.0123456789ab.tmp", "plan.json", "run.json")
    link = cluster.home.path / ".latest.0123456789ab.tmp"
    link.symlink_to("plans/2026-01-12")
    others = [
        leave(cluster.home.plans / ".2026-01-12-3.ba9876543210.tmp", "plan.json", "notes.txt"),
        leave(cluster.home.plans / ".hidden", "plan.json"),
        leave(cluster.home.plans / "mine", "plan.json"),
    ]
    tried = nights.dry_run(cluster.task())
    assert [note for note in tried.notes if "would clear" in note] == [
        "would clear .latest.0123456789ab.tmp, which a run left that was cut off",
        "would clear .2026-01-12-3.0123456789ab.tmp, which a run left that was cut off",
    ]
    assert ours.exists()
    cluster.run()
    assert not ours.exists()
    assert not link.is_symlink()
    assert all(path.exists() for path in others)


def test_a_run_that_was_cut_off_after_its_folder_is_entered(cluster: Cluster) -> None:
    """Killed between the folder and the history: the folder says everything."""
    with History.open(cluster.home.history) as history:
        (record, *_) = history.runs()
        entries = history.entries(record.number)
        under_way = record.model_copy(update={"status": Status.RUNNING, "folder": None, "cost": None, "ended": None})
        history.finish(under_way)
    assert any("would enter 2026-01-12-2" in note for note in nights.dry_run(cluster.task()).notes)
    night = cluster.run()
    assert [note for note in night.notes if "entered" in note] == [
        "entered 2026-01-12-2 in the history, which did not have it"
    ]
    assert cluster.runs()[1] == record
    with History.read(cluster.home.history) as history:
        assert history.entries(record.number) == entries
    assert night.record.last == "2026-01-12-2"


def test_a_run_that_was_cut_off_before_its_folder_is_noted(cluster: Cluster) -> None:
    with History.open(cluster.home.history) as history:
        history.begin("2026-01-12T17:00:00+00:00", 1)
    expected = "run 3, begun at 2026-01-12T17:00:00+00:00, was cut off without a word"
    assert expected in nights.dry_run(cluster.task()).notes
    night = cluster.run()
    assert expected in night.notes
    assert night.record.number == 4
    crashed = cluster.runs()[1]
    assert (crashed.number, crashed.status, crashed.folder) == (3, Status.CRASHED, None)
    assert crashed.ended is not None
    assert not any("cut off" in note for note in cluster.run().notes), "said once"


def test_latest_is_led_to_the_newest_folder(cluster: Cluster) -> None:
    """Killed between the history and the link, or before there was one."""
    for damage in ("old", "none"):
        cluster.home.latest.unlink()
        if damage == "old":
            cluster.home.latest.symlink_to("plans/2026-01-12")
        with pytest.raises(ZeroDivisionError):
            cluster.run(lambda *_: 1 / 0)  # type: ignore[arg-type, return-value]
        assert os.readlink(cluster.home.latest) == "plans/2026-01-12-2"


def test_a_latest_that_is_no_link_is_told(cluster: Cluster) -> None:
    cluster.home.latest.unlink()
    cluster.home.latest.mkdir()
    with pytest.raises(CannotWrite, match="no link"):
        cluster.run()


def test_a_folder_that_is_gone_is_noted_and_one_that_is_back_too(cluster: Cluster, tmp_path: Path) -> None:
    folder = cluster.home.plans / "2026-01-12-2"
    shutil.move(folder, tmp_path / "aside")
    expected = "the plan folder of run 2, 2026-01-12-2, is there no more"
    assert expected in nights.dry_run(cluster.task()).notes
    third = cluster.run()
    assert expected in third.notes
    assert third.record.last == "2026-01-12", "the newest that is there"
    assert third.folder.name == "2026-01-12-2", "its name is free"
    shutil.rmtree(third.folder)
    shutil.move(tmp_path / "aside", folder)
    fourth = cluster.run()
    assert fourth.record.last == "2026-01-12-2"
    assert {record.number: record.is_gone for record in cluster.runs()}[2] is False


def test_a_history_that_is_lost_is_made_anew_from_the_folders(cluster: Cluster) -> None:
    before = cluster.runs()
    cluster.home.history.unlink()
    night = cluster.run()
    assert [record.number for record in cluster.runs()] == [3, 2, 1]
    assert cluster.runs()[1:] == before
    assert sum("entered" in note for note in night.notes) == 2


def test_a_folder_whose_plan_is_damaged_is_entered_without_its_jobs(cluster: Cluster) -> None:
    (cluster.home.plans / "2026-01-12" / "plan.json").write_text("{")
    (cluster.home.plans / "2026-01-12-2" / "difference.json").write_text(
        '{"format": "burstplan-difference/1", "jobs": [{"job": 3}]}'
    )
    cluster.home.history.unlink()
    night = cluster.run()
    assert sum("cannot be read" in note for note in night.notes) == 2
    with History.read(cluster.home.history) as history:
        assert [len(history.entries(number)) for number in (1, 2, 3)] == [0, 0, 4]
