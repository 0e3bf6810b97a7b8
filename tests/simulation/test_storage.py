"""Reading in a simulated world: what it costs by hand, limits that hold, caches by rule and by plan."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.check.replay import replay
from models.domain import Instance, Plan
from models.errors import Defect, Infeasible, NoPlan
from planner.engines.base import Limits
from planner.simulation.chance import Options
from planner.simulation.policies.followed import Followed
from planner.simulation.policies.itinerary import itinerary_of
from planner.simulation.provision import paid
from planner.simulation.reading import Reading, is_free
from planner.simulation.registry import POLICIES, PolicyOptions
from planner.simulation.run import Outcome, simulate
from planner.simulation.state import Assignment, Decision, State
from planner.simulation.trace import Trace
from planner.solve import solve
from tests.documents import HOUR, Doc
from tests.engines.samples import instance_of, mode, running
from tests.random_instances import random_instance
from tests.simulation.test_world import Script, on

POLICY_NAMES = [name for name in POLICIES if name != "exact"]
LINEAR: Doc = {"tariff": [{"per_mb_s": 0.01}], "cache_capacity": 100.0, "cache_price": 0.01}
"""Caching all of the dataset costs as much as 100 MB/s."""


def reader(rate: float, hours: float = 2.0, release: float = 0.0, pool: str = "own", **fields: Any) -> Doc:
    """A job on one GPU that reads the dataset."""
    return {"modes": [mode(hours, 1, pool, read_rate=rate)], "dataset": "data", "release": release * HOUR} | fields


def simulated(instance: Instance, policy: Any = "fifo", **options: Any) -> Outcome:
    """What comes of it, confirmed by the replay."""
    made = POLICIES[policy](PolicyOptions()) if isinstance(policy, str) else policy
    outcome = simulate(instance, made, Options(**options))
    assert replay(instance, outcome.trace) == ()
    return outcome


def storage_cost(trace: Trace) -> tuple[float, float, float]:
    """Bandwidth, cache, transfer."""
    return trace.costs["bandwidth"], trace.costs["cache"], trace.costs["transfer"]


@pytest.mark.parametrize(
    ("jobs", "changes", "bandwidth", "cached", "transfer"),
    [
        ([reader(60)], {}, 0.6 * 6, 0.0, 0.0),
        # Bought when it is needed, kept to the end of the horizon.
        ([reader(60, release=2.0)], {}, 0.6 * 4, 0.0, 0.0),
        # Periods of two hours: two of them, whole.
        ([reader(60, 3.0)], {"sites__0__storage__billed": 2 * HOUR}, 0.6 * 4, 0.0, 0.0),
        # One that ends with its period needs no other.
        ([reader(60, 2.0)], {"sites__0__storage__billed": 2 * HOUR}, 0.6 * 2, 0.0, 0.0),
        # Late beyond the horizon: a second one is paid.
        ([reader(60, 7.0)], {}, 0.6 * 12, 0.0, 0.0),
        # The most so far: 60 MB/s from the start, 90 MB/s after an hour.
        ([reader(60), reader(30, release=1.0)], {}, 0.6 + 0.9 * 5, 0.0, 0.0),
        # One after the other need no more than one.
        ([reader(60, 1.0), reader(60, 1.0, release=1.0)], {}, 0.6 * 6, 0.0, 0.0),
        # Two readers make the cache worth it.
        ([reader(60), reader(60)], {}, 0.0, 1.0 * 6, 0.0),
        # It serves each with half of what both would read past it: r (1 - f) / (1 - f r / M) with all cached is none.
        ([reader(60), reader(60)], {"sites__0__storage__cache_speed": 100.0}, 0.0, 6.0, 0.0),
        # At least as fast as the cache: they read past it.
        ([reader(60), reader(60)], {"sites__0__storage__cache_speed": 60.0}, 1.2 * 6, 0.0, 0.0),
        # Across the link: 216 GB at 0.01; a copy of 100 GB where there is a cache.
        ([reader(60, 1.0, pool="rent")], {}, 0.0, 0.0, 2.16),
        ([reader(60, 1.0, pool="rent")], {"sites__1__storage": {"cache_capacity": 100.0}}, 0.0, 0.0, 1.0),
        # The second hour's reader finds the cache empty, as nobody has read from it meanwhile.
        (
            [reader(60, 1.0, pool="rent"), reader(60, 1.0, release=1.5, pool="rent")],
            {"sites__1__storage": {"cache_capacity": 100.0}},
            0.0, 0.0, 2.0,
        ),
    ],
)  # fmt: skip
def test_reading_costs_what_it_does_by_hand(
    jobs: list[Doc], changes: Doc, bandwidth: float, cached: float, transfer: float
) -> None:
    """Bandwidth and cache by periods from when they are needed, transfers as they happen."""
    trace = simulated(instance_of(jobs, sites__0__storage=dict(LINEAR), **changes)).trace
    assert storage_cost(trace) == pytest.approx((bandwidth, cached, transfer))


def test_a_boot_and_a_restart_read_nothing() -> None:
    """A node that boots for half an hour: what is read, and paid, begins after that."""
    jobs = [reader(60, 1.0, pool="rent")]
    instance = instance_of(jobs, sites__1__storage={"tariff": [{"per_mb_s": 0.01}]}, pools__1__boot_time=HOUR / 2)
    assert storage_cost(simulated(instance).trace) == pytest.approx((0.6 * 5.5, 0.0, 2.16))


def test_a_longer_job_reads_for_longer() -> None:
    """At its rate, for as long as it really works."""
    trace = simulated(instance_of([reader(60, 1.0, pool="rent")]), seed=3, duration_error=0.5).trace
    assert trace.factors["j0"] != 1.0
    assert trace.costs["transfer"] == pytest.approx(2.16 * trace.factors["j0"])


# --- limits ----------------------------------------------------------------------------------------------------


LIMITS: dict[str, Doc] = {
    "cap": {"sites__0__storage": {"bandwidth_cap": 100.0}},
    "price list": {"sites__0__storage": {"points": [{"mb_s": 100.0, "price": 1.0}]}},
    "cap beside a cache that holds too little": {"sites__0__storage": {"bandwidth_cap": 100.0, "cache_capacity": 90.0}},
}


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("name", POLICY_NAMES)
def test_who_cannot_read_waits(name: str, limit: str) -> None:
    """Two nodes are free, and one reader of 60 MB/s fits under 100 MB/s at a time."""
    outcome = simulated(instance_of([reader(60), reader(60)], pools__0__nodes=2, **LIMITS[limit]), name)
    ends = sorted(outcome.trace.completions.values())
    assert ends[0] == pytest.approx(2 * HOUR)
    assert ends[1] >= 4 * HOUR - 1.0


@pytest.mark.parametrize("name", POLICY_NAMES)
def test_a_link_carries_so_much_and_no_more(name: str) -> None:
    """The same for what crosses from the home of the data."""
    jobs = [reader(60, pool="rent"), reader(60, pool="rent")]
    assert max(
        simulated(instance_of(jobs, pools__1__nodes=2, network__0__bandwidth=100.0), name).trace.completions.values()
    ) >= (4 * HOUR - 1.0)


@pytest.mark.parametrize("name", POLICY_NAMES)
def test_caching_makes_room_for_readers(name: str) -> None:
    """With all of the dataset in the cache both run at once."""
    storage = {"bandwidth_cap": 100.0, "cache_capacity": 100.0}
    trace = simulated(instance_of([reader(60), reader(60)], pools__0__nodes=2, sites__0__storage=storage), name).trace
    assert max(trace.completions.values()) == pytest.approx(2 * HOUR)
    assert [(cache.dataset, cache.fraction) for cache in trace.caches] == [("data", 1.0)]


def test_parts_are_cached_where_whole_datasets_do_not_fit() -> None:
    """A half of it in a cache of 60 GB: each of two readers takes 30 MB/s of the 60 there are."""
    storage = {"bandwidth_cap": 60.0, "cache_capacity": 60.0}
    instance = instance_of([reader(60), reader(60)], sites__0__storage=storage, cache_levels=4)
    (cached,) = simulated(instance).trace.caches
    assert cached.fraction == 0.5


def test_a_throttled_job_runs_where_a_fast_one_could_not() -> None:
    """The highest speed at which its data can be read."""
    job = reader(200, 2.0, speed_levels=[1.0, 0.5])
    trace = simulated(instance_of([job], sites__0__storage={"bandwidth_cap": 100.0})).trace
    assert [(stretch.speed, stretch.end_s) for stretch in trace.stretches] == [(0.5, 4 * HOUR)]


def test_a_job_that_could_never_read_is_told() -> None:
    """No policy can run it."""
    with pytest.raises(NoPlan, match="j0"):
        simulated(instance_of([reader(200)], sites__0__storage={"bandwidth_cap": 100.0}))


@pytest.mark.parametrize(
    "cached", [None, {}, {("home", "data"): 0.0}], ids=["by the rule", "nothing", "a fraction of nothing"]
)
def test_starting_what_cannot_read_is_a_defect_of_the_policy(cached: Any) -> None:
    """Even where it says what is to be cached, if that is not enough."""

    def both(state: State) -> Decision:
        starts = [Assignment(j, on(state, j, "own1", {0: (j,)}), state.now_s) for j in (0, 1)]
        return Decision(tuple(starts), cached=cached)

    with pytest.raises(Defect, match="read"):
        simulate(instance_of([reader(60), reader(60)], **LIMITS["cap"]), Script([both]))


def test_dropping_what_runs_need_is_a_defect_of_the_policy() -> None:
    """They read from the cache; then the policy wants it empty."""

    def both(cached: Any) -> Callable[[State], Decision]:
        def decide(state: State) -> Decision:
            starts = [Assignment(j, on(state, j, "own1", {0: (j,)}), state.now_s) for j in (0, 1)]
            return Decision(tuple(starts), wake_s=state.now_s + 60.0, cached=cached)

        return decide

    storage = {"bandwidth_cap": 100.0, "cache_capacity": 100.0}
    instance = instance_of([reader(60), reader(60)], sites__0__storage=storage)
    with pytest.raises(Defect, match="cannot all read"):
        simulate(instance, Script([both({("home", "data"): 1.0}), both({})]))


def test_what_runs_at_the_start_must_be_served() -> None:
    """Told at once."""
    jobs = [reader(60, running=running("own1", {0: [g]})) for g in (0, 1)]
    with pytest.raises(NoPlan, match="cannot all read"):
        simulate(instance_of(jobs, **LIMITS["cap"]), POLICIES["fifo"](PolicyOptions()))


def test_a_policy_says_what_is_cached() -> None:
    """From when it is read; it stays while the policy wants it, and not for longer."""

    def first(state: State) -> Decision:
        starts = tuple(Assignment(j, on(state, j, "own1", {0: (j,)}), HOUR * (1 + 2 * j)) for j in (0, 1))
        return Decision(starts, cached={("home", "data"): 1.0})

    def keep(state: State) -> Decision:
        assert state.now_s == 2 * HOUR
        return Decision((Assignment(1, on(state, 1, "own1", {0: (1,)}), 3 * HOUR),), cached={("home", "data"): 1.0})

    def drop(_: State) -> Decision:
        return Decision((), cached={})

    jobs = [reader(10, 1.0), reader(10, 1.0)]
    # The second arrival is at the same moment, so there is one call for both.
    trace = simulated(instance_of(jobs, sites__0__storage=dict(LINEAR)), Script([first, keep, drop])).trace
    assert [(c.since_s, c.until_s) for c in trace.caches] == [(HOUR, 4 * HOUR)]
    assert storage_cost(trace) == pytest.approx((0.0, 1.0 * 5, 0.0))


# --- plans that come to pass -----------------------------------------------------------------------------------


@dataclass
class Cached:
    """A policy with a word on what is cached."""

    policy: Followed
    plan: Plan
    name: str = "plan"

    def decide(self, state: State) -> Decision:
        """As the plan has it."""
        cached = {(c.site, c.dataset): c.fraction for c in self.plan.cached}
        return replace(self.policy.decide(state), cached=cached)


@pytest.mark.parametrize("seed", range(60))
def test_a_plan_that_comes_to_pass_costs_no_more_than_it_says(seed: int) -> None:
    """Bandwidth, cache and transfers of a plan that is carried out as it was made; its jobs read at no time more than
    it buys."""
    instance = random_instance(("storage", "mixed", "odd")[seed % 3], random.Random(seed))
    try:
        plan = solve(instance, "fast", Limits(work=200, threads=1)).plan
    except (Infeasible, NoPlan):
        return
    ends_s = plan.num_slots * plan.slot_s
    if is_free(instance) or any((site.storage.billed or ends_s) < ends_s for site in instance.sites):
        return  # nothing to pay; or a plan pays one period where it goes on for longer
    policy = Cached(Followed(itinerary_of(instance, plan)), plan)
    trace = simulated(instance, policy, asks_at_start=True, spot=False).trace
    for term in ("bandwidth", "cache", "transfer"):
        assert trace.costs[term] <= plan.costs[term] * (1 + 1e-9) + 1e-9, term


def test_a_plan_that_reads_from_the_start_costs_what_it_says() -> None:
    """All of it, for all of the horizon."""
    instance = instance_of(
        [reader(60), reader(30)], sites__0__storage={"tariff": [{"fixed": 0.5, "per_mb_s": 0.004}]}, network=[]
    )
    plan = solve(instance, "exact", Limits(gap=0.0, threads=1)).plan
    assert {run.segments[0].start_slot for run in plan.runs} == {0}
    assert storage_cost(simulated(instance, "exact").trace) == pytest.approx(
        tuple(plan.costs[term] for term in ("bandwidth", "cache", "transfer"))
    )


@pytest.mark.parametrize("seed", range(12))
def test_every_policy_keeps_to_limits_on_random_instances(seed: int) -> None:
    """With errors, failures and restarts; what cannot be run is told, and nothing else goes wrong."""
    instance = random_instance(("storage", "mixed")[seed % 2], random.Random(1000 + seed))
    options = (
        Options(seed=seed),
        Options(seed=seed, restart_s=600.0, duration_error=0.4),
        Options(seed=seed, mtbf_h=6.0, repair_h=1.0, period_s=1800.0),
    )[seed % 3]
    for name in POLICY_NAMES:
        try:
            outcome = simulate(instance, POLICIES[name](PolicyOptions(work=20, iterations=5)), options)
        except NoPlan:
            continue
        assert replay(instance, outcome.trace) == (), name


# --- what is paid ----------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 12), st.integers(1, 5)), max_size=12), st.integers(1, 10))
def test_the_most_so_far_is_paid_to_the_end_of_each_period(spans: list[tuple[int, int, int]], period: int) -> None:
    """Second by second."""
    pieces = [(float(start), float(start + length), float(amount)) for start, length, amount in spans]
    want, most = 0.0, 0.0
    for second in range(60):
        most = 0.0 if second % period == 0 else most
        most = max(most, sum(amount for start, end, amount in pieces if start <= second < end))
        # Something that costs less by the piece.
        want += most**0.5
    assert sum(seconds * most**0.5 for most, seconds in paid(pieces, float(period))) == pytest.approx(want)


# --- the replay ------------------------------------------------------------------------------------------------


@cache
def with_caches() -> tuple[Instance, Trace]:
    """A trace with a cache at each of two sites, near the limits."""
    jobs = [reader(60), reader(60), reader(40, 1.0, release=0.5, pool="rent")]
    storage = LINEAR | {"bandwidth_cap": 100.0}
    instance = instance_of(
        jobs, sites__0__storage=storage, sites__1__storage={"cache_capacity": 100.0}, network__0__bandwidth=50.0
    )
    return instance, simulated(instance).trace


def edited(**fields: Any) -> Callable[[Trace], Trace]:
    """The caching at home with other fields."""

    def edit(trace: Trace) -> Trace:
        caches = [c.model_copy(update=fields) if c.site == "home" else c for c in trace.caches]
        return trace.model_copy(update={"caches": tuple(caches)})

    return edit


MUTATIONS: dict[str, tuple[Callable[[Trace], Trace], str]] = {
    "nothing cached": (lambda t: t.model_copy(update={"caches": ()}), "bandwidth-short"),
    "a part": (edited(fraction=0.5), "cache-level"),
    "more than all": (edited(fraction=2.0), "cache-capacity"),
    "nothing of it": (edited(fraction=0.0), "cache-level"),
    "another site": (edited(site="moon"), "unknown"),
    "another dataset": (edited(dataset="other"), "unknown"),
    "later": (edited(since_s=600.0), "bandwidth-short"),
    "longer": (edited(until_s=7 * HOUR), "term-cost"),
    "backwards": (edited(since_s=2 * HOUR, until_s=HOUR), "times"),
    "no time": (edited(since_s=float("nan")), "senseless"),
    "twice": (lambda t: t.model_copy(update={"caches": t.caches * 2}), "cached-twice"),
    "cheaper": (lambda t: t.model_copy(update={"costs": t.costs | {"cache": 0.0}}), "term-cost"),
    "no transfer": (lambda t: t.model_copy(update={"costs": t.costs | {"transfer": 0.0}}), "term-cost"),
    "bandwidth": (lambda t: t.model_copy(update={"costs": t.costs | {"bandwidth": 0.1}}), "term-cost"),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_the_replay_finds_what_is_changed(name: str) -> None:
    """Every field of a caching, and every cost."""
    instance, trace = with_caches()
    assert len(trace.caches) == 2
    mutate, kind = MUTATIONS[name]
    assert kind in {violation.kind for violation in replay(instance, mutate(trace))}


def test_the_replay_finds_a_link_that_carries_too_much() -> None:
    """Where the copy is left out."""
    instance, trace = with_caches()
    less = instance.altered(network=tuple(k.model_copy(update={"bandwidth": 30.0}) for k in instance.network))
    bare = trace.model_copy(update={"caches": trace.caches[:0], "instance_hash": less.content_hash})
    assert "link-short" in {violation.kind for violation in replay(less, bare)}


def test_storage_that_is_free_is_seen_to_be() -> None:
    """Nothing is worked out where there is nothing to pay or to exceed."""
    assert is_free(instance_of([{"modes": [mode(1)]}], sites__0__storage=dict(LINEAR)))
    assert not is_free(instance_of([reader(60)]))  # the link has a price
    assert Reading(instance_of([reader(60)], network=[])).is_free
    assert not is_free(instance_of([reader(60)], network=[], sites__0__storage={"bandwidth_cap": 1000.0}))
