"""Every plan of a super tiny instance by what it spends and what service loses: what budgets are held against."""

from __future__ import annotations

import math

from models.domain.instance import Instance
from tests import oracle_terms as terms
from tests.brute import _Enumeration
from tests.oracle_terms import JobRun

SERVICE = ("tardiness", "lost_value")


class Front(_Enumeration):
    """All schedules, each with the least that it spends."""

    def __init__(self, instance: Instance, objective: str) -> None:
        super().__init__(instance)
        self.objective = objective
        self.points: list[tuple[float, float]] = []
        """(spent, what is minimised) of every schedule."""
        self._choose([])

    def best(self, budget: float = math.inf) -> float | None:
        """The least of what is minimised, of schedules that spend no more."""
        return min((value for spent, value in self.points if spent <= budget + 1e-9), default=None)

    @property
    def least_spent(self) -> float:
        """Of all schedules."""
        return min((spent for spent, _ in self.points), default=math.inf)

    @property
    def spent_at_best(self) -> float:
        """The least that is spent for the least of what is minimised."""
        best = self.best()
        return min(spent for spent, value in self.points if best is not None and value <= best + 1e-9)

    def _choose(self, chosen: list[JobRun | None]) -> None:
        self.cheapest = math.inf  # nothing is cut: what costs more in all may spend less
        if len(chosen) < len(self.instance.jobs):
            super()._choose(chosen)
            return
        runs = [run for run in chosen if run is not None]
        if not (self._fits(runs) and self._is_in_order(chosen)):
            return
        spent = self._cost_without_storage(chosen) + self._storage_cost(runs) - self._service(chosen)
        if math.isfinite(spent):
            loss = self._service(chosen) if self.objective == "cost" else self._lost_welfare(chosen)
            self.points.append((spent, spent + loss if self.objective == "cost" else loss))

    def _service(self, chosen: list[JobRun | None]) -> float:
        """Tardiness, lost value and rejections of a schedule."""
        costs = [self.instance.jobs[j].reject_cost or 0.0 for j, run in enumerate(chosen) if run is None]
        for run in chosen:
            if run is not None:
                costs += [terms.cost_of_run(self.instance, run).get(term, 0.0) for term in SERVICE]
        return math.fsum(costs)

    def _lost_welfare(self, chosen: list[JobRun | None]) -> float:
        """What jobs are worth at most less what they are worth when complete; all of it where they do not run."""
        lost = []
        for job, run in zip(self.instance.jobs, chosen, strict=True):
            if run is not None:
                lost.append(terms.cost_of_run(self.instance, run).get("lost_value", 0.0))
            elif job.utility is not None:
                lost.append(job.utility.worth)
            else:
                lost.append(job.value[0].value if job.value else 0.0)
        return math.fsum(lost)
