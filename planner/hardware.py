"""GPU types, prices, speeds and scaling: the figures behind generated and imported instances, with sources.

Sources are public tables, named by the short names below; figures are carried over, rounded to three digits.

- Gavel: throughputs of single jobs on K80, P100 and V100 (steps per second by model, batch, GPUs), MIT.
- ElasticFlow: throughputs on A100 and T4 by global batch and GPUs 1 to 64, Apache-2.0.
- prices: public price lists of clouds, 2022 to 2026, one row an instance type.
- rates: read rates of training jobs as published for MLPerf Storage and in data-loading studies, MB/s.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from models.domain.rules import suggest
from models.errors import Fault, InvalidInput

# Power usage effectiveness of a small server room (energy drawn over energy of the machines), from the cost
# table of the GPU scheduling profiles of Politecnico di Milano's group.
PUE = 1.33

GPU_COUNTS = (1, 2, 4, 8, 16, 32, 64)


@dataclass(frozen=True)
class GpuType:
    """One GPU type, figures for each GPU."""

    name: str
    memory_gb: float
    power_kw: float
    """Board power limit, without cooling."""
    speed: float
    """Training speed on one GPU, ResNet-50, P100 = 1."""
    owned_usd_h: float
    """An hour of an owned one that is on, energy apart. Nobody publishes such prices; the lowest that anyone
    lists for the type, spot or not, stands for them: about what having it costs whoever owns it."""
    cloud_usd_h: float
    """An hour of a rented one, on demand."""


# Speeds. Gavel, ResNet-50 at batch 128, images/s on one GPU: K80 44.4, P100 203, V100 320. ElasticFlow: T4
# 217 (global batch 3200), A100 472 (256). H100 = 1.95 A100, as their ResNet-50 read rates (205, 105 MB/s).
# Prices. Owned: lowest listed for one to eight GPUs (spot: Azure NC6, NC6s v2, AWS g4dn.xlarge, Nebius H100;
# on demand: Lambda 8 V100 at 4.40, Lambda A100). Cloud: Azure NC6, GCP n1-highmem P100, AWS g4dn.12xlarge,
# AWS p3, GCP a2-highgpu, Nebius H100.
GPU_TYPES = {
    gpu.name: gpu
    for gpu in (
        GpuType("K80", 12.0, 0.150, 0.219, 0.09, 0.90),
        GpuType("P100", 16.0, 0.250, 1.000, 0.22, 1.93),
        GpuType("T4", 16.0, 0.070, 1.070, 0.16, 0.98),
        GpuType("V100", 16.0, 0.300, 1.580, 0.55, 3.06),
        GpuType("A100", 40.0, 0.400, 2.330, 1.10, 3.67),
        GpuType("H100", 80.0, 0.700, 4.540, 1.25, 2.95),
    )
}

# Speed on 1, 2, 4, ... 64 GPUs over that on one, the global batch held: ElasticFlow, A100. Some fall past 8.
SCALING = {
    "ResNet-50": (1.0, 1.87, 3.36, 5.63, 8.22, 9.67, 10.2),  # batch 256
    "ResNet-50 small": (1.0, 1.81, 3.07, 4.52, 5.51, 5.55, 5.76),  # batch 128
    "VGG-16": (1.0, 1.92, 3.53, 6.09, 9.61, 12.5, 15.7),  # batch 256
    "Inception-v3": (1.0, 1.82, 3.05, 4.24, 4.99, 5.01, 4.82),  # batch 128
    "BERT": (1.0, 1.59, 2.36, 2.80, 3.01, 3.00, 2.64),  # batch 128
    "GPT-2": (1.0, 1.70, 2.79, 3.82, 4.36, 4.60, 3.82),  # batch 256
    "DeepSpeech2": (1.0, 1.85, 3.28, 4.63, 5.88, 7.80, 8.73),  # batch 64
    # The same at large global batches: ElasticFlow, T4.
    "ResNet-50 6400": (1.0, 1.98, 3.70, 7.31, 14.2, 27.0, 37.5),
    "DeepSpeech2 640": (1.0, 1.97, 3.92, 7.44, 13.7, 14.6, 17.0),
    "BERT 384": (1.0, 2.09, 4.15, 5.62, 10.5, 14.2, 13.6),
}


@dataclass(frozen=True)
class ModelClass:
    """A kind of training job: how it runs on each GPU type, how it scales, what it reads."""

    name: str
    speed: dict[str, float]
    """Speed on one GPU by type, P100 = 1."""
    scaling: str | None
    """Row of SCALING; None: it runs on one GPU only."""
    read_v100_mb_s: float
    """Read rate on one V100; 0: what it reads does not matter."""

    def speed_on(self, gpu: str, gpus: int) -> float:
        """Speed on so many GPUs of a type, one P100 = 1."""
        return self.speed[gpu] * (speed_up(self.scaling, gpus) if self.scaling else 1.0)

    def read_rate(self, gpu: str, gpus: int) -> float:
        """What it reads there, MB/s: as much a step as on the V100."""
        return round(self.read_v100_mb_s * self.speed_on(gpu, gpus) / self.speed["V100"], 1)


def _speeds(t4: float, v100: float, a100: float) -> dict[str, float]:
    return {"P100": 1.0, "T4": t4, "V100": v100, "A100": a100}


# V100 from Gavel (ResNet-50 and Transformer at batch 128, the others at their largest). Where a model was not
# measured on T4 or A100, ResNet-50's ratios stand: T4 = 1.07 P100, A100 = 1.48 V100; for speech and language
# T4 follows DeepSpeech2 (A100 = 3.25 T4, ElasticFlow). BERT and GPT-2 take Gavel's Transformer, DeepSpeech2
# its LM. Read rates: as published for ResNet-18/50 and ShuffleNet on a V100; VGG-16 and Inception-v3 from
# images/s (ElasticFlow) times 0.114 MB, the mean image of ImageNet-1k.
MODEL_CLASSES = (
    ModelClass("ResNet-50", _speeds(1.07, 1.58, 2.33), "ResNet-50", 87.0),
    ModelClass("ResNet-18", _speeds(1.07, 1.33, 1.97), "ResNet-50 small", 220.0),
    ModelClass("ShuffleNet", _speeds(1.07, 1.33, 1.97), "ResNet-50 small", 276.0),
    ModelClass("VGG-16", _speeds(1.07, 1.58, 2.33), "VGG-16", 26.0),
    ModelClass("Inception-v3", _speeds(1.07, 1.58, 2.33), "Inception-v3", 25.0),
    ModelClass("BERT", _speeds(0.81, 1.77, 2.62), "BERT", 0.0),
    ModelClass("GPT-2", _speeds(0.81, 1.77, 2.62), "GPT-2", 0.0),
    ModelClass("DeepSpeech2", _speeds(0.61, 1.33, 1.97), "DeepSpeech2", 0.0),
    # Newer is slower here: Gavel has Recommendation at half the P100's speed on a V100.
    ModelClass("Recommendation", _speeds(1.07, 0.48, 0.71), None, 0.0),
    ModelClass("CycleGAN", _speeds(1.07, 1.84, 2.72), None, 0.0),
)
# Those of jobs that train on many GPUs from the beginning: at a large global batch, or with a model that scales far.
# Read rates are those of the same model on one V100. ResNet-18 and GPT-2 were not measured at such batches; they are
# assumed to scale as ResNet-50 does.
LARGE_BATCH = (
    ModelClass("ResNet-50 at 6400", _speeds(1.07, 1.58, 2.33), "ResNet-50 6400", 87.0),
    ModelClass("ResNet-18 at 6400", _speeds(1.07, 1.33, 1.97), "ResNet-50 6400", 220.0),
    ModelClass("VGG-16", _speeds(1.07, 1.58, 2.33), "VGG-16", 26.0),
    ModelClass("GPT-2 at a large batch", _speeds(0.81, 1.77, 2.62), "ResNet-50 6400", 0.0),
    ModelClass("BERT at 384", _speeds(0.81, 1.77, 2.62), "BERT 384", 0.0),
    ModelClass("DeepSpeech2 at 640", _speeds(0.61, 1.33, 1.97), "DeepSpeech2 640", 0.0),
)

# Sizes in GB as published with the datasets and their benchmarks.
DATASETS = (
    ("ImageNet-1k", 146.0),
    ("OpenImages", 645.0),
    ("ImageNet-22k", 1300.0),
    ("FMA", 950.0),
    ("CosmoFlow", 1480.0),
    ("UNet3D", 25.0),
)

# A lustre-type service lists 150, 300, 600 and 1200 MB/s at 0.31, 0.46, 0.77 and 1.39 USD/h: a line through
# the origin to the first point, then one through the others. The last line, for large buyers, is assumed.
BANDWIDTH_TARIFF = ((0.0, 0.00207), (0.15, 0.00103), (1.5, 0.0008))
# Fast shared storage at about 0.145 USD per GB and month.
CACHE_USD_GB_H = 0.0002
# The lowest egress tier of the large clouds' lists (150 TB a month).
TRANSFER_USD_GB = 0.05
# Energy: the 0.17 of the profiles' cost table (EUR, taken as USD) by day, and half of it at night.
ENERGY_DAY, ENERGY_NIGHT = 0.17, 0.085
ENERGY_PRICE = {
    "default": ENERGY_DAY,
    "windows": [{"since": "22:00", "until": "06:00", "price": ENERGY_NIGHT}],
}


def gpu_type(name: str) -> GpuType:
    """The type with a name, in whatever case; InvalidInput names what there is."""
    found = GPU_TYPES.get(name.upper())
    if found is None:
        mend = suggest(name.upper(), GPU_TYPES)
        raise InvalidInput([Fault("is not a GPU type with known price and speed", (), name, mend)])
    return found


def speed_up(scaling: str, gpus: int) -> float:
    """Speed on so many GPUs over that on one: linear in log2 between measured counts, level beyond 64."""
    curve = SCALING[scaling]
    position = min(math.log2(gpus), len(curve) - 1.0)
    low = min(int(position), len(curve) - 2)
    return curve[low] + (position - low) * (curve[low + 1] - curve[low])


def pool_record(
    name: str,
    site: str,
    gpu: GpuType,
    gpus_per_node: int,
    nodes: int,
    *,
    is_cloud: bool,
) -> dict[str, Any]:
    """A pool at the table's prices. Rented nodes boot for ten minutes and are billed by the hour."""
    usd_h = gpu.cloud_usd_h if is_cloud else gpu.owned_usd_h
    record: dict[str, Any] = {
        "id": name,
        "site": site,
        "gpu": gpu.name,
        "gpus_per_node": gpus_per_node,
        "nodes": nodes,
        "price": round(usd_h * gpus_per_node, 4),
        "gpu_memory": gpu.memory_gb,
        "slices_per_gpu": 4,
    }
    if is_cloud:
        return record | {"billing_increment": 3600.0, "boot_time": 600.0}
    # Whoever rents pays no energy bill of his own.
    return record | {"gpu_power": round(gpu.power_kw * PUE, 4)}


# (GPU type, GPUs a node, share of the nodes) of the owned pools and (type, GPUs a node) of the cloud pools,
# for at least so many owned nodes.
_LAYOUTS: tuple[tuple[int, tuple[tuple[str, int, float], ...], tuple[tuple[str, int], ...]], ...] = (
    (
        12,
        (("P100", 4, 0.3), ("T4", 4, 0.25), ("V100", 4, 0.25), ("A100", 8, 0.2)),
        (("T4", 4), ("V100", 4), ("A100", 4)),
    ),
    (4, (("P100", 4, 0.5), ("V100", 4, 0.5)), (("A100", 4),)),
    (1, (("V100", 4, 1.0),), (("V100", 4),)),
)


def cluster_pools(nodes: int, quota: float, cloud_price_factor: float) -> list[dict[str, Any]]:
    """Pools of a cluster of mixed ages with so many owned nodes; of each cloud type `quota` times as many."""
    owned, cloud = next((owned, cloud) for least, owned, cloud in _LAYOUTS if nodes >= least)
    counts = [max(1, int(share * nodes)) for _, _, share in owned]
    counts[0] += nodes - sum(counts)
    pools = [
        pool_record(f"{gpu.lower()}-owned", "on-prem", GPU_TYPES[gpu], gpus_per_node, count, is_cloud=False)
        for (gpu, gpus_per_node, _), count in zip(owned, counts, strict=True)
    ]
    rented = max(1, round(quota * nodes))
    for gpu, gpus_per_node in cloud:
        name = f"{gpu.lower()}-cloud"
        record = pool_record(name, "cloud", GPU_TYPES[gpu], gpus_per_node, rented, is_cloud=True)
        pools.append(record | {"price": round(record["price"] * cloud_price_factor, 4)})
    return pools
