"""`planner storage`: the page, the JSON document, and what cannot be served."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run, write_document
from tests.storage.test_demand import instance


@pytest.fixture
def document() -> dict[str, Any]:
    """The instance of the demand tests as a document."""
    content: dict[str, Any] = instance().model_dump(mode="json", exclude_none=True)
    return content


@pytest.fixture
def file(document: dict[str, Any], tmp_path: Path) -> Path:
    """The same in a file."""
    return write_document(tmp_path / "tonight.json", document)


def test_the_page(run: Run, file: Path) -> None:
    """At 0.01 an hour for a MB/s the 100 GB of images cost 0.1 and save 1; the 10 GB of texts 0.01 and save 0.05."""
    result = run("storage", file)
    assert result.exit_code == 0
    assert "cost        0.11 USD/h (cache 0.11, bandwidth 0.00), 1.32 USD for 12 h" in result.stdout
    assert "no caching is cheaper" in result.stdout
    for rule in ("all_bandwidth", "uniform", "greedy_pool", "threshold_shared"):
        assert rule in result.stdout


def test_the_document(run: Run, file: Path) -> None:
    found = json.loads(run("storage", file, "--json").stdout)
    (site,) = found["sites"]
    assert (found["modes"], found["whole"], found["jobs_left_out"]) == ("cheapest", False, [])
    assert {d["dataset"]: d["cached"] for d in site["datasets"]} == {"texts": 1.0, "images": 1.0}
    assert site["cost_per_hour"] == pytest.approx(0.11)
    assert site["cost"] == pytest.approx(0.11 * 12)
    assert site["is_proven"] is True
    assert [line["cached_gb"] for line in site["curve"]] == [0.0, 100.0, 110.0]
    costs = {other["name"]: other["cost_per_hour"] for other in site["baselines"]}
    assert costs["all_bandwidth"] == pytest.approx(1.05)
    assert all(cost >= 0.11 - 1e-9 for cost in costs.values())


def test_whole_datasets_only(run: Run, document: dict[str, Any], tmp_path: Path) -> None:
    """A cache of 105 GB takes half of the texts, or all of the images alone."""
    document["sites"][0]["storage"]["cache_capacity"] = 105.0
    path = write_document(tmp_path / "small.json", document)
    parts = json.loads(run("storage", path, "--json").stdout)["sites"][0]
    whole = json.loads(run("storage", path, "--json", "--whole").stdout)["sites"][0]
    assert {d["dataset"]: d["cached"] for d in parts["datasets"]} == {"texts": 0.5, "images": 1.0}
    assert {d["dataset"]: d["cached"] for d in whole["datasets"]} == {"texts": 0.0, "images": 1.0}
    assert parts["marginal"]["cache_gb"] == pytest.approx(0.005 - 0.001)


def test_modes_of_a_plan(run: Run, file: Path, tmp_path: Path) -> None:
    assert run("plan", file, "--out", tmp_path / "plan", "--quiet").exit_code == 0
    found = json.loads(run("storage", file, "--plan", tmp_path / "plan", "--json").stdout)
    assert found["modes"] == "plan"
    assert found["sites"][0]["site"] == "here"


def test_too_little_bandwidth_is_infeasible(run: Run, document: dict[str, Any], tmp_path: Path) -> None:
    document["sites"][0]["storage"] |= {"bandwidth_cap": 90.0, "cache_capacity": 0.0}
    path = write_document(tmp_path / "narrow.json", document)
    result = run("storage", path, "--json")
    assert result.exit_code == 4
    assert "105 MB/s, and 90 MB/s are sold" in json.dumps(json.loads(result.stdout))


def test_nothing_to_read(run: Run, document: dict[str, Any], tmp_path: Path) -> None:
    document["jobs"] = [job for job in document["jobs"] if not job.get("dataset")]
    result = run("storage", write_document(tmp_path / "dry.json", document))
    assert result.exit_code == 0
    assert "nothing to cache" in result.stdout


def test_a_hostile_name_stays_text(run: Run, document: dict[str, Any], tmp_path: Path) -> None:
    name = "[red]\\x1b images"
    document["datasets"][1]["id"] = name
    for job in document["jobs"][:2]:
        job["dataset"] = name
    result = run("storage", write_document(tmp_path / "hostile.json", document))
    assert name in result.stdout
