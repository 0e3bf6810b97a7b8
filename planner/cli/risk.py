"""`planner risk`: what may become of a plan when things go otherwise than planned."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from planner.cli import output
from planner.cli.exits import Exit
from planner.cli.failures import failures
from planner.cli.options import AsJson, InstancePath, PlanPath, Seed, examples
from planner.cli.signals import stop_signals

if TYPE_CHECKING:
    from models.check import Report
    from models.domain import Instance, Plan
    from planner.risk.study import Risk

EPILOG = examples(
    "planner risk tonight.yaml plans/tonight",
    "planner risk tonight.yaml plans/tonight --duration-error 0.3 --mtbf 500 --repair 8 --replays 2000",
    "planner risk tonight.yaml plans/tonight --slack 0.5 --candidates 10 --restart-cost 5",
    "planner risk tonight.yaml plans/tonight --seed 7 --workers 4 --json --out risk.json",
)


def _finite(value: float | None) -> float | None:
    """A number that can be reckoned with: `nan` and `inf` pass the limits of an option."""
    if value is not None and not math.isfinite(value):
        raise typer.BadParameter(f"{value} is not a number; leave the option out or write one such as 2.5")
    return value


def risk(
    instance: InstancePath,
    plan: PlanPath,
    replays: Annotated[int, typer.Option(min=1, max=1_000_000, metavar="N", help="How many worlds to replay.")] = 500,
    duration_error: Annotated[
        float,
        typer.Option(
            min=0.0,
            max=3.0,
            metavar="SIGMA",
            callback=_finite,
            help="Jobs really take their estimate times a lognormal factor with median 1 and this sigma.",
        ),
    ] = 0.2,
    mtbf: Annotated[
        float | None,
        typer.Option(
            min=1e-3,
            callback=_finite,
            metavar="HOURS",
            help="Mean time between failures of an owned node.",
            show_default="never",
        ),
    ] = None,
    repair: Annotated[
        float, typer.Option(min=1e-3, callback=_finite, metavar="HOURS", help="How long a repair takes.")
    ] = 4.0,
    restart_cost: Annotated[
        float,
        typer.Option(
            min=0.0,
            max=1e6,
            metavar="MINUTES",
            callback=_finite,
            help="Time that a job which is stopped and started again takes before its work goes on.",
        ),
    ] = 0.0,
    early: Annotated[
        bool,
        typer.Option("--early", help="Let jobs start before their planned time, too, in the order of the plan."),
    ] = False,
    slack: Annotated[
        float,
        typer.Option(
            min=1e-3, max=1e4, callback=_finite, metavar="HOURS", help="How much more slack a job is tried with."
        ),
    ] = 1.0,
    candidates: Annotated[
        int, typer.Option(min=0, max=10_000, metavar="N", help="Jobs that are tried with more slack; 0: none.")
    ] = 5,
    seed: Seed = 0,
    workers: Annotated[
        int | None,
        typer.Option(
            min=1, max=1024, metavar="N", help="Local processes; any number gives the same.", show_default="all cores"
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE",
            help="Write all results, with those of every replay, as JSON to this file.",
            show_default=False,
        ),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Show every job; without it the table ends after 50.")
    ] = False,
    as_json: AsJson = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress; only the result.")] = False,
) -> None:
    """Replay a plan under duration errors, failures and spot interruptions: the chance that each job meets its due
    date, what it comes to cost, and which job to give slack.

    Each job starts in its planned mode on its planned GPUs at its planned time, or as soon after as its predecessors
    and the jobs before it there are done; from a node that is down it goes to another that is free, or waits. Spot
    nodes are taken back at the rate of their pool. Storage is as planned: a job that reads waits until the bandwidth
    that was bought suffices. Every replay is checked by code of its own. Ctrl-C ends with the replays made so far, and
    exit code 130.
    """
    with failures(as_json), stop_signals() as hold:
        problem, made, report = _read(instance, plan)
        if not report.ok:
            _tell_violations(report, as_json)
            raise typer.Exit(Exit.VIOLATED)
        from planner.risk.parallel import cores
        from planner.risk.study import Ask, study
        from planner.simulation.chance import Options

        options = Options(
            seed=seed,
            restart_s=60.0 * restart_cost,
            duration_error=duration_error,
            mtbf_h=mtbf,
            repair_h=repair,
        )
        ask = Ask(options, replays, workers or cores(), early, slack, candidates)
        with _told(quiet) as on_progress:
            found = study(problem, made, ask, on_progress)
            hold()
        if found is None:
            output.say("interrupted before the first replay was done")
            if as_json:
                output.document({"status": "interrupted", "replays": 0})
            raise typer.Exit(Exit.INTERRUPTED)
        _report(found, out, as_json, everything)
        if found.stopped == "interrupted":
            output.say(_so_far(found, "interrupted"))
            raise typer.Exit(Exit.INTERRUPTED)
        if found.stopped == "worker died":
            output.say(_so_far(found, "a worker process died, killed or out of memory") + "; try fewer --workers")
            raise typer.Exit(Exit.DEFECT)


def _so_far(found: Risk, why: str) -> str:
    if len(found.replays) < found.ask.replays:
        return f"{why}; this is what {len(found.replays)} of {found.ask.replays} replays say"
    return f"{why}; all replays were made, but not all jobs were tried with more slack"


def _read(instance: Path, plan: Path) -> tuple[Instance, Plan, Report]:
    """Both files and the check of one against the other; raises InvalidInput with the faults of both."""
    from dataclasses import replace

    from models.check import check
    from models.errors import Fault, InvalidInput
    from planner.io.instances import read_instance
    from planner.io.plans import other_instance, read_plan

    faults: list[Fault] = []
    problem: Instance | None = None
    made: Plan | None = None
    try:
        problem = read_instance(instance)
    except InvalidInput as fault:
        faults += fault.faults
    try:
        made = read_plan(plan)
    except InvalidInput as fault:
        faults += fault.faults
    if problem is not None and made is not None:
        other = other_instance(made, problem)
        if other is None:
            return problem, made, check(problem, made)
        faults.append(replace(other, where=str(instance)))
    raise InvalidInput(faults)


def _tell_violations(report: Report, as_json: bool) -> None:
    from rich.text import Text

    from planner.report.gantt import ROWS_SHOWN
    from planner.report.tables import violation_table

    if as_json:
        listed = [
            {"kind": v.kind, "where": v.where, "amount": v.amount, "message": v.message} for v in report.violations
        ]
        output.document({"status": "violated", "violations": listed})
    page = output.canvas(sys.stderr)
    rest = "A plan that fails its check is not replayed; `planner check` recomputes its costs, too."
    output.show([violation_table(report, page, ROWS_SHOWN), Text(rest)], sys.stderr)


def _report(found: Risk, out: Path | None, as_json: bool, everything: bool) -> None:
    import json

    document = found.document()
    if out is not None:
        from planner.io.files import write_whole

        whole = document | {"by_replay": found.by_replay()}
        write_whole(out, json.dumps(whole, indent=1, allow_nan=False).encode() + b"\n")
    if as_json:
        output.document(document | {"out": None if out is None else os.fspath(out)})
        return
    from planner.report.risk import page
    from planner.report.text import clean

    output.show(page(found, output.canvas(), None if everything else 50))
    if out is not None:
        output.say(f"written to  {clean(str(out))}", sys.stdout)


@contextmanager
def _told(quiet: bool) -> Iterator[Callable[[str, int, int], None]]:
    """What tells a person how far it is: a line on stderr, only to a terminal, gone at the end."""
    if quiet or not output.is_terminal(sys.stderr):
        yield lambda *_: None
        return

    def say(what: str, done: int, of: int) -> None:
        line = f"{what}: {done:,} of {of:,}  Ctrl-C ends with what is done"
        output.write(f"\r{line:<60}", sys.stderr)

    try:
        yield say
    finally:
        output.write("\r" + " " * 60 + "\r", sys.stderr)
