"""The one entry from Python into the compiled code of the search."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from planner.engines.fast.compiled import compiled, sources
from planner.engines.fast.elastic_kernels import insert_elastic
from planner.engines.fast.insert_kernels import become, commit, drop, find, insert, put
from planner.engines.fast.pack_kernels import pack
from planner.engines.fast.state import (
    CHANGED,
    FOUND_COST,
    MARKED,
    MARKED_SERVICE,
    MARKED_TOTAL,
    SERVICE,
    TOTAL,
    Facts,
    State,
)

# What `perform` does with its whole numbers.
DROP, PUT, FIND, RECREATE, MARK, COMMIT, UNDO, BECOME, PACK = 0, 1, 2, 3, 4, 5, 6, 7, 8


def _entry() -> Callable[..., bool]:
    stamp = sources(
        "compiled",
        "state",
        "rental_kernels",
        "node_kernels",
        "storage_kernels",
        "survey_kernels",
        "insert_kernels",
        "run_kernels",
        "elastic_kernels",
        "pack_kernels",
        "perform_kernels",
    )

    @compiled
    def perform(f: Facts, s: State, what: int, numbers: np.ndarray, theta: float, tries: int, blink: float) -> bool:
        """Do one thing; `numbers` are jobs, or row and slot (FIND), or job, row, slot, GPU and nodes (PUT). False
        where a job that must run found no place."""
        if what == DROP:
            for j in numbers:
                drop(f, s, j)
        elif what == PUT:
            put(f, s, numbers[0], numbers[1], numbers[2], numbers[3], numbers[4:])
        elif what == FIND:
            s.money[FOUND_COST] = find(f, s, numbers[0], numbers[1])
        elif what == RECREATE:
            for j in numbers:
                if s.chosen[j]["row"] >= 0:
                    continue
                if f.jobs[j]["piece"] < f.jobs[j]["end_piece"]:
                    could = insert_elastic(f, s, j, theta, tries, blink)
                else:
                    could = insert(f, s, j, theta, tries, blink)
                if not could:
                    return False
        elif what == PACK:
            pack(f, s, numbers, tries)
        elif what == MARK:
            commit(s)
            s.counters[MARKED] = 1
            s.money[MARKED_TOTAL], s.money[MARKED_SERVICE] = s.money[TOTAL], s.money[SERVICE]
        elif what == COMMIT:
            commit(s)
        elif what in (BECOME, UNDO):
            jobs, wanted, places = numbers, s.wanted, s.wanted_places
            if what == UNDO:
                s.counters[MARKED] = 0  # the way back is not noted
                jobs, wanted, places = s.journal[: s.counters[CHANGED]], s.old, s.old_places
            become(f, s, jobs, wanted, places)
            if what == UNDO:
                commit(s)
                s.counters[MARKED] = 1
                s.money[TOTAL], s.money[SERVICE] = s.money[MARKED_TOTAL], s.money[MARKED_SERVICE]
        return stamp >= 0

    return perform


perform = _entry()
