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
    from planner.io.files import CannotWrite, try_folder
    from planner.io.plans import PLAN_FILE, TABLE_FILES

    try:
        try_folder(folder, PLAN_FILE, TABLE_FILES, _PROBE)
    except CannotWrite as fault:
        raise Unwritable(f"{_reason(fault)} (--out)") from None


def write(plan: Plan, instance: Instance, folder: Path) -> None:
    """Write the plan; where that fails after all, save it elsewhere and say where."""
    from planner.io.files import CannotWrite
    from planner.io.plans import write_plan_folder

    try:
        Path(os.path.realpath(folder)).parent.mkdir(parents=True, exist_ok=True)
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
