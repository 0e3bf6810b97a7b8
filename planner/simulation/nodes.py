"""The nodes of a simulated world: what is taken on each, which are on and since when, which are down."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable

from models.domain import Instance
from models.domain.modes import gpus_on_node, slices_on_gpu
from models.errors import Defect
from models.grid import on_at_start
from planner.simulation.events import EDGE_S
from planner.simulation.market import Market
from planner.simulation.state import Allocation
from planner.simulation.trace import Power

Node = tuple[int, int]
"""Pool and node."""


class Nodes:
    """All nodes. A node is on from when something needs it, or it is held, until nothing does, a billed one until what
    is paid is over."""

    def __init__(self, instance: Instance, market: Market):
        self.instance, self._market = instance, market
        self._slices: dict[tuple[int, int, int], int] = defaultdict(int)
        """Slices taken of each GPU (pool, node, GPU); and what is taken of its memory, and of its node."""
        self._memory: dict[tuple[int, int, int], float] = defaultdict(float)
        self._cores: dict[Node, int] = defaultdict(int)
        self._ram: dict[Node, float] = defaultdict(float)
        self._runs: dict[Node, int] = defaultdict(int)
        self.on_since_s: dict[Node, float] = {}
        self.ready_s: dict[Node, float] = {}
        """When a node that is on has booted."""
        self.idle: set[Node] = set()
        """Nodes that are on and run nothing."""
        self.down: set[Node] = set()
        self.held: frozenset[Node] = frozenset()
        """Nodes that stay on whether or not anything runs there."""
        self.powers: list[Power] = []
        self._warm = [on_at_start(instance, pool) for pool in instance.pools]

    def nodes_of(self, there: Allocation) -> list[Node]:
        """The nodes of an allocation."""
        return [(there.mode.pool, place.node) for place in there.places]

    def misfit(self, there: Allocation) -> str | None:
        """Why an allocation cannot be taken now; None where it can."""
        mode, pool = there.mode, self.instance.pools[there.mode.pool]
        named = [place.node for place in there.places]
        if len(named) != mode.num_nodes or len(set(named)) != len(named):
            return f"names {len(named)} nodes of {mode.num_nodes}"
        for place in there.places:
            node = (mode.pool, place.node)
            if not 0 <= place.node < pool.nodes:
                return f"pool {pool.id} has no node {place.node}"
            if node in self.down:
                return f"node {place.node} of pool {pool.id} is down"
            if len(set(place.gpus)) != len(place.gpus) or len(place.gpus) != gpus_on_node(mode, pool):
                return f"names {len(place.gpus)} GPUs on node {place.node}"
            for gpu in place.gpus:
                key = (*node, gpu)
                if not 0 <= gpu < pool.gpus_per_node:
                    return f"node {place.node} of pool {pool.id} has no GPU {gpu}"
                if self._slices[key] + slices_on_gpu(mode, pool) > pool.slices_per_gpu:
                    return f"GPU {gpu} of node {place.node} in pool {pool.id} is taken"
                if pool.gpu_memory is not None and self._memory[key] + mode.memory_gb > pool.gpu_memory * (1 + 1e-9):
                    return f"GPU {gpu} of node {place.node} in pool {pool.id} lacks memory"
            if not mode.is_gang and pool.cpu_cores is not None and self._cores[node] + mode.cpu_cores > pool.cpu_cores:
                return f"node {place.node} of pool {pool.id} lacks CPU cores"
            if not mode.is_gang and pool.ram is not None and self._ram[node] + mode.ram_gb > pool.ram * (1 + 1e-9):
                return f"node {place.node} of pool {pool.id} lacks RAM"
        return None

    def take(self, there: Allocation, now_s: float) -> float:
        """Let a job run there from now on; when all of its nodes have booted."""
        problem = self.misfit(there)
        if problem is not None:
            raise Defect(f"an allocation {problem}")
        self._count(there, 1)
        ready = now_s
        for node in self.nodes_of(there):
            if node not in self.on_since_s:
                self._switch_on(node, now_s)
            self.idle.discard(node)
            ready = max(ready, self.ready_s[node])
        return ready

    def hold(self, nodes: Iterable[Node], now_s: float) -> None:
        """Keep these nodes on from now on, and no longer those that were held before; what is down stays off."""
        self.held = frozenset(nodes) - self.down
        for node in sorted(self.held - self.on_since_s.keys()):
            self._switch_on(node, now_s)
            self.idle.add(node)

    def _switch_on(self, node: Node, now_s: float) -> None:
        warm = now_s <= EDGE_S and bool(self._warm[node[0]][node[1]])
        boot = 0.0 if warm else self.instance.pools[node[0]].boot_time
        self.on_since_s[node], self.ready_s[node] = now_s, now_s + boot

    def leave(self, there: Allocation) -> None:
        """A job runs there no more."""
        self._count(there, -1)
        self.idle.update(node for node in self.nodes_of(there) if not self._runs[node])

    def _count(self, there: Allocation, sign: int) -> None:
        mode, pool = there.mode, self.instance.pools[there.mode.pool]
        for place in there.places:
            node = (mode.pool, place.node)
            for gpu in place.gpus:
                self._slices[*node, gpu] += sign * slices_on_gpu(mode, pool)
                self._memory[*node, gpu] += sign * mode.memory_gb
                if not self._slices[*node, gpu]:
                    self._memory[*node, gpu] = 0.0
            self._cores[node] += sign * ((pool.cpu_cores or 0) if mode.is_gang else mode.cpu_cores)
            self._ram[node] += sign * ((pool.ram or 0.0) if mode.is_gang else mode.ram_gb)
            self._runs[node] += sign
            if not self._runs[node]:
                self._ram[node] = 0.0

    def paid_until_s(self, node: Node, now_s: float) -> float:
        """Until when a node that is on has been paid for."""
        return self._billed(node, self.on_since_s[node], now_s)

    def switch_off_idle(self, now_s: float) -> None:
        """Switch off what runs nothing and has nothing left of what is paid."""
        for node in sorted(self.idle - self.held):
            if self.paid_until_s(node, now_s) <= now_s + EDGE_S:
                self.switch_off(node, now_s)

    def switch_off(self, node: Node, now_s: float) -> None:
        """Switch a node off; nothing runs on it."""
        since, pool = self.on_since_s.pop(node), self.instance.pools[node[0]]
        del self.ready_s[node]
        self.idle.discard(node)
        billed = self._billed(node, since, now_s)
        cost = self._market.cost(node[0], since, billed)
        self.powers.append(
            Power(pool=pool.id, node=node[1], start_s=since, end_s=now_s, billed_s=billed, cost=cost)
        )  # fmt: skip

    def _billed(self, node: Node, since: float, now_s: float) -> float:
        increment = self.instance.pools[node[0]].billing_increment
        if increment <= 0:
            return now_s
        return since + max(1, math.ceil((now_s - since) / increment - 1e-9)) * increment
