"""The help: examples and exit codes are in it, and the page made from it is up to date."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from planner import __version__
from planner.cli.exits import Exit
from planner.cli.reference import markdown
from tests.cli.conftest import Run

ROOT = Path(__file__).parents[2]
COMMANDS = (
    *("plan", "show", "check", "generate", "import philly", "convert", "schema", "tariff", "storage", "frontier"),
    *("nightly", "history"),
)


def test_version(run: Run) -> None:
    assert run("--version").stdout == f"planner {__version__}\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_examples_that_are_its_own(run: Run, command: str) -> None:
    result = run(*command.split(), "--help")
    assert result.exit_code == 0
    examples = result.stdout.split("Examples:\n")[1]
    assert all(line.startswith("  ") for line in examples.rstrip("\n").splitlines())
    assert f"planner {command}" in examples
    # The examples use no option that does not exist.
    assert set(re.findall(r"--[a-z-]+", examples)) <= set(
        re.findall(r"--[a-z-]+", result.stdout.split("Examples:\n")[0])
    )


def test_the_help_lists_commands_and_exit_codes(run: Run) -> None:
    page = run("--help").stdout
    assert re.findall(r"^  (\w+)  ", page.split("Commands:\n")[1].split("Examples:")[0], re.M) == [
        *("plan", "show", "check", "frontier", "nightly", "history", "simulate", "risk", "storage", "tariff"),
        *("generate", "convert", "schema", "import"),
    ]
    assert [int(code) for code in re.findall(r"^    (\d+) ", page, re.M)] == [int(code) for code in Exit]


def test_the_reference_is_up_to_date() -> None:
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    assert page == markdown(), "run scripts/make_cli_reference.py"
    for command in COMMANDS:
        assert f"planner {command}\n" in page
