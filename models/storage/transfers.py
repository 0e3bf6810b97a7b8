"""What crosses to a site from the homes of its datasets elsewhere: what it costs, and how much the links carry."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Crossed:
    """A link that carries only so much."""

    source: str
    """Site that it leads from."""
    datasets: tuple[int, ...]
    """Indices of those that are at home there."""
    mb_s: float
    """Most that can be read across."""


@dataclass(frozen=True, eq=False)
class Transfers:
    """Prices of what crosses, and limits on it. Money is per hour: what is paid once or for a whole run is spread over
    the hours for which the site's storage is paid."""

    staged: np.ndarray
    """Money per hour for a copy of all of each dataset, shape (n,); for a part of it in proportion."""
    read: tuple[tuple[float, ...], ...]
    """Money per hour for what each reader of each dataset reads if all of it crosses."""
    links: tuple[Crossed, ...] = ()

    def __post_init__(self) -> None:
        if len(self.staged) != len(self.read):
            raise ValueError("one list of readers for each dataset")
