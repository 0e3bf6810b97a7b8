"""When a node is on: the cheapest intervals that cover what runs on it, billed in blocks, boots included."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from models import grid
from models.domain.instance import Instance


@dataclass(frozen=True)
class NodeRules:
    """What a pool asks of the on-intervals of its nodes."""

    block: int
    boot: int
    price: np.ndarray
    """Money for each slot, shape (T + block,)."""
    available: np.ndarray
    """Of each kind of node, shape (kinds, T)."""
    on_at_start: np.ndarray
    """Of each kind of node, shape (kinds,)."""
    kind: np.ndarray | None = None
    """Kind of each node, shape (nodes,); None: each is of its own kind."""

    @classmethod
    def of(cls, instance: Instance, p: int, num_slots: int) -> NodeRules:
        """The rules of a pool."""
        return cls.of_kinds(instance, p, num_slots, grid.node_kinds(instance, instance.pools[p], num_slots))

    @classmethod
    def of_kinds(cls, instance: Instance, p: int, num_slots: int, kinds: grid.NodeKinds) -> NodeRules:
        """The rules of a pool whose kinds of nodes are known."""
        pool = instance.pools[p]
        return cls(
            grid.block_slots(instance, pool),
            grid.boot_slots(instance, pool),
            grid.node_prices(instance, pool, num_slots),
            kinds.available,
            kinds.warm,
            kinds.kind,
        )

    @property
    def is_plain(self) -> bool:
        """Whether a node is paid just for the slots in which it runs something."""
        return self.block == 1 and self.boot == 0

    def kind_of(self, node: int) -> int:
        """Kind of a node."""
        return node if self.kind is None else int(self.kind[node])

    def cost(self, begin: int, end: int) -> float:
        """Money for a node that is on from `begin` to `end`: whole blocks from `begin`."""
        return float(self.price[begin : self.billed_end(begin, end)].sum())

    def billed_end(self, begin: int, end: int) -> int:
        """End of the last block of an interval."""
        return begin + math.ceil((end - begin) / self.block) * self.block


def cheapest_intervals(rules: NodeRules, node: int, busy: np.ndarray) -> list[tuple[int, int]]:
    """On-intervals [begin, end) of a node that cover its busy slots at the lowest cost.

    Dynamic programming over the busy stretches: the best cover of the first j ends with an interval over stretches
    i..j-1. An interval ends with its last stretch, and the next begins at least a slot later. It begins a boot
    before its first one, or up to a block less one slot earlier (another phase of the blocks may be cheaper under
    prices that change; a whole block earlier never is), or at slot 0 on a node that is on at the start. The caller
    has seen to it that a boot fits before every stretch that cannot be reached by staying on.
    """
    edges = np.flatnonzero(np.diff(np.concatenate([[0], busy.astype(np.int8), [0]])))
    stretches = [(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]
    if rules.is_plain:
        return stretches
    best: list[float] = [0.0] + [math.inf] * len(stretches)
    choice: list[tuple[int, int, int]] = [(0, 0, 0)] * (len(stretches) + 1)
    kind = rules.kind_of(node)
    available = rules.available[kind]
    for i, (first, _) in enumerate(stretches):
        if not math.isfinite(best[i]):
            continue
        earliest = stretches[i - 1][1] + 1 if i else 0
        begins = [a for a in range(first - rules.boot, first - rules.boot - rules.block, -1) if a >= earliest]
        if rules.on_at_start[kind] and i == 0:
            begins.append(0)
        for begin in begins:
            for j in range(i, len(stretches)):
                end = stretches[j][1]
                if not available[begin:end].all():
                    break
                cost = best[i] + rules.cost(begin, end)
                if cost < best[j + 1] - 1e-12:
                    best[j + 1], choice[j + 1] = cost, (i, begin, end)
    intervals = []
    j = len(stretches)
    while j:
        if not math.isfinite(best[j]):
            raise ValueError(f"no on-intervals cover the busy slots of node {node}")
        i, begin, end = choice[j]
        intervals.append((begin, end))
        j = i
    return intervals[::-1]
