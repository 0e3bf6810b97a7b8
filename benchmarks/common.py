"""What the benchmark programs share: where results go and how they get there, the machine, the commit, and what a plan
makes of the nodes."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from models.domain import Instance, Plan
from planner.solve import versions

RESULTS = Path(__file__).parent / "results"


def machine() -> str:
    """The processor, cores, system and versions."""
    model = next(
        (
            line.split(":")[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.processor(),
    )
    stack = ", ".join(f"{name} {version}" for name, version in versions().items())
    return f"{model}, {os.cpu_count()} cores, {platform.system()}; {stack}"


def commit() -> str:
    """The commit that is measured, marked where the tree differs from it."""
    root = Path(__file__).parent.parent
    done = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=root, capture_output=True, text=True, check=False
    )
    return done.stdout.strip() or "unknown"


def made_by() -> str:
    """The sentences of a result on where it was made."""
    return f"Machine: {machine()}. Commit {commit()}."


def floats(text: str) -> tuple[float, ...]:
    """An argument of numbers with commas between them."""
    return tuple(map(float, text.split(",")))


def exit_code(contradictions: Sequence[str]) -> int:
    """That of a program which found these, told on stderr."""
    for contradiction in contradictions:
        print(contradiction, file=sys.stderr)
    return int(bool(contradictions))


def write_whole(path: Path, text: str) -> None:
    """A file with this text, or the file as it was."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    part.write_text(text, encoding="utf-8")
    os.replace(part, path)


def append_line(path: Path, record: dict[str, Any]) -> None:
    """A record as one line at the end of a file, whole or not at all; what an earlier run left half written goes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    line = (json.dumps(record, allow_nan=False, separators=(",", ":")) + "\n").encode()
    with open(path, "ab+") as file:
        end = file.seek(0, os.SEEK_END)
        file.seek(0)
        whole = file.read().rfind(b"\n") + 1
        if whole < end:
            file.truncate(whole)
        file.write(line)
        file.flush()
        os.fsync(file.fileno())


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The records of a file; a last line that was not finished is passed over."""
    if not path.exists():
        return
    text = path.read_bytes()
    for line in text[: text.rfind(b"\n") + 1].splitlines():
        if line.strip():
            yield json.loads(line)


@dataclass(frozen=True)
class Use:
    """What a plan makes of the nodes."""

    utilisation: float
    """GPU-hours of runs on owned nodes over the owned GPU-hours from the first release to the last due date."""
    burst_share: float
    """GPU-hours on rented nodes over all."""
    late_share: float
    """Jobs that complete after their due date, of all jobs."""


def use_of(instance: Instance, plan: Plan) -> Use:
    """Counted from the plan's runs; a share of a GPU counts as its slices."""
    pools = {pool.id: pool for pool in instance.pools}
    owned = {site.id for site in instance.sites if site.kind == "on_prem"}
    begin = min((job.release for job in instance.jobs), default=0.0) / instance.slot
    end = max((job.due for job in instance.jobs if job.due is not None), default=0.0) / instance.slot
    rented = inside = total = 0.0
    for run in plan.runs:
        for segment in run.segments:
            pool = pools[segment.pool]
            gpus = sum(len(place.gpus) for place in segment.places) * segment.slices / pool.slices_per_gpu
            total += gpus * (segment.end_slot - segment.start_slot)
            if pool.site not in owned:
                rented += gpus * (segment.end_slot - segment.start_slot)
            else:
                inside += gpus * max(0.0, min(segment.end_slot, end) - max(segment.start_slot, begin))
    capacity = sum(pool.gpus_per_node * pool.nodes for pool in instance.pools if pool.site in owned) * (end - begin)
    late = sum(run.tardiness_h > 1e-9 for run in plan.runs)
    return Use(
        inside / capacity if capacity > 0 else 0.0,
        rented / total if total else 0.0,
        late / len(instance.jobs) if instance.jobs else 0.0,
    )
