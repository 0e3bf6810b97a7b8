"""What was compiled from other sources is dropped, and what was compiled from these is kept."""

from __future__ import annotations

from pathlib import Path

from planner.engines.fast.compiled import forget_stale


def test_only_an_upgrade_drops_what_is_kept(tmp_path: Path) -> None:
    index, code = tmp_path / "kernels.perform-1.py311.nbi", tmp_path / "kernels.perform-1.py311.1.nbc"
    other = tmp_path / "kernels.cpython-311.pyc"
    (tmp_path / "kernels.stamp").write_text("old")
    for path in (index, code, other):
        path.write_bytes(b"x")
    forget_stale(tmp_path, "new")
    assert not index.exists()
    assert not code.exists()
    assert other.exists()
    index.write_bytes(b"y")
    forget_stale(tmp_path, "new")
    assert index.read_bytes() == b"y"
    (tmp_path / "kernels.stamp").unlink()
    forget_stale(tmp_path, "new")
    assert not index.exists()


def test_a_folder_that_is_not_there_is_no_trouble(tmp_path: Path) -> None:
    forget_stale(tmp_path / "none", "new")
