"""Instances of jobs that may have few GPUs or many, each worth something by its completion: a day of one cluster.

Jobs, reading rates, datasets and storage prices are those of a mix (`mixes`): together its jobs ask for twice the GPUs
that there are. Each may run on a quarter to four times what it asks for, up to 16, with a speed that grows less than
the GPUs do; all on their fewest GPUs fill two thirds of the cluster. GPUs are rented by the hour at an on-demand price,
so that most of the money goes to them: one by one, or in nodes of 8, which are paid whole.

Two kinds. *welfare*: utilities of four shapes, and worths in proportion to the GPU-hours a job needs, with a spread.
*completion*: every job is worth one unit of money for each hour from its completion to the end of the day. A job left
out then counts as completed at the end, and

    average completion time = average time from release to the end - welfare / number of jobs

so that to have the highest welfare and the shortest completion times is the same.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.mixes import CACHES, Mix, Reader, tariff_for
from models.domain import Instance, Plan
from models.storage.tariff import Tariff

HOUR = 3600.0
SLOT, HORIZON = 20 * 60.0, 24 * HOUR
MOST_GPUS = 16
"""That a job may have."""
GPU_HOUR = 2.48
"""Money for an on-demand GPU and hour."""
SCALING = {"vision": 0.9}
"""Speed on g GPUs is g to this power; 0.8 where nothing is said."""
MEDIAN_H, SPREAD, SHORTEST_H, LONGEST_H = 6.0, 1.0, 1.0, 19.0
"""Hours of a job on its fewest GPUs: lognormal, within limits."""
AT_START, LATEST = 0.5, 4 * HOUR
"""Part of the jobs that are there at the start, and until when the others come."""
ASKED = 2
"""GPUs that jobs ask for over those that there are."""
MARGIN, MARGIN_SPREAD = 3.0, 0.6
"""What a job is worth over what its fewest GPUs cost: the median of a lognormal, and its spread."""
SHAPES = ("linear", "step", "sigmoid", "finish_time_fairness")
KINDS = ("welfare", "completion")


@dataclass(frozen=True)
class Elastic:
    """One generated instance."""

    gpus: int
    kind: str
    """welfare or completion."""
    tariff: str
    cache: str
    node: int
    """GPUs of each node."""
    seed: int

    def make(self) -> Instance:
        """The instance, the same every time."""
        mix = Mix(ASKED * self.gpus, "mixed", self.tariff, self.cache, self.seed)
        draw = np.random.default_rng([self.seed, self.gpus])
        readers = list(mix.readers())
        jobs = [self._job(number, reader, len(readers), draw) for number, reader in enumerate(readers)]
        sizes = {_name(reader): mix.size_of(reader.kind, reader.rank) for reader in readers}
        demand = math.fsum(max(mode["read_rate"] for mode in job["modes"]) for job in jobs)
        price, part = CACHES[self.cache]
        storage = _sold(tariff_for(self.tariff, demand)) | {
            "cache_price": price,
            "cache_capacity": min(part, 1.0) * math.fsum(sizes.values()),
        }
        pool = {"id": "gpus", "site": "cloud", "gpu": "V100", "gpus_per_node": self.node}
        return Instance.model_validate(
            {
                "name": f"elastic-{self.kind}-{self.gpus}-{self.tariff}-{self.cache}-node{self.node}-seed{self.seed}",
                "currency": "USD",
                "start": "2026-01-12T00:00:00Z",
                "slot": SLOT,
                "horizon": HORIZON,
                "sites": [{"id": "cloud", "kind": "cloud", "storage": storage}],
                "pools": [pool | {"nodes": self.gpus // self.node, "price": self.node * GPU_HOUR}],
                "datasets": [{"id": name, "size": size, "home": "cloud"} for name, size in sizes.items()],
                "jobs": jobs,
            }
        )

    def _job(self, number: int, reader: Reader, num_jobs: int, draw: np.random.Generator) -> dict[str, Any]:
        """A job as it is written; both kinds of instances draw the same."""
        hours = float(np.clip(MEDIAN_H * draw.lognormal(0.0, SPREAD), SHORTEST_H, LONGEST_H))
        release = 0.0 if draw.random() < AT_START else float(draw.uniform(0.0, LATEST))
        utility = _utility(reader, hours, release, self.gpus / num_jobs, draw)
        if self.kind == "completion":
            worth = (HORIZON - release) / HOUR
            utility = {"shape": "linear", "worth": worth, "full_until": release, "zero_at": HORIZON}
        return {
            "id": f"job{number}",
            "release": release,
            "dataset": _name(reader),
            "modes": [_mode(reader, hours, gpus) for gpus in _counts(reader)],
            "reject_cost": 0.0,
            "utility": utility,
        }


def _name(reader: Reader) -> str:
    return f"{reader.kind}{reader.rank}"


def _counts(reader: Reader) -> list[int]:
    """GPU counts of its modes: powers of two from a quarter to four times what it asks for."""
    first = 1 << max(0, reader.gpus.bit_length() - 3)
    return [first << k for k in range(MOST_GPUS.bit_length()) if first << k <= min(4 * reader.gpus, MOST_GPUS)]


def _speed(reader: Reader, gpus: float) -> float:
    """Speed on so many GPUs, of one."""
    return float(gpus ** SCALING.get(reader.kind, 0.8))


def _mode(reader: Reader, hours: float, gpus: int) -> dict[str, Any]:
    """On so many GPUs it takes so many hours on its fewest, by the speeds; it reads as fast as it runs."""
    duration, rate = _seconds(reader, hours, gpus), reader.rate * _speed(reader, gpus)
    return {"id": f"{gpus}", "pool": "gpus", "gpus": gpus, "duration": duration, "read_rate": rate}


def _seconds(reader: Reader, hours: float, gpus: float) -> float:
    """Duration on so many GPUs."""
    return hours * HOUR * _speed(reader, _counts(reader)[0]) / _speed(reader, gpus)


def _utility(reader: Reader, hours: float, release: float, share: float, draw: np.random.Generator) -> dict[str, Any]:
    """One of the shapes, with times in so many times what the job takes on its share of the cluster."""
    counts = _counts(reader)
    fair_s = _seconds(reader, hours, min(max(share, counts[0]), counts[-1]))
    worth = hours * counts[0] * GPU_HOUR * MARGIN * float(draw.lognormal(0.0, MARGIN_SPREAD))
    shape, patience = str(draw.choice(SHAPES)), float(draw.uniform(1.5, 4.0)) * fair_s
    times = {
        "linear": {"full_until": release + fair_s, "zero_at": release + fair_s + patience},
        "step": {"by": release + patience},
        "sigmoid": {"midpoint": release + patience, "scale": patience / 6},
        "finish_time_fairness": {"fair_time": fair_s},
    }
    return {"shape": shape, "worth": worth} | times[shape]


def _sold(tariff: Tariff) -> dict[str, Any]:
    """A tariff as a storage service states it."""
    if tariff.power is not None:
        factor, exponent = tariff.power
        return {"power": {"factor": factor, "exponent": exponent, "up_to": tariff.cap}}
    return {"tariff": [{"fixed": alpha, "per_mb_s": beta} for alpha, beta in tariff.lines]}


def mean_completion_h(instance: Instance, plan: Plan) -> float:
    """Average hours from release to completion; a job left out counts as completed at the end of the horizon."""
    end = plan.num_slots * plan.slot_s
    completions = {run.job: run.segments[-1].end_slot * plan.slot_s for run in plan.runs}
    times: Sequence[float] = [completions.get(job.id, end) - job.release for job in instance.jobs]
    return math.fsum(times) / len(times) / HOUR
