"""What a program start imports: only what it is going to use."""

from __future__ import annotations

import subprocess
import sys

import pytest

# Seconds of importing that only the exact engine, unusual units and traces need.
HEAVY = ("pyomo", "pandas", "pint")


@pytest.mark.parametrize("module", ["planner.solve", "planner.engines.highs", "planner.engines.fast.engine"])
def test_solving_imports_nothing_that_only_the_exact_engine_needs(module: str) -> None:
    code = f"import sys, {module}\nprint([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_an_instance_without_predecessors_needs_no_graphs() -> None:
    code = (
        "import sys\n"
        "from planner.io.instances import read_instance\n"
        "import models.precedence\n"
        "read_instance('instances/quickstart.yaml')\n"
        f"print([name for name in {(*HEAVY, 'networkx', 'scipy')} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
