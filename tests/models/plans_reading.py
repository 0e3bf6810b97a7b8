"""Plans whose jobs read: caches, tariffs, links, modes from throughputs. Comments work out what they cost."""

from __future__ import annotations

from tests.models.hand import Case, make_instance, make_plan, on, run


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
