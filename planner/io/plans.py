"""Plans in and out: plan.json, and beside it tables that open in a spreadsheet."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from models.domain import COST_TERMS, Instance, Plan
from models.errors import Fault, InvalidInput
from planner.io.collecting import no_collection
from planner.io.documents import Document, load_json, locate_json
from planner.io.faults import Path as FieldPath
from planner.io.faults import faults_of, placed
from planner.io.files import write_folder_whole
from planner.io.texts import LIMIT, read_text, refuse, show

PLAN_FILE = "plan.json"
TABLE_FILES = ("assignments.csv", "rentals.csv", "storage.csv")
_MEND = "plan files are written by the planner and not meant to be edited; make the plan again"


def read_plan(path: str | Path) -> Plan:
    """The plan in a file, or in the plan.json of a folder; raises InvalidInput with every fault."""
    path = Path(path)
    with no_collection():
        return _read(path / PLAN_FILE if os.path.isdir(path) else path)


def other_instance(plan: Plan, instance: Instance) -> Fault | None:
    """The fault where a plan was made for another instance than this one."""
    if plan.instance_hash == instance.content_hash:
        return None
    value = instance.name
    if instance.name == plan.instance:
        value += f" {instance.content_hash[:12]}, the plan's {plan.instance_hash[:12]}"
    mend = "name the instance that the plan was made for"
    return Fault("is another instance than that of the plan", value=value, mend=mend)


def _read(path: Path) -> Plan:
    text = read_text(path, LIMIT)
    where = show(str(path), 300)
    document = load_json(text, where)
    if document.faults:
        raise InvalidInput(document.faults)
    if not isinstance(document.value, dict):
        raise refuse(where, "is not a plan", "give a plan.json, or the folder that it is in", show(document.value))
    try:
        return Plan.model_validate(document.value)
    except ValidationError as error:
        faults = list(faults_of(error, Plan, (), _MEND))
    located = locate_json(text, where)

    def locate(at: FieldPath) -> tuple[str, int]:
        return _place(located, where, at)

    raise InvalidInput(placed(faults, locate))


def _place(document: Document | None, where: str, path: FieldPath) -> tuple[str, int]:
    line = None if document is None else document.line(path)
    return (where, 0) if line is None else (f"{where} line {line}", line)


def plan_bytes(plan: Plan) -> bytes:
    """The plan as JSON: equal plans give equal bytes."""
    document = plan.model_dump(mode="json")
    document["versions"] = dict(sorted(plan.versions.items()))
    terms = [*(term for term in COST_TERMS if term in plan.costs), *sorted(set(plan.costs) - set(COST_TERMS))]
    document["costs"] = {term: plan.costs[term] for term in terms}
    return (json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def write_plan_folder(
    plan: Plan, instance: Instance, path: str | Path, extra: Mapping[str, bytes] | None = None
) -> None:
    """Write a plan with its tables (and files of the caller) as a folder, whole or not at all.

    An older plan there is replaced; a folder that holds anything but a plan is refused with CannotWrite.
    """
    files = {
        PLAN_FILE: plan_bytes(plan),
        "assignments.csv": _table(_ASSIGNMENTS, _assignments(plan, instance)),
        "rentals.csv": _table(_RENTALS, _rentals(plan, instance)),
        "storage.csv": _table(_STORAGE, _storage(plan, instance)),
    }
    write_folder_whole(Path(path), files | dict(extra or {}), PLAN_FILE)


_ASSIGNMENTS = (
    *("job", "segment", "segments", "mode", "pool", "site", "kind", "nodes", "gpus", "start", "end", "speed", "cached"),
    *("due", "completion", "tardiness_h"),
)
_RENTALS = ("pool", "site", "kind", "node", "start", "end", "hours", "billed_hours", "cost")
_STORAGE = ("site", "kind", "item", "dataset", "fraction", "size_gb", "mb_s")


def _assignments(plan: Plan, instance: Instance) -> Iterable[list[Any]]:
    """A row for each segment of each run, numbered from 1; tardiness, once a job, in that of the last."""
    for run in plan.runs:
        job = instance.jobs[instance.job_index[run.job]]
        due = None if job.due is None else (instance.start + timedelta(seconds=job.due)).isoformat()
        for k, segment in enumerate(run.segments, 1):
            nodes = ";".join(str(place.node) for place in segment.places)
            # Not 1-3, which a spreadsheet takes for a date.
            gpus = ";".join(" ".join(str(gpu) for gpu in place.gpus) for place in segment.places)
            yield [
                *(run.job, k, len(run.segments), segment.mode, *_pool(instance, segment.pool), nodes, gpus),
                *(
                    segment.start,
                    segment.end,
                    segment.speed,
                    segment.cached,
                    due,
                    run.completion,
                    run.tardiness_h if k == len(run.segments) else None,
                ),
            ]


def _rentals(plan: Plan, instance: Instance) -> Iterable[list[Any]]:
    """A row for each interval in which a node is on or rented; it is billed in whole blocks."""
    for on in plan.nodes_on:
        slots = on.end_slot - on.start_slot
        block = max(1, round(instance.pools[instance.pool_index[on.pool]].billing_increment / plan.slot_s))
        hours, billed = (number * plan.slot_s / 3600.0 for number in (slots, -(-slots // block) * block))
        yield [*_pool(instance, on.pool), on.node, on.start, on.end, hours, billed, on.cost]


def _storage(plan: Plan, instance: Instance) -> Iterable[list[Any]]:
    """A row for the bandwidth of each site, then one for each dataset in a cache."""
    kinds = {site.id: site.kind for site in instance.sites}
    for bought in plan.bandwidth:
        yield [bought.site, kinds[bought.site], "bandwidth", None, None, None, bought.mb_s]
    for cached in plan.cached:
        size = instance.datasets[instance.dataset_index[cached.dataset]].size
        yield [cached.site, kinds[cached.site], "cache", cached.dataset, cached.fraction, size, None]


def _pool(instance: Instance, name: str) -> tuple[str, str, str]:
    pool = instance.pools[instance.pool_index[name]]
    return pool.id, pool.site, instance.sites[instance.site_index[pool.site]].kind


def _table(titles: Iterable[str], rows: Iterable[list[Any]]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(titles)
    writer.writerows([harmless(cell) for cell in row] for row in rows)
    return text.getvalue().encode()


def harmless(cell: Any) -> Any:
    """A cell that no spreadsheet runs as a formula: names come from outside."""
    if isinstance(cell, str) and cell[:1] in ("=", "+", "-", "@", "\t", "\r"):
        return "'" + cell
    return "" if cell is None else cell
