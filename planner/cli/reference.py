"""The reference of the command line as a page, made from the help itself."""

from __future__ import annotations

from typing import Any

HEAD = """# Command line

Made from the help by `scripts/make_cli_reference.py`; a test holds it equal.
"""


def markdown() -> str:
    """Every command with its help."""
    from typer.main import get_command

    from planner.cli.main import app

    pages = [HEAD]
    for names, text in _helps(get_command(app), ("planner",)):
        pages.append(f"{'#' * (len(names) + 1)} {' '.join(names)}\n\n```text\n{text}\n```\n")
    return "\n".join(pages)


def _helps(command: Any, names: tuple[str, ...], parent: Any = None) -> list[tuple[tuple[str, ...], str]]:
    """The help of a command and of those below it, 80 columns wide wherever it is made."""
    import typer

    # The settings of the application (-h) reach the commands by their parent's context.
    context = typer.Context(command, info_name=names[-1], parent=parent, terminal_width=80, **command.context_settings)
    found = [(names, "\n".join(line.rstrip() for line in command.get_help(context).splitlines()))]
    for name, child in getattr(command, "commands", {}).items():
        found += _helps(child, (*names, name), context)
    return found
