"""What a simulated world draws: how long jobs really take, when nodes fail, when spot nodes are taken back, and what
rented nodes come to cost.

Each job, node and pool has a stream of its own, so nothing that is drawn depends on what a policy does.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from models.domain import Instance
from models.grid import is_cloud
from planner.simulation.nodes import Node


@dataclass(frozen=True)
class Options:
    """What the world is like, besides the instance."""

    seed: int = 0
    may_burst: bool = True
    moves: bool = True
    """Whether jobs that run may be stopped."""
    restart_s: float = 0.0
    """Time that a restart takes on the new GPUs."""
    duration_error: float = 0.0
    """Sigma of the lognormal factor, of median 1, between actual and estimated durations."""
    mtbf_h: float | None = None
    """Mean hours between failures of an owned node; None: they do not fail."""
    repair_h: float = 4.0
    price_sigma: float = 0.0
    """Sigma of the lognormal factor, of median 1, that a rented pool's price is of its listed one; it starts at 1."""
    price_h: float = 6.0
    """Mean hours between two changes of a pool's price."""
    prices: tuple[tuple[float, int, float], ...] = ()
    """Changes that are certain: when, of which pool, to which factor of its listed price."""
    period_s: float | None = None
    """The policy is also asked so often; None: at events only."""
    spot: bool = True
    """Whether spot nodes are taken back at the rate of their pool."""
    asks_at_start: bool = False
    """Whether the policy is asked at the start even where no job has arrived by then."""
    relief: tuple[tuple[int, float], ...] = ()
    """Jobs that overrun less than they would, each by so much of its estimate: a counterfactual."""


class Chance:
    """All that is drawn for an instance."""

    def __init__(self, instance: Instance, options: Options):
        self.instance, self.options = instance, options
        self._streams: dict[Node, np.random.Generator] = {}
        self._prices: dict[int, np.random.Generator] = {}

    def factor(self, j: int) -> float:
        """Actual duration of a job over its estimate."""
        draw = np.random.default_rng([self.options.seed, 3, j])
        drawn = math.exp(self.options.duration_error * float(draw.standard_normal()))
        relief = dict(self.options.relief).get(j, 0.0)
        return max(min(drawn, 1.0), drawn - relief) if relief else drawn

    def hazards(self) -> Iterator[tuple[Node, bool]]:
        """Nodes that may fail or, being spot nodes, be taken back; which of both."""
        for p, pool in enumerate(self.instance.pools):
            if self._rate(p) > 0:
                yield from (((p, node), pool.market == "spot") for node in range(pool.nodes))

    def wait_s(self, node: Node) -> float:
        """Seconds until that happens to a node the next time."""
        if node not in self._streams:
            self._streams[node] = np.random.default_rng([self.options.seed, 7, *node])
        return float(self._streams[node].exponential(3600.0 / self._rate(node[0])))

    def swings(self) -> Iterator[int]:
        """Pools whose price changes now and then."""
        if self.options.price_sigma > 0:
            yield from (p for p in range(len(self.instance.pools)) if is_cloud(self.instance, p))

    def next_price(self, p: int) -> tuple[float, float]:
        """Seconds until a pool's price changes the next time, and the factor that it then is of the listed one."""
        if p not in self._prices:
            self._prices[p] = np.random.default_rng([self.options.seed, 11, p])
        draw = self._prices[p]
        wait_s = float(draw.exponential(3600.0 * self.options.price_h))
        return wait_s, math.exp(self.options.price_sigma * float(draw.standard_normal()))

    def _rate(self, p: int) -> float:
        """How often an hour something happens to a node of a pool."""
        pool, mtbf_h = self.instance.pools[p], self.options.mtbf_h
        if pool.market == "spot":
            return pool.interruption_rate if self.options.spot else 0.0
        return 0.0 if mtbf_h is None or is_cloud(self.instance, p) else 1.0 / mtbf_h
