"""A small instance and plans of it, put together by hand: nothing is solved."""

from __future__ import annotations

from typing import Any

from models.domain import Instance, Plan

START = "2026-01-12T18:10:00+01:00"
SLOT_S = 1800.0


def instance_document(names: tuple[str, ...] = ("alpha", "beta", "gamma", "delta")) -> dict[str, Any]:
    """Two pools, one of them rented, and a job of each name; the last may be rejected."""
    jobs: list[dict[str, Any]] = [
        {"id": name, "due": "4h", "weight": 2.0, "modes": [{"gpu": "A100", "gpus": 2, "duration": "2h"}]}
        for name in names
    ]
    jobs[1]["release"] = "30m"
    jobs[-1]["reject_cost"] = 5.0
    return {
        "name": "sample",
        "currency": "USD",
        "start": START,
        "slot": "30m",
        "horizon": "24h",
        "sites": [{"id": "home", "kind": "on_prem"}, {"id": "away", "kind": "cloud"}],
        "pools": [
            {"id": "burst", "site": "away", "gpu": "A100", "gpus_per_node": 4, "nodes": 2, "price": 8.0},
            {"id": "owned", "site": "home", "gpu": "A100", "gpus_per_node": 4, "nodes": 2, "price": 1.0},
        ],
        "jobs": jobs,
    }


def sample_instance(*names: str) -> Instance:
    """The instance."""
    return Instance.model_validate(instance_document(names or ("alpha", "beta", "gamma", "delta")))


def segment(pool: str, first: int, last: int, node: int = 0, gpus: tuple[int, ...] = (0, 1)) -> dict[str, Any]:
    """A stretch of a run on one node."""
    return {
        "mode": "2xA100",
        "pool": pool,
        "start_slot": first,
        "end_slot": last,
        "start": "",
        "end": "",
        "places": [{"node": node, "gpus": list(gpus)}],
        "slices": 1,
    }


def plan_document(instance: Instance) -> dict[str, Any]:
    """The first job on owned nodes, the second rented, the third late, the fourth rejected."""
    one, two, three, four = (job.id for job in instance.jobs)
    return {
        "instance": instance.name,
        "instance_hash": instance.content_hash,
        "currency": instance.currency,
        "start": START,
        "slot_s": SLOT_S,
        "num_slots": 48,
        "status": "feasible",
        "engine": "fast",
        "seed": 3,
        "versions": {"planner": "0.1.0", "highspy": "1.16.0"},
        "cost": 26.0,
        "costs": {"node_hours": 4.0, "rental": 16.0, "energy": 0.0, "tardiness": 1.0, "rejection": 5.0},
        "dual_bound": 25.0,
        "gap": 1 / 26,
        "runs": [
            {"job": one, "segments": [segment("owned", 0, 4)], "completion": "", "tardiness_h": 0.0},
            {"job": two, "segments": [segment("burst", 2, 6)], "completion": "", "tardiness_h": 0.0},
            {"job": three, "segments": [segment("owned", 5, 9)], "completion": "", "tardiness_h": 0.5},
        ],
        "rejected": [four],
        "nodes_on": [
            {"pool": "owned", "node": 0, "start_slot": 0, "end_slot": 9, "start": "", "end": "", "cost": 4.0},
            {
                "pool": "burst",
                "node": 0,
                "start_slot": 2,
                "end_slot": 6,
                "start": "",
                "end": "",
                "cost": 16.0,
            },
        ],
    }


def sample_plan(instance: Instance, **changes: Any) -> Plan:
    """The plan, with some fields changed."""
    return Plan.model_validate(plan_document(instance) | changes)


def changed_runs() -> list[dict[str, Any]]:
    """alpha on owned nodes, on rented ones after a pause of an hour, then on owned ones; beta and gamma as ever."""
    stretches = [segment("owned", 0, 4), segment("burst", 6, 9), segment("owned", 9, 12)]
    return [
        {"job": "alpha", "segments": stretches, "completion": "", "tardiness_h": 2.0},
        {"job": "beta", "segments": [segment("owned", 0, 4, node=1)], "completion": "", "tardiness_h": 0.0},
        {"job": "gamma", "segments": [segment("owned", 4, 6, gpus=(2, 3))], "completion": "", "tardiness_h": 0.0},
    ]
