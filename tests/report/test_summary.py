"""The page of a plan and its tables."""

from __future__ import annotations

import io
import json

import pytest
from rich.console import Console

from planner.report.canvas import Canvas
from planner.report.facts import Facts
from planner.report.summary import details, jobs_sentence, summary
from planner.report.tables import job_table, node_table, storage_table
from tests.report.samples import changed_runs, sample_instance, sample_plan, segment


def printed(renderables: object, width: int = 100) -> str:
    stream = io.StringIO()
    console = Console(file=stream, width=width, color_system=None, markup=False, emoji=False, highlight=False)
    for renderable in renderables:  # type: ignore[attr-defined]
        console.print(renderable, crop=False)
    return stream.getvalue()


def test_facts_count_late_rejected_and_burst() -> None:
    instance = sample_instance()
    facts = Facts(sample_plan(instance), instance)
    document = facts.document()
    assert (document["jobs"], document["late_jobs"], document["rejected_jobs"], document["burst_jobs"]) == (
        4,
        1,
        1,
        1,
    )
    assert facts.late == ("gamma",)
    assert facts.burst == ("beta",)
    assert Facts(sample_plan(instance)).document()["burst_jobs"] is None
    json.dumps(document, allow_nan=False)


def test_summary_says_cost_gap_bound_and_who_suffers() -> None:
    instance = sample_instance()
    text = printed(summary(Facts(sample_plan(instance), instance), Canvas(100), 1.25, "plans/x", ["a note"]))
    for part in (
        "26.00 USD",
        "3.85 %: no plan can cost less than 25.00 USD",
        "fast, 1.2 s, seed 3",
        "4 (1 late, 1 rejected, 1 burst to rented nodes)",
        "late: gamma (by 30 min)",
        "rejected: delta",
        "written to  plans/x",
        "rental",
        "61.54 %",
        "nothing for energy",
        "note: a note",
    ):
        assert part in text, part


def test_an_unknown_bound_is_said_to_be_unknown() -> None:
    plan = sample_plan(sample_instance(), dual_bound=None, gap=None)
    assert "unknown: no lower bound was found" in printed(summary(Facts(plan), Canvas(100)))


@pytest.mark.parametrize("view", ["pool", "job", "node"])
def test_details_name_every_job_or_node_with_or_without_instance(view: str) -> None:
    instance = sample_instance()
    plan = sample_plan(
        instance,
        cached=[{"site": "home", "dataset": "images", "fraction": 0.5}],
        bandwidth=[{"site": "home", "mb_s": 150.0}],
    )
    for known in (instance, None):
        text = printed(details(Facts(plan, known), Canvas(100), view))  # type: ignore[arg-type]
        assert "images (50.00 %)" in text
        assert "150 MB/s" in text
        assert "highspy 1.16.0" in text
        assert ("give --instance" in text) == (known is None)


def test_job_table_has_a_line_for_each_segment_and_each_rejected_job() -> None:
    instance = sample_instance()
    stretches = [segment("owned", 0, 2), segment("burst", 4, 6, gpus=(2, 3)) | {"speed": 0.5, "cached": 1.0}]
    runs = [{"job": "alpha", "segments": stretches, "completion": "", "tardiness_h": 2.0}]
    text = printed([job_table(Facts(sample_plan(instance, runs=runs), instance), Canvas(160))], 160)
    assert "2xA100 at 0.5" in text
    assert "0:2-3" in text
    assert text.count("late by 2 h") == 1
    assert "reads 100.00 % from cache" in text
    assert "delta" in text
    assert "rejected" in text


def test_a_job_that_changes_is_counted_once() -> None:
    instance = sample_instance()
    facts = Facts(sample_plan(instance, runs=changed_runs()), instance)
    assert (facts.late, facts.burst, facts.changed) == (("alpha",), ("alpha",), ("alpha",))
    assert jobs_sentence(facts) == "4 (1 late, 1 rejected, 1 burst to rented nodes, 1 changed as they run)"
    assert [facts.document()[f"{what}_jobs"] for what in ("late", "rejected", "burst")] == [1, 1, 1]
    assert facts.document()["jobs"] == 4
    assert jobs_sentence(Facts(sample_plan(instance))) == "4 (1 late, 1 rejected)"


def test_job_table_names_a_job_that_changes_once() -> None:
    instance = sample_instance()
    facts = Facts(sample_plan(instance, runs=changed_runs()), instance)
    lines = printed([job_table(facts, Canvas(160))], 160).splitlines()
    at = next(k for k, line in enumerate(lines) if line.startswith("alpha"))
    first, second, third, after = lines[at : at + 4]
    assert not second.startswith("alpha")
    assert "after a pause of 1 h, burst" in second
    assert "late by 2 h" in third
    assert ["12 Jan 22:10" in line for line in (first, second, third)] == [False, False, True], "when it is due"
    assert after.startswith(("gamma", "beta"))
    assert sum(line.startswith("alpha") for line in lines) == 1


def test_a_run_without_segments_is_told_not_hidden() -> None:
    instance = sample_instance()
    runs = [{"job": "alpha", "segments": [], "completion": "", "tardiness_h": 0.0}]
    for known in (instance, None):
        facts = Facts(sample_plan(instance, runs=runs), known)
        text = printed([job_table(facts, Canvas(120))], 120)
        assert "has no segment" in next(line for line in text.splitlines() if line.startswith("alpha"))
        for view in ("pool", "node", "job"):
            assert printed(details(facts, Canvas(100), view))  # type: ignore[arg-type]


def test_node_table_joins_nodes_with_the_same_times() -> None:
    on = [
        {"pool": "owned", "node": node, "start_slot": 0, "end_slot": 8, "start": "", "end": "", "cost": 1.5}
        for node in (0, 1, 2, 5)
    ]
    text = printed([node_table(Facts(sample_plan(sample_instance(), nodes_on=on)), Canvas(100))])
    assert "0-2,5" in text
    assert "6.00" in text


def test_no_storage_no_table() -> None:
    assert storage_table(Facts(sample_plan(sample_instance())), Canvas(100)) is None


def test_names_are_whole_in_narrow_tables_and_never_markup() -> None:
    names = ("[bold red]markup[/]", "x" * 90, ":smile: \x9b31m", "delta")
    instance = sample_instance("a", "b", "c", "delta")
    plan = sample_plan(instance)
    runs = [run.model_copy(update={"job": name}) for run, name in zip(plan.runs, names, strict=False)]
    facts = Facts(plan.model_copy(update={"runs": tuple(runs)}), instance)
    text = printed(details(facts, Canvas(100), "job"))
    assert "[bold red]markup[/]" in text
    assert "\x9b" not in text
    assert ":smile:" in text
    folded = printed([job_table(facts, Canvas(60))], 60)
    assert sum(line.count("x") for line in folded.splitlines()) >= 90
