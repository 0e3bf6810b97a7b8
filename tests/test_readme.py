"""The README says what the program does: its first transcript, its links, its commands."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def quickstart() -> dict[str, object]:
    """What planning the quickstart prints for machines."""
    command = [sys.executable, "-m", "planner.cli.main", "plan", "instances/quickstart.yaml", "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    found: dict[str, object] = json.loads(done.stdout)
    return found


def test_the_transcript_is_a_real_run(quickstart: dict[str, object]) -> None:
    """Cost, terms, counts and status; seconds, and places of equal cost, may differ between machines."""
    assert f"status      {quickstart['status']}\n" in README
    assert f"cost        {quickstart['cost']:.2f} USD\n" in README
    costs = quickstart["costs"]
    assert isinstance(costs, dict)
    for term, cost in costs.items():
        shown = re.search(rf"^{term} +([\d.,]+) ", README, re.MULTILINE)
        assert (shown is not None) == (cost > 0.005), term
        assert shown is None or float(shown[1]) == pytest.approx(cost, abs=0.0051), term
    counts = (quickstart["late_jobs"], quickstart["rejected_jobs"], quickstart["burst_jobs"])
    line = "jobs        {} ({} late, {} rejected, {} burst to rented nodes)\n"
    assert line.format(quickstart["jobs"], *counts) in README


def test_the_first_command_is_within_the_first_screen() -> None:
    assert README.index("scripts/run") < README.index("plan of     quickstart") < 1500


def test_links_lead_somewhere() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", README)
    assert len(links) > 5
    for link in links:
        assert (ROOT / link).exists(), link


def test_every_command_is_named() -> None:
    for command in ("plan", "check", "show", "generate", "convert", "schema", "tariff", "import philly"):
        assert f"planner {command}" in README
