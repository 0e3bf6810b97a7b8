"""A night in a few lines, as cron mails them."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from planner.history.records import MEANINGS
from planner.nightly.run import Night
from planner.nightly.texts import counts_sentence
from planner.report.canvas import Canvas
from planner.report.facts import Facts
from planner.report.summary import gap_sentence, jobs_sentence
from planner.report.text import money


def summary(night: Night, canvas: Canvas, *, is_dry: bool) -> Iterator[RenderableType]:
    """What `planner nightly` prints."""
    facts, changes = Facts(night.plan, night.instance), night.difference
    rows = [
        ("run", f"{night.record.number}: {MEANINGS[night.record.status]}"),
        ("cost", f"{money(night.plan.cost, night.plan.currency)}, gap {gap_sentence(facts)}"),
        ("jobs", jobs_sentence(facts)),
        (
            "changes",
            "no plan before" if changes is None else f"since {changes.before.name}: {counts_sentence(changes)}",
        ),
        ("would write" if is_dry else "written to", str(night.folder)),
    ]
    if is_dry:
        rows[0] = ("dry run", f"of run {night.record.number}; nothing is written")
    for head, text in rows:
        # Not folded: a path must come out of a log in one piece.
        yield Text.assemble((f"{head:<12}", "dim"), canvas.name(text), no_wrap=True, overflow="ignore")
    for note in night.notes:
        yield Text.assemble(("note: ", "bold"), canvas.name(note), no_wrap=True, overflow="ignore")
