"""The command `planner`: its commands, its version, and the last line of defence against a traceback."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from typing import Annotated, Any, cast

import typer
from typer.core import TyperGroup

from planner import __version__
from planner.cli import (
    check,
    convert,
    frontier,
    generate,
    history,
    importing,
    nightly,
    output,
    plan,
    risk,
    schema,
    show,
    simulate,
    storage,
    tariff,
)
from planner.cli.exits import Exit, exit_code_help
from planner.cli.failures import tell
from planner.cli.options import examples

EPILOG = (
    examples(
        "planner generate mixed --jobs 20 --nodes 12 --out tonight.yaml",
        "planner plan tonight.yaml --out plans/tonight",
        "planner show plans/tonight --instance tonight.yaml --by job",
        "planner check tonight.yaml plans/tonight",
    )
    + "\n\n\b\nExit codes:\n"
    + exit_code_help()
)

_UsageError = cast(type[typer.BadParameter], typer.BadParameter.__base__)


class Commands(TyperGroup):
    """The commands; wrong use of one is told to machines, too, where they asked for JSON."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command that is named."""
        wants_json = "--json" in [*getattr(ctx, "_protected_args", ()), *ctx.args]
        try:
            return super().invoke(ctx)
        except _UsageError as fault:
            fault.message = fault.message.removeprefix("Value error, ")  # whose check failed is no matter of the user's
            if wants_json:
                with contextlib.suppress(output.CannotPrint):
                    output.document({"status": "usage", "message": fault.format_message()})
            raise


# Plain help: it can be piped and copied, and it does not wait for rich.
app = typer.Typer(
    name="planner",
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(is_asked: bool) -> None:
    if is_asked:
        output.say(f"planner {__version__}", sys.stdout)
        raise typer.Exit


@app.callback()
def planner(
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version and exit.", callback=_print_version, is_eager=True),
    ] = False,
) -> None:
    """Lowest-cost plans for GPU training jobs with due dates on owned nodes and burst cloud, with a proof."""


def _add(function: Callable[..., None], epilog: str, short_help: str) -> None:
    app.command(epilog=epilog, short_help=short_help)(function)


_add(plan.plan, plan.EPILOG, "Make the cheapest plan for an instance.")
_add(show.show, show.EPILOG, "Show a plan in tables and charts.")
_add(check.check, check.EPILOG, "Check a plan against its instance.")
_add(frontier.frontier, frontier.EPILOG, "Show what every budget brings.")
_add(nightly.nightly, nightly.EPILOG, "Plan the night, for cron.")
_add(history.history, history.EPILOG, "Show the nightly runs.")
_add(simulate.simulate, simulate.EPILOG, "Simulate a policy as jobs arrive.")
_add(risk.risk, risk.EPILOG, "Show what may become of a plan.")
_add(storage.storage, storage.EPILOG, "Show what to cache and what bandwidth to buy.")
_add(tariff.tariff, tariff.EPILOG, "Fit bandwidth tariffs to a price list.")
_add(generate.generate, generate.EPILOG, "Write a random instance of a family.")
app.add_typer(importing.app, name="import", short_help="Make an instance from a trace.")
_add(convert.convert, convert.EPILOG, "Write an instance in another form.")
_add(schema.schema, schema.EPILOG, "Print the format of instances.")


def main() -> None:
    """Run the command line; never ends in a traceback."""
    output.prepare_streams()
    try:
        app(prog_name="planner")
    except Exception as fault:
        if isinstance(fault, OSError) and sys.stdout is not None:
            output.silence(sys.stdout)  # or it fails again at the end of the interpreter
        sys.exit(tell(fault, as_json=False))
    except KeyboardInterrupt:
        sys.exit(Exit.INTERRUPTED)


if __name__ == "__main__":
    main()
