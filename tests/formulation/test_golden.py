"""The rows of each case are those of its LP file, and the file has the optimum that was computed by hand."""

from __future__ import annotations

import highspy
import pytest

from models.formulation import build
from tests.formulation.cases import CASES, OPTIMA
from tests.formulation.golden import FOLDER, lp_text, path_of

MOST_LINES = 120


@pytest.mark.parametrize("name", CASES)
def test_the_model_is_that_of_the_file(name: str) -> None:
    text = lp_text(CASES[name])
    assert len(text.splitlines()) < MOST_LINES
    assert text == path_of(name).read_text(encoding="utf-8"), "python -m tests.formulation.golden --write"


def test_every_file_has_a_case() -> None:
    assert {path.stem for path in FOLDER.glob("*.lp")} == set(CASES)


def test_every_constraint_has_rows_in_some_file() -> None:
    text = "".join(path_of(name).read_text(encoding="utf-8") for name in CASES)
    missing = [rule.__name__ for rule in build.CONSTRAINTS if f"_{rule.__name__}(" not in text]
    assert missing == []


@pytest.mark.parametrize("name", CASES)
def test_the_file_has_the_optimum_computed_by_hand(name: str) -> None:
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    assert highs.readModel(str(path_of(name))) == highspy.HighsStatus.kOk
    highs.run()
    assert highs.getModelStatus() == highspy.HighsModelStatus.kOptimal
    assert highs.getInfo().objective_function_value == pytest.approx(OPTIMA[name], abs=1e-6)
