"""Real input end to end: a day of a Philly cluster on 300 nodes, planned, checked, with its gap."""

from __future__ import annotations

from pathlib import Path

import pytest

from models.check import check
from planner.engines.base import Limits
from planner.io.philly import import_philly
from planner.solve import solve

TRACE = Path(__file__).resolve().parents[3] / "shared" / "data" / "traces" / "philly_jobs.csv"


@pytest.mark.slow
@pytest.mark.skipif(not TRACE.exists(), reason="the trace is not beside this checkout")
def test_a_day_of_philly_on_300_nodes() -> None:
    instance, report = import_philly(
        TRACE, "ee9e8c", "2017-12-11T18:00:00", 24, "p100:4x100,v100:8x200", "v100:8x20,a100:8x10"
    )
    assert report.rows_kept == 51 == len(instance.jobs)
    plan = solve(instance, "auto", Limits(time_limit_s=120)).plan
    assert check(instance, plan).ok
    assert plan.gap is not None
    assert plan.gap < 0.01
