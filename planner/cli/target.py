"""The folder that a plan is to be written to: tried before the solve, rescued after it."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from planner.cli.failures import Unwritable

if TYPE_CHECKING:
    from models.domain import Instance, Plan

_PROBE = b"\0" * 65536


def probe(folder: Path) -> None:
    """Say now, not after an hour of solving, that a folder cannot be written; nothing of it remains."""
    if folder.exists() and not folder.is_dir():
        raise Unwritable(f"{folder} is a file; name a folder for --out")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / "plan.json").exists():
        raise Unwritable(f"{folder} is not empty and holds no plan; name another folder for --out")
    place = folder
    while not place.exists() and place != place.parent:
        place = place.parent
    if not place.is_dir():
        raise Unwritable(f"{folder}: {place} is not a folder; name another folder for --out")
    try:
        with tempfile.NamedTemporaryFile(dir=place, prefix=".planner-probe-") as trial:
            trial.write(_PROBE)
            trial.flush()
            os.fsync(trial.fileno())
    except OSError as fault:
        reason = (fault.strerror or str(fault)).lower()
        raise Unwritable(f"{folder}: {reason}; name another folder for --out") from None


def write(plan: Plan, instance: Instance, folder: Path) -> None:
    """Write the plan; where that fails after all, save it elsewhere and say where."""
    from planner.io.files import CannotWrite
    from planner.io.plans import write_plan_folder

    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        write_plan_folder(plan, instance, folder)
    except (CannotWrite, OSError) as fault:
        try:
            rescue = Path(tempfile.mkdtemp(prefix="planner-")) / (folder.name or "plan")
            write_plan_folder(plan, instance, rescue)
        except (CannotWrite, OSError):
            raise Unwritable(f"{_reason(fault)}; the plan is not saved") from None
        raise Unwritable(f"{_reason(fault)}; the plan is saved in {rescue} instead") from None


def _reason(fault: Exception) -> str:
    return str(fault).removeprefix("cannot write ")
