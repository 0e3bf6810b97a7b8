"""Each bad input of the corpus gives exactly the faults that are written in expected_faults.csv."""

from __future__ import annotations

import csv
from collections import defaultdict
from pathlib import Path

import pytest

from tests.io.reading import faults_of

HERE = Path(__file__).parent
BAD = HERE / "bad"
PREFIX_ONLY = {"billion_laughs.yaml"}
"""Of these only the first faults are listed."""


def _expected() -> dict[str, list[dict[str, str]]]:
    cases: dict[str, list[dict[str, str]]] = defaultdict(list)
    with open(HERE / "expected_faults.csv", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            cases[row["case"]].append(row)
    return dict(cases)


EXPECTED = _expected()


def test_the_table_and_the_files_are_the_same() -> None:
    assert {path.name for path in BAD.iterdir()} == set(EXPECTED)
    assert len(EXPECTED) >= 90


@pytest.mark.parametrize("name", EXPECTED)
def test_every_fault_is_reported_where_it_is_and_with_a_mend(name: str) -> None:
    faults = faults_of(BAD / name)
    expected = EXPECTED[name]
    if name not in PREFIX_ONLY:
        assert len(faults) == len(expected), [str(fault) for fault in faults]
    for fault, row in zip(faults, expected, strict=name not in PREFIX_ONLY):
        place = str(BAD / name)
        if row["where"]:
            place += ("/" if (BAD / name).is_dir() else " ") + row["where"]
        assert fault.where == place
        assert fault.location == row["field"]
        assert row["problem"] in fault.problem
        assert row["mend"] in str(fault.mend)


def test_ten_faults_in_three_files_come_in_one_report_in_order() -> None:
    faults = faults_of(BAD / "ten_faults_in_three_files")
    assert len(faults) >= 10
    files = [Path(str(fault.where).split(" ")[0]).name for fault in faults]
    assert list(dict.fromkeys(files)) == ["instance.yaml", "pools.csv", "jobs.csv"]
    rows = [int(str(f.where).rsplit(" ", 1)[1]) for f in faults if "jobs.csv" in str(f.where)]
    assert rows == sorted(rows)


def test_a_cycle_is_shown() -> None:
    (fault,) = faults_of(BAD / "cycle_of_three.yaml")
    assert fault.value == "a -> b -> c -> a"


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [
        ("unknown_site.yaml", "did you mean cloud?"),
        ("unknown_gpu.yaml", "did you mean A100?"),
        ("field_misspelt.yaml", "did you mean weight?"),
        ("kind_misspelt.yaml", "did you mean on_prem?"),
        ("csv_unknown_column", "did you mean weight?"),
        ("folder_with_stranger", "did you mean jobs.csv?"),
    ],
)
def test_misspelt_names_get_a_suggestion(name: str, suggestion: str) -> None:
    assert suggestion in [fault.mend for fault in faults_of(BAD / name)]
