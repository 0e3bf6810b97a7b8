"""Nights of a small cluster: its instance and state in files, and runs of them with the real engine."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from models.domain import Instance, Plan
from planner.engines.base import Limits, Solution
from planner.history.records import RunRecord
from planner.history.store import History
from planner.nightly import run as nights
from planner.nightly.folder import Home
from planner.solve import solve
from tests.documents import HOUR, Doc, document
from tests.engines.samples import mode

START = datetime.fromisoformat("2026-01-12T18:00:00+00:00")
FEW = Limits(time_limit_s=None, work=20, threads=1)
JOBS: list[Doc] = [
    {"modes": [mode(2)]},
    {"modes": [mode(3)], "due": 4 * HOUR, "weight": 1.0},
    {"modes": [mode(2, 2), mode(2, 2, "rent")], "due": 3 * HOUR, "weight": 9.0},
    {"modes": [mode(2)], "release": HOUR, "reject_cost": 50.0},
]


def with_few_moves(instance: Instance, start: Plan | None) -> Solution:
    """The fast engine, for a moment, the same in every run."""
    return solve(instance, "fast", FEW, start)


def hours(number: float) -> str:
    """So many hours after the first night's start."""
    return (START + timedelta(hours=number)).isoformat()


class Cluster:
    """Files of an instance and a state, and the folder of its plans."""

    def __init__(self, folder: Path, jobs: list[Doc] | None = None, **changes: Any) -> None:
        self.folder, self.home = folder, Home(folder / "plans-of-nights")
        self.instance, self.state = folder / "cluster.json", folder / "now.json"
        self.write(JOBS if jobs is None else jobs, **changes)

    def write(self, jobs: list[Doc], **changes: Any) -> None:
        """Write the instance."""
        self.instance.write_text(json.dumps(document(jobs, **({"horizon": "auto"} | changes))), encoding="utf-8")

    def say(self, at: str, **fields: Any) -> Path:
        """Write the state."""
        self.state.write_text(json.dumps({"at": at} | fields), encoding="utf-8")
        return self.state

    def task(self, solve_by: Callable[..., Solution] = with_few_moves) -> nights.Task:
        """What a run is to do."""
        return nights.Task(self.home, self.instance, self.state if self.state.exists() else None, solve_by)

    def run(self, solve_by: Callable[..., Solution] = with_few_moves) -> nights.Night:
        """A night."""
        return nights.run(self.task(solve_by))

    def later(self, plan: Plan, number: float, **fields: Any) -> Path:
        """Write the state as the plan would have it so many hours after the first night's start."""
        at = START + timedelta(hours=number)
        return self.say(at.isoformat(), **(state_of(plan, at) | fields))

    def runs(self) -> list[RunRecord]:
        """The history, the latest first."""
        with History.read(self.home.history) as history:
            return history.runs()

    def names(self) -> list[str]:
        """Everything within plans/."""
        return sorted(path.name for path in self.home.plans.iterdir())


def state_of(plan: Plan, at: datetime) -> dict[str, Any]:
    """What runs and what is complete at some moment, where all went by the plan."""
    running, complete = [], []
    for made in plan.runs:
        (segment,) = made.segments
        begin, end = datetime.fromisoformat(segment.start), datetime.fromisoformat(segment.end)
        if end <= at:
            complete.append(made.job)
        elif begin < at:
            places = [place.model_dump() for place in segment.places]
            row = {"job": made.job, "mode": segment.mode, "pool": segment.pool, "places": places}
            running.append(row | {"remaining": (end - at) / (end - begin)})
    return {"running": running, "complete": complete}


def interrupted(instance: Instance, start: Plan | None) -> Solution:
    """A solve that a signal has stopped."""
    made = with_few_moves(instance, start)
    return replace(made, plan=made.plan.model_copy(update={"status": "interrupted"}))
