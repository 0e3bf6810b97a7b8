"""The sets of instances that solvers are compared on: families at sizes, loads and seeds, with and without storage."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from models.domain import Instance
from planner.generate import generate


@dataclass(frozen=True)
class Case:
    """One generated instance."""

    family: str
    jobs: int
    nodes: int
    load: float
    storage: bool
    seed: int

    def make(self) -> Instance:
        """The instance, the same every time."""
        return generate(self.family, self.jobs, self.nodes, self.load, self.seed, self.storage)

    @property
    def group(self) -> tuple[str, int, int, float, bool]:
        """What it shares with the cases of other seeds."""
        return (self.family, self.jobs, self.nodes, self.load, self.storage)


@dataclass(frozen=True)
class Set:
    """A family with its sizes (jobs, nodes) and loads."""

    family: str
    sizes: tuple[tuple[int, int], ...]
    loads: tuple[float, ...]

    def cases(
        self,
        seeds: Sequence[int],
        sizes: Sequence[tuple[int, int]] = (),
        loads: Sequence[float] = (),
        storages: Sequence[bool] = (False, True),
    ) -> Iterator[Case]:
        """Every case, size by size; other sizes and loads where some are given."""
        for jobs, nodes in sizes or self.sizes:
            for load in loads or self.loads:
                for storage in storages:
                    for seed in seeds:
                        yield Case(self.family, jobs, nodes, load, storage, seed)


SETS: dict[str, Set] = {
    "headline": Set("headline", ((50, 300),), (0.5, 0.8, 1.1)),
    "busy": Set("busy", ((50, 40), (200, 100), (500, 300)), (0.8, 1.1)),
    "scale": Set("scale", ((500, 1000), (2000, 1000), (5000, 3000), (20000, 10000)), (0.8,)),
    "mixed": Set("mixed", ((20, 14), (50, 40), (200, 100)), (0.5, 0.8)),
    "contended": Set("contended", ((20, 14), (50, 40), (200, 100)), (0.8, 1.1)),
}
SMOKE = Set("busy", ((6, 12),), (0.5,))
