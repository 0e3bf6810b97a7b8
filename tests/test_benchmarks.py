"""The benchmark program runs at its smallest size, and its kept results say how they were made."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def test_the_smoke_size_runs() -> None:
    command = [sys.executable, "-m", "benchmarks.exact", "--smoke"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    rows = [line for line in done.stdout.splitlines() if line.startswith("| ")]
    assert [row.split(" | ")[0] for row in rows] == ["| compute", "| mixed"]


def test_no_rule_of_storage_is_cheaper_than_the_optimum() -> None:
    command = [sys.executable, "-m", "benchmarks.storage", "--smoke"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    rows = [line.split(" | ") for line in done.stdout.splitlines() if line.startswith("| list |")]
    assert len(rows) == 7
    assert all(float(row[3].rstrip("%")) >= 0 for row in rows)
    assert "Optimum proven in 48 of 48 cases." in done.stdout


def test_results_name_command_machine_and_commit() -> None:
    results = sorted((ROOT / "benchmarks" / "results").glob("*.md"))
    assert results
    for result in results:
        text = result.read_text(encoding="utf-8")
        assert "`python -m benchmarks." in text
        assert "Machine: " in text
        assert "Commit " in text
