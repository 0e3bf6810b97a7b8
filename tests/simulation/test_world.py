"""The simulated world: what costs how much by hand, what may not be decided, and that it is the same every time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from models.check.replay import replay
from models.domain import Instance
from models.domain.entities import Place
from models.domain.modes import modes_of
from models.errors import Defect, NoPlan
from models.grid import Meter, price_by_slot
from planner.simulation.chance import Options
from planner.simulation.registry import POLICIES, PolicyOptions
from planner.simulation.run import Outcome, simulate
from planner.simulation.state import Allocation, Assignment, Decision, State
from planner.simulation.world import World
from tests.documents import HOUR, Doc, document
from tests.engines.samples import mode, running


def instance_of(jobs: list[Doc], **changes: Any) -> Instance:
    """As in `tests.documents`, with an open horizon: an owned node of two GPUs at 1 an hour, a rented one at 4."""
    return Instance.model_validate(document(jobs, **{"horizon": "auto", **changes}))


def simulated(instance: Instance, policy: str = "fifo", **options: Any) -> Outcome:
    """What a policy of the registry makes of it."""
    return simulate(instance, POLICIES[policy](PolicyOptions()), Options(**options))


@dataclass
class Script:
    """Does what it is told, call by call, and nothing when the script is over."""

    decisions: list[Any]
    name: str = "script"
    seen: list[State] = field(default_factory=list)

    def decide(self, state: State) -> Decision:
        """The next decision."""
        self.seen.append(state)
        made = self.decisions.pop(0) if self.decisions else lambda _: Decision(())
        decided: Decision = made(state)
        return decided


def on(state: State, j: int, name: str, gpus: dict[int, tuple[int, ...]]) -> Allocation:
    """A job in a mode of its own on GPUs by node."""
    instance = state.instance
    found = next(m for m in modes_of(instance, instance.jobs[j]) if m.name == name)
    return Allocation(found, tuple(Place(node=node, gpus=some) for node, some in gpus.items()))


def at_once(j: int, name: str, gpus: dict[int, tuple[int, ...]]) -> Any:
    """A decision: this job there, now."""
    return lambda state: Decision((Assignment(j, on(state, j, name, gpus), state.now_s),))


def test_a_job_costs_its_node_to_the_second() -> None:
    """90 minutes from an arrival at 10 minutes, not slotted; half an hour late at 6 an hour."""
    jobs = [{"modes": [mode(1.5)], "release": 600.0, "due": 600.0 + HOUR, "weight": 6.0}]
    outcome = simulated(instance_of(jobs))
    (stretch,) = outcome.trace.stretches
    assert (stretch.start_s, stretch.end_s) == (600.0, 600.0 + 1.5 * HOUR)
    assert outcome.trace.costs["node_hours"] == pytest.approx(1.5)
    assert outcome.trace.costs["tardiness"] == pytest.approx(3.0)
    assert outcome.trace.cost == pytest.approx(4.5)
    assert outcome.late_jobs == 1
    assert outcome.utilisation == {"own": pytest.approx(0.5), "rent": None}


def test_rented_nodes_boot_and_are_paid_in_whole_increments() -> None:
    """Six minutes of boot and 90 of work are two hours at 4; the second job, a little later, finds the node still
    there."""
    jobs = [
        {"modes": [mode(1.5, 1, "rent")]},
        {"modes": [mode(0.1, 1, "rent")], "release": 1.75 * HOUR},
    ]
    outcome = simulated(instance_of(jobs, pools__1__billing_increment=HOUR, pools__1__boot_time=360.0))
    first, second = sorted(outcome.trace.stretches, key=lambda stretch: stretch.start_s)
    assert (first.work_s, first.end_s) == (360.0, 360.0 + 1.5 * HOUR)
    assert second.work_s == second.start_s == 1.75 * HOUR
    (power,) = outcome.trace.powers
    assert (power.start_s, power.billed_s) == (0.0, 2 * HOUR)
    assert outcome.trace.costs["rental"] == pytest.approx(8.0)


def test_a_restart_takes_its_time_and_keeps_what_is_done() -> None:
    """Half of two hours on one GPU, ten minutes to start again, half of one hour on two."""
    jobs = [{"modes": [mode(2, 1), mode(1, 2)], "restart_cost": 0.7}]
    jobs.append({"modes": [mode(0.1, 1)], "release": HOUR, "reject_cost": 0.0})
    script = Script([at_once(0, "own1", {0: (0,)}), at_once(0, "own2", {0: (0, 1)})])
    outcome = simulate(instance_of(jobs), script, Options(restart_s=600.0))
    one, two = [stretch for stretch in outcome.trace.stretches if stretch.job == "j0"]
    assert (one.end_s, one.work, one.restart) == (HOUR, pytest.approx(0.5), False)
    assert (two.work_s, two.end_s, two.restart) == (HOUR + 600.0, pytest.approx(1.5 * HOUR + 600.0), True)
    assert outcome.trace.costs["restart"] == pytest.approx(0.7)
    assert outcome.moves == 1
    assert (one.ended, one.cause, two.ended, two.cause) == ("replan", "arrival", "completion", None)
    assert outcome.summary()["stops"] == {"plan": 0, "replan": {"arrival": 1}, "loss": {}, "rejection": 0}


def test_a_planned_change_happens_without_a_call() -> None:
    """Small first and large from a time on: two stretches, and the policy is asked at the arrival only."""

    def both(state: State) -> Decision:
        small, large = on(state, 0, "own1", {0: (0,)}), on(state, 0, "own2", {0: (0, 1)})
        return Decision((Assignment(0, small, 0.0, 1800.0), Assignment(0, large, 1800.0)))

    script = Script([both])
    outcome = simulate(instance_of([{"modes": [mode(2, 1), mode(1, 2)]}]), script)
    assert len(script.seen) == 1
    assert [stretch.end_s for stretch in outcome.trace.stretches] == [1800.0, pytest.approx(1800.0 + 0.75 * HOUR)]
    assert outcome.summary()["stops"] == {"plan": 1, "replan": {}, "loss": {}, "rejection": 0}


def test_estimates_are_what_a_policy_sees() -> None:
    """A job that takes longer than estimated is nearly done for as long as it runs."""
    instance = instance_of([{"modes": [mode(1)]}, {"modes": [mode(0.1)], "release": 3 * HOUR}])
    seed = next(
        s for s in range(50) if World(instance, Script([]), Options(seed=s, duration_error=1.0)).jobs[0].factor > 4
    )
    script = Script(
        [at_once(0, "own1", {0: (0,)}), lambda state: Decision((Assignment(0, state.jobs[0].running, 0.0),))]
    )
    script.decisions.append(at_once(1, "own1", {0: (0,)}))
    outcome = simulate(instance, script, Options(seed=seed, duration_error=1.0))
    assert script.seen[0].jobs[0].remaining == 1.0
    assert script.seen[1].jobs[0].remaining == 0.01
    assert outcome.trace.completions["j0"] == pytest.approx(HOUR * outcome.trace.factors["j0"])


def test_failures_are_the_same_for_every_policy_and_nothing_is_lost() -> None:
    """A node fails, its job goes on elsewhere or later with what is left."""
    jobs = [{"modes": [mode(20, 2)], "release": k * HOUR} for k in range(4)]
    instance = instance_of(jobs, pools__0__nodes=2, pools__1__nodes=0)
    options = Options(seed=3, mtbf_h=15.0, repair_h=2.0)
    traces = [
        simulate(instance, POLICIES[name](PolicyOptions()), options).trace for name in ("fifo", "edf", "pressure")
    ]
    assert all(trace.outages for trace in traces)
    for trace in traces:
        assert len({(o.node, o.since_s) for o in trace.outages} & {(o.node, o.since_s) for o in traces[0].outages}) > 1
        for job in instance.jobs:
            done = sum(stretch.work for stretch in trace.stretches if stretch.job == job.id)
            assert done == pytest.approx(1.0)


def test_a_spot_node_is_taken_back() -> None:
    """It is let go, and the job starts again."""
    jobs = [{"modes": [mode(10, 1, "rent")], "spot": True}]
    instance = instance_of(jobs, pools__1__market="spot", pools__1__interruption_rate=0.3)
    outcome = simulated(instance, seed=2)
    number = outcome.summary()["interruptions"]
    assert number > 0
    assert len(outcome.trace.powers) == number + 1
    assert outcome.moves == number
    assert outcome.summary()["stops"]["loss"] == {"interruption": number}


def test_windows_and_predecessors_are_kept_to() -> None:
    """The node is away for the second hour and what runs there stops; the second job waits for the first."""
    jobs = [{"modes": [mode(2, 1)]}, {"modes": [mode(1, 1)], "after": ["j0"]}]
    windows = [{"since": HOUR, "until": 2 * HOUR}]
    first = at_once(0, "own1", {0: (0,)})
    script = Script([first, lambda _: Decision(()), first, at_once(1, "own1", {0: (0,)})])
    outcome = simulate(instance_of(jobs, pools__0__unavailable=windows), script)
    spans = [(stretch.job, stretch.start_s, stretch.end_s) for stretch in outcome.trace.stretches]
    assert spans == [("j0", 0.0, HOUR), ("j0", 2 * HOUR, 3 * HOUR), ("j1", 3 * HOUR, 4 * HOUR)]
    assert script.seen[1].down == {(0, 0)}
    assert not script.seen[2].down


def test_running_jobs_go_on_where_they_are() -> None:
    """On a node that is on, without a restart."""
    jobs = [{"modes": [mode(2, 1)], "running": running("own1", {0: [1]})}]
    outcome = simulated(instance_of(jobs, pools__0__boot_time=600.0))
    (stretch,) = outcome.trace.stretches
    assert (stretch.start_s, stretch.work_s, stretch.end_s, stretch.restart) == (0.0, 0.0, 2 * HOUR, False)
    assert stretch.places == (Place(node=0, gpus=(1,)),)


@pytest.mark.parametrize(
    ("decision", "message"),
    [
        (lambda s: Decision((Assignment(0, on(s, 0, "own2", {0: (0,)}), 0.0),)), "names 1 GPUs"),
        (lambda s: Decision((Assignment(0, on(s, 0, "own2", {7: (0, 1)}), 0.0),)), "has no node 7"),
        (lambda s: Decision((Assignment(0, on(s, 0, "own2", {0: (0, 5)}), 0.0),)), "has no GPU 5"),
        (lambda s: Decision((Assignment(1, on(s, 1, "own2", {0: (0, 1)}), 0.0),)), "not all of j0 are complete"),
        (lambda s: Decision((Assignment(2, on(s, 2, "rent2", {0: (0, 1)}), 0.0),)), "complete or unknown"),
        (lambda s: Decision((Assignment(0, on(s, 0, "rent2", {0: (0, 1)}), 0.0),)), "may not be used"),
        (
            lambda s: Decision(
                (Assignment(0, on(s, 0, "own2", {0: (0, 1)}), 0.0), Assignment(3, on(s, 3, "own2", {0: (0, 1)}), 0.0))
            ),
            "is taken",
        ),
        (lambda s: Decision((Assignment(0, on(s, 0, "own2", {0: (0, 1)}), 0.0),) * 2), "two things to do at once"),
    ],
)
def test_what_cannot_be_is_a_defect_of_the_policy(decision: Any, message: str) -> None:
    """Named, with what is wrong."""
    modes = [mode(1, 2), mode(1, 2, "rent")]
    jobs = [{"modes": modes}, {"modes": modes, "after": ["j0"]}, {"modes": modes, "release": HOUR}, {"modes": modes}]
    with pytest.raises(Defect, match=message):
        simulate(instance_of(jobs), Script([decision]), Options(may_burst=False))


def test_who_is_never_run_is_rejected_or_told() -> None:
    """The world does not wait for ever, whatever else goes on in it."""
    jobs = [{"modes": [mode(1)], "reject_cost": 5.0}]
    outcome = simulate(instance_of(jobs), Script([]))
    assert outcome.trace.rejected == ("j0",)
    assert outcome.trace.cost == outcome.trace.costs["rejection"] == 5.0
    with pytest.raises(NoPlan, match="leaves job\\(s\\) j0 waiting"):
        simulate(instance_of([{"modes": [mode(1)]}]), Script([]))
    with pytest.raises(NoPlan, match="waiting for ever"):
        simulate(instance_of([{"modes": [mode(1)]}]), Script([]), Options(period_s=600.0, mtbf_h=5.0))


def test_the_same_seed_gives_the_same_trace() -> None:
    """To the last byte; another seed another one."""
    jobs = [
        {"modes": [mode(1 + k % 3, 1 + k % 2)], "release": 900.0 * k, "due": 900.0 * k + HOUR, "weight": 1.0}
        for k in range(12)
    ]
    instance = instance_of(jobs)
    texts = [
        simulated(instance, "random_greedy", seed=seed, duration_error=0.4, mtbf_h=20.0).trace.model_dump_json()
        for seed in (1, 1, 2)
    ]
    assert texts[0] == texts[1] != texts[2]


def test_many_calls_leave_nothing_behind() -> None:
    """Thousands of decisions: what waits to happen and what is known stays small."""
    jobs = [{"modes": [mode(0.2, 1 + k % 2)], "release": 900.0 * k} for k in range(1500)]
    world = World(instance_of(jobs), POLICIES["fifo"](PolicyOptions()), Options())
    sizes: list[tuple[int, int]] = []
    world.on_call = lambda *_: sizes.append((len(world.events) + len(world.complete), len(world.known)))
    world.run()
    assert len(world.replan_s) > 2500
    assert max(events for events, _ in sizes) <= 1500 + 50
    assert max(known for _, known in sizes) <= 50


TARIFF = {"default": 2.0, "windows": [{"since": "22:00", "until": "06:00", "price": 0.5}]}


@pytest.mark.parametrize("price", [3.0, [1.0, 4.0, 2.5], TARIFF])
def test_a_meter_agrees_with_the_grid_and_adds_up(price: Any) -> None:
    """Over whole slots, and over any two times that meet."""
    instance = instance_of([{"modes": [mode(1)]}], pools__0__price=price, horizon=3 * HOUR)
    meter = Meter(instance, instance.pools[0].price)
    by_slot = price_by_slot(instance, instance.pools[0].price, 60)
    for t in range(60):
        assert meter.cost(t * HOUR, (t + 1) * HOUR) == pytest.approx(by_slot[t])
    draw = np.random.default_rng(0)
    for _ in range(200):
        a, b, c = np.sort(draw.uniform(0, 200 * HOUR, 3)).tolist()
        assert meter.cost(a, b) + meter.cost(b, c) == pytest.approx(meter.cost(a, c))
        assert meter.cost(a, b) >= 0


@pytest.mark.parametrize(("increment", "total"), [(0.0, 4.0 * 0.5 + 8.0 * 0.5 + 2.0 * 0.5), (HOUR, 4.0 + 2.0)])
def test_what_changes_of_prices_come_to(increment: float, total: float) -> None:
    """A rented node at 4 an hour, after half an hour at twice, after an hour at half of that: what is not billed in
    increments costs what it costs at the time, an increment what it cost when it began."""
    instance = instance_of([{"modes": [mode(1.5, 1, "rent")]}], pools__1__billing_increment=increment)
    goes_on = at_once(0, "rent1", {0: (0,)})
    script = Script([goes_on, goes_on, goes_on])
    outcome = simulate(instance, script, Options(prices=((0.5 * HOUR, 1, 2.0), (HOUR, 1, 0.5))))
    assert outcome.trace.cost == pytest.approx(total)
    assert replay(instance, outcome.trace) == ()
    assert [state.instance.pools[1].price for state in script.seen] == [4.0, 8.0, 2.0]
    assert [(change.at_s, change.pool, change.factor) for change in outcome.trace.prices] == [
        (0.5 * HOUR, "rent", 2.0),
        (HOUR, "rent", 0.5),
    ]


@pytest.mark.parametrize("policy", ["fast", "exact", "pressure"])
def test_policies_go_where_it_is_cheap_now(policy: str) -> None:
    """The first job runs where it is cheapest as listed, the second on rented nodes that have become a bargain since;
    a simulation that may not rent does not ask at such changes."""
    both = [mode(1, 1), mode(1, 1, "rent")]
    instance = instance_of([{"modes": both}, {"modes": both, "release": 2 * HOUR}])
    prices = ((1.5 * HOUR, 1, 0.05),)
    trace = simulated(instance, policy, prices=prices).trace
    assert [stretch.pool for stretch in trace.stretches] == ["own", "rent"]
    assert trace.cost == pytest.approx(1.0 + 4.0 * 0.05)
    assert replay(instance, trace) == ()
    asked = simulated(instance, policy, prices=prices, may_burst=False).replan_s
    assert len(asked) < len(simulated(instance, policy, prices=prices).replan_s)


def test_swings_of_prices_are_the_same_for_all() -> None:
    """Whatever a policy does, and with whatever else is drawn; another seed has others."""
    instance = instance_of([{"modes": [mode(30, 1), mode(40, 1, "rent")]}])

    def swings(policy: str, **options: Any) -> list[tuple[float, float]]:
        trace = simulated(instance, policy, price_sigma=0.5, price_h=2.0, **options).trace
        return [(change.at_s, change.factor) for change in trace.prices]

    first = swings("fifo")
    assert len(first) > 5
    assert swings("pressure", seed=0)[:5] == first[:5] == swings("edf", mtbf_h=9.0)[:5]
    assert swings("fifo", seed=1)[:5] != first[:5]


def test_jobs_may_wait_through_many_changes() -> None:
    """Nothing runs for thousands of changes of prices before the only job is released: nobody gives up."""
    instance = instance_of([{"modes": [mode(1, 1)], "release": 2000 * HOUR}])
    outcome = simulated(instance, price_sigma=0.5, price_h=0.1)
    assert len(outcome.trace.prices) > 10_000
    assert outcome.trace.cost == pytest.approx(1.0)


@pytest.mark.parametrize(
    "price",
    [
        4.0,
        [1.0, 2.0, 8.0, 1.0, 1.0, 1.0],
        {"default": 4.0, "windows": [{"since": "19:00", "until": "20:30", "price": 0.5}]},
    ],
)
def test_every_kind_of_price_may_change(price: Any) -> None:
    """From the second hour on three times what it is at the time, as policies see it and as it is paid."""
    instance = instance_of([{"modes": [mode(3, 1, "rent")]}], pools__1__price=price, horizon=6 * HOUR)
    goes_on = at_once(0, "rent1", {0: (0,)})
    script = Script([goes_on, goes_on])
    trace = simulate(instance, script, Options(prices=((HOUR, 1, 3.0),))).trace
    listed, seen = (Meter(state.instance, state.instance.pools[1].price) for state in script.seen)
    assert trace.cost == pytest.approx(listed.cost(0.0, HOUR) + 3.0 * listed.cost(HOUR, 3 * HOUR))
    assert seen.cost(HOUR, 3 * HOUR) == pytest.approx(3.0 * listed.cost(HOUR, 3 * HOUR))
    assert replay(instance, trace) == ()
