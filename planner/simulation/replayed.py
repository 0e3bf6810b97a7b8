"""Nothing simulated is shown that the replay does not confirm."""

from __future__ import annotations

from models.check.replay import replay
from models.domain import Instance
from models.errors import Defect
from planner.simulation.run import Outcome


def replayed(instance: Instance, outcome: Outcome) -> Outcome:
    """The same outcome, whose trace has been replayed. Raises Defect where the replay disagrees."""
    violations = replay(instance, outcome.trace)
    if violations:
        lines = "; ".join(f"{violation.where} {violation.message}" for violation in violations[:5])
        raise Defect(f"the simulation of policy {outcome.trace.policy} fails its replay: {lines}")
    return outcome
