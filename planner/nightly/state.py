"""The state file: what runs now, what is complete, which nodes are down. Read with all its faults at once."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from models.domain import Instance
from models.domain.entities import Running
from models.domain.fields import Count, Entity, Id, Number, PositiveDuration, Time, describe
from models.domain.rules import suggest
from models.errors import Fault, InvalidInput
from planner.io import shapes
from planner.io.documents import Document, load_json, load_yaml, locate_json
from planner.io.faults import Path as FieldPath
from planner.io.faults import faults_of, placed, written
from planner.io.texts import MIB, read_text, refuse, show

LIMIT = 64 * MIB
_YAML, _JSON = (".yaml", ".yml"), (".json",)
Part = Annotated[Number, Field(gt=0, le=1)]


class RunningJob(Running):
    """A job that runs now: where, and how much of it is left."""

    job: Id = describe("the job that runs")
    remaining: Part | None = describe(
        "part of its work that is left, of the durations that the instance gives; or give remaining_time; none of "
        "them: all of it",
        None,
    )
    remaining_time: PositiveDuration | None = describe(
        "time until it completes where it runs; its other modes are shortened in proportion", None
    )


class PausedJob(Entity):
    """A job that has run and does not run now; it goes on from where it was."""

    job: Id = describe("the job that is paused")
    remaining: Part = describe("part of its work that is left, of the durations that the instance gives")


class Down(Entity):
    """Nodes that cannot be used until some time."""

    pool: Id = describe("the pool of the nodes")
    nodes: Count | tuple[Count, ...] | None = describe(
        "how many nodes (those with the highest indices), or the list of their indices; none: the whole pool", None
    )
    until: Time = describe("when they are expected back")


class NodesOn(Entity):
    """How many nodes of a pool are on."""

    pool: Id = describe("the pool of the nodes")
    nodes: Count = describe("nodes that are on and need no boot (those with the lowest indices)")


class State(Entity):
    """The world at a moment."""

    format: Literal["burstplan-state/1"] = describe("version of this format", "burstplan-state/1")
    at: Time = describe("the moment that the state is of: the plan begins here", 0.0)
    running: tuple[RunningJob, ...] = describe("jobs that run", ())
    paused: tuple[PausedJob, ...] = describe("jobs that have run, do not run now, and go on from where they were", ())
    complete: tuple[Id, ...] = describe("jobs of the instance that are complete", ())
    down: tuple[Down, ...] = describe("nodes that cannot be used", ())
    nodes_on: tuple[NodesOn, ...] = describe("nodes that are on; a pool left out is as the instance says", ())


_RECORDS: dict[str, type[Entity]] = {"running": RunningJob, "paused": PausedJob, "down": Down, "nodes_on": NodesOn}
# Advice begins with an example, and these are fields that the format of instances does not know.
_EXAMPLES: dict[str, Any] = {
    "RunningJob.job": "bert-17",
    "RunningJob.mode": "2xA100",
    "RunningJob.pool": "dc1-a100",
    "RunningJob.places": [{"node": 0, "gpus": [0, 1]}],
    "RunningJob.remaining": 0.4,
    "PausedJob.job": "bert-18",
    "PausedJob.remaining": 0.7,
    "Down.pool": "dc1-a100",
    "Down.nodes": [3],
    "NodesOn.pool": "dc1-a100",
    "NodesOn.nodes": 2,
    "State.running": [{"job": "bert-17", "mode": "2xA100", "pool": "dc1-a100", "places": [{"node": 0, "gpus": [0]}]}],
    "State.paused": [{"job": "bert-18", "remaining": 0.7}],
    "State.complete": ["bert-16"],
    "State.down": [{"pool": "dc1-a100", "nodes": [3], "until": "8h"}],
    "State.nodes_on": [{"pool": "dc1-a100", "nodes": 2}],
}


@dataclass
class Draft:
    """A state file as far as it can be read: its valid records by their index, and where its entries are."""

    where: str
    document: Document = field(default_factory=Document)
    located: Document | None = None
    at: float = 0.0
    running: dict[int, RunningJob] = field(default_factory=dict)
    paused: dict[int, PausedJob] = field(default_factory=dict)
    complete: dict[int, str] = field(default_factory=dict)
    down: dict[int, Down] = field(default_factory=dict)
    nodes_on: dict[int, NodesOn] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)

    def place(self, path: FieldPath) -> tuple[str, int]:
        """File and line of an entry."""
        line = None if self.located is None else self.located.line(path)
        return (self.where if line is None else f"{self.where} line {line}"), line or 0

    def refuse_faults(self) -> None:
        """Raise InvalidInput with every fault that was found, if any."""
        if self.faults:
            raise InvalidInput(placed(self.faults, self.place))


def read_draft(path: Path, instance: Instance) -> Draft:
    """What a state file says of an instance, with every fault of the file by itself; raises InvalidInput where it is
    no such file at all."""
    draft = _load(path)
    raw = draft.document.value
    context = {"start": instance.start, "currency": instance.currency}
    try:
        State.model_validate(raw, context=context)
    except ValidationError as error:
        draft.faults += [_advised(fault) for fault in faults_of(error, State, ())]
    _fill(draft, raw, context)
    draft.faults += _rules(draft, instance)
    return draft


def _load(path: Path) -> Draft:
    where = show(str(path), 300)
    suffix = path.suffix.lower()
    if suffix not in (*_YAML, *_JSON) and path.is_file():
        raise refuse(path, "is not a state file", "give a .yaml or .json file")
    text = read_text(path, LIMIT)
    if not text.strip():
        raise refuse(path, "is empty", "write at least at: and the time that the state is of")
    document = load_json(text, where) if suffix in _JSON else load_yaml(text, where)
    if document.faults:
        raise InvalidInput(document.faults)
    if not isinstance(document.value, dict):
        raise refuse(path, "is not a record with fields", "write name: value for at, running, complete and the like")
    return Draft(where, document, locate_json(text, where) if suffix in _JSON else document)


def _fill(draft: Draft, raw: dict[str, Any], context: dict[str, Any]) -> None:
    """Keep what is valid by itself, so that the rules can be held against it whatever else is wrong."""
    try:
        draft.at = State.model_validate({"at": raw["at"]} if "at" in raw else {}, context=context).at
    except ValidationError:
        draft.at = 0.0
    for section, record in _RECORDS.items():
        rows = raw.get(section)
        for k, row in enumerate(rows if isinstance(rows, list) else ()):
            try:
                getattr(draft, section)[k] = record.model_validate(row, context=context)
            except ValidationError:
                continue
    names = raw.get("complete")
    for k, name in enumerate(names if isinstance(names, list) else ()):
        try:
            (draft.complete[k],) = State.model_validate({"complete": [name]}).complete
        except ValidationError:
            continue


def _advised(fault: Fault) -> Fault:
    """The fault with an example of the field in its advice."""
    at = shapes.field_at(State, fault.path)
    if at is None or fault.mend is None:
        return fault
    example = _EXAMPLES.get(f"{at[0].__name__}.{at[1]}")
    if example is None:
        return fault
    mend = fault.mend.replace("write text, say", f"write {written(example)}, say")
    return dataclasses.replace(fault, mend=mend.replace("e.g. text", f"e.g. {written(example)}"))


def _rules(draft: Draft, instance: Instance) -> Iterator[Fault]:
    """What must hold between the entries of the file, and between them and the instance."""
    yield from _moment(draft, instance)
    yield from _jobs(draft, instance)
    pools = {pool.id: pool for pool in instance.pools}
    for section in ("running", "down", "nodes_on"):
        for k, row in getattr(draft, section).items():
            if row.pool not in pools:
                yield Fault("there is no such name in pools", (section, k, "pool"), row.pool, suggest(row.pool, pools))
    seen: dict[str, int] = {}
    for k, row in draft.nodes_on.items():
        if seen.setdefault(row.pool, k) != k:
            yield Fault(f"is given in nodes_on[{seen[row.pool]}] too", ("nodes_on", k, "pool"), row.pool, "keep one")
    for k, window in draft.down.items():
        if window.until <= draft.at:
            when = _instant(instance, window.until)
            mend = "remove the entry where the nodes are back, or correct until"
            yield Fault("is not after the moment of the state", ("down", k, "until"), when, mend)
    yield from _on_nodes_that_are_down(draft, instance)


def _moment(draft: Draft, instance: Instance) -> Iterator[Fault]:
    when = _instant(instance, draft.at)
    if draft.at < 0:
        mend = f"the instance starts at {instance.start.isoformat()}; let it start no later than the state"
        yield Fault("is before the start of the instance", ("at",), when, mend)
    if draft.at != round(draft.at):
        yield Fault("has fractions of a second", ("at",), when, "write a whole second")
    lists = [f"pool {pool.id}" for pool in instance.pools if isinstance(pool.price, tuple)]
    lists += [f"site {site.id}" for site in instance.sites if isinstance(site.energy_price, tuple)]
    if not lists or draft.at <= 0:
        return
    slots = draft.at / instance.slot
    if abs(slots - round(slots)) > 1e-9:
        mend = f"write the edge of a slot of {instance.slot:g} s, or give windows as prices"
        yield Fault(f"is within a slot, and {lists[0]} has one price for each slot", ("at",), when, mend)
    elif draft.at >= float(instance.horizon):
        yield Fault(f"is after the last of the prices of {lists[0]}", ("at",), when, "let the instance start later")


def _jobs(draft: Draft, instance: Instance) -> Iterator[Fault]:
    seen: dict[str, str] = {}
    listed: list[tuple[FieldPath, str]] = [(("running", k, "job"), row.job) for k, row in draft.running.items()]
    listed += [(("paused", k, "job"), row.job) for k, row in draft.paused.items()]
    listed += [(("complete", k), name) for k, name in draft.complete.items()]
    for path, name in listed:
        place = f"{path[0]}[{path[1]}]"
        if name not in instance.job_index:
            yield Fault("there is no such name in jobs", path, name, suggest(name, instance.job_index))
        elif name in seen:
            yield Fault(f"is listed in {seen[name]} too", path, name, "keep one")
        seen.setdefault(name, place)
    for k, row in draft.running.items():
        if row.remaining is not None and row.remaining_time is not None:
            yield Fault("has both remaining and remaining_time", ("running", k), row.job, "give one of them")
    # A faulty entry may be that of such a job: it is asked for only where all could be read.
    rows = [draft.document.value.get(section) for section in ("running", "paused")]
    if len(draft.running) + len(draft.paused) == sum(len(found) for found in rows if isinstance(found, list)):
        for job in instance.jobs:
            if job.running is not None and job.id not in seen:
                yield Fault(
                    "runs, by the instance, and the state does not say so",
                    ("running",),
                    job.id,
                    "add it to running, paused or complete, or remove running from the job",
                )


def _on_nodes_that_are_down(draft: Draft, instance: Instance) -> Iterator[Fault]:
    down: dict[tuple[str, int], int] = {}
    for k, window in draft.down.items():
        if window.pool in instance.pool_index and window.until > draft.at:
            num_nodes = instance.pools[instance.pool_index[window.pool]].nodes
            down.update(((window.pool, node), k) for node in nodes_of(window, num_nodes))
    for k, row in draft.running.items():
        for i, place in enumerate(row.places):
            if (row.pool, place.node) in down:
                yield Fault(
                    f"job {row.job} runs on a node that is down by down[{down[row.pool, place.node]}]",
                    ("running", k, "places", i, "node"),
                    str(place.node),
                    "remove the job from running, so that it waits again, or correct down",
                )


def nodes_of(window: Down, num_nodes: int) -> range | tuple[int, ...]:
    """The nodes that are down, of a pool with so many."""
    if isinstance(window.nodes, tuple):
        return window.nodes
    return range(0 if window.nodes is None else max(0, num_nodes - window.nodes), num_nodes)


def _instant(instance: Instance, seconds: float) -> str:
    return (instance.start + timedelta(seconds=seconds)).isoformat()
