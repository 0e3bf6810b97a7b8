"""`planner convert`: an instance from one form of files into another."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from planner.cli import output
from planner.cli.failures import failures
from planner.cli.options import Force, examples

EPILOG = examples(
    "planner convert tonight.yaml tonight/",
    "planner convert tonight/ tonight.json",
)


def convert(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="SOURCE", help="Instance: a YAML or JSON file, or a folder of tables.", show_default=False
        ),
    ],
    target: Annotated[
        Path,
        typer.Argument(
            metavar="TARGET", help="What to write: .yaml, .json, or a folder of tables.", show_default=False
        ),
    ],
    force: Force = False,
) -> None:
    """Write an instance in another form (YAML, JSON, a folder of tables); its content hash stays the same."""
    with failures():
        from planner.io.instances import read_instance, write_instance

        instance = read_instance(source)
        write_instance(instance, target, force)
        output.wrote(instance, target)
