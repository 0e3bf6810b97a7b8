"""The risk of a plan: what its replays say of due dates, of its cost, and of where slack would help."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from models.domain import Instance, Plan
from models.errors import NoPlan
from planner.risk.lateness import EDGE_S, completions, late_cost, tardiness_s
from planner.risk.parallel import Batch, Stop, Task, Workers
from planner.risk.replays import TERMS, Replay, Setting, calm
from planner.risk.slack import SlackStudy, slack_study
from planner.risk.statistics import Chance, Mean, Spread
from planner.simulation.chance import Options

CHUNK_S = 0.5
"""About how long a worker is busy with what it is given at once: so long Ctrl-C waits for it."""
MOST_IN_CHUNK = 64
WORTHWHILE_S = 2.0

Progress = Callable[[str, int, int], None]
"""Told what is under way, how many replays of it are done, and of how many."""


@dataclass(frozen=True)
class Ask:
    """What is asked of a plan."""

    options: Options
    replays: int = 500
    workers: int = 1
    early: bool = False
    slack_h: float = 1.0
    candidates: int = 5
    """Jobs of which is found out what slack saves; 0: none."""


@dataclass(frozen=True)
class JobRisk:
    """What became of one job."""

    job: int
    in_time: Chance | None
    """Whether it meets its due date; None where it has none."""
    before_deadline: Chance | None
    completion_s: Spread
    tardiness_h: Spread
    planned_tardiness_h: float
    late_cost: Mean
    """Its weighted tardiness and lost value."""


@dataclass(frozen=True)
class Risk:
    """What the replays of a plan say."""

    instance: Instance
    plan: Plan
    ask: Ask
    replays: tuple[Replay, ...]
    undisturbed: Replay
    """The plan carried out where nothing goes wrong."""
    cost: Spread
    terms: dict[str, Spread]
    jobs: tuple[JobRisk, ...]
    """Of all jobs that run."""
    all_in_time: Chance
    late_jobs: Mean
    slack: SlackStudy | None
    stopped: Stop | None

    @property
    def planned(self) -> dict[str, float]:
        """The plan's cost by term."""
        return {term: self.plan.costs.get(term, 0.0) for term in TERMS}

    def document(self) -> dict[str, Any]:
        """For machines."""
        options, jobs = self.ask.options, self.instance.jobs
        calm_cost = dict(zip(TERMS, self.undisturbed.costs, strict=True))
        return {
            "status": {None: "ok", "interrupted": "interrupted", "worker died": "incomplete"}[self.stopped],
            "instance": self.instance.name,
            "instance_hash": self.plan.instance_hash,
            "currency": self.instance.currency,
            "seed": options.seed,
            "replays": len(self.replays),
            "replays_asked": self.ask.replays,
            "duration_error": options.duration_error,
            "mtbf_h": options.mtbf_h,
            "repair_h": options.repair_h,
            "restart_min": options.restart_s / 60.0,
            "early": self.ask.early,
            "cost": {"planned": self.plan.cost, "undisturbed": sum(self.undisturbed.costs)}
            | self.cost.document()
            | {"extra": self.cost.mean.less(self.plan.cost).document()},
            "costs": {
                term: {"planned": self.planned[term], "undisturbed": calm_cost[term]}
                | spread.document()
                | {"extra": spread.mean.less(self.planned[term]).document()}
                for term, spread in self.terms.items()
            },
            "all_in_time": self.all_in_time.document(),
            "late_jobs": self.late_jobs.document(),
            "restarts": float(np.mean([replay.restarts for replay in self.replays])),
            "failures": float(np.mean([replay.failures for replay in self.replays])),
            "interruptions": float(np.mean([replay.interruptions for replay in self.replays])),
            "jobs": [
                {
                    "job": jobs[job.job].id,
                    "due_h": _hours(jobs[job.job].due),
                    "deadline_h": _hours(jobs[job.job].deadline),
                    "in_time": None if job.in_time is None else job.in_time.document(),
                    "before_deadline": None if job.before_deadline is None else job.before_deadline.document(),
                    "completion_h": _in_hours(job.completion_s),
                    "tardiness_h": {"planned": job.planned_tardiness_h} | job.tardiness_h.document(),
                    "late_cost": job.late_cost.document(),
                }
                for job in self.jobs
            ],
            "slack": None if self.slack is None else self.slack.document([job.id for job in jobs]),
        }

    def by_replay(self) -> list[dict[str, Any]]:
        """Of every replay its cost by term, and when each job was complete."""
        names = [job.id for job in self.instance.jobs]
        return [
            {
                "replay": index,
                "cost": sum(replay.costs),
                "costs": {term: cost for term, cost in zip(TERMS, replay.costs, strict=True) if cost},
                "completions_h": {
                    name: at / 3600.0
                    for name, at in zip(names, replay.completions_s, strict=True)
                    if not math.isnan(at)
                },
                "restarts": replay.restarts,
                "failures": replay.failures,
                "interruptions": replay.interruptions,
            }
            for index, replay in enumerate(self.replays)
        ]


def _hours(seconds: float | None) -> float | None:
    return None if seconds is None else seconds / 3600.0


def _in_hours(spread: Spread) -> dict[str, Any]:
    return {name: _hours(getattr(spread, name)) for name in ("p5", "p50", "p95")} | {"mean": spread.mean.value / 3600.0}


def study(instance: Instance, plan: Plan, ask: Ask, on_progress: Progress = lambda *_: None) -> Risk | None:
    """Replay a plan that passes its check; None where it was stopped before the first replay was done.

    Raises NoPlan where a job can never run in some replay.
    """
    setting = Setting.of(instance, plan, ask.options, early=ask.early)
    begun = time.perf_counter()
    undisturbed = calm(setting)
    each_s = max(1e-6, time.perf_counter() - begun)
    chunk = max(1, min(MOST_IN_CHUNK, int(CHUNK_S / each_s), ask.replays // (4 * ask.workers)))
    # Processes take a second or two to begin: for less than that they are not worth it.
    workers = ask.workers if ask.replays * each_s > WORTHWHILE_S else 1
    with Workers(setting, workers) as pool:
        return _studied(setting, plan, ask, undisturbed, pool, chunk, on_progress)


def _studied(
    setting: Setting,
    plan: Plan,
    ask: Ask,
    undisturbed: Replay,
    pool: Workers,
    chunk: int,
    on_progress: Progress,
) -> Risk | None:
    def made(what: str, tasks: Sequence[Task]) -> Batch:
        done = 0

        def told(more: int) -> None:
            nonlocal done
            done += more
            on_progress(what, done, len(tasks))

        on_progress(what, 0, len(tasks))
        return pool.run(tasks, chunk, told)

    batch = made("replays", [Task(r) for r in range(ask.replays)])
    if not batch.replays:
        if batch.stopped == "worker died":
            raise NoPlan("a worker process died before the first replay was done; try --workers 1")
        return None
    slack = None
    stopped = batch.stopped
    if stopped is None and ask.candidates:
        slack = slack_study(
            setting, batch.replays, ask.slack_h, ask.candidates, lambda tasks: made("slack", tasks)
        )  # fmt: skip
        stopped = slack.stopped
    return summed_up(setting, plan, ask, batch.replays, undisturbed, slack, stopped)


def summed_up(
    setting: Setting,
    plan: Plan,
    ask: Ask,
    replays: tuple[Replay, ...],
    undisturbed: Replay,
    slack: SlackStudy | None,
    stopped: Stop | None,
) -> Risk:
    """What some replays say."""
    instance = setting.instance
    complete = completions(replays)
    late_s, late_money = tardiness_s(instance, complete), late_cost(instance, complete)
    costs = np.array([replay.costs for replay in replays])
    tardy = {run.job: run.tardiness_h for run in plan.runs}
    jobs = []
    for j, job in enumerate(instance.jobs):
        if not setting.orders.legs[j]:
            continue
        jobs.append(
            JobRisk(
                job=j,
                in_time=None if job.due is None else _chance(late_s[:, j] == 0),
                before_deadline=None if job.deadline is None else _chance(complete[:, j] <= job.deadline + EDGE_S),
                completion_s=Spread.of(complete[:, j]),
                tardiness_h=Spread.of(late_s[:, j] / 3600.0),
                planned_tardiness_h=tardy[job.id],
                late_cost=Mean.of(late_money[:, j]),
            )
        )
    return Risk(
        instance=instance,
        plan=plan,
        ask=ask,
        replays=replays,
        undisturbed=undisturbed,
        cost=Spread.of(costs.sum(axis=1)),
        terms={term: Spread.of(costs[:, k]) for k, term in enumerate(TERMS)},
        jobs=tuple(jobs),
        all_in_time=_chance((late_s == 0).all(axis=1)),
        late_jobs=Mean.of((late_s > 0).sum(axis=1).astype(float)),
        slack=slack,
        stopped=stopped,
    )


def _chance(happened: np.ndarray) -> Chance:
    return Chance(int(happened.sum()), len(happened))
