"""`planner frontier`: what every budget brings."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Annotated, Any

import typer

from planner.cli import output
from planner.cli.exits import Exit
from planner.cli.failures import failures
from planner.cli.options import AsJson, FixedGpus, InstancePath, Seed, examples
from planner.cli.plan import Engine, Objective, parse_budget, parse_gap, parse_time_limit
from planner.cli.progress import live

if TYPE_CHECKING:
    from planner.modes import Rule

EPILOG = examples(
    "planner frontier instances/quickstart.yaml --time-limit 60",
    "planner frontier tonight.yaml --objective welfare --points 12",
    "planner frontier tonight.yaml --budgets 1000,1500,2000 --json",
)


POINTS = 8


def frontier(
    instance: InstancePath,
    objective: Annotated[
        Objective, typer.Option(help="What a budget is spent for: the lowest total cost, or the highest welfare.")
    ] = Objective.COST,
    points: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=1000,
            metavar="N",
            help=f"Budgets, evenly from the cheapest plan to no limit; {POINTS} where nothing is said.",
            show_default=False,
        ),
    ] = None,
    budgets: Annotated[
        str | None,
        typer.Option(
            metavar="MONEY,..",
            help="These budgets instead; one that no plan keeps to has a row that says so.",
            show_default=False,
        ),
    ] = None,
    engine: Annotated[
        Engine,
        typer.Option(
            help="fast: prices on the budget; exact: the same in HiGHS; auto: fast, then the whole model with the "
            "budget as a row where it is small enough."
        ),
    ] = Engine.AUTO,
    fixed_gpus: FixedGpus = None,
    time_limit: Annotated[str, typer.Option(metavar="TIME", help="Time for all of it: 60, 90s or 10m.")] = "60",
    gap: Annotated[str, typer.Option(metavar="GAP", help="Proven gap at which each solve stops.")] = "0.001",
    seed: Seed = 0,
    threads: Annotated[int, typer.Option(min=1, max=1024, metavar="N", help="Threads to use.")] = 2,
    as_json: AsJson = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress; only the table.")] = False,
) -> None:
    """Show the frontier of what is spent against cost and tardiness, or welfare, over budgets; each with its proof."""
    if points is not None and budgets is not None:
        raise typer.BadParameter("says how many budgets, and --budgets which; leave one out", param_hint="--points")
    limits: dict[str, Any] = {
        "time_limit_s": parse_time_limit(time_limit),
        "gap": parse_gap(gap),
        "seed": seed,
        "threads": threads,
    }
    with failures(as_json):
        from planner.io.instances import read_instance

        problem = read_instance(instance)
        rule: Rule | None = None if fixed_gpus is None else fixed_gpus.value
        if rule is not None:
            from planner.fixed import at_fixed_gpus

            problem = at_fixed_gpus(problem, rule)
        asked = None
        if budgets is not None:
            asked = sorted({parse_budget(text, problem.currency, "--budgets") or 0.0 for text in budgets.split(",")})
        with live(problem.currency, quiet) as on_progress:
            from planner.engines.base import Limits
            from planner.fixed import told_of
            from planner.frontier.explorer import Explorer
            from planner.frontier.sweep import Sweep

            made = Explorer(problem, objective.value, engine.value, Limits(**limits, on_progress=on_progress))
            with told_of(rule):
                chosen = Sweep(made).run(POINTS if points is None else points, asked)
        rows = made.known.rows(chosen)
        if as_json:
            output.document(
                {
                    "instance": problem.name,
                    "currency": problem.currency,
                    "objective": objective.value,
                    "fixed_gpus": rule,
                    "status": "interrupted" if made.interrupted else "done",
                    "least_spent": made.known.least_spent,
                    "cheapest_spends": made.cheapest_spends,
                    "solves": made.solves,
                    "rows": [dataclasses.asdict(row) for row in rows],
                }
            )
        else:
            from planner.report.frontier import ends, page

            output.show(page(problem.name, problem.currency, objective.value, rows, output.canvas()))
            output.show(ends(made.cheapest_spends, made.known.least_spent, problem.currency))
        if made.interrupted:
            output.say("interrupted; this is what was known by then")
            raise typer.Exit(Exit.INTERRUPTED)
