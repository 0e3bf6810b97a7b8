"""An instance: everything a plan depends on; validated, immutable, with a content hash."""

from __future__ import annotations

import hashlib
import json
from datetime import datetime, timedelta
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, BeforeValidator, Field, WithJsonSchema, model_validator

from models.domain.entities import Dataset, Job, Link, Pool, Site, Throughput
from models.domain.fields import Entity, Id, PositiveCount, PositiveDuration, describe
from models.domain.rules import SECTIONS, Draft, check_rules
from models.errors import InvalidInput

FORMAT: Literal["burstplan/1"] = "burstplan/1"
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _read_start(value: object) -> object:
    if isinstance(value, datetime):
        return value
    if not isinstance(value, str):
        raise ValueError("is not a time; write ISO 8601 with a zone such as 2026-01-12T18:00:00+01:00")
    try:
        instant = datetime.fromisoformat(value.strip())
    except ValueError:
        raise ValueError("is not a time; write ISO 8601 with a zone such as 2026-01-12T18:00:00+01:00") from None
    if instant.tzinfo is None:
        raise ValueError(f"has no time zone; write {value.strip()}Z for UTC or add an offset such as +01:00")
    if instant.microsecond:
        raise ValueError("has fractions of a second; start on a whole second")
    return instant


Start = Annotated[
    AwareDatetime,
    BeforeValidator(_read_start),
    WithJsonSchema({"type": "string", "format": "date-time", "x-unit": "ISO 8601 with zone"}),
]


class Head(Entity):
    """The fields of an instance that are not tables."""

    format: Literal["burstplan/1"] = describe("version of this format", FORMAT)
    name: Id = describe("name of the instance", "instance")
    currency: Annotated[str, Field(pattern="^[A-Z]{3}$")] = describe("ISO 4217 code of all money in the file")
    start: Start = describe("the first moment that is planned; the zone of all times of day")
    slot: PositiveDuration = describe("length of a slot of the time grid")
    horizon: PositiveDuration | Literal["auto"] = describe(
        "length of the plan, a whole number of slots; auto: long enough for every job to finish, late if need be",
        "auto",
    )
    cache_levels: PositiveCount = describe(
        "in how many equal parts a dataset may be cached; 1: wholly or not at all", 1, le=16
    )


class Instance(Head):
    """A planning problem; `Instance(...)` raises InvalidInput with every fault."""

    sites: tuple[Site, ...] = describe("sites", min_length=1)
    pools: tuple[Pool, ...] = describe("pools of nodes", min_length=1)
    datasets: tuple[Dataset, ...] = describe("datasets", ())
    network: tuple[Link, ...] = describe("links between sites over which data can be read", ())
    throughputs: tuple[Throughput, ...] = describe("measured speeds, for jobs with a model", ())
    jobs: tuple[Job, ...] = describe("jobs", ())

    @model_validator(mode="after")
    def _obeys_the_rules(self) -> Instance:
        tables = {section: getattr(self, section) for section in SECTIONS}
        faults = check_rules(Draft.of(tables, self.slot, self.horizon, self.start))
        if faults:
            raise InvalidInput(faults)
        return self

    def altered(self, **fields: Any) -> Instance:
        """The same with other fields. Not validated again: for what is made of a valid instance, not what is read."""
        return Instance.model_construct(**{name: getattr(self, name) for name in Instance.model_fields} | fields)

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 over the content in canonical units: the same for every spelling of the same instance."""
        return content_hash(self)

    @cached_property
    def site_index(self) -> dict[str, int]:
        """Index of each site by name."""
        return {site.id: index for index, site in enumerate(self.sites)}

    @cached_property
    def pool_index(self) -> dict[str, int]:
        """Index of each pool by name."""
        return {pool.id: index for index, pool in enumerate(self.pools)}

    @cached_property
    def dataset_index(self) -> dict[str, int]:
        """Index of each dataset by name."""
        return {dataset.id: index for index, dataset in enumerate(self.datasets)}

    @cached_property
    def job_index(self) -> dict[str, int]:
        """Index of each job by name."""
        return {job.id: index for index, job in enumerate(self.jobs)}

    @cached_property
    def links(self) -> dict[tuple[str, str], Link]:
        """The link from one site to another, where there is one."""
        return {(link.source, link.target): link for link in self.network}

    @property
    def slot_h(self) -> float:
        """Length of a slot in hours."""
        return self.slot / 3600.0

    def instant(self, slot: int) -> str:
        """The beginning of a slot in ISO 8601."""
        return (self.start + timedelta(seconds=slot * self.slot)).isoformat()

    def is_read_at(self, dataset: str, site: str) -> bool:
        """Whether data that is at home at one site can be read or cached at another."""
        home = self.datasets[self.dataset_index[dataset]].home
        return home == site or (home, site) in self.links


def content_hash(instance: Instance) -> str:
    """SHA-256 of the canonical JSON of an instance (name left out: it is a label).

    Taken record by record: the text of a large instance is many times its size in memory.
    """
    head = instance.model_dump(mode="json", exclude={"name", *SECTIONS})
    digest = hashlib.sha256()
    for k, field in enumerate(sorted((*head, *SECTIONS))):
        digest.update(f'{"," if k else "{"}"{field}":'.encode())
        if field in SECTIONS:
            digest.update(b"[")
            for i, record in enumerate(getattr(instance, field)):
                digest.update((b"," if i else b"") + _canonical(record.model_dump(mode="json")))
            digest.update(b"]")
        else:
            digest.update(_canonical(head[field]))
    digest.update(b"}")
    return digest.hexdigest()


def _canonical(value: Any) -> bytes:
    return _ENCODER.encode(value).encode()
