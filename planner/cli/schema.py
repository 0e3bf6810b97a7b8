"""`planner schema`: the format of instances, for editors and for people."""

from __future__ import annotations

from typing import Annotated

import typer

from planner.cli import output
from planner.cli.failures import failures
from planner.cli.options import examples

EPILOG = examples(
    "planner schema > burstplan.schema.json",
    "planner schema --markdown > format.md",
)


def schema(
    markdown: Annotated[bool, typer.Option("--markdown", help="Print the reference for people instead.")] = False,
) -> None:
    """Print the JSON Schema of instances, or every field with its unit, default and meaning."""
    with failures():
        from planner.io.schema import json_schema, reference_markdown

        if markdown:
            output.page(reference_markdown())
        else:
            output.document(json_schema())
