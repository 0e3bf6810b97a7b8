"""The program as a process: pipes and terminals, colour, width, encodings, signals, readers that go away."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from planner.io.instances import read_instance
from planner.io.plans import write_plan_folder
from tests.cli.conftest import write_document
from tests.cli.terminal import COMMAND, ROOT, environment, on_terminal, piped
from tests.report.samples import instance_document, sample_plan

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="terminals and signals of POSIX")

SGR = re.compile(r"\x1b\[[0-9;]*m")

# A solver that only waits: it tells the terminal of a plan, and gives it when it is stopped.
WAITING = """
import sys, time, types
from pathlib import Path
from planner.engines.base import Progress, Solution
from tests.report.samples import sample_plan

READY = Path(sys.argv.pop(1))

def solve(instance, engine, limits):
    READY.touch()
    try:
        for k in range(200):
            if limits.on_progress:
                limits.on_progress(Progress("search", k / 10, 26.0, 25.0 if k else None))
            time.sleep(0.1)
    except KeyboardInterrupt:
        return Solution(sample_plan(instance, status="interrupted"), 1.0)
    return Solution(sample_plan(instance), 60.0)

sys.modules["planner.solve"] = types.SimpleNamespace(solve=solve)
from planner.cli.main import main
main()
"""


@pytest.fixture
def folder(instance_file: Path, tmp_path: Path) -> Path:
    """A plan folder."""
    instance = read_instance(instance_file)
    write_plan_folder(sample_plan(instance), instance, tmp_path / "plan")
    return tmp_path / "plan"


@pytest.mark.parametrize("command", [(), ("nightly",), ("history",)])
def test_help_is_quick_and_imports_nothing_heavy(command: tuple[str, ...]) -> None:
    script = (
        f"import sys; sys.argv = ['planner', *{command!r}, '--help']\n"
        "from planner.cli.main import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, check=True)
    loaded = set(done.stderr.split())
    heavy = {"pyomo", "pandas", "numpy", "scipy", "pydantic", "highspy", "networkx", "yaml", "pint", "rich"} | {
        "sqlite3"
    }
    # Typer reads the words after a command with pydantic.
    assert not loaded & (heavy - {"pydantic"} if command else heavy)
    assert "Examples:" in done.stdout
    begun = time.perf_counter()
    assert piped(*command, "--help").returncode == 0
    # About 0.1 s; importing the solvers would take more than a second.
    assert time.perf_counter() - begun < 1.0


def test_progress_is_on_a_terminal_only_and_goes_away(instance_file: Path, tmp_path: Path) -> None:
    waiting = (sys.executable, "-c", WAITING, str(tmp_path / "ready"))
    screen = on_terminal(
        "plan",
        instance_file,
        "--json",
        command=waiting,
        keys=lambda text: "\x03" if "25.00" in text else None,
    )
    shown = SGR.sub("", screen.text)
    assert "plan 26.00 USD  bound 25.00  gap 3.85 %" in shown
    assert "search" in shown
    assert screen.code == 130
    assert json.loads(screen.stdout)["status"] == "interrupted", "stdout has the document and nothing else"
    assert "\x1b[2K" in screen.text, "the line is erased"


def test_progress_without_colour_has_no_colour(instance_file: Path, tmp_path: Path) -> None:
    waiting = (sys.executable, "-c", WAITING, str(tmp_path / "ready"))
    screen = on_terminal(
        "plan",
        instance_file,
        command=waiting,
        keys=lambda text: "\x03" if "bound" in text else None,
        NO_COLOR="1",
        FORCE_COLOR="1",
    )
    assert "plan 26.00" in screen.text
    assert not SGR.search(screen.text)


@pytest.mark.parametrize("flag", ["--quiet", "-q"])
def test_quiet_shows_no_progress(instance_file: Path, tmp_path: Path, flag: str) -> None:
    ready = tmp_path / "ready"
    waiting = (sys.executable, "-c", WAITING, str(ready))
    screen = on_terminal(
        "plan", instance_file, flag, command=waiting, keys=lambda _: "\x03" if ready.exists() else None
    )
    assert screen.code == 130
    assert "26.00" not in screen.text


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_writes_the_best_plan_so_far(instance_file: Path, tmp_path: Path, number: signal.Signals) -> None:
    ready, out = tmp_path / "ready", tmp_path / "out"
    process = subprocess.Popen(
        [sys.executable, "-c", WAITING, ready, "plan", instance_file, "--out", out, "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
        text=True,
    )
    until = time.monotonic() + 60
    while not ready.exists() and time.monotonic() < until:
        time.sleep(0.05)
    time.sleep(0.2)
    process.send_signal(number)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert json.loads(stdout)["status"] == "interrupted"
    assert json.loads((out / "plan.json").read_text())["status"] == "interrupted"
    assert stderr == "interrupted; this is the best plan so far\n", "no progress on a pipe, no traceback"


def test_ctrl_c_in_a_real_solve_leaves_a_checked_plan(tmp_path: Path) -> None:
    instance, out = tmp_path / "i.yaml", tmp_path / "out"
    assert piped("generate", "contended", "--jobs", 60, "--nodes", 12, "--out", instance).returncode == 0
    args = ("plan", instance, "--engine", "exact", "--time-limit", "none", "--gap", "0", "--out", out)
    # An incumbent is on the screen: from then on there is something to write.
    screen = on_terminal(*args, keys=lambda text: "\x03" if re.search(r"plan [0-9]", SGR.sub("", text)) else None)
    assert screen.code == 130, screen.text
    assert "Traceback" not in screen.text
    assert json.loads((out / "plan.json").read_text())["status"] == "interrupted"
    assert piped("check", instance, out).returncode == 0


def test_colour_on_a_terminal_none_on_a_pipe_and_none_with_no_color(folder: Path) -> None:
    assert SGR.search(on_terminal("show", folder, stdout_too=True).text)
    assert not SGR.search(on_terminal("show", folder, stdout_too=True, NO_COLOR="1").text)
    assert not SGR.search(on_terminal("show", folder, stdout_too=True, NO_COLOR="1", FORCE_COLOR="1").text)
    assert not SGR.search(piped("show", folder).stdout)
    assert not SGR.search(piped("show", folder, NO_COLOR="1", FORCE_COLOR="1").stdout)
    assert not SGR.search(piped("plan", "nowhere").stderr)


@pytest.mark.parametrize("width", [50, 80, 160])
def test_the_chart_is_as_wide_as_the_terminal(folder: Path, width: int) -> None:
    lines = SGR.sub("", on_terminal("show", folder, stdout_too=True, width=width).text).splitlines()
    assert max(map(len, lines)) <= width
    assert max(map(len, lines)) > width - 15


def test_off_a_terminal_columns_give_the_width(folder: Path) -> None:
    def width(**changes: str) -> int:
        return max(map(len, piped("show", folder, **changes).stdout.splitlines()))

    assert 85 < width() <= 100
    assert 145 < width(COLUMNS="160") <= 160
    assert width(COLUMNS="20") <= 60
    assert width(COLUMNS="0") == width(COLUMNS="wide") == width()


def test_an_ascii_terminal_gets_ascii(tmp_path: Path) -> None:
    document = instance_document(("名前", "beta", "gamma", "delta"))
    path = write_document(tmp_path / "tonight.json", document)
    instance = read_instance(path)
    write_plan_folder(sample_plan(instance), instance, tmp_path / "plan")
    for by in ("pool", "job", "node"):
        done = piped(
            "show",
            tmp_path / "plan",
            "--by",
            by,
            "--instance",
            path,
            PYTHONIOENCODING="ascii",
            PYTHONUTF8="0",
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.isascii()
        assert "\\u540d" in done.stdout
        assert "[" in done.stdout
    assert json.loads(piped("show", tmp_path / "plan", "--json", PYTHONIOENCODING="ascii").stdout)["jobs"] == 4


def test_a_reader_that_goes_away_is_no_fault(folder: Path) -> None:
    process = subprocess.Popen(
        [*COMMAND, "show", str(folder)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    said = process.stderr.read()
    process.stderr.close()
    assert process.wait(timeout=60) == 0
    assert said == b""


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("flags", [(), ("--json",)])
def test_output_that_cannot_be_written_is_told(folder: Path, flags: tuple[str, ...]) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*COMMAND, "show", str(folder), *flags],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(),
            check=False,
        )
    assert done.returncode == 3
    assert "cannot write: standard output: no space left on device" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_closed_stdout_is_survived(folder: Path) -> None:
    done = subprocess.run(
        ["sh", "-c", 'exec "$@" >&-', "sh", *COMMAND, "show", str(folder)],
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
        check=False,
    )
    assert done.stderr == "cannot write: standard output: it is closed\n"
    assert done.returncode == 3


@pytest.mark.parametrize("flags", [(), ("--json",)])
def test_with_stdout_closed_a_plan_is_written_nevertheless(
    instance_file: Path, tmp_path: Path, flags: tuple[str, ...]
) -> None:
    begin = ["sh", "-c", 'exec "$@" >&-', "sh", *COMMAND, "plan", str(instance_file), "--engine", "fast", *flags]
    for out, code in (((), 3), (("--out", str(tmp_path / "p")), 0)):
        done = subprocess.run([*begin, *out], stderr=subprocess.PIPE, text=True, env=environment(), check=False)
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr
    assert piped("check", instance_file, tmp_path / "p").returncode == 0
    done = subprocess.run(
        ["sh", "-c", 'exec "$@" >&- 2>&-', "sh", *COMMAND, "show", str(tmp_path / "p")],
        env=environment(),
        check=False,
    )
    assert done.returncode == 3


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("args", [("--help",), ("plan", "--help"), ("--version",), ("schema", "--markdown")])
def test_help_that_cannot_be_written_is_3(args: tuple[str, ...]) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*COMMAND, *args], stdout=full, stderr=subprocess.PIPE, text=True, env=environment(), check=False
        )
    assert done.returncode == 3
    assert "cannot write" in done.stderr
    assert "no space left on device" in done.stderr
    assert "defect" not in done.stderr


def test_a_file_name_that_is_not_utf_8_is_survived(tmp_path: Path) -> None:
    name = os.fsdecode(bytes(tmp_path) + b"/\xff.yaml")
    done = subprocess.run([*COMMAND, "plan", name, "--json"], capture_output=True, env=environment(), check=False)
    assert done.returncode == 3
    assert json.loads(done.stdout)["status"] == "invalid"
    assert b"Traceback" not in done.stderr


def test_completion_knows_commands_and_engines() -> None:
    for words, found in (
        ("planner pl", "plan"),
        ("planner plan x --engine f", "fast"),
        ("planner show x --by n", "node"),
    ):
        done = piped(_PLANNER_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=str(len(words.split()) - 1))
        assert found in done.stdout.split()
