"""The risk of a plan on a page: what it comes to cost, who is late and how likely, whom to give slack."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from planner.report.canvas import Canvas
from planner.report.fitted import Cell, Column, fitted
from planner.report.text import count, hours, money, number, share
from planner.risk.replays import TERMS
from planner.risk.slack import SlackStudy
from planner.risk.statistics import Chance, Mean
from planner.risk.study import JobRisk, Risk


def page(risk: Risk, canvas: Canvas, most_jobs: int | None = None) -> Iterator[RenderableType]:
    """What `planner risk` prints."""
    for head, text in _lines(risk, canvas):
        yield Text.assemble((f"{head:<12}", "dim"), text)
    yield Text("")
    yield _costs(risk, canvas)
    yield Text("")
    yield _jobs(risk, canvas, most_jobs)
    if risk.slack is not None:
        yield Text("")
        yield from _slack(risk, risk.slack, canvas)


def _lines(risk: Risk, canvas: Canvas) -> Iterator[tuple[str, str]]:
    plan, options, cost = risk.plan, risk.ask.options, risk.cost
    currency = plan.currency
    yield "risk of", f"{canvas.name(plan.instance)}, planned at {money(plan.cost, currency)}"
    made = f"{len(risk.replays):,}" + (f" of {risk.ask.replays:,}" if risk.stopped else "")
    yield "replays", f"{made}, seed {options.seed}"
    parts = [f"duration error {options.duration_error:g}"]
    if options.mtbf_h is not None:
        parts.append(f"a node fails every {hours(options.mtbf_h)} for {hours(options.repair_h)}")
    if options.restart_s:
        parts.append(f"restarts take {hours(options.restart_s / 3600)}")
    yield "world", ", ".join(parts)
    extra = cost.mean.less(plan.cost)
    yield "cost", f"{money(cost.mean.value, currency)} in the mean{_within(cost.mean)}"
    yield "extra", f"{money(extra.value, currency)} over the plan{_within(extra)}"
    yield "spread", f"{number(cost.p5)} (5 %), {number(cost.p50)} (50 %), {number(cost.p95)} {currency} (95 %)"
    yield (
        "in time",
        f"all jobs in {_chance(risk.all_in_time)} of the replays; {number(risk.late_jobs.value)} late in the mean",
    )
    events = [(sum(replay.restarts for replay in risk.replays), "restarts")]
    events += [(sum(replay.failures for replay in risk.replays), "failures")]
    events += [(sum(replay.interruptions for replay in risk.replays), "interruptions")]
    happened = [f"{number(total / len(risk.replays))} {what}" for total, what in events if total]
    if happened:
        yield "a replay", f"{', '.join(happened)} in the mean"


def _within(mean: Mean) -> str:
    if mean.interval is None:
        return ""
    low, high = mean.interval
    return f" (95 %: {number(low)} to {number(high)})"


def _chance(chance: Chance) -> str:
    low, high = chance.interval
    return f"{share(chance.share)} ({100 * low:.1f} to {100 * high:.1f} %)"


def _costs(risk: Risk, canvas: Canvas) -> RenderableType:
    currency = risk.plan.currency
    columns = (
        Column("term"),
        Column(">planned"),
        Column(">undisturbed", 2),
        Column(">mean"),
        Column(">extra"),
        Column(">5 %", 3),
        Column(">50 %", 4),
        Column(">95 %", 1),
    )
    rows: list[list[Cell]] = []
    for term, calm in zip(TERMS, risk.undisturbed.costs, strict=True):
        planned, spread = risk.planned[term], risk.terms[term]
        if planned or calm or spread.mean.value:
            amounts = (planned, calm, spread.mean.value, spread.mean.value - planned, spread.p5, spread.p50, spread.p95)
            rows.append([term, *(number(amount) for amount in amounts)])
    total, cost = risk.plan.cost, risk.cost
    amounts = (
        *(total, sum(risk.undisturbed.costs), cost.mean.value, cost.mean.value - total),
        *(cost.p5, cost.p50, cost.p95),
    )
    rows.append([Text("total", "bold"), *(number(amount) for amount in amounts)])
    made = fitted(f"Cost in {currency}", columns, rows, canvas)
    note = "undisturbed: carried out where nothing goes wrong; times are exact there, and not rounded up to slots"
    made.caption = f"{made.caption}\n{note}" if made.caption else note
    made.caption_justify = "left"
    return made


def _jobs(risk: Risk, canvas: Canvas, most: int | None) -> RenderableType:
    """Jobs with a due date or a deadline, the least certain first."""
    listed = [job for job in risk.jobs if job.in_time is not None or job.before_deadline is not None]
    listed.sort(key=lambda job: (_least(job), -job.late_cost.value, job.job))
    shown = listed[:most]
    columns = (
        Column("job"),
        Column(">in time"),
        Column(">95 % interval", 1),
        Column(">planned late", 4),
        Column(">late, mean", 2),
        Column(">late, 95 %", 3),
        Column(f">{risk.plan.currency} late, mean", 5),
    )
    rows: list[list[Cell]] = []
    for job in shown:
        name = canvas.name(risk.instance.jobs[job.job].id)
        rows.append([name, *_chances(job), *_late(job), number(job.late_cost.value)])
    made = fitted("Jobs with a due date", columns, rows, canvas)
    notes = [str(made.caption)] if made.caption else []
    if len(shown) < len(listed):
        notes.append(f"and {len(listed) - len(shown):,} more; --all shows them")
    if len(listed) < len(risk.jobs):
        notes.append(f"{count(len(risk.jobs) - len(listed), 'job')} without a due date left out")
    if any(job.in_time is None for job in shown):
        notes.append("*: no due date, but a deadline")
    if notes:
        made.caption, made.caption_justify = "\n".join(notes), "left"
    return made


def _least(job: JobRisk) -> float:
    return min(chance.share for chance in (job.in_time, job.before_deadline) if chance is not None)


def _chances(job: JobRisk) -> tuple[str, str]:
    chance = job.in_time or job.before_deadline
    assert chance is not None
    low, high = chance.interval
    mark = "" if job.in_time is not None else "*"
    return f"{100 * chance.share:.1f} %{mark}", f"{100 * low:.1f} to {100 * high:.1f} %"


def _late(job: JobRisk) -> tuple[str, str, str]:
    tardiness = job.tardiness_h
    amounts = (job.planned_tardiness_h, tardiness.mean.value, tardiness.p95)
    first, second, third = (hours(amount) if amount else "-" for amount in amounts)
    return first, second, third


def _slack(risk: Risk, slack: SlackStudy, canvas: Canvas) -> Iterator[RenderableType]:
    currency = risk.plan.currency
    if not slack.jobs:
        what = "No job overran its estimate so that anybody was late: more slack for one saves nothing."
        yield Text(what if not slack.screened else "No job was tried with more slack.")
        return
    columns = (
        Column("job"),
        Column(f">{currency} saved an hour"),
        Column(">95 % interval", 2),
        Column(">its own", 3),
        Column(">of others", 3),
        Column(">overrun, mean", 4),
        Column(">overrun, 95 %", 1),
    )
    rows: list[list[Cell]] = []
    for job in slack.jobs:
        per_hour = [value / slack.hours for value in (job.saves.value, job.own, job.behind)]
        interval = "-"
        if job.saves.interval is not None:
            low, high = (bound / slack.hours for bound in job.saves.interval)
            interval = f"{number(low)} to {number(high)}"
        name = canvas.name(risk.instance.jobs[job.job].id)
        first, *parts = (number(value) for value in per_hour)
        rows.append([name, first, interval, *parts, hours(job.overrun_h.value), hours(job.overrun_p95_h)])
    made = fitted("Which job to give slack", columns, rows, canvas)
    notes = [str(made.caption)] if made.caption else []
    notes.append(
        f"cost of lateness saved where it overruns its estimate by up to {hours(slack.hours)} less, in the same replays"
    )
    if slack.others_at_most:
        left = slack.screened - len(slack.jobs)
        amount = money(slack.others_at_most / slack.hours, currency)
        notes.append(
            f"{count(left, 'more job')} screened only: at most about {amount} an hour each; --candidates tries more"
        )
    made.caption, made.caption_justify = "\n".join(notes), "left"
    yield made
