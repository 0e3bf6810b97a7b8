"""Which job to give slack: what an hour more between a job and all that waits for it would save.

Slack is time in the plan between a job's estimated end and what waits for it: its due date, its successors, the jobs
behind it on its GPUs. So much more of it takes so much of the job's own overrun away from all of them. The
counterfactual is just that: the same replays with common random numbers, in which the job overruns its estimate by up
to `hours` less (by nothing where it overran by less; early completions stay). What is saved is the cost of being late,
of the job itself and of others; that a shorter job also costs fewer node-hours is no merit of slack and not counted.

Not every job is replayed again. The screening is one pass over the replays that there are: had everything behind a job
come forward by as much as its overrun can shrink, this much would have been saved. That is what the counterfactual
can reach where plans only shift to the right; boots, shares and failures can make it a little more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from planner.risk.lateness import completions, late_cost
from planner.risk.parallel import Batch, Stop, Task
from planner.risk.replays import Replay, Setting
from planner.risk.statistics import Mean

Run = Callable[[Sequence[Task]], Batch]


@dataclass(frozen=True)
class Slack:
    """What more slack for a job saves, in the mean of the replays."""

    job: int
    saves: Mean
    """Money, for all the slack asked about."""
    own: float
    """The part of it that is the job's own lateness."""
    behind: float
    """And the part that is others'."""
    overrun_h: Mean
    overrun_p95_h: float
    """Slack that its overruns stay within in 95 % of the replays."""
    at_most: float
    """What the screening said."""


@dataclass(frozen=True)
class SlackStudy:
    """The jobs that gain most by slack, the best first."""

    hours: float
    jobs: tuple[Slack, ...]
    screened: int
    """Jobs that overran, and anybody was late for."""
    others_at_most: float
    """What the screening says of the best job that was not replayed again; 0 where there is none."""
    stopped: Stop | None = None

    def document(self, names: Sequence[str]) -> dict[str, Any]:
        """For machines."""
        return {
            "hours": self.hours,
            "screened": self.screened,
            "replayed": len(self.jobs),
            "others_at_most": self.others_at_most,
            "jobs": [
                {
                    "job": names[slack.job],
                    "saves": slack.saves.document(),
                    "saves_per_hour": slack.saves.value / self.hours,
                    "own": slack.own,
                    "behind": slack.behind,
                    "overrun_h": slack.overrun_h.document() | {"p95": slack.overrun_p95_h},
                    "at_most": slack.at_most,
                }
                for slack in self.jobs
            ],
        }


def screening(setting: Setting, replays: tuple[Replay, ...], hours: float) -> np.ndarray:
    """Money that slack for each job could save in each replay, shape (replays, jobs)."""
    instance, orders = setting.instance, setting.orders
    complete = completions(replays)
    base = late_cost(instance, complete)
    relief_s = _overruns_s(setting, replays).clip(max=3600.0 * hours)
    found = np.zeros_like(base)
    for j, others in enumerate(orders.behind(instance)):
        which = np.array(sorted({j, *others}))
        if not (base[:, which] > 0).any() or not (relief_s[:, j] > 0).any():
            continue
        sooner = np.full_like(complete, np.nan)
        sooner[:, which] = complete[:, which] - relief_s[:, [j]]
        found[:, j] = (base - late_cost(instance, sooner))[:, which].sum(axis=1)
    return found


def slack_study(
    setting: Setting, replays: tuple[Replay, ...], hours: float, candidates: int, run: Run
) -> SlackStudy:  # fmt: skip
    """What `hours` more slack would save for the `candidates` jobs of which the screening promises most."""
    promised = screening(setting, replays, hours)
    means = promised.mean(axis=0)
    worth = [int(j) for j in np.argsort(-means, kind="stable") if means[j] > 0]
    chosen, rest = worth[:candidates], worth[candidates:]
    overruns = _overruns_s(setting, replays)
    base_cost = late_cost(setting.instance, completions(replays))
    # Where a job did not overrun, its replay would be the same again.
    again = {j: np.flatnonzero(overruns[:, j] > 0).tolist() for j in chosen}
    reliefs = {j: ((j, 3600.0 * hours / setting.orders.overrun_s(j)),) for j in chosen}
    batch = run([Task(r, reliefs[j]) for j in chosen for r in again[j]])
    made, found = list(batch.replays), []
    for j in chosen:
        mine, made = made[: len(again[j])], made[len(again[j]) :]
        if len(mine) < len(again[j]):
            break
        cost = base_cost.copy()
        cost[again[j]] = late_cost(setting.instance, completions(tuple(mine)))
        saved = base_cost - cost
        overrun_h = overruns[:, j] / 3600.0
        found.append(
            Slack(
                job=j,
                saves=Mean.of(saved.sum(axis=1)),
                own=float(saved[:, j].mean()),
                behind=float(np.delete(saved, j, axis=1).sum(axis=1).mean()),
                overrun_h=Mean.of(overrun_h),
                overrun_p95_h=float(np.quantile(overrun_h, 0.95)),
                at_most=float(means[j]),
            )
        )
    found.sort(key=lambda slack: (-slack.saves.value, slack.job))
    others = max((float(means[j]) for j in (*chosen[len(found) :], *rest)), default=0.0)
    return SlackStudy(hours, tuple(found), len(worth), others, batch.stopped)


def _overruns_s(setting: Setting, replays: tuple[Replay, ...]) -> np.ndarray:
    """Seconds that each job took longer than its estimate, shape (replays, jobs)."""
    factors = np.array([replay.factors for replay in replays])
    seconds = np.array([setting.orders.overrun_s(j) for j in range(factors.shape[1])])
    return (factors - 1.0).clip(min=0.0) * seconds
