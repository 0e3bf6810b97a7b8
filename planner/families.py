"""The families of generated instances: what sets each apart, and the jobs that it draws.

A draft is a job before its times are set: how many GPUs of which types it can use, and how long that takes relative
to its fastest mode. `generate` turns drafts into instances.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from planner.hardware import ENERGY_DAY, ENERGY_NIGHT, GPU_COUNTS, LARGE_BATCH, MODEL_CLASSES, ModelClass

FamilyName = Literal["mixed", "compute", "contended", "busy", "headline", "scale"]

SLOT_S = 1800.0
WINDOW_S = 96 * SLOT_S
"""From the first release to the last due date."""
MOST_GPUS = 64

Access = tuple[tuple[dict[str, int], float], ...]
"""Sets of GPU types that a job can use, each from so many times its fewest GPUs on, with their odds."""


# Fewest GPUs that a job runs on. Most jobs are small, few very large, as in published traces. Where few jobs
# make a high load they are larger: the odds are tilted to the mean size at which `mean_h` hours make the load,
# within limits. Lengths do the rest.
_FEWEST_GPUS = (1, 2, 4, 8, 16, 32)
_FEWEST_ODDS = (0.50, 0.20, 0.14, 0.10, 0.04, 0.02)
_WIDE_ODDS = (0.03, 0.03, 0.05, 0.10, 0.19, 0.60)
_LEAST_TILT = 0.8


@dataclass(frozen=True)
class Family:
    """What sets one family apart."""

    has_storage: bool
    """Where nothing else is asked for."""
    load: float
    """Load where none is asked for."""
    reach: float
    """Part of the load that the jobs could make at most which the load above may be."""
    slack_power: int
    """Due dates lie at 1.5 + 3.5 u^power times the fastest time, u uniform: the higher, the tighter."""
    size_sigma: float
    """Spread of the lognormal job lengths."""
    cloud_price_factor: float
    quota: float
    """Cloud nodes of each type over owned nodes."""
    largest_tilt: float = 1.6
    """How far the odds of the fewest GPUs may be tilted towards wide jobs."""
    mean_h: float = 10.0
    """Mean hours of a job at which the load is to be made; the odds are tilted to the GPUs that this takes."""
    weight_power: float = 0.5
    """Being late costs this power of the fewest GPUs: a large job more, though not in proportion. The higher, the
    sooner nodes are rented for wide jobs rather than that they wait."""
    access: Access = ()
    """Empty: every job can use every type, as in the families that came first."""
    fewest_odds: tuple[float, ...] = _FEWEST_ODDS


# With every type open to every job the cheapest one, T4, makes the whole load, and what is 1.1 of the owned
# GPU-hours there is 0.7 of what the faster ones can do. Sets of types that a job needs (for the memory, the tensor
# cores or the links between GPUs of newer ones) spread the load over the pools: these odds give each pool about
# its share of the GPUs.
_MATCHED: Access = (
    ({"P100": 1, "T4": 1, "V100": 1, "A100": 1}, 0.3),
    ({"P100": 1, "V100": 1, "A100": 1}, 0.25),
    ({"V100": 1, "A100": 1}, 0.25),
    # Models too large for 16 GB: sharded over more of them.
    ({"A100": 1, "V100": 4}, 0.2),
)
_WIDE: Access = (
    ({"P100": 1, "T4": 1, "V100": 1, "A100": 1}, 0.4),
    ({"P100": 1, "V100": 1, "A100": 1}, 0.3),
    ({"V100": 1, "A100": 1}, 0.15),
    ({"A100": 1, "V100": 4}, 0.15),
)

# In the order of the fields above.
FAMILIES: dict[str, Family] = {
    "mixed": Family(True, 0.4, 0.5, 1, 1.2, 1.0, 0.15),
    "compute": Family(False, 0.4, 0.5, 1, 1.2, 1.0, 0.15),
    "contended": Family(False, 0.9, 0.8, 2, 1.6, 2.0, 0.10),
    "busy": Family(True, 0.8, 0.8, 1, 1.2, 1.0, 0.15, 1.0, 24.0, 0.65, _MATCHED),
    "headline": Family(True, 0.8, 0.8, 4, 0.8, 1.0, 0.15, 1.0, 24.0, 0.9, _WIDE, _WIDE_ODDS),
    "scale": Family(True, 0.8, 0.8, 1, 1.2, 1.0, 0.15, 2.0, 24.0, 0.65, _MATCHED),
}

# Jobs that start from so many GPUs train at a large global batch, which scales further.
_LARGE_FROM = 8


@dataclass
class Draft:
    """A job before its record: its modes at a fastest time of 1, and the times once they are set."""

    kind: ModelClass
    memory: float
    weight: float
    slack: float
    modes: list[tuple[str, int, float]]
    """(GPU type, GPUs, duration)"""
    shares: tuple[tuple[float, float], ...]
    """(share, slowdown) on every GPU type"""
    dataset: str | None = None
    fastest_s: float = 0.0
    release: float = 0.0
    due: float = 0.0


def owned_gpus(pools: list[dict[str, Any]]) -> int:
    """GPUs of the owned pools."""
    return sum(pool["gpus_per_node"] * pool["nodes"] for pool in pools if pool["site"] == "on-prem")


def size_odds(traits: Family, pools: list[dict[str, Any]], jobs: int, load: float) -> np.ndarray:
    """Odds of the fewest GPUs of a job, tilted towards the size that the load asks for."""
    sizes, steps = np.array(_FEWEST_GPUS, dtype=float), np.arange(len(_FEWEST_GPUS))
    wanted = load * owned_gpus(pools) * WINDOW_S / 3600 / (max(1, jobs) * traits.mean_h)
    low, high = _LEAST_TILT, traits.largest_tilt
    for _ in range(40):
        tilt = (low + high) / 2
        odds = np.array(traits.fewest_odds) * tilt**steps
        low, high = (tilt, high) if sizes @ odds / odds.sum() < wanted else (low, tilt)
    return np.asarray(odds / odds.sum())


def draft_job(rng: np.random.Generator, traits: Family, pools: list[dict[str, Any]], odds: np.ndarray) -> Draft:
    """A job of the family."""
    kind = MODEL_CLASSES[int(rng.integers(len(MODEL_CLASSES)))]
    capacity: dict[str, int] = {}
    for pool in pools:
        capacity[pool["gpu"]] = max(capacity.get(pool["gpu"], 0), pool["gpus_per_node"] * pool["nodes"])
    largest_owned = max(p["gpus_per_node"] * p["nodes"] for p in pools if p["site"] == "on-prem")
    fewest = int(rng.choice(_FEWEST_GPUS, p=odds))
    doublings = int(rng.integers(0, 4))
    is_small, u_weight, u_slack = rng.random() < 0.5, rng.random(), rng.random()
    memory = float(np.round(rng.uniform(1.0, 14.0), 1))
    if kind.scaling is None:
        fewest, doublings = 1, 0
    while fewest > largest_owned:
        fewest //= 2
    counts = [g for g in GPU_COUNTS if fewest <= g <= min(MOST_GPUS, fewest << doublings)]
    modes = [(gpu, g, 1.0 / kind.speed_on(gpu, g)) for gpu in capacity for g in counts if g <= capacity[gpu]]
    shortest = min(duration for _, _, duration in modes)
    shares: list[tuple[float, float]] = []
    if fewest == 1 and is_small:
        # Slow-downs as measured: up to 11 % on a quarter and 5 % on a half of a GPU, where memory is enough.
        memory = float(np.round(rng.uniform(1.0, 8.0), 1))
        quarter, half = (float(x) for x in np.round(rng.uniform([1.01, 1.01], [1.11, 1.05]), 3))
        shares = [(0.25, quarter)] if memory <= 4 else []
        shares.append((0.5, half))
    return Draft(
        kind=kind,
        memory=memory,
        # Being late with a large job costs more, though not in proportion.
        weight=round((4.0 + 16.0 * u_weight) * math.sqrt(fewest), 2),
        slack=1.5 + 3.5 * u_slack**traits.slack_power,
        modes=[(gpu, g, duration / shortest) for gpu, g, duration in modes],
        shares=tuple(shares),
    )


def draft_demanding_job(
    rng: np.random.Generator, traits: Family, pools: list[dict[str, Any]], odds: np.ndarray
) -> Draft:
    """A job of a family with `access`: it can use some of the GPU types only, and at least three numbers of GPUs
    where there are so many."""
    owned = {p["gpu"]: p["gpus_per_node"] * p["nodes"] for p in pools if p["site"] == "on-prem"}
    rented = {p["gpu"]: p["gpus_per_node"] * p["nodes"] for p in pools if p["site"] != "on-prem"}
    fewest = int(rng.choice(_FEWEST_GPUS, p=odds))
    kinds = LARGE_BATCH if fewest >= _LARGE_FROM else MODEL_CLASSES
    kind = kinds[int(rng.integers(len(kinds)))]
    doublings = int(rng.integers(2, 4))
    types = traits.access[int(rng.choice(len(traits.access), p=[chance for _, chance in traits.access]))][0]
    is_small, u_weight, u_slack = rng.random() < 0.5, rng.random(), rng.random()
    memory = float(np.round(rng.uniform(1.0, 14.0), 1))
    slow_downs = np.round(rng.uniform([1.01, 1.01], [1.11, 1.05]), 3)
    if kind.scaling is None:
        fewest, doublings = 1, 0
    # On a cluster that lacks them all, or for a job that runs on one GPU only, there is nothing to be choosy about.
    types = {gpu: times for gpu, times in types.items() if gpu in owned and kind.scaling} or dict.fromkeys(owned, 1)
    while all(fewest * times > owned[gpu] for gpu, times in types.items()):
        fewest //= 2
    counts = [g for g in GPU_COUNTS if fewest <= g <= min(MOST_GPUS, fewest << doublings)]
    modes = []
    for gpu, times in types.items():
        most = max(owned[gpu], rented.get(gpu, 0))
        modes += [(gpu, g, 1.0 / kind.speed_on(gpu, g)) for g in counts if fewest * times <= g <= most]
    shares: tuple[tuple[float, float], ...] = ()
    if fewest == 1 and is_small and memory <= 8:
        shares = ((0.25, float(slow_downs[0])),) if memory <= 4 else ()
        shares += ((0.5, float(slow_downs[1])),)
    shortest = min(duration for _, _, duration in modes)
    return Draft(
        kind=kind,
        memory=memory,
        weight=round((4.0 + 16.0 * u_weight) * fewest**traits.weight_power, 2),
        slack=1.5 + 3.5 * u_slack**traits.slack_power,
        modes=[(gpu, g, duration / shortest) for gpu, g, duration in modes],
        shares=shares,
    )


def cheapest_work(draft: Draft, pools: list[dict[str, Any]]) -> float:
    """GPU-seconds in the cheapest owned mode, for a fastest time of 1 s; as `load_of` counts them."""
    # The energy price of a mean hour: eight hours of the day are night.
    energy = (16 * ENERGY_DAY + 8 * ENERGY_NIGHT) / 24
    options = []
    for pool in pools:
        if pool["site"] == "on-prem":
            gpu_h = pool["price"] / pool["gpus_per_node"] + pool["gpu_power"] * energy
            for gpu, gpus, duration in draft.modes:
                if gpu != pool["gpu"] or gpus > pool["gpus_per_node"] * pool["nodes"]:
                    continue
                options.append((gpus * gpu_h * duration, gpus * duration))
                if gpus == 1:
                    options += [(s * slow * gpu_h * duration, s * slow * duration) for s, slow in draft.shares]
    return min(options)[1]


assert set(FAMILIES) == set(get_args(FamilyName))
