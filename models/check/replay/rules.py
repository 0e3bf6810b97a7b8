"""The replay of a simulated schedule: every stretch, node and cost judged anew, from the instance alone.

It shares nothing with the simulator. Storage is judged in `storage`.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

from models.check.integral import integral
from models.check.money import utility_part
from models.check.replay.storage import caches_are_possible, storage_terms, what_is_read_is_carried
from models.check.replay.traced import EDGE_S, Ran, Traced, peak
from models.check.report import Violation, label, violation
from models.domain.entities import Job, Pool
from models.domain.instance import Instance, content_hash
from models.domain.plan import COST_TERMS

WORK = 1e-6
MONEY = 1e-6
MOST = 1e12
"""Seconds, money and the like beyond which nothing is believed: thirty thousand years."""


def replay(instance: Instance, trace: Any) -> tuple[Violation, ...]:
    """Every way in which a trace is not what it says: none where it is. Raises nothing, whatever it says."""
    senseless = tuple(_senseless(trace))
    if senseless:  # nothing can be summed or integrated
        return senseless
    read = Traced(instance, trace)
    return tuple(found for rule in RULES for found in rule(read))


def _senseless(trace: Any) -> Iterator[Violation]:
    """Numbers that no trace can have: not finite, negative, or further than a calendar goes."""
    listed = [("trace", trace.cost), ("trace", trace.restart_s)]
    listed += [(f"job {label(name)}", value) for name, value in (trace.factors | trace.completions).items()]
    listed += [(f"completion of {label(name)}", value) for name, value in trace.completions.items()]
    listed += [(f"costs: {label(name)}", value) for name, value in trace.costs.items()]
    for k, stretch in enumerate(trace.stretches):
        numbers = (stretch.start_s, stretch.work_s, stretch.end_s, stretch.work)
        indices = [index for place in stretch.places for index in (place.node, *place.gpus)]
        listed += [(f"stretch {k}", value) for value in (*numbers, *indices)]
    for k, power in enumerate(trace.powers):
        numbers = (power.start_s, power.end_s, power.billed_s, power.cost)
        listed += [(f"node-on {k}", value) for value in (*numbers, power.node)]
    for k, cache in enumerate(trace.caches):
        listed += [(f"caching {k}", value) for value in (cache.fraction, cache.since_s, cache.until_s)]
    for k, change in enumerate(trace.prices):
        listed += [(f"change of price {k}", value) for value in (change.at_s, change.factor)]
    for where, value in listed:
        if not 0 <= value <= MOST:
            yield violation("senseless", where, f"has the number {value:g}")


def everything_is_of_this_instance(read: Traced) -> Iterator[Violation]:
    """The instance is the same, and every name is one of it."""
    if read.trace.instance_hash != content_hash(read.instance) or read.trace.currency != read.instance.currency:
        yield violation("other-instance", "trace", "is of another instance")
    for name in {*read.trace.completions, *read.trace.rejected} - set(read.jobs):
        yield violation("unknown", "trace", f"the instance has no job {label(name)}")
    for term in set(read.trace.costs) - set(COST_TERMS):
        yield violation("unknown", "costs", f"there is no term {label(term)}")
    yield from read.unreadable
    for change in read.trace.prices:
        if change.pool not in read.pools:
            yield violation("unknown", "prices", f"the instance has no pool {label(change.pool)}")
    for power in read.trace.powers:
        pool = read.pools.get(power.pool)
        if pool is None or not 0 <= power.node < pool.nodes:
            yield violation("unknown-node", "powers", f"node {power.node} of pool {label(power.pool)} does not exist")


def each_job_completes_or_is_rejected(read: Traced) -> Iterator[Violation]:
    """Once; all of its work is done by then, and nothing runs afterwards."""
    rejected, done = set(read.trace.rejected), read.trace.completions
    for name, job in read.jobs.items():
        stretches = read.of_job.get(name, [])
        if (name in rejected) == (name in done):
            yield violation("job-missing", f"job {name}", "is both complete and rejected, or neither")
        if name in rejected and job.reject_cost is None:
            yield violation("not-rejectable", f"job {name}", "is rejected, but must run")
        if name in done:
            work = math.fsum(ran.claim.work for ran in stretches)
            if not abs(work - 1.0) <= WORK:
                yield violation("work-undone", f"job {name}", f"completes with {work:.9g} of its work done", work)
            end = max((ran.claim.end_s for ran in stretches), default=math.nan)
            if not abs(end - done[name]) <= EDGE_S:
                yield violation("completion", f"job {name}", f"ends at {end:g} s, and completes at {done[name]:g} s")


def work_takes_its_time(read: Traced) -> Iterator[Violation]:
    """What is done in a stretch is its time over the duration of its mode and the factor of its job."""
    for ran in read.ran:
        true = (ran.claim.end_s - ran.claim.work_s) / ran.seconds
        if not abs(ran.claim.work - true) <= WORK:
            yield violation("work", ran.where, f"does {ran.claim.work:.9g} of the work in a time for {true:.9g}")


def stretches_follow_each_other(read: Traced) -> Iterator[Violation]:
    """After the release and all predecessors, one after the other; all but the first are restarts, and take their
    time."""
    for name, stretches in read.of_job.items():
        job = read.jobs[name]
        first = stretches[0]
        if first.claim.start_s < job.release - EDGE_S:
            yield violation("release", first.where, "starts before its release")
        for before in job.after:
            end = read.trace.completions.get(before, math.inf)
            if first.claim.start_s < end - EDGE_S:
                yield violation("predecessor", first.where, f"starts before job {before} completes")
        for k, ran in enumerate(stretches):
            if k > 0 and ran.claim.start_s < stretches[k - 1].claim.end_s - EDGE_S:
                yield violation("overlap", ran.where, "starts before the stretch before it ends")
            is_restart = k > 0 or (job.running is not None and not _is_where_it_was(ran, job))
            if ran.claim.restart != is_restart:
                yield violation("restart", ran.where, f"is {'no' if is_restart else 'a'} restart, it says")
            waits = min(read.trace.restart_s if is_restart else 0.0, ran.claim.end_s - ran.claim.start_s)
            if ran.claim.work_s - ran.claim.start_s < waits - EDGE_S:
                yield violation("restart-time", ran.where, "works before it can have started again")


def ends_are_what_they_are_said_to_be(read: Traced) -> Iterator[Violation]:
    """A stretch ends by a completion where its job completes, and only there; new plans and losses have a cause."""
    for ran in read.ran:
        completion = read.trace.completions.get(ran.job.id, math.inf)
        is_last = ran is read.of_job[ran.job.id][-1] and abs(completion - ran.claim.end_s) <= EDGE_S
        if (ran.claim.ended == "completion") != is_last:
            yield violation("ended", ran.where, f"ended by {ran.claim.ended}, it says")
        if (ran.claim.ended in ("replan", "loss")) != (ran.claim.cause is not None):
            yield violation("ended", ran.where, f"ended by {ran.claim.ended}, and its cause is {ran.claim.cause}")


def _is_where_it_was(ran: Ran, job: Job) -> bool:
    running = job.running
    assert running is not None
    places = {(place.node, tuple(sorted(place.gpus))) for place in running.places}
    return (ran.claim.mode, ran.claim.pool) == (running.mode, running.pool) and ran.held == places


def places_are_right(read: Traced) -> Iterator[Violation]:
    """As many nodes and GPUs as the mode takes, which exist; spot and rented ones only where they may be used, or where
    a job was at the start."""
    for ran in read.ran:
        nodes = [place.node for place in ran.claim.places]
        if len(nodes) != ran.num_nodes or len(set(nodes)) != len(nodes):
            yield violation("nodes", ran.where, f"names nodes {nodes} where it takes {ran.num_nodes}")
        for place in ran.claim.places:
            gpus = set(place.gpus)
            if len(gpus) != len(place.gpus) or len(gpus) != ran.gpus or any(g >= ran.pool.gpus_per_node for g in gpus):
                yield violation("gpus", ran.where, f"names GPUs {list(place.gpus)} where it takes {ran.gpus}")
            if place.node >= ran.pool.nodes:
                yield violation("nodes", ran.where, f"names node {place.node} of {ran.pool.nodes}")
        if ran.pool.market == "spot" and not ran.job.spot and ran.job.running is None:
            yield violation("spot-forbidden", ran.where, f"is in spot pool {ran.pool.id}")
        was_there = ran.job.running is not None and _is_where_it_was(ran, ran.job)
        if ran.pool.id in read.cloud and not read.trace.may_burst and not was_there:
            yield violation("burst-forbidden", ran.where, f"is in pool {ran.pool.id}, which may not be used")


def nothing_is_taken_twice(read: Traced) -> Iterator[Violation]:
    """At no time more slices or memory of a GPU, or cores or RAM of a node, than there are."""
    taken: dict[tuple[str, str, int, int], list[tuple[float, float, float]]] = defaultdict(list)
    most: dict[tuple[str, str, int, int], float] = {}
    for ran in read.ran:
        span = (ran.claim.start_s, ran.claim.end_s)
        is_gang, pool = ran.num_nodes > 1, ran.pool
        for place in ran.claim.places:
            for gpu in place.gpus:
                claims = [("slices", float(ran.slices), float(pool.slices_per_gpu))]
                claims.append(("memory", ran.way.memory_gb, pool.gpu_memory or math.inf))
                for what, amount, limit in claims:
                    key = (what, pool.id, place.node, gpu)
                    taken[key].append((*span, amount))
                    most[key] = limit
            for what, amount, all_of_it in (
                ("cores", float(ran.way.cpu_cores), pool.cpu_cores),
                ("RAM", ran.way.ram_gb, pool.ram),
            ):
                if all_of_it is not None:
                    key = (what, pool.id, place.node, -1)
                    taken[key].append((*span, float(all_of_it) if is_gang else amount))
                    most[key] = float(all_of_it)
    for key, claims_of_key in taken.items():
        highest = peak(claims_of_key)
        if not highest <= most[key] * (1 + 1e-9):
            what, pool_id, node, gpu = key
            where = f"node {node} of pool {pool_id}" + (f", GPU {gpu}" if gpu >= 0 else "")
            yield violation("taken-twice", where, f"{highest:g} of its {what} are taken of {most[key]:g}", highest)


def nodes_are_on_and_up(read: Traced) -> Iterator[Violation]:
    """Whatever runs is within a time in which its nodes are on and booted, and not down."""
    down: dict[tuple[str, int], list[tuple[float, float]]] = defaultdict(list)
    for outage in read.trace.outages:
        until = math.inf if outage.until_s is None else outage.until_s
        down[outage.pool, outage.node].append((outage.since_s, until))
    for pool in read.instance.pools:
        for window in pool.unavailable:
            nodes = window.nodes if isinstance(window.nodes, tuple) else range(pool.nodes)
            if isinstance(window.nodes, int):
                nodes = range(pool.nodes - window.nodes, pool.nodes)
            for node in nodes:
                down[pool.id, node].append((window.since, window.until))
    warm = {(job.running.pool, place.node) for job in read.jobs.values() if job.running for place in job.running.places}
    for ran in read.ran:
        start, end = ran.claim.start_s, ran.claim.end_s
        for place in ran.claim.places:
            key = (ran.pool.id, place.node)
            power = next((p for p in read.powers[key] if p.start_s <= start + EDGE_S and end <= p.end_s + EDGE_S), None)
            if power is None:
                yield violation("node-off", ran.where, f"runs while node {place.node} is off")
                continue
            is_warm = power.start_s <= EDGE_S and (place.node < ran.pool.nodes_on or key in warm)
            ready = power.start_s + (0.0 if is_warm else ran.pool.boot_time)
            if ran.claim.work_s < min(ready, end) - EDGE_S:
                yield violation("boot", ran.where, f"works before node {place.node} has booted")
            if any(since < end - EDGE_S and start < until - EDGE_S for since, until in down[key]):
                yield violation("node-down", ran.where, f"runs while node {place.node} is down")


def nodes_are_paid(read: Traced) -> Iterator[Violation]:
    """A node is billed in whole increments from when it is on, at the price of the time, and not twice."""
    for (name, node), powers in read.powers.items():
        pool = read.pools.get(name)
        if pool is None:
            continue
        for before, power in itertools.pairwise(powers):
            if power.start_s < before.end_s - EDGE_S:
                yield violation("on-twice", f"node {node} of pool {name}", "is on twice at a time")
        for power in powers:
            where, length = f"node {node} of pool {name}", power.end_s - power.start_s
            if not 0 <= length < math.inf:
                yield violation("times", where, f"is on from {power.start_s} to {power.end_s} s")
                continue
            increment = pool.billing_increment
            blocks = max(1, math.ceil((length - EDGE_S) / increment)) if increment > 0 else 0
            billed = power.start_s + (blocks * increment if increment > 0 else length)
            if not abs(billed - power.billed_s) <= EDGE_S:
                yield violation("billed", where, f"is billed until {power.billed_s:g} s where that is {billed:g} s")
            true = _node_cost(read, pool, power.start_s, billed)
            if not abs(true - power.cost) <= MONEY * max(1.0, true):
                yield violation(
                    "node-cost", where, f"costs {power.cost:.9g} where that is {true:.9g}", power.cost - true
                )


def _node_cost(read: Traced, pool: Pool, start_s: float, billed_s: float) -> float:
    """At the price of the time, times the factor that held when what is paid began: the whole increment's, or now's."""
    changes = [(change.at_s, change.factor) for change in read.trace.prices if change.pool == pool.id]
    cost, factor, at = 0.0, 1.0, start_s
    for since, next_factor in sorted(changes, key=lambda change: change[0]):
        if since > start_s and pool.billing_increment > 0:
            since = start_s + math.ceil((since - start_s) / pool.billing_increment - 1e-9) * pool.billing_increment
        if at < since < billed_s:
            cost, at = cost + factor * integral(read.instance, pool.price, at, since), since
        if since < billed_s:
            factor = next_factor
    return cost + factor * integral(read.instance, pool.price, at, billed_s)


def costs_are_as_claimed(read: Traced) -> Iterator[Violation]:
    """Every term recomputed, and their sum."""
    true = dict.fromkeys(COST_TERMS, 0.0) | {term: math.fsum(parts) for term, parts in _terms(read).items()}
    for term in COST_TERMS:
        claimed = read.trace.costs.get(term, math.nan)
        if not abs(claimed - true[term]) <= MONEY * max(1.0, abs(true[term])):
            message = f"is claimed to be {claimed:.9g} where it comes to {true[term]:.9g}"
            yield violation("term-cost", f"costs: {term}", message, claimed - true[term])
    if not abs(read.trace.cost - math.fsum(true.values())) <= MONEY * max(1.0, math.fsum(true.values())):
        yield violation("cost", "cost", f"is claimed to be {read.trace.cost:.9g}")


def _terms(read: Traced) -> dict[str, list[float]]:
    parts = storage_terms(read)
    for power in read.trace.powers:
        parts["rental" if power.pool in read.cloud else "node_hours"].append(power.cost)
    for ran in read.ran:
        price = read.sites[ran.pool.site].energy_price
        hours_price = integral(read.instance, price, ran.claim.start_s, ran.claim.end_s)
        parts["energy"].append(ran.busy * ran.pool.gpu_power * hours_price)
        parts["restart"].append(ran.job.restart_cost if ran.claim.restart else 0.0)
    for name, end in read.trace.completions.items():
        job = read.jobs.get(name)
        if job is None:
            continue
        late = 0.0 if job.due is None or end - job.due <= EDGE_S / 1000 else end - job.due
        parts["tardiness"].append(job.weight * late / 3600.0)
        if job.utility is not None:
            left = utility_part(job.utility, job.release, end, 1.0)
            parts["lost_value"].append(job.utility.worth * (1.0 - left))
        elif job.value:
            earned = next((step.value for step in job.value if end <= step.by + EDGE_S / 1000), 0.0)
            parts["lost_value"].append(job.value[0].value - earned)
    for name in read.trace.rejected:
        parts["rejection"].append((read.jobs[name].reject_cost or 0.0) if name in read.jobs else 0.0)
    return parts


RULES: tuple[Callable[[Traced], Iterator[Violation]], ...] = (
    everything_is_of_this_instance,
    each_job_completes_or_is_rejected,
    work_takes_its_time,
    stretches_follow_each_other,
    ends_are_what_they_are_said_to_be,
    places_are_right,
    nothing_is_taken_twice,
    nodes_are_on_and_up,
    nodes_are_paid,
    caches_are_possible,
    what_is_read_is_carried,
    costs_are_as_claimed,
)
