"""What completing a job is worth by the time at which it completes: its value in steps, or its utility.

No shape rises with time, so whoever completes earlier loses no more.
"""

from __future__ import annotations

import numpy as np

from models.domain.entities import (
    FairnessUtility,
    Job,
    LinearUtility,
    SigmoidUtility,
    StepUtility,
    Utility,
    ValueStep,
)


def lost_value(job: Job, completions: np.ndarray, tolerance_s: float) -> np.ndarray | None:
    """What completing a job at each of some times loses of what it is worth at most; None where it is worth nothing.

    Completions are in s after start, shape (n,); the result is money, of their shape, from 0 to the whole worth. A step
    still counts where the completion is no more than `tolerance_s` after it.
    """
    if job.utility is None and not job.value:
        return None
    return most_worth(job) - _worths(job, completions, tolerance_s)


def most_worth(job: Job) -> float:
    """What completing a job is worth at most; 0 for a job without value and utility."""
    if job.utility is not None:
        return job.utility.worth
    return job.value[0].value if job.value else 0.0


def worth_at(job: Job, completion_s: float, tolerance_s: float) -> float:
    """What completing a job at a time (s after start) is worth."""
    return float(_worths(job, np.array([completion_s]), tolerance_s)[0])


def _worths(job: Job, completions: np.ndarray, tolerance_s: float) -> np.ndarray:
    if job.utility is not None:
        return _worth_of_utility(job.utility, job.release, completions, tolerance_s)
    return _worth_of_steps(job.value, completions, tolerance_s)


def _worth_of_steps(steps: tuple[ValueStep, ...], completions: np.ndarray, tolerance_s: float) -> np.ndarray:
    """The worth of the first step whose time is no earlier than the completion; 0 after the last."""
    by = np.array([step.by for step in steps])
    worth = np.array([step.value for step in steps] + [0.0])
    return np.asarray(worth[np.searchsorted(by, completions - tolerance_s)])


def _worth_of_utility(utility: Utility, release: float, completions: np.ndarray, tolerance_s: float) -> np.ndarray:
    match utility:
        case LinearUtility():
            left = (utility.zero_at - completions) / (utility.zero_at - utility.full_until)
            return np.asarray(utility.worth * np.clip(left, 0.0, 1.0))
        case StepUtility():
            return np.where(completions - tolerance_s <= utility.by, utility.worth, 0.0)
        case SigmoidUtility():
            # The exponential of a negative number only: it may vanish, but not overflow.
            lateness = (completions - utility.midpoint) / utility.scale
            shrunk = np.exp(-np.abs(lateness))
            return np.asarray(utility.worth * np.where(lateness > 0, shrunk, 1.0) / (1.0 + shrunk))
        case FairnessUtility():
            return np.asarray(utility.worth / np.maximum(1.0, (completions - release) / utility.fair_time))


def times_that_count(job: Job) -> list[float]:
    """Due date, deadline, and the times at which the worth of completing a job falls, in s after start."""
    return [time for time in (job.due, job.deadline, *_turning_points(job)) if time is not None]


def _turning_points(job: Job) -> tuple[float, ...]:
    """Where a worth begins or ceases to fall; of a sigmoid the midpoint, where it falls most steeply."""
    match job.utility:
        case None:
            return tuple(step.by for step in job.value)
        case LinearUtility(full_until=full_until, zero_at=zero_at):
            return (full_until, zero_at)
        case StepUtility(by=by):
            return (by,)
        case SigmoidUtility(midpoint=midpoint):
            return (midpoint,)
        case FairnessUtility(fair_time=fair_time):
            return (job.release + fair_time,)
