"""Tiny random instances whose optimum is found in a moment, for all that is compared with the optimum.

Families: "compute" (GPUs only), "mixed" (shares, datasets, cache, bandwidth, burst pools), "contended" (few
nodes, many jobs, tight due dates), "odd" (one of those with rarer features added, see random_features.py) and
"storage" ("mixed" with rarer tariffs and slow caches, half of them with the other features too).
All numbers are nice ones, such that costs scale to whole numbers. The same state of the generator gives the
same instance.
"""

from __future__ import annotations

import random
from typing import Any, Literal

import numpy as np

from models.domain.instance import Instance
from models.errors import InvalidInput

FAMILIES = ("compute", "mixed", "contended", "odd", "storage")
Size = Literal["tiny", "small"]
Doc = dict[str, Any]

STARTS = ("2026-01-12T18:00:00+01:00", "2026-01-12T22:30:00+00:00", "2026-06-30T05:15:00-04:00")
SLOTS = (900.0, 1800.0, 3600.0)
RATES = (48.0, 96.0, 96.0, 192.0, 288.0)
"""Multiples of 48: throttled to quarters and cached in thirds they stay whole."""
SPEED_LEVELS = ((1.0,), (1.0,), (1.0, 0.5), (1.0, 0.75, 0.5))
TARIFFS: tuple[tuple[tuple[float, float], ...], ...] = (
    ((0.0, 0.01),),
    ((0.0, 0.02), (1.0, 0.005)),
    ((0.25, 0.01), (0.5, 0.005), (1.5, 0.0)),
    ((0.5, 0.0),),
)
PRICE_LISTS = (((100.0, 1.0), (200.0, 1.5), (400.0, 2.0)), ((400.0, 2.0),), ((150.0, 0.75), (350.0, 0.75)))


def random_instance(family: str, rng: np.random.Generator | random.Random, size: Size = "small") -> Instance:
    """A random instance of a family; "tiny" is small enough for enumeration in plain Python."""
    from tests.random_features import add_rare_features, add_rare_storage

    if family not in FAMILIES:
        raise ValueError(f"{family} is none of {', '.join(FAMILIES)}")
    # One generator inside, seeded from the one that is passed, so that both kinds give all families.
    seed = rng.getrandbits(62) if isinstance(rng, random.Random) else int(rng.integers(2**62))
    draw = random.Random(seed)
    # Features are drawn without regard to each other; now and then a combination breaks a rule of instances.
    for _ in range(100):
        base = draw.choice(("compute", "mixed", "mixed", "contended")) if family == "odd" else family
        doc = _document("mixed" if family == "storage" else base, draw, size)
        if family == "odd" or (family == "storage" and draw.random() < 0.5):
            add_rare_features(doc, draw)
        if family == "storage":
            add_rare_storage(doc, draw)
        doc["name"] = f"{family} {seed}"
        try:
            return Instance.model_validate(doc)
        except InvalidInput:
            continue
    raise AssertionError(f"100 documents of family {family} broke the rules, seed {seed}")


def _document(family: str, draw: random.Random, size: Size) -> Doc:
    slot = draw.choice(SLOTS)
    slots = 6 if size == "tiny" else draw.randint(8 if family == "contended" else 6, 12)
    doc: Doc = {
        "currency": "USD",
        "start": draw.choice(STARTS),
        "slot": slot,
        "horizon": slots * slot,
        "sites": [],
        "pools": [],
        "datasets": [],
        "network": [],
        "jobs": [],
    }
    has_cloud = family == "mixed" or draw.random() < (0.3 if family == "contended" else 0.6)
    _add_sites(doc, draw, family, has_cloud)
    _add_pools(doc, draw, family, size, has_cloud)
    if family == "mixed":
        _add_datasets(doc, draw)
    _add_jobs(doc, draw, family, size)
    return doc


def _add_sites(doc: Doc, draw: random.Random, family: str, has_cloud: bool) -> None:
    doc["sites"].append({"id": "home", "kind": "on_prem", "energy_price": draw.choice((0.0, 0.25, 0.5))})
    if has_cloud:
        doc["sites"].append({"id": "cloud", "kind": "cloud"})
    if family == "mixed":
        for site in doc["sites"]:
            site["storage"] = random_storage(draw)


def random_storage(draw: random.Random) -> Doc:
    """A storage service: free, with a tariff or a price list; with or without cache and cap."""
    storage: Doc = {"cache_capacity": draw.choice((0.0, 48.0, 60.0, 120.0, 240.0))}
    storage["cache_price"] = draw.choice((0.0, 0.0025, 0.005, 0.01))
    kind = draw.choice(("free", "tariff", "tariff", "tariff", "points"))
    if kind == "tariff":
        storage["tariff"] = [{"fixed": a, "per_mb_s": b} for a, b in draw.choice(TARIFFS)]
    if kind == "points":
        storage["points"] = [{"mb_s": b, "price": p} for b, p in draw.choice(PRICE_LISTS)]
    if draw.random() < 0.3:
        storage["bandwidth_cap"] = draw.choice((240.0, 288.0, 480.0))
    if draw.random() < 0.3:
        storage["billed"] = doc_hours(draw.choice((2, 6, 12)))
    return storage


def doc_hours(hours: float) -> float:
    """Hours as an instance has them, in seconds."""
    return hours * 3600.0


def random_pool(doc: Doc, draw: random.Random, site: Doc, size: Size, gpu: str, nodes: int) -> Doc:
    """A pool at a site and its GPU type."""
    is_cloud = site["kind"] == "cloud"
    pool: Doc = {
        "id": f"{'burst' if is_cloud else 'owned'}{len(doc['pools'])}",
        "site": site["id"],
        "gpu": gpu,
        "gpus_per_node": draw.randint(1, 2) if size == "tiny" else draw.choice((1, 2, 2, 4)),
        "nodes": nodes,
        "price": draw.choice((1.5, 2.0, 3.0, 4.0)) if is_cloud else draw.choice((0.25, 0.5, 1.0)),
    }
    if draw.random() < 0.5:
        pool["gpu_power"] = draw.choice((0.25, 0.5))
    return pool


def _add_pools(doc: Doc, draw: random.Random, family: str, size: Size, has_cloud: bool) -> None:
    most = 2 if size == "tiny" else 3
    gpus = [draw.choice("AB") for _ in range(most)]
    num_owned = 1 if size == "tiny" or family == "contended" else draw.randint(1, 2)
    most_nodes = 2 if size == "tiny" or family == "contended" else 3
    for k in range(num_owned + has_cloud):
        site = doc["sites"][int(k >= num_owned)]
        pool = random_pool(doc, draw, site, size, gpus[k], draw.randint(1, most_nodes))
        if family == "mixed" and draw.random() < 0.6:
            pool["slices_per_gpu"] = draw.choice((2, 4))
            pool["gpus_per_node"] = min(2, pool["gpus_per_node"])
        if family == "mixed" and draw.random() < 0.6:
            pool["gpu_memory"] = draw.choice((16.0, 32.0))
        doc["pools"].append(pool)


def _add_datasets(doc: Doc, draw: random.Random) -> None:
    sites = [site["id"] for site in doc["sites"]]
    for k in range(draw.randint(1, 2)):
        home = sites[0] if draw.random() < 0.8 else draw.choice(sites)
        doc["datasets"].append({"id": f"data{k}", "size": draw.choice((12.0, 48.0, 60.0, 120.0)), "home": home})
    for source in sites:
        for target in sites:
            if source != target:
                link = {"source": source, "target": target, "price": draw.choice((0.0, 0.01, 0.02))}
                if draw.random() < 0.4:
                    link["bandwidth"] = draw.choice((96.0, 240.0, 384.0))
                doc["network"].append(link)


def _add_jobs(doc: Doc, draw: random.Random, family: str, size: Size) -> None:
    slots = round(doc["horizon"] / doc["slot"])
    num_jobs = draw.randint(1, 3 if size == "tiny" else 5)
    if family == "contended":
        num_jobs = draw.randint(2, 3) if size == "tiny" else draw.randint(3, 5)
    capacity = slots * sum(pool["nodes"] * pool["gpus_per_node"] for pool in doc["pools"])
    # Most instances should be feasible: the least work of all jobs must leave some room on the GPUs.
    room = (0.7 if family == "contended" else 0.5) * capacity
    for k in range(num_jobs):
        job = random_job(doc, draw, family, size, f"job{k}")
        least = min(mode.get("gpus", 1) * max(1.0, mode["duration"] / doc["slot"]) for mode in job["modes"])
        if k > 0 and least > room:
            continue
        room -= least
        doc["jobs"].append(job)


def random_job(doc: Doc, draw: random.Random, family: str, size: Size, name: str) -> Doc:
    """A job with one to three modes, a due date and, where there are datasets, a dataset."""
    slot, slots = doc["slot"], round(doc["horizon"] / doc["slot"])
    job: Doc = {"id": name, "modes": [], "weight": draw.choice((1.0, 2.0, 4.0, 8.0))}
    if draw.random() < 0.3:
        job["release"] = slot * draw.choice((0.5, 1.0, 2.0))
    if doc["datasets"] and draw.random() < 0.8:
        job["dataset"] = draw.choice(doc["datasets"])["id"]
        job["speed_levels"] = list(draw.choice(SPEED_LEVELS))
    work = slots * draw.choice((0.25, 0.4, 0.6))
    for _ in range(draw.randint(1, 2 if size == "tiny" else 3)):
        _add_mode(doc, draw, job, work)
    fastest = min(mode["duration"] for mode in job["modes"])
    slack = draw.choice((0.0, 0.5, 1.0)) if family == "contended" else draw.choice((0.5, 1.0, 2.0))
    job["due"] = job.get("release", 0.0) + round(fastest * (1.0 + slack) / (slot / 2)) * (slot / 2)
    if draw.random() < 0.1:
        job["reject_cost"] = draw.choice((2.0, 5.0, 10.0))
    return job


def _add_mode(doc: Doc, draw: random.Random, job: Doc, work: float) -> None:
    """A mode on a pool or a GPU type, for whole GPUs or a share; none where the job has the like already."""
    slot, slots = doc["slot"], round(doc["horizon"] / doc["slot"])
    pool = draw.choice(doc["pools"])
    mode: Doc = {"gpu": pool["gpu"]} if draw.random() < 0.5 else {"pool": pool["id"]}
    speed = draw.choice((1.0, 1.5, 2.0)) if pool["gpu"] == "B" else 1.0
    if pool.get("slices_per_gpu", 1) > 1 and draw.random() < 0.6:
        mode["share"] = draw.choice((0.25, 0.5, 0.5, 0.75))
        mode["slowdown"] = draw.choice((1.0, 1.25))
        speed *= 0.75
        size = mode["share"]
        if "gpu_memory" in pool:
            mode["memory"] = pool["gpu_memory"] * draw.choice((0.25, 0.5, 0.75))
    else:
        mode["gpus"] = draw.randint(1, pool["gpus_per_node"])
        # More GPUs are mostly, not always, faster, and never as much as there are more of them.
        speed *= 1.0 + (mode["gpus"] - 1) * draw.choice((-0.1, 0.5, 0.75))
        size = mode["gpus"]
    if any(
        (m.get("gpus", m.get("share")), m.get("pool"), m.get("gpu")) == (size, mode.get("pool"), mode.get("gpu"))
        for m in job["modes"]
    ):
        return
    # In quarters of a slot, so that some durations need rounding up; at most two thirds of the plan.
    quarters = min(max(1, round(4 * work / speed)), 8 * slots // 3)
    mode["duration"] = slot * quarters / 4
    if "dataset" in job and draw.random() < 0.85:
        mode["read_rate"] = draw.choice(RATES)
    job["modes"].append(mode)
