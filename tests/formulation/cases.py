"""Instances small enough to read as LP files, one for each family of constraints. Slots are hours.

Each is made so that the rows of its family bind: `OPTIMA` says what it costs with them, and the comment why.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from models.domain import Instance
from models.starts import Starts, all_starts

HOUR = 3600.0
Doc = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """An instance and how it is formulated."""

    instance: Instance
    node_pools: frozenset[int] = frozenset()
    form: Literal["sums", "levels"] = "sums"

    @property
    def starts(self) -> Starts:
        """Every start of the instance, none reduced."""
        assert self.instance.horizon != "auto"
        return all_starts(self.instance, round(self.instance.horizon / self.instance.slot))


def instance_of(name: str, slots: int, pools: list[Doc], jobs: list[Doc], **tables: Any) -> Instance:
    """Slots of an hour; pools p0, p1, ... are of GPU type A, at home and at 1 an hour, unless they say otherwise."""
    doc: Doc = {
        "name": name,
        "currency": "EUR",
        "start": "2026-01-12T18:00:00+01:00",
        "slot": HOUR,
        "horizon": slots * HOUR,
        "sites": [{"id": "home", "kind": "on_prem"}, {"id": "cloud", "kind": "cloud"}],
        "pools": [{"id": f"p{p}", "site": "home", "gpu": "A", "price": 1.0} | pool for p, pool in enumerate(pools)],
        "jobs": jobs,
    }
    return Instance.model_validate(doc | tables)


def job(name: str, hours: float, gpus: float = 1, pool: str = "p0", rate: float = 0.0, **fields: Any) -> Doc:
    """A job with one mode; below one GPU: a share."""
    amount = {"gpus": gpus} if gpus >= 1 else {"share": gpus}
    return {"id": name, "modes": [amount | {"pool": pool, "duration": hours * HOUR, "read_rate": rate}]} | fields


def between(release: float, deadline: float) -> Doc:
    """Release and deadline in hours."""
    return {"release": release * HOUR, "deadline": deadline * HOUR}


def scheduling() -> Case:
    """One GPU; the second job is due while the first runs, and is better rejected (2) than late (1 + 2 * 3)."""
    jobs = [
        job("long", 2, due=2 * HOUR, weight=4.0),
        job("short", 1, due=HOUR, weight=3.0, reject_cost=2.0),
    ]
    return Case(instance_of("scheduling", 3, [{"gpus_per_node": 1, "nodes": 1}], jobs))


def capacity(form: Literal["sums", "levels"] = "sums") -> Case:
    """Two nodes of five GPUs. The gang takes both for an hour (2). Of three GPUs each, one run a node: three
    node-hours, though nine GPUs fit on two nodes. The job with many cores fits beside one of them."""
    jobs = [
        job("gang", 1, 7),
        *(job(f"large{k}", 1, 3, cpu_cores=4) for k in range(3)),
        job("cores", 1, 1, cpu_cores=5),
    ]
    return Case(instance_of("capacity", 3, [{"gpus_per_node": 5, "nodes": 2, "cpu_cores": 10}], jobs), form=form)


def rental() -> Case:
    """Two rented nodes of one GPU, an hour to boot, blocks of two hours at 6. The first boots in slot 0 for the
    long job. The second cannot boot in slot 1, in which it is unavailable, so the short job comes after the long
    one and an hour late: two blocks of the first node and 10, where three blocks would do."""
    pool = {
        "site": "cloud", "gpus_per_node": 1, "nodes": 2, "price": 3.0, "boot_time": HOUR, "billing_increment": 2 * HOUR,
        "unavailable": [{"since": HOUR, "until": 2 * HOUR, "nodes": [1]}],
    }  # fmt: skip
    jobs = [
        job("long", 2, **between(1, 3)),
        job("short", 1, release=2 * HOUR, due=3 * HOUR, weight=10.0),
    ]
    return Case(instance_of("rental", 4, [pool], jobs))


def storage() -> Case:
    """Two readers of different datasets at home, of which the cache holds one and a half (2.9 with the node);
    two readers in the cloud, whose link carries one at a time (2 * 3, and 2 * 3.6 for what crosses)."""
    sites = [
        {"id": "home", "kind": "on_prem", "storage": {
            "tariff": [{"per_mb_s": 0.01}, {"fixed": 0.5, "per_mb_s": 0.005}],
            "bandwidth_cap": 150.0, "cache_capacity": 100.0, "cache_price": 0.005,
        }},
        {"id": "cloud", "kind": "cloud"},
    ]  # fmt: skip
    pools: list[Doc] = [
        {"gpus_per_node": 2, "nodes": 1},
        {"site": "cloud", "gpus_per_node": 2, "nodes": 1, "price": 3.0},
    ]
    jobs = [
        job("home0", 1, 1, "p0", 100.0, dataset="d0"),
        job("home1", 1, 1, "p0", 100.0, dataset="d1"),
        job("away0", 1, 1, "p1", 100.0, dataset="d0"),
        job("away1", 1, 1, "p1", 100.0, dataset="d0"),
    ]
    instance = instance_of(
        "storage", 2, pools, jobs,
        sites=sites,
        cache_levels=2,
        datasets=[{"id": f"d{k}", "size": 60.0, "home": "home"} for k in range(2)],
        network=[{"source": "home", "target": "cloud", "price": 0.01, "bandwidth": 100.0}],
    )  # fmt: skip
    return Case(instance)


def precedence() -> Case:
    """The second waits for the first, an hour late, on a node that both could have shared."""
    jobs = [
        job("first", 1),
        job("second", 1, due=HOUR, weight=2.0, after=["first"]),
    ]
    return Case(instance_of("precedence", 3, [{"gpus_per_node": 2, "nodes": 1}], jobs))


def nodes() -> Case:
    """Three jobs with five cores each: fifteen of the sixteen cores of two nodes, but one job a node."""
    jobs = [job(f"job{k}", 1, 1, cpu_cores=5) for k in range(3)]
    pool = {"gpus_per_node": 2, "nodes": 2, "cpu_cores": 8}
    return Case(instance_of("nodes", 2, [pool], jobs), frozenset({0}))


def gpus() -> Case:
    """Shares of three, three and two slices: the eight slices of a node, but five on one of its GPUs."""
    jobs = [
        job(f"job{k}", 1, share, memory=memory) for k, (share, memory) in enumerate(((0.75, 10), (0.75, 6), (0.5, 10)))
    ]
    pool = {"gpus_per_node": 2, "nodes": 1, "slices_per_gpu": 4, "gpu_memory": 16.0}
    return Case(instance_of("gpus", 2, [pool], jobs), frozenset({0}))


def blocks_of_nodes() -> Case:
    """Blocks of two hours. The long job needs a second one, which is dear (1 + 9); the tail of the other node's
    block is no help, and neither is a block that begins anew while the node is on."""
    pool = {"gpus_per_node": 1, "nodes": 2, "price": [1.0, 1.0, 1.0, 9.0], "billing_increment": 2 * HOUR}
    jobs = [job("long", 3, **between(0, 3)), job("short", 1, **between(1, 2))]
    return Case(instance_of("blocks_of_nodes", 4, [pool], jobs), frozenset({0}))


def boot_of_nodes() -> Case:
    """Node 0 is on at the start, with a job that stays; node 1 boots for an hour, so the other job starts at 1."""
    pool = {"gpus_per_node": 1, "nodes": 2, "boot_time": HOUR}
    running = {"mode": "1xp0", "pool": "p0", "places": [{"node": 0, "gpus": [0]}]}
    jobs = [job("stays", 2, running=running), job("new", 1, due=HOUR, weight=5.0)]
    return Case(instance_of("boot_of_nodes", 3, [pool], jobs), frozenset({0}))


def elastic() -> Case:
    """Four hours on a node at 1, or two on one at 3; due after two hours (0.25 an hour), to be done in three. Two hours
    on the one and one on the other do it for 5, a change (0.5) and an hour late: 5.75, where the dear one alone takes
    6."""
    entries = [
        {"id": name, "gpus": 1, "pool": name, "duration": hours * HOUR} for name, hours in (("p0", 4), ("p1", 2))
    ]
    times = {"due": 2 * HOUR, "weight": 0.25, "deadline": 3 * HOUR}
    jobs: list[Doc] = [{"id": "changes", "modes": entries, "restart_cost": 0.5, "elastic": {}} | times]
    pools = [{"gpus_per_node": 1, "nodes": 1}, {"gpus_per_node": 1, "nodes": 1, "price": 3.0}]
    return Case(instance_of("elastic", 3, pools, jobs))


def elastic_kept() -> Case:
    """Three hours of work; it runs in p0, which is dear in slot 1, as p1 is in the others. To leave for p1 and to come
    back would be two changes (0.5 each): what it has left is no longer kept. It may change once only, and stays."""
    entries = [{"id": pool, "gpus": 1, "pool": pool, "duration": 3 * HOUR} for pool in ("p0", "p1")]
    running = {"mode": "p0", "pool": "p0", "places": [{"node": 0, "gpus": [0]}], "movable": True}
    jobs: list[Doc] = [{"id": "runs", "modes": entries, "elastic": {"changes": 1}, "restart_cost": 0.5}]
    jobs[0]["running"] = running
    pools = [
        {"gpus_per_node": 1, "nodes": 1, "price": [1.0, 9.0, 1.0]},
        {"gpus_per_node": 1, "nodes": 1, "price": [9.0, 1.0, 9.0]},
    ]
    return Case(instance_of("elastic_kept", 3, pools, jobs))


def elastic_reader() -> Case:
    """An hour and a half, so two slots of three (2); a cache for three hours (0.9) is cheaper than bandwidth (3)."""
    storage = {"tariff": [{"per_mb_s": 0.01}], "cache_capacity": 100.0, "cache_price": 0.005}
    instance = instance_of(
        "elastic_reader", 3, [{"gpus_per_node": 1, "nodes": 1}],
        [job("reads", 1.5, 1, "p0", 100.0, dataset="d0", elastic={}, restart_cost=0.5)],
        sites=[{"id": "home", "kind": "on_prem", "storage": storage}],
        datasets=[{"id": "d0", "size": 60.0, "home": "home"}],
    )  # fmt: skip
    return Case(instance)


def elastic_on_nodes() -> Case:
    """Each of two nodes can be used for two of the four hours that the job takes: it moves, which is a change."""
    windows = [{"since": 0.0, "until": 2 * HOUR, "nodes": [1]}, {"since": 2 * HOUR, "until": 4 * HOUR, "nodes": [0]}]
    pool = {"gpus_per_node": 1, "nodes": 2, "unavailable": windows}
    return Case(
        instance_of("elastic_on_nodes", 4, [pool], [job("moves", 4, elastic={}, restart_cost=0.5)]), frozenset({0})
    )


CASES: dict[str, Case] = {
    "scheduling": scheduling(),
    "capacity": capacity(),
    "capacity_as_levels": capacity("levels"),
    "rental": rental(),
    "storage": storage(),
    "precedence": precedence(),
    "nodes": nodes(),
    "gpus": gpus(),
    "blocks_of_nodes": blocks_of_nodes(),
    "boot_of_nodes": boot_of_nodes(),
    "elastic": elastic(),
    "elastic_kept": elastic_kept(),
    "elastic_reader": elastic_reader(),
    "elastic_on_nodes": elastic_on_nodes(),
}

OPTIMA: dict[str, float] = {
    "scheduling": 2 + 2,
    "capacity": 2 + 3,
    "capacity_as_levels": 2 + 3,
    "rental": 2 * 6 + 10,
    "storage": 2.9 + 6 + 7.2,
    "precedence": 2 + 2,
    "nodes": 3,
    "gpus": 2,
    "blocks_of_nodes": 2 + 10 + 2,
    "boot_of_nodes": 2 + 2 + 5,
    "elastic": 5.75,
    "elastic_kept": 11,
    "elastic_reader": 2 + 0.9,
    "elastic_on_nodes": 4 + 0.5,
}
