"""The replay passes what was simulated, and finds whatever is changed in it."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from models.check.replay import replay
from models.domain import Instance
from planner.simulation.chance import Options
from planner.simulation.registry import POLICIES, PolicyOptions
from planner.simulation.run import simulate
from planner.simulation.trace import Caching, Happening, Outage, Power, Repricing, Stretch, Trace
from tests.documents import HOUR, Doc, document
from tests.engines.samples import mode, running, share

TARIFF = {"default": 2.0, "windows": [{"since": "22:00", "until": "06:00", "price": 0.5}]}
POLICY_NAMES = [name for name in POLICIES if name != "exact"]


@cache
def busy() -> Instance:
    """Whole GPUs, a gang, shares, a predecessor, a job that runs, worth and rejection; increments and boots."""
    jobs: list[Doc] = [
        {"modes": [mode(3, 1), mode(1.8, 2)], "running": running("own1", {0: [0]}, movable=True), "restart_cost": 0.3},
        {"modes": [mode(2, 4), mode(2.5, 4, "rent")], "due": 3 * HOUR, "weight": 3.0},
        {"modes": [share(1.5, 0.5), share(1.2, 0.5, "rent", id="rented share")], "release": HOUR, "memory": 6.0},
        {"modes": [share(1.0, 0.5), mode(1.0, 1)], "release": 1.2 * HOUR, "memory": 6.0},
        {"modes": [mode(1, 1), mode(0.7, 2, "rent")], "after": ["j0"], "value": [{"by": 2 * HOUR, "value": 4.0}]},
        {"modes": [mode(4, 2), mode(3, 2, "rent")], "release": 0.3 * HOUR, "due": 4 * HOUR, "weight": 9.0},
        {"modes": [mode(1, 2, "rent")], "release": 2.1 * HOUR, "spot": True,
         "utility": {"shape": "linear", "worth": 5.0, "full_until": 3 * HOUR, "zero_at": 6 * HOUR}},
    ]  # fmt: skip
    return Instance.model_validate(
        document(
            jobs, horizon="auto",
            pools__0__nodes=2, pools__0__slices_per_gpu=2, pools__0__gpu_memory=16.0, pools__0__price=TARIFF,
            pools__0__gpu_power=0.3, pools__0__cpu_cores=8, sites__0__energy_price=0.4,
            pools__1__nodes=4, pools__1__billing_increment=HOUR, pools__1__boot_time=300.0,
        )
    )  # fmt: skip


OPTIONS = (
    Options(),
    Options(seed=1, restart_s=600.0, duration_error=0.4),
    Options(seed=2, mtbf_h=6.0, repair_h=1.0, restart_s=120.0, period_s=1800.0),
    Options(seed=3, price_sigma=0.8, price_h=0.5, duration_error=0.2),
)


@pytest.mark.parametrize("name", POLICY_NAMES)
def test_whatever_is_simulated_passes(name: str) -> None:
    """Every policy, with and without errors, failures and restarts that take time."""
    for options in OPTIONS:
        outcome = simulate(busy(), POLICIES[name](PolicyOptions(work=30, iterations=10)), options)
        assert replay(busy(), outcome.trace) == (), options


@cache
def traces() -> tuple[Trace, ...]:
    """Some that pass."""
    pairs = itertools.product(("pressure", "burst_after_waiting"), OPTIONS)
    return tuple(simulate(busy(), POLICIES[name](PolicyOptions()), options).trace for name, options in pairs)


def changed(trace: Trace, table: str, k: int, **fields: Any) -> Trace:
    """With other fields in a record of a table."""
    records = list(getattr(trace, table))
    records[k] = records[k].model_copy(update=fields)
    return trace.model_copy(update={table: tuple(records)})


def each(table: str, kinds: set[str], **fields: Callable[[Any], Any]) -> Any:
    """A mutation of the first record of a table that it changes."""

    def mutate(trace: Trace) -> Trace | None:
        for k, record in enumerate(getattr(trace, table)):
            new = {name: make(record) for name, make in fields.items()}
            if all(value is not None for value in new.values()):
                return changed(trace, table, k, **new)
        return None

    return mutate, kinds


def without(table: str, kinds: set[str]) -> Any:
    """The first record of a table is left out."""
    return lambda trace: trace.model_copy(update={table: getattr(trace, table)[1:]}), kinds


def other(kinds: set[str], **fields: Callable[[Trace], Any]) -> Any:
    """Other fields of the trace itself."""
    return lambda trace: trace.model_copy(update={name: make(trace) for name, make in fields.items()}), kinds


def moved(places: Any, *, node: int = 0, gpu: int = 0) -> Any:
    """The same places with other indices."""
    return tuple(p.model_copy(update={"node": p.node + node, "gpus": tuple(g + gpu for g in p.gpus)}) for p in places)


MUTATIONS: dict[str, Any] = {
    "earlier": each("stretches", {"node-off", "work", "overlap", "release"}, start_s=lambda s: s.start_s - 500.0),
    "longer": each("stretches", {"work"}, end_s=lambda s: s.end_s + 60.0),
    "backwards": each("stretches", {"times"}, end_s=lambda s: s.start_s - 1.0),
    "more work": each("stretches", {"work"}, work=lambda s: s.work + 0.01),
    "no time": each("stretches", {"senseless"}, start_s=lambda _: float("nan")),
    "another job": each("stretches", {"unknown"}, job=lambda _: "nobody"),
    "another mode": each("stretches", {"unknown-mode"}, mode=lambda _: "fast"),
    "another pool": each("stretches", {"unknown"}, pool=lambda _: "moon"),
    "another speed": each("stretches", {"unknown-speed"}, speed=lambda _: 0.5),
    "another node": each("stretches", {"nodes", "node-off"}, places=lambda s: moved(s.places, node=9)),
    "another GPU": each("stretches", {"gpus"}, places=lambda s: moved(s.places, gpu=3)),
    "no places": each("stretches", {"nodes"}, places=lambda _: ()),
    "a node twice": each("stretches", {"nodes"}, places=lambda s: s.places * 2),
    "restart told": each("stretches", {"restart"}, restart=lambda s: not s.restart),
    "ended otherwise": each("stretches", {"ended"}, ended=lambda s: "completion" if s.ended == "plan" else "plan"),
    "a cause for nothing": each("stretches", {"ended"}, cause=lambda s: "arrival" if s.cause is None else None),
    "a stretch less": without("stretches", {"work-undone", "completion"}),
    "a stretch twice": other({"overlap", "taken-twice"}, stretches=lambda t: (*t.stretches, t.stretches[-1])),
    "a node-on less": without("powers", {"node-off"}),
    "a node-on twice": other({"on-twice"}, powers=lambda t: (*t.powers, t.powers[0])),
    "on for less": each("powers", {"node-off", "billed"}, end_s=lambda p: p.start_s + 1.0),
    "billed less": each("powers", {"billed"}, billed_s=lambda p: p.billed_s - 60.0),
    "cheaper node": each("powers", {"node-cost"}, cost=lambda p: p.cost - 0.01),
    "unknown node": each("powers", {"unknown-node"}, node=lambda _: 77),
    "cost": other({"cost"}, cost=lambda t: t.cost - 0.01),
    "a term": other({"term-cost"}, costs=lambda t: t.costs | {"tardiness": t.costs["tardiness"] + 0.01}),
    "energy": other({"term-cost"}, costs=lambda t: t.costs | {"energy": 0.0}),
    "no term": other({"term-cost"}, costs=lambda _: {}),
    "completion": other({"completion"}, completions=lambda t: t.completions | {"j1": t.completions["j1"] + 5.0}),
    "never complete": other({"job-missing"}, completions=lambda t: {"j0": t.completions["j0"]}),
    "rejected": other({"not-rejectable", "job-missing"}, rejected=lambda _: ("j2",)),
    "factor": other({"work", "factor"}, factors=lambda t: t.factors | {"j1": t.factors["j1"] * 2}),
    "no factor": other({"factor"}, factors=lambda _: {}),
    "no bursting": other({"burst-forbidden"}, may_burst=lambda _: False),
    "endless": each("powers", {"senseless"}, end_s=lambda _: 1e300),
    "infinite work": each("stretches", {"senseless"}, work=lambda _: float("inf")),
    "before the start": each("powers", {"senseless"}, start_s=lambda _: -1e4),
    "a negative GPU": each("stretches", {"senseless"}, places=lambda s: moved(s.places, gpu=-4)),
    "another currency": other({"other-instance"}, currency=lambda _: "XXX"),
    "an unknown job": other({"unknown"}, rejected=lambda _: ("nobody",)),
    "an unknown term": other({"unknown"}, costs=lambda t: t.costs | {"luck": 1.0}),
    "another instance": other({"other-instance"}, instance_hash=lambda _: "0" * 64),
    "prices as listed": other({"node-cost"}, prices=lambda _: ()),
    "another price": other(
        {"node-cost"}, prices=lambda t: tuple(c.model_copy(update={"factor": c.factor * 1.5}) for c in t.prices)
    ),
    "a price of nothing": each("prices", {"unknown"}, pool=lambda _: "moon"),
    "a negative price": each("prices", {"senseless"}, factor=lambda _: -1.0),
    "longer restarts": other({"restart-time"}, restart_s=lambda _: 1e5),
    "an outage": other(
        {"node-down"},
        outages=lambda t: (
            *t.outages,
            *(_outage(pool, node) for pool in ("own", "rent") for node in range(4)),
        ),
    ),
}  # fmt: skip


def _outage(pool: str, node: int) -> Any:
    return Outage(pool=pool, node=node, since_s=0.0, until_s=None)


@pytest.mark.parametrize("name", MUTATIONS)
def test_whatever_is_changed_is_found(name: str) -> None:
    """By one of the rules that it breaks, in some trace at least where not every trace has it; and never missed where
    the change is one."""
    mutate, kinds = MUTATIONS[name]
    found: set[str] = set()
    for trace in traces():
        wrong = mutate(trace)
        if wrong is None or wrong == trace:
            continue
        violations = replay(busy(), wrong)
        assert all(str(violation) for violation in violations)
        found |= {violation.kind for violation in violations}
    assert found & kinds, found


def test_the_page_names_every_field_of_a_trace() -> None:
    """A field that is added is documented."""
    page = (Path(__file__).parents[2] / "docs" / "simulation.md").read_text(encoding="utf-8")
    for record in (Trace, Stretch, Power, Outage, Caching, Repricing, Happening):
        for name in record.model_fields:
            assert f"`{name}`" in page, (record.__name__, name)
