"""What the tests of the command line share: an instance on disk, a solver that is not one, terminals."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from models.domain import Instance, Plan
from planner.cli.main import app
from planner.engines.base import Limits, Solution
from tests.report.samples import instance_document, sample_plan

Run = Callable[..., Result]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    """The command line within this process, off a terminal."""
    for name in ("NO_COLOR", "FORCE_COLOR", "PLANNER_DEBUG", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)

    def invoke(*args: object) -> Result:
        return CliRunner().invoke(app, [str(arg) for arg in args], prog_name="planner", catch_exceptions=False)

    return invoke


@pytest.fixture
def instance_file(tmp_path: Path) -> Path:
    """An instance in a JSON file."""
    return write_document(tmp_path / "tonight.json", instance_document())


def write_document(path: Path, document: dict[str, Any]) -> Path:
    """A JSON file."""
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


@pytest.fixture
def no_solver(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], list[Limits]]:
    """Put something else in the place of `solve`: changes of the sample plan, or an exception to raise.

    Returns the limits that it was called with.
    """
    import planner.solve

    calls: list[Limits] = []

    def install(outcome: dict[str, Any] | BaseException) -> list[Limits]:
        def solve(instance: Instance, engine: str = "auto", limits: Limits | None = None) -> Solution:
            calls.append(limits or Limits())
            if isinstance(outcome, BaseException):
                raise outcome
            plan: Plan = sample_plan(instance, **({"engine": engine} | outcome))
            return Solution(plan, 0.5, ("a note",))

        monkeypatch.setattr(planner.solve, "solve", solve)
        return calls

    return install
