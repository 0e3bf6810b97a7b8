"""The tables of results/welfare.md, and what they say of the published figures, from the records of `welfare`."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.schedulers import SCHEDULERS
from models.storage.baselines import BASELINES

Record = dict[str, Any]
Found = dict[str, float]
"""What a plan came to."""
SAME = 1e-9


@dataclass(frozen=True)
class Measure:
    """What the plans of one kind of instances are compared by; more is better for us."""

    kind: str
    title: str
    unit: str
    compare: Callable[[Found, Found], float]
    """Ours and a rival's."""
    even: float
    """Where both are as good."""
    published: float
    """The most that the reference reports."""
    show: Callable[[float], str]

    def is_as_good(self, compared: float) -> bool:
        """Whether ours is at least as good."""
        return compared >= self.even - SAME


def _times(ours: Found, rival: Found) -> float:
    if rival["welfare"] > 0:
        return ours["welfare"] / rival["welfare"]
    return math.inf if ours["welfare"] > 0 else 1.0


MEASURES = (
    Measure("welfare", "Welfare", "ours / rival", _times, 1.0, 2.27, lambda x: "∞" if math.isinf(x) else f"{x:.2f}"),
    Measure(
        "completion",
        "Average completion time",
        "ours less by",
        lambda ours, rival: 1 - ours["mean_h"] / rival["mean_h"],
        0.0,
        0.089,
        lambda x: f"{x:.1%}",
    ),
)


@dataclass(frozen=True)
class Case:
    """A budget of an instance."""

    record: Record
    entry: Record

    @property
    def group(self) -> tuple[int, int, float]:
        """GPUs of a node, GPUs, part of the spending."""
        return self.record["node"], self.record["gpus"], self.entry["part"]

    def against(self, measure: Measure, scheduler: str | None = None, rule: str | None = None) -> float:
        """Ours against the best rival, or that of a scheduler, or of a rule; the one against which it does worst."""
        schedulers, rules = [scheduler] if scheduler else SCHEDULERS, [rule] if rule else BASELINES
        names = [f"{one}+{other}" for one in schedulers for other in rules]
        return min(measure.compare(self.entry["ours"], self.entry["rivals"][name]) for name in names)


def text_of(records: Sequence[Record], how: str) -> str:
    """The whole page; `how` says by what command it was made, and where."""
    schedulers, rules = ", ".join(SCHEDULERS), ", ".join(BASELINES)
    lines = [
        "# Welfare and average completion time within a budget",
        "",
        f"{how}",
        "",
        f"Each plan of ours is made on one thread, in {_seconds(records)}. Budgets are parts of what is spent if money "
        f"counts a hundredth. Rivals: {schedulers}, each with {rules}. Two things favour them: bandwidth is paid for "
        "by the plan's real peak, and of all plans within the budget that were looked at the best counts. "
        "∞: the rival is worth nothing. Where nodes have several GPUs they are paid whole, and the rivals know nothing "
        "of packing but best fit: what that costs them is in the ratios.",
    ]
    for measure in MEASURES:
        cases = [
            Case(record, entry) for record in records if record["kind"] == measure.kind for entry in record["budgets"]
        ]
        if cases:
            lines += ["", f"## {measure.title}", "", *_published(measure, cases), "", *_by_budget(measure, cases)]
            lines += ["", *_by_rival(measure, cases)]
    return "\n".join([*lines, ""])


def _seconds(records: Sequence[Record]) -> str:
    """How long our plans took, by the size of the cluster."""
    limits = {record["gpus"]: record["time_limit_s"] for record in records}
    return ", ".join(f"{limit:g} s for {gpus} GPUs" for gpus, limit in limits.items())


def _published(measure: Measure, cases: Sequence[Case]) -> Iterator[str]:
    """Where what the reference reports holds, and where not; where a rival is better."""
    bar = measure.show(measure.published)
    yield f"Published: up to {bar} ({measure.unit}). Here, in so many cases, at least as much"
    yield ""
    for node in sorted({case.record["node"] for case in cases}):
        members = [case for case in cases if case.record["node"] == node]
        for name in (None, *SCHEDULERS):
            parts = defaultdict(list)
            for case in members:
                parts[case.entry["part"]].append(case.against(measure, name))
            told = ", ".join(
                f"{sum(x >= measure.published for x in found)} of {len(found)} at {part:.0%}"
                for part, found in parts.items()
            )
            yield f"- nodes of {node}, against {f'the best of {name}' if name else 'the best rival'}: {told}"
    worse = [case for case in cases if not measure.is_as_good(case.against(measure))]
    within = sum(case.entry["ours"]["gap"] is None or case.entry["ours"]["gap"] > 0 for case in worse)
    yield ""
    yield (
        f"Some rival is better than ours in {len(worse)} of {len(cases)} cases; in {within} of them our plan was not "
        "proven to be the best."
    )


def _by_budget(measure: Measure, cases: Sequence[Case]) -> Iterator[str]:
    """One line for each node, size and budget, against the best of all rivals in each case."""
    yield (
        f"| GPUs a node | GPUs | budget | cases | our welfare, of the most | gap, median | worst | {measure.unit}, "
        "best rival: median | least | most | at least as good |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|---|"
    groups: dict[tuple[int, int, float], list[Case]] = defaultdict(list)
    for case in cases:
        groups[case.group].append(case)
    for (node, gpus, part), members in groups.items():
        reached = statistics.median(case.entry["ours"]["welfare"] / case.record["most_welfare"] for case in members)
        gaps = [math.inf if case.entry["ours"]["gap"] is None else case.entry["ours"]["gap"] for case in members]
        yield (
            f"| {node} | {gpus} | {part:.0%} | {len(members)} | {reached:.1%} | {statistics.median(gaps):.2%} | "
            f"{max(gaps):.2%} | {_spread(measure, [case.against(measure) for case in members])} |"
        )


def _by_rival(measure: Measure, cases: Sequence[Case]) -> Iterator[str]:
    """One line for each scheduler, by the GPUs of a node: with its best rule in each case, and with each rule."""
    yield f"| GPUs a node | scheduler | {measure.unit}, best rule: median | least | most | at least as good |"
    yield "|---|---|---|---|---|---|"
    for node, scheduler, members in _by_scheduler(cases):
        yield f"| {node} | {scheduler} | {_spread(measure, [case.against(measure, scheduler) for case in members])} |"
    yield ""
    yield f"{measure.unit[0].upper()}{measure.unit[1:]}, by the rule of storage: median (least to most)."
    yield ""
    yield f"| GPUs a node | scheduler | {' | '.join(BASELINES)} |"
    yield "|---" * (2 + len(BASELINES)) + "|"
    for node, scheduler, members in _by_scheduler(cases):
        cells = []
        for rule in BASELINES:
            found = [case.against(measure, scheduler, rule) for case in members]
            middle, least, most = map(measure.show, (statistics.median(found), min(found), max(found)))
            cells.append(f"{middle} ({least} to {most})")
        yield f"| {node} | {scheduler} | {' | '.join(cells)} |"


def _by_scheduler(cases: Sequence[Case]) -> Iterator[tuple[int, str, list[Case]]]:
    for node in sorted({case.record["node"] for case in cases}):
        for scheduler in SCHEDULERS:
            yield node, scheduler, [case for case in cases if case.record["node"] == node]


def _spread(measure: Measure, found: Sequence[float]) -> str:
    """Median, least, most, and how often ours is at least as good."""
    numbers = [measure.show(x) for x in (statistics.median(found), min(found), max(found))]
    as_good = sum(map(measure.is_as_good, found))
    return " | ".join([*numbers, f"{as_good} of {len(found)}"])
