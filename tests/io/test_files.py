"""Files and folders are written whole or not at all, and nobody else's file is lost."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from planner.io import files
from planner.io.files import CannotWrite, write_folder_whole, write_whole
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

    monkeypatch.setattr(files.os, "rename", second_fails)
    with pytest.raises(CannotWrite, match="disk is full"):
        write_folder_whole(folder, {"m": b"new"}, "m")
    assert len(calls) == 3
    assert (folder / "m").read_bytes() == b"old"
    assert _names(tmp_path) == ["f"]


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
