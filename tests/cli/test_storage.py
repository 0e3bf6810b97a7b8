"""`planner storage`: the page, the JSON document, and what cannot be served."""

from __future__ import annotations

import json
import re
from dataclasses import replace
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


def test_rules_are_whole_where_the_optimum_is(run: Run, document: dict[str, Any], tmp_path: Path) -> None:
    """A tenth of what is cached of texts and images would be cheaper than either alone: no rule may do so."""
    document["sites"][0]["storage"]["cache_capacity"] = 105.0
    path = write_document(tmp_path / "small.json", document)
    site = json.loads(run("storage", path, "--json", "--whole").stdout)["sites"][0]
    for other in site["baselines"]:
        assert set(other["cached"].values()) <= {1.0}
        assert other["more"] == pytest.approx(other["cost_per_hour"] / site["cost_per_hour"] - 1)
        assert other["more"] >= 0
    by_name = {other["name"]: other["cached"] for other in site["baselines"]}
    assert (by_name["all_cache"], by_name["uniform"]) == ({"texts": 1.0}, {"texts": 1.0})
    parts = json.loads(run("storage", path, "--json").stdout)["sites"][0]["baselines"]
    assert any(0 < part < 1 for other in parts for part in other["cached"].values())
    said = run("storage", path, "--whole").stdout
    assert "no whole caching is cheaper" in said
    assert "everything cached, as listed" in said


def test_a_rule_that_is_cheaper_is_said_to_be(run: Run, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It cannot be: if it were, the page would not hide it."""
    import planner.storage

    true = planner.storage.baseline

    def cheaper(*args: Any, **options: Any) -> Any:
        found = true(*args, **options)
        return None if found is None else replace(found, cache_cost=found.cache_cost - 0.011)

    monkeypatch.setattr(planner.storage, "baseline", cheaper)
    assert "-10.00 %" in run("storage", file).stdout


@pytest.fixture
def elsewhere(document: dict[str, Any], tmp_path: Path) -> Path:
    """The same with the images at home there, from where a GB costs 0.03."""
    document["datasets"][1]["home"] = "there"
    document["network"].append({"source": "there", "target": "here", "price": 0.03, "bandwidth": 150.0})
    return write_document(tmp_path / "elsewhere.json", document)


def test_transfers(run: Run, elsewhere: Path) -> None:
    """100 GB are copied for 3, and both readers would read 720 GB each for 21.6: spread over 12 hours."""
    site = json.loads(run("storage", elsewhere, "--json").stdout)["sites"][0]
    images = site["datasets"][1]
    assert (images["copy_per_hour"], images["reading_across_per_hour"]) == pytest.approx((3 / 12, 43.2 / 12))
    assert site["transfer_cost_per_hour"] == pytest.approx(3 / 12)
    assert site["cost_per_hour"] == pytest.approx(0.11 + 3 / 12)
    assert site["cost"] == pytest.approx(0.11 * 12 + 3)
    rules = {other["name"]: other["transfer_cost_per_hour"] for other in site["baselines"]}
    assert rules["all_bandwidth"] == pytest.approx(43.2 / 12)
    said = run("storage", elsewhere).stdout
    assert "transfers 0.25, spread over 12 h" in said
    assert "from there 0 MB/s of 150" in said


NUMBER = re.compile(r"-?[0-9][0-9,.]*(?:e[+-]?[0-9]+)?")


@pytest.mark.parametrize("price", [0.01, 1e13])
def test_narrow_pages_break_no_number(
    run: Run, elsewhere: Path, document: dict[str, Any], price: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every number of a narrow page is one of the wide page."""
    document["sites"][0]["storage"] |= {"tariff": [{"per_mb_s": price}], "cache_capacity": 123456.789}
    document["datasets"][0] |= {"size": 98765.4321, "id": "texts of the whole library"}
    document["jobs"][2]["dataset"] = "texts of the whole library"
    path = write_document(elsewhere, document)
    said = {}
    for width in (200, 40):
        monkeypatch.setenv("COLUMNS", str(width))
        said[width] = run("storage", path).stdout
    wide, narrow = said[200], said[40]
    assert max(map(len, narrow.splitlines())) <= 40
    assert set(NUMBER.findall(narrow)) <= set(NUMBER.findall(wide))
    for table in ("Datasets", "Other rules", "Cost of caching"):
        assert table in narrow
    assert "no room for: readers; MB/s per GB" in narrow


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


@pytest.mark.parametrize("has_jobs", [True, False])
def test_nothing_is_read(run: Run, document: dict[str, Any], tmp_path: Path, has_jobs: bool) -> None:
    document["jobs"] = [job for job in document["jobs"] if has_jobs and not job.get("dataset")]
    path = write_document(tmp_path / "dry.json", document)
    result = run("storage", path)
    assert result.exit_code == 0
    assert "nothing is read" in result.stdout
    assert json.loads(run("storage", path, "--json").stdout)["sites"] == []


def test_a_hostile_name_stays_text(run: Run, document: dict[str, Any], tmp_path: Path) -> None:
    name = "[red]\\x1b images"
    document["datasets"][1]["id"] = name
    for job in document["jobs"][:2]:
        job["dataset"] = name
    result = run("storage", write_document(tmp_path / "hostile.json", document))
    assert name in result.stdout


def test_modes_by_a_rule_and_of_a_plan_contradict_each_other(run: Run, tmp_path: Path) -> None:
    told = run("storage", tmp_path / "any.yaml", "--modes", "fastest", "--plan", tmp_path / "plan")
    assert told.exit_code == 2
    assert "--plan" in told.stderr
