"""`planner simulate`: a policy in a world that reveals jobs over time."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from planner.cli import output
from planner.cli.failures import failures
from planner.cli.options import AsJson, InstancePath, Seed, examples
from planner.simulation.registry import DESCRIPTIONS, POLICIES, PolicyOptions

EPILOG = examples(
    "planner simulate week.yaml --policy fast",
    "planner simulate week.yaml --policy edf --no-burst --json",
    "planner simulate week.yaml --policy fast --restart-cost 2 --duration-error 0.2 --seed 7 --out week-fast.json",
) + "\n\n\b\nPolicies:\n" + "\n".join(f"  {name:<20} {what}" for name, what in DESCRIPTIONS.items())  # fmt: skip


def _policy(name: str) -> str:
    if name not in POLICIES:
        raise typer.BadParameter(f"{name!r} is none of {', '.join(POLICIES)}")
    return name


def simulate(
    instance: InstancePath,
    policy: Annotated[
        str,
        typer.Option(metavar="NAME", help="Who decides; the names are below.", callback=_policy, show_default=False),
    ],
    burst: Annotated[bool, typer.Option("--burst/--no-burst", help="Whether cloud nodes may be rented.")] = True,
    moves: Annotated[bool, typer.Option("--moves/--no-moves", help="Whether running jobs may be stopped.")] = True,
    restart_cost: Annotated[
        float,
        typer.Option(
            min=0.0,
            max=1e6,
            metavar="MINUTES",
            help="Time that a job which is stopped and started again takes before its work goes on.",
        ),
    ] = 0.0,
    move_price: Annotated[
        float,
        typer.Option(
            min=0.0,
            max=1e12,
            metavar="MONEY",
            help="What fast and exact count each stop and restart of a job as, besides what it costs: moves that save "
            "less are not planned.",
        ),
    ] = 0.0,
    duration_error: Annotated[
        float,
        typer.Option(
            min=0.0,
            max=3.0,
            metavar="SIGMA",
            help="Jobs really take their estimate times a lognormal factor with median 1 and this sigma.",
        ),
    ] = 0.0,
    mtbf: Annotated[
        float | None,
        typer.Option(
            min=1e-3, metavar="HOURS", help="Mean time between failures of an owned node.", show_default="never"
        ),
    ] = None,
    repair: Annotated[float, typer.Option(min=1e-3, metavar="HOURS", help="How long a repair takes.")] = 4.0,
    price_swing: Annotated[
        float,
        typer.Option(
            min=0.0,
            max=3.0,
            metavar="SIGMA",
            help="The price of each rented pool changes unforeseen, to its listed one times a lognormal factor with "
            "median 1 and this sigma.",
        ),
    ] = 0.0,
    price_every: Annotated[
        float, typer.Option(min=0.1, metavar="HOURS", help="Mean time between two changes of a pool's price.")
    ] = 6.0,
    period: Annotated[
        float | None,
        typer.Option(
            min=1e-3, metavar="MINUTES", help="Ask the policy this often, too.", show_default="at events only"
        ),
    ] = None,
    time_limit: Annotated[
        float | None,
        typer.Option(
            min=1e-3,
            metavar="S",
            help="Seconds for each call of fast and exact; without it fast counts its work, so that a run repeats, and "
            "exact has 20.",
            show_default=False,
        ),
    ] = None,
    work_limit: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Moves of the search at each call of fast.", show_default=False),
    ] = None,
    elastic: Annotated[
        bool,
        typer.Option(
            "--elastic/--rigid",
            help="Whether fast and exact plan changes of mode ahead for every job that may be stopped, or only for "
            "those that are said to be elastic.",
        ),
    ] = True,
    seed: Seed = 0,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Write the trace, as JSON, to this file.", show_default=False),
    ] = None,
    as_json: AsJson = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress; only the result.")] = False,
) -> None:
    """Simulate a policy: jobs are known from their release, and it decides at arrivals, completions, failures and
    changes of prices.

    Costs are those of a plan, realised: times are exact and not slotted. Every simulated schedule is replayed by code
    of its own before it is shown.
    """
    with failures(as_json):
        from planner.io.files import write_whole
        from planner.io.instances import read_instance
        from planner.simulation.chance import Options
        from planner.simulation.replayed import replayed
        from planner.simulation.run import simulate as run

        problem = read_instance(instance)
        made = POLICIES[policy](
            PolicyOptions(seed=seed, time_limit_s=time_limit, work=work_limit, elastic=elastic, move_price=move_price)
        )
        options = Options(
            seed=seed,
            may_burst=burst,
            moves=moves,
            restart_s=60.0 * restart_cost,
            duration_error=duration_error,
            mtbf_h=mtbf,
            repair_h=repair,
            price_sigma=price_swing,
            price_h=price_every,
            period_s=None if period is None else 60.0 * period,
        )
        outcome = replayed(problem, run(problem, made, options, _told(quiet)))
        if out is not None:
            write_whole(out, outcome.trace.model_dump_json(indent=1).encode() + b"\n")
        if as_json:
            output.document(outcome.summary() | {"trace": None if out is None else str(out)})
        else:
            from planner.report.simulation import page

            output.show(page(outcome, output.canvas()))
            if out is not None:
                output.say(f"written to  {out}", sys.stdout)


def _told(quiet: bool) -> Any:
    """What tells a person how far the simulation is: a line on stderr, only to a terminal."""

    def say(now_s: float, complete: int, jobs: int) -> None:
        sys.stderr.write(f"\r{complete} of {jobs} jobs complete, {now_s / 3600:.1f} h simulated ")
        if complete == jobs:
            sys.stderr.write("\r" + " " * 60 + "\r")
        sys.stderr.flush()

    return (lambda *_: None) if quiet or not output.is_terminal(sys.stderr) else say
