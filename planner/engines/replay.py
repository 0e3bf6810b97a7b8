"""A plan's runs as a schedule over some starts: where one engine goes on from what another has found."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from models.domain import Plan, Segment
from models.starts import Starts
from planner.engines.schedule import Schedule, Step

Key = tuple[object, ...]
"""Job, mode, pool, speed, cache level, whether it is kept, and whether it is a piece."""


def schedule_of(plan: Plan, starts: Starts) -> Schedule | None:
    """The same runs on the same nodes; None where the starts lack one of them (a reduction has left it out)."""
    instance = starts.instance
    index: dict[Key, int] = {
        (row.job, row.mode.name, instance.pools[row.pool].id, row.mode.speed, row.level, row.kept, row.is_piece): r
        for r, row in enumerate(starts.rows)
    }
    schedule = Schedule(starts)
    for run in plan.runs:
        j = instance.job_index[run.job]
        steps: list[Step] = []
        for segment in run.segments:
            step = _step(segment, j, len(run.segments) > 1, schedule, index)
            if step is None:
                return None
            steps.append(step)
        schedule.put(j, replace(steps[-1], earlier=tuple(steps[:-1])))
    return schedule


def _step(segment: Segment, j: int, is_piece: bool, schedule: Schedule, index: dict[Key, int]) -> Step | None:
    starts = schedule.starts
    level = round(segment.cached * starts.instance.cache_levels)
    r = index.get((j, segment.mode, segment.pool, segment.speed, level, segment.kept, is_piece))
    if r is None:
        return None
    row = starts.rows[r]
    slots = np.arange(segment.start_slot, segment.end_slot) if is_piece else np.array([segment.start_slot])
    if not np.isin(slots, row.slots).all():
        return None
    if schedule.pools[row.pool].shares_gpu(row.mode):
        spot = (segment.places[0].node, segment.places[0].gpus[0])
    else:
        spot = tuple(place.node for place in segment.places)
    return Step(r, segment.start_slot, spot, 0.0, len(slots) if is_piece else None)
