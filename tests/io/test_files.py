"""Files and folders are written whole or not at all, and nobody else's file is lost."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from planner.io import files
from planner.io.files import CannotWrite, try_folder, write_folder_whole, write_whole
from planner.io.instances import instance_of_yaml, read_instance, write_instance
from tests.io.samples import VALID


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def _fail(number: int) -> Any:
    def fail(*_args: Any, **_options: Any) -> None:
        raise OSError(number, os.strerror(number))

    return fail


def test_a_file_is_written_and_replaced(tmp_path: Path) -> None:
    path = tmp_path / "a"
    write_whole(path, b"one")
    path.chmod(0o640)
    write_whole(path, b"two")
    assert path.read_bytes() == b"two"
    assert path.stat().st_mode & 0o777 == 0o640
    assert _names(tmp_path) == ["a"]


def test_a_link_keeps_pointing_to_its_file(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"one")
    (tmp_path / "link").symlink_to("real")
    write_whole(tmp_path / "link", b"two")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"two"


def test_a_device_is_written_to_and_stays(tmp_path: Path) -> None:
    write_whole(Path("/dev/null"), b"x")
    assert not Path("/dev/null").is_file()
    assert _names(tmp_path) == []


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOSPC, "the disk is full"),
        (errno.EACCES, "permission denied"),
        (errno.EIO, "Input/output error"),
    ],
)
@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_after_a_failure_the_old_file_is_there_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, words: str, step: str
) -> None:
    (tmp_path / "a").write_bytes(b"old")
    monkeypatch.setattr(os, step, _fail(number))
    with pytest.raises(CannotWrite, match=words):
        write_whole(tmp_path / "a", b"new")
    assert _names(tmp_path) == ["a"]
    assert (tmp_path / "a").read_bytes() == b"old"


def test_an_interrupt_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_args: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupt)
    monkeypatch.setattr(os, "rename", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_whole(tmp_path / "a", b"new")
    with pytest.raises(KeyboardInterrupt):
        write_folder_whole(tmp_path / "f", {"m": b"x"}, "m")
    assert _names(tmp_path) == []


@pytest.mark.parametrize(
    ("path", "words"),
    [(".", "it is a folder"), ("no/a", "does not exist"), ("x" * 300, "too long"), ("a\0b", "bad file name")],
)
def test_impossible_paths_are_refused_with_words(tmp_path: Path, path: str, words: str) -> None:
    with pytest.raises(CannotWrite, match=words):
        write_whole(tmp_path / path, b"x")
    if path != ".":
        with pytest.raises(CannotWrite, match=f"{words}|folder was to be written"):
            write_folder_whole(tmp_path / path, {"m": b"x"}, "m")
    assert _names(tmp_path) == []


def test_a_folder_is_written_and_replaced_with_all_its_files(tmp_path: Path) -> None:
    path = tmp_path / "f"
    write_folder_whole(path, {"m": b"1", "b": b"2"}, "m")
    assert _names(path) == ["b", "m"]
    write_folder_whole(path, {"m": b"3"}, "m", replaceable=["b"])
    assert _names(path) == ["m"]
    assert (path / "m").read_bytes() == b"3"
    assert _names(tmp_path) == ["f"]


def test_an_empty_folder_is_filled(tmp_path: Path) -> None:
    (tmp_path / "f").mkdir()
    write_folder_whole(tmp_path / "f", {"m": b"1"}, "m")
    assert _names(tmp_path / "f") == ["m"]


@pytest.mark.parametrize("present", [["other"], ["m", "other"], ["m", "sub/deep"], ["a"]])
def test_a_folder_with_other_things_is_left_alone(tmp_path: Path, present: list[str]) -> None:
    folder = tmp_path / "f"
    for name in present:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"mine")
    with pytest.raises(CannotWrite, match=r"not empty|other things"):
        write_folder_whole(folder, {"m": b"1", "a": b"2"}, "m")
    assert all((folder / name).read_bytes() == b"mine" for name in present)
    assert _names(tmp_path) == ["f"]


def test_a_file_is_not_replaced_by_a_folder(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"mine")
    with pytest.raises(CannotWrite, match="it is a file"):
        write_folder_whole(tmp_path / "f", {"m": b"1"}, "m")
    assert (tmp_path / "f").read_bytes() == b"mine"


def test_when_the_swap_fails_the_old_folder_is_put_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "f"
    write_folder_whole(folder, {"m": b"old"}, "m")
    calls: list[Any] = []
    rename = os.rename

    def second_fails(source: Any, target: Any) -> None:
        calls.append(source)
        if len(calls) == 2:
            raise OSError(errno.ENOSPC, "full")
        rename(source, target)

    monkeypatch.setattr(files, "_exchange", lambda *_: False)
    monkeypatch.setattr(files.os, "rename", second_fails)
    with pytest.raises(CannotWrite, match="disk is full"):
        write_folder_whole(folder, {"m": b"new"}, "m")
    assert len(calls) == 3
    assert (folder / "m").read_bytes() == b"old"
    assert _names(tmp_path) == ["f"]


KILLED = """
import os, signal, sys
from pathlib import Path
from planner.io import files

left = int(sys.argv[2])

def count_down(event, _args):
    global left
    left -= event.startswith(("os.", "shutil.", "open"))
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)

target = Path(sys.argv[1])
sys.addaudithook(count_down)
files.write_folder_whole(target, {"m": b"new", "a": b"new"}, "m")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="two folders change places in one step on Linux")
def test_wherever_it_is_killed_there_is_a_whole_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "f"
    was_killed, num_left, step = True, 0, 0
    while was_killed:
        step += 1
        write_folder_whole(folder, {"m": b"old", "a": b"old"}, "m")
        done = subprocess.run(
            [sys.executable, "-c", KILLED, folder, str(step)], cwd=Path(__file__).parents[2], check=False
        )
        was_killed = done.returncode < 0
        assert {(folder / name).read_bytes() for name in ("m", "a")} in ({b"old"}, {b"new"})
        num_left += len(_names(tmp_path)) > 1
        monkeypatch.setattr(files, "_BEGUN", time.time() + 60)
        write_folder_whole(folder, {"m": b"newer"}, "m", ["a"])
        assert _names(tmp_path) == ["f"], "the next run clears what was left"
    assert step > 5
    assert num_left > 2


def test_only_our_own_old_leftovers_are_cleared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = "0123456789ab"
    for name in (f".f.{code}.tmp", f".g.{code}.tmp", ".f.notes.tmp"):
        (tmp_path / name).mkdir()
    (tmp_path / f".f.{code[::-1]}.tmp").mkdir()
    (tmp_path / f".f.{code[::-1]}.tmp" / "thesis.txt").touch()
    (tmp_path / f".a.{code}.tmp").touch()
    before = _names(tmp_path)
    write_folder_whole(tmp_path / "f", {"m": b"1"}, "m")
    write_whole(tmp_path / "a", b"1")
    assert set(_names(tmp_path)) == {"f", "a", *before}, "they may be of a run that still writes"
    monkeypatch.setattr(files, "_BEGUN", time.time() + 60)
    write_folder_whole(tmp_path / "f", {"m": b"1"}, "m")
    write_whole(tmp_path / "a", b"1")
    assert set(_names(tmp_path)) == {"f", "a", *before} - {f".f.{code}.tmp", f".a.{code}.tmp"}


@pytest.mark.parametrize("is_full", [True, False])
def test_a_folder_keeps_its_mode_and_owner(tmp_path: Path, is_full: bool) -> None:
    folder = tmp_path / "f"
    folder.mkdir()
    if is_full:
        (folder / "m").touch()
    folder.chmod(0o2750)
    if os.geteuid() == 0:
        os.chown(folder, 12345, 12346)
        folder.chmod(0o2750)
    before = folder.stat()
    write_folder_whole(folder, {"m": b"1"}, "m")
    after = folder.stat()
    assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)
    assert ((folder / "m").stat().st_uid) == before.st_uid


@pytest.mark.parametrize("write", [True, False])
def test_folders_that_cannot_be_replaced_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: bool
) -> None:
    def attempt(path: Path) -> None:
        if write:
            write_folder_whole(path, {"m": b"1"}, "m")
        else:
            try_folder(path, "m", (), b"1")

    folder = tmp_path / "f f"
    folder.mkdir()
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to("one")
    for path in (tmp_path / "one", tmp_path / "one" / "below"):
        with pytest.raises(CannotWrite, match="link to itself"):
            attempt(path)
    (tmp_path / "empty").mkdir()
    with monkeypatch.context() as patch:
        patch.chdir(folder)
        for path in (Path("."), folder, Path("../f f")):
            with pytest.raises(CannotWrite, match="current folder"):
                attempt(path)
    monkeypatch.setattr(files, "_mounts", lambda: {os.fsencode(folder)})
    with pytest.raises(CannotWrite, match="mount point"):
        attempt(folder)
    assert _names(folder) == []
    attempt(tmp_path / "empty")
    assert _names(tmp_path) == ["empty", "f f", "one", "two"]


def test_mount_points_are_known() -> None:
    if Path("/proc/self/mountinfo").exists():
        assert {b"/", b"/proc"} <= files._mounts()


def test_an_instance_is_not_written_over_other_things(tmp_path: Path) -> None:
    instance = instance_of_yaml(VALID)
    (tmp_path / "f").mkdir()
    (tmp_path / "f" / "thesis.txt").write_text("mine")
    with pytest.raises(CannotWrite):
        write_instance(instance, tmp_path / "f")
    with pytest.raises(CannotWrite, match="without a dot"):
        write_instance(instance, tmp_path / "a.xlsx")
    with pytest.raises(CannotWrite, match="does not exist"):
        write_instance(instance, tmp_path / "no" / "a.yaml")
    assert _names(tmp_path) == ["f"]


def test_tables_that_are_no_longer_needed_go(tmp_path: Path) -> None:
    write_instance(instance_of_yaml(VALID), tmp_path / "f")
    small = instance_of_yaml(VALID.split("datasets:")[0])
    write_instance(small, tmp_path / "f")
    assert _names(tmp_path / "f") == ["instance.yaml", "pools.csv"]
    assert read_instance(tmp_path / "f") == small
