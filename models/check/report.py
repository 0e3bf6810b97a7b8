"""What a check reports, the tolerances it allows and why, and arithmetic that no number can break."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

# Money is a sum of thousands of products, and another order of adding them rounds differently.
MONEY_RELATIVE = 1e-6
MONEY_ABSOLUTE = 1e-6
# Bandwidth bought is a continuous variable of a linear program, which meets its rows to about this.
BANDWIDTH_RELATIVE = 1e-6
# Durations, releases and windows that miss a slot edge by less than this are on it (models/README.md, Time).
SLOT_ROUNDING = 1e-9
# Parts of the work of an elastic job that are whole but for rounding (models/README.md, Elastic jobs).
WORK_ROUNDING = 1e-9
# Sums of GB, fractions and speed levels: decimal fractions that binary numbers hold only nearly.
QUANTITY_RELATIVE = 1e-9
# Instants are written to the microsecond.
INSTANT_S = 1e-5
# Tardiness is a difference of times, each known to a microsecond, and may be written with few digits.
TARDINESS_H = 1e-6
# A gap is a quotient of two amounts of money, each good to MONEY_RELATIVE.
GAP_ABSOLUTE = 2e-6
# "optimal" may be said of a plan within this of its bound: the gap at which solvers stop by default.
OPTIMAL_GAP = 1e-4


@dataclass(frozen=True)
class Violation:
    """One way in which a plan is wrong; `kind` is a stable name, `message` a sentence for people."""

    kind: str
    where: str
    amount: float | None
    message: str

    def __str__(self) -> str:
        return f"{self.where}: {self.message} [{self.kind}]"


@dataclass(frozen=True)
class Report:
    """Every violation, and what the plan costs by each term, recomputed from the instance."""

    violations: tuple[Violation, ...]
    costs: dict[str, float]
    cost: float

    @property
    def ok(self) -> bool:
        """Whether the plan is feasible and everything it claims is true."""
        return not self.violations


def violation(kind: str, where: str, message: str, amount: float | None = None) -> Violation:
    """A violation whose amount may be any number, however large."""
    return Violation(kind, where, None if amount is None else as_float(amount), message)


def as_float(number: float) -> float:
    """The number as a float; infinite where an int is too large for one."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def total(numbers: Iterable[float]) -> float:
    """Their exact sum, rounded once; not a number or infinite where the sum has no finite value."""
    listed = list(numbers)
    try:
        return math.fsum(listed)
    except (OverflowError, ValueError):  # fsum refuses what plain addition answers with inf or nan
        return sum(listed)


def show(number: float) -> str:
    """A number as people read it, large ones rounded: Python will not print an int of 5000 digits."""
    if isinstance(number, int) and abs(number) < 10**15:
        return str(number)
    return f"{as_float(number):.10g}"


def label(name: str) -> str:
    """A name from a plan, safe to print: quoted and cut where it is not plain text."""
    return name if name and name.isprintable() and len(name) <= 200 else ascii(name[:80])


def is_above(value: float, limit: float, relative: float = QUANTITY_RELATIVE) -> bool:
    """Whether a value is above a limit beyond rounding; what is not a number is above every limit."""
    return not value <= limit + relative * abs(limit)


def money_differs(claimed: float, true: float) -> bool:
    """Whether two amounts of money are not the same beyond rounding."""
    if claimed == true:
        return False
    return not abs(claimed - true) <= MONEY_ABSOLUTE + MONEY_RELATIVE * abs(true)
