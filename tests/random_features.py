"""The rarer features of instances, each a function that adds one to the document of a random instance."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from datetime import datetime
from typing import Any

from tests.random_instances import random_pool, random_storage

Doc = dict[str, Any]

TIERS: tuple[tuple[tuple[float | None, float], ...], ...] = (
    ((None, 0.01),),
    ((96.0, 0.02), (240.0, 0.01), (480.0, 0.0)),
    ((150.0, 0.01), (None, 0.0025)),
)
POWER_LAWS = (
    (0.125, 0.5, 480.0), (0.125, 0.5, 1000.0), (0.04, 0.75, 1000.0), (0.75, 0.25, 2000.0),
    (0.01, 1.0, 400.0), (1.5, 0.0, 400.0),
)  # fmt: skip
"""Factor, exponent, and the most that is sold."""
CACHE_SPEEDS = (72.0, 96.0, 144.0, 384.0)
"""Between the rates that there are, and one of them."""


def add_rare_features(doc: Doc, draw: random.Random) -> None:
    """Two to six of the features, in the order of the list (running jobs before what must respect them)."""
    chosen = set(draw.sample(range(len(FEATURES)), draw.randint(2, 6)))
    for index, feature in enumerate(FEATURES):
        if index in chosen:
            feature(doc, draw)


def add_rare_storage(doc: Doc, draw: random.Random) -> None:
    """Tariffs by tiers and power laws in the place of others, and caches that serve each reader slowly."""
    for site in doc["sites"]:
        storage = site.setdefault("storage", {})
        kind = draw.choice(("as it is", "tiers", "power", "power"))
        if kind != "as it is":
            storage.pop("tariff", None)
            storage.pop("points", None)
        if kind == "tiers":
            storage["tiers"] = [{"up_to": end, "per_mb_s": price} for end, price in draw.choice(TIERS)]
        if kind == "power":
            factor, exponent, up_to = draw.choice(POWER_LAWS)
            error = draw.choice((0.01, 0.05))
            storage["power"] = {"factor": factor, "exponent": exponent, "up_to": up_to, "error": error}
        if draw.random() < 0.6:
            storage["cache_speed"] = draw.choice(CACHE_SPEEDS)


def _slots(doc: Doc) -> int:
    return round(doc["horizon"] / doc["slot"])


def second_cloud(doc: Doc, draw: random.Random) -> None:
    """One more cloud site with a pool, linked from every other, at times at a higher price."""
    if len(doc["pools"]) >= 3:
        return
    site: Doc = {"id": "cloud2", "kind": "cloud", "energy_price": draw.choice((0.0, 0.5))}
    if doc["datasets"]:
        site["storage"] = random_storage(draw)
        price = draw.choice((0.0, 0.01, 0.05))
        doc["network"] += [{"source": s["id"], "target": "cloud2", "price": price} for s in doc["sites"]]
    doc["sites"].append(site)
    # Of a GPU type that there is, so that the modes that name the type can run here too.
    gpu = draw.choice(doc["pools"])["gpu"]
    doc["pools"].append(random_pool(doc, draw, site, "tiny", gpu, draw.randint(1, 2)))


def spot_pool(doc: Doc, draw: random.Random) -> None:
    """A cheap cloud pool that may be taken back, for those jobs that allow it."""
    if all(site["kind"] != "cloud" for site in doc["sites"]):
        second_cloud(doc, draw)
    clouds = {site["id"] for site in doc["sites"] if site["kind"] == "cloud"}
    pools = [pool for pool in doc["pools"] if pool["site"] in clouds]
    if not pools:
        return
    spot = pools[-1]
    if len(doc["pools"]) < 3:
        spot = dict(spot, id="spot", nodes=draw.randint(1, 2))
        doc["pools"].append(spot)
    spot |= {
        "gpu": draw.choice(doc["pools"])["gpu"],
        "price": draw.choice((0.0, 0.25, 0.5)),
        "market": "spot",
        "interruption_rate": draw.choice((0.0, 0.25, 0.5)),
    }
    for job in doc["jobs"]:
        job["spot"] = draw.random() < 0.7
        job["restart_cost"] = draw.choice((0.0, 0.5, 2.0))


def gangs(doc: Doc, draw: random.Random) -> None:
    """Modes that span whole nodes, also such that need not all GPUs of the last one."""
    pools = [pool for pool in doc["pools"] if pool["nodes"] >= 2]
    for job in doc["jobs"] if pools else ():
        if draw.random() < 0.6:
            pool = draw.choice(pools)
            gpus = draw.randint(pool["gpus_per_node"] + 1, pool["nodes"] * pool["gpus_per_node"])
            duration = doc["slot"] * draw.choice((0.5, 1, 1.5, 2))
            mode: Doc = {"id": "gang", "pool": pool["id"], "gpus": gpus, "duration": duration}
            if "dataset" in job:
                mode["read_rate"] = 192.0
            job["modes"].append(mode)


def model_job(doc: Doc, draw: random.Random) -> None:
    """A job whose modes come from the throughputs of its model."""
    rows = []
    for gpu in sorted({pool["gpu"] for pool in doc["pools"]}):
        most = max(pool["gpus_per_node"] for pool in doc["pools"] if pool["gpu"] == gpu)
        for gpus in range(1, most + 1):
            rows.append({"model": "net", "gpu": gpu, "gpus": gpus, "samples_per_s": 16.0 * (1 + gpus)})
    doc["throughputs"] = rows
    job = draw.choice(doc["jobs"])
    job["modes"] = []
    job["model"] = "net"
    job["samples"] = 16.0 * doc["slot"] * draw.choice((2.0, 3.0, 5.0, 6.0))
    if "dataset" in job and draw.random() < 0.7:
        job["sample_size"] = 0.003


def running_jobs(doc: Doc, draw: random.Random) -> None:
    """One or two jobs that run already, pinned or movable, on any GPUs, at times as a gang."""
    free = {(p, n): set(range(pool["gpus_per_node"])) for p, pool in enumerate(doc["pools"]) for n in _nodes(pool)}
    jobs = [job for job in doc["jobs"] if "model" not in job]
    for job in draw.sample(jobs, min(len(jobs), draw.randint(1, 2))):
        p, node = draw.choice([where for where, gpus in free.items() if gpus] or [(0, 0)])
        pool = doc["pools"][p]
        whole = [n for n in _nodes(pool) if len(free[p, n]) == pool["gpus_per_node"]]
        mode: Doc = {"id": "now", "pool": pool["id"], "duration": doc["slot"] * draw.choice((0.5, 1, 2, 3))}
        if not free[p, node]:
            continue
        if pool.get("slices_per_gpu", 1) > 1 and draw.random() < 0.5:
            mode["share"] = 0.5
            taken = {node: [draw.choice(sorted(free[p, node]))]}
        elif len(whole) > 1 and draw.random() < 0.3:
            mode["gpus"] = 2 * pool["gpus_per_node"] - (pool["gpus_per_node"] > 1)
            taken = {n: sorted(free[p, n]) for n in draw.sample(whole, 2)}
        else:
            mode["gpus"] = draw.randint(1, len(free[p, node]))
            taken = {node: sorted(draw.sample(sorted(free[p, node]), mode["gpus"]))}
        for n, gpus in taken.items():
            free[p, n] -= set(gpus)
        if "dataset" in job and draw.random() < 0.7:
            mode["read_rate"] = 48.0
        job["modes"].append(mode)
        job["running"] = {"mode": "now", "pool": pool["id"], "movable": draw.random() < 0.6}
        job["running"]["places"] = [{"node": n, "gpus": gpus} for n, gpus in taken.items()]
        job["restart_cost"] = draw.choice((0.0, 0.25, 1.0))
        job.pop("release", None)


def _nodes(pool: Doc) -> range:
    return range(pool["nodes"])


def boot_times(doc: Doc, draw: random.Random) -> None:
    """Nodes that take a while to be of use, and some that are on already."""
    for pool in doc["pools"]:
        pool["boot_time"] = doc["slot"] * draw.choice((0, 0.5, 1, 1.25))
        if draw.random() < 0.5:
            pool["nodes_on"] = draw.randint(0, pool["nodes"])


def billing_increments(doc: Doc, draw: random.Random) -> None:
    """Blocks of several slots, and increments below a slot that make no difference."""
    for pool in doc["pools"]:
        pool["billing_increment"] = doc["slot"] * draw.choice((0, 1 / 60, 1, 2, 3, 4))


def daily_windows(doc: Doc, draw: random.Random) -> None:
    """Time-of-use prices of nodes and energy by windows, not always on slot edges, some over midnight."""
    start = datetime.fromisoformat(doc["start"])
    first = start.hour * 60 + start.minute

    def windows(prices: tuple[float, ...]) -> Doc:
        rows = []
        for _ in range(draw.randint(1, 2)):
            since = first + round(doc["slot"] / 120) * draw.randint(-2, 2 * _slots(doc))
            until = since + round(doc["slot"] / 120) * draw.randint(1, 8)
            rows.append({"since": _clock(since), "until": _clock(until), "price": draw.choice(prices)})
        return {"default": draw.choice(prices), "windows": rows}

    for pool in doc["pools"]:
        if draw.random() < 0.7:
            pool["price"] = windows((0.0, 0.25, 1.0, 2.0))
    for site in doc["sites"]:
        if draw.random() < 0.5:
            site["energy_price"] = windows((0.0, 0.5, 1.0))


def _clock(minutes: int) -> str:
    minutes %= 1440
    # Seven and a half minutes do not fall on a clock's minute; such windows are moved to one.
    return f"{minutes // 60:02d}:{minutes % 60:02d}"


def price_lists(doc: Doc, draw: random.Random) -> None:
    """Time-of-use prices with one entry for each slot."""
    for pool in doc["pools"]:
        if draw.random() < 0.6:
            pool["price"] = [draw.choice((0.0, 0.25, 1.0, 2.0)) for _ in range(_slots(doc))]
    for site in doc["sites"]:
        if draw.random() < 0.4:
            site["energy_price"] = [draw.choice((0.0, 0.5, 1.0)) for _ in range(_slots(doc))]


def unavailable_windows(doc: Doc, draw: random.Random) -> None:
    """Windows for the whole pool, so many nodes, or listed nodes; not always on slot edges."""
    for pool in doc["pools"]:
        if draw.random() < 0.7:
            since = draw.randint(0, 2 * _slots(doc) - 2) / 2
            window: Doc = {
                "since": since * doc["slot"],
                "until": (since + draw.choice((0.5, 1, 2))) * doc["slot"],
            }
            kind = draw.choice(("pool", "count", "list"))
            if kind == "count":
                window["nodes"] = draw.randint(0, pool["nodes"])
            if kind == "list":
                window["nodes"] = sorted(draw.sample(range(pool["nodes"]), draw.randint(1, pool["nodes"])))
            pool["unavailable"] = [window]


def precedence(doc: Doc, draw: random.Random) -> None:
    """Jobs that wait for earlier ones of the table, which are short."""
    for k, job in enumerate(doc["jobs"]):
        if k > 0 and "running" not in job and draw.random() < 0.5:
            before = draw.choice(doc["jobs"][:k])
            job["after"] = [before["id"]]
            for mode in before["modes"]:
                mode["duration"] = min(mode["duration"], doc["slot"] * max(1, _slots(doc) // 4))


def rejections(doc: Doc, draw: random.Random) -> None:
    """Jobs that need not be run."""
    for job in doc["jobs"]:
        if draw.random() < 0.7:
            job["reject_cost"] = draw.choice((0.0, 1.0, 3.0, 8.0))


def hard_deadlines(doc: Doc, draw: random.Random) -> None:
    """Deadlines that leave room for one more run of the same length or so."""
    for job in doc["jobs"]:
        if job["modes"] and draw.random() < 0.5:
            fastest = math.ceil(min(mode["duration"] for mode in job["modes"]) / doc["slot"])
            room = draw.choice((1.0, 2.0, 2.5, 4.0))
            job["deadline"] = job.get("release", 0.0) + (2 * fastest + room) * doc["slot"]
            job["due"] = min(job["due"], job["deadline"])


def worths(doc: Doc, draw: random.Random) -> None:
    """Completions that are worth less over time, by steps or a utility, instead of or besides due dates."""
    for job in doc["jobs"]:
        if draw.random() < 0.8:
            if draw.random() < 0.6:
                job["utility"] = _utility(doc, draw)
            else:
                ends = sorted(draw.sample(range(1, 2 * _slots(doc) + 1), draw.randint(1, 3)))
                values = sorted((draw.choice((0.0, 1.0, 2.5, 6.0)) for _ in ends), reverse=True)
                job["value"] = [{"by": end * doc["slot"] / 2, "value": v} for end, v in zip(ends, values, strict=True)]
            if draw.random() < 0.5:
                job["weight"] = 0.0
                if draw.random() < 0.5:
                    job.pop("due")


def _utility(doc: Doc, draw: random.Random) -> Doc:
    """A utility of any shape; falls between slot edges too, and at times begins before the plan or goes on after it."""
    half = doc["slot"] / 2
    time = half * draw.randint(-2, 2 * _slots(doc) + 2)
    length = half * draw.choice((1, 2, 4, 8))
    shape: Doc = draw.choice(
        (
            {"shape": "linear", "full_until": time, "zero_at": time + length},
            {"shape": "step", "by": time},
            {"shape": "sigmoid", "midpoint": time, "scale": length},
            {"shape": "finish_time_fairness", "fair_time": length},
        )
    )
    return shape | {"worth": draw.choice((0.0, 1.0, 4.0, 8.0))}


def cores_and_ram(doc: Doc, draw: random.Random) -> None:
    """CPU cores and RAM that bind before the GPUs do."""
    for pool in doc["pools"]:
        if draw.random() < 0.7:
            pool["cpu_cores"] = 8
        if draw.random() < 0.5:
            pool["ram"] = 64.0
    for job in doc["jobs"]:
        job["cpu_cores"] = draw.choice((2, 4, 6))
        if draw.random() < 0.5:
            job["ram"] = draw.choice((16.0, 32.0, 48.0))
        for mode in job["modes"]:
            if draw.random() < 0.3:
                mode["cpu_cores"] = draw.choice((1, 5, 8))


def cache_levels(doc: Doc, draw: random.Random) -> None:
    """Datasets cached in parts, in caches that do not always hold a whole one."""
    doc["cache_levels"] = draw.randint(2, 4)
    for site in doc["sites"] if doc["datasets"] else ():
        site["storage"] = site.get("storage", {}) | {"cache_capacity": draw.choice((30.0, 48.0, 90.0))}


def zero_prices(doc: Doc, draw: random.Random) -> None:
    """Things that cost nothing, where ties and divisions by a cost of zero lurk."""
    for pool in doc["pools"]:
        if draw.random() < 0.6:
            pool["price"] = 0.0
    for job in doc["jobs"]:
        if draw.random() < 0.4:
            job["weight"] = 0.0


def missing_link(doc: Doc, draw: random.Random) -> None:
    """Sites that cannot read each other's data."""
    if doc["network"] and not any("running" in job for job in doc["jobs"]):
        doc["network"].pop(draw.randrange(len(doc["network"])))


def without_full_speed(doc: Doc, draw: random.Random) -> None:
    """Jobs that are always throttled, and reads that go on under a fraction of a slot."""
    for job in doc["jobs"]:
        if "running" not in job and draw.random() < 0.5:
            job["speed_levels"] = draw.choice(([0.5], [0.75, 0.5], [0.75]))


FEATURES: tuple[Callable[[Doc, random.Random], None], ...] = (
    second_cloud,
    spot_pool,
    gangs,
    model_job,
    running_jobs,
    boot_times,
    billing_increments,
    daily_windows,
    price_lists,
    unavailable_windows,
    precedence,
    rejections,
    hard_deadlines,
    worths,
    cores_and_ram,
    cache_levels,
    zero_prices,
    missing_link,
    without_full_speed,
)
