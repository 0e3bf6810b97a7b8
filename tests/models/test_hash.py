"""The content hash: of the whole content in canonical JSON, taken piece by piece."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pytest

from tests.random_instances import FAMILIES, random_instance


@pytest.mark.parametrize("family", FAMILIES)
def test_it_is_the_hash_of_the_canonical_json(family: str) -> None:
    for seed in range(10):
        instance = random_instance(family, np.random.default_rng(seed))
        document = instance.model_dump(mode="json", exclude={"name"})
        text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        assert instance.content_hash == hashlib.sha256(text.encode()).hexdigest()
        assert instance.model_copy(update={"name": "other"}).content_hash == instance.content_hash
