"""The Philly trace as instances: a window of a virtual cluster's jobs on nodes of one's choice.

The trace has, for each job, when it was submitted, how long it ran, on how many GPUs and in which virtual
cluster. What an instance needs beyond that is made by rule, and every rule is in the report:

- release: the submission, from the beginning of the window. The trace's times have no zone; UTC is assumed.
- duration: the trace's, taken to be measured on the reference type (P100 unless said otherwise). On other GPU
  types it changes with their speed (`hardware.GPU_TYPES`); on half and double the GPUs, which jobs of more
  than one GPU may use too, with the measured scaling of ResNet-50 (`hardware.SCALING`).
- share: a job of one GPU and at most `share_below_hours` may run on a quarter or a half of one, slower by
  U(1, 11) or U(1, 5) %; drawn.
- due: the first slot edge from the release on, + U(1.5, 5) times the fastest duration in whole slots, so that a
  job that starts at once is on time however short it is; drawn.
- weight: `weight_per_gpu` for each GPU asked for, per hour of tardiness.
- nodes: of the types and numbers asked for, at the prices of `hardware.GPU_TYPES`; owned ones need no boot.

Jobs that cannot be used are dropped, each for one reason, and counted.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from models.domain import Instance
from models.domain.modes import slots_of
from models.domain.rules import suggest
from models.errors import Fault, InvalidInput
from planner.hardware import ENERGY_PRICE, GPU_TYPES, gpu_type, pool_record, speed_up
from planner.io.texts import LIMIT, read_text, refuse, show

COLUMNS = ("timestamp", "duration", "num_gpus", "cluster")
_POOL = re.compile(r"\s*([A-Za-z][A-Za-z0-9]*)\s*:\s*(\d{1,4})\s*x\s*(\d{1,6})\s*")
_SCALING = "ResNet-50"
# Longest an auto horizon should have to be; the trace has jobs of 53 days.
_MAX_HOURS = 72.0


@dataclass(frozen=True)
class ImportReport:
    """What became of the rows of a trace. rows_read = rows_kept + the sum of dropped."""

    rows_read: int
    rows_kept: int
    dropped: dict[str, int] = field(default_factory=dict)
    """Rows dropped, by reason."""
    assumptions: tuple[str, ...] = ()
    """What the trace does not say and the instance states, a sentence each."""

    def lines(self) -> list[str]:
        """The report as lines of text."""
        kept = f"{self.rows_read} rows read, {self.rows_kept} kept"
        return [
            kept,
            *(f"  dropped, {why}: {count}" for why, count in self.dropped.items()),
            *self.assumptions,
        ]


def parse_pools(text: str, site: str, *, is_cloud: bool = False, flag: str = "--nodes") -> list[dict[str, Any]]:
    """Pool records from `v100:8x200,p100:4x100`: GPU type, GPUs a node, nodes."""
    pools: list[dict[str, Any]] = []
    faults: list[Fault] = []
    for part in text.split(","):
        match = _POOL.fullmatch(part)
        if not match or int(match[2]) == 0 or int(match[3]) == 0:
            mend = "write type:GPUs-per-node x nodes, such as v100:8x200,p100:4x100"
            faults.append(Fault("is not a pool", (flag,), show(part.strip()), mend))
            continue
        try:
            gpu = gpu_type(match[1])
        except InvalidInput as unknown:
            faults += [Fault(f.problem, (flag,), f.value, f.mend) for f in unknown.faults]
            continue
        name = f"{gpu.name.lower()}x{match[2]}-{'cloud' if is_cloud else 'owned'}"
        if any(pool["id"] == name for pool in pools):
            faults.append(Fault("is there twice", (flag,), part.strip(), "add the nodes up"))
            continue
        pools.append(pool_record(name, site, gpu, int(match[2]), int(match[3]), is_cloud=is_cloud))
    if faults:
        raise InvalidInput(faults)
    return pools


def import_philly(
    path: str | Path,
    cluster: str | None,
    since: str | datetime,
    hours: float,
    nodes: str = "p100:4x100,v100:8x200",
    cloud: str | None = "v100:8x20,a100:8x10",
    *,
    seed: int | np.random.Generator = 0,
    jobs: int | None = None,
    max_hours: float = _MAX_HOURS,
    reference: str = "P100",
    due_factors: tuple[float, float] = (1.5, 5.0),
    weight_per_gpu: float = 4.0,
    share_below_hours: float = 1.0,
    slot: float = 1800.0,
) -> tuple[Instance, ImportReport]:
    """An instance of the jobs that `cluster` (None: all) submitted in `hours` after `since`, and a report.

    `since` is ISO 8601, without a zone as in the trace or with one; `jobs` keeps the earliest so many.
    InvalidInput where the file is not such a trace, a name is unknown, or no job is left.
    """
    begin = _begin(since)
    _check_numbers(hours, jobs, max_hours, due_factors, weight_per_gpu, share_below_hours, slot)
    reference_speed = gpu_type(reference).speed
    pools = parse_pools(nodes, "on-prem")
    pools += parse_pools(cloud, "cloud", is_cloud=True, flag="--cloud") if cloud else []
    rows = _read(Path(path))
    _check_cluster(rows, cluster, Path(path))
    frame, dropped = _select(rows, cluster, begin, hours, max_hours, _most_gpus(pools), jobs)
    if frame.empty:
        raise InvalidInput([_nothing_left(rows, cluster, begin, hours, dropped)])
    rng = seed if isinstance(seed, np.random.Generator) else np.random.default_rng(seed)
    factors = rng.uniform(*due_factors, size=len(frame))
    slowdowns = np.round(rng.uniform([1.01, 1.01], [1.11, 1.05], size=(len(frame), 2)), 3)
    records = []
    columns = (frame[name].tolist() for name in ("offset", "seconds", "gpus"))
    for k, (line, release, duration, asked) in enumerate(zip(frame.index.tolist(), *columns, strict=True)):
        gpus = int(asked)
        modes = _modes(gpus, duration, pools, reference_speed)
        patience = float(factors[k]) * slot * slots_of(min(mode["duration"] for mode in modes), slot)
        if gpus == 1 and duration <= share_below_hours * 3600:
            modes += [
                {"gpu": mode["gpu"], "share": share, "duration": mode["duration"], "slowdown": float(slow)}
                for mode in list(modes)
                for share, slow in zip((0.25, 0.5), slowdowns[k], strict=True)
            ]
        records.append(
            {
                # The line of the trace, so that a job can be found again.
                "id": f"line-{line}",
                "release": release,
                "due": slot * math.ceil(release / slot) + float(round(patience)),
                "weight": round(weight_per_gpu * gpus, 4),
                "modes": modes,
            }
        )
    label = cluster if cluster is not None and re.fullmatch(r"[\w.-]{1,60}", cluster) else "trace"
    sites: list[dict[str, Any]] = [{"id": "on-prem", "kind": "on_prem", "energy_price": ENERGY_PRICE}]
    sites += [{"id": "cloud", "kind": "cloud"}] if cloud else []
    instance = Instance.model_validate(
        {
            "name": f"philly-{label}-{begin:%Y%m%dT%H%M}-{hours:g}h",
            "currency": "USD",
            "start": begin,
            "slot": slot,
            "sites": sites,
            "pools": pools,
            "jobs": records,
        }
    )
    assumptions = _assumptions(reference, due_factors, weight_per_gpu, share_below_hours, cloud, seed)
    return instance, ImportReport(len(rows), len(frame), dropped, assumptions)


def _begin(since: str | datetime) -> datetime:
    """The beginning of the window in UTC, the zone that is assumed of the trace."""
    if isinstance(since, str):
        try:
            since = datetime.fromisoformat(since.strip())
        except ValueError:
            mend = "write ISO 8601 such as 2017-10-09T06:00:00"
            raise InvalidInput([Fault("is not a time", ("--from",), show(since), mend)]) from None
    begin = since.replace(tzinfo=UTC) if since.tzinfo is None else since.astimezone(UTC)
    return begin.replace(microsecond=0)


def _check_numbers(
    hours: float,
    jobs: int | None,
    max_hours: float,
    due_factors: tuple[float, float],
    weight_per_gpu: float,
    share_below_hours: float,
    slot: float,
) -> None:
    faults = []
    for name, number in (("--hours", hours), ("--max-hours", max_hours), ("slot", slot)):
        if not (math.isfinite(number) and number > 0):
            faults.append(Fault("is not a number above 0", (name,), f"{number:g}", "give a positive one"))
    for name, number in (("weight_per_gpu", weight_per_gpu), ("share_below_hours", share_below_hours)):
        if not (math.isfinite(number) and number >= 0):
            faults.append(Fault("is not a number from 0", (name,), f"{number:g}", "give 0 or more"))
    low, high = due_factors
    if not (0 < low <= high and math.isfinite(high)):
        faults.append(Fault("is not a range above 0", ("due_factors",), f"{low:g} to {high:g}", "such as 1.5 to 5"))
    if jobs is not None and jobs < 1:
        faults.append(Fault("is less than 1", ("--jobs",), str(jobs), "leave it out to keep all"))
    if faults:
        raise InvalidInput(faults)


def _read(path: Path) -> pd.DataFrame:
    """All rows as text, indexed by their line; the columns that are used and no others."""
    mend = f"give the CSV of the trace with the columns {', '.join(COLUMNS)}"
    reader = csv.reader(io.StringIO(read_text(path, LIMIT), newline=""))
    lines, cells = [], []
    try:
        header = [name.strip() for name in next(reader, [])]
        missing = [name for name in COLUMNS if name not in header]
        if missing:
            found = show(", ".join(header), 200)
            raise refuse(path, f"has no column {', '.join(missing)}; its first line is: {found}", mend)
        columns = [header.index(name) for name in COLUMNS]
        # By hand: a ragged row is a row to be counted, where a parser of tables stops or skips.
        for row in reader:
            if any(cell.strip() for cell in row):
                lines.append(reader.line_num)
                cells.append([row[i].strip() if i < len(row) else "" for i in columns])
    except csv.Error as fault:
        raise refuse(path, f"is not CSV: {fault}", mend) from None
    return pd.DataFrame(cells, index=pd.Index(lines, name="line"), columns=list(COLUMNS), dtype=str)


def _check_cluster(rows: pd.DataFrame, cluster: str | None, path: Path) -> None:
    if cluster is not None and cluster not in (known := set(rows["cluster"]) - {""}):
        mend = suggest(cluster, {show(name, 40) for name in known})
        if not mend.startswith("did"):
            # Not close to any: those with most jobs are the likely ones.
            most = rows["cluster"].value_counts().index[:8]
            mend = "those with most jobs: " + ", ".join(show(name, 40) for name in most)
        raise InvalidInput([Fault("is not a cluster of the trace", ("--cluster",), show(cluster), mend, str(path))])


def _select(
    rows: pd.DataFrame,
    cluster: str | None,
    begin: datetime,
    hours: float,
    max_hours: float,
    most_gpus: int,
    jobs: int | None,
) -> tuple[pd.DataFrame, dict[str, int]]:
    """The rows to keep in order of submission, and how many were dropped for each (the first) reason."""
    times = pd.to_datetime(rows["timestamp"], errors="coerce", utc=True, format="ISO8601")
    offset = (times - pd.Timestamp(begin)).dt.total_seconds()
    seconds = pd.to_numeric(rows["duration"], errors="coerce")
    gpus = pd.to_numeric(rows["num_gpus"], errors="coerce")
    other = pd.Series(False, index=rows.index) if cluster is None else rows["cluster"] != cluster
    # Other clusters first: what is wrong with their rows is nobody's concern here.
    reasons: list[tuple[str, pd.Series]] = [
        ("other cluster", other),
        ("unparsable timestamp", times.isna()),
        ("before the window", offset < 0),
        ("after the window", offset >= hours * 3600),
        ("missing or unreadable duration", seconds.isna() | np.isinf(seconds)),
        ("zero duration", seconds == 0),
        ("negative duration", seconds < 0),
        (f"longer than {max_hours:g} hours", seconds > max_hours * 3600),
        ("missing or unreadable GPUs", gpus.isna() | (gpus % 1 != 0) | (gpus < 0)),
        ("zero GPUs", gpus == 0),
        ("more GPUs than any pool has", gpus > most_gpus),
    ]
    dropped: dict[str, int] = {}
    left = pd.Series(True, index=rows.index)
    for reason, holds in reasons:
        hit = left & holds
        if count := int(hit.sum()):
            dropped[reason] = count
        left &= ~hit
    frame = pd.DataFrame({"offset": offset, "seconds": seconds, "gpus": gpus})[left]
    frame = frame.sort_values("offset", kind="stable")
    if jobs is not None and len(frame) > jobs:
        dropped["beyond --jobs"] = len(frame) - jobs
        frame = frame.head(jobs)
    return frame, dropped


def _nothing_left(
    rows: pd.DataFrame, cluster: str | None, begin: datetime, hours: float, dropped: dict[str, int]
) -> Fault:
    mine = rows if cluster is None else rows[rows["cluster"] == cluster]
    times = pd.to_datetime(mine["timestamp"], errors="coerce", utc=True, format="ISO8601").dropna()
    spans = "no row has a readable time"
    if not times.empty:
        spans = f"its jobs were submitted from {times.min().isoformat()} to {times.max().isoformat()}"
    counts = ", ".join(f"{why} {count}" for why, count in dropped.items()) or "the file has no rows"
    window = f"{hours:g} h from {begin:%Y-%m-%dT%H:%M:%S}"
    problem = f"no job is left of {f'cluster {show(cluster)}' if cluster is not None else 'the trace'} ({counts})"
    return Fault(problem, ("--from",), window, f"move the window: {spans}")


def _most_gpus(pools: Sequence[dict[str, Any]]) -> int:
    return max(int(pool["gpus_per_node"]) * int(pool["nodes"]) for pool in pools)


def _modes(gpus: int, duration: float, pools: Sequence[dict[str, Any]], reference_speed: float) -> list[dict[str, Any]]:
    """Whole-GPU modes on every type: as asked for, and on half and double the GPUs if that is several."""
    counts = [gpus] if gpus == 1 else [math.ceil(gpus / 2), gpus, 2 * gpus]
    alone = speed_up(_SCALING, gpus)
    modes = []
    for name in dict.fromkeys(str(pool["gpu"]) for pool in pools):
        capacity = _most_gpus([pool for pool in pools if pool["gpu"] == name])
        for count in counts:
            if count <= capacity:
                speed = GPU_TYPES[name].speed / reference_speed * speed_up(_SCALING, count) / alone
                seconds = max(1.0, float(round(duration / speed)))
                modes.append({"gpu": name, "gpus": count, "duration": seconds})
    if not modes:
        raise AssertionError("a job larger than every pool was not dropped")
    return modes


def _assumptions(
    reference: str,
    due_factors: tuple[float, float],
    weight_per_gpu: float,
    share_below_hours: float,
    cloud: str | None,
    seed: int | np.random.Generator,
) -> tuple[str, ...]:
    name = gpu_type(reference).name
    ratios = ", ".join(f"{gpu.name} {gpu.speed / GPU_TYPES[name].speed:.2f}" for gpu in GPU_TYPES.values())
    drawn = f"seed {seed}" if isinstance(seed, int) else "a given generator"
    lines = [
        "Times of the trace have no zone; UTC is assumed.",
        f"Durations are taken as measured on {name}; speeds relative to it: {ratios} (ResNet-50 on one GPU).",
        "Jobs of several GPUs may run on half and double as many, at ResNet-50's measured scaling on A100.",
        f"Jobs of one GPU and at most {share_below_hours:g} h may take a quarter or a half of it,"
        f" slower by U(1, 11) or U(1, 5) % ({drawn}).",
        f"Due: first slot edge from the release on + U({due_factors[0]:g}, {due_factors[1]:g}) x the fastest duration"
        f" in whole slots ({drawn}).",
        f"An hour of tardiness costs {weight_per_gpu:g} USD for each GPU asked for.",
        "An owned node costs the lowest price listed for its type; energy 0.17 USD/kWh, half of it at night.",
        "Memory, CPU cores and data are not in the trace, so nothing of them limits the plan.",
    ]
    if cloud:
        lines.append("Cloud nodes at on-demand list prices, billed by the hour, ten minutes to boot.")
    return tuple(lines)
