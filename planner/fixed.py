"""GPU counts fixed before anything is planned: each job on as many GPUs as one of its modes has.

Pools, times, speeds, caches and bandwidth are still chosen. What is proven of such a plan holds among plans at these
counts alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from models.domain import Instance, Job, ModeEntry
from models.domain.modes import Mode, entries_of, entry_name, with_entries
from models.errors import Infeasible
from planner.engines.base import Solution
from planner.modes import Rule, modes_by
from planner.solve import must_pass


def at_fixed_gpus(instance: Instance, rule: Rule) -> Instance:
    """The instance with those modes alone that have as many GPUs, or as large a share, as the job's mode by the rule.

    A job that runs already keeps all its modes: where it runs has been settled.
    """
    chosen = modes_by(instance, rule)
    jobs = tuple(_fixed(instance, job, mode) for job, mode in zip(instance.jobs, chosen, strict=True))
    return instance.altered(jobs=jobs)


def _fixed(instance: Instance, job: Job, mode: Mode | None) -> Job:
    if mode is None or job.running is not None:
        return job
    entries = list(entries_of(job, instance.throughputs))
    width = next(_width(entry) for entry in entries if entry_name(entry) == mode.name)
    kept = tuple(entry for entry in entries if _width(entry) == width)
    return with_entries(job, kept)


def _width(entry: ModeEntry) -> tuple[int | None, float | None]:
    return entry.gpus, entry.share


@contextmanager
def told_of(rule: Rule | None) -> Iterator[None]:
    """Where nothing is feasible, say that GPU counts were fixed, if they were."""
    try:
        yield
    except Infeasible as failure:
        if rule is None:
            raise
        told = f"with the GPUs of each job fixed as in its {rule} mode, {failure.summary}"
        raise Infeasible(told, failure.reasons) from None


def solve_at_fixed_gpus(instance: Instance, rule: Rule, solve: Callable[[Instance], Solution]) -> Solution:
    """What `solve` finds at the fixed counts, as a plan of the instance itself that says so, checked.

    Raises what `solve` raises; Infeasible says that the counts were fixed.
    """
    with told_of(rule):
        solution = solve(at_fixed_gpus(instance, rule))
    plan = solution.plan.model_copy(update={"instance_hash": instance.content_hash, "fixed_gpus": rule})
    must_pass(instance, plan)
    return replace(solution, plan=plan)
