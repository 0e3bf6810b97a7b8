"""Tables of a plan: cost by term, certificate, jobs, pools, nodes that are on, storage, violations.

Cells are folded where a table is wider than the page, never cut: a name that cannot be read is of no use.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.table import Table
from rich.text import Text

from models.domain import COST_TERMS, Job, NodeOn, Plan, Run
from planner.report.canvas import BURST, LATE, Canvas
from planner.report.facts import Facts
from planner.report.gantt import busy_gpus, first_jobs, last_slot
from planner.report.text import count, hours, money, number, ranges, share

if TYPE_CHECKING:
    from models.check import Report


def table(title: str, columns: Sequence[str], canvas: Canvas) -> Table:
    """An empty table; a column whose heading starts with > is set to the right."""
    made = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        header_style="",
        box=box.ASCII2 if canvas.ascii_only else box.SIMPLE_HEAD,
        pad_edge=False,
        show_edge=False,
    )
    for heading in columns:
        is_right = heading.startswith(">")
        made.add_column(canvas.name(heading.lstrip(">")), justify="right" if is_right else "left", overflow="fold")
    return made


def cell(text: str, canvas: Canvas, style: str = "") -> Text:
    """A name from outside as a cell: no markup, no control characters."""
    return Text(canvas.name(text), style=style, overflow="fold")


def cost_table(facts: Facts, canvas: Canvas) -> Table:
    """What the plan costs, by term; terms without cost on one line at the end."""
    plan = facts.plan
    made = table("Cost", ("term", f">{plan.currency}", ">share", "what"), canvas)
    order = {term: k for k, term in enumerate(COST_TERMS)}
    for term, amount in sorted(plan.costs.items(), key=lambda item: order.get(item[0], len(order))):
        if amount:
            part = share(amount / plan.cost) if plan.cost else ""
            made.add_row(cell(term, canvas), number(amount), part, COST_TERMS.get(term, ""))
    made.add_section()
    free = [term for term, amount in plan.costs.items() if not amount]
    note = f"nothing for {', '.join(term.replace('_', ' ') for term in free)}" if free else ""
    made.add_row(Text("total", style="bold"), Text(number(plan.cost), style="bold"), "", cell(note, canvas, "dim"))
    return made


def certificate_table(facts: Facts, canvas: Canvas) -> Table:
    """What is proven of the plan, and by what it can be repeated."""
    plan = facts.plan
    made = Table.grid(padding=(0, 2))
    made.add_column(style="dim")
    made.add_column(overflow="fold")
    rows: list[tuple[str, str]] = [
        ("status", plan.status),
        ("cost", money(plan.cost, plan.currency)),
        ("dual bound", "unknown" if plan.dual_bound is None else money(plan.dual_bound, plan.currency)),
        ("gap", share(plan.gap)),
    ]
    if plan.objective == "welfare" and plan.welfare is not None:
        bound = "unknown" if plan.welfare_bound is None else money(plan.welfare_bound, plan.currency)
        rows[2:3] = [("welfare", money(plan.welfare, plan.currency)), ("no more than", bound)]
    if plan.budget is not None:
        rows.append(("spent", f"{money(facts.spent, plan.currency)} of {money(plan.budget, plan.currency)}"))
    if plan.fixed_gpus is not None:
        rows.append(("GPUs", f"as in each job's {plan.fixed_gpus} mode; bound and gap are of such plans"))
    if plan.packing_cost is not None:
        rows.append(
            (
                "packing",
                f"{money(plan.packing_cost, plan.currency)} for placing on whole nodes, within the cost",
            )
        )
    rows += [
        ("engine", f"{plan.engine}, seed {plan.seed}"),
        ("versions", ", ".join(f"{name} {version}" for name, version in sorted(plan.versions.items()))),
        ("instance", f"{plan.instance}, {plan.instance_hash}"),
        (
            "times",
            f"from {facts.clock.slot(0)}, zone {facts.clock.zone}, slots of {hours(plan.slot_s / 3600)}",
        ),
    ]
    for name, text in rows:
        made.add_row(name, cell(text, canvas))
    return made


def job_table(facts: Facts, canvas: Canvas, most: int | None = None) -> Table:
    """Every job, or so many of them: where it runs, from when to when, and what is the matter with it.

    A job that changes while it runs has a line for each segment; the first names it, the last says whether it is late.
    """
    has_due = facts.instance is not None
    made = table(
        "Jobs",
        ("job", "mode", "pool", "nodes", "start", "end", *(("due",) if has_due else ()), "remarks"),
        canvas,
    )
    runs, rejected = first_jobs(facts, most)
    blanks = [""] * (6 if has_due else 5)
    for run in runs:
        job = _job_of(facts, run)
        for k, segment in enumerate(run.segments):
            speed = f" at {segment.speed:g}" if segment.speed != 1 else ""
            nodes = _nodes_text([(place.node, place.gpus) for place in segment.places])
            is_last = k == len(run.segments) - 1
            due = [facts.clock.short(job.due / facts.plan.slot_s) if is_last and job and job.due is not None else ""]
            made.add_row(
                cell(run.job if k == 0 else "", canvas),
                cell(segment.mode + speed, canvas),
                cell(segment.pool, canvas, BURST if segment.pool in (facts.cloud_pools or ()) else ""),
                nodes,
                facts.clock.short(segment.start_slot),
                facts.clock.short(segment.end_slot),
                *(due if has_due else ()),
                _remarks(facts, run, k),
            )
        if not run.segments:
            made.add_row(cell(run.job, canvas), *blanks, Text("has no segment", style=LATE))
    for name in rejected:
        made.add_row(cell(name, canvas), *blanks, Text("rejected", style=LATE))
    return made


def _job_of(facts: Facts, run: Run) -> Job | None:
    if facts.instance is None or run.job not in facts.instance.job_index:
        return None
    return facts.instance.jobs[facts.instance.job_index[run.job]]


def _nodes_text(places: Iterable[tuple[int, tuple[int, ...]]]) -> str:
    """Nodes with their GPUs: 3:0-1, or just the nodes of a gang."""
    listed = list(places)
    if len(listed) == 1:
        node, gpus = listed[0]
        return f"{node}:{ranges(gpus)}"
    return ranges(node for node, _ in listed)


def _remarks(facts: Facts, run: Run, k: int) -> Text:
    segment = run.segments[k]
    remarks: list[tuple[str, str]] = []
    if k == len(run.segments) - 1 and facts.is_late(run):
        remarks.append((f"late by {hours(run.tardiness_h)}", LATE))
    pause = segment.start_slot - run.segments[k - 1].end_slot if k else 0
    if pause > 0:
        remarks.append((f"after a pause of {hours(pause * facts.plan.slot_s / 3600)}", ""))
    if segment.pool in (facts.cloud_pools or ()):
        remarks.append(("burst", BURST))
    if segment.kept:
        remarks.append(("kept", ""))
    if segment.cached:
        remarks.append((f"reads {share(segment.cached)} from cache", ""))
    return Text(", ").join(Text(text, style) for text, style in remarks)


def _kind(facts: Facts, pool: str) -> tuple[Text, ...]:
    """Owned or rented, as a cell; no cell where the instance is not known."""
    if facts.cloud_pools is None:
        return ()
    return (Text("rented", style=BURST) if pool in facts.cloud_pools else Text("owned"),)


def pool_table(facts: Facts, canvas: Canvas) -> Table:
    """Every pool that is used: its nodes, how long they are on, how busy their GPUs are, what they cost."""
    knows_kind = facts.cloud_pools is not None
    made = table(
        "Pools",
        (
            "pool",
            *(("kind",) if knows_kind else ()),
            ">nodes",
            ">node-hours on",
            ">GPU-hours busy",
            f">{facts.plan.currency}",
        ),
        canvas,
    )
    slot_h = facts.plan.slot_s / 3600
    for pool in facts.pools:
        on = [interval for interval in facts.plan.nodes_on if interval.pool == pool]
        busy = sum(busy_gpus(facts.plan, pool, last_slot(facts.plan)))
        made.add_row(
            cell(pool, canvas),
            *_kind(facts, pool),
            str(len({interval.node for interval in on})),
            f"{sum(interval.end_slot - interval.start_slot for interval in on) * slot_h:,.1f}",
            f"{busy * slot_h:,.1f}",
            number(sum(interval.cost for interval in on)),
        )
    return made


def stretches_on(facts: Facts) -> dict[tuple[str, int, int], list[NodeOn]]:
    """Intervals of nodes by pool, begin and end."""
    groups: dict[tuple[str, int, int], list[NodeOn]] = defaultdict(list)
    for interval in facts.plan.nodes_on:
        groups[interval.pool, interval.start_slot, interval.end_slot].append(interval)
    order = {pool: k for k, pool in enumerate(facts.pools)}
    return dict(sorted(groups.items(), key=lambda item: (order[item[0][0]], item[0][1:])))


def node_table(facts: Facts, canvas: Canvas, most: int | None = None) -> Table:
    """When which nodes are switched on or rented, or so many lines of it; nodes of a pool with the same times share a
    line."""
    knows_kind = facts.cloud_pools is not None
    made = table(
        "Nodes that are on or rented" if knows_kind else "Nodes that are on",
        ("pool", *(("kind",) if knows_kind else ()), ">count", "nodes", "from", "to", f">{facts.plan.currency}"),
        canvas,
    )
    for (pool, first, last), intervals in itertools.islice(stretches_on(facts).items(), most):
        made.add_row(
            cell(pool, canvas),
            *_kind(facts, pool),
            str(len(intervals)),
            ranges(interval.node for interval in intervals),
            facts.clock.short(first),
            facts.clock.short(last),
            number(sum(interval.cost for interval in intervals)),
        )
    return made


def storage_table(facts: Facts, canvas: Canvas) -> Table | None:
    """Bandwidth that is bought and datasets that are cached, by site; None where there is neither."""
    plan = facts.plan
    bought = {entry.site: entry.mb_s for entry in plan.bandwidth if entry.mb_s}
    if not bought and not plan.cached:
        return None
    made = table("Storage", ("site", ">bandwidth", "cached datasets"), canvas)
    for site in dict.fromkeys([*bought, *(entry.site for entry in plan.cached)]):
        datasets = [
            entry.dataset + (f" ({share(entry.fraction)})" if entry.fraction < 1 else "")
            for entry in plan.cached
            if entry.site == site
        ]
        made.add_row(cell(site, canvas), f"{bought.get(site, 0):,.6g} MB/s", cell(", ".join(datasets), canvas))
    return made


def violation_table(report: Report, canvas: Canvas, most: int | None = None) -> Table:
    """Every way in which a plan breaks a rule or states a wrong cost, or so many of them, with its amount."""
    made = table(count(len(report.violations), "violation"), ("kind", "where", ">amount", "what"), canvas)
    for violation in report.violations[:most]:
        made.add_row(
            cell(violation.kind, canvas, LATE),
            cell(violation.where, canvas),
            "" if violation.amount is None else f"{violation.amount:.6g}",
            cell(violation.message, canvas),
        )
    return made


def recomputed_table(report: Report, plan: Plan, canvas: Canvas) -> Table:
    """Each cost as the plan states it and as the check finds it."""
    made = table("Cost, recomputed", ("term", f">plan, {plan.currency}", f">check, {plan.currency}"), canvas)
    for term in dict.fromkeys([*COST_TERMS, *plan.costs, *report.costs]):
        stated, found = plan.costs.get(term), report.costs.get(term)
        if stated or found:
            made.add_row(
                cell(term, canvas),
                *("none" if amount is None else number(amount) for amount in (stated, found)),
            )
    made.add_section()
    made.add_row(Text("total", style="bold"), number(plan.cost), number(report.cost))
    return made
