"""Exit codes, for scripts and schedulers; they are part of the interface and do not change."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """What became of a command."""

    OK = 0
    DEFECT = 1
    USAGE = 2
    INVALID = 3
    INFEASIBLE = 4
    NO_PLAN = 5
    VIOLATED = 6
    LOCKED = 75
    INTERRUPTED = 130

    @property
    def meaning(self) -> str:
        """One line for the help."""
        return MEANINGS[self]


MEANINGS: dict[Exit, str] = {
    Exit.OK: "done; a plan that was made has passed its check",
    Exit.DEFECT: "a defect of the program",
    Exit.USAGE: "wrong use of the command line",
    Exit.INVALID: "invalid input, or a file that cannot be read or written",
    Exit.INFEASIBLE: "proven infeasible: no plan exists; the reasons are printed",
    Exit.NO_PLAN: "no plan was found within the limit",
    Exit.VIOLATED: "a plan that was given fails its check",
    Exit.LOCKED: "another run is at the same work; nothing was done",
    Exit.INTERRUPTED: "interrupted; the best plan so far is written, if there is one",
}


def exit_code_help() -> str:
    """The exit codes as lines of the help."""
    return "\n".join(f"  {int(code):<4} {code.meaning}" for code in Exit)
