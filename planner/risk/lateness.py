"""What being late costs, by job and replay: tardiness, and value lost by later completion."""

from __future__ import annotations

import numpy as np

from models.domain import Instance
from models.utilities import lost_value
from planner.risk.replays import Replay

EDGE_S = 1e-6
"""As in the simulator: completions that are no later than this after a due date are in time."""


def completions(replays: tuple[Replay, ...]) -> np.ndarray:
    """Completions in s after the start, shape (replays, jobs); nan for rejected jobs."""
    return np.array([replay.completions_s for replay in replays])


def tardiness_s(instance: Instance, complete_s: np.ndarray) -> np.ndarray:
    """Seconds after the due date, 0 where there is none or the job is rejected; of the shape (replays, jobs) of the
    completions."""
    due = np.array([np.inf if job.due is None else job.due for job in instance.jobs])
    late = np.nan_to_num(complete_s - due, nan=0.0, neginf=0.0)
    return np.where(late > EDGE_S, late, 0.0)


def late_cost(instance: Instance, complete_s: np.ndarray) -> np.ndarray:
    """Money for weighted tardiness and lost value, shape (replays, jobs) as the completions; 0 for rejected jobs."""
    weights = np.array([job.weight for job in instance.jobs])
    cost = tardiness_s(instance, complete_s) * weights / 3600.0
    for j, job in enumerate(instance.jobs):
        runs = ~np.isnan(complete_s[:, j])
        lost = lost_value(job, complete_s[runs, j], EDGE_S)
        if lost is not None:
            cost[runs, j] += lost
    return cost
