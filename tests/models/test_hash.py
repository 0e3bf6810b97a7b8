"""The content hash: of the whole content in canonical JSON, taken piece by piece."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pytest

from models.domain import Elastic
from tests.random_instances import FAMILIES, random_instance


@pytest.mark.parametrize("family", FAMILIES)
def test_it_is_the_hash_of_the_canonical_json(family: str) -> None:
    for seed in range(10):
        instance = random_instance(family, np.random.default_rng(seed))
        document = instance.model_dump(mode="json", exclude={"name"})
        text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        assert instance.content_hash == hashlib.sha256(text.encode()).hexdigest()
        assert instance.model_copy(update={"name": "other"}).content_hash == instance.content_hash


def test_an_instance_without_elastic_jobs_has_the_hash_of_before() -> None:
    """A field that came later is in the hash only where it is given."""
    instance = random_instance(FAMILIES[0], np.random.default_rng(1))
    plain = instance.altered(jobs=tuple(job.model_copy(update={"elastic": None}) for job in instance.jobs))
    assert all("elastic" not in job.model_dump(mode="json") for job in plain.jobs)
    hashes = {plain.content_hash}
    for elastic in (Elastic(), Elastic(changes=0), Elastic(changes=3)):
        changed = tuple(job.model_copy(update={"elastic": elastic}) for job in instance.jobs)
        hashes.add(instance.altered(jobs=changed).content_hash)
    assert len(hashes) == 4
