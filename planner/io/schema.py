"""The format of an instance, told twice from one source: as JSON Schema for editors, as a page for people."""

from __future__ import annotations

from typing import Any

import annotated_types

from models.domain.fields import Entity
from models.domain.instance import FORMAT, Instance
from planner.io import shapes
from planner.io.reference import reference_markdown

__all__ = ["json_schema", "reference_markdown"]


def json_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of an instance; every field with its meaning, unit and an example."""
    schema = Instance.model_json_schema()
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:{FORMAT.replace('/', ':')}",
        **schema,
    }
    schema["title"] = "Instance"
    schema["description"] = "An instance of burstplan: everything that a plan depends on."
    records = {record.__name__: record for record in shapes.all_records()}
    for name, definition in (("Instance", schema), *schema.get("$defs", {}).items()):
        for field, node in definition["properties"].items():
            _complete(node, records[name], field)
    return schema


def _complete(node: dict[str, Any], record: type[Entity], field: str) -> None:
    """Add what pydantic does not tell of a field; what it tells of the branches of a union stays there."""
    fact = shapes.fact(record, field)
    node["title"] = field.replace("_", " ")
    node["x-unit"] = fact.unit
    node["x-example"] = fact.example
    for limit in record.model_fields[field].metadata:
        if isinstance(limit, annotated_types.Le):
            node["maximum"] = min(limit.le, node.get("maximum", limit.le))
        elif isinstance(limit, annotated_types.Ge):
            node["minimum"] = max(limit.ge, node.get("minimum", limit.ge))
    if "default" in node and node["default"] is not None:
        node["default"] = fact.default
