"""Plans with elastic jobs, which change while they run. Comments work out what they cost."""

from __future__ import annotations

from tests.models.hand import Case, make_instance, make_plan, on, run, run_of, segment


def elastic() -> Case:
    """One job goes on spot nodes after a pause, and then on all GPUs at home; another waits for it."""
    instance = make_instance(
        slot="1h",
        horizon="8h",
        sites=[
            {"id": "lab", "kind": "on_prem", "energy_price": [0.1, 0.1, 0.1, 0.1, 0.2, 0.2, 0.2, 0.2], "storage": {
                "tariff": [{"per_mb_s": 0.01}], "cache_capacity": 100, "cache_price": 0.001}},
            {"id": "sky", "kind": "cloud"},
        ],
        pools=[
            {"id": "p", "site": "lab", "gpu": "P100", "gpus_per_node": 4, "nodes": 1, "price": 1, "gpu_power": 0.5},
            {"id": "s", "site": "sky", "gpu": "S100", "gpus_per_node": 2, "nodes": 1, "price": 2, "market": "spot",
             "interruption_rate": 0.1},
        ],
        datasets=[{"id": "images", "size": 100, "home": "lab"}],
        network=[{"source": "lab", "target": "sky", "price": 0.01, "bandwidth": 20}],
        jobs=[
            {"id": "grows", "dataset": "images", "spot": True, "restart_cost": 2, "elastic": {"changes": 2},
             "due": "5h", "weight": 4, "deadline": "6h", "value": [{"by": "5h", "value": 10}, {"by": "8h", "value": 4}],
             "modes": [{"id": "one", "pool": "p", "gpus": 1, "duration": "8h", "read_rate": 10},
                       {"id": "away", "pool": "s", "gpus": 2, "duration": "4h", "read_rate": 20},
                       {"id": "four", "pool": "p", "gpus": 4, "duration": "4h", "read_rate": 40}]},
            {"id": "follows", "dataset": "images", "spot": True, "restart_cost": 1, "elastic": {}, "after": ["grows"],
             "modes": [{"pool": "s", "gpus": 1, "duration": "90m", "read_rate": 5}]},
        ],
    )  # fmt: skip
    # grows does 2/8 + 1/4 + 2/4 of its work; it completes at 6 h, an hour late at 4, and is worth 4 of 10.
    # Energy: 0.5 kW * 2 h * 0.1 and 2 kW * 2 h * 0.2. Bandwidth: 10 MB/s * 0.01 * 8 h; in its last hours all is cached,
    # for 100 GB * 0.001 * 8 h. Transfer at 0.01: 20 MB/s * 1 h = 72 GB; follows reads in both of its slots, 36 GB.
    # Interruption: 0.1 * (1 h * 2 + 2 h * 1). Two changes at 2.
    plan = make_plan(
        instance,
        {"node_hours": 4.0, "rental": 6.0, "energy": 0.1 + 0.8, "bandwidth": 0.8, "cache": 0.8, "transfer": 0.72 + 0.36,
         "tardiness": 4.0, "lost_value": 6.0, "restart": 4.0, "interruption": 0.4},
        num_slots=8,
        runs=(
            run_of(
                "grows",
                segment(instance, "one", "p", (0, 2), {0: [3]}),
                segment(instance, "away", "s", (3, 4), {0: [0, 1]}),
                segment(instance, "four", "p", (4, 6), {0: range(4)}, cached=1.0),
                tardiness_h=1.0,
            ),
            run(instance, "follows", "1xs", "s", (6, 8), {0: [1]}),
        ),
        nodes_on=(
            on(instance, "p", 0, (0, 2), 2.0),
            on(instance, "p", 0, (4, 6), 2.0),
            on(instance, "s", 0, (3, 4), 2.0),
            on(instance, "s", 0, (6, 8), 4.0),
        ),
        cached=({"site": "lab", "dataset": "images", "fraction": 1.0},),
        bandwidth=({"site": "lab", "mb_s": 10.0}, {"site": "sky", "mb_s": 20.0}),
    )  # fmt: skip
    return Case(instance, plan)


def elastic_running() -> Case:
    """Elastic jobs that run already: one stays for a while, one leaves and pauses, one may not be moved."""
    one, two = {"id": "one", "gpu": "P100", "gpus": 1}, {"id": "two", "gpu": "P100", "gpus": 2}
    instance = make_instance(
        slot="1h",
        horizon="6h",
        sites=[{"id": "lab", "kind": "on_prem"}],
        pools=[{"id": "p", "site": "lab", "gpu": "P100", "gpus_per_node": 2, "nodes": 3, "price": 1}],
        jobs=[
            {"id": "stays", "restart_cost": 3, "elastic": {"changes": 1},
             "modes": [one | {"duration": "6h"}, two | {"duration": "3h"}],
             "running": {"mode": "one", "pool": "p", "places": [{"node": 0, "gpus": [0]}], "movable": True}},
            {"id": "leaves", "restart_cost": 5, "elastic": {}, "modes": [one | {"duration": "2h"}],
             "running": {"mode": "one", "pool": "p", "places": [{"node": 0, "gpus": [1]}], "movable": True}},
            {"id": "held", "restart_cost": 7, "elastic": {"changes": 0}, "modes": [one | {"duration": "100m"}],
             "running": {"mode": "one", "pool": "p", "places": [{"node": 2, "gpus": [0]}]}},
        ],
    )  # fmt: skip
    # stays changes once; leaves changes as it is stopped, and once more after its pause: 3 + 2 * 5.
    plan = make_plan(
        instance,
        {"node_hours": 8.0, "restart": 13.0},
        num_slots=6,
        runs=(
            run_of(
                "stays",
                segment(instance, "one", "p", (0, 2), {0: [0]}, kept=True),
                segment(instance, "two", "p", (2, 4), {1: [0, 1]}),
            ),
            run_of(
                "leaves",
                segment(instance, "one", "p", (1, 2), {0: [1]}),
                segment(instance, "one", "p", (3, 4), {2: [0]}),
            ),
            run(instance, "held", "one", "p", (0, 2), {2: [0]}, kept=True),
        ),
        nodes_on=(
            on(instance, "p", 0, (0, 2), 2.0),
            on(instance, "p", 1, (2, 4), 2.0),
            on(instance, "p", 2, (0, 4), 4.0),
        ),
    )
    return Case(instance, plan)
