"""What holds for every policy, in states of all kinds."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.simulation.chance import Options
from planner.simulation.registry import DESCRIPTIONS, POLICIES, PolicyOptions
from planner.simulation.run import simulate
from planner.simulation.state import Decision, State
from tests.simulation.states import HOUR, faults, instance_of, modes, random_state, state_of

SEEDS = st.integers(0, 10**9)
OPTIONS = PolicyOptions(seed=1, work=20, iterations=6)
PLANNERS = ("fast", "exact")
RULES = tuple(name for name in POLICIES if name not in PLANNERS)


def decided(name: str, *states: State) -> Decision:
    """The last of the decisions that a policy makes in some states."""
    policy = POLICIES[name](OPTIONS)
    return [policy.decide(state) for state in states][-1]


@pytest.mark.parametrize("name", RULES)
@settings(max_examples=60)
@given(seed=SEEDS)
def test_decisions_are_valid_and_the_same_again(name: str, seed: int) -> None:
    state = random_state(seed)
    decision = decided(name, state)
    assert faults(state, decision) == []
    assert decided(name, state) == decision


@pytest.mark.parametrize("name", PLANNERS)
@settings(max_examples=12)
@given(seed=SEEDS)
def test_plans_are_valid_and_the_same_again(name: str, seed: int) -> None:
    state = random_state(seed)
    decision = decided(name, state)
    assert faults(state, decision) == []
    assert decided(name, state) == decision


@pytest.mark.parametrize("name", POLICIES)
def test_nothing_to_do(name: str) -> None:
    state = state_of(instance_of([{}], [{"modes": modes(1.0)}]), complete=(0,))
    assert decided(name, state) == Decision(())


@pytest.mark.parametrize("name", POLICIES)
def test_a_job_that_fits_starts_now(name: str) -> None:
    state = state_of(instance_of([{}], [{"modes": modes(1.0), "due": 3600.0, "weight": 5.0}]))
    decision = decided(name, state)
    assert [(a.job, a.start_s, a.end_s) for a in decision.assignments] == [(0, 0.0, None)]


@pytest.mark.parametrize("name", POLICIES)
def test_a_job_that_outlives_its_estimate_goes_on(name: str) -> None:
    instance = instance_of([{}], [{"modes": modes(1.0), "due": 3600.0, "weight": 5.0}])
    first = decided(name, state_of(instance)).assignments[0].allocation
    late = state_of(instance, {0: first}, now_s=5000.0, remaining={0: 0.0}, restart_s=600.0)
    assert [(a.job, a.allocation) for a in decided(name, late).assignments] == [(0, first)]


@pytest.mark.parametrize("name", POLICIES)
def test_nobody_waits_for_a_job_that_no_node_can_hold(name: str) -> None:
    jobs = [{"modes": [{"gpu": "A", "gpus": 8, "duration": 3600}]}, {"modes": modes(1.0), "release": 5.0}]
    state = state_of(instance_of([{"nodes": 2}], jobs), now_s=10.0, down=((0, 0),))
    assert {a.job for a in decided(name, state).assignments} == {1}


@pytest.mark.parametrize("name", POLICIES)
def test_rented_nodes_are_for_those_who_may(name: str) -> None:
    pools = [{"nodes": 1}, {"site": "cloud", "nodes": 4, "price": 2.0}]
    jobs = [{"modes": [{"gpu": "A", "gpus": 4, "duration": 3600}], "due": 3600.0, "weight": 50.0}] * 3
    instance = instance_of(pools, jobs)
    without = decided(name, state_of(instance, may_burst=False)).assignments
    assert {a.allocation.mode.pool for a in without} == {0}
    assert len([a for a in without if a.start_s == 0.0]) == 1
    if name in ("cheapest_cloud", "burst_after_waiting", "fast", "exact", "pressure", "fifo"):
        assert len([a for a in decided(name, state_of(instance)).assignments if a.start_s == 0.0]) == 3


def test_every_policy_is_described() -> None:
    assert set(DESCRIPTIONS) == set(POLICIES)
    assert all(POLICIES[name](OPTIONS).name == name for name in POLICIES)


def test_the_list_of_policies_is_imported_without_engines() -> None:
    code = (
        "import sys\n"
        "from planner.simulation.registry import POLICIES, PolicyOptions\n"
        "made = [make(PolicyOptions()) for make in POLICIES.values()]\n"
        "print([name for name in ('numba', 'pyomo', 'highspy', 'planner.solve') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("restart_cost", [0.0, 0.2])
def test_a_price_on_moves_makes_fewer_of_them_and_is_not_paid(restart_cost: float) -> None:
    """Jobs that could be large for a while, and change at every arrival, stay as they are where moving has a price."""
    free = [{"id": "home", "kind": "on_prem", "energy_price": 1.0}, {"id": "cloud", "kind": "cloud"}]
    jobs = [
        {
            "modes": [{"gpu": "A", "gpus": 1, "duration": 4 * HOUR}, {"gpu": "A", "gpus": 4, "duration": 1.5 * HOUR}],
            "release": 2.0 * k * HOUR,
            "due": (2.0 * k + 2.25) * HOUR,
            "weight": 20.0,
            "restart_cost": restart_cost,
        }
        for k in range(6)
    ]
    instance = instance_of([{"price": 0.0, "gpu_power": 1.0, "nodes": 2}], jobs, sites=free)
    options = [PolicyOptions(work=30, move_price=price) for price in (0.0, 50.0)]
    found = [simulate(instance, POLICIES["fast"](option), Options()) for option in options]
    assert found[0].moves > found[1].moves == 0
    assert found[0].trace.cost < found[1].trace.cost
    for outcome in found:
        assert outcome.trace.costs["restart"] == pytest.approx(restart_cost * outcome.moves)
