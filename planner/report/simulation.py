"""A simulation on a page: what it cost, who was late, how busy the nodes were, how long the policy took."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from models.domain import COST_TERMS
from planner.report.canvas import Canvas
from planner.report.fitted import Column, fitted
from planner.report.text import hours, money, number, share
from planner.simulation.run import Outcome


def page(outcome: Outcome, canvas: Canvas) -> Iterator[RenderableType]:
    """What `planner simulate` prints."""
    trace, facts = outcome.trace, outcome.summary()
    waits, calls = facts["wait_h"], facts["replan_s"]
    lines = [
        ("simulation", f"{canvas.name(trace.instance)}, policy {trace.policy}, seed {trace.seed}"),
        ("cost", money(trace.cost, trace.currency)),
        ("jobs", f"{facts['jobs']} ({facts['late_jobs']} late, {len(trace.rejected)} rejected)"),
        ("tardiness", hours(facts["tardiness_h"])),
        (
            "waiting",
            f"{hours(waits['mean'])} in the mean, {hours(waits['p95'])} for 95 %, {hours(waits['max'])} at most",
        ),
        ("moves", f"{facts['moves']} restarts, {facts['failures']} failures, {facts['interruptions']} interruptions"),
        *([("prices", f"{facts['price_changes']} changes of what rented nodes cost")] if trace.prices else []),
        ("stops", _stops(facts["stops"])),
        ("decisions", f"{facts['replans']}; {_ms(calls['median'])} in the median, {_ms(calls['p99'])} for 99 %"),
    ]
    for head, text in lines:
        yield Text.assemble((f"{head:<12}", "dim"), text)
    yield Text("")
    rows = [
        [term, number(value), share(value / trace.cost if trace.cost else 0.0), COST_TERMS[term]]
        for term, value in trace.costs.items()
        if value
    ]
    columns = (Column("term"), Column(f">{trace.currency}"), Column(">share", 1), Column("what", 2))
    yield fitted("Cost", columns, rows, canvas)
    yield Text("")
    busy = [[canvas.name(pool), share(value, "never on")] for pool, value in outcome.utilisation.items()]
    yield fitted("Busy GPUs of nodes that were on", (Column("pool"), Column(">busy")), busy, canvas)


def _stops(stops: dict[str, Any]) -> str:
    """12 as planned, 3 replanned (2 at arrival, 1 at completion), 1 lost (1 at failure)."""
    parts = [f"{stops['plan']} as planned"] if stops["plan"] else []
    for kind, word in (("replan", "replanned"), ("loss", "lost")):
        if stops[kind]:
            causes = ", ".join(f"{number} at {cause}" for cause, number in stops[kind].items())
            parts.append(f"{sum(stops[kind].values())} {word} ({causes})")
    parts += [f"{stops['rejection']} rejected"] if stops["rejection"] else []
    return ", ".join(parts) or "none"


def _ms(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{1000 * seconds:.3g} ms"
