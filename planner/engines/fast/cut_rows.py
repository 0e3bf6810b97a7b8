"""The rows of `cuts.py` in the master LP: they come after all of its other rows, and go again where they are slack."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import highspy
import numpy as np

from planner.engines.fast.cuts import Cuts
from planner.engines.fast.table import Table

TINY = 1e-9
"""Coefficients below this are left out of the LP (not of the bound)."""


class Basis(NamedTuple):
    """A basis of the LP, and the cuts that it had then."""

    status: Any
    cuts: tuple[int, ...]


class _OfPool(NamedTuple):
    """Cuts of a pool that are in the LP: row, slot, and coefficient of each row of the pool, shape (cuts, rows)."""

    row: np.ndarray
    slot: np.ndarray
    coefficient: np.ndarray


class CutRows:
    """The cuts that are in the LP."""

    def __init__(
        self, highs: Any, cuts: Cuts, table: Table, first_row: int, first_start: int, node_column: dict[int, int]
    ):
        self.highs, self.cuts, self.table = highs, cuts, table
        self.first_row, self.first_start, self.node_column = first_row, first_start, node_column
        self.ids: list[int] = []
        """Index of each of them in `Cuts.cuts`."""
        self._of_pool: dict[int, _OfPool] = {}
        self._place = np.zeros(len(table.rows.job), dtype=np.int64)
        for rows in cuts.rows:
            self._place[rows] = np.arange(len(rows))

    def extend(self, r: int, t: int, index: list[int], values: list[float]) -> None:
        """Add to the column of a start what it takes of the cuts."""
        mine = self._of_pool.get(int(self.table.rows.pool[r]))
        if mine is not None:
            taken = mine.coefficient[:, self._place[r]]
            is_active = (mine.slot >= t) & (mine.slot < t + int(self.table.rows.duration[r]))
            some = np.flatnonzero(is_active & (np.abs(taken) > TINY))
            index += mine.row[some].tolist()
            values += taken[some].tolist()

    def add(self, ids: list[int], starts: Sequence[tuple[int, int]]) -> None:
        """Add cuts to the LP, whose columns of starts are those given."""
        if not ids:
            return
        rows = self.table.rows
        r, first = np.array(starts, dtype=np.int64).reshape(-1, 2).T
        end, pool = first + rows.duration[r], rows.pool[r]
        begins, index, values, upper = [0], [], [], []
        for c in ids:
            cut = self.cuts.cuts[c]
            some = np.flatnonzero((pool == cut.pool) & (first <= cut.slot) & (end > cut.slot))
            taken = cut.coefficients[self._place[r[some]]]
            some, taken = some[np.abs(taken) > TINY], taken[np.abs(taken) > TINY]
            if cut.nodes:
                some, taken = (
                    np.append(some, self.node_column[cut.pool] + cut.slot - self.first_start),
                    np.append(taken, -cut.nodes),
                )
            index.append(some + self.first_start)
            values.append(taken)
            begins.append(begins[-1] + len(some))
            upper.append(cut.most)
        self.highs.addRows(
            len(ids), np.full(len(ids), -math.inf), np.array(upper), begins[-1],
            np.array(begins[:-1], dtype=np.int32), np.concatenate(index).astype(np.int32), np.concatenate(values),
        )  # fmt: skip
        self.ids += ids
        self._arrange()

    def drop_slack(self) -> None:
        """Take out the cuts that are slack in the LP's optimum; its basis stays."""
        status = self.highs.getBasis()
        of_rows = list(status.row_status)
        is_slack = [state == highspy.HighsBasisStatus.kBasic for state in of_rows[self.first_row :]]
        gone = np.flatnonzero(is_slack)
        if len(gone):
            self.highs.deleteRows(len(gone), (gone + self.first_row).astype(np.int32))
            self.ids = [c for c, slack in zip(self.ids, is_slack, strict=True) if not slack]
            kept = [state for state, slack in zip(of_rows[self.first_row :], is_slack, strict=True) if not slack]
            status.row_status = of_rows[: self.first_row] + kept
            self.highs.setBasis(status)
            self._arrange()

    def _arrange(self) -> None:
        cuts = [self.cuts.cuts[c] for c in self.ids]
        self._of_pool = {}
        for p in sorted({cut.pool for cut in cuts}):
            mine = [k for k, cut in enumerate(cuts) if cut.pool == p]
            self._of_pool[p] = _OfPool(
                self.first_row + np.array(mine),
                np.array([cuts[k].slot for k in mine]),
                np.array([cuts[k].coefficients for k in mine]),
            )

    def prices(self, duals: np.ndarray) -> np.ndarray:
        """Prices of all cuts from those of the LP's rows; 0 of those that are not in it."""
        prices = np.zeros(len(self.cuts))
        prices[self.ids] = duals[self.first_row :]
        return prices

    # Where the LP goes on

    def basis(self) -> Basis:
        """Where the LP stands."""
        return Basis(self.highs.getBasis(), tuple(self.ids))

    def go_to(self, basis: Basis) -> None:
        """Go on from a basis of before, when there were fewer starts and cuts; nothing where a cut of then is gone."""
        if tuple(self.ids[: len(basis.cuts)]) != basis.cuts:
            return
        status, states = basis.status, highspy.HighsBasisStatus
        columns, rows = self.highs.getNumCol(), self.first_row + len(self.ids)
        if columns > len(status.col_status):
            more = columns - len(status.col_status)
            status.col_status = list(status.col_status) + [states.kLower] * more
        if rows > len(status.row_status):
            status.row_status = list(status.row_status) + [states.kBasic] * (rows - len(status.row_status))
        self.highs.setBasis(status)
