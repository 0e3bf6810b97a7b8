"""HiGHS: a Pyomo model compiled to arrays and solved, with live incumbent and bound, start values and Ctrl-C.

Pyomo's own interfaces have no progress, lose the incumbent on Ctrl-C and load more slowly, so the arrays are handed
over here. What comes back is not believed: engines round, recompute and check it.
"""

from __future__ import annotations

import ctypes
import math
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import highspy
import numpy as np

from models.errors import Defect
from planner.engines import interrupts

if TYPE_CHECKING:
    import pyomo.environ as pyo

# Objectives of HiGHS and of the recount differ in their last digits, by up to about 1e-6 of the value.
OBJECTIVE_TOLERANCE = 1e-5

Outcome = Literal["optimal", "infeasible", "stopped", "interrupted"]


@dataclass(frozen=True)
class Answer:
    """What HiGHS knows at its end; None for what it does not know. `values` by Pyomo variable id."""

    outcome: Outcome
    values: Mapping[int, float] | None
    objective: float | None
    dual_bound: float | None
    reduced_costs: Mapping[int, float] = field(default_factory=dict)
    """By variable id, of the LP relaxation only: what the objective rises at least for each unit of the variable."""

    def value(self, variable: Any) -> float:
        """The value of a Pyomo variable; its fixed value where it was not passed to the solver."""
        if self.values is None:
            raise Defect("a value is asked of an answer without a solution")
        known = self.values.get(id(variable))
        return float(known) if known is not None else float(variable.value or 0.0)


class Compiled:
    """A Pyomo model as arrays, and the way back to its variables."""

    def __init__(self, model: pyo.ConcreteModel):
        # Here, since not all who need HiGHS have a model of Pyomo, which takes a second to import.
        from pyomo.repn.plugins.standard_form import LinearStandardFormCompiler

        form = LinearStandardFormCompiler().write(model, mixed_form=True)
        self.model = model  # keeps the variables alive, whose ids are the keys of answers
        self.columns = list(form.columns)
        self.offset = float(np.asarray(form.c_offset).ravel()[0])
        lp = highspy.HighsLp()
        rows, columns = form.A.shape
        lp.num_row_, lp.num_col_ = rows, columns
        self.costs = np.asarray(form.c.todense(), dtype=float).ravel()
        self.scale = _scale_of(self.costs)
        lp.col_cost_ = self.costs * self.scale
        lp.col_lower_ = np.array([-math.inf if v.lb is None else v.lb for v in self.columns], dtype=float)
        lp.col_upper_ = np.array([math.inf if v.ub is None else v.ub for v in self.columns], dtype=float)
        kinds = np.array([entry.bound_type for entry in form.rows], dtype=int)
        rhs = np.asarray(form.rhs, dtype=float)
        lp.row_lower_ = np.where(kinds == 1, -math.inf, rhs)
        lp.row_upper_ = np.where(kinds == -1, math.inf, rhs)
        lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        lp.a_matrix_.start_ = form.A.indptr.astype(np.int32)
        lp.a_matrix_.index_ = form.A.indices.astype(np.int32)
        lp.a_matrix_.value_ = form.A.data.astype(float)
        lp.offset_ = self.offset * self.scale
        integer, continuous = highspy.HighsVarType.kInteger, highspy.HighsVarType.kContinuous
        lp.integrality_ = [continuous if v.is_continuous() else integer for v in self.columns]
        self.lp = lp
        self.num_columns, self.num_rows = columns, rows

    def solve(
        self,
        *,
        time_limit_s: float | None,
        gap: float,
        seed: int,
        threads: int,
        start: Mapping[int, float] | None = None,
        on_progress: Callable[[float | None, float | None], None] | None = None,
        relaxed: bool = False,
    ) -> Answer:
        """Solve the model, or its LP relaxation; `start` gives values by variable id and may be partial."""
        if self.num_columns == 0:
            return (
                Answer("optimal", {}, self.offset, self.offset)
                if self.num_rows == 0
                else Answer("infeasible", None, None, None)
            )
        begun = time.monotonic()
        highs = new_highs()
        options: dict[str, object] = {
            "mip_rel_gap": gap,
            "mip_abs_gap": 1e-9,
            "random_seed": seed,
            "threads": threads,
            "solve_relaxation": relaxed,
        }
        if time_limit_s is not None:
            options["time_limit"] = max(0.0, time_limit_s)
        for name, value in options.items():
            _must(highs.setOptionValue(name, value), f"option {name}")
        highs.HandleUserInterrupt = True
        _must(highs.passModel(self.lp), "the model")
        if start is not None and not relaxed:
            self._pass_start(highs, start)
        answer = self._run(highs, on_progress, relaxed, time_limit_s, is_started=start is not None)
        if self._is_sound(highs, answer):
            return answer
        if start is None:
            return replace(
                answer, dual_bound=None, outcome="stopped" if answer.outcome == "optimal" else answer.outcome
            )
        left = None if time_limit_s is None else time_limit_s - (time.monotonic() - begun)
        return self.solve(
            time_limit_s=left, gap=gap, seed=seed, threads=threads, on_progress=on_progress, relaxed=relaxed
        )

    def _is_sound(self, highs: Any, answer: Answer) -> bool:
        """Whether HiGHS and the model agree on what its solution costs.

        HiGHS 1.16.0 can lose the objective offset of its presolve where a start value proves optimal at the root:
        objective and bound are then both off by it (tests/engines/test_highs.py has such a model).
        """
        if answer.objective is None:
            return True
        return self._agrees(highs.getInfo().objective_function_value, answer.objective)

    def _agrees(self, reported: float, objective: float) -> bool:
        """Whether an objective that HiGHS reports is that of a solution."""
        expected = objective * self.scale
        return bool(abs(reported - expected) <= OBJECTIVE_TOLERANCE * max(1.0, abs(expected)))

    def _money(self, value: float) -> float | None:
        """A value of HiGHS's objective in money; None where it has none yet."""
        return float(value) / self.scale if math.isfinite(value) and abs(value) < 1e30 else None

    def fix_at_zero(self, variables: Iterable[Any]) -> int:
        """Take variables out of the model for later solves; how many there were."""
        known = {id(v) for v in variables}
        index = [k for k, v in enumerate(self.columns) if id(v) in known]
        upper = np.array(self.lp.col_upper_)
        upper[index] = 0.0
        self.lp.col_upper_ = upper
        return len(index)

    def _pass_start(self, highs: Any, start: Mapping[int, float]) -> None:
        known = [(k, start[id(v)]) for k, v in enumerate(self.columns) if id(v) in start]
        if not known:
            return
        index = np.array([k for k, _ in known], dtype=np.int32)
        values = np.array([value for _, value in known], dtype=float)
        highs.setSolution(len(known), index, values)

    def _run(
        self,
        highs: Any,
        on_progress: Callable[..., None] | None,
        relaxed: bool,
        time_limit_s: float | None,
        is_started: bool,
    ) -> Answer:
        live: dict[str, float] = {}
        best: list[np.ndarray] = []

        def follow(event: Any) -> None:
            live.update(incumbent=event.data_out.mip_primal_bound, bound=event.data_out.mip_dual_bound)

        def is_believed() -> bool:
            """Whether the objective of HiGHS is that of its best solution: see `_is_sound`."""
            if not is_started or not best:
                return not is_started
            return self._agrees(live["incumbent"], float(self.costs @ best[0]) + self.offset)

        def improve(event: Any) -> None:
            best[:] = [np.array(event.data_out.mip_solution, dtype=float)]

        if not relaxed:
            highs.cbMipInterrupt += follow
            highs.cbMipImprovingSolution += improve
        interrupted = False
        # HiGHS looks at its own limit seldom in presolve and the root; the watch here asks again.
        late = math.inf if time_limit_s is None else time.monotonic() + 1.0 + 1.05 * time_limit_s
        highs.startSolve()
        while True:
            try:
                done, _ = highs.wait(0.1)
                if on_progress is not None and live:
                    shown = (self._money(live["incumbent"]), self._money(live["bound"]))
                    on_progress(*(shown if is_believed() else (None, None)))
                if done:
                    break
                if interrupts.asked():
                    raise KeyboardInterrupt
                if time.monotonic() > late:
                    late = math.inf
                    highs.cancelSolve()
            except KeyboardInterrupt:
                interrupted = True
                highs.cancelSolve()
        return self._answer(highs, best, interrupted, relaxed)

    def _answer(self, highs: Any, best: list[np.ndarray], interrupted: bool, relaxed: bool) -> Answer:
        status = highs.getModelStatus()
        info = highs.getInfo()
        if status in (highspy.HighsModelStatus.kInfeasible, highspy.HighsModelStatus.kUnboundedOrInfeasible):
            # Every variable of the formulation that costs less than nothing is bounded, so it is never unbounded.
            return Answer("infeasible", None, None, None)
        solution = highs.getSolution()
        values: np.ndarray | None = np.array(solution.col_value, dtype=float) if solution.value_valid else None
        if info.primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
            values = best[0] if best and not relaxed else None
        known = None if values is None else {id(v): x for v, x in zip(self.columns, values.tolist(), strict=True)}
        objective = None
        if values is not None:
            objective = float(self.costs @ values) + self.offset
        optimal = status == highspy.HighsModelStatus.kOptimal
        bound = objective if relaxed and optimal else None if relaxed else self._money(info.mip_dual_bound)
        if optimal and bound is None:
            bound = objective  # no integers were left: the LP's value is the bound
        reduced: dict[int, float] = {}
        if relaxed and optimal:
            reduced = {id(v): d / self.scale for v, d in zip(self.columns, list(solution.col_dual), strict=True)}
        outcome: Outcome = "optimal" if optimal else "interrupted" if interrupted else "stopped"
        return Answer(outcome, known, objective, bound, reduced)


def new_highs() -> Any:
    """A solver. The first one of a process prints its licence line on the C library's stdout before any option can
    forbid it, which would spoil `--json`; it is sent nowhere."""
    with _nothing_on_stdout():
        highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    return highs


@contextmanager
def _nothing_on_stdout() -> Iterator[None]:
    """What the C library writes on stdout within is lost; nothing to do where stdout is closed."""
    try:
        kept = os.dup(1)
    except OSError:
        yield
        return
    if sys.stdout is not None:
        sys.stdout.flush()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 1)
        yield
        ctypes.CDLL(None).fflush(None)  # what the C library has buffered goes the same way
    finally:
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nowhere)


def _must(status: Any, what: str) -> None:
    if status == highspy.HighsStatus.kError:
        raise Defect(f"HiGHS refuses {what}")


def _scale_of(costs: np.ndarray) -> float:
    """A power of two by which costs are multiplied so that the tolerances of HiGHS, which are absolute, mean something:
    1 where the largest cost is between 1 and ten million."""
    largest = float(np.max(np.abs(costs), initial=0.0))
    if largest == 0.0 or 1.0 <= largest <= 1e7:
        return 1.0
    return float(2.0 ** max(-900, min(900, round(math.log2(1e3 / largest)))))
