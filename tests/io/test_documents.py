"""YAML and JSON as plain Python: what is text, what is a number, and in which line it stands."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from models.errors import InvalidInput
from planner.io import documents, instances
from planner.io.collecting import no_collection
from planner.io.documents import load_json, load_yaml, locate_json, plain_scalar
from planner.io.instances import yaml_bytes


@pytest.mark.parametrize(
    "text",
    [
        *(
            "1:30",
            "12:30:45",
            "no",
            "No",
            "off",
            "yes",
            "on",
            "y",
            "08",
            "007",
            "0x1F",
            "0o17",
            "1_000",
            "+5",
            "-0",
        ),
        *(
            "2026-01-12",
            "2026-01-12T18:00:00Z",
            "NaN",
            "inf",
            "Infinity",
            "1e",
            "e3",
            ".",
            "--",
            "1.2.3",
            "tRUE",
            "<<",
            "=",
        ),
        "1" * 101,
    ],
)
def test_what_looks_like_something_else_stays_text(text: str) -> None:
    assert plain_scalar(text) == text
    assert load_yaml(f"a: {text}\n", "f").value == {"a": text}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(("true", True), ("False", False), ("null", None), ("~", None), ("", None)),
        *(("0", 0), ("-5", -5), ("12", 12), ("12345678901234567890", 12345678901234567890)),
        *(("1e3", 1000.0), ("1E-3", 0.001), ("0.5", 0.5), (".5", 0.5), ("5.", 5.0), ("-1.5e+2", -150.0)),
        (".inf", float("inf")),
    ],
)
def test_plain_scalars_are_those_of_json(text: str, value: Any) -> None:
    found = load_yaml(f"a: {text}\n", "f").value["a"]
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize("text", ["'5'", '"true"', "'null'", '"1e3"'])
def test_quoted_scalars_are_text(text: str) -> None:
    assert load_yaml(f"a: {text}\n", "f").value == {"a": text[1:-1]}


def test_every_entry_has_its_line() -> None:
    document = load_yaml("a: 1\nb:\n  - c: 2\n    d: [3,\n      4]\n  - {e: 5}\n", "f")
    assert document.value == {"a": 1, "b": [{"c": 2, "d": [3, 4]}, {"e": 5}]}
    lines = {("a",): 1, ("b",): 2, ("b", 0): 3, ("b", 0, "d"): 4, ("b", 0, "d", 1): 5, ("b", 1, "e"): 6}
    assert {path: document.line(path) for path in lines} == lines
    assert document.line(("b", 0, "nothing", 7)) == 3
    assert document.line(("nothing",)) is None


def test_lines_of_records_in_one_line_and_in_several() -> None:
    document = load_yaml("a: {x: 1, y: [2,\n  3], z: {q: 4}}\nb: []\nc: {u: 5, v: 6}\n", "f")
    lines = {("a", "x"): 1, ("a", "y"): 1, ("a", "y", 1): 2, ("a", "z"): 2, ("a", "z", "q"): 2, ("b",): 3}
    lines |= {("b", 0): 3, ("c", "v"): 4, ("c", "w"): 4}
    assert {path: document.line(path) for path in lines} == lines


def test_of_a_field_given_twice_the_first_counts_and_the_fault_is_noted() -> None:
    document = load_yaml("a: {b: 1, b: {c: 2}, d: 3}\n", "f")
    assert document.value == {"a": {"b": 1, "d": 3}}
    assert [fault.location for fault in document.faults] == ["a.b"]


def test_the_pure_python_parser_reads_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "a: 1:30\nb: [no, 1e3, {c: '5'}]\n"
    expected = load_yaml(text, "f")
    monkeypatch.setattr(documents, "_Loader", yaml.SafeLoader)
    found = load_yaml(text, "f")
    assert found.value == expected.value
    for bad in ("a: &x 1\n", "a: !t 1\n", "a: 1\na: 2\n"):
        assert load_yaml(bad, "f").faults
    for bad in ("a: *x\nb: [", "a:\n\t- 1\n", "\x07", "[" * 100_000, "a: 1\n---\nb: 1\n", ""):
        with pytest.raises(InvalidInput):
            load_yaml(bad, "f")


def test_too_many_entries_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "MAX_NODES", 100)
    with pytest.raises(InvalidInput, match="more than 100 entries"):
        load_yaml("- 1\n" * 101, "f")


def test_json_has_lines_where_it_can_be_read_as_yaml() -> None:
    located = locate_json('{\n "a": 1,\n "b": [\n\t2]\n}', "f")
    assert located is not None
    assert located.line(("b", 0)) == 4
    assert locate_json('{"a": "\\ud83d\\ude00"}', "f") is None


def test_json_keeps_long_integers_as_text() -> None:
    assert load_json('{"a": ' + "9" * 5000 + "}", "f").value == {"a": "9" * 5000}


def test_long_tables_are_written_piece_by_piece_as_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = [{"id": f"j{k}: x", "modes": [{"gpus": k}], "after": [], "due": "jobs: []"} for k in range(7)]
    document = {"name": "jobs: []", "pools": [{"id": "p"}] * 5, "jobs": jobs, "datasets": [], "network": [{"a": 1}]}
    whole = yaml_bytes(document)
    monkeypatch.setattr(instances, "_PIECE", 3)
    assert yaml_bytes(document) == whole
    monkeypatch.setattr(instances, "_PIECE", 5)
    assert yaml_bytes(document) == whole


def test_a_file_is_read_without_collecting_garbage_and_collecting_goes_on_after(tmp_path: Path) -> None:
    for _ in range(2):
        with pytest.raises(InvalidInput):
            instances.read_instance(tmp_path / "none.yaml")
        assert gc.isenabled()
    gc.disable()
    try:
        with no_collection():
            assert not gc.isenabled()
        assert not gc.isenabled()
    finally:
        gc.enable()


PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**18), 10**18)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
    | st.sampled_from(
        ["no", "1:30", "08", "1e3", ".5", "+5", "-0", "~", "null", "0x1", "=", "<<", "a: b", "- a", "#", "?"]
    ),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("ab 1:#'\"-{[", max_size=5), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text("abc1.e", min_size=1, max_size=4), PLAIN, min_size=1, max_size=4))
def test_what_is_written_as_yaml_reads_back(document: dict[str, Any]) -> None:
    found = load_yaml(yaml_bytes(document).decode(), "f")
    assert found.faults == []
    assert repr(found.value) == repr(document)
