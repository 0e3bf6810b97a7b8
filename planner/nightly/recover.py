"""Order before a run: what killed runs have left is cleared, and the history is brought to what the folders say."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass

from models.errors import InvalidInput
from planner.history.records import JobEntry, RunRecord, entries_of
from planner.history.store import History
from planner.io.files import CannotWrite
from planner.nightly.folder import Home, PlanFolder
from planner.report.text import clean


@dataclass(frozen=True)
class Recovered:
    """What was found before a run."""

    folders: tuple[PlanFolder, ...]
    """Every plan folder that is whole, in the order of their runs."""
    notes: tuple[str, ...]
    """What was not as a run leaves it that nothing has interrupted, in words."""
    next_number: int = 1
    """Number of the next run, as far as the history can be read."""


def recover(home: Home, history: History, now: str) -> Recovered:
    """Put everything in order; only for who holds the lock. Raises CannotWrite or InvalidInput."""
    home.clear_leftovers()
    folders = home.whole()
    notes: list[str] = []
    finished = history.finished()
    for folder in folders:
        if folder.run.record.key not in finished:
            entries, trouble = _entries(folder)
            history.finish(folder.run.record.model_copy(update={"folder": folder.name}), entries)
            notes += [f"entered {folder.name} in the history, which did not have it", *trouble]
    notes += [_crashed(record) for record in history.note_crashed(now)]
    notes += [_gone(record) for record in history.note_gone({folder.name for folder in folders})]
    if folders:
        home.point_to(folders[-1].name)
    return Recovered(tuple(folders), tuple(notes))


def look(home: Home) -> Recovered:
    """What `recover` would do, and nothing is done; what cannot be read without writing is said."""
    folders = home.whole()
    notes = [f"would clear {clean(path.name)}, which a run left that was cut off" for path in home.leftovers()]
    number = 1
    with ExitStack() as stack:
        try:
            history = stack.enter_context(History.read(home.history, may_mend=False)) if home.history.exists() else None
        except CannotWrite:
            history = None
            notes.append("the history ends in a transaction that was cut off; a run would undo it")
        if history is not None:
            finished = history.finished()
            runs = history.runs()
            number += max((record.number for record in runs), default=0)
            lacking = [folder for folder in folders if folder.run.record.key not in finished]
            keys, names = {folder.run.record.key for folder in lacking}, {folder.name for folder in folders}
            notes += [f"would enter {folder.name} in the history, which does not have it" for folder in lacking]
            under_way = [record for record in runs if record.status == "running" and record.key not in keys]
            notes += [_crashed(record) for record in reversed(under_way)]
            lost = [record for record in runs if record.folder not in {None, *names} and not record.is_gone]
            notes += [_gone(record) for record in reversed(lost)]
    return Recovered(tuple(folders), tuple(notes), number)


def _entries(folder: PlanFolder) -> tuple[Iterable[JobEntry], list[str]]:
    """What a folder says of each job; nothing, and why, where somebody has damaged its files since."""
    try:
        return list(entries_of(folder.plan(), folder.difference())), []
    except InvalidInput as fault:
        return [], [f"what {folder.name} planned for its jobs cannot be read: {fault.faults[0]}"]
    except (LookupError, TypeError, ValueError):
        return [], [f"what {folder.name} planned for its jobs cannot be read: its difference is damaged"]


def _crashed(record: RunRecord) -> str:
    return f"run {record.number}, begun at {record.started}, was cut off without a word"


def _gone(record: RunRecord) -> str:
    return f"the plan folder of run {record.number}, {record.folder}, is there no more"
