"""Job, Mode, Pool, Site, Dataset, Instance, Plan: frozen, validated, without files and solvers."""

from models.domain.entities import (
    Dataset,
    Job,
    Link,
    ModeEntry,
    Place,
    Pool,
    Running,
    Site,
    Storage,
    TariffPiece,
    TariffPoint,
    Throughput,
    Unavailable,
    ValueStep,
)
from models.domain.fields import MAX_SLOTS
from models.domain.instance import FORMAT, Head, Instance
from models.domain.plan import (
    COST_TERMS,
    Bandwidth,
    CachedDataset,
    NodeOn,
    Plan,
    Run,
    Segment,
    relative_gap,
)

__all__ = [
    "COST_TERMS",
    "FORMAT",
    "MAX_SLOTS",
    "Bandwidth",
    "CachedDataset",
    "Dataset",
    "Head",
    "Instance",
    "Job",
    "Link",
    "ModeEntry",
    "NodeOn",
    "Place",
    "Plan",
    "Pool",
    "Run",
    "Running",
    "Segment",
    "Site",
    "Storage",
    "TariffPiece",
    "TariffPoint",
    "Throughput",
    "Unavailable",
    "ValueStep",
    "relative_gap",
]
