"""Plans are written the same each time, read back the same, and their tables are safe to open."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from models.domain import COST_TERMS, Instance, Plan
from models.errors import InvalidInput
from planner.io.files import CannotWrite
from planner.io.plans import harmless, plan_bytes, read_plan, write_plan_folder
from tests.io.reading import check_words

START = "2026-01-12T18:00:00+01:00"


def _instance(job: str = "j", pool: str = "p") -> Instance:
    return Instance.model_validate(
        {
            "currency": "USD", "start": START, "slot": 3600, "horizon": 36000,
            "sites": [{"id": "dc", "kind": "on_prem"}, {"id": "sky", "kind": "cloud"}],
            "pools": [{"id": pool, "site": "sky", "gpu": "g", "gpus_per_node": 4, "nodes": 3, "price": 2}],
            "datasets": [{"id": "=d", "size": 100, "home": "dc"}],
            "jobs": [{"id": job, "due": 7200, "modes": [{"gpu": "g", "gpus": 8, "duration": 7200}]}],
        }
    )  # fmt: skip


def _plan(instance: Instance) -> Plan:
    job, pool = instance.jobs[0].id, instance.pools[0].id
    places = [{"node": 0, "gpus": [0, 1, 2, 3]}, {"node": 2, "gpus": [0, 1, 2, 3]}]
    segment = {
        "mode": f"8x{pool}", "pool": pool, "start_slot": 1, "end_slot": 3, "start": instance.instant(1),
        "end": instance.instant(3), "places": places, "slices": 1,
    }  # fmt: skip
    on = {
        "pool": pool,
        "start_slot": 1,
        "end_slot": 3,
        "start": instance.instant(1),
        "end": instance.instant(3),
        "cost": 4.0,
    }
    return Plan.model_validate(
        {
            "instance": instance.name, "instance_hash": instance.content_hash, "currency": "USD",
            "start": START,
            "slot_s": 3600, "num_slots": 10, "status": "feasible", "engine": "fifo", "seed": 1,
            "versions": {"python": "3", "burstplan": "0"}, "cost": 9.0, "dual_bound": None, "gap": None,
            "costs": {"tardiness": 1.0, "rental": 8.0, "node_hours": 0.1 + 0.2},
            "runs": [{"job": job, "segments": [segment], "completion": instance.instant(3),
                      "tardiness_h": 1.0}],
            "nodes_on": [{**on, "node": 0}, {**on, "node": 2}],
            "cached": [{"site": "dc", "dataset": "=d", "fraction": 0.5}],
            "bandwidth": [{"site": "dc", "mb_s": 150.0}],
        }
    )  # fmt: skip


def _rows(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"), newline="")))


def test_a_plan_comes_back_the_same(tmp_path: Path) -> None:
    instance = _instance()
    plan = _plan(instance)
    write_plan_folder(plan, instance, tmp_path / "p")
    assert read_plan(tmp_path / "p") == plan
    assert read_plan(tmp_path / "p" / "plan.json") == plan
    names = sorted(path.name for path in (tmp_path / "p").iterdir())
    assert names == ["assignments.csv", "plan.json", "rentals.csv", "storage.csv"]


def test_equal_plans_give_equal_bytes() -> None:
    plan = _plan(_instance())
    mixed = plan.model_copy(
        update={
            "costs": dict(reversed(plan.costs.items())),
            "versions": dict(reversed(plan.versions.items())),
        }
    )
    data = plan_bytes(plan)
    assert plan_bytes(mixed) == data
    assert data.endswith(b"}\n")
    document = json.loads(data)
    assert list(document["costs"]) == [term for term in COST_TERMS if term in plan.costs]
    assert list(document["versions"]) == ["burstplan", "python"]
    assert document["costs"]["node_hours"] == 0.1 + 0.2


def test_the_tables_say_what_the_plan_says(tmp_path: Path) -> None:
    instance = _instance()
    write_plan_folder(_plan(instance), instance, tmp_path / "p")
    (run,) = _rows(tmp_path / "p" / "assignments.csv")
    assert run == {
        "job": "j", "segment": "1", "segments": "1", "mode": "8xp", "pool": "p", "site": "sky", "kind": "cloud",
        "nodes": "0;2", "gpus": "0 1 2 3;0 1 2 3", "speed": "1.0", "cached": "0.0",
        "start": "2026-01-12T19:00:00+01:00", "end": "2026-01-12T21:00:00+01:00",
        "due": "2026-01-12T20:00:00+01:00", "completion": "2026-01-12T21:00:00+01:00", "tardiness_h": "1.0",
    }  # fmt: skip
    rentals = _rows(tmp_path / "p" / "rentals.csv")
    assert [(row["node"], row["hours"], row["billed_hours"], row["cost"]) for row in rentals] == [
        ("0", "2.0", "2.0", "4.0"),
        ("2", "2.0", "2.0", "4.0"),
    ]
    bandwidth, cache = _rows(tmp_path / "p" / "storage.csv")
    assert (bandwidth["item"], bandwidth["mb_s"], bandwidth["kind"]) == ("bandwidth", "150.0", "on_prem")
    assert (cache["dataset"], cache["fraction"], cache["size_gb"]) == ("'=d", "0.5", "100.0")


def test_a_run_of_several_segments_has_a_row_for_each(tmp_path: Path) -> None:
    instance = _instance()
    plan = _plan(instance)
    (run,) = plan.runs
    last = {"start_slot": 4, "end_slot": 5, "start": instance.instant(4), "end": instance.instant(5)}
    segments = (run.segments[0], run.segments[0].model_copy(update={**last, "places": run.segments[0].places[:1]}))
    longer = run.model_copy(update={"segments": segments, "completion": instance.instant(5), "tardiness_h": 3.0})
    changed = plan.model_copy(update={"runs": (longer,)})
    write_plan_folder(changed, instance, tmp_path / "p")
    assert read_plan(tmp_path / "p") == changed
    rows = _rows(tmp_path / "p" / "assignments.csv")
    columns = ("job", "segment", "segments", "nodes", "start", "end")
    assert [tuple(row[column] for column in columns) for row in rows] == [
        ("j", "1", "2", "0;2", instance.instant(1), instance.instant(3)),
        ("j", "2", "2", "0", instance.instant(4), instance.instant(5)),
    ]
    assert {(row["due"], row["completion"]) for row in rows} == {(instance.instant(2), instance.instant(5))}
    assert [row["tardiness_h"] for row in rows] == ["", "3.0"], "a sum over the rows counts it once"


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@x", '=HYPERLINK("x")'])
def test_names_never_become_formulas(tmp_path: Path, name: str) -> None:
    instance = _instance(name, name)
    plan = _plan(instance)
    write_plan_folder(plan, instance, tmp_path / "p")
    for table in ("assignments.csv", "rentals.csv"):
        for row in _rows(tmp_path / "p" / table):
            assert not [cell for cell in row.values() if cell[:1] in tuple("=+-@\t\r")]
    assert read_plan(tmp_path / "p").runs[0].job == name


def test_billed_hours_are_whole_blocks_and_explain_the_cost(tmp_path: Path) -> None:
    instance = _instance()
    pool = instance.pools[0].model_copy(update={"billing_increment": 3 * 3600.0})
    instance = instance.model_copy(update={"pools": (pool,)})
    plan = _plan(instance)
    paid = tuple(on.model_copy(update={"cost": 6.0}) for on in plan.nodes_on)
    write_plan_folder(plan.model_copy(update={"nodes_on": paid}), instance, tmp_path / "p")
    for row in _rows(tmp_path / "p" / "rentals.csv"):
        assert (row["hours"], row["billed_hours"]) == ("2.0", "3.0")
        assert float(row["billed_hours"]) * pool.price == float(row["cost"])


def test_numbers_stay_numbers() -> None:
    assert harmless(-1.5) == -1.5
    assert harmless(None) == ""
    assert harmless("\tx") == "'\tx"


def test_an_older_plan_is_replaced_and_other_folders_are_not(tmp_path: Path) -> None:
    instance = _instance()
    plan = _plan(instance)
    write_plan_folder(plan, instance, tmp_path / "p", extra={"report.html": b"x"})
    newer = plan.model_copy(update={"seed": 2})
    write_plan_folder(newer, instance, tmp_path / "p", extra={"report.html": b"y"})
    assert read_plan(tmp_path / "p").seed == 2
    assert (tmp_path / "p" / "report.html").read_bytes() == b"y"
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "notes").write_text("mine")
    with pytest.raises(CannotWrite, match="not empty"):
        write_plan_folder(plan, instance, tmp_path / "home")
    (tmp_path / "p" / "notes").write_text("mine")
    with pytest.raises(CannotWrite, match="other things"):
        write_plan_folder(plan, instance, tmp_path / "p", extra={"report.html": b"z"})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home", "p"]


@pytest.mark.parametrize(
    ("change", "where", "problem"),
    [
        ({"cost": "much"}, "cost", "is not a number"),
        ({"cost": float("nan")}, "cost", "is not a finite number"),
        ({"seed": 1.5}, "seed", "is not a whole number"),
        ({"runs": None}, "runs", "is empty"),
        ({"status": "perfect"}, "status", "is not optimal or feasible or interrupted"),
        ({"format": "burstplan-plan/9"}, "format", "is not burstplan-plan/1"),
        ({"colour": 1}, "colour", "is not a field of a Plan"),
        ({"costs": {"rental": "x"}}, "costs.rental", "is not a number"),
        ({"runs": [{"job": "j", "segments": [{}]}]}, "runs[0].completion", "is missing"),
    ],
)
def test_faulty_plans_are_refused_with_words(tmp_path: Path, change: dict[str, Any], where: str, problem: str) -> None:
    document = json.loads(plan_bytes(_plan(_instance()))) | change
    (tmp_path / "plan.json").write_text(json.dumps(document, indent=1))
    with pytest.raises(InvalidInput) as caught:
        read_plan(tmp_path)
    check_words(caught.value)
    assert (where, problem) in [(fault.location, fault.problem) for fault in caught.value.faults]


@pytest.mark.parametrize("text", ["", "[]", "{", '{"a": 1, "a": 2}', "nul", "[" * 100_000])
def test_files_that_are_no_plan(tmp_path: Path, text: str) -> None:
    (tmp_path / "plan.json").write_text(text)
    with pytest.raises(InvalidInput) as caught:
        read_plan(tmp_path)
    check_words(caught.value)


def test_a_folder_without_a_plan(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="does not exist"):
        read_plan(tmp_path)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_mutated_plans_are_read_or_refused(tmp_path: Path, data: st.DataObject) -> None:
    text = plan_bytes(_plan(_instance())).decode()
    begin = data.draw(st.integers(0, len(text)))
    end = begin + data.draw(st.integers(0, 9))
    piece = data.draw(
        st.sampled_from(["", "1", '"x"', "null", "-1e999", "{}", "[", "true", "9" * 40]) | st.text(max_size=3)
    )
    (tmp_path / "plan.json").write_bytes((text[:begin] + piece + text[end:]).encode("utf-8", errors="surrogatepass"))
    try:
        read_plan(tmp_path)
    except InvalidInput as error:
        check_words(error)
