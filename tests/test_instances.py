"""The bundled instances are valid, are what their README says, and read back as written."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from models.domain import Instance
from models.domain.modes import modes_of
from planner.io.instances import read_instance, write_instance

ROOT = Path(__file__).parents[1]
DATA = ROOT.parent / "shared" / "data"


@pytest.fixture(scope="module")
def quickstart() -> Instance:
    return read_instance(ROOT / "instances" / "quickstart.yaml")


@pytest.fixture(scope="module")
def lab() -> Instance:
    return read_instance(ROOT / "instances" / "lab")


def _owned(instance: Instance) -> int:
    kinds = {site.id: site.kind for site in instance.sites}
    return sum(pool.nodes for pool in instance.pools if kinds[pool.site] == "on_prem")


def test_sizes_are_those_of_the_readme(quickstart: Instance, lab: Instance) -> None:
    assert (len(quickstart.jobs), _owned(quickstart), len(quickstart.datasets)) == (20, 12, 3)
    assert (len(lab.jobs), _owned(lab), len(lab.datasets)) == (60, 40, 6)
    assert quickstart.horizon == 24 * 3600
    assert lab.horizon == "auto"


def test_quickstart_has_every_kind_of_decision(quickstart: Instance) -> None:
    modes = [mode for job in quickstart.jobs for mode in modes_of(quickstart, job)]
    assert any(mode.is_gang and mode.num_nodes == 2 for mode in modes)
    assert any(mode.is_small for mode in modes)
    assert {mode.speed for mode in modes} == {1.0, 0.75, 0.5}
    assert sum(bool(job.after) for job in quickstart.jobs) == 1
    assert sum(job.deadline is not None for job in quickstart.jobs) == 1
    assert any(pool.billing_increment > 0 for pool in quickstart.pools)


def test_every_job_of_the_lab_has_modes(lab: Instance) -> None:
    for job in lab.jobs:
        assert modes_of(lab, job), job.id
    assert any(pool.market == "spot" for pool in lab.pools)
    assert any(job.spot for job in lab.jobs)


@pytest.mark.parametrize("name", ["again.yaml", "again.json", "again"])
def test_they_read_back_as_written(quickstart: Instance, lab: Instance, tmp_path: Path, name: str) -> None:
    for instance in (quickstart, lab):
        path = tmp_path / f"{instance.name}-{name}"
        write_instance(instance, path)
        assert read_instance(path) == instance


@pytest.mark.skipif(not DATA.exists(), reason="the public tables are not beside the checkout")
def test_the_lab_is_what_its_script_makes(lab: Instance, tmp_path: Path) -> None:
    script = ROOT / "scripts" / "make_lab.py"
    command = [sys.executable, str(script), "--data", str(DATA), "--out", str(tmp_path / "lab")]
    subprocess.run(command, check=True, cwd=ROOT)
    assert read_instance(tmp_path / "lab") == lab
