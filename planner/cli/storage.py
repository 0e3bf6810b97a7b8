"""`planner storage`: what to cache and how much bandwidth to buy for jobs at given GPU counts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from planner.cli import output
from planner.cli.failures import failures
from planner.cli.options import AsJson, InstancePath, Modes, examples

EPILOG = examples(
    "planner storage instances/quickstart.yaml",
    "planner storage tonight.yaml --modes fastest",
    "planner storage tonight.yaml --plan plans/tonight --whole",
    "planner storage tonight.yaml --json",
)


def storage(
    instance: InstancePath,
    modes: Annotated[
        Modes | None,
        typer.Option(
            help="The mode of each job: its cheapest (as where nothing is said), its fastest, or that with the fewest "
            "GPUs.",
            show_default=False,
        ),
    ] = None,
    plan: Annotated[
        Path | None,
        typer.Option(metavar="PLAN", help="Take the modes from a plan instead.", show_default=False),
    ] = None,
    whole: Annotated[
        bool, typer.Option("--whole", help="Cache datasets wholly or not at all, in the optimum and by every rule.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show which datasets to cache and how much bandwidth to buy, so that no job waits for data, at the lowest cost.

    Jobs run in one mode each, all at once, at full speed; costs are those of an hour. What crosses to a site from a
    dataset's home elsewhere, into the cache or past it, is paid once and spread over the hours that are billed. Beside
    the optimum stand the usual rules, the cost of every number of datasets cached, and what a GB of cache and a MB/s
    more would save.
    """
    if modes is not None and plan is not None:
        raise typer.BadParameter(
            "is one rule for all jobs, and --plan names other modes; leave one out", param_hint="--modes"
        )
    rule = modes or Modes.CHEAPEST
    with failures(as_json):
        from planner.io.instances import read_instance
        from planner.io.plans import read_plan
        from planner.modes import modes_by, modes_in
        from planner.storage import study

        problem = read_instance(instance)
        chosen = modes_by(problem, rule.value) if plan is None else modes_in(problem, read_plan(plan))
        sites = study(problem, chosen, whole=whole)
        names = [job.id for job, mode in zip(problem.jobs, chosen, strict=True) if mode is None]
        if as_json:
            output.document(
                {
                    "instance": problem.name,
                    "currency": problem.currency,
                    "modes": rule.value if plan is None else "plan",
                    "whole": whole,
                    "jobs_left_out": names,
                    "sites": [site.document() for site in sites],
                }
            )
            return
        from planner.report.storage import page
        from planner.report.text import count

        told = f"{count(len(problem.jobs) - len(names), 'job')} in the " + (
            f"{rule.value} mode" if plan is None else "modes of the plan"
        )
        if names:
            told += f", {count(len(names), 'job')} left out"
        output.show(page(problem.name, problem.currency, told, sites, output.canvas()))
