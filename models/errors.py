"""The exceptions a user can meet. Everything else is a defect of the program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """One thing wrong with the input, and how to mend it.

    `path` leads from the top of the instance to the field, e.g. ("jobs", 3, "due"); `where` is the file with
    its line or row, filled in by the reader, which alone knows it.
    """

    problem: str
    path: tuple[str | int, ...] = ()
    value: str | None = None
    mend: str | None = None
    where: str | None = None

    @property
    def location(self) -> str:
        """The path as people write it: jobs[3].due."""
        text = ""
        for step in self.path:
            text += f"[{step}]" if isinstance(step, int) else (f".{step}" if text else step)
        return text

    def __str__(self) -> str:
        head = ": ".join(part for part in (self.where, self.location) if part)
        value = "" if self.value is None else f" (is {self.value})"
        mend = "" if self.mend is None else f"; {self.mend}"
        return f"{head + ': ' if head else ''}{self.problem}{value}{mend}"


class InvalidInput(Exception):
    """The input has faults; all of them are carried, not the first only."""

    def __init__(self, faults: Sequence[Fault]):
        self.faults: tuple[Fault, ...] = tuple(faults)
        super().__init__("\n".join(str(fault) for fault in self.faults))


@dataclass(frozen=True)
class Clash:
    """One way an infeasible instance could be made feasible: what gives way, and by how much."""

    what: str
    amount: str
    jobs: tuple[str, ...] = ()
    way: str = ""
    """The alternative that it is part of: all that gives way under one name gives way together."""

    def __str__(self) -> str:
        return f"{self.what}: {self.amount}"


class Infeasible(Exception):
    """Proven: no plan satisfies the instance. `reasons` say what would have to give way, and by how much."""

    def __init__(self, summary: str, reasons: Sequence[Clash] = ()):
        self.summary = summary
        self.reasons: tuple[Clash, ...] = tuple(reasons)
        super().__init__(summary)


class NoPlan(Exception):
    """No plan was found within the limits, and none was proven impossible."""


class Locked(Exception):
    """Another run is at the same work; this one has done nothing."""


class Defect(Exception):
    """The program contradicts itself (a plan fails its check, a bound lies above a plan): never to be ignored."""
