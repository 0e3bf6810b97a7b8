"""Whatever is in a file, it is read or it gives faults: no other exception, no jargon."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from models.errors import InvalidInput
from planner.io.documents import load_yaml
from planner.io.instances import document_of, folder_files, read_instance, write_instance
from tests.io.reading import check_words
from tests.io.samples import RICH, VALID, rich_instance

NASTY = [
    *(
        "",
        "~",
        "{}",
        "[]",
        "[[]]",
        "{a: 1}",
        "[1, x]",
        "-1",
        "0",
        "1e308",
        "-1e308",
        "1e-320",
        "1e999",
        ".nan",
        "-.inf",
    ),
    *(
        "9" * 30,
        "9" * 400,
        "true",
        "no",
        "1:30",
        "0.5",
        "1e-7",
        "1e15",
        "1e18",
        "999999",
        "1000000",
        "x" * 300,
        "é\u202e",
    ),
    *(
        "9999-12-31T23:59:59+14:00",
        "0001-01-01T00:00:00-23:59",
        "2026-01-12T18:00:00+01:00",
        "2026-01-12",
        "24:00",
    ),
    *(
        "1e15 h",
        "1e-12 s",
        "3 h/h",
        "1 USD/h",
        "$",
        "1 EUR",
        "-0",
        "auto",
        "a",
        "b",
        "c",
        "p1",
        "p2",
        "dc",
        "A100",
        "spot",
    ),
    *(
        "9999999-00:00:00",
        "P9999999999999999999D",
        "1e300h 1e300h",
        "-5m",
        "\ud7ff\ue000",
        "'",
        '"',
        "&x",
        "*x",
        "!!t 1",
    ),
]
COMMON = settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def _read(path: Path) -> None:
    try:
        instance = read_instance(path)
    except InvalidInput as error:
        check_words(error)
        return
    assert instance.content_hash
    json.dumps(document_of(instance), allow_nan=False)


@COMMON
@given(data=st.binary(max_size=300), name=st.sampled_from(["a.yaml", "a.json"]))
def test_random_bytes(tmp_path: Path, data: bytes, name: str) -> None:
    (tmp_path / name).write_bytes(data)
    _read(tmp_path / name)


@COMMON
@given(text=st.text(st.sampled_from("ab:-?#&*!|>'\"%@`{}[], \n\t\u2028\u0085\ufeff01.~"), max_size=80))
def test_random_yaml(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.yaml").write_text(text, encoding="utf-8", newline="")
    _read(tmp_path / "a.yaml")


@COMMON
@given(data=st.data())
def test_mutated_yaml(tmp_path: Path, data: st.DataObject) -> None:
    text = VALID
    for _ in range(data.draw(st.integers(1, 3))):
        begin = data.draw(st.integers(0, len(text)))
        end = min(len(text), begin + data.draw(st.integers(0, 12)))
        text = text[:begin] + data.draw(st.sampled_from(NASTY) | st.text(max_size=4)) + text[end:]
    (tmp_path / "a.yaml").write_bytes(text.encode("utf-8", errors="surrogatepass"))
    _read(tmp_path / "a.yaml")


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, item in inner for place in _places(item, (*path, key)))]


def _with(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    copy = dict(document) if isinstance(document, dict) else list(document)
    copy[path[0]] = _with(document[path[0]], path[1:], value)
    return copy


def _rich_document() -> Any:
    return load_yaml(RICH, "rich").value


VALUES = st.one_of(
    st.sampled_from(NASTY).map(lambda text: load_yaml(f"a: {text}", "f").value["a"] if text.isalnum() else text),
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from([10**400, -(10**30)]),
    st.sampled_from([[], {}, [[]], [None], {"a": 1}, ["a", "a"], [0, 0], [1e300, 1e-300], "x" * 1000, "\ud800"]),
)


@settings(COMMON, max_examples=400)
@given(data=st.data())
def test_any_value_at_any_place(tmp_path: Path, data: st.DataObject) -> None:
    document = _rich_document()
    for _ in range(data.draw(st.integers(1, 3))):
        places = _places(document)
        document = _with(document, data.draw(st.sampled_from(places)), data.draw(VALUES))
    (tmp_path / "a.json").write_text(json.dumps(document))
    _read(tmp_path / "a.json")


@settings(COMMON, max_examples=200)
@given(data=st.data())
def test_any_field_left_out_or_doubled(tmp_path: Path, data: st.DataObject) -> None:
    document = _rich_document()
    places = [path for path in _places(document) if path]
    for path in data.draw(st.lists(st.sampled_from(places), min_size=1, max_size=3, unique=True)):
        try:
            holder = document
            for step in path[:-1]:
                holder = holder[step]
            if isinstance(holder, list) and data.draw(st.booleans()):
                holder.append(holder[path[-1]])
            else:
                del holder[path[-1]]
        except (LookupError, TypeError):
            continue
    (tmp_path / "a.json").write_text(json.dumps(document))
    _read(tmp_path / "a.json")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_instance(rich_instance(), tmp_path / "f")
    return tmp_path / "f"


@settings(COMMON, max_examples=250)
@given(data=st.data())
def test_mutated_tables(folder: Path, data: st.DataObject) -> None:
    files = folder_files(rich_instance())
    name = data.draw(st.sampled_from([name for name in files if name.endswith(".csv")]))
    text = files[name].decode()
    for _ in range(data.draw(st.integers(1, 3))):
        begin = data.draw(st.integers(0, len(text)))
        end = min(len(text), begin + data.draw(st.integers(0, 8)))
        text = text[:begin] + data.draw(st.sampled_from([*NASTY, ",", '"', "\n", ";", "[", "{"])) + text[end:]
    for other, content in files.items():
        (folder / other).write_bytes(content)
    (folder / name).write_bytes(text.encode("utf-8", errors="surrogatepass"))
    _read(folder)


@pytest.mark.parametrize("horizon", ["[]", "[1]", "[{id: dc}]", "{a: 1}"])
def test_a_list_for_a_length_beside_another_fault(tmp_path: Path, horizon: str) -> None:
    """Both are reported: neither branch of `horizon` may be taken for an echo of the other and the fault be lost."""
    path = tmp_path / "bad.yaml"
    path.write_text(f"currency: USD\nstart: 2026-01-12T18:00:00+01:00\nslot: never\nhorizon: {horizon}\n")
    with pytest.raises(InvalidInput) as caught:
        read_instance(path)
    assert {"slot", "horizon"} <= {fault.location for fault in caught.value.faults}
