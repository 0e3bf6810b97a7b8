"""What was compiled from other sources is dropped, and what was compiled from these is kept."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from planner.engines import clock
from planner.engines.fast.compiled import HAS_NUMBA, forget_stale, jit


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


@pytest.mark.skipif(not HAS_NUMBA, reason="nothing is compiled")
def test_compilation_is_not_counted_as_time_spent() -> None:
    @jit
    def doubled(x: float) -> float:
        return 2 * x

    paused, counted, begun = clock.paused_s(), clock.now(), time.monotonic()
    assert doubled(1.5) == 3.0
    paused, counted, passed = clock.paused_s() - paused, clock.now() - counted, time.monotonic() - begun
    assert 0 < paused <= passed
    assert counted <= passed - 0.99 * paused
    paused = clock.paused_s()
    assert doubled(2.5) == 5.0
    assert clock.paused_s() == paused


def test_only_long_pauses_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "_pauses", [lambda: 0.5])
    assert clock.notes(0.0) == ()
    monkeypatch.setattr(clock, "_pauses", [lambda: 0.5, lambda: 24.0])
    (told,) = clock.notes(0.0)
    assert "24 s beside the time limit" in told
    assert clock.notes(24.5) == ()  # what was told with an earlier plan
