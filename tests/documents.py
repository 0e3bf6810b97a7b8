"""A small instance as a document, to be changed by a test in a word or two."""

from __future__ import annotations

from typing import Any

HOUR = 3600.0
Doc = dict[str, Any]


def document(jobs: list[Doc], **changes: Any) -> Doc:
    """Six slots of an hour from 18:00; one owned node with two GPUs at 1 an hour, one rented like it at 4; a dataset of
    100 GB at home. Jobs are j0, j1 and so on; changes are named by path: pools__0__nodes."""
    doc: Doc = {
        "currency": "USD",
        "start": "2026-01-12T18:00:00+00:00",
        "slot": HOUR,
        "horizon": 6 * HOUR,
        "sites": [{"id": "home", "kind": "on_prem"}, {"id": "cloud", "kind": "cloud"}],
        "pools": [
            {"id": "own", "site": "home", "gpu": "A", "gpus_per_node": 2, "nodes": 1, "price": 1.0},
            {"id": "rent", "site": "cloud", "gpu": "B", "gpus_per_node": 2, "nodes": 1, "price": 4.0},
        ],
        "datasets": [{"id": "data", "size": 100.0, "home": "home"}],
        "network": [{"source": "home", "target": "cloud", "price": 0.01}],
        "jobs": [{"id": f"j{k}"} | job for k, job in enumerate(jobs)],
    }
    for path, value in changes.items():
        *keys, last = path.split("__")
        target: Any = doc
        for key in keys:
            target = target[int(key)] if key.isdigit() else target.setdefault(key, {})
        target[last] = value
    return doc
