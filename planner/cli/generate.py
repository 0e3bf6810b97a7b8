"""`planner generate`: instances of a known family, the same for the same seed."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from planner.cli import output
from planner.cli.failures import failures
from planner.cli.options import Force, InstanceOut, Seed, examples

EPILOG = examples(
    "planner generate mixed --jobs 50 --nodes 40 --out mixed-50.yaml",
    "planner generate busy --jobs 500 --nodes 300 --load 1.1 --no-storage --seed 7 --out big/",
)


class Family(StrEnum):
    """Names of the families; a test holds them equal to those of the generator, whose import is slow."""

    MIXED = "mixed"
    COMPUTE = "compute"
    CONTENDED = "contended"
    BUSY = "busy"
    HEADLINE = "headline"
    SCALE = "scale"


def generate(
    family: Annotated[
        Family,
        typer.Argument(
            help="mixed: datasets, storage, cloud pools; compute: the same without storage; contended: too "
            "much work for the owned nodes; busy: owned pools full for hours, jobs burst and are late beyond a load "
            "of 1; headline: few wide jobs for hundreds of nodes; scale: as busy, for thousands of jobs.",
            show_default=False,
        ),
    ],
    out: InstanceOut,
    jobs: Annotated[int, typer.Option(min=0, max=100_000, metavar="N", help="Number of jobs.")] = 50,
    nodes: Annotated[int, typer.Option(min=1, max=100_000, metavar="N", help="Number of owned nodes.")] = 40,
    load: Annotated[
        float | None,
        typer.Option(
            metavar="X",
            help="Work over what the owned nodes can do; the family's own if left out.",
            show_default=False,
        ),
    ] = None,
    storage: Annotated[
        bool | None,
        typer.Option(
            "--storage/--no-storage",
            help="Jobs read datasets, and bandwidth and cache cost money; the family's own if left out.",
            show_default=False,
        ),
    ] = None,
    seed: Seed = 0,
    force: Force = False,
) -> None:
    """Write a random instance of a family; the same arguments give the same instance."""
    with failures():
        from planner.generate import generate as make
        from planner.io.instances import write_instance

        instance = make(family.value, jobs, nodes, load, seed, storage)
        write_instance(instance, out, force)
        output.wrote(instance, out)
