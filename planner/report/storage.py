"""A study of storage on a page: what to cache, what to buy, what it costs, and what other rules would cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from planner.report.canvas import LATE, Canvas
from planner.report.tables import cell, table
from planner.report.text import count, money, number, share
from planner.storage import SiteStudy

DATASETS_SHOWN, PREFIXES_SHOWN, BAR = 50, 24, 24

BASELINE_WORDS = {
    "all_bandwidth": "nothing cached",
    "all_cache": "everything cached, evenly where not all fits",
    "uniform": "the cache shared out equally",
    "greedy_pool": "the cache filled, most read per GB first",
    "largest_beneficiary": "the cache filled, most read first",
    "threshold_by_job": "cached where one reader alone pays for it",
    "threshold_shared": "cached where its readers together pay for it, at the average price",
}


def page(
    instance: str, currency: str, told: str, sites: Sequence[SiteStudy], canvas: Canvas
) -> Iterator[RenderableType]:
    """What `planner storage` prints."""
    yield Text.assemble(("storage of  ", "dim"), (canvas.name(instance), "bold"), f", {told}")
    if not sites:
        yield Text("no job reads anything: nothing to cache, no bandwidth to buy")
    for site in sites:
        yield Text("")
        yield _headline(site, currency, canvas)
        yield Text("")
        yield _datasets(site, canvas)
        yield Text("")
        yield _baselines(site, currency, canvas)
        yield Text("")
        yield _curve(site, currency, canvas)


def _headline(site: SiteStudy, currency: str, canvas: Canvas) -> Text:
    best, problem = site.best, site.demand.problem
    rows = [("site", canvas.name(site.demand.site), "bold")]
    total = "" if site.billed_h is None else f", {money(best.cost * site.billed_h, currency)} for {site.billed_h:g} h"
    parts = f"cache {number(best.cache_cost)}, bandwidth {number(best.bandwidth_cost)}"
    rows.append(("cost", f"{money(best.cost, currency)}/h ({parts}){total}", "bold"))
    if site.optimum.is_proven:
        rows.append(("proof", "no caching is cheaper", "green"))
    else:
        gap = share(1 - site.optimum.bound / best.cost)
        rows.append(("gap", f"{gap}: none is cheaper than {money(site.optimum.bound, currency)}/h", ""))
    sold = "" if np.isinf(problem.tariff.cap) else f" of {problem.tariff.cap:,.6g} sold"
    rows.append(("bandwidth", f"{best.bandwidth_mb_s:,.6g} MB/s{sold}, of {problem.demand.sum():,.6g} read", ""))
    held = "" if np.isinf(problem.cache_capacity) else f" of {problem.cache_capacity:,.6g} GB"
    rows.append(("cache", f"{best.cached_gb:,.6g} GB{held}", ""))
    worth = site.marginal
    rows.append(
        (
            "one more",
            f"GB of cache saves {number(worth.cache_gb)}, MB/s for sale {number(worth.bandwidth_mb_s)} {currency}/h; "
            f"the last MB/s bought costs {number(worth.price_of_mb_s)}",
            "",
        )
    )
    made = Text(overflow="fold")
    for k, (label, text, style) in enumerate(rows):
        made.append("\n" if k else "").append(f"{label:<12}", "dim").append(text, style or None)
    return made


def _datasets(site: SiteStudy, canvas: Canvas) -> Table:
    problem = site.demand.problem
    made = table("Datasets", ("dataset", ">GB", ">readers", ">MB/s", ">MB/s per GB", "cached"), canvas)
    by = np.argsort(-problem.demand / problem.sizes, kind="stable")
    for d in by[:DATASETS_SHOWN]:
        part = site.best.cached[d]
        made.add_row(
            cell(site.demand.datasets[d], canvas),
            f"{problem.sizes[d]:,.6g}",
            str(len(problem.readers[d])),
            f"{problem.demand[d]:,.6g}",
            f"{problem.demand[d] / problem.sizes[d]:.3g}",
            "no" if part == 0 else "yes" if part == 1 else share(float(part)),
        )
    if len(by) > DATASETS_SHOWN:
        made.add_row(Text(f"and {count(len(by) - DATASETS_SHOWN, 'more', 'more')}; --json lists them all", style="dim"))
    return made


def _baselines(site: SiteStudy, currency: str, canvas: Canvas) -> Table:
    made = table("Other rules", ("rule", f">{currency}/h", ">more", ">GB cached", ">MB/s bought", "what"), canvas)
    best = site.best
    made.add_row(
        "this plan",
        Text(number(best.cost), style="bold"),
        "",
        f"{best.cached_gb:,.6g}",
        f"{best.bandwidth_mb_s:,.6g}",
        "",
    )
    for name, other in site.baselines.items():
        words = BASELINE_WORDS[name]
        if other is None:
            made.add_row(name, Text("-", style=LATE), "", "", "", f"{words}: needs more bandwidth than is sold")
            continue
        more = "" if best.cost <= 0 else share(max(0.0, other.cost / best.cost - 1))
        made.add_row(name, number(other.cost), more, f"{other.cached_gb:,.6g}", f"{other.bandwidth_mb_s:,.6g}", words)
    return made


def _curve(site: SiteStudy, currency: str, canvas: Canvas) -> Table:
    """Cost over prefixes: nothing cached, then one dataset more in each row; evenly thinned out where they are many."""
    made = table("Cost of caching the first datasets", ("+ dataset", ">GB", ">MB/s", f">{currency}/h", ""), canvas)
    costs = site.curve.cost
    shown = np.unique(np.linspace(0, len(costs) - 1, min(len(costs), PREFIXES_SHOWN)).round().astype(int))
    best = int(np.argmin(costs))
    shown = np.unique([*shown, best])
    most = max(float(costs.max()), 1e-300)
    for k in shown:
        name = "nothing" if k == 0 else site.demand.datasets[site.demand.problem.order[k - 1]]
        bar = canvas.pick("█", "#") * round(BAR * float(costs[k]) / most)
        is_allowed = bool(site.curve.is_allowed[k])
        note = "" if is_allowed else "  beyond cache or bandwidth"
        made.add_row(
            cell(name, canvas),
            f"{site.curve.cached_gb[k]:,.6g}",
            f"{site.curve.bandwidth_mb_s[k]:,.6g}",
            number(float(costs[k])),
            Text(bar + note, style="bold" if k == best else "" if is_allowed else "dim"),
        )
    return made
