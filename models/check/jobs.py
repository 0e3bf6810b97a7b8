"""Rules on the plan as a whole and on each job's run: what it is of, when it runs, in which modes."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator

from models.check.facts import Facts, instant_s, last_slot, stated_slots
from models.check.report import (
    INSTANT_S,
    QUANTITY_RELATIVE,
    SLOT_ROUNDING,
    TARDINESS_H,
    WORK_ROUNDING,
    Violation,
    is_above,
    label,
    show,
    violation,
)
from models.check.uses import Course
from models.domain.instance import content_hash


def the_plan_is_of_this_instance(facts: Facts) -> Iterator[Violation]:
    """A plan's hash, currency, start and slot length are those of the instance."""
    plan, instance = facts.plan, facts.instance
    if plan.instance_hash != content_hash(instance):
        yield violation("other-instance", "plan", "its instance_hash is that of another instance")
    if plan.currency != instance.currency:
        message = f"is in {label(plan.currency)} where the instance is in {instance.currency}"
        yield violation("currency", "plan", message)
    if not abs(plan.slot_s - instance.slot) <= QUANTITY_RELATIVE * instance.slot:
        message = f"has slots of {plan.slot_s:g} s where the instance has {instance.slot:g} s"
        yield violation("slot-length", "plan", message, plan.slot_s - instance.slot)
    yield from _instant(facts, "plan", "starts", plan.start, 0)


def the_horizon_is_that_of_the_instance(facts: Facts) -> Iterator[Violation]:
    """A stated horizon fixes the number of slots; with `auto` any number will do that a calendar can hold."""
    stated, claimed, last = stated_slots(facts), facts.plan.num_slots, last_slot(facts)
    if stated is not None and claimed != stated:
        message = f"has {show(claimed)} slots where the instance's horizon has {stated}"
        yield violation("num-slots", "plan", message, claimed - stated)
    if stated is None and not 0 <= claimed <= last:
        message = f"has {show(claimed)} slots, which is not from 0 to {last}"
        yield violation("num-slots", "plan", message, claimed)


def everything_named_exists(facts: Facts) -> Iterator[Violation]:
    """Every job, pool, node, mode, speed, site and dataset of the plan is one of the instance, named once."""
    yield from facts.unreadable


def each_job_runs_once_or_is_rejected(facts: Facts) -> Iterator[Violation]:
    """Every job has exactly one run, or is rejected."""
    runs = Counter(run.job for run in facts.plan.runs)
    rejected = set(facts.plan.rejected)
    for name in facts.jobs:
        if runs[name] == 0 and name not in rejected:
            yield violation("job-missing", f"job {name}", "is neither run nor rejected", 1)
        if runs[name] > 1:
            yield violation("job-twice", f"job {name}", f"has {runs[name]} runs", runs[name] - 1)
        if runs[name] and name in rejected:
            yield violation("job-twice", f"job {name}", "is both run and rejected", 1)


def only_jobs_with_a_price_are_rejected(facts: Facts) -> Iterator[Violation]:
    """Rejecting is allowed only where reject_cost is given."""
    for name in dict.fromkeys(facts.plan.rejected):
        if name in facts.jobs and facts.jobs[name].reject_cost is None:
            message = "is rejected, but has no reject_cost: it must run"
            yield violation("not-rejectable", f"job {name}", message)


def modes_are_usable(facts: Facts) -> Iterator[Violation]:
    """A mode fits the nodes of its pool, its data can be read there, and spot is allowed or it is kept."""
    for use in facts.uses:
        job, pool, way = use.job, use.pool, use.way
        for what, unit, need, most in (
            ("nodes", "nodes", use.num_nodes, pool.nodes),
            ("GPUs", "GPUs in the pool", way.gpus or 0, pool.gpus_per_node * pool.nodes),
            ("memory", "GB on each GPU", way.memory_gb, pool.gpu_memory),
            ("CPU cores", "cores on a node", way.cpu_cores, pool.cpu_cores),
            ("RAM", "GB on a node", way.ram_gb, pool.ram),
        ):
            if most is not None and is_above(need, most):
                message = f"mode {way.name} needs {what}: {need:g} {unit}, and pool {pool.id} has {most:g}"
                yield violation("mode-unfit", use.where, message, need - most)
        if pool.market == "spot" and not job.spot and not use.is_kept:
            yield violation("spot-forbidden", use.where, f"is in spot pool {pool.id} without spot: true")
        if use.home is not None and not facts.is_reached(str(job.dataset), pool.site):
            message = f"no link leads from {use.home}, home of {job.dataset}, to {pool.site}"
            yield violation("data-unreachable", use.where, message)


def runs_last_as_long_as_their_mode(facts: Facts) -> Iterator[Violation]:
    """A mode occupies max(1, ceil(duration / slot)) slots, where the job is not elastic."""
    for use in facts.uses:
        if use.job.elastic is None and use.segment.end_slot != use.end:
            message = (
                f"ends at slot {show(use.segment.end_slot)}, but mode {use.way.name} at speed {use.speed:g} "
                f"takes {use.end - use.start} slots from slot {use.start}, to slot {use.end}"
            )
            yield violation("duration", use.where, message, use.segment.end_slot - use.end)


def segments_follow_each_other(facts: Facts) -> Iterator[Violation]:
    """A segment of an elastic job starts no earlier than the one before it ends."""
    for course in facts.courses:
        for before, use in itertools.pairwise(course.uses):
            if (early := before.end - use.start) > 0:
                message = f"starts {early} slots before the segment before it ends"
                yield violation("segment-order", use.where, message, early)


def all_work_is_done(facts: Facts) -> Iterator[Violation]:
    """sum over the segments of an elastic job of n * slot / D >= 1."""
    for course in facts.courses:
        missing = 1.0 - course.work
        if course.job.elastic is not None and not missing <= WORK_ROUNDING:
            message = f"completes with the part {missing:.6g} of its work undone"
            yield violation("work-undone", course.where, message, missing)


def jobs_change_no_more_often_than_they_may(facts: Facts) -> Iterator[Violation]:
    """Segments after the first, and the first of a running job that is not kept, are no more than `changes`."""
    for course in facts.courses:
        most = None if course.job.elastic is None else course.job.elastic.changes
        if most is not None and course.num_changes > most:
            message = f"changes {course.num_changes} times where it may {most} times"
            yield violation("too-many-changes", course.where, message, course.num_changes - most)


def runs_lie_between_release_and_deadline(facts: Facts) -> Iterator[Violation]:
    """First slot * slot >= release; completion * slot <= deadline; no segment ends after T."""
    slot = facts.instance.slot
    for course in facts.courses:
        job = course.job
        early = job.release / slot - course.start
        if early > SLOT_ROUNDING:
            message = f"starts {early * facts.slot_h:.6g} h before its release"
            yield violation("release", course.where, message, early * facts.slot_h)
        if job.deadline is not None and (late := course.end - job.deadline / slot) > SLOT_ROUNDING:
            message = f"completes {late * facts.slot_h:.6g} h after its deadline"
            yield violation("deadline", course.where, message, late * facts.slot_h)
    for use in facts.uses:
        if use.end > facts.num_slots:
            message = f"ends at slot {use.end}, beyond the {facts.num_slots} slots of the plan"
            yield violation("beyond-horizon", use.where, message, use.end - facts.num_slots)


def instants_agree_with_slots(facts: Facts) -> Iterator[Violation]:
    """Every start, end and completion in ISO 8601 is the instant of its slot's edge."""
    for use in facts.uses:
        yield from _instant(facts, use.where, "starts", use.segment.start, use.segment.start_slot)
        yield from _instant(facts, use.where, "ends", use.segment.end, use.segment.end_slot)
    for course in facts.courses:
        yield from _instant(facts, course.where, "completes", course.run.completion, course.end)
    for on in facts.on:
        yield from _instant(facts, on.where, "starts", on.claim.start, on.claim.start_slot)
        yield from _instant(facts, on.where, "ends", on.claim.end, on.claim.end_slot)


def _instant(facts: Facts, where: str, verb: str, text: str, slot: int) -> Iterator[Violation]:
    written, true = instant_s(facts, text), facts.seconds(slot)
    if written is None:
        message = f"{verb} at {label(text)}, which is no instant in ISO 8601 with a zone"
        yield violation("instant", where, message)
    elif not abs(written - true) <= INSTANT_S:
        message = f"{verb} at {label(text)}, which is {written - true:g} s from the edge of slot {show(slot)}"
        yield violation("instant", where, message, written - true)


def tardiness_is_as_claimed(facts: Facts) -> Iterator[Violation]:
    """tardiness_h = max(0, completion - due) in hours, 0 without a due date."""
    for course in facts.courses:
        claimed, true = course.run.tardiness_h, tardiness_h(facts, course)
        if not abs(claimed - true) <= TARDINESS_H + QUANTITY_RELATIVE * true:
            message = f"claims a tardiness of {claimed:.6g} h where it has {true:.6g} h"
            yield violation("tardiness-claim", course.where, message, claimed - true)


def tardiness_h(facts: Facts, course: Course) -> float:
    """Hours by which a run completes after its due date; 0 where it does not, or has none."""
    due = course.job.due
    return 0.0 if due is None else max(0.0, facts.seconds(course.end) - due) / 3600.0


def predecessors_complete_first(facts: Facts) -> Iterator[Violation]:
    """A job starts no earlier than each job in `after` completes, and cannot run if one of those does not."""
    completion: dict[str, int] = {}
    for course in facts.courses:
        completion[course.job.id] = max(course.end, completion.get(course.job.id, 0))
    named = {run.job for run in facts.plan.runs}
    for course in facts.courses:
        for before in course.job.after:
            if before not in named:
                message = f"runs, but job {before}, which must be complete before, does not"
                yield violation("predecessor-not-run", course.where, message)
            elif (early := completion.get(before, 0) - course.start) > 0:
                message = f"starts {early} slots before job {before} completes"
                yield violation("predecessor", course.where, message, early)


def running_jobs_stay_where_they_must(facts: Facts) -> Iterator[Violation]:
    """A running job that is not movable keeps its mode and places from slot 0 on; `kept` says the truth."""
    for course in facts.courses:
        running, first = course.job.running, course.uses[0]
        if running is not None and not running.movable and not (first.is_kept and first.is_last):
            stays = "from slot 0 until it completes" if first.is_kept else "from slot 0"
            message = f"runs already and is not movable, but is not left as it is {stays}"
            yield violation("running-moved", course.where, message)
    for use in facts.uses:
        if use.segment.kept != use.is_kept:
            claim, true = ("kept", "is not") if use.segment.kept else ("not kept", "is")
            message = f"is claimed to be {claim}, but {true} a running job that is left as it is"
            yield violation("kept-flag", use.where, message)
