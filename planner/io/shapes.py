"""What the fields of a record are: their kind of quantity, unit, default, meaning and an example.

The one source of the reader's advice, of the writer, of the JSON Schema and of the reference page.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from models import units
from models.domain.entities import Storage
from models.domain.fields import TIME, Entity, parse_instant
from models.domain.instance import Instance
from models.units import Kind

CLOCK = "clock"

# For the fields whose type does not give an example by itself.
_EXAMPLES: dict[str, Any] = {
    "Instance.format": "burstplan/1",
    "Instance.name": "tuesday",
    "Instance.currency": "USD",
    "Instance.start": "2026-01-12T18:00:00+01:00",
    "Instance.slot": "15m",
    "Instance.horizon": "24h",
    "Instance.cache_levels": 1,
    "Instance.sites": "see Site",
    "Instance.pools": "see Pool",
    "Instance.datasets": "see Dataset",
    "Instance.network": "see Link",
    "Instance.throughputs": "see Throughput",
    "Instance.jobs": "see Job",
    "Site.id": "dc1",
    "Site.kind": "on_prem",
    "Site.energy_price": "0.18 USD/kWh",
    "Site.storage": {"bandwidth_cap": "2 GB/s", "cache_capacity": "4 TB"},
    "Storage.tariff": [{"fixed": "0.15 USD/h", "per_mb_s": "0.001 USD/h/(MB/s)"}],
    "Storage.points": [
        {"mb_s": "150 MB/s", "price": "0.31 USD/h"},
        {"mb_s": "300 MB/s", "price": "0.46 USD/h"},
    ],
    "Storage.tiers": [
        {"up_to": "600 MB/s", "per_mb_s": "0.001 USD/h/(MB/s)"},
        {"per_mb_s": "0.0005 USD/h/(MB/s)"},
    ],
    "Storage.power": {"factor": "0.0033 USD/h", "exponent": 0.88, "up_to": "10 GB/s"},
    "Storage.billed": "24h",
    "PowerTariff.exponent": 0.88,
    "PowerTariff.error": 0.005,
    "Pool.id": "dc1-a100",
    "Pool.site": "dc1",
    "Pool.gpu": "A100",
    "Pool.gpus_per_node": 8,
    "Pool.nodes": 4,
    "Pool.price": "3.06 USD/h",
    "Pool.cpu_cores": 64,
    "Pool.ram": "512GiB",
    "Pool.billing_increment": "1h",
    "Pool.boot_time": "5m",
    "Pool.slices_per_gpu": 4,
    "Pool.nodes_on": 2,
    "Pool.market": "on_demand",
    "Pool.unavailable": [{"since": "2h", "until": "3h", "nodes": 1}],
    "Unavailable.since": "2026-01-12T22:00:00+01:00",
    "Unavailable.until": "2026-01-13T01:00:00+01:00",
    "Unavailable.nodes": [0, 3],
    "HourlyTariff.windows": [{"since": "22:00", "until": "06:00", "price": "1.20 USD/h"}],
    "EnergyTariff.windows": [{"since": "22:00", "until": "06:00", "price": "0.11 USD/kWh"}],
    "HourlyWindow.since": "22:00",
    "HourlyWindow.until": "06:00",
    "EnergyWindow.since": "22:00",
    "EnergyWindow.until": "06:00",
    "Dataset.id": "imagenet",
    "Dataset.size": "146GB",
    "Dataset.home": "dc1",
    "Link.source": "dc1",
    "Link.target": "cloud",
    "Throughput.model": "resnet50",
    "Throughput.gpu": "A100",
    "Throughput.samples_per_s": 2500,
    "Throughput.gpus": 1,
    "Throughput.share": 0.5,
    "ModeEntry.id": "fast",
    "ModeEntry.pool": "dc1-a100",
    "ModeEntry.gpu": "A100",
    "ModeEntry.gpus": 2,
    "ModeEntry.share": 0.25,
    "ModeEntry.duration": "3h",
    "ModeEntry.slowdown": 1.05,
    "ModeEntry.read_rate": "87 MB/s",
    "ModeEntry.cpu_cores": 8,
    "ModeEntry.ram": "64GiB",
    "Running.mode": "2xA100",
    "Running.pool": "dc1-a100",
    "Running.places": [{"node": 0, "gpus": [0, 1]}],
    "Running.movable": True,
    "Place.node": 0,
    "Place.gpus": [0, 1],
    "Elastic.changes": 3,
    "Job.id": "bert-17",
    "Job.release": "2h",
    "Job.due": "2026-01-13T08:00:00+01:00",
    "Job.weight": "5 USD/h",
    "Job.deadline": "2026-01-13T12:00:00+01:00",
    "Job.dataset": "imagenet",
    "Job.modes": [{"gpu": "A100", "gpus": 2, "duration": "3h"}],
    "Job.model": "resnet50",
    "Job.samples": 115000000,
    "Job.sample_size": "0.11MB",
    "Job.speed_levels": [1, 0.5],
    "Job.cpu_cores": 8,
    "Job.ram": "64GiB",
    "Job.after": ["bert-16"],
    "Job.elastic": {"changes": 3},
    "Job.spot": True,
    "Job.value": [{"by": "12h", "value": "100 USD"}, {"by": "24h", "value": "40 USD"}],
    "Job.utility": {"shape": "linear", "worth": "100 USD", "full_until": "12h", "zero_at": "24h"},
    "Job.running": {"mode": "2xA100", "pool": "dc1-a100", "places": [{"node": 0, "gpus": [0, 1]}]},
    "ValueStep.by": "2026-01-13T08:00:00+01:00",
    "LinearUtility.shape": "linear",
    "LinearUtility.full_until": "2026-01-13T08:00:00+01:00",
    "LinearUtility.zero_at": "2026-01-14T08:00:00+01:00",
    "StepUtility.shape": "step",
    "StepUtility.by": "2026-01-13T08:00:00+01:00",
    "SigmoidUtility.shape": "sigmoid",
    "SigmoidUtility.midpoint": "2026-01-13T08:00:00+01:00",
    "SigmoidUtility.scale": "2h",
    "FairnessUtility.shape": "finish_time_fairness",
    "FairnessUtility.fair_time": "8h",
}

_FORMS = {"currency": "three capitals", "start": "ISO 8601 with zone"}
_NOUNS: dict[Any, str] = {str: "name", bool: "true or false", int: "whole number", float: "number"}


@dataclass(frozen=True)
class Fact:
    """What is to be known of one field."""

    name: str
    is_required: bool
    default: Any
    """As it is written; None where nothing is."""
    unit: str
    meaning: str
    example: Any


def _parts(annotation: Any) -> Iterator[Any]:
    """An annotation and all that is within it, but for the fields of records."""
    yield annotation
    if get_origin(annotation) is not Literal:
        for inner in get_args(annotation):
            yield from _parts(inner)


@cache
def kind_of(record: type[Entity], name: str) -> Kind | str | None:
    """The kind of quantity of a field, "clock" for a time of day, None where it holds none."""
    info = record.model_fields[name]
    for part in (*info.metadata, *_parts(info.annotation)):
        if isinstance(part, Kind) or (isinstance(part, str) and part == CLOCK):
            return part
    return None


@cache
def records_in(record: type[Entity], name: str) -> tuple[type[Entity], ...]:
    """The types of record that a field may hold."""
    annotation = record.model_fields[name].annotation
    return tuple(part for part in _parts(annotation) if isinstance(part, type) and issubclass(part, Entity))


def _branches(annotation: Any) -> Iterator[Any]:
    if get_origin(annotation) in (Union, UnionType):
        for inner in get_args(annotation):
            yield from _branches(inner)
    elif get_origin(annotation) is Annotated:
        yield from _branches(get_args(annotation)[0])
    elif annotation is not NoneType:
        yield annotation


@cache
def is_list(record: type[Entity], name: str) -> bool:
    """Whether a field is always a list."""
    return all(get_origin(branch) is tuple for branch in _branches(record.model_fields[name].annotation))


@cache
def may_be_list(record: type[Entity], name: str) -> bool:
    """Whether a field is a list in one of its spellings."""
    return any(get_origin(branch) is tuple for branch in _branches(record.model_fields[name].annotation))


@cache
def is_dict(record: type[Entity], name: str) -> bool:
    """Whether a field holds values by a name."""
    return get_origin(record.model_fields[name].annotation) is dict


@cache
def choices(record: type[Entity], name: str) -> tuple[str, ...]:
    """The words that a field may hold."""
    annotation = record.model_fields[name].annotation
    return tuple(word for part in _parts(annotation) if get_origin(part) is Literal for word in get_args(part))


@cache
def tag_field(record: type[Entity], name: str) -> str | None:
    """The field in which the records that a field may hold say which of them they are; None where there is but one."""
    info = record.model_fields[name]
    found = (part.discriminator for part in (info, *_parts(info.annotation)) if isinstance(part, FieldInfo))
    return next((tag for tag in found if isinstance(tag, str)), None)


@cache
def tagged_records(record: type[Entity], name: str) -> dict[str, type[Entity]]:
    """The records that a field may hold by the word with which they say so; empty where there is but one."""
    tag = tag_field(record, name)
    return {} if tag is None else {choices(part, tag)[0]: part for part in records_in(record, name)}


def field_at(record: type[Entity], path: tuple[str | int, ...]) -> tuple[type[Entity], str] | None:
    """The record type and the name of the innermost field on a path that begins in `record`."""
    found: tuple[type[Entity], str] | None = None
    holders: tuple[type[Entity], ...] = (record,)
    for step in path:
        if isinstance(step, int):
            continue
        owner = next((holder for holder in holders if step in holder.model_fields), None)
        if owner is None:
            return found
        found = (owner, step)
        holders = records_in(owner, step)
    return found


def example_of(record: type[Entity], name: str) -> Any:
    """A value that one might write for a field."""
    owner = Instance if record in Instance.__mro__ else record
    key = f"{owner.__name__}.{name}"
    if key in _EXAMPLES:
        return _EXAMPLES[key]
    kind = kind_of(record, name)
    if isinstance(kind, Kind):
        return kind.example.split(" or ")[0].split(",")[0]
    return True if record.model_fields[name].annotation is bool else "text"


def unit_of(record: type[Entity], name: str) -> str:
    """The unit of a field: that of a bare number in it, or what it holds where that is not a quantity."""
    kind = kind_of(record, name)
    inner = records_in(record, name)
    if isinstance(kind, Kind) and kind is not TIME:
        unit = kind.unit.replace("money", "currency").replace("one/", "1/")
        text = unit + (", a list of them" if may_be_list(record, name) else "")
        others = [*choices(record, name), *(part.__name__ for part in inner)]
        return ", or ".join([text, *others])
    if kind is TIME:
        return "time"
    if kind == CLOCK:
        return "HH:MM"
    if inner:
        names = " or ".join(part.__name__ for part in inner)
        return f"list of {names}" if is_list(record, name) else names
    if words := choices(record, name):
        return "one of " + ", ".join(words) if len(words) > 1 else words[0]
    if name in _FORMS:
        return _FORMS[name]
    plain = [part for part in _parts(record.model_fields[name].annotation) if part in _NOUNS]
    noun = _NOUNS[plain[0]] if plain else "text"
    if is_list(record, name):
        return f"list of {noun}s"
    return f"{noun} or list of them" if may_be_list(record, name) else noun


def fact(record: type[Entity], name: str) -> Fact:
    """All that is known of a field."""
    info = record.model_fields[name]
    default = None if info.is_required() else _written_default(info)
    return Fact(
        name,
        info.is_required(),
        default,
        unit_of(record, name),
        info.description or "",
        example_of(record, name),
    )


def _written_default(info: FieldInfo) -> Any:
    if isinstance(info.default, Storage):
        return {}
    return list(info.default) if isinstance(info.default, tuple) else info.default


def facts(record: type[Entity]) -> list[Fact]:
    """All fields of a record, in order."""
    return [fact(record, name) for name in record.model_fields]


def all_records() -> list[type[Entity]]:
    """The types of record in an instance, each followed by those that it has parts of."""
    found: list[type[Entity]] = []
    waiting: list[type[Entity]] = [Instance]
    while waiting:
        record = waiting.pop()
        if record not in found:
            found.append(record)
            inner = [part for name in record.model_fields for part in records_in(record, name)]
            waiting += [part for part in reversed(inner) if part not in found]
    return found


class Encoder:
    """Writes records as people do: quantities with units, times in ISO 8601, no defaults; without loss."""

    def __init__(self, start: datetime, currency: str) -> None:
        # A fixed offset: with a zone that has summer time, adding seconds would move the wall clock instead.
        self.start = start.replace(tzinfo=timezone(start.utcoffset() or timedelta()))
        self.currency = currency
        self._texts: dict[tuple[float, str], str | float] = {}

    def record(self, record: Entity) -> dict[str, Any]:
        """The fields of a record that differ from their defaults, and those that are required."""
        document: dict[str, Any] = {}
        cls = type(record)
        for name, info in cls.model_fields.items():
            value = getattr(record, name)
            if info.default is PydanticUndefined or value != info.default:
                document[name] = self._value(value, kind_of(cls, name))
        return document

    def _value(self, value: Any, kind: Kind | str | None) -> Any:
        if isinstance(value, Entity):
            return self.record(value)
        if isinstance(value, tuple):
            return [self._value(item, kind) for item in value]
        if isinstance(value, datetime):
            return value.isoformat()
        if isinstance(value, float) and kind is not None:
            return self._quantity(value, kind)
        if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
            return int(value)
        return value

    def _quantity(self, value: float, kind: Kind | str) -> str | float:
        key = (value, kind if isinstance(kind, str) else kind.name)
        if key not in self._texts:
            self._texts[key] = self._spelt(value, kind)
        return self._texts[key]

    def _spelt(self, value: float, kind: Kind | str) -> str | float:
        if isinstance(kind, str):
            hours, minutes = divmod(round(value / 60), 60)
            return f"{hours:02d}:{minutes:02d}"
        if kind is TIME:
            return self._time(value)
        text = units.write(value, kind, self.currency)
        return value if text == repr(value) else text

    def _time(self, seconds: float) -> str | float:
        try:
            text = (self.start + timedelta(seconds=seconds)).isoformat()
            if round(parse_instant(text, self.start), 6) == seconds:
                return text
        except (OverflowError, ValueError):
            pass
        text = units.write(seconds, units.DURATION)
        return seconds if text == repr(seconds) else text
