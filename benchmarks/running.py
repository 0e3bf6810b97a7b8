"""One solver on one instance, in a process of its own: `python -m benchmarks.running JOB`, with JOB as JSON.

A process for each run keeps memory, threads and warm caches of one solver from another's, and ends whoever does not
keep to the limit. What it prints last is the record of the run, one line of JSON. The clock of a run begins with the
instance in memory and the solver imported; `shell` measures the whole command instead, its start included.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.common import use_of
from benchmarks.rivals import RIVALS, rival
from benchmarks.sets import Case
from models.check import check
from models.domain import Instance, Plan, relative_gap
from planner.engines.base import Progress

ENGINES = ("fast", "exact", "auto")
SHELL = "shell"
SOLVERS = (*ENGINES, SHELL, *RIVALS)
GAPS = (0.05, 0.02, 0.01, 0.003)
"""Gaps to which the time is taken."""
MOST_POINTS = 400
_GRACE = (3.0, 120.0)
"""A run is ended after so many times its limit and so many seconds more."""


@dataclass(frozen=True)
class Job:
    """A run to be made."""

    case: Case
    solver: str
    time_limit_s: float
    threads: int
    gap: float
    """Proven gap at which our engines stop."""

    @classmethod
    def of(cls, document: dict[str, Any]) -> Job:
        """The job that was written as JSON."""
        return cls(**{**document, "case": Case(**document["case"])})


def run_apart(job: Job) -> dict[str, Any]:
    """The record of a run in its own process; one that says why where there is none."""
    factor, more = _GRACE
    command = [sys.executable, "-m", "benchmarks.running", json.dumps(asdict(job))]
    root = Path(__file__).parent.parent
    try:
        done = subprocess.run(
            command, cwd=root, capture_output=True, text=True, timeout=factor * job.time_limit_s + more, check=False
        )
    except subprocess.TimeoutExpired as error:
        return empty(f"ended after {error.timeout:.0f} s")
    lines = done.stdout.splitlines()
    if done.returncode or not lines:
        last = done.stderr.strip().splitlines()[-1:] or ["no output"]
        return empty(f"exit {done.returncode}: {last[0]}"[:300])
    record: dict[str, Any] = json.loads(lines[-1])
    return record


def empty(note: str) -> dict[str, Any]:
    """The record of a run without a plan."""
    names = ("cost", "bound", "gap", "slots", "wall_s", "utilisation", "burst_share", "late_share")
    return {**dict.fromkeys(names), "proven_s": [None] * len(GAPS), "trajectory": [], "note": note}


def measure(job: Job) -> dict[str, Any]:
    """The record of a run in this process."""
    instance = job.case.make()
    if job.solver == SHELL:
        return _shell(job, instance)
    if job.solver in ENGINES:
        return _engine(job, instance)
    outcome = rival(job.solver)(instance, job.time_limit_s, job.threads, job.case.seed)
    return record_of(instance, outcome.plan, outcome.dual_bound, outcome.wall_s, outcome.trajectory, outcome.note)


def _engine(job: Job, instance: Instance) -> dict[str, Any]:
    from models.errors import NoPlan
    from planner.engines.base import Limits
    from planner.solve import solve

    limits = Limits(time_limit_s=job.time_limit_s, gap=job.gap, seed=job.case.seed, threads=job.threads)
    begun = time.monotonic()
    try:
        solution = solve(instance, job.solver, limits)
    except NoPlan as error:
        return empty(str(error))
    wall_s = time.monotonic() - begun
    violations = check(instance, solution.plan).violations
    if violations:
        return empty(f"the plan fails its check: {violations[0]}")
    plan = solution.plan
    return record_of(instance, plan, plan.dual_bound, wall_s, solution.trajectory, "; ".join(solution.notes))


def _shell(job: Job, instance: Instance) -> dict[str, Any]:
    """The command from the shell, wall time from its start to its end."""
    from planner.io.instances import write_instance

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "instance.json"
        write_instance(instance, path, force=True)
        command = [
            str(Path(sysconfig.get_path("scripts")) / "planner"),
            *("plan", str(path), "--engine", "fast", "--gap", "1%", "--time-limit", f"{job.time_limit_s:g}"),
            *("--threads", str(job.threads), "--seed", str(job.case.seed), "--json"),
        ]
        begun = time.monotonic()
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        wall_s = time.monotonic() - begun
    if done.returncode:
        return empty(f"exit {done.returncode}: {done.stderr.strip()[:200]}")
    found = json.loads(done.stdout)
    record = empty(f"of which {found['wall_s']:.2f} s in the solve")
    cost, bound = found["cost"], found["dual_bound"]
    proven = [wall_s if found["gap"] is not None and found["gap"] <= gap else None for gap in GAPS]
    late = found["late_jobs"] / max(1, found["jobs"])
    return record | {
        "cost": cost,
        "bound": bound,
        "gap": found["gap"],
        "wall_s": wall_s,
        "late_share": late,
        "proven_s": proven,
        "trajectory": [[wall_s, cost, bound]],
    }


def record_of(
    instance: Instance,
    plan: Plan | None,
    bound: float | None,
    wall_s: float,
    trajectory: Sequence[Progress],
    note: str,
) -> dict[str, Any]:
    """A run as it is kept."""
    cost = None if plan is None else plan.cost
    points = thinned([(point.elapsed_s, point.incumbent, point.dual_bound) for point in trajectory])
    points.append((wall_s, cost, bound))
    record = empty(note) | {
        "cost": cost,
        "bound": bound,
        "gap": None if cost is None else relative_gap(cost, None if bound is None else min(bound, cost)),
        "wall_s": wall_s,
        "proven_s": [first_within(points, gap) for gap in GAPS],
        "trajectory": [[round(at, 4), incumbent, known] for at, incumbent, known in points],
    }
    if plan is not None:
        record |= {"slots": plan.num_slots, "engine": plan.engine, **asdict(use_of(instance, plan))}
    return record


Point = tuple[float, float | None, float | None]
"""Seconds, incumbent, bound."""


def thinned(points: Sequence[Point]) -> list[Point]:
    """The points at which something changed, no more than can be drawn."""
    kept: list[Point] = []
    for point in points:
        if not kept or kept[-1][1:] != point[1:]:
            kept.append(point)
    step = math.ceil(len(kept) / MOST_POINTS)
    return kept if step <= 1 else [*kept[::step], kept[-1]]


def first_within(points: Sequence[Point], gap: float, bound: float | None = None) -> float | None:
    """Seconds until incumbent and bound (or a bound that is given) lie no more than a gap apart; None if never."""
    for at, incumbent, own in points:
        known = own if bound is None else bound
        if incumbent is not None and known is not None and incumbent - known <= gap * abs(incumbent) + 1e-9:
            return at
    return None


if __name__ == "__main__":
    print(json.dumps(measure(Job.of(json.loads(sys.argv[1]))), allow_nan=False))
