"""What completing a job is worth: by hand, in any of its shapes against scalar restatements, and what falls when."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.check.money import utility_part
from models.domain import Instance
from models.starts import all_starts
from models.utilities import lost_value, most_worth, times_that_count, worth_at
from tests import oracle_terms
from tests.models.worths import FAIRNESS, HOUR, LINEAR, SIGMOID, STEP, WORTHS, Doc, instance_worth

SLOTS = 12


@pytest.mark.parametrize("name", WORTHS)
def test_worths_by_hand(name: str) -> None:
    worth, by_hour = WORTHS[name]
    job = instance_worth(worth).jobs[0]
    times = [edge * HOUR for edge in by_hour]
    expected = pytest.approx(list(by_hour.values()), rel=1e-12, abs=1e-12)
    assert [worth_at(job, time, 1e-9 * HOUR) for time in times] == expected
    assert most_worth(job) == (8.0 if worth else 0.0)
    lost = lost_value(job, np.array(times), 1e-9 * HOUR)
    assert (lost is None) == (not worth)
    if lost is not None:
        assert (8.0 - lost).tolist() == expected


@pytest.mark.parametrize("name", WORTHS)
def test_starts_lose_what_their_completion_loses(name: str) -> None:
    worth, by_hour = WORTHS[name]
    (row,) = all_starts(instance_worth(worth), SLOTS).rows
    most = 8.0 if worth else 0.0
    lost = dict(zip((row.slots + row.duration).tolist(), row.terms["lost_value"].tolist(), strict=True))
    expected = {edge: most - value for edge, value in by_hour.items() if edge in lost}
    assert len(expected) >= 2 or name == "nothing"
    assert {edge: lost[edge] for edge in expected} == pytest.approx(expected, abs=1e-12)
    of_edges = row.prices.lost_value(0)
    assert (of_edges is None) == (not worth)
    if of_edges is not None:
        assert of_edges.shape == (SLOTS + 1,)
        assert of_edges[row.slots + row.duration].tolist() == row.terms["lost_value"].tolist()


minutes = st.integers(-600, 3000).map(lambda n: n * 60.0)
lengths = st.one_of(st.integers(1, 3000).map(lambda n: n * 60.0), st.sampled_from([1e-9, 1e-3, 1e9]))
money = st.sampled_from([0.0, 0.1, 7.0, 1e6])
utilities: st.SearchStrategy[Doc] = st.one_of(
    st.builds(lambda at, length: LINEAR | {"full_until": at, "zero_at": at + max(length, 1e-3)}, minutes, lengths),
    st.builds(lambda at: STEP | {"by": at}, minutes),
    st.builds(lambda at, scale: SIGMOID | {"midpoint": at, "scale": scale}, minutes, lengths),
    st.builds(lambda length: FAIRNESS | {"fair_time": length}, lengths),
)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(utilities, money, st.sampled_from([420.0, 900.0, 3600.0]), st.integers(0, 4))
def test_a_utility_is_its_formula_and_never_rises(shape: Doc, worth: float, slot: float, release: int) -> None:
    """At every edge of a grid: as the checker and the oracle say, each in its own words; from 0 to the worth."""
    changes: Doc = {"utility": shape | {"worth": worth}, "release": release * slot}
    instance = instance_worth({})
    job = type(instance.jobs[0]).model_validate(instance.jobs[0].model_dump() | changes)
    instance = instance.model_copy(update={"slot": slot, "jobs": (job,)})
    assert job.utility is not None
    edges = np.arange(200)
    lost = lost_value(job, edges * slot, 1e-9 * slot)
    assert lost is not None
    near = pytest.approx(lost.tolist(), rel=1e-12, abs=1e-12 * worth)
    parts = [utility_part(job.utility, job.release, edge, slot) for edge in edges.tolist()]
    assert [worth * (1.0 - part) for part in parts] == near
    assert [oracle_terms.lost_value(instance, job, edge) for edge in edges.tolist()] == near
    assert lost.min() >= 0.0
    assert lost.max() <= worth
    assert np.diff(lost).min() >= -1e-12 * worth


def test_the_times_that_count() -> None:
    def times(**fields: Any) -> list[float]:
        return [time / HOUR for time in times_that_count(instance_worth(fields).jobs[0])]

    assert times() == []
    assert times(due=3 * HOUR, deadline=5 * HOUR) == [3.0, 5.0]
    assert times(due=3 * HOUR, utility=LINEAR) == [3.0, 2.0, 6.0]
    assert times(utility=STEP) == [3.0]
    assert times(utility=SIGMOID) == [4.0]
    assert times(utility=FAIRNESS) == [1.0 + 2.0]
    assert times(**WORTHS["steps"][0]) == [2.0, 4.0]


def test_no_utility_leaves_the_content_hash_as_it_was() -> None:
    """The field is younger than the format: an instance without it is the instance that it was."""
    plain, other = instance_worth({}), instance_worth({"utility": STEP})
    assert "utility" not in plain.model_dump(mode="json")["jobs"][0]
    assert other.model_dump(mode="json")["jobs"][0]["utility"] == STEP
    assert plain.content_hash != other.content_hash
    assert Instance.model_validate(other.model_dump(mode="json")).content_hash == other.content_hash


def test_a_worth_vanishes_without_overflow() -> None:
    job = instance_worth({"utility": SIGMOID | {"scale": 1e-12}}).jobs[0]
    with np.errstate(all="raise", under="ignore"):
        assert [worth_at(job, time, 0.0) for time in (0.0, 3e9)] == [8.0, 0.0]
    assert job.utility is not None
    assert [utility_part(job.utility, 0.0, end, 1.0) for end in (0, 3 * 10**9)] == [1.0, 0.0]
    assert math.isclose(utility_part(job.utility, 0.0, 4, HOUR), 0.5)
