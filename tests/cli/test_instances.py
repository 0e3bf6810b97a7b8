"""Commands that write instances or say what they look like: generate, import, convert, schema."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import jsonschema
import pytest

from planner.cli.generate import Family
from planner.generate import FAMILIES
from planner.io.instances import read_instance
from tests.cli.conftest import Run

TRACE = """timestamp,duration,num_gpus,cluster
2017-10-09 06:10:00,3600,1,ab12
2017-10-09 06:20:00,7200,8,ab12
2017-10-09 06:30:00,0,2,ab12
2017-10-09 06:40:00,600,2,other
"""


def test_the_families_are_those_of_the_generator() -> None:
    assert {family.value for family in Family} == set(FAMILIES)


@pytest.mark.parametrize("name", ["i.yaml", "i.json", "folder"])
def test_generate_writes_what_plan_reads_and_repeats(run: Run, tmp_path: Path, name: str) -> None:
    args = ("generate", "mixed", "--jobs", 6, "--nodes", 4, "--seed", 5, "--out")
    result = run(*args, tmp_path / name)
    assert result.exit_code == 0, result.output
    assert "6 jobs" in result.stdout
    run(*args, tmp_path / f"again-{name}")
    one, two = read_instance(tmp_path / name), read_instance(tmp_path / f"again-{name}")
    assert one.content_hash == two.content_hash
    assert len(one.jobs) == 6


def test_a_load_out_of_reach_is_told(run: Run, tmp_path: Path) -> None:
    result = run("generate", "mixed", "--jobs", 2, "--nodes", 50, "--load", 900, "--out", tmp_path / "i.yaml")
    assert result.exit_code == 3
    assert "load" in result.stderr
    assert not (tmp_path / "i.yaml").exists()


@pytest.mark.parametrize("out", ["/proc/nothing/i.yaml", "/dev/null/i.json"])
def test_an_instance_that_cannot_be_written_is_3(run: Run, out: str, instance_file: Path) -> None:
    for args in (("generate", "compute", "--jobs", 1, "--out", out), ("convert", instance_file, out)):
        result = run(*args)
        assert result.exit_code == 3
        assert "Traceback" not in result.output
        assert "defect" not in result.output


def test_what_is_not_an_instance_is_overwritten_by_force_only(run: Run, instance_file: Path, tmp_path: Path) -> None:
    generated = ("generate", "compute", "--jobs", 1, "--nodes", 1, "--out")
    (tmp_path / "folder").mkdir()
    for name in ("notes.yaml", "plan.json", "folder"):
        path = tmp_path / name
        file = path / "instance.yaml" if path.is_dir() else path
        for args in ((*generated, path), ("convert", instance_file, path)):
            file.write_text('{"format": "burstplan-plan/1", "title": "my thesis"}')
            result = run(*args)
            assert result.exit_code == 3
            assert "--force" in result.stderr
            assert "thesis" in file.read_text()
            assert run(*args, "--force").exit_code == 0
            assert run(*args).exit_code == 0, "an instance may be written again"
            assert read_instance(path)
    (tmp_path / "empty.yaml").touch()
    assert run(*generated, tmp_path / "empty.yaml").exit_code == 0


def test_convert_keeps_the_content(run: Run, instance_file: Path, tmp_path: Path) -> None:
    steps = [instance_file, tmp_path / "a.yaml", tmp_path / "folder", tmp_path / "b.json"]
    for source, target in pairwise(steps):
        assert run("convert", source, target).exit_code == 0
    assert len({read_instance(step).content_hash for step in steps}) == 1


def test_schema_is_a_json_schema_that_the_sample_meets(run: Run, instance_file: Path) -> None:
    schema = json.loads(run("schema").stdout)
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(json.loads(instance_file.read_text()), schema)


def test_schema_for_people_names_every_field(run: Run) -> None:
    page = run("schema", "--markdown").stdout
    for field in ("billing_increment", "reject_cost", "cache_capacity"):
        assert field in page


def test_import_philly_says_what_it_dropped_and_assumed(run: Run, tmp_path: Path) -> None:
    trace = tmp_path / "trace.csv"
    trace.write_text(TRACE)
    out = tmp_path / "i.yaml"
    result = run("import", "philly", trace, "--cluster", "ab12", "--from", "2017-10-09T06:00:00", "--nodes",
                 "p100:4x4", "--cloud", "none", "--hours", 2, "--out", out)  # fmt: skip
    assert result.exit_code == 0, result.output
    assert len(read_instance(out).jobs) == 2
    for part in ("2 jobs", "4 rows read, 2 kept", "zero duration: 1", "other cluster: 1", "UTC is assumed"):
        assert part in result.stdout


def test_import_philly_of_no_such_cluster_is_3(run: Run, tmp_path: Path) -> None:
    trace = tmp_path / "trace.csv"
    trace.write_text(TRACE)
    result = run("import", "philly", trace, "--cluster", "ab13", "--from", "2017-10-09", "--out", tmp_path / "i.yaml")
    assert result.exit_code == 3
    assert "did you mean ab12" in result.stderr
