"""Tiny instances with a valid plan for each, written by hand; comments work out what they cost."""

from __future__ import annotations

from typing import Any

from tests.models.hand import Case, make_instance, make_plan, on, run
from tests.models.plans_elastic import elastic, elastic_running
from tests.models.plans_reading import listed, reading, serving


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
    case.__name__: case()
    for case in (
        *(shares, gang, reading, serving, running, order, worths, listed, choices, empty),
        *(elastic, elastic_running),
    )
}
