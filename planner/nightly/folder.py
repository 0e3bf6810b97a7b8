"""The folder of nightly plans: where everything lies in it, which plan folders are whole, which is the latest.

plans/2026-01-12/    a plan, whole or not there; named by the day on which it begins
latest               a link to the newest of them
history.sqlite       every run, those too that made no plan
lock                 held by the run that is under way
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from models.domain import Instance, Plan
from models.domain.fields import Entity
from models.errors import InvalidInput
from planner.history.records import RunRecord
from planner.io.documents import load_json
from planner.io.files import CannotWrite, sync_folder
from planner.io.instances import document_of, read_instance
from planner.io.plans import PLAN_FILE, TABLE_FILES, read_plan, write_plan_folder
from planner.io.texts import LIMIT, MIB, read_text, refuse

RUN_FILE, INSTANCE_FILE, DIFFERENCE_FILE = "run.json", "instance.json", "difference.json"
DIFFERENCE_TEXT, REPORT_FILE = "difference.txt", "report.html"
FILES = (PLAN_FILE, *TABLE_FILES, INSTANCE_FILE, RUN_FILE, DIFFERENCE_FILE, DIFFERENCE_TEXT, REPORT_FILE)
HISTORY_FILE = "history.sqlite"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
"""What a plan folder may be called: no path, nothing hidden, nothing that a shell reads otherwise."""
_LEFTOVER = re.compile(r"\..{1,100}\.[0-9a-f]{12}\.tmp")


class RunFile(Entity):
    """What a plan folder says of the run that made it: enough to enter it in the history."""

    format: Literal["burstplan-run/1"] = "burstplan-run/1"
    record: RunRecord
    options: dict[str, Any] = Field(default_factory=dict, description="how the run was asked for")
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class PlanFolder:
    """A plan folder that is whole."""

    path: Path
    run: RunFile

    @property
    def name(self) -> str:
        """Its name within plans/."""
        return self.path.name

    def plan(self) -> Plan:
        """Its plan; raises InvalidInput where somebody has damaged it since."""
        return read_plan(self.path)

    def instance(self) -> Instance:
        """The instance that the plan was made for, as of then; raises InvalidInput as well."""
        return read_instance(self.path / INSTANCE_FILE)

    def difference(self) -> dict[str, Any] | None:
        """The document of what had changed since the plan before; None where there was none; raises InvalidInput."""
        path = self.path / DIFFERENCE_FILE
        if not path.exists():
            return None
        document = load_json(read_text(path, LIMIT), str(path))
        if document.faults:
            raise InvalidInput(document.faults)
        if not isinstance(document.value, dict) or document.value.get("format") != "burstplan-difference/1":
            raise refuse(path, "is not a difference of two plans", "restore the file, or remove its folder")
        return document.value


@dataclass(frozen=True)
class Home:
    """The folder that `--into` names."""

    path: Path

    @property
    def plans(self) -> Path:
        """Where the plan folders are."""
        return self.path / "plans"

    @property
    def history(self) -> Path:
        """The database."""
        return self.path / HISTORY_FILE

    @property
    def lock(self) -> Path:
        """What a run locks."""
        return self.path / "lock"

    @property
    def latest(self) -> Path:
        """A link to the latest plan folder."""
        return self.path / "latest"

    def prepare(self) -> None:
        """Make the folder and that of the plans, where they are not there; raises CannotWrite."""
        try:
            if self.plans.is_dir():
                return
            self.plans.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            raise CannotWrite(self.plans, "a part of the path is not a folder") from None
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise CannotWrite(self.plans, reason.lower()) from None
        sync_folder(self.path)
        sync_folder(self.path.parent)

    def leftovers(self) -> list[Path]:
        """What runs left that were cut off while they wrote. Only who holds the lock may take it for nobody's."""
        found: list[Path] = []
        with suppress(OSError):
            for entry in os.scandir(self.plans):
                is_ours = _LEFTOVER.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False)
                if is_ours and set(os.listdir(entry.path)) <= set(FILES):
                    found.append(Path(entry.path))
        with suppress(OSError):
            for entry in os.scandir(self.path):
                if _LEFTOVER.fullmatch(entry.name) and entry.name.startswith(".latest.") and entry.is_symlink():
                    found.append(Path(entry.path))
        return sorted(found)

    def clear_leftovers(self) -> None:
        """Remove them."""
        for path in self.leftovers():
            if path.is_symlink():
                path.unlink(missing_ok=True)
            else:
                shutil.rmtree(path, ignore_errors=True)

    def whole(self) -> list[PlanFolder]:
        """Every plan folder, in the order of their runs. What has no run.json that can be read is not one."""
        found = [folder for path in self._folders() if (folder := _read(path)) is not None]
        return sorted(found, key=lambda folder: (folder.run.record.number, folder.run.record.started, folder.name))

    def _folders(self) -> Iterator[Path]:
        try:
            entries = sorted(os.scandir(self.plans), key=lambda entry: entry.name)
        except OSError:
            return
        for entry in entries:
            if NAME.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False):
                yield Path(entry.path)

    def free_name(self, wanted: str) -> str:
        """A name that no plan folder has yet: the one wanted, or the same with a number."""
        name, number = wanted, 1
        while os.path.lexists(self.plans / name):
            number += 1
            name = f"{wanted}-{number}"
        return name

    def write(self, name: str, plan: Plan, instance: Instance, run: RunFile, pages: dict[str, bytes]) -> Path:
        """Write a plan folder, whole or not at all: when this returns it is on the disk. Returns its path."""
        path = self.plans / name
        extra = {INSTANCE_FILE: json_bytes(document_of(instance)), RUN_FILE: json_bytes(run.model_dump(mode="json"))}
        write_plan_folder(plan, instance, path, extra | pages)
        return path

    def point_to(self, name: str) -> None:
        """Let `latest` lead to a plan folder, at any moment to the old one or to this; raises CannotWrite."""
        target = os.path.join(self.plans.name, name)
        temporary = self.path / f".latest.{secrets.token_hex(6)}.tmp"
        try:
            if self.latest.is_symlink() and os.readlink(self.latest) == target:
                return
            if os.path.lexists(self.latest) and not self.latest.is_symlink():
                raise CannotWrite(self.latest, "it is there and no link; move it away")
            os.symlink(target, temporary)
            os.replace(temporary, self.latest)
        except OSError as error:
            with suppress(OSError):
                temporary.unlink()
            raise CannotWrite(self.latest, (error.strerror or str(error)).lower()) from None
        sync_folder(self.path)


def json_bytes(document: Any) -> bytes:
    """A document as JSON."""
    return (json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def _read(path: Path) -> PlanFolder | None:
    try:
        return PlanFolder(path, RunFile.model_validate_json(read_text(path / RUN_FILE, MIB)))
    except (InvalidInput, ValidationError):
        return None
