"""Stretches of tariffs and their chords: parted until nothing is missed, and the bound with them."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.domain import Instance
from models.reductions import reduce_starts
from models.starts import all_starts
from planner.engines.base import Limits
from planner.engines.fast import branches
from planner.engines.fast.branches import Stretch, chord, stretches_of
from planner.engines.fast.certificate import Certificate
from planner.engines.fast.prover import Prover
from planner.engines.fast.table import Table
from planner.engines.search import Search
from planner.horizon import num_slots_of
from tests.engines.samples import HOUR, instance_of
from tests.oracle import optimum
from tests.random_instances import random_instance

POWER = {"factor": 0.3, "exponent": 0.6, "up_to": 1000.0, "error": 0.005}


def table_of(storage: dict[str, object]) -> Table:
    """A table with a site's storage."""
    instance = instance_of([{"modes": [{"pool": "own", "gpus": 1, "duration": HOUR}]}], sites__0__storage=storage)
    return Table.of(all_starts(instance, 6))


def price(stretches: list[Stretch], mb_s: float) -> float:
    """What so much bandwidth costs."""
    return min(part.at(mb_s) for part in stretches if part.low <= mb_s <= part.high)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(st.floats(0.0, 5.0), st.floats(0.0, 0.05)), min_size=1, max_size=6),
    st.floats(1.0, 900.0),
)
def test_chords_lie_below_the_price_and_halves_lie_between(pieces: list[tuple[float, float]], most: float) -> None:
    table = table_of({"tariff": [{"fixed": a, "per_mb_s": b} for a, b in pieces]})
    whole = stretches_of(table, 0, most)
    waiting, ends = [chord(whole)], []
    while waiting:
        line = waiting.pop()
        for mb_s in np.linspace(line.low, line.high, 9)[1:]:  # at 0 the price jumps
            assert line.at(mb_s) <= price(whole, mb_s) + 1e-9
        assert line.missed >= -1e-9
        if not line.parts:
            ends.append(line)
            continue
        left, right = line.halves()
        assert (left.low, left.high, right.high) == (line.low, right.low, line.high)
        for half in (left, right):
            assert half.at(half.low) >= line.at(half.low) - 1e-9
            assert half.at(half.high) >= line.at(half.high) - 1e-9
        waiting += [right, left]
    assert ends == whole


def proven(instance: Instance) -> tuple[float, int]:
    """The bound when nothing is left to do in the tariffs and caches, and the branches that it began with."""
    starts = all_starts(instance, num_slots_of(instance))
    certificate = Certificate(Table.of(reduce_starts(starts)))
    prover = Prover(certificate, Search(starts, Limits(time_limit_s=None, gap=0.0)))
    began = len(certificate.centres)
    for _ in range(400):
        if not prover.step() or any(centre.branch.windows is not None for centre in certificate.centres):
            break
    return certificate.bound, began


def test_a_chord_is_parted_until_nothing_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five readers under a power law: one branch at the beginning proves as much as one for each stretch."""
    reader = {"dataset": "data", "deadline": 6 * HOUR}
    mode = {"pool": "own", "gpus": 1, "duration": 2 * HOUR, "read_rate": 90.0}
    instance = instance_of([reader | {"modes": [mode]}] * 5, sites__0__storage={"power": POWER})
    everywhere, many = proven(instance)
    monkeypatch.setattr(branches, "MOST_BRANCHES", 1)
    monkeypatch.setattr(Certificate, "narrow", lambda *_: False)
    chord_alone, one = proven(instance)
    monkeypatch.undo()
    monkeypatch.setattr(branches, "MOST_BRANCHES", 1)
    narrowed, _ = proven(instance)
    assert (one, many > 5) == (1, True)
    assert chord_alone < 0.9 * everywhere
    assert narrowed == pytest.approx(everywhere, rel=1e-3)


@pytest.mark.parametrize("seed", range(8))
def test_no_bound_above_the_optimum_whatever_begins_as_a_chord(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    instance = random_instance("storage", random.Random(seed))
    best = optimum(instance)
    monkeypatch.setattr(branches, "MOST_BRANCHES", 1)
    if best is not None:
        assert proven(instance)[0] <= best * (1 + 1e-6) + 1e-6
