"""The Philly trace: every row is kept or counted under one reason; what is made up follows stated rules."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from models.domain import Instance
from models.errors import InvalidInput
from planner.hardware import GPU_TYPES, speed_up
from planner.io.philly import ImportReport, import_philly, parse_pools

REAL = Path(__file__).parents[3] / "shared" / "data" / "traces" / "philly_jobs.csv"

# One row for each reason, in the order of the reasons; four that are kept. Not sorted, as the real one.
ROWS = """\
timestamp,duration,num_gpus,gpu_time,cluster
2017-10-09 07:00:00,7200.0,8,57600.0,aaa111
2017-10-09 06:30:00,1800.0,1,1800.0,aaa111
2017-10-09 06:10:00,600,1,600,bbb222
2017-13-09 06:10:00,600,1,600,aaa111
,600,1,600,aaa111
2017-10-09 05:59:59,600,1,600,aaa111
2017-10-09 08:00:00,600,1,600,aaa111
2017-10-09 06:11:00,,1,600,aaa111
2017-10-09 06:11:30,inf,1,600,aaa111
2017-10-09 06:12:00,0,1,600,aaa111
2017-10-09 06:13:00,-5,1,600,aaa111
2017-10-09 06:14:00,400000,1,600,aaa111
2017-10-09 06:15:00,600,many,600,aaa111
2017-10-09 06:15:30,600,1.5,600,aaa111
2017-10-09 06:16:00,600,0,600,aaa111
2017-10-09 06:17:00,600,128,600,aaa111
2017-10-09 06:18:00,600

2017-10-09 06:00:00,36000,3,108000,aaa111,extra,cells
2017-10-09 07:59:59,60,2,120,aaa111
"""
DROPPED = {
    "other cluster": 2,
    "unparsable timestamp": 2,
    "before the window": 1,
    "after the window": 1,
    "missing or unreadable duration": 2,
    "zero duration": 1,
    "negative duration": 1,
    "longer than 72 hours": 1,
    "missing or unreadable GPUs": 2,
    "zero GPUs": 1,
    "more GPUs than any pool has": 1,
}


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "trace.csv"
    path.write_text(ROWS, encoding="utf-8")
    return path


def imported(path: Path, **changes: object) -> tuple[Instance, ImportReport]:
    options: dict[str, object] = {
        "cluster": "aaa111",
        "since": "2017-10-09T06:00:00",
        "hours": 2,
        "nodes": "p100:4x4,v100:8x2",
        "cloud": "a100:8x1",
    }
    return import_philly(path, **(options | changes))  # type: ignore[arg-type]


def test_every_row_is_kept_or_counted_once(trace: Path) -> None:
    instance, report = imported(trace)
    assert report.dropped == DROPPED
    assert report.rows_read == 19
    assert report.rows_kept == len(instance.jobs) == 4
    assert report.rows_read == report.rows_kept + sum(report.dropped.values())
    assert report.lines()[0] == "19 rows read, 4 kept"


def test_jobs_come_in_order_of_submission_with_their_line(trace: Path) -> None:
    instance, _ = imported(trace)
    assert [(job.id, job.release) for job in instance.jobs] == [
        ("line-20", 0.0),
        ("line-3", 1800.0),
        ("line-2", 3600.0),
        ("line-21", 7199.0),
    ]
    assert instance.start.isoformat() == "2017-10-09T06:00:00+00:00"


def test_the_cap_keeps_the_earliest(trace: Path) -> None:
    instance, report = imported(trace, jobs=2)
    assert [job.id for job in instance.jobs] == ["line-20", "line-3"]
    assert report.dropped["beyond --jobs"] == 2
    assert report.rows_read == report.rows_kept + sum(report.dropped.values())


def test_all_clusters(trace: Path) -> None:
    instance, report = imported(trace, cluster=None)
    assert "other cluster" not in report.dropped
    assert len(instance.jobs) == 5


def test_modes_follow_the_stated_rules(trace: Path) -> None:
    instance, _ = imported(trace)
    jobs = {job.id: job for job in instance.jobs}
    eight = {(mode.gpu, mode.gpus): mode.duration for mode in jobs["line-2"].modes}
    assert set(eight) == {(gpu, n) for gpu in ("P100", "V100", "A100") for n in (4, 8, 16)} - {("A100", 16)}
    assert eight["P100", 8] == 7200
    assert eight["V100", 8] == round(7200 / GPU_TYPES["V100"].speed)
    assert eight["P100", 16] == round(7200 * speed_up("ResNet-50", 8) / speed_up("ResNet-50", 16))
    assert {mode.gpus for mode in jobs["line-20"].modes} == {2, 3, 6}
    assert {mode.share for mode in jobs["line-3"].modes if mode.share} == {0.25, 0.5}
    assert all(mode.share is None for mode in jobs["line-2"].modes)
    for job in instance.jobs:
        fastest = 1800 * math.ceil(min(mode.duration for mode in job.modes) / 1800)
        edge = 1800 * math.ceil(job.release / 1800)
        assert job.due is not None
        assert 1.5 * fastest - 1 <= job.due - edge <= 5 * fastest + 1
    assert jobs["line-2"].weight == 8 * 4.0


def test_another_reference_scales_durations(trace: Path) -> None:
    instance, report = imported(trace, reference="V100")
    eight = {(m.gpu, m.gpus): m.duration for job in instance.jobs if job.id == "line-2" for m in job.modes}
    assert eight["V100", 8] == 7200
    assert any("measured on V100" in line for line in report.assumptions)


def test_the_seed_decides_what_is_drawn(trace: Path) -> None:
    one, two, other = (imported(trace, seed=seed)[0] for seed in (4, 4, 5))
    assert one.model_dump_json() == two.model_dump_json()
    assert one.content_hash != other.content_hash


def test_a_zone_is_turned_into_that_of_the_trace(trace: Path) -> None:
    instance, _ = imported(trace, since="2017-10-09T08:00:00+02:00")
    assert instance.content_hash == imported(trace)[0].content_hash


def test_nodes_and_prices() -> None:
    pools = parse_pools(" V100:8x200, p100:4x100", "on-prem")
    assert [(p["id"], p["gpu"], p["gpus_per_node"], p["nodes"]) for p in pools] == [
        ("v100x8-owned", "V100", 8, 200),
        ("p100x4-owned", "P100", 4, 100),
    ]
    assert pools[0]["price"] == 8 * GPU_TYPES["V100"].owned_usd_h
    (rented,) = parse_pools("v100:8x20", "cloud", is_cloud=True)
    assert rented["price"] == 8 * GPU_TYPES["V100"].cloud_usd_h
    assert rented["billing_increment"] == 3600


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"cluster": "aaa112"}, "--cluster: is not a cluster of the trace (is aaa112); did you mean aaa111?"),
        ({"cluster": "zz"}, "those with most jobs: aaa111, bbb222"),
        ({"since": "yesterday"}, "--from: is not a time"),
        ({"since": "2018-01-01"}, "its jobs were submitted from 2017-10-09T05:59:59"),
        ({"hours": -1}, "--hours"),
        ({"max_hours": float("nan")}, "--max-hours"),
        ({"jobs": 0}, "--jobs"),
        ({"due_factors": (3.0, 2.0)}, "due_factors"),
        ({"weight_per_gpu": -1}, "weight_per_gpu"),
        ({"nodes": "p10:4x2"}, "did you mean P100?"),
        ({"nodes": "p100"}, "--nodes: is not a pool (is p100)"),
        ({"nodes": "p100:0x3"}, "is not a pool"),
        ({"nodes": "p100:4x3,P100:4x3"}, "is there twice"),
        ({"cloud": "x"}, "--cloud: is not a pool"),
        ({"reference": "TPU"}, "is not a GPU type"),
    ],
)
def test_bad_arguments_are_told(trace: Path, changes: dict[str, object], part: str) -> None:
    with pytest.raises(InvalidInput) as error:
        imported(trace, **changes)
    assert part in str(error.value)


def test_all_bad_pools_are_told_at_once(trace: Path) -> None:
    with pytest.raises(InvalidInput) as error:
        imported(trace, nodes="p10:4x2,p100,t4:4x0")
    assert len(error.value.faults) == 3


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (b"", "has no column timestamp, duration, num_gpus, cluster"),
        (b"timestamp,duration,gpus\n1,2,3\n", "has no column num_gpus, cluster; its first line is"),
        (b"timestamp,duration,num_gpus,cluster\n", "is not a cluster of the trace"),
        (b"PK\x03\x04rest", "zip"),
        (b"\xff\xfet\x00", "UTF-16"),
        (b'timestamp,duration,num_gpus,cluster\n"' + b"x" * 200_000, ""),
    ],
)
def test_wrong_files_are_told(tmp_path: Path, content: bytes, part: str) -> None:
    path = tmp_path / "trace.csv"
    path.write_bytes(content)
    with pytest.raises(InvalidInput) as error:
        imported(path)
    assert part in str(error.value)


def test_no_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="does not exist"):
        imported(tmp_path / "none.csv")
    with pytest.raises(InvalidInput, match="is a folder"):
        imported(tmp_path)


@pytest.mark.skipif(not REAL.exists(), reason="the trace is not beside the checkout")
def test_a_window_of_the_real_trace() -> None:
    instance, report = import_philly(
        REAL, "ee9e8c", "2017-12-11T18:00:00", 24, nodes="p100:4x100,v100:8x200", cloud="v100:8x20,a100:8x10"
    )
    assert (report.rows_read, report.rows_kept) == (82_247, 51)
    assert report.rows_read == report.rows_kept + sum(report.dropped.values())
    assert sum(pool.nodes for pool in instance.pools if pool.site == "on-prem") == 300
    sizes = [max(mode.gpus or 0 for mode in job.modes) // 2 for job in instance.jobs]
    assert max(sizes) == 128
    assert sum(size > 1 for size in sizes) >= 35
