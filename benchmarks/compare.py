"""The planner against its rivals: the same instances, the same time limit, the same threads, in one run.

    python -m benchmarks.compare headline --seeds 5 --time-limit 5
    python -m benchmarks.compare busy --sizes 50x40,200x100 --loads 1.1 --storage off --solvers fast,cpsat
    python -m benchmarks.compare headline --table         the tables anew from what is recorded, nothing is run
    python -m benchmarks.compare --smoke                  a tiny instance, a few seconds, nothing is kept

Each run is one line of benchmarks/results/compare-SET.jsonl, written when it is over; a run that is there already, from
the same commit, is not made again. The tables are compare-SET.md beside it. What is the best known of an instance goes
to benchmarks/best_known.csv. Exit 1 where a bound lies above a plan: somebody's proof or plan is wrong.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.best_known import BestKnown, Contradiction
from benchmarks.common import RESULTS, append_line, commit, floats, machine, made_by, read_lines, write_whole
from benchmarks.running import GAPS, SOLVERS, Job, run_apart
from benchmarks.sets import SETS, SMOKE, Case
from benchmarks.tables import tables_of

DEFAULT_SOLVERS = (
    "fast", "shell", "highs_alone", "cpsat", "edf", "weight", "pressure", "random_greedy", "local_search",
    "path_relinking", "cheapest_cloud",
)  # fmt: skip
Key = tuple[str, str, float, int, str]
"""Instance hash, solver, time limit, threads, commit."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the arguments ask for; the exit code."""
    options = _parser().parse_args(arguments)
    if options.smoke:
        with tempfile.TemporaryDirectory() as folder:
            cases = list(SMOKE.cases((1,), storages=(True,)))
            options.solvers, options.time_limit = ("fast", "shell", "cpsat", "pressure"), min(options.time_limit, 1.5)
            return _compare("smoke", cases, options, Path(folder), BestKnown(Path(folder) / "best_known.csv"))
    if options.set is None:
        _parser().error("name a set, or give --smoke")
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    storages = {"both": (False, True), "on": (True,), "off": (False,)}[options.storage]
    cases = list(SETS[options.set].cases(seeds, options.sizes, options.loads, storages))
    return _compare(options.set, cases, options, options.results, BestKnown())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("set", nargs="?", choices=SETS, help="the set of instances")
    parser.add_argument("--seeds", type=int, default=5, metavar="N", help="instances of each size, load and kind")
    parser.add_argument("--first-seed", type=int, default=1, metavar="N", help="seed of the first of them")
    parser.add_argument("--time-limit", type=float, default=5.0, metavar="S", help="seconds for each run")
    parser.add_argument("--threads", type=int, default=2, metavar="N", help="threads for each run")
    parser.add_argument("--gap", type=float, default=1e-4, help="proven gap at which our engines stop")
    parser.add_argument("--solvers", type=_solvers, default=DEFAULT_SOLVERS, help=f"some of {', '.join(SOLVERS)}")
    parser.add_argument("--sizes", type=_sizes, default=(), metavar="JxN,..", help="other sizes than those of the set")
    parser.add_argument("--loads", type=floats, default=(), metavar="X,..", help="other loads than those of the set")
    parser.add_argument("--storage", choices=("both", "on", "off"), default="both")
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="DIR", help="folder of the results")
    parser.add_argument("--again", action="store_true", help="make runs that are recorded, too")
    parser.add_argument("--table", action="store_true", help="only the tables, from what is recorded")
    parser.add_argument("--smoke", action="store_true", help="a tiny instance, nothing is kept")
    return parser


def _solvers(text: str) -> tuple[str, ...]:
    names = tuple(text.split(","))
    unknown = [name for name in names if name not in SOLVERS]
    if unknown:
        raise argparse.ArgumentTypeError(f"{', '.join(unknown)}: not among {', '.join(SOLVERS)}")
    return names


def _sizes(text: str) -> tuple[tuple[int, int], ...]:
    return tuple((int(jobs), int(nodes)) for jobs, nodes in (size.split("x") for size in text.split(",")))


def _compare(name: str, cases: list[Case], options: argparse.Namespace, results: Path, known: BestKnown) -> int:
    path = results / f"compare-{name}.jsonl"
    failed = False
    if not options.table:
        recorded = set() if options.again else {_key(record) for record in read_lines(path)}
        for record in _runs(cases, options, recorded, known):
            append_line(path, record)
            failed |= _learn(known, record)
            print(_line(record), flush=True)
    _write_tables(name, results, path, options, known, {case.group for case in cases})
    return int(failed)


def _runs(
    cases: list[Case], options: argparse.Namespace, recorded: set[Key], known: BestKnown
) -> Iterator[dict[str, Any]]:
    """The records of all runs that are not there yet."""
    made, where = commit(), machine()
    for case in cases:
        instance = case.make()
        content_hash = instance.content_hash
        known.of(instance.name, content_hash)  # a changed instance is told before hours are spent on it
        for solver in options.solvers:
            key = (content_hash, solver, options.time_limit, options.threads, made)
            if key in recorded:
                continue
            record = run_apart(Job(case, solver, options.time_limit, options.threads, options.gap))
            yield {
                "instance": instance.name,
                "hash": content_hash,
                "family": case.family,
                "jobs": case.jobs,
                "nodes": case.nodes,
                "load": case.load,
                "storage": case.storage,
                "seed": case.seed,
                "solver": solver,
                "time_limit_s": options.time_limit,
                "threads": options.threads,
                "commit": made,
                "machine": where,
                "made": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                **record,
            }


def _key(record: dict[str, Any]) -> Key:
    return (record["hash"], record["solver"], record["time_limit_s"], record["threads"], record["commit"])


def _learn(known: BestKnown, record: dict[str, Any]) -> bool:
    """Whether the record contradicts what is known."""
    slots = f", {record['slots']} slots" if record["slots"] else ""
    by = f"{record['solver']}, {record['time_limit_s']:g} s{slots}"
    try:
        known.learn(record["instance"], record["hash"], record["cost"], record["bound"], by, record["commit"])
    except Contradiction as error:
        print(f"CONTRADICTION: {error}", file=sys.stderr, flush=True)
        return True
    return False


def _line(record: dict[str, Any]) -> str:
    """A run on a line, for whoever watches."""
    cost = "no plan" if record["cost"] is None else f"{record['cost']:.2f}"
    gap = "" if record["gap"] is None else f", gap {record['gap']:.2%}"
    wall = "" if record["wall_s"] is None else f", {record['wall_s']:.2f} s"
    note = f" ({record['note']})" if record["note"] else ""
    return f"{record['instance']} {record['solver']}: {cost}{gap}{wall}{note}"


def _write_tables(
    name: str,
    results: Path,
    path: Path,
    options: argparse.Namespace,
    known: BestKnown,
    groups: set[tuple[Any, ...]],
) -> None:
    """The tables of all that is recorded with so many threads; those of the newest run of each kind."""
    newest: dict[tuple[Any, ...], dict[str, Any]] = {}
    for record in read_lines(path):
        if record["threads"] == options.threads:
            newest[record["hash"], record["solver"], record["time_limit_s"]] = record
    if not newest:
        print("nothing is recorded", file=sys.stderr)
        return
    bounds = {row.hash: row.bound for row in known.rows.values() if row.bound is not None}
    lines = tables_of(newest.values(), bounds)
    commits = sorted({record["commit"] for record in newest.values()})
    made = made_by() if not options.table else f"Machine: {next(iter(newest.values()))['machine']}."
    if options.table or len(commits) > 1:
        made = f"{made.split(' Commit ')[0]} Commit {', '.join(commits)}."
    command = f"python -m benchmarks.compare {name} --threads {options.threads}"
    head = [
        f"# {name}: the planner against its rivals",
        "",
        f"`{command}`, with the `--time-limit` of each table: medians over its seeds. {made}",
        "",
        f"Gaps to which the time is taken: {', '.join(f'{gap:.1%}' for gap in GAPS)}. Incumbents of highs_alone and "
        "cpsat over time are those of models that count nodes by pool, which flatters them by what placing costs.",
        "",
    ]
    write_whole(results / f"compare-{name}.md", "\n".join([*head, *lines]))
    shown = [line for line in tables_of(_of(newest, groups), bounds) if line]
    print("\n".join(shown))


def _of(newest: dict[tuple[Any, ...], dict[str, Any]], groups: set[tuple[Any, ...]]) -> list[dict[str, Any]]:
    names = ("family", "jobs", "nodes", "load", "storage")
    return [record for record in newest.values() if tuple(record[name] for name in names) in groups]


if __name__ == "__main__":
    sys.exit(main())
