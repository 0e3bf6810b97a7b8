"""Every cost term recomputed from the instance, and the rules on what a plan claims of its cost and bound."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import lru_cache

from models.check.facts import Facts, On
from models.check.jobs import tardiness_h
from models.check.report import (
    GAP_ABSOLUTE,
    MONEY_ABSOLUTE,
    MONEY_RELATIVE,
    OPTIMAL_GAP,
    SLOT_ROUNDING,
    Violation,
    label,
    money_differs,
    total,
    violation,
)
from models.check.uses import Course
from models.domain.entities import LinearUtility, SigmoidUtility, Site, StepUtility, Utility
from models.domain.plan import COST_TERMS
from models.domain.prices import EnergyTariff, HourlyTariff, Price

DAY_S = 86400.0


def recompute(facts: Facts) -> dict[str, float]:
    """What the plan costs by each term."""
    return {term: total(TERMS[term](facts)) for term in COST_TERMS}


def price_hours(facts: Facts, price: Price, first: int, end: int) -> float:
    """Sum over slots [first, end) of the time average of a price times slot hours: its integral over time."""
    if isinstance(price, tuple):
        beyond = max(0, end - max(first, len(price)))
        return total([*price[first:end], price[-1] * beyond]) * facts.slot_h
    if not isinstance(price, HourlyTariff | EnergyTariff):
        return price * (end - first) * facts.slot_h
    clock = facts.instance.start
    midnight = clock.hour * 3600.0 + clock.minute * 60.0 + clock.second
    since, until = midnight + facts.seconds(first), midnight + facts.seconds(end)
    return total(value * _seconds_within(a, b, since, until) for a, b, value in _day_of(price)) / 3600.0


def _seconds_within(a: float, b: float, since: float, until: float) -> float:
    """How much of [since, until) lies between times of day a and b."""

    def before(moment: float) -> float:
        days, clock = divmod(moment, DAY_S)
        return days * (b - a) + min(max(clock - a, 0.0), b - a)

    return before(until) - before(since)


@lru_cache(maxsize=256)
def _day_of(price: HourlyTariff | EnergyTariff) -> tuple[tuple[float, float, float], ...]:
    """A day as (from, to, price): each window takes what those before it have left, the default the rest."""
    left, pieces = [(0.0, DAY_S)], []
    for window in price.windows:
        spans = [(window.since, window.until)]
        if window.since > window.until:
            spans = [(window.since, DAY_S), (0.0, window.until)]
        for since, until in spans:
            taken = [(max(a, since), min(b, until), window.price) for a, b in left]
            pieces += [piece for piece in taken if piece[0] < piece[1]]
            cut = [(a, min(b, since)) for a, b in left] + [(max(a, until), b) for a, b in left]
            left = [(a, b) for a, b in cut if a < b]
    return (*pieces, *((a, b, price.default) for a, b in left))


def node_cost(facts: Facts, on: On) -> float:
    """ceil((b - a) / block) * block slots from a, each at its own price; the billed tail goes on beyond b."""
    slots = on.pool.billing_increment / facts.instance.slot
    block = max(1, round(slots))
    billed = -(-(on.end - on.start) // block) * block
    return price_hours(facts, on.pool.price, on.start, on.start + billed)


def node_hours(facts: Facts) -> Iterator[float]:
    """Billed node-hours of owned nodes."""
    return (node_cost(facts, on) for on in facts.on if on.site.kind == "on_prem")


def rental(facts: Facts) -> Iterator[float]:
    """Billed node-hours of cloud nodes."""
    return (node_cost(facts, on) for on in facts.on if on.site.kind == "cloud")


def energy(facts: Facts) -> Iterator[float]:
    """Per segment and slot: busy GPUs * gpu_power * energy price of the site in that slot * slot hours."""
    for use in facts.uses:
        power_kw = use.busy_gpus * use.pool.gpu_power
        yield power_kw * price_hours(facts, use.site.energy_price, use.start, use.end)


def billed_h(facts: Facts, site: Site) -> float:
    """Hours for which a site's bandwidth and cache are paid; with `auto` and no time stated they are free."""
    if site.storage.billed is not None:
        return site.storage.billed / 3600.0
    return 0.0 if facts.instance.horizon == "auto" else facts.num_slots * facts.slot_h


def tariff(site: Site, mb_s: float) -> float:
    """P(B) an hour: min of fixed + per_mb_s * B, or on the line through the points beside B, or for each tier what of B
    is in it, or factor * B^exponent; P(0) = 0."""
    points = [(point.mb_s, point.price) for point in site.storage.points]
    if mb_s <= 0:
        return 0.0
    if site.storage.power is not None:
        return site.storage.power.factor * mb_s**site.storage.power.exponent
    if site.storage.tiers:
        ends = [math.inf if tier.up_to is None else tier.up_to for tier in site.storage.tiers]
        ends[-1] = math.inf  # what is beyond the cap is a violation, and has a price all the same
        begins = [0.0, *ends[:-1]]
        within = [max(0.0, min(mb_s, end) - begin) for begin, end in zip(begins, ends, strict=True)]
        return total(tier.per_mb_s * part for tier, part in zip(site.storage.tiers, within, strict=True))
    if points:
        points = points if len(points) > 1 else [(0.0, 0.0), *points]
        right = next((k for k in range(1, len(points)) if mb_s <= points[k][0]), len(points) - 1)
        (b0, p0), (b1, p1) = points[right - 1 : right + 1]
        return max(0.0, p0 + (p1 - p0) * (mb_s - b0) / (b1 - b0))
    return min((piece.fixed + piece.per_mb_s * mb_s for piece in site.storage.tariff), default=0.0)


def bandwidth(facts: Facts) -> Iterator[float]:
    """Per site: P(B) * billed hours."""
    for name, mb_s in facts.bought.items():
        site = facts.sites[name]
        yield tariff(site, mb_s) * billed_h(facts, site)


def cache(facts: Facts) -> Iterator[float]:
    """Per cached dataset: size * fraction * cache_price * billed hours."""
    for (name, dataset), fraction in facts.cached.items():
        site = facts.sites[name]
        yield facts.datasets[dataset].size * fraction * site.storage.cache_price * billed_h(facts, site)


def transfer(facts: Facts) -> Iterator[float]:
    """Link price * (size * fraction for each dataset cached; volume * (1 - f) for each segment that reads)."""
    for (site, dataset), fraction in facts.cached.items():
        link = facts.links.get((facts.datasets[dataset].home, site))
        if link is not None:
            yield link.price * facts.datasets[dataset].size * fraction
    for use in facts.uses:
        link = facts.links.get((use.home, use.site.id)) if use.home is not None else None
        if link is not None:
            yield link.price * use.volume_gb * (1.0 - use.cached)


def tardiness(facts: Facts) -> Iterator[float]:
    """weight * hours of completion after due, if positive."""
    return (course.job.weight * tardiness_h(facts, course) for course in facts.courses)


def lost_value(facts: Facts) -> Iterator[float]:
    """Value of the first step less that of the first whose `by` is no earlier than the completion, or 0; or the worth
    of the utility less what it is at the completion."""
    for course in facts.courses:
        job = course.job
        if job.utility is not None:
            yield job.utility.worth - earned(facts, course)
        elif job.value:
            yield job.value[0].value - earned(facts, course)


def earned(facts: Facts, course: Course) -> float:
    """What a job is worth at its completion; 0 for one without value and utility."""
    slot, job = facts.instance.slot, course.job
    if job.utility is not None:
        return job.utility.worth * utility_part(job.utility, job.release, course.end, slot)
    return next((step.value for step in job.value if course.end <= step.by / slot + SLOT_ROUNDING), 0.0)


def utility_part(utility: Utility, release: float, end: float, slot: float) -> float:
    """The part of a utility's worth that is left at a completion, an edge of slots of some length: from 0 to 1."""
    completion = end * slot
    if isinstance(utility, LinearUtility):
        late = completion - utility.full_until
        return 1.0 - min(max(late / (utility.zero_at - utility.full_until), 0.0), 1.0)
    if isinstance(utility, StepUtility):
        return 1.0 if end <= utility.by / slot + SLOT_ROUNDING else 0.0
    if isinstance(utility, SigmoidUtility):
        early = (utility.midpoint - completion) / utility.scale
        return 1.0 / (1.0 + math.exp(-early)) if early >= 0 else 1.0 - 1.0 / (1.0 + math.exp(early))
    taken = completion - release
    return 1.0 if taken <= utility.fair_time else utility.fair_time / taken


def rejection(facts: Facts) -> Iterator[float]:
    """reject_cost of each job not run."""
    return (facts.jobs[name].reject_cost or 0.0 for name in set(facts.plan.rejected) if name in facts.jobs)


def restart(facts: Facts) -> Iterator[float]:
    """restart_cost of each running job that is moved, and of each change of an elastic job."""
    return (course.job.restart_cost * course.num_changes for course in facts.courses)


def interruption(facts: Facts) -> Iterator[float]:
    """Spot pools: interruption_rate * hours of the run * nodes it spans * restart_cost of the job."""
    for use in facts.uses:
        if use.pool.market == "spot":
            hours = (use.end - use.start) * facts.slot_h
            yield use.pool.interruption_rate * hours * use.num_nodes * use.job.restart_cost


TERMS: dict[str, Callable[[Facts], Iterator[float]]] = {
    "node_hours": node_hours,
    "rental": rental,
    "energy": energy,
    "bandwidth": bandwidth,
    "cache": cache,
    "transfer": transfer,
    "tardiness": tardiness,
    "lost_value": lost_value,
    "rejection": rejection,
    "restart": restart,
    "interruption": interruption,
}


def costs_are_as_claimed(facts: Facts) -> Iterator[Violation]:
    """The cost of every node-on interval, of every term, and the total are those recomputed."""
    plan, currency = facts.plan, facts.instance.currency
    for on in facts.on:
        if money_differs(on.claim.cost, true := node_cost(facts, on)):
            yield _wrong("node-cost", on.where, "a cost", on.claim.cost, true, currency)
    for term, true in facts.costs.items():
        if term not in plan.costs:
            message = f"{term} is missing, which comes to {true:.10g} {currency}"
            yield violation("term-missing", "costs", message, true)
        elif money_differs(plan.costs[term], true):
            yield _wrong("term-cost", f"costs: {term}", "a cost", plan.costs[term], true, currency)
    for term, claimed in plan.costs.items():
        if term not in facts.costs:
            message = f"{label(term)} is no cost term ({claimed:.10g} {currency})"
            yield violation("term-unknown", "costs", message, claimed)
    if money_differs(plan.cost, true := total(facts.costs.values())):
        yield _wrong("total-cost", "plan", "a total cost", plan.cost, true, currency)


def _wrong(kind: str, where: str, what: str, claimed: float, true: float, currency: str) -> Violation:
    message = f"claims {what} of {claimed:.10g} where it comes to {true:.10g} {currency}"
    return violation(kind, where, message, claimed - true)


def the_certificate_holds(facts: Facts) -> Iterator[Violation]:
    """The dual bound is no higher than the cost, the gap is (cost - bound) / cost, "optimal" is proven; where
    the cost is the objective."""
    if facts.plan.objective != "cost":
        return
    plan, cost = facts.plan, total(facts.costs.values())
    bound = plan.dual_bound
    if bound is not None and not bound <= cost + MONEY_ABSOLUTE + MONEY_RELATIVE * abs(cost):
        message = f"its dual bound {bound:.10g} is above its cost {cost:.10g} {facts.instance.currency}"
        yield violation("bound-above-cost", "plan", message, bound - cost)
    yield from gap_is_true(plan.cost, bound, plan.gap)
    if plan.status != "optimal":
        return
    if bound is None:
        yield violation("optimal-without-bound", "plan", "is called optimal, but has no dual bound")
    elif not cost - bound <= MONEY_ABSOLUTE + OPTIMAL_GAP * abs(cost):
        message = f"is called optimal, but its bound {bound:.10g} is well below its cost {cost:.10g}"
        yield violation("not-optimal", "plan", message, cost - bound)


def packing_is_a_part_of_the_cost(facts: Facts) -> Iterator[Violation]:
    """What placing on whole nodes is said to cost is not negative and no more than the whole cost."""
    packing, cost = facts.plan.packing_cost, total(facts.costs.values())
    if packing is not None and not 0 <= packing <= cost + MONEY_ABSOLUTE + MONEY_RELATIVE * abs(cost):
        message = f"claims a packing cost of {packing:.10g} of a cost of {cost:.10g} {facts.instance.currency}"
        yield violation("packing-cost", "plan", message, packing)


def gap_is_true(
    cost: float | None, bound: float | None, gap: float | None, of: str = "cost and bound"
) -> Iterator[Violation]:
    """(cost - bound) / cost; 0 where both are the same; None where one of them or the quotient is not known."""
    allowed: list[float | None] = [None]
    if cost is not None and bound is not None:
        allowed = [0.0 if cost == bound else (cost - bound) / cost if cost > 0 else None]
        if not money_differs(bound, cost):
            allowed.append(0.0)  # whether they are the same hangs on their last digits
    if not any(gap is a if gap is None or a is None else abs(gap - a) <= GAP_ABSOLUTE for a in allowed):
        message = f"claims a gap of {gap} where {of} make it {allowed[0]}"
        yield violation("gap-claim", "plan", message, gap)
