"""`planner nightly`: tonight's plan from the state of now and last night's plan, for cron."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from planner.cli import output
from planner.cli.exits import Exit
from planner.cli.failures import failures
from planner.cli.options import AsJson, InstancePath, Seed, examples
from planner.cli.plan import Engine, parse_gap, parse_time_limit
from planner.cli.progress import live
from planner.cli.signals import stop_signals

if TYPE_CHECKING:
    from models.domain import Instance, Plan
    from planner.engines.base import Solution
    from planner.nightly.run import Night

EPILOG = (
    "\b\nA state file, YAML or JSON; times are written as in instances, and all but `at` may be left out:\n"
    "  at: 2026-01-13T18:00:00+01:00\n"
    "  running:\n"
    "    - {job: bert-17, mode: 2xA100, pool: dc1-a100, remaining: 0.4,\n"
    "       places: [{node: 0, gpus: [0, 1]}]}\n"
    "  paused: [{job: bert-18, remaining: 0.7}]\n"
    "  complete: [bert-16]\n"
    "  down: [{pool: dc1-a100, nodes: [3], until: 20h}]\n"
    "  nodes_on: [{pool: dc1-a100, nodes: 2}]\n\n"
) + examples(
    "planner nightly cluster.yaml --state now.yaml --into plans",
    "planner nightly cluster.yaml --state now.yaml --into plans --time-limit 30m --quiet",
    "planner nightly cluster.yaml --state now.yaml --into plans --dry-run",
)


def nightly(
    instance: InstancePath,
    into: Annotated[
        Path,
        typer.Option(
            metavar="DIR", help="Folder of the plans and their history; made where it is not there.", show_default=False
        ),
    ],
    state: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="What runs, is complete or is down now, and when now is. [default: what the instance says, at its "
            "start]",
            show_default=False,
        ),
    ] = None,
    engine: Annotated[Engine, typer.Option(help="As in `planner plan`.")] = Engine.AUTO,
    time_limit: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="When to stop planning, in seconds or as 90s, 10m; none: no limit. [default: 10m, or none with "
            "--work-limit]",
            show_default=False,
        ),
    ] = None,
    gap: Annotated[str, typer.Option(metavar="GAP", help="Proven gap at which to stop, such as 0.01 or 1%.")] = "0.001",
    work_limit: Annotated[
        int | None,
        typer.Option(min=0, metavar="N", help="Moves of the fast engine's search.", show_default=False),
    ] = None,
    change_price: Annotated[
        float,
        typer.Option(
            min=0.0,
            max=1e12,
            metavar="MONEY",
            help="What a job that is planned otherwise than last night counts as besides what it costs: changes that "
            "save less are not made. At 0 those are undone that save nothing.",
        ),
    ] = 0.0,
    seed: Seed = 0,
    threads: Annotated[int, typer.Option(min=1, max=1024, metavar="N", help="Threads to use.")] = 2,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Plan and say what would be done; write nothing at all.")
    ] = False,
    as_json: AsJson = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")] = False,
) -> None:
    """Plan the night from the state of now and from last night's plan, write it, and keep a history.

    A plan folder named by its day is written whole or not at all: the plan, a report of one page, what has changed
    since the last plan and why. A run that is killed at any moment loses nothing of what was there; the next one puts
    things in order and goes on. `planner history` shows all runs.

    Nothing goes to stderr unless somebody should look: then the exit code is not 0. Where no plan better than the last
    is found within the limits, and it still holds, it is kept, and the exit code is 0; where it does not hold, it is 5.
    While another run is under way it is 75.
    """
    limits = {
        "time_limit_s": parse_time_limit(time_limit or ("10m" if work_limit is None else "none")),
        "work": work_limit,
        "gap": parse_gap(gap),
        "seed": seed,
        "threads": threads,
    }
    with failures(as_json):
        from planner.nightly import run as nights
        from planner.nightly.folder import Home

        with stop_signals() as hold:
            task = nights.Task(
                Home(into),
                instance,
                state,
                _solver(engine.value, limits, quiet, hold),
                {"instance": str(instance), "state": None if state is None else str(state), "engine": engine.value}
                | {"change_price": change_price}
                | limits,
                change_price,
            )
            night = nights.dry_run(task) if dry_run else nights.run(task)
        _report(night, dry_run, as_json, quiet)
        if night.plan.status == "interrupted":
            output.say("interrupted; this is the best plan so far")
            raise typer.Exit(Exit.INTERRUPTED)


def _solver(
    engine: str, limits: dict[str, Any], quiet: bool, hold: Callable[[], None]
) -> Callable[[Instance, Plan | None], Solution]:
    """What plans an instance, and lets no signal come after the plan is made."""

    def solved(instance: Instance, start: Plan | None) -> Solution:
        from planner.engines import clock
        from planner.engines.base import Limits
        from planner.solve import solve

        with live(instance.currency, quiet) as on_progress:
            paused_s = clock.paused_s()
            solution = solve(instance, engine, Limits(**limits, on_progress=on_progress), start)
            hold()
        return replace(solution, notes=(*solution.notes, *clock.notes(paused_s)))

    return solved


def _report(night: Night, is_dry: bool, as_json: bool, quiet: bool) -> None:
    if as_json:
        output.document(night.document() | {"dry_run": is_dry})
    elif not quiet and sys.stdout is not None:
        from planner.nightly.summary import summary

        output.show(summary(night, output.canvas(), is_dry=is_dry))
