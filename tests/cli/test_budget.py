"""`planner plan` with a budget or for welfare, and `planner frontier`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run, write_document
from tests.documents import HOUR
from tests.engines.samples import instance_of, mode
from tests.test_frontier import two_jobs


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Two jobs on a node that is owned and one that is rented."""
    return write_document(tmp_path / "two.json", two_jobs().model_dump(mode="json", exclude_none=True))


def test_welfare_within_a_budget(run: Run, file: Path, tmp_path: Path) -> None:
    """Both in time take the rented node, for 4; with less than that one of them waits, and its worth is lost."""
    ample = json.loads(run("plan", file, "--objective", "welfare", "--budget", "6", "--json").stdout)
    assert (ample["welfare"], ample["welfare_bound"]) == (pytest.approx(17.0), pytest.approx(17.0, abs=0.01))
    assert ample["status"] == "optimal"
    assert run("plan", file, "--objective", "welfare", "--budget", "3.5 USD", "--out", tmp_path / "plan").exit_code == 0
    shown = run("show", tmp_path / "plan").stdout
    assert "10.00 USD" in shown
    assert "of 3.50 USD" in shown
    assert run("check", file, tmp_path / "plan").exit_code == 0


def test_cost_within_a_budget(run: Run, file: Path) -> None:
    result = run("plan", file, "--budget", "3.5")
    assert result.exit_code == 0
    assert "spent       2.00 USD of 3.50 USD" in result.stdout
    assert "cost        17.00 USD" in result.stdout


def test_a_budget_below_the_cheapest_plan(run: Run, file: Path) -> None:
    result = run("plan", file, "--budget", "1.5", "--json")
    assert result.exit_code == 4
    assert "2 USD is enough instead of 1.5" in result.stdout


@pytest.mark.parametrize("budget", ["-1", "much", "5 EUR", "nan"])
def test_what_is_no_budget(run: Run, file: Path, budget: str) -> None:
    result = run("plan", file, "--budget", budget)
    assert result.exit_code == 2
    assert "--budget" in result.stderr


def test_no_worth_no_welfare(run: Run, instance_file: Path) -> None:
    result = run("plan", instance_file, "--objective", "welfare")
    assert result.exit_code == 3
    assert "give jobs a value or a utility" in result.stderr


def test_the_frontier(run: Run, file: Path) -> None:
    arguments = ("frontier", file, "--objective", "welfare", "--budgets", "1,2,5,6", "--time-limit", "20")
    page = run(*arguments).stdout
    assert "below the cheapest plan" in page
    rows = json.loads(run(*arguments, "--json").stdout)["rows"]
    assert [row["is_infeasible"] for row in rows] == [True, False, False, False]
    assert [row["value"] for row in rows] == [None, 10.0, 17.0, 17.0]
    assert (rows[0]["tardiness_h"], rows[0]["rejected"]) == (None, None)


def test_a_narrow_page_breaks_no_number(run: Run, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = ("frontier", file, "--budgets", "2,5,5,1000000", "--time-limit", "20")
    monkeypatch.setenv("COLUMNS", "40")
    page = run(*arguments).stdout
    assert "1,000,000.00" in page
    assert page.count("5.00 ") == 1
    assert "no room for:" in page


def test_fixed_gpus(run: Run, instance_file: Path, tmp_path: Path) -> None:
    """The plan says so, is one of the instance itself, and is not shown as a bound on all plans."""
    result = run("plan", instance_file, "--fixed-gpus", "smallest", "--out", tmp_path / "plan")
    assert result.exit_code == 0
    assert "as in each job's smallest mode" in result.stdout
    assert "no plan with these GPUs can cost less" in result.stdout
    assert run("check", instance_file, tmp_path / "plan").exit_code == 0
    told = json.loads(run("plan", instance_file, "--fixed-gpus", "fastest", "--json").stdout)
    assert told["fixed_gpus"] == "fastest"


def test_the_frontier_of_a_hopeless_instance(run: Run, tmp_path: Path) -> None:
    job = {"deadline": HOUR, "modes": [mode(1.0, 1, "own")]}
    instance = instance_of([job, job], pools__0__gpus_per_node=1, pools__0__nodes=1)
    file = write_document(tmp_path / "late.json", instance.model_dump(mode="json", exclude_none=True))
    assert run("frontier", file, "--time-limit", "10").exit_code == 4


def test_the_frontier_says_what_the_cheapest_spends(run: Run, file: Path) -> None:
    page = run("frontier", file, "--points", "3", "--time-limit", "20").stdout
    assert "the cheapest plan found spends 2.00 USD; no plan spends less than 2.00 USD" in page
    assert "a cheaper one may exist" not in page


def test_options_that_contradict_each_other_are_told(run: Run, file: Path) -> None:
    told = run("frontier", file, "--points", "3", "--budgets", "1,2")
    assert told.exit_code == 2
    assert "--budgets" in told.stderr


def test_a_frontier_at_fixed_gpus_says_so_where_nothing_is_feasible(run: Run, tmp_path: Path) -> None:
    job = {"deadline": HOUR, "modes": [mode(1.0, 1, "own")]}
    instance = instance_of([job, job], pools__0__gpus_per_node=1, pools__0__nodes=1)
    file = write_document(tmp_path / "late.json", instance.model_dump(mode="json", exclude_none=True))
    failed = run("frontier", file, "--fixed-gpus", "fastest", "--time-limit", "10")
    assert failed.exit_code == 4
    assert "GPUs of each job fixed as in its fastest mode" in failed.stderr


def test_what_is_wrong_with_an_option_is_told_in_plain_words(run: Run, file: Path) -> None:
    told = run("plan", file, "--fixed-gpus", "bogus").stderr
    assert "'bogus' is not one of" in told
    assert "Value error" not in told
    told = run("plan", file, "--budget", "5 USD/h").stderr
    assert "'USD/h' is not a unit of money" in told
