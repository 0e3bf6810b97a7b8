"""Job mixes for the experiments on storage: published reading rates and dataset sizes, shared with a skew.

MB/s per V100 where nothing else is said, from the sources that the design of the storage part names: AlexNet 288,
ShuffleNet 276, ResNet-18 220, MobileNet 128, ResNet-50 87; UNet3D 1613 and CosmoFlow 513 on an A100; language models
1 to 10. Datasets: ImageNet-1k 146 GB, OpenImages 645 GB, ImageNet-22k 1.3 TB, FMA 950 GB, CosmoFlow 1.48 TB, UNet3D
25 GB. Teams have copies and subsets of their own, so sizes are spread about these; popularity follows Zipf's law.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from models.storage.cba import CacheProblem
from models.storage.tariff import Tariff, chords, lines_through

VISION = (288.0, 276.0, 220.0, 128.0, 87.0)
IMAGES_GB = (146.0, 645.0, 1300.0)
KINDS = ("vision", "vision", "vision", "language", "volumes", "cosmology")
GPUS = (1, 1, 1, 2, 2, 4, 8, 16)
ZIPF = 1.1
LIST = ((150.0, 0.31), (300.0, 0.46), (600.0, 0.77), (1200.0, 1.39))
"""(MB/s, price an hour) of a managed Lustre service."""
DISK, MEMORY = 1.0e-4, 2.3e-4
"""Money per cached GB and hour: block storage at 0.073 and at 0.168 a GB and month."""
CACHES = {"free": (DISK, np.inf), "half": (DISK, 0.5), "dear": (MEMORY, 0.5), "tight": (DISK, 0.1)}
"""Price of a GB and hour, and capacity as a part of all datasets."""


@dataclass(frozen=True)
class Reader:
    """A job of a mix."""

    kind: str
    rank: int
    """Which dataset of its kind it reads."""
    gpus: int
    rate: float
    """MB/s that it reads for each of its GPUs."""


@dataclass(frozen=True)
class Mix:
    """Jobs that fill a cluster."""

    gpus: int
    kind: str
    """Of the jobs: mixed, or vision alone."""
    tariff: str
    cache: str
    seed: int

    def readers(self) -> Iterator[Reader]:
        """Its jobs, the same every time."""
        draw = np.random.default_rng([self.seed, self.gpus, len(self.kind)])
        left = self.gpus
        while left > 0:
            gpus = min(left, int(draw.choice(GPUS)))
            left -= gpus
            kind = "vision" if self.kind == "vision" else str(draw.choice(KINDS))
            yield Reader(kind, self._rank(draw), gpus, _rate(kind, draw))

    def problem(self) -> CacheProblem:
        """The caching problem of its jobs."""
        rates: dict[tuple[str, int], list[float]] = defaultdict(list)
        for reader in self.readers():
            rates[reader.kind, reader.rank].append(reader.rate * reader.gpus)
        sizes = [self.size_of(kind, rank) for kind, rank in rates]
        demand = sum(map(sum, rates.values()))
        price, part = CACHES[self.cache]
        return CacheProblem(
            sizes=np.array(sizes),
            readers=tuple(map(tuple, rates.values())),
            tariff=tariff_for(self.tariff, demand),
            cache_price=price,
            cache_capacity=part * sum(sizes),
        )

    def size_of(self, kind: str, rank: int) -> float:
        """GB of a dataset."""
        return _size(kind, np.random.default_rng([self.seed, rank, len(kind)]))

    def _rank(self, draw: np.random.Generator) -> int:
        """Which dataset of its kind a job reads: the first far more often than the last of as many as a cluster has."""
        number = max(2, self.gpus // 10)
        weights = 1.0 / np.arange(1, number + 1) ** ZIPF
        return int(draw.choice(number, p=weights / weights.sum()))


def _rate(kind: str, draw: np.random.Generator) -> float:
    """MB/s that a job reads for each of its GPUs."""
    if kind == "vision":
        return float(draw.choice(VISION))
    return {"language": float(draw.uniform(1.0, 10.0)), "volumes": 1613.0, "cosmology": 513.0}[kind]


def _size(kind: str, draw: np.random.Generator) -> float:
    """GB of a dataset: one of the published ones, times what teams make of it."""
    base = {"language": 950.0, "volumes": 25.0, "cosmology": 1480.0}.get(kind) or float(draw.choice(IMAGES_GB))
    return base * float(draw.lognormal(0.0, 0.6))


def tariff_for(name: str, demand: float) -> Tariff:
    """A tariff that sells so many MB/s: the list with its last line going on, a power law through its ends, or the list
    by volume, with each doubling of the bandwidth beyond it a third cheaper."""
    if name == "list":
        return Tariff(lines_through(list(LIST)))
    if name == "power":
        (b0, p0), (b1, p1) = LIST[0], LIST[-1]
        exponent = float(np.log(p1 / p0) / np.log(b1 / b0))
        factor, up_to = p0 / b0**exponent, max(1.0, 2 * demand)
        return Tariff(chords(factor, exponent, up_to, 0.01), up_to, (factor, exponent))
    points = list(LIST)
    slope = (LIST[-1][1] - LIST[-2][1]) / (LIST[-1][0] - LIST[-2][0])
    while points[-1][0] < demand:
        slope *= 2 / 3
        b, p = points[-1]
        points.append((2 * b, p + slope * b))
    return Tariff(lines_through(points))
