"""Builds instances/lab from public tables: a laboratory's night, 60 jobs on 40 owned nodes and a cloud.

    python scripts/make_lab.py [--data ../shared/data] [--out instances/lab]

Speeds, relative speeds on half a GPU and cloud prices are read from the tables in the data folder; the few
other published figures stand below. What no source gives (who submits what and when, how long it trains, what
lateness costs) is drawn from a fixed seed. instances/README.md names the source of every figure.
"""

from __future__ import annotations

import argparse
import csv
import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from models.domain import Instance
from planner.hardware import ENERGY_PRICE, GPU_TYPES, PUE
from planner.io.instances import write_instance

ROOT = Path(__file__).resolve().parent.parent
SEED = 20260112

# Read rates as published, MB/s on one V100 or one A100; the other models read an image or a clip a sample.
RATES_V100 = {"ResNet-50": 87.0, "ResNet-18": 220.0}
RATES_A100 = {"CosmoFlow": 513.0, "UNet3D": 1613.0}
IMAGE_MB = 0.114  # 146 GB of ImageNet-1k over its 1,281,167 images
AUDIO_MB = 0.3  # a ten-second clip; assumed

SIZES_GB = {
    "ImageNet-1k": 146,
    "OpenImages": 645,
    "ImageNet-22k": 1300,
    "FMA": 950,
    "CosmoFlow": 1480,
    "UNet3D": 25,
}
# OpenImages is at home in a public bucket; reading it on premises costs egress.
CLOUD_HOMES = {"OpenImages"}
EGRESS_USD_GB = 0.09  # first tier of the large clouds' lists
# A lustre-type service's price list: MB/s, USD/h. Its rows at 300 and 600 MB/s (0.46, 0.77) lie on the line
# between these two, but for the rounding to a cent, which would make the tariff not concave.
BANDWIDTH_POINTS = ((150, 0.31), (1200, 1.39))


@dataclass(frozen=True)
class Kind:
    """Jobs of one model: how many, what they read, and the GPUs that people ask for."""

    model: str
    datasets: tuple[str, ...]
    """One job each; "" reads nothing."""
    gpu: str
    gpus: int
    """What people ask for: the median job takes eight hours on these, and due dates follow from it."""
    is_small: bool = False


KINDS = (
    Kind("ResNet-50", ("ImageNet-1k",) * 5 + ("OpenImages",) * 3 + ("ImageNet-22k",) * 2, "V100", 4),
    Kind("ResNet-18", ("ImageNet-1k",) * 4 + ("ImageNet-22k",) * 3, "V100", 2, is_small=True),
    Kind("VGG-16", ("ImageNet-1k",) * 4, "A100", 8),
    Kind("Inception-v3", ("OpenImages",) * 3, "A100", 4),
    Kind("BERT", ("",) * 5, "A100", 4),
    Kind("GPT-2", ("",) * 4, "A100", 8),
    Kind("DeepSpeech2", ("FMA",) * 5, "A100", 2),
    Kind("YOLOv3", ("OpenImages",) * 3, "T4", 4),
    Kind("Transformer", ("",) * 5, "V100", 2, is_small=True),
    Kind("LM", ("",) * 5, "P100", 1, is_small=True),
    Kind("Recommendation", ("",) * 2, "P100", 1, is_small=True),
    Kind("CycleGAN", ("",) * 2, "V100", 1, is_small=True),
    Kind("A3C", ("",) * 2, "P100", 1, is_small=True),
    Kind("CosmoFlow", ("CosmoFlow",) * 2, "A100", 1),
    Kind("UNet3D", ("UNet3D",), "A100", 1),
)

# Model of the lab: (model, batch) of the Gavel table; samples = steps x batch, steps where there is no batch.
GAVEL = {
    "ResNet-50": ("ResNet-50", "64"),
    "ResNet-18": ("ResNet-18", "256"),
    "Transformer": ("Transformer", "128"),
    "LM": ("LM", "80"),
    "Recommendation": ("Recommendation", "4096"),
    "CycleGAN": ("CycleGAN", ""),
    "A3C": ("A3C", ""),
}
# Model of the lab: (folder, file, global batch) of the ElasticFlow tables, which are in steps per second too.
ELASTICFLOW = {
    ("ResNet-50", "A100"): ("elasticflow_a100", "resnet50", 256),
    ("VGG-16", "A100"): ("elasticflow_a100", "vgg16", 256),
    ("Inception-v3", "A100"): ("elasticflow_a100", "inception3", 128),
    ("BERT", "A100"): ("elasticflow_a100", "bert", 128),
    ("GPT-2", "A100"): ("elasticflow_a100", "gpt2", 256),
    ("DeepSpeech2", "A100"): ("elasticflow_a100", "deepspeech2", 64),
    ("ResNet-50", "T4"): ("elasticflow_t4", "imagenet", 3200),
    ("DeepSpeech2", "T4"): ("elasticflow_t4", "deepspeech2", 640),
    ("YOLOv3", "T4"): ("elasticflow_t4", "yolov3", 64),
}
MOST_GPUS = 32

# Pool: cloud instance type whose price it takes, GPU type, GPUs a node, quota.
CLOUD = (
    ("p3", "p3.8xlarge", "V100", 4, 6),
    ("p4d", "p4d.24xlarge", "A100", 8, 4),
    ("g4dn", "g4dn.12xlarge", "T4", 4, 6),
    ("p4d-spot", "p4d.24xlarge", "A100", 8, 2),
)
OWNED = (("P100", 4, 14), ("T4", 4, 8), ("V100", 4, 12), ("A100", 4, 6))


def main() -> None:
    """Builds the instance and writes it as a folder of tables."""
    parser = argparse.ArgumentParser(description="Build instances/lab from public tables.")
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--out", type=Path, default=ROOT / "instances" / "lab")
    options = parser.parse_args()
    write_instance(build(options.data), options.out)


def build(data: Path) -> Instance:
    """The instance; the same tables give the same."""
    rng = np.random.default_rng(SEED)
    throughputs = [*_gavel(data), *_elasticflow(data)]
    return Instance.model_validate(
        {
            "name": "lab",
            "currency": "USD",
            "start": "2026-01-12T18:00:00+01:00",
            "slot": "1h",
            "horizon": "auto",
            "sites": _sites(),
            "pools": [*_owned_pools(), *_cloud_pools(data)],
            "datasets": [
                {"id": name, "size": size, "home": "cloud" if name in CLOUD_HOMES else "on-prem"}
                for name, size in SIZES_GB.items()
            ],
            "network": [
                # Data that enters a cloud is free of charge; the line has 10 Gbit/s both ways.
                {"source": "on-prem", "target": "cloud", "price": 0.0, "bandwidth": 1250.0},
                {"source": "cloud", "target": "on-prem", "price": EGRESS_USD_GB, "bandwidth": 1250.0},
            ],
            "throughputs": throughputs,
            "jobs": _jobs(rng, throughputs),
        }
    )


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _three(value: float) -> float:
    """Three significant digits: no measurement here has more."""
    return float(f"{value:.3g}")


def _gavel(data: Path) -> Iterator[dict[str, Any]]:
    folder = data / "throughput"
    alone = _rows(folder / "gavel_isolated_throughputs.csv")
    pairs = _rows(folder / "gavel_colocated_pairs.csv")
    for model, (name, batch) in GAVEL.items():
        for gpu in ("P100", "V100"):
            for row in alone:
                is_it = row["worker_type"] == gpu.lower() and row["model"] == name and row["batch"] == batch
                steps = float(row["steps_per_s"])
                if not is_it or steps <= 0:
                    continue
                speed = _three(steps * float(batch or 1))
                yield {"model": model, "gpu": gpu, "gpus": int(row["n_gpus"]), "samples_per_s": speed}
                if row["n_gpus"] == "1" and any(kind.is_small for kind in KINDS if kind.model == model):
                    part = _beside_others(pairs, gpu.lower(), f"{name} (batch size {batch})" if batch else name)
                    yield {"model": model, "gpu": gpu, "share": 0.5, "samples_per_s": _three(speed * part)}


def _beside_others(pairs: list[dict[str, str]], worker: str, label: str) -> float:
    """Median speed beside another job on one GPU over that alone; pairs that do not fit are left out."""
    parts = []
    for row in pairs:
        if row["worker_type"] == worker and row["gpus1"] == row["gpus2"] == "1":
            for side in ("1", "2"):
                if row[f"job{side}"] == label and float(row["norm1"]) > 0 and float(row["norm2"]) > 0:
                    parts.append(float(row[f"norm{side}"]))
    return statistics.median(parts)


def _elasticflow(data: Path) -> Iterator[dict[str, Any]]:
    for (model, gpu), (folder, file, batch) in ELASTICFLOW.items():
        for row in _rows(data / "throughput" / folder / f"{file}.csv"):
            if row["global_batch_size"] != str(batch):
                continue
            for column, cell in row.items():
                if column == "global_batch_size" or cell in ("", "nan") or int(column) > MOST_GPUS:
                    continue
                if (steps := float(cell)) > 0:
                    speed = _three(steps * batch)
                    yield {"model": model, "gpu": gpu, "gpus": int(column), "samples_per_s": speed}


def _sites() -> list[dict[str, Any]]:
    points = [{"mb_s": mb_s, "price": price} for mb_s, price in BANDWIDTH_POINTS]
    common = {"points": points, "cache_price": 0.0002, "billed": "48h"}
    return [
        {
            "id": "on-prem",
            "kind": "on_prem",
            "energy_price": ENERGY_PRICE,
            "storage": {**common, "cache_capacity": "3 TB"},
        },
        {"id": "cloud", "kind": "cloud", "storage": {**common, "cache_capacity": "2 TB"}},
    ]


def _owned_pools() -> Iterator[dict[str, Any]]:
    for name, gpus_per_node, nodes in OWNED:
        gpu = GPU_TYPES[name]
        pool: dict[str, Any] = {
            "id": f"lab-{name.lower()}",
            "site": "on-prem",
            "gpu": name,
            "gpus_per_node": gpus_per_node,
            "nodes": nodes,
            "price": round(gpu.owned_usd_h * gpus_per_node, 2),
            "gpu_memory": gpu.memory_gb,
            "gpu_power": round(gpu.power_kw * PUE, 3),
            "slices_per_gpu": 2,
            "nodes_on": nodes // 2,
        }
        if name == "P100":
            # Two nodes are serviced in the morning, from 08:00 to 12:00.
            pool["unavailable"] = [{"since": "14h", "until": "18h", "nodes": 2}]
        yield pool


def _cloud_pools(data: Path) -> Iterator[dict[str, Any]]:
    # One list, that of 2023, for all; an instance type that it has twice it has at one price.
    listed = {
        row["instance"]: row
        for row in _rows(data / "prices" / "gpu_prices.csv")
        if row["cloud"] == "AWS" and row["source"].startswith("Full Stack")
    }
    for name, instance, gpu, gpus_per_node, quota in CLOUD:
        is_spot = name.endswith("-spot")
        pool: dict[str, Any] = {
            "id": f"aws-{name}",
            "site": "cloud",
            "gpu": gpu,
            "gpus_per_node": gpus_per_node,
            "nodes": quota,
            "price": float(listed[instance]["spot_usd_h" if is_spot else "on_demand_usd_h"]),
            "gpu_memory": GPU_TYPES[gpu].memory_gb,
            "slices_per_gpu": 2,
            "billing_increment": "1h",
        }
        yield pool | ({"market": "spot", "interruption_rate": 0.05} if is_spot else {})


def _jobs(rng: np.random.Generator, throughputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    speeds = {(r["model"], r["gpu"], r["gpus"]): r["samples_per_s"] for r in throughputs if "gpus" in r}
    records: list[dict[str, Any]] = []
    for kind in KINDS:
        for number, dataset in enumerate(kind.datasets, start=1):
            record: dict[str, Any] = {"id": f"{kind.model.lower()}-{number}"}
            hours = float(np.clip(rng.lognormal(np.log(8.0), 0.7), 1.0, 24.0))
            if dataset:
                record |= {"dataset": dataset, "speed_levels": [1.0, 0.5]}
            if kind.model in RATES_A100:
                # No speeds were published for these, only rates; so the job is given as a table of modes.
                hours = round(hours * 2) / 2
                mode = {
                    "gpu": "A100",
                    "gpus": 1,
                    "duration": f"{hours:g}h",
                    "read_rate": RATES_A100[kind.model],
                }
                record["modes"] = [mode]
            else:
                samples = _three(speeds[kind.model, kind.gpu, kind.gpus] * hours * 3600)
                record |= {"model": kind.model, "samples": samples}
                if dataset:
                    record["sample_size"] = f"{_sample_mb(kind, speeds)} MB"
            if kind.is_small:
                record["memory"] = 7.0
            release_h = 0.5 * int(rng.integers(0, 29)) if rng.random() < 0.7 else 0.0
            due_h = np.ceil(4 * (release_h + rng.uniform(1.2, 4.0) * hours)) / 4
            record |= {"release": f"{release_h:g}h", "due": f"{due_h:g}h"}
            record["weight"] = round(float(rng.uniform(2, 10) * np.sqrt(kind.gpus)), 1)
            if rng.random() < 0.2:
                record |= {"spot": True, "restart_cost": round(float(rng.uniform(5, 20)))}
            records.append(record)
    jobs = {record["id"]: record for record in records}
    # Training goes on from what another job made.
    for later, earlier in (("bert-2", "bert-1"), ("gpt-2-4", "gpt-2-3"), ("resnet-50-10", "resnet-50-9")):
        jobs[later]["after"] = [earlier]
        jobs[later]["release"] = jobs[earlier]["release"]
        hours = float(jobs[earlier]["due"][:-1]) + float(rng.uniform(4, 12))
        jobs[later]["due"] = f"{max(float(jobs[later]['due'][:-1]), np.ceil(hours)):g}h"
    # Two that must be done by some time, and two that may be left out.
    jobs["deepspeech2-1"]["deadline"] = "36h"
    jobs["vgg-16-1"]["deadline"] = "40h"
    jobs["cyclegan-2"]["reject_cost"] = 8.0
    jobs["yolov3-3"]["reject_cost"] = 25.0
    return records


def _sample_mb(kind: Kind, speeds: dict[tuple[str, str, int], float]) -> float:
    """What a sample reads: the published rate over the measured speed of one V100, or an image or clip."""
    if kind.model in RATES_V100:
        return _three(RATES_V100[kind.model] / speeds[kind.model, "V100", 1])
    return AUDIO_MB if kind.model == "DeepSpeech2" else IMAGE_MB


if __name__ == "__main__":
    main()
