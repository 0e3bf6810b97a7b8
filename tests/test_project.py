"""The project as a whole: linters, types, directions of imports, the wheel, what importing costs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def run(*command: str, cwd: Path = ROOT, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """A command that must succeed; its output is shown where it does not."""
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}\n{done.stderr}"
    return done


def tool(name: str) -> str:
    """A console script of this environment."""
    return str(Path(sysconfig.get_path("scripts")) / name)


def test_ruff_finds_nothing() -> None:
    run(tool("ruff"), "check", ".")
    run(tool("ruff"), "format", "--check", ".")


def test_types_are_sound() -> None:
    run(tool("mypy"))


def test_imports_go_one_way() -> None:
    run(tool("lint-imports"), "--no-cache")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """The wheel alone in a clean environment: the folder of its scripts, and the variables to run them.

    The dependencies are lent by path; a path makes no .pth file effective, so the checkout itself cannot be imported.
    """
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT))
    (wheel,) = folder.glob("burstplan-*.whl")
    venv.create(folder / "env", with_pip=False, symlinks=True)
    scripts = folder / "env" / "bin"
    site = folder / "env" / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    run(
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(scripts / "python"),
        "install",
        "--no-deps",
        "--no-index",
        str(wheel),
    )
    assert (site / "models").is_dir()
    return scripts, {**os.environ, "PYTHONPATH": sysconfig.get_path("purelib"), "NO_COLOR": "1"}


def test_the_wheel_plans_by_itself(installed: tuple[Path, dict[str, str]], tmp_path: Path) -> None:
    scripts, env = installed
    planner = str(scripts / "planner")
    instance = str(tmp_path / "tiny.yaml")
    where = [str(scripts / "python"), "-c", "import models, planner; print(models.__file__, planner.__file__)"]
    assert run(*where, cwd=tmp_path, env=env).stdout.count(str(scripts.parent)) == 2
    run(
        planner,
        "generate",
        "mixed",
        "--jobs",
        "3",
        "--nodes",
        "7",
        "--seed",
        "1",
        "--out",
        instance,
        cwd=tmp_path,
        env=env,
    )
    done = run(planner, "plan", instance, "--engine", "fast", "--json", "--out", "out", cwd=tmp_path, env=env)
    assert json.loads(done.stdout)["status"] in ("optimal", "feasible")
    run(planner, "check", instance, "out", cwd=tmp_path, env=env)


def test_every_dependency_earns_its_line_in_the_readme() -> None:
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    readme = (ROOT / "README.md").read_text()
    for requirement in project["dependencies"]:
        name = requirement.split(">")[0].split("=")[0]
        assert f"**{name}**" in readme, f"README.md has no line on what {name} is for"
        assert ">=" in requirement or "==" in requirement, f"{requirement} has no floor"
