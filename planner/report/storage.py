"""A study of storage on a page: what to cache, what to buy, what it costs, and what other rules would cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from models.storage.problem import Allocation
from planner.report.canvas import LATE, Canvas
from planner.report.fitted import Cell, Column, fitted
from planner.report.tables import cell
from planner.report.text import count, number, share
from planner.storage import SiteStudy

DATASETS_SHOWN, PREFIXES_SHOWN, BAR = 50, 24, 24
MANY = 1e12
"""From here on money is written with six digits, and from a ten-thousandth of it on so are per cents."""

BASELINE_WORDS = {
    "all_bandwidth": "nothing cached",
    "all_cache": "everything cached, evenly where not all fits",
    "uniform": "the cache shared out equally",
    "greedy_pool": "the cache filled, most read per GB first",
    "largest_beneficiary": "the cache filled, most read first",
    "threshold_by_job": "cached where one reader alone pays for it",
    "threshold_shared": "cached where its readers together pay for it, at the average price",
}
WHOLE_WORDS = BASELINE_WORDS | {
    "all_cache": "everything cached, as listed where not all fits",
    "uniform": "the cache shared out equally, what is whole by that",
}


def page(
    instance: str, currency: str, told: str, sites: Sequence[SiteStudy], canvas: Canvas
) -> Iterator[RenderableType]:
    """What `planner storage` prints."""
    yield Text.assemble(("storage of  ", "dim"), (canvas.name(instance), "bold"), f", {told}")
    if not sites:
        yield Text("nothing is read: no job reads a dataset, so there is nothing to cache and no bandwidth to buy")
    for site in sites:
        yield Text("")
        yield _headline(site, currency, canvas)
        yield Text("")
        yield _datasets(site, canvas)
        yield Text("")
        yield _baselines(site, currency, canvas)
        yield Text("")
        yield _curve(site, currency, canvas)


def _amount(value: float) -> str:
    """Money."""
    return number(value) if abs(value) < MANY else f"{value:.6g}"


def _quantity(value: float) -> str:
    """GB or MB/s."""
    return f"{value:,.6g}"


def _headline(site: SiteStudy, currency: str, canvas: Canvas) -> Text:
    best, problem = site.best, site.demand.problem
    rows = [("site", canvas.name(site.demand.site), "bold")]
    rows.append(("cost", f"{_amount(best.cost)} {currency}/h ({_parts(site)}){_total(site, currency)}", "bold"))
    if site.optimum.is_proven:
        rows.append(("proof", f"no {'whole ' if site.whole else ''}caching is cheaper", "green"))
    else:
        gap = share(1 - site.optimum.bound / best.cost)
        rows.append(("gap", f"{gap}: none is cheaper than {_amount(site.optimum.bound)} {currency}/h", ""))
    sold = "" if np.isinf(problem.tariff.cap) else f" of {_quantity(problem.tariff.cap)} sold"
    read = _quantity(problem.demand.sum())
    rows.append(("bandwidth", f"{_quantity(best.bandwidth_mb_s)} MB/s{sold}, of {read} read", ""))
    held = "" if np.isinf(problem.cache_capacity) else f" of {_quantity(problem.cache_capacity)} GB"
    rows.append(("cache", f"{_quantity(best.cached_gb)} GB{held}", ""))
    for link in problem.links:
        carried = f"{_quantity(problem.crosses(link, best.cached))} MB/s of {_quantity(link.mb_s)}"
        rows.append(("link", f"from {canvas.name(link.source)} {carried}", ""))
    worth = site.marginal
    saved = f"GB of cache saves {_amount(worth.cache_gb)}, MB/s for sale {_amount(worth.bandwidth_mb_s)} {currency}/h"
    rows.append(("one more", f"{saved}; the last MB/s bought costs {_amount(worth.price_of_mb_s)}", ""))
    made = Text(overflow="fold")
    for k, (label, text, style) in enumerate(rows):
        made.append("\n" if k else "").append(f"{label:<12}", "dim").append(text, style or None)
    return made


def _parts(site: SiteStudy) -> str:
    best = site.best
    told = f"cache {_amount(best.cache_cost)}, bandwidth {_amount(best.bandwidth_cost)}"
    if site.demand.problem.transfers is None:
        return told
    return f"{told}, transfers {_amount(best.transfer_cost)}, spread over {site.demand.hours:g} h"


def _total(site: SiteStudy, currency: str) -> str:
    if site.billed_h is None:
        return ""
    return f", {_amount(site.best.cost * site.billed_h)} {currency} for {site.billed_h:g} h"


def _datasets(site: SiteStudy, canvas: Canvas) -> Table:
    problem = site.demand.problem
    columns = [
        Column("dataset"),
        Column(">GB", 1),
        Column(">readers", 4),
        Column(">MB/s", 2),
        Column(">MB/s per GB", 5),
    ]
    columns += [] if problem.transfers is None else [Column(">copy, an hour", 3), Column(">reads across, an hour", 3)]
    columns += [Column(">cached")]
    rows: list[list[Cell]] = []
    by = np.argsort(-problem.demand / problem.sizes, kind="stable")
    for d in by[:DATASETS_SHOWN]:
        part = float(site.best.cached[d])
        crossing = (problem.copying[d], sum(problem.read_across[d])) if problem.transfers is not None else ()
        rows.append(
            [
                cell(site.demand.datasets[d], canvas),
                _quantity(problem.sizes[d]),
                str(len(problem.readers[d])),
                _quantity(problem.demand[d]),
                f"{problem.demand[d] / problem.sizes[d]:.3g}",
                *(_amount(float(money)) for money in crossing),
                "no" if part == 0 else "yes" if part == 1 else share(part),
            ]
        )
    if (more := len(by) - DATASETS_SHOWN) > 0:
        told = Text(f"and {count(more, 'more', 'more')}; --json lists them all", style="dim")
        rows.append([told, *[""] * (len(columns) - 1)])
    return fitted("Datasets", columns, rows, canvas)


def _baselines(site: SiteStudy, currency: str, canvas: Canvas) -> Table:
    columns = [
        Column("rule"),
        Column(f">{currency}/h"),
        Column(">more", 1),
        Column(">GB cached", 3),
        Column(">MB/s bought", 4),
        Column("what", 2),
    ]
    best, words = site.best, WHOLE_WORDS if site.whole else BASELINE_WORDS
    rows: list[list[Cell]] = [["this plan", Text(_amount(best.cost), style="bold"), "", *_bought(best), ""]]
    for name, other in site.baselines.items():
        if other is None:
            rows.append([name, Text("-", style=LATE), "", "", "", f"{words[name]}: needs more bandwidth than there is"])
        else:
            rows.append([name, _amount(other.cost), _more(site.more(other)), *_bought(other), words[name]])
    return fitted("Other rules", columns, rows, canvas)


def _more(part: float | None) -> str:
    if part is None:
        return ""
    return share(part) if abs(part) < MANY * 1e-4 else f"{100 * part:.3g} %"


def _bought(allocation: Allocation) -> tuple[str, str]:
    return _quantity(allocation.cached_gb), _quantity(allocation.bandwidth_mb_s)


def _curve(site: SiteStudy, currency: str, canvas: Canvas) -> Table:
    """Cost over prefixes: nothing cached, then one dataset more in each row; evenly thinned out where they are many."""
    costs = site.curve.cost
    shown = np.unique(np.linspace(0, len(costs) - 1, min(len(costs), PREFIXES_SHOWN)).round().astype(int))
    best = int(np.argmin(costs))
    most = max(float(costs.max()), 1e-300)
    rows: list[list[Cell]] = []
    for k in np.unique([*shown, best]):
        name = "nothing" if k == 0 else site.demand.datasets[site.demand.problem.order[k - 1]]
        is_allowed = bool(site.curve.is_allowed[k])
        style = "bold" if k == best else "" if is_allowed else "dim"
        rows.append(
            [
                cell(name, canvas),
                _quantity(site.curve.cached_gb[k]),
                _quantity(site.curve.bandwidth_mb_s[k]),
                _amount(float(costs[k])),
                Text("" if is_allowed else "beyond the limits", style=style),
                Text(canvas.pick("█", "#") * round(BAR * float(costs[k]) / most), style=style),
            ]
        )
    columns = [Column("+ dataset"), Column(">GB", 2), Column(">MB/s", 3), Column(f">{currency}/h"), Column("", 1)]
    return fitted("Cost of caching the first datasets", [*columns, Column("", 4, is_bar=True)], rows, canvas)
