"""`planner check`: is a plan feasible, and are its costs what it says?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from planner.cli import output
from planner.cli.exits import Exit
from planner.cli.failures import failures
from planner.cli.options import AsJson, InstancePath, PlanPath, examples

if TYPE_CHECKING:
    from models.check import Report

EPILOG = examples(
    "planner check tonight.yaml plans/tonight",
    "planner check tonight.yaml plans/tonight/plan.json --json",
)


def check(instance: InstancePath, plan: PlanPath, as_json: AsJson = False) -> None:
    """Check a plan against its instance: every violation with its amount, every cost recomputed.

    The check shares no code with the engines. That no cheaper plan exists it takes from them: the dual bound is
    compared with the cost, not proven again. The exit code is 0 for a plan that passes, and 6 for another.
    """
    with failures(as_json):
        from models.check import check as check_plan
        from planner.io.instances import read_instance
        from planner.io.plans import read_plan

        problem, made = read_instance(instance), read_plan(plan)
        report = check_plan(problem, made)
        if as_json:
            output.document(_document(report) | {"plan_cost": made.cost, "plan_costs": dict(made.costs)})
        else:
            from rich.text import Text

            from planner.report.gantt import ROWS_SHOWN
            from planner.report.tables import recomputed_table, violation_table

            page = output.canvas()
            if report.ok:
                output.show([Text("the plan passes: no violations", style="green"), Text("")])
            else:
                more = len(report.violations) - ROWS_SHOWN
                rest = f"and {more:,} more; --json lists them all\n" if more > 0 else ""
                output.show([violation_table(report, page, ROWS_SHOWN), Text(rest)])
            scope = (
                "Feasibility and every cost were recomputed from the instance. The dual bound is the engine's claim: "
                "it is compared with the cost, not proven again."
            )
            output.show([recomputed_table(report, made, page), Text(f"\n{scope}", style="dim")])
        if not report.ok:
            raise typer.Exit(Exit.VIOLATED)


def _document(report: Report) -> dict[str, object]:
    listed = [{"kind": v.kind, "where": v.where, "amount": v.amount, "message": v.message} for v in report.violations]
    return {
        "status": "ok" if report.ok else "violated",
        "violations": listed,
        "cost": report.cost,
        "costs": dict(report.costs),
    }
