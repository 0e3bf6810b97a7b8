"""A nightly run: one at a time, each step so that whoever comes after a crash can tell what was done.

    lock            the kernel gives it back, however the process ends
    recover         what killed runs left is cleared; finished plan folders that the history lacks are entered
    begin           the history says that a run is under way, before anything is read
    plan            instance and state as of now, the last plan, a new plan from it, checked; what has changed and why
    write           the plan folder, whole, on the disk
    finish          the history says what became of the run; `latest` leads to the folder

Killed before `write` is done, a run leaves a row in the history that says so, and no folder. Killed after, it leaves a
folder that says everything, from which the next run enters it in the history.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from models.domain import Instance, Plan
from models.errors import Infeasible, InvalidInput, NoPlan
from planner.engines.base import Solution
from planner.history.records import RunRecord, Status, burst_jobs, entries_of, late_jobs
from planner.history.store import History
from planner.io.files import CannotWrite, try_folder
from planner.io.plans import PLAN_FILE
from planner.nightly import lock
from planner.nightly.carried import Carried, carried
from planner.nightly.courses import Side
from planner.nightly.difference import Difference, difference
from planner.nightly.folder import (
    DIFFERENCE_FILE,
    DIFFERENCE_TEXT,
    FILES,
    REPORT_FILE,
    Home,
    PlanFolder,
    RunFile,
    json_bytes,
)
from planner.nightly.now import Now, read_now
from planner.nightly.page import report_html
from planner.nightly.recover import Recovered, look, recover
from planner.nightly.steady import Steadied, steadied
from planner.nightly.texts import difference_text
from planner.report.text import count, money

Solve = Callable[[Instance, Plan | None], Solution]
"""Plans an instance, from a plan to begin with; raises as `planner.solve.solve` does."""
_UNWRITTEN = "0" * 16
"""The key of a run that is only tried."""


@dataclass(frozen=True)
class Task:
    """What a run is to do."""

    home: Home
    instance: Path
    state: Path | None
    solve: Solve
    options: dict[str, Any] = field(default_factory=dict)
    """How the run was asked for; kept with the plan."""
    change_price: float = 0.0
    """Money that a job which is planned otherwise than last night counts as besides what it costs."""


@dataclass(frozen=True)
class Night:
    """What a run has come to."""

    record: RunRecord
    plan: Plan
    instance: Instance
    difference: Difference | None
    """None where there was no plan before."""
    folder: Path
    """Where the plan is, or would be."""
    notes: tuple[str, ...]

    def document(self) -> dict[str, Any]:
        """The same for machines."""
        changes = None if self.difference is None else self.difference.document()
        if changes is not None:
            changes = {name: changes[name] for name in ("before", "counts", "costs")}
        return {
            "status": self.record.status.value,
            "run": self.record.model_dump(mode="json"),
            "costs": dict(self.plan.costs),
            "difference": changes,
            "folder": str(self.folder),
            "notes": list(self.notes),
        }


def run(task: Task) -> Night:
    """Plan the night and write it; raises Locked, InvalidInput, Infeasible, NoPlan, CannotWrite, KeyboardInterrupt,
    all but the first of them entered in the history where that can be written."""
    home, begun = task.home, time.monotonic()
    home.prepare()
    with lock.held(home.lock), History.open(home.history) as history:
        found = recover(home, history, now_utc())
        record = history.begin(now_utc(), os.getpid())
        try:
            try_folder(home.plans / f"trial-{record.key}", PLAN_FILE, FILES, b"\0" * 65536)
            night = _planned(task, record, found, begun)
            _write(task, night)
        except BaseException as fault:
            with suppress(
                CannotWrite, InvalidInput
            ):  # what is wrong is `fault`; the next run notes this one as cut off
                history.finish(_failed(record, fault, time.monotonic() - begun))
            raise
        document = None if night.difference is None else night.difference.document()
        history.finish(night.record, entries_of(night.plan, document))
        home.point_to(night.folder.name)
        return night


def dry_run(task: Task) -> Night:
    """The same, and nothing is written: not the history, not even the folder. Raises Locked where a run is under
    way."""
    home, begun = task.home, time.monotonic()
    lock.refuse_held(home.lock)
    found = look(home)
    number = 1 + max((folder.run.record.number for folder in home.whole()), default=0)
    record = RunRecord(number=max(number, found.next_number), key=_UNWRITTEN, started=now_utc())
    return _planned(task, record, found, begun)


def now_utc() -> str:
    """This moment as the history writes it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _planned(task: Task, record: RunRecord, found: Recovered, begun: float) -> Night:
    """Everything up to what is to be written."""
    now = read_now(task.instance, task.state)
    last, notes = _last(found.folders)
    notes = [*found.notes, *notes]
    if last is not None and last.plan.instance != now.instance.name:
        notes.append(f"the last plan, {last.name}, is of another instance: {last.plan.instance}")
    start = None if last is None or not now.instance.jobs else carried(last.plan, now.instance)
    solution = task.solve(now.instance, None if start is None else start.plan)
    plan = solution.plan
    notes += solution.notes
    if start is not None:
        mended = steadied(plan, start, now.instance, task.change_price)
        plan = mended.plan
        if mended.undone:
            notes.append(_undone(mended, plan.currency))
    side = Side(plan, now.instance, task.home.free_name(plan.start[:10]))
    changes = None if last is None else difference(last, side, now.complete, now.running, now.paused)
    status = _status(plan, start)
    if status == Status.KEPT:
        assert last is not None
        notes.insert(0, f"within the limits no plan better than the last, {last.name}, was found: it is kept")
    record = _record(record, plan, now, changes, status, side.name, time.monotonic() - begun)
    return Night(record, plan, now.instance, changes, task.home.plans / side.name, tuple(notes))


def _undone(mended: Steadied, currency: str) -> str:
    what = f"{count(mended.undone, 'change')} of the plan since the last {'is' if mended.undone == 1 else 'are'} undone"
    more = f"which costs {money(mended.cost, currency)} more" if mended.cost > 0 else "since they saved nothing"
    return f"{what}, {more}; {mended.changed} remain{'s' if mended.changed == 1 else ''}"


def _last(folders: tuple[PlanFolder, ...]) -> tuple[Side | None, list[str]]:
    """The newest plan that can be read, with its instance where that can be read too, and what could not be."""
    notes: list[str] = []
    for folder in reversed(folders):
        try:
            plan = folder.plan()
        except InvalidInput as fault:
            notes.append(f"the plan in {folder.name} cannot be read, the one before it is taken: {fault.faults[0]}")
            continue
        try:
            return Side(plan, folder.instance(), folder.name), notes
        except InvalidInput as fault:
            notes.append(f"the instance in {folder.name} cannot be read, so fewer causes are told: {fault.faults[0]}")
            return Side(plan, None, folder.name), notes
    return None, notes


def _status(plan: Plan, start: Carried | None) -> Status:
    if plan.status == "interrupted":
        return Status.INTERRUPTED
    is_kept = plan.status != "optimal" and start is not None and start.is_kept_by(plan)
    return Status.KEPT if is_kept else Status.PLANNED


def _record(
    record: RunRecord, plan: Plan, now: Now, changes: Difference | None, status: Status, folder: str, wall_s: float
) -> RunRecord:
    counts: dict[str, Any] = {}
    if changes is not None:
        counts = {
            "last": changes.before.name,
            "changed": changes.num_replanned,
            "added": sum(change.before is None for change in changes.jobs),
            "removed": sum(change.after is None for change in changes.jobs),
        }
    return record.model_copy(
        update={
            "ended": now_utc(),
            "status": status,
            "instance": plan.instance,
            "instance_hash": plan.instance_hash,
            "plan_start": plan.start,
            "currency": plan.currency,
            "plan_status": plan.status,
            "engine": plan.engine,
            "seed": plan.seed,
            "cost": plan.cost,
            "dual_bound": plan.dual_bound,
            "gap": plan.gap,
            "jobs": len(plan.runs) + len(plan.rejected),
            "late": len(late_jobs(plan)),
            "rejected": len(plan.rejected),
            "burst": len(burst_jobs(plan, now.instance)),
            "wall_s": round(wall_s, 3),
            "folder": folder,
        }
        | counts
    )


def _write(task: Task, night: Night) -> None:
    pages = {REPORT_FILE: report_html(night.record, night.plan, night.instance, night.difference, night.notes)}
    if night.difference is not None:
        pages[DIFFERENCE_FILE] = json_bytes(night.difference.document())
        pages[DIFFERENCE_TEXT] = difference_text(night.difference)
    run_file = RunFile(record=night.record, options=task.options, notes=night.notes)
    task.home.write(night.folder.name, night.plan, night.instance, run_file, pages)


def _failed(record: RunRecord, fault: BaseException, wall_s: float) -> RunRecord:
    """The record of a run that made no plan, or could not write it."""
    match fault:
        case InvalidInput():
            more = f", and {len(fault.faults) - 1} more" if len(fault.faults) > 1 else ""
            status, reason = Status.INVALID, f"{fault.faults[0]}{more}"
        case Infeasible():
            status, reason = Status.INFEASIBLE, str(fault)
        case NoPlan():
            status, reason = Status.NO_PLAN, str(fault)
        case CannotWrite():
            status, reason = Status.UNWRITABLE, str(fault)
        case KeyboardInterrupt():
            status, reason = Status.INTERRUPTED, "no plan had been found yet"
        case _:
            status, reason = Status.FAILED, f"{type(fault).__name__}: {fault}"
    changes = {"status": status, "reason": reason, "ended": now_utc(), "wall_s": round(wall_s, 3)}
    return record.model_copy(update=changes)
