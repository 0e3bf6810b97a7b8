"""The JSON Schema and the reference page say of every field what the program does with it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from models.domain import Instance
from models.domain.fields import Entity
from planner.io import shapes
from planner.io.documents import load_yaml
from planner.io.drafts import RECORDS
from planner.io.instances import document_of, instance_of_yaml, read_instance
from planner.io.reference import EXAMPLE
from planner.io.schema import json_schema, reference_markdown
from tests.io.samples import RICH, VALID

ROOT = Path(__file__).parents[2]
FIELDS = [(record, name) for record in shapes.all_records() for name in record.model_fields]
CONTEXT = {"start": instance_of_yaml(EXAMPLE).start, "currency": "USD"}


@pytest.fixture(scope="module")
def validator() -> Any:
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def test_every_field_has_title_description_unit_and_example() -> None:
    schema = json_schema()
    for name, record in (("Instance", schema), *schema["$defs"].items()):
        assert record["description"], name
        for field, node in record["properties"].items():
            for key in ("title", "description", "x-unit"):
                assert node.get(key), f"{name}.{field} has no {key}"
            assert node.get("x-example") not in (None, "text"), f"{name}.{field}"
            assert field in record.get("required", []) or "default" in node, f"{name}.{field}"


def test_all_records_are_in_the_schema() -> None:
    names = {record.__name__ for record in shapes.all_records()}
    assert names == {"Instance", *json_schema()["$defs"]}


@pytest.mark.parametrize("text", [VALID, RICH, EXAMPLE])
def test_valid_files_obey_the_schema(validator: Any, text: str) -> None:
    validator.validate(load_yaml(text, "f").value)
    validator.validate(json.loads(json.dumps(document_of(instance_of_yaml(text)))))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("slot",), 0), (("slot",), None), (("colour",), 1), (("cache_levels",), 17), (("currency",), "usd"),
        (("pools", 0, "nodes"), -1), (("pools", 0, "price"), -1), (("pools", 0, "market"), "auction"),
        (("jobs", 0, "modes", 0, "share"), 2), (("jobs", 0, "modes", 0, "slowdown"), 0.5), (("sites",), []),
        (("jobs", 0, "wieght"), 1), (("jobs", 0, "speed_levels"), []),
        (("jobs", 0, "utility"), {"shape": "stair", "worth": 1, "by": "3h"}),
        (("jobs", 0, "utility"), {"shape": "step", "worth": 1, "zero_at": "3h"}),
        (("jobs", 0, "utility"), {"shape": "sigmoid", "worth": 1, "midpoint": "3h", "scale": 0}),
        (("jobs", 0, "elastic"), True), (("jobs", 0, "elastic"), {"change": 1}),
        (("jobs", 0, "elastic"), {"changes": -1}), (("jobs", 0, "elastic"), {"changes": 1.5}),
    ],
)  # fmt: skip
def test_an_editor_sees_what_the_program_would_refuse(validator: Any, path: tuple[Any, ...], value: Any) -> None:
    document = load_yaml(VALID, "f").value
    holder = document
    for step in path[:-1]:
        holder = holder[step]
    holder[path[-1]] = value
    assert not validator.is_valid(document)


@pytest.mark.parametrize(("record", "name"), FIELDS, ids=[f"{r.__name__}.{n}" for r, n in FIELDS])
def test_the_example_of_every_field_is_valid(record: type[Entity], name: str) -> None:
    example = shapes.example_of(record, name)
    if record is Instance and name in RECORDS:
        assert example.startswith("see ")
        return
    raw = {
        field: shapes.example_of(record, field)
        for field, info in record.model_fields.items()
        if info.is_required() and field not in RECORDS
    }
    holder = Instance.__mro__[1] if record is Instance else record
    found = holder.model_validate(raw | {name: example}, context=CONTEXT)
    assert getattr(found, name) is not None


def test_the_page_in_the_docs_is_up_to_date() -> None:
    page = (ROOT / "docs" / "format.md").read_text(encoding="utf-8")
    assert page == reference_markdown(), "write it anew: planner schema --markdown > docs/format.md"


def test_the_page_names_every_field_with_its_meaning() -> None:
    page = reference_markdown()
    for record, name in FIELDS:
        fact = shapes.fact(record, name)
        section = page.split(f"### {record.__name__}\n")[1].split("\n### ")[0]
        (row,) = [line for line in section.splitlines() if line.startswith(f"| `{name}` |")]
        assert fact.meaning in row
        assert fact.unit in row
        assert len(re.split(r"(?<!\\)\|", row)) == 7


def test_the_example_of_the_page_is_the_same_in_both_spellings(tmp_path: Path) -> None:
    page = reference_markdown()
    example = page.split("## An example")[1]
    (as_file,) = re.findall(r"As a file:\n\n```yaml\n(.*?)```", example, re.DOTALL)
    for name, content in re.findall(r"`([a-z]+\.(?:yaml|csv))`\n\n```[a-z]+\n(.*?)```", example, re.DOTALL):
        (tmp_path / name).write_text(content)
    assert len(list(tmp_path.iterdir())) == 6
    assert read_instance(tmp_path) == instance_of_yaml(as_file)


def test_importing_is_cheap() -> None:
    code = (
        "import sys, planner.io.instances, planner.io.plans, planner.io.schema\n"
        "heavy = ('pyomo', 'pandas', 'pint', 'networkx', 'highspy', 'scipy')\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"
