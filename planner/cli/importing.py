"""`planner import`: instances from traces."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from planner.cli import output
from planner.cli.failures import failures
from planner.cli.options import Force, InstanceOut, Seed, examples

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Make an instance from a trace.")

PHILLY_EPILOG = examples(
    "planner import philly trace.csv --cluster 6214e9 --from 2017-10-09T06:00:00 --hours 24 \\",
    "    --nodes p100:4x100,v100:8x20 --out monday.yaml",
    "planner import philly trace.csv --from 2017-10-09T06:00:00 --hours 6 --cloud none --out day/",
)


@app.command(epilog=PHILLY_EPILOG, short_help="Make an instance from the Philly trace.")
def philly(
    trace: Annotated[Path, typer.Argument(metavar="TRACE", help="CSV file of the trace.", show_default=False)],
    begin: Annotated[
        str,
        typer.Option("--from", metavar="TIME", help="First submission, ISO 8601 as in the trace.", show_default=False),
    ],
    out: InstanceOut,
    hours: Annotated[float, typer.Option(metavar="H", help="Length of the window of submissions.")] = 24.0,
    cluster: Annotated[
        str | None, typer.Option(metavar="ID", help="Virtual cluster; all if left out.", show_default=False)
    ] = None,
    nodes: Annotated[
        str,
        typer.Option(metavar="SPEC", help="Owned nodes: type:GPUs-per-node x nodes, separated by commas."),
    ] = "p100:4x100,v100:8x200",
    cloud: Annotated[
        str, typer.Option(metavar="SPEC", help="Cloud nodes, written like --nodes; or none.")
    ] = "v100:8x20,a100:8x10",
    jobs: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Keep the first so many jobs.", show_default=False)
    ] = None,
    max_hours: Annotated[float, typer.Option(metavar="H", help="Leave longer jobs out.")] = 72.0,
    seed: Seed = 0,
    force: Force = False,
) -> None:
    """Make an instance from a window of the Philly trace, and say what was dropped and what was assumed."""
    with failures():
        from planner.io.instances import write_instance
        from planner.io.philly import import_philly
        from planner.report.text import clean

        rented = None if cloud.strip().lower() in ("", "none") else cloud
        instance, report = import_philly(
            trace, cluster, begin, hours, nodes, rented, seed=seed, jobs=jobs, max_hours=max_hours
        )
        write_instance(instance, out, force)
        output.wrote(instance, out)
        for line in report.lines():
            output.say(clean(line), sys.stdout)
