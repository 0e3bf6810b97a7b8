"""`planner history`: the nightly runs, what their plans cost, and what changed from one to the next."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from planner.cli import output
from planner.cli.failures import failures
from planner.cli.options import AsJson, examples

EPILOG = examples(
    "planner history plans",
    "planner history plans --last 30 --status planned --status kept",
    "planner history plans --since 2026-01-01 --json",
    "planner history plans --run 17",
    "planner history plans --job bert-17",
)


class Outcome(StrEnum):
    """What may become of a run, as options."""

    RUNNING = "running"
    PLANNED = "planned"
    KEPT = "kept"
    INTERRUPTED = "interrupted"
    INFEASIBLE = "infeasible"
    NO_PLAN = "no_plan"
    INVALID = "invalid"
    UNWRITABLE = "unwritable"
    FAILED = "failed"
    CRASHED = "crashed"


def parse_since(text: str | None) -> str | None:
    """A date or an instant as the history writes instants; without a zone it is in that of this machine."""
    if text is None:
        return None
    try:
        return datetime.fromisoformat(text.strip()).astimezone(UTC).isoformat(timespec="seconds")
    except (ValueError, OverflowError):
        raise typer.BadParameter(
            f"'{text}' is not a date; write 2026-01-12 or 2026-01-12T18:00:00+01:00", param_hint="--since"
        ) from None


def history(
    into: Annotated[
        Path, typer.Argument(metavar="DIR", help="Folder that `planner nightly --into` writes.", show_default=False)
    ],
    last: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Most runs to show; 20 if nothing else limits them.")
    ] = None,
    run: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="One run in detail: what it changed for which job, and why.", show_default=False
        ),
    ] = None,
    job: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="What each run planned for one job.", show_default=False),
    ] = None,
    status: Annotated[
        list[Outcome] | None,
        typer.Option(help="Only runs of which this became; may be given several times.", show_default=False),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(metavar="DATE", help="Only runs begun on or after this date or instant.", show_default=False),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show the runs of `planner nightly`, the latest first, those too that made no plan.

    The history is read while a run is under way as well; nothing is changed in it.
    """
    if sum(option is not None for option in (run, job)) == 2:
        raise typer.BadParameter("--run and --job cannot be given together", param_hint="--job")
    if run is not None and (last is not None or status or since is not None):
        raise typer.BadParameter("shows one run, so --last, --status and --since do not go with it", param_hint="--run")
    if job is not None and (status or since is not None):
        raise typer.BadParameter("goes with --last, not with --status or --since", param_hint="--job")
    begun = parse_since(since)
    with failures(as_json):
        from planner.history.store import History
        from planner.io.texts import refuse

        with History.read(into / "history.sqlite") as store:
            if run is not None:
                record = store.run(run)
                if record is None:
                    latest = next(iter(store.runs(1)), None)
                    mend = "there are none yet" if latest is None else f"the latest is {latest.number}"
                    raise refuse(store.path, "has no such run", mend, str(run))
                entries = store.entries(run)
                content: dict[str, Any] = {"run": record.model_dump(mode="json")}
                content["jobs"] = [entry.model_dump(mode="json") for entry in entries]
            elif job is not None:
                found = store.of_job(job, last)
                if not found:
                    raise refuse(store.path, "has no run that planned such a job", "check its name", job)
                content = {
                    "job": job,
                    "runs": [{"run": of.number} | entry.model_dump(mode="json") for of, entry in found],
                }
            else:
                runs = store.runs(last or (None if status or begun else 20), [one.value for one in status or ()], begun)
                content = {"runs": [one.model_dump(mode="json") for one in runs]}
        if as_json:
            output.document(content)
            return
        from planner.history import tables

        page = output.canvas()
        if run is not None and record is not None:
            output.show(tables.run_page(record, entries, page))
        elif job is not None:
            output.show(tables.job_table(job, found, page))
        else:
            output.show(tables.runs_table(runs, page))
