"""What waits to happen in a simulated world, in order of time and, at one moment, of its kind."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from enum import IntEnum
from typing import Any

EDGE_S = 1e-6
"""Times that differ by less are one."""


class Kind(IntEnum):
    """Events, in the order in which those of one moment happen."""

    COMPLETION = 0
    STOP = 1
    FAILURE = 2
    CLOSING = 3
    INTERRUPTION = 4
    REPAIR = 5
    OPENING = 6
    PRICE = 7
    ARRIVAL = 8
    START = 9
    WAKE = 10
    PERIOD = 11
    PAID = 12


class Events:
    """A queue of events; those of one time and kind happen in the order in which they were put there."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, Kind, int, Any]] = []
        self._serial = 0

    def __len__(self) -> int:
        return len(self._heap)

    def push(self, at_s: float, kind: Kind, what: Any) -> None:
        """Something that is to happen, and what it is of."""
        heapq.heappush(self._heap, (at_s, kind, self._serial, what))
        self._serial += 1

    @property
    def next_s(self) -> float:
        """When the next one happens."""
        return self._heap[0][0]

    def due(self, now_s: float) -> Iterator[tuple[Kind, Any]]:
        """What happens now, with what is put there meanwhile; each is taken out as it is given."""
        while self._heap and self._heap[0][0] <= now_s + EDGE_S:
            _, kind, _, what = heapq.heappop(self._heap)
            yield kind, what
