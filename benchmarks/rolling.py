"""Policies as jobs arrive: the published workload and two traces, every policy in the same world.

    python -m benchmarks.rolling reference --seeds 5
    python -m benchmarks.rolling restart --policies fast,small_then_large --workers 2
    python -m benchmarks.rolling reference --bounds       bounds with all arrivals known, for the table
    python -m benchmarks.rolling --table                  the tables anew from what is recorded, nothing is run
    python -m benchmarks.rolling --smoke                  a tiny instance, a few seconds, nothing is kept

Each run is a process of its own and one line of benchmarks/results/rolling.jsonl, written when it is over; a run that
is there already is not made again, so a run of the program that was ended goes on where it was. The tables are
rolling.md beside it. Every simulated schedule is replayed by code of its own before it counts.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

from benchmarks.common import RESULTS, append_line, commit, made_by, read_lines, write_whole
from benchmarks.offline import offline_bound
from benchmarks.rolling_tables import tables_of
from benchmarks.trace_workloads import TraceWorkload
from benchmarks.workloads import ARRIVALS, Arrivals, Workload, alone_cost
from models.domain import Instance

LISTS = ("fifo", "edf", "priority")
NODES = ("fifo_node", "edf_node", "priority_node")
SEARCHES = ("pressure", "random_greedy", "local_search", "path_relinking")
SIMPLE = ("easy", "one_small", "small_then_large")
POLICIES = ("fast", *LISTS, *NODES, *SIMPLE, *SEARCHES)
RENTING = ("fast", "edf", "cheapest_cloud", "burst_after_waiting")
PACES = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0)
RESTARTS_MIN = (0.0, 2.0, 10.0)
Record = dict[str, Any]


@dataclass(frozen=True)
class Run:
    """One policy in one world."""

    set: str
    workload: str
    """`philly`, `itp`, or how the jobs of the published workload arrive."""
    nodes: int
    k: int
    policy: str
    jobs: int
    small: float = 0.0
    pace: float = 1.0
    slot: float = 1800.0
    rentable: bool = False
    burst: bool = False
    """Whether what is rentable may be rented."""
    restart_min: float = 0.0
    elastic: bool = True
    """Whether our engines may change a job's mode as it runs."""

    @property
    def key(self) -> str:
        """What makes it the same run."""
        return json.dumps(asdict(self), sort_keys=True)

    def make(self) -> Instance:
        """The instance of its world."""
        if self.workload in ("philly", "itp"):
            trace = cast(Any, self.workload)
            return TraceWorkload(trace, self.nodes, self.k, self.jobs, self.rentable, self.slot).make()
        arrivals = cast(Arrivals, self.workload)
        return Workload(
            self.nodes, arrivals, self.k, self.jobs, self.small, self.rentable, pace=self.pace, slot=self.slot
        ).make()


def _reference(ks: Sequence[int]) -> Iterator[Run]:
    """Every kind of arrivals on 10 nodes and 10 jobs a node, all policies."""
    for arrivals in ARRIVALS:
        if arrivals != "fifty":
            yield from (Run("reference", arrivals, 10, k, policy, 100) for k in ks for policy in POLICIES)


def _large(ks: Sequence[int]) -> Iterator[Run]:
    """50, 100 and 300 nodes."""
    for nodes in (50, 100, 300):
        for arrivals in ARRIVALS:
            if arrivals != "fifty":
                yield from (
                    Run("large", arrivals, nodes, k, policy, min(10 * nodes, 300))
                    for k in ks
                    for policy in ("fast", *LISTS, *NODES, "one_small", "small_then_large", "pressure")
                )


def _fifty(ks: Sequence[int]) -> Iterator[Run]:
    """300 nodes and about 50 jobs at a time."""
    policies = ("fast", *LISTS, *NODES, *SIMPLE, "pressure")
    yield from (Run("fifty", "fifty", 300, k, policy, 200) for k in ks for policy in policies)
    yield from (Run("fifty", "fifty", 300, k, "fast", 200, elastic=False) for k in ks)


def _small(ks: Sequence[int]) -> Iterator[Run]:
    """A part of the jobs on shares of GPUs."""
    for arrivals in ("contended", "relaxed"):
        yield from (Run("small", arrivals, 10, k, policy, 100, small=0.5) for k in ks for policy in POLICIES)


def _burst(ks: Sequence[int]) -> Iterator[Run]:
    """With rented nodes beside the owned ones and without, over the load."""
    for pace in PACES:
        for k in ks:
            for policy in RENTING:
                yield Run("burst", "relaxed", 10, k, policy, 100, pace=pace, rentable=True, burst=True)
            for policy in ("fast", "edf"):
                yield Run("burst", "relaxed", 10, k, policy, 100, pace=pace, rentable=True, burst=False)


def _restart(ks: Sequence[int]) -> Iterator[Run]:
    """Restarts that take time."""
    for minutes in RESTARTS_MIN:
        for arrivals in ("relaxed", "contended"):
            for policy in ("fast", "edf", "one_small", "small_then_large", "pressure"):
                yield from (Run("restart", arrivals, 10, k, policy, 100, restart_min=minutes) for k in ks)
            yield from (Run("restart", arrivals, 10, k, "fast", 100, restart_min=minutes, elastic=False) for k in ks)


def _traces(ks: Sequence[int]) -> Iterator[Run]:
    """Two public traces."""
    for k in ks:
        for policy in POLICIES:
            yield Run("traces", "philly", 4, k, policy, 100, slot=600.0)
            yield Run("traces", "itp", 16, k, policy, 100, slot=600.0)


SETS = {
    "reference": _reference,
    "fifty": _fifty,
    "small": _small,
    "burst": _burst,
    "restart": _restart,
    "traces": _traces,
    "large": _large,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the arguments ask for; the exit code."""
    options = _parser().parse_args(arguments)
    if options.one is not None:
        print(json.dumps(measured(Run(**json.loads(options.one))), allow_nan=False))
        return 0
    if options.smoke:
        for policy in ("fast", "edf", "small_then_large"):
            record = run_apart(Run("smoke", "contended", 2, 1, policy, 8), options.most_s)
            print(f"{policy}: {record['cost']}, alone {record['alone']}")
        return 0
    path, bounds = options.results / "rolling.jsonl", options.results / "rolling-bounds.jsonl"
    if options.bounds:
        _bound_all(options, bounds)
    elif not options.table:
        _run_all(options, path)
    known = {record["hash"]: record["bound"] for record in read_lines(bounds)}
    lines = tables_of(list(read_lines(path)), known, made_by())
    write_whole(options.results / "rolling.md", "\n".join(lines).rstrip() + "\n")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", metavar="SET", help=f"of {', '.join(SETS)}; none: all")
    parser.add_argument("--seeds", type=int, default=5, metavar="N", help="instances of each kind")
    parser.add_argument("--first-seed", type=int, default=1, metavar="N", help="k of the first of them")
    parser.add_argument("--policies", metavar="NAMES", help="only these, with commas between them")
    parser.add_argument("--arrivals", metavar="NAMES", help="only these workloads, with commas between them")
    parser.add_argument("--nodes", type=int, metavar="N", help="only instances of so many nodes")
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="runs at a time")
    parser.add_argument("--most-s", type=float, default=7200.0, metavar="S", help="a run that takes longer is ended")
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="DIR")
    parser.add_argument("--bounds", action="store_true", help="no runs, but the bounds of their instances")
    parser.add_argument("--table", action="store_true", help="only the tables")
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--one", metavar="JSON", help=argparse.SUPPRESS)
    return parser


def _wanted(options: argparse.Namespace) -> list[Run]:
    """The runs that are asked for, seed by seed, so that a part of the whole is one too."""
    ks = range(options.first_seed, options.first_seed + options.seeds)
    unknown = [name for name in options.sets if name not in SETS]
    if unknown:
        raise SystemExit(f"no such set: {', '.join(unknown)}; there are {', '.join(SETS)}")
    runs = [run for name in options.sets or SETS for run in SETS[name](ks) if _is_wanted(run, options)]
    return sorted(runs, key=lambda run: run.k)


def _run_all(options: argparse.Namespace, path: Path) -> None:
    done = {record["key"] for record in read_lines(path) if record["cost"] is not None}
    left = [run for run in _wanted(options) if run.key not in done]
    begun = time.monotonic()
    with ThreadPoolExecutor(options.workers) as workers:
        made = (workers.submit(run_apart, run, options.most_s) for run in left)
        for number, future in enumerate(as_completed(list(made)), 1):
            record = future.result()
            append_line(path, record)
            said = record["note"] or f"{record['cost']:.1f}, alone {record['alone']:.1f}, {record['wall_s']:.0f} s"
            name = f"{record['set']} {record['workload']} {record['nodes']} k{record['k']} {record['policy']}"
            print(f"{number} of {len(left)}, {time.monotonic() - begun:.0f} s: {name}: {said}", flush=True)


def _bound_all(options: argparse.Namespace, path: Path) -> None:
    done = {record["hash"] for record in read_lines(path)}
    for run in _wanted(options):
        instance = run.make()
        if instance.content_hash in done:
            continue
        done.add(instance.content_hash)
        record = {"hash": instance.content_hash, "name": instance.name, "bound": offline_bound(instance)}
        append_line(path, record)
        print(f"{instance.name}: {record['bound']:.1f}, alone {alone_cost(instance):.1f}", flush=True)


def _is_wanted(run: Run, options: argparse.Namespace) -> bool:
    return (
        (options.policies is None or run.policy in options.policies.split(","))
        and (options.arrivals is None or run.workload in options.arrivals.split(","))
        and (options.nodes is None or run.nodes == options.nodes)
    )


def run_apart(run: Run, most_s: float) -> Record:
    """The record of a run in its own process; one that says why where there is none."""
    empty = {**asdict(run), "key": run.key, "commit": commit(), "cost": None}
    command = [sys.executable, "-m", "benchmarks.rolling", "--one", json.dumps(asdict(run))]
    root = Path(__file__).parent.parent
    try:
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=most_s, check=False)
    except subprocess.TimeoutExpired:
        return empty | {"note": f"ended after {most_s:.0f} s"}
    lines = done.stdout.splitlines()
    if done.returncode or not lines:
        last = done.stderr.strip().splitlines()[-1:] or ["no output"]
        return empty | {"note": f"exit {done.returncode}: {last[0]}"[:300]}
    record: Record = empty | json.loads(lines[-1])
    return record


def measured(run: Run) -> Record:
    """The record of a run in this process."""
    from planner.simulation.chance import Options
    from planner.simulation.registry import POLICIES as MADE
    from planner.simulation.registry import PolicyOptions
    from planner.simulation.replayed import replayed
    from planner.simulation.run import simulate

    instance = run.make()
    policy = MADE[run.policy](PolicyOptions(elastic=run.elastic))
    options = Options(may_burst=run.burst, restart_s=60.0 * run.restart_min)
    begun = time.monotonic()
    outcome = replayed(instance, simulate(instance, policy, options))
    summary = outcome.summary()
    penalty = summary["costs"]["tardiness"]
    return {
        "cost": summary["cost"],
        "run_cost": summary["cost"] - penalty,
        "penalty": penalty,
        "alone": alone_cost(instance),
        "late": summary["late_jobs"],
        "moves": summary["moves"],
        "replans": summary["replans"],
        "replan_s": summary["replan_s"],
        "fallbacks": getattr(policy, "fallbacks", None),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "wall_s": time.monotonic() - begun,
        "hash": instance.content_hash,
        "note": "",
    }


if __name__ == "__main__":
    raise SystemExit(main())
