"""A plan's runs as a schedule over some starts: where one engine goes on from what another has found."""

from __future__ import annotations

from models.domain import Plan
from models.starts import Starts
from planner.engines.schedule import Schedule, Step


def schedule_of(plan: Plan, starts: Starts) -> Schedule | None:
    """The same runs on the same nodes; None where the starts lack one of them (a reduction has left it out)."""
    instance = starts.instance
    index = {
        (row.job, row.mode.name, instance.pools[row.pool].id, row.mode.speed, row.level, row.kept): r
        for r, row in enumerate(starts.rows)
    }
    schedule = Schedule(starts)
    for run in plan.runs:
        segment = run.segments[0]
        j = instance.job_index[run.job]
        level = round(segment.cached * instance.cache_levels)
        r = index.get((j, segment.mode, segment.pool, segment.speed, level, segment.kept))
        if r is None or segment.start_slot not in starts.rows[r].slots:
            return None
        row = starts.rows[r]
        if schedule.pools[row.pool].shares_gpu(row.mode):
            spot = (segment.places[0].node, segment.places[0].gpus[0])
        else:
            spot = tuple(place.node for place in segment.places)
        schedule.put(j, Step(r, segment.start_slot, spot, 0.0))
    return schedule
