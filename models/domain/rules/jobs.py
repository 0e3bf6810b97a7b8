"""Jobs by themselves: their times and their modes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from models.domain.entities import Job, LinearUtility, ModeEntry
from models.domain.modes import entries_of, entry_name
from models.domain.rules.draft import Draft
from models.errors import Fault
from models.units import LARGEST

_MOST_SLOTS_OF_A_MODE = 1e9


def times_are_in_order(draft: Draft) -> Iterator[Fault]:
    """Due dates and deadlines come after the release; a weight has a due date; worth, given once, falls with time."""
    for i, job in draft.jobs.items():
        at = ("jobs", i)
        for name in ("due", "deadline"):
            time = getattr(job, name)
            if time is not None and time < job.release:
                yield Fault(
                    f"is before the release at {draft.when(job.release)}",
                    (*at, name),
                    draft.when(time),
                    "correct one of them",
                )
        if job.weight > 0 and job.due is None:
            yield Fault(
                "has no due date to count from",
                (*at, "weight"),
                f"{job.weight:g}",
                "add due, or remove weight",
            )
        for k, (earlier, later) in enumerate(zip(job.value, job.value[1:], strict=False)):
            if later.by <= earlier.by or later.value > earlier.value:
                yield Fault(
                    "is not later and worth no more than the step before",
                    (*at, "value", k + 1),
                    None,
                    "sort the steps by time; worth must not rise",
                )
        if job.utility is not None and job.value:
            yield Fault("gives its worth twice", (*at, "utility"), None, "keep value or utility")
        if isinstance(job.utility, LinearUtility) and job.utility.zero_at <= job.utility.full_until:
            yield Fault(
                f"is not after full_until at {draft.when(job.utility.full_until)}",
                (*at, "utility", "zero_at"),
                draft.when(job.utility.zero_at),
                "correct one of them; a worth that is lost at once has the shape step",
            )


def modes_are_sound(draft: Draft) -> Iterator[Fault]:
    """A mode says one pool or GPU type and whole GPUs or a share; its name is its own; it fits some node."""
    for i, job in draft.jobs.items():
        if bool(job.modes) == (job.model is not None):
            problem = "has modes and a model" if job.modes else "has no modes and no model"
            yield Fault(problem, ("jobs", i, "modes"), None, "give modes, or model with samples")
        if job.model is not None and job.samples is None:
            yield Fault("is needed with a model", ("jobs", i, "samples"), None, "add samples, all epochs together")
        if job.model is None and (job.samples is not None or job.sample_size is not None):
            name = "samples" if job.samples is not None else "sample_size"
            yield Fault("is of use only with a model", ("jobs", i, name), None, "add model, or remove it")
        if job.sample_size and job.dataset is None:
            yield Fault(
                "reads samples of no dataset",
                ("jobs", i, "dataset"),
                None,
                "name the dataset, or remove sample_size",
            )
        if len(job.after) != len(set(job.after)):
            yield Fault("names a job twice", ("jobs", i, "after"), None, "remove one")
        names: dict[str, int] = {}
        for k, mode in enumerate(job.modes):
            at = ("jobs", i, "modes", k)
            yield from _one_of(mode, "pool", "gpu", at)
            yield from _one_of(mode, "gpus", "share", at)
            if mode.slowdown != 1 and mode.share is None:
                yield Fault("holds for a share of a GPU only", (*at, "slowdown"), f"{mode.slowdown:g}", "remove it")
            if mode.read_rate > 0 and job.dataset is None:
                yield Fault(
                    "reads from no dataset",
                    (*at, "read_rate"),
                    f"{mode.read_rate:g} MB/s",
                    "name the job's dataset, or remove it",
                )
            if not _is_sound(mode):
                continue
            if (
                draft.slot
                and draft.is_slot_sane
                and mode.duration * mode.slowdown / min(job.speed_levels) / draft.slot > _MOST_SLOTS_OF_A_MODE
            ):
                yield Fault(
                    "is more than 1e9 slots at its slowest",
                    (*at, "duration"),
                    f"{mode.duration:g} s",
                    "check its unit",
                )
            name = entry_name(mode)
            if name in names:
                yield Fault(f"is the name of modes[{names[name]}] too", (*at, "id"), name, "give each an id")
            names.setdefault(name, k)
        for row_index in _overflowing(job, draft):
            yield Fault(
                f"at the speed of throughputs[{row_index}] takes all but no time, or more than 1e9 slots",
                ("jobs", i, "samples"), f"{job.samples:g}", "check samples, sample_size and samples_per_s",
            )  # fmt: skip
    for i, row in draft.throughputs.items():
        yield from _one_of(row, "gpus", "share", ("throughputs", i))
    seen: dict[Any, int] = {}
    for i, row in draft.throughputs.items():
        key = (row.model, row.gpu, row.gpus, row.share)
        if key in seen:
            yield Fault(
                f"is a second speed for the same as throughputs[{seen[key]}]",
                ("throughputs", i),
                row.model,
                "keep one",
            )
        seen.setdefault(key, i)


def _one_of(record: Any, one: str, other: str, at: tuple[str | int, ...]) -> Iterator[Fault]:
    if (getattr(record, one) is None) == (getattr(record, other) is None):
        both = getattr(record, one) is not None
        problem = f"has both {one} and {other}" if both else f"has neither {one} nor {other}"
        yield Fault(problem, at, None, f"give {one} or {other}")


def _is_sound(entry: ModeEntry) -> bool:
    """Whether the entry says what it runs on, once."""
    return (entry.pool is None) != (entry.gpu is None) and (entry.gpus is None) != (entry.share is None)


def _overflowing(job: Job, draft: Draft) -> list[int]:
    """Throughputs that make no sensible duration or read rate out of the job's samples."""
    if job.model is None or job.samples is None:
        return []
    slot = draft.slot if draft.slot is not None and draft.is_slot_sane else 60.0
    most = _MOST_SLOTS_OF_A_MODE * slot * min(job.speed_levels)
    return [
        i
        for i, row in draft.throughputs_of(job.model)
        if not (
            1e-12 < job.samples / row.samples_per_s < most
            and row.samples_per_s * (job.sample_size or 0.0) * 1000.0 < LARGEST
        )
    ]


def sound_entries(job: Job, draft: Draft) -> Iterator[tuple[int, ModeEntry]]:
    """The entries of a job that can be reasoned about, with their index."""
    bad = set(_overflowing(job, draft))
    rows = tuple(
        row for i, row in draft.throughputs_of(job.model) if i not in bad and (row.gpus is None) != (row.share is None)
    )
    for k, entry in enumerate(entries_of(job, rows)):
        if _is_sound(entry):
            yield k, entry
