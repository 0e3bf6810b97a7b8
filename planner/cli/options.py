"""Arguments and options that several commands share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

InstancePath = Annotated[
    Path,
    typer.Argument(
        metavar="INSTANCE", help="Instance: a YAML or JSON file, or a folder of tables.", show_default=False
    ),
]
PlanPath = Annotated[
    Path,
    typer.Argument(
        metavar="PLAN", help="Plan: a folder that `plan --out` wrote, or its plan.json.", show_default=False
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout instead of text.")]
MOST_SEED = 2**31 - 1
"""Of HiGHS, which keeps it in 32 bits."""
Seed = Annotated[int, typer.Option(min=0, max=MOST_SEED, metavar="N", help="Seed of all random choices.")]


class Modes(StrEnum):
    """Rules that give each job a mode."""

    CHEAPEST = "cheapest"
    FASTEST = "fastest"
    SMALLEST = "smallest"


FixedGpus = Annotated[
    Modes | None,
    typer.Option(
        "--fixed-gpus",
        help="Keep each job to the GPU count of its cheapest, fastest or smallest mode; pools, times and storage stay "
        "open.",
        show_default=False,
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite a file that is not an instance, too.")]
InstanceOut = Annotated[
    Path,
    typer.Option(
        "--out",
        metavar="PATH",
        help="Instance to write: .yaml, .json, or a folder of tables.",
        show_default=False,
    ),
]


def examples(*lines: str) -> str:
    """An epilog with examples, each on its own line."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)
