"""Tiny instances with a valid plan for each, written by hand; comments work out what they cost."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from models.domain import COST_TERMS, Instance, NodeOn, Plan, Run, Segment

START = "2026-01-12T18:00:00+01:00"


@dataclass(frozen=True)
class Case:
    """An instance and a plan that is feasible and claims nothing but the truth."""

    instance: Instance
    plan: Plan


def make_instance(**tables: Any) -> Instance:
    """An instance that starts on a Monday at 18:00."""
    return Instance.model_validate({"currency": "EUR", "start": START, **tables})


def at(instance: Instance, slot: int) -> str:
    """The edge of a slot in ISO 8601."""
    return (datetime.fromisoformat(START) + timedelta(seconds=instance.slot * slot)).isoformat()


def run(
    instance: Instance, job: str, mode: str, pool: str, slots: tuple[int, int],
    places: dict[int, Iterable[int]], *, slices: int = 1, speed: float = 1.0,
    cached: float = 0.0, kept: bool = False, tardiness_h: float = 0.0,
) -> Run:  # fmt: skip
    """A run of one segment; places are GPU indices by node."""
    first, end = slots
    segment = Segment(
        mode=mode, pool=pool, speed=speed, cached=cached, slices=slices, kept=kept,
        start_slot=first, end_slot=end, start=at(instance, first), end=at(instance, end),
        places=tuple({"node": node, "gpus": tuple(gpus)} for node, gpus in places.items()),
    )  # fmt: skip
    return Run(job=job, segments=(segment,), completion=at(instance, end), tardiness_h=tardiness_h)


def on(instance: Instance, pool: str, node: int, slots: tuple[int, int], cost: float) -> NodeOn:
    """A node-on interval."""
    first, end = slots
    return NodeOn(
        pool=pool, node=node, start_slot=first, end_slot=end,
        start=at(instance, first), end=at(instance, end), cost=cost,
    )  # fmt: skip


def make_plan(instance: Instance, costs: dict[str, float], num_slots: int, **fields: Any) -> Plan:
    """A plan with the costs that are given, others 0; without a bound unless one is given."""
    claims = {
        "instance": instance.name, "instance_hash": instance.content_hash, "currency": "EUR", "start": START,
        "slot_s": instance.slot, "num_slots": num_slots, "status": "feasible", "engine": "hand", "seed": 0,
        "versions": {"burstplan": "0.1.0"}, "cost": sum(costs.values()),
        "costs": dict.fromkeys(COST_TERMS, 0.0) | costs, "dual_bound": None, "gap": None, "runs": (),
    }  # fmt: skip
    return Plan.model_validate(claims | fields)


def shares() -> Case:
    """Shares of a GPU beside a whole one; a price that changes within a slot; memory, cores, RAM just fit."""
    instance = make_instance(
        slot="30m",
        horizon="8h",
        sites=[{
            "id": "lab", "kind": "on_prem",
            "energy_price": {"default": 0.2, "windows": [{"since": "22:00", "until": "06:00", "price": 0.1}]},
        }],
        pools=[{
            "id": "p", "site": "lab", "gpu": "A100", "gpus_per_node": 2, "nodes": 1, "nodes_on": 1,
            "price": {"default": 2, "windows": [{"since": "22:15", "until": "01:00", "price": 1}]},
            "gpu_memory": 40, "cpu_cores": 16, "ram": 128, "gpu_power": 0.5, "slices_per_gpu": 4,
            "boot_time": "1h",
        }],
        jobs=[
            {"id": "big", "memory": 30, "cpu_cores": 8, "ram": 64,
             "modes": [{"gpu": "A100", "gpus": 1, "duration": "3h"}]},
            {"id": "tiny1", "memory": 10, "cpu_cores": 4, "ram": 32,
             "modes": [{"gpu": "A100", "share": 0.25, "duration": "2h", "slowdown": 1.05}]},
            {"id": "tiny2", "memory": 20, "cpu_cores": 4, "ram": 16,
             "modes": [{"id": "third", "pool": "p", "share": 0.3, "duration": "1h"}]},
            {"id": "tiny3",
             "modes": [{"pool": "p", "share": 0.25, "duration": "1h",
                        "memory": 25, "cpu_cores": 8, "ram": 64}]},
        ],
    )  # fmt: skip
    # The node: 18:00-22:15 at 2, 22:15-24:00 at 1: 8.5 + 1.75.
    # Energy: big 0.5 kW * (1 h * 0.2 + 2 h * 0.1) = 0.2; tiny1 0.125 kW * 2.5 h * 0.2 = 0.0625;
    # tiny2 two slices of four, 0.25 kW * 1 h * 0.2 = 0.05; tiny3 0.125 kW * 1 h * 0.2 = 0.025.
    plan = make_plan(
        instance,
        {"node_hours": 10.25, "energy": 0.3375},
        num_slots=16,
        runs=(
            run(instance, "big", "1xA100", "p", (6, 12), {0: [1]}, slices=4),
            run(instance, "tiny1", "0.25xA100", "p", (0, 5), {0: [0]}),
            run(instance, "tiny2", "third", "p", (1, 3), {0: [0]}, slices=2),
            run(instance, "tiny3", "0.25xp", "p", (5, 7), {0: [0]}),
        ),
        nodes_on=(on(instance, "p", 0, (0, 12), 10.25),),
    )
    return Case(instance, plan)


def gang() -> Case:
    """Six GPUs on two rented nodes of four, with boot, billing blocks, tardiness and a bound."""
    instance = make_instance(
        slot="30m",
        horizon="6h",
        sites=[{"id": "sky", "kind": "cloud", "energy_price": 0.1}],
        pools=[{
            "id": "v", "site": "sky", "gpu": "V100", "gpus_per_node": 4, "nodes": 3, "price": 12,
            "gpu_power": 0.25, "billing_increment": "2h", "boot_time": "20m", "cpu_cores": 8,
        }],
        jobs=[
            {"id": "wide", "due": "2h", "weight": 6,
             "modes": [{"gpu": "V100", "gpus": 6, "duration": "2h10m"}]},
            {"id": "solo", "cpu_cores": 8, "modes": [{"pool": "v", "gpus": 2, "duration": "30m"}]},
        ],
    )  # fmt: skip
    # Each node is on for 6 or 7 slots, billed as two blocks of 4: 4 h * 12.
    # Energy: 6 * 0.25 kW * 2.5 h * 0.1 + 2 * 0.25 kW * 0.5 h * 0.1.
    plan = make_plan(
        instance,
        {"rental": 96.0, "energy": 0.375 + 0.025, "tardiness": 6.0},
        num_slots=12,
        dual_bound=92.16,
        gap=0.1,
        runs=(
            run(instance, "wide", "6xV100", "v", (1, 6), {0: range(4), 2: range(4)}, tardiness_h=1.0),
            run(instance, "solo", "2xv", "v", (6, 7), {0: [1, 3]}),
        ),
        nodes_on=(on(instance, "v", 0, (0, 7), 48.0), on(instance, "v", 2, (0, 6), 48.0)),
    )
    return Case(instance, plan)


def reading() -> Case:
    """Datasets cached by quarters, at home and away; tariffs by pieces and by points; a throttled reader."""
    instance = make_instance(
        slot="1h",
        horizon="10h",
        cache_levels=4,
        sites=[
            {"id": "lab", "kind": "on_prem", "storage": {
                "tariff": [{"fixed": 0, "per_mb_s": 0.01}, {"fixed": 2, "per_mb_s": 0.002}],
                "bandwidth_cap": 1000, "cache_capacity": 125, "cache_price": 0.001, "billed": "24h"}},
            {"id": "sky", "kind": "cloud", "storage": {
                "points": [{"mb_s": 100, "price": 0.5}, {"mb_s": 300, "price": 0.9}],
                "cache_capacity": 200, "cache_price": 0.002}},
            {"id": "far", "kind": "cloud", "storage": {"cache_capacity": 200}},
        ],
        pools=[
            {"id": "p", "site": "lab", "gpu": "P100", "gpus_per_node": 4, "nodes": 1, "price": 1},
            {"id": "q", "site": "sky", "gpu": "Q100", "gpus_per_node": 2, "nodes": 1, "price": 3},
        ],
        datasets=[{"id": "images", "size": 200, "home": "lab"}, {"id": "text", "size": 100, "home": "lab"}],
        network=[{"source": "lab", "target": "sky", "price": 0.02, "bandwidth": 90}],
        jobs=[
            {"id": "a", "dataset": "images",
             "modes": [{"gpu": "P100", "gpus": 1, "duration": "4h", "read_rate": 400}]},
            {"id": "b", "dataset": "images",
             "modes": [{"gpu": "P100", "gpus": 1, "duration": "2h", "read_rate": 100}]},
            {"id": "c", "dataset": "text", "speed_levels": [1, 0.5],
             "modes": [{"gpu": "Q100", "gpus": 1, "duration": "3h", "read_rate": 120}]},
            {"id": "d", "dataset": "images",
             "modes": [{"gpu": "Q100", "gpus": 1, "duration": "1h", "read_rate": 80}]},
        ],
    )  # fmt: skip
    # Bandwidth: lab 400 / 2 = 200 MB/s at min(2, 2.4) an hour for 24 h; sky 60 + 20 = 80 MB/s, before the
    # first point on the line through both: 0.3 + 0.002 * 80 = 0.46 an hour for 10 h.
    # Cache: 100 GB * 0.001 * 24 h; 150 GB * 0.002 * 10 h.
    # Transfer at 0.02: 150 GB cached; c reads 120 MB/s * 3 h = 1296 GB; d reads a quarter of 288 GB.
    plan = make_plan(
        instance,
        {"node_hours": 6.0, "rental": 18.0, "bandwidth": 48.0 + 4.6, "cache": 2.4 + 3.0,
         "transfer": 3.0 + 25.92 + 1.44},
        num_slots=10,
        runs=(
            run(instance, "a", "1xP100", "p", (0, 4), {0: [0]}, cached=0.5),
            run(instance, "b", "1xP100", "p", (4, 6), {0: [0]}),
            run(instance, "c", "1xQ100", "q", (0, 6), {0: [0]}, speed=0.5),
            run(instance, "d", "1xQ100", "q", (1, 2), {0: [1]}, cached=0.75),
        ),
        nodes_on=(on(instance, "p", 0, (0, 6), 6.0), on(instance, "q", 0, (0, 6), 18.0)),
        cached=(
            {"site": "lab", "dataset": "images", "fraction": 0.5},
            {"site": "sky", "dataset": "images", "fraction": 0.75},
        ),
        bandwidth=({"site": "lab", "mb_s": 200.0}, {"site": "sky", "mb_s": 80.0}),
    )  # fmt: skip
    return Case(instance, plan)


def serving() -> Case:
    """Caches that serve each reader slowly, one of which is no use to a reader; tariffs by tiers and by a power law."""
    instance = make_instance(
        slot="1h",
        horizon="10h",
        cache_levels=2,
        sites=[
            {"id": "lab", "kind": "on_prem", "storage": {
                "tiers": [{"up_to": 100, "per_mb_s": 0.01}, {"up_to": 400, "per_mb_s": 0.006}],
                "cache_capacity": 100, "cache_price": 0.001, "cache_speed": 200}},
            {"id": "sky", "kind": "cloud", "storage": {
                "power": {"factor": 0.1, "exponent": 0.5, "up_to": 900},
                "cache_capacity": 100, "cache_price": 0.002, "cache_speed": 300}},
        ],
        pools=[
            {"id": "p", "site": "lab", "gpu": "P100", "gpus_per_node": 4, "nodes": 1, "price": 1},
            {"id": "q", "site": "sky", "gpu": "Q100", "gpus_per_node": 2, "nodes": 1, "price": 3},
        ],
        datasets=[{"id": "images", "size": 100, "home": "lab"}],
        network=[{"source": "lab", "target": "sky", "price": 0.01, "bandwidth": 100}],
        jobs=[
            {"id": "slow", "dataset": "images",
             "modes": [{"gpu": "P100", "gpus": 1, "duration": "2h", "read_rate": 100}]},
            {"id": "fast", "dataset": "images",
             "modes": [{"gpu": "P100", "gpus": 1, "duration": "2h", "read_rate": 200}]},
            {"id": "far", "dataset": "images",
             "modes": [{"gpu": "Q100", "gpus": 1, "duration": "2h", "read_rate": 150}]},
        ],
    )  # fmt: skip
    # Half cached, slow takes 50 / (1 - 50/200) = 66 2/3 of the link; fast, which is no slower than the cache, takes all
    # of its 200: in two tiers 1 + 166 2/3 * 0.006 = 2 an hour for 10 h. far takes 75 / (1 - 75/300) = 100, which cost
    # 0.1 * 100^0.5 = 1 an hour. Cache: 50 GB * 0.001 * 10 h and 50 GB * 0.002 * 10 h. Transfer at 0.01: 50 GB cached,
    # half of 1080 GB read.
    plan = make_plan(
        instance,
        {"node_hours": 2.0, "rental": 6.0, "bandwidth": 20.0 + 10.0, "cache": 0.5 + 1.0, "transfer": 0.5 + 5.4},
        num_slots=10,
        runs=(
            run(instance, "slow", "1xP100", "p", (0, 2), {0: [0]}, cached=0.5),
            run(instance, "fast", "1xP100", "p", (0, 2), {0: [1]}),
            run(instance, "far", "1xQ100", "q", (0, 2), {0: [0]}, cached=0.5),
        ),
        nodes_on=(on(instance, "p", 0, (0, 2), 2.0), on(instance, "q", 0, (0, 2), 6.0)),
        cached=(
            {"site": "lab", "dataset": "images", "fraction": 0.5},
            {"site": "sky", "dataset": "images", "fraction": 0.5},
        ),
        bandwidth=({"site": "lab", "mb_s": 200.0 + 200.0 / 3.0}, {"site": "sky", "mb_s": 100.0}),
    )  # fmt: skip
    return Case(instance, plan)


def running() -> Case:
    """Running jobs that stay, move, and stay on spot nodes without the word spot; interruptions."""
    instance = make_instance(
        slot="1h",
        horizon="6h",
        sites=[{"id": "lab", "kind": "on_prem"}, {"id": "sky", "kind": "cloud"}],
        pools=[
            {"id": "p", "site": "lab", "gpu": "P100", "gpus_per_node": 2, "nodes": 2, "price": 1,
             "boot_time": "1h"},
            {"id": "s", "site": "sky", "gpu": "S100", "gpus_per_node": 1, "nodes": 2, "price": 0.5,
             "boot_time": "1h", "market": "spot", "interruption_rate": 0.05},
        ],
        jobs=[
            {"id": "stay", "modes": [{"gpu": "P100", "gpus": 2, "duration": "3h"}],
             "running": {"mode": "2xP100", "pool": "p", "places": [{"node": 1, "gpus": [0, 1]}]}},
            {"id": "move", "restart_cost": 5, "modes": [{"gpu": "P100", "gpus": 1, "duration": "2h"}],
             "running": {"mode": "1xP100", "pool": "p", "movable": True,
                         "places": [{"node": 0, "gpus": [0]}]}},
            {"id": "cheap", "restart_cost": 4, "spot": True,
             "modes": [{"id": "lone", "pool": "s", "gpus": 1, "duration": "2h"}]},
            {"id": "held", "restart_cost": 10, "modes": [{"pool": "s", "gpus": 1, "duration": "1h30m"}],
             "running": {"mode": "1xs", "pool": "s", "places": [{"node": 1, "gpus": [0]}]}},
        ],
    )  # fmt: skip
    # Owned: 3 h + 3 h; spot: 3 h * 0.5 + 2 h * 0.5; interruptions: 0.05 * 2 h * (4 + 10).
    plan = make_plan(
        instance,
        {"node_hours": 6.0, "rental": 2.5, "restart": 5.0, "interruption": 1.4},
        num_slots=6,
        runs=(
            run(instance, "stay", "2xP100", "p", (0, 3), {1: [0, 1]}, kept=True),
            run(instance, "move", "1xP100", "p", (1, 3), {0: [1]}),
            run(instance, "cheap", "lone", "s", (1, 3), {0: [0]}),
            run(instance, "held", "1xs", "s", (0, 2), {1: [0]}, kept=True),
        ),
        nodes_on=(
            on(instance, "p", 0, (0, 3), 3.0),
            on(instance, "p", 1, (0, 3), 3.0),
            on(instance, "s", 0, (0, 3), 1.5),
            on(instance, "s", 1, (0, 2), 1.0),
        ),
    )
    return Case(instance, plan)


def order() -> Case:
    """Release, deadline, precedence, value, rejection, an unavailable node; horizon auto; proven optimal."""
    instance = make_instance(
        slot="1h",
        sites=[{"id": "lab", "kind": "on_prem"}],
        pools=[{
            "id": "p", "site": "lab", "gpu": "P100", "gpus_per_node": 1, "nodes": 2, "price": 1,
            "unavailable": [{"since": "3h30m", "until": "4h", "nodes": 1}],
        }],
        jobs=[
            {"id": "first", "release": "1h", "deadline": "4h",
             "modes": [{"gpu": "P100", "gpus": 1, "duration": "2h"}]},
            {"id": "second", "after": ["first"], "due": "4h", "weight": 3,
             "value": [{"by": "4h", "value": 10}, {"by": "6h", "value": 7}],
             "modes": [{"gpu": "P100", "gpus": 1, "duration": "2h"}]},
            {"id": "third", "reject_cost": 8, "modes": [{"gpu": "P100", "gpus": 1, "duration": "20h"}]},
            {"id": "fourth", "value": [{"by": "5h", "value": 4}],
             "modes": [{"gpu": "P100", "gpus": 1, "duration": "1h30m"}]},
        ],
    )  # fmt: skip
    # second completes at 5 h: 1 h late at 3, worth 7 of 10; fourth completes at 6 h: worth nothing of 4.
    plan = make_plan(
        instance,
        {"node_hours": 6.0, "tardiness": 3.0, "lost_value": 3.0 + 4.0, "rejection": 8.0},
        num_slots=9,
        status="optimal",
        dual_bound=24.0,
        gap=0.0,
        runs=(
            run(instance, "first", "1xP100", "p", (1, 3), {0: [0]}),
            run(instance, "second", "1xP100", "p", (3, 5), {0: [0]}, tardiness_h=1.0),
            run(instance, "fourth", "1xP100", "p", (4, 6), {1: [0]}),
        ),
        rejected=("third",),
        nodes_on=(on(instance, "p", 0, (1, 5), 4.0), on(instance, "p", 1, (4, 6), 2.0)),
    )
    return Case(instance, plan)


def worths() -> Case:
    """A utility of each shape, and one of a job that is rejected, which loses none of it."""
    mode: dict[str, Any] = {"gpu": "P100", "gpus": 1, "duration": "1h"}
    instance = make_instance(
        slot="1h",
        horizon="6h",
        sites=[{"id": "lab", "kind": "on_prem"}],
        pools=[{"id": "p", "site": "lab", "gpu": "P100", "gpus_per_node": 1, "nodes": 2, "price": 1}],
        jobs=[
            {"id": "falls", "modes": [mode],
             "utility": {"shape": "linear", "worth": 8, "full_until": "2h", "zero_at": "6h"}},
            {"id": "drops", "modes": [mode], "utility": {"shape": "step", "worth": 7, "by": "3h"}},
            {"id": "bends", "modes": [mode],
             "utility": {"shape": "sigmoid", "worth": 6, "midpoint": "4h", "scale": "1h"}},
            {"id": "shares", "release": "1h", "modes": [mode],
             "utility": {"shape": "finish_time_fairness", "worth": 9, "fair_time": "3h"}},
            {"id": "waives", "reject_cost": 3, "modes": [mode],
             "utility": {"shape": "step", "worth": 100, "by": "3h"}},
        ],
    )  # fmt: skip
    # Complete at 3 h, a quarter lost; at 4 h, all; at 4 h, half; at 5 h, after 4 h instead of 3, a quarter.
    plan = make_plan(
        instance,
        {"node_hours": 4.0, "lost_value": 2.0 + 7.0 + 3.0 + 2.25, "rejection": 3.0},
        num_slots=6,
        runs=(
            run(instance, "falls", "1xP100", "p", (2, 3), {0: [0]}),
            run(instance, "drops", "1xP100", "p", (3, 4), {0: [0]}),
            run(instance, "bends", "1xP100", "p", (3, 4), {1: [0]}),
            run(instance, "shares", "1xP100", "p", (4, 5), {0: [0]}),
        ),
        rejected=("waives",),
        nodes_on=(on(instance, "p", 0, (2, 5), 3.0), on(instance, "p", 1, (3, 4), 1.0)),
    )
    return Case(instance, plan)


def listed() -> Case:
    """Modes from throughputs; a price list that goes on beyond the horizon; free bandwidth."""
    instance = make_instance(
        slot="1h",
        horizon="4h",
        sites=[{"id": "sky", "kind": "cloud"}],
        pools=[{
            "id": "t", "site": "sky", "gpu": "T4", "gpus_per_node": 1, "nodes": 2, "price": [1, 2, 3, 4],
            "billing_increment": "3h", "slices_per_gpu": 2,
        }],
        datasets=[{"id": "images", "size": 100, "home": "sky"}],
        throughputs=[
            {"model": "resnet", "gpu": "T4", "share": 0.5, "samples_per_s": 1},
            {"model": "resnet", "gpu": "T4", "gpus": 1, "samples_per_s": 2},
        ],
        jobs=[{"id": "job", "model": "resnet", "samples": 7200, "sample_size": 0.05, "dataset": "images"}],
    )  # fmt: skip
    # 7200 samples at 1 a second of 50 MB: two hours at 50 MB/s. Billed slots 2, 3 and 4: 3 + 4 + 4.
    plan = make_plan(
        instance,
        {"rental": 11.0},
        num_slots=4,
        runs=(run(instance, "job", "0.5xT4", "t", (2, 4), {1: [0]}),),
        nodes_on=(on(instance, "t", 1, (2, 4), 11.0),),
        bandwidth=({"site": "sky", "mb_s": 50.0},),
    )
    return Case(instance, plan)


def choices() -> Case:
    """One GPU type in four pools, of which only the first suits the job."""
    pool: dict[str, Any] = {"gpu": "A", "gpus_per_node": 1, "nodes": 1, "price": 1, "gpu_memory": 80}
    instance = make_instance(
        slot="1h",
        horizon="2h",
        sites=[
            {"id": "lab", "kind": "on_prem"},
            {"id": "sky", "kind": "cloud"},
            {"id": "far", "kind": "cloud"},
        ],
        pools=[
            {**pool, "id": "suits", "site": "lab"},
            {**pool, "id": "small", "site": "lab", "gpu_memory": 16},
            {**pool, "id": "spot", "site": "sky", "market": "spot"},
            {**pool, "id": "unlinked", "site": "far"},
            {**pool, "id": "other", "site": "lab", "gpu": "B"},
        ],
        datasets=[{"id": "data", "size": 10, "home": "lab"}],
        network=[{"source": "lab", "target": "sky"}],
        jobs=[
            {
                "id": "job",
                "memory": 40,
                "dataset": "data",
                "modes": [{"gpu": "A", "gpus": 1, "duration": "1h", "read_rate": 10}],
            }
        ],
    )
    plan = make_plan(
        instance,
        {"node_hours": 1.0},
        num_slots=2,
        runs=(run(instance, "job", "1xA", "suits", (0, 1), {0: [0]}),),
        nodes_on=(on(instance, "suits", 0, (0, 1), 1.0),),
        bandwidth=({"site": site, "mb_s": 10.0} for site in ("lab", "sky", "far")),
    )
    return Case(instance, plan)


def empty() -> Case:
    """No jobs: the plan does nothing and costs nothing."""
    instance = make_instance(
        slot="1h",
        sites=[{"id": "lab", "kind": "on_prem"}],
        pools=[{"id": "p", "site": "lab", "gpu": "P100", "gpus_per_node": 1, "nodes": 1, "price": 1}],
    )
    return Case(instance, make_plan(instance, {}, num_slots=0, status="optimal", dual_bound=0.0, gap=0.0))


CASES = {
    case.__name__: case() for case in (shares, gang, reading, serving, running, order, worths, listed, choices, empty)
}
