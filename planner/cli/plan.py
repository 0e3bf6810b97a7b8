"""`planner plan`: from an instance to a checked plan."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from planner.cli import output, target
from planner.cli.exits import Exit
from planner.cli.failures import Unwritable, failures, outcome_of, tell
from planner.cli.options import AsJson, FixedGpus, InstancePath, Modes, Seed, examples
from planner.cli.progress import live
from planner.cli.signals import stop_signals

if TYPE_CHECKING:
    from models.domain import Instance
    from models.goal import Goal
    from planner.engines.base import Solution

EPILOG = examples(
    "planner plan instances/quickstart.yaml",
    "planner plan tonight.yaml --out plans/tonight",
    "planner plan tonight.yaml --engine exact --time-limit 10m --gap 1%",
    "planner plan tonight.yaml --engine fast --work-limit 20000 --out plans/tonight",
    "planner plan tonight.yaml --budget 5000",
    "planner plan tonight.yaml --objective welfare --budget 5000",
    "planner plan tonight.yaml --fixed-gpus smallest",
    "planner plan tonight.yaml --json --quiet > tonight.json",
)


class Engine(StrEnum):
    """Names of the engines as options."""

    AUTO = "auto"
    EXACT = "exact"
    FAST = "fast"


class Objective(StrEnum):
    """Names of the objectives as options."""

    COST = "cost"
    WELFARE = "welfare"


def parse_budget(text: str | None, currency: str, option: str = "--budget") -> float | None:
    """An amount of money; a bare number is in the instance's currency."""
    from models import units

    if text is None:
        return None
    try:
        value = units.parse(text, units.MONEY, currency)
    except ValueError as fault:
        raise typer.BadParameter(f"'{text}' {fault}", param_hint=option) from None
    if value < 0:
        raise typer.BadParameter(f"'{text}' is negative; write 5000", param_hint=option)
    return value


def parse_gap(text: str) -> float:
    """A relative gap: 0.01 or 1%."""
    number = text.strip()
    try:
        value = float(number[:-1]) / 100 if number.endswith("%") else float(number)
    except ValueError:
        raise typer.BadParameter(f"'{text}' is not a gap; write 0.01 or 1%", param_hint="--gap") from None
    if not 0 <= value <= 1:
        raise typer.BadParameter(f"'{text}' is not between 0 and 1 (100%)", param_hint="--gap")
    return value


def parse_time_limit(text: str) -> float | None:
    """Seconds, or a duration with its unit; none for no limit."""
    from models import units

    if text.strip().lower() in ("none", "inf"):
        return None
    try:
        value = units.parse(text, units.DURATION)
    except ValueError:
        raise typer.BadParameter(
            f"'{text}' is not a duration; write 60, 90s or 10m, or none for no limit",
            param_hint="--time-limit",
        ) from None
    if value < 0:
        raise typer.BadParameter(
            f"'{text}' is negative; write 60, 90s or 10m, or none for no limit", param_hint="--time-limit"
        )
    return value


def plan(
    instance: InstancePath,
    engine: Annotated[
        Engine,
        typer.Option(
            help="fast: prices and search, for any size; exact: the whole model in HiGHS, from the fast engine's plan; "
            "auto: fast, then exact where the model is small enough."
        ),
    ] = Engine.AUTO,
    objective: Annotated[
        Objective,
        typer.Option(
            help="cost: the lowest total cost; welfare: the highest sum of what completed jobs are worth, by their "
            "values and utilities."
        ),
    ] = Objective.COST,
    budget: Annotated[
        str | None,
        typer.Option(
            metavar="MONEY",
            help="Most that may be spent on nodes, energy, storage, transfers and restarts.",
            show_default=False,
        ),
    ] = None,
    fixed_gpus: FixedGpus = None,
    time_limit: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="When to stop, in seconds or as 90s, 10m; none: no limit. [default: 60, or none with --work-limit]",
            show_default=False,
        ),
    ] = None,
    gap: Annotated[
        str, typer.Option(metavar="GAP", help="Proven gap at which to stop, such as 0.01 or 1%.")
    ] = "0.0001",
    work_limit: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="N",
            help="Moves of the fast engine's search; with it and no time limit stated, the same inputs give the same "
            "plan, byte for byte, on any machine.",
            show_default=False,
        ),
    ] = None,
    seed: Seed = 0,
    threads: Annotated[int, typer.Option(min=1, max=1024, metavar="N", help="Threads to use.")] = 2,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder to write the plan to.", show_default=False)
    ] = None,
    as_json: AsJson = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No summary and no progress; only errors.")] = False,
) -> None:
    """Make the cheapest plan for an instance, check it, and say how far from the optimum it can be.

    Ctrl-C stops early: the best plan so far is written and the exit code is 130.
    """
    limits = {
        "time_limit_s": parse_time_limit(time_limit or ("60" if work_limit is None else "none")),
        "work": work_limit,
        "gap": parse_gap(gap),
        "seed": seed,
        "threads": threads,
    }
    with failures(as_json):
        if out is not None:
            target.probe(out)
        elif sys.stdout is None and (as_json or not quiet):
            raise output.CannotPrint(output.CLOSED)
        from planner.io.instances import read_instance

        problem = read_instance(instance)
        from models.goal import Goal

        goal = Goal(objective.value, parse_budget(budget, problem.currency))
        with stop_signals() as hold:
            solution = _solve(problem, goal, fixed_gpus, engine.value, limits, quiet, hold)
            trouble = _write(problem, solution, out)
        _report(problem, solution, None if trouble else out, trouble, as_json, quiet)
        if trouble is not None:
            raise typer.Exit(Exit.INVALID)
        if solution.plan.status == "interrupted":
            unsaved = "" if out else ", not written: no --out was given"
            output.say(f"interrupted; this is the best plan so far{unsaved}")
            raise typer.Exit(Exit.INTERRUPTED)


def _solve(
    problem: Instance,
    goal: Goal,
    fixed_gpus: Modes | None,
    engine: str,
    limits: dict[str, Any],
    quiet: bool,
    hold: Callable[[], None],
) -> Solution:
    from models.goal import LOWEST_COST

    with live(problem.currency, quiet) as on_progress:
        # The solvers take a second to import; the progress line stands by then.
        from planner.engines import clock
        from planner.engines.base import Limits
        from planner.solve import solve

        paused_s = clock.paused_s()
        asked = Limits(**limits, on_progress=on_progress)

        def planned(instance: Instance) -> Solution:
            if goal == LOWEST_COST:
                return solve(instance, engine, asked)
            from planner.frontier.budget import solve_for

            return solve_for(instance, goal, engine, asked)

        if fixed_gpus is None:
            solution = planned(problem)
        else:
            from planner.fixed import solve_at_fixed_gpus

            solution = solve_at_fixed_gpus(problem, fixed_gpus.value, planned)
        hold()
    return replace(solution, notes=(*solution.notes, *clock.notes(paused_s)))


def _write(problem: Instance, solution: Solution, out: Path | None) -> Unwritable | None:
    if out is None:
        return None
    try:
        target.write(solution.plan, problem, out)
    except Unwritable as trouble:
        return trouble
    return None


def _report(
    problem: Instance,
    solution: Solution,
    out: Path | None,
    trouble: Unwritable | None,
    as_json: bool,
    quiet: bool,
) -> None:
    from planner.report.facts import Facts
    from planner.report.summary import summary

    if sys.stdout is None and out is not None:
        return  # the plan is written, and nobody listens
    facts = Facts(solution.plan, problem)
    place = None if out is None else str(out)
    if as_json:
        content = facts.document() | {"wall_s": solution.wall_s, "out": place, "notes": list(solution.notes)}
        if trouble is not None:
            content["unwritable"] = outcome_of(trouble).document["message"]
        output.document(content)
    elif not quiet:
        output.show(summary(facts, output.canvas(), solution.wall_s, place, solution.notes))
    if trouble is not None:
        tell(trouble, as_json=False)
