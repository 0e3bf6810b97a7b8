"""`planner show`: a plan in tables and charts."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from planner.cli import output
from planner.cli.failures import failures
from planner.cli.options import AsJson, PlanPath, examples

EPILOG = examples(
    "planner show plans/tonight",
    "planner show plans/tonight --by job --instance tonight.yaml",
    "planner show plans/tonight --by node | less",
    "planner show plans/tonight --json",
)


class By(StrEnum):
    """What the rows of the chart are."""

    POOL = "pool"
    JOB = "job"
    NODE = "node"


def show(
    plan: PlanPath,
    instance: Annotated[
        Path | None,
        typer.Option(
            metavar="INSTANCE",
            help="Its instance, for due dates and for which pools are rented.",
            show_default=False,
        ),
    ] = None,
    by: Annotated[By, typer.Option(help="What a row of the chart stands for.")] = By.POOL,
    everything: Annotated[
        bool, typer.Option("--all", help="Draw every row; without it charts and tables end after 500.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show a plan: certificate, cost by term, a chart over time, jobs, nodes, storage."""
    with failures(as_json):
        from models.errors import InvalidInput
        from planner.io.instances import read_instance
        from planner.io.plans import other_instance, read_plan
        from planner.report.facts import Facts, damage
        from planner.report.gantt import ROWS_SHOWN
        from planner.report.summary import details

        made = read_plan(plan)
        if faults := damage(made):
            raise InvalidInput([replace(fault, where=str(plan)) for fault in faults])
        problem = None if instance is None else read_instance(instance)
        if problem is not None and (fault := other_instance(made, problem)) is not None:
            raise InvalidInput([replace(fault, where=str(instance))])
        facts = Facts(made, problem)
        if as_json:
            content = made.model_dump(mode="json")
            output.document(facts.document() | {key: content[key] for key in content if key not in facts.document()})
        else:
            output.show(details(facts, output.canvas(), by.value, None if everything else ROWS_SHOWN))
