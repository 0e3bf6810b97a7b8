"""Why there is no plan: each kind of limit that clashes, and by how much it would have to give way.

Base instance: an owned node with two GPUs, one rented like it, six slots of an hour (`samples.document`).
"""

from __future__ import annotations

from typing import Any

import pytest

from models.errors import Clash, Infeasible
from planner.engines.base import Limits
from planner.engines.diagnose import explain
from planner.solve import solve
from tests.engines.samples import HOUR, TO_THE_END, Doc, instance_of, mode, running, share

SOON = 2 * HOUR
READER: Doc = {"dataset": "data", "modes": [mode(2, read_rate=100.0)]}
FAR_READER: Doc = {"dataset": "data", "modes": [mode(2, 1, "rent", read_rate=100.0)]}


def reasons(jobs: list[Doc], engine: str = "exact", **changes: Any) -> dict[str, Clash]:
    """The reasons of an infeasible instance, by what gives way."""
    with pytest.raises(Infeasible) as verdict:
        solve(instance_of(jobs, **changes), engine, TO_THE_END)
    assert verdict.value.summary
    found = {reason.what: reason for reason in verdict.value.reasons}
    assert len(found) == len(verdict.value.reasons)
    return found


def amounts(found: dict[str, Clash]) -> dict[str, str]:
    """By how much each gives way."""
    return {what: clash.amount for what, clash in found.items()}


def total_hours(found: dict[str, Clash], kind: str) -> float:
    """Hours past deadlines or the horizon, over all jobs; which jobs give way may be a toss-up."""
    return sum(float(clash.amount.split(" h later")[0]) for what, clash in found.items() if what.startswith(kind))


# --- one job by itself -----------------------------------------------------------------------------------


def test_a_deadline_too_early() -> None:
    # 3.5 h are four slots: done at 4 h, 2 h after the deadline.
    found = reasons([{"modes": [mode(2)]}, {"modes": [mode(3.5)], "deadline": SOON}])
    assert amounts(found) == {
        "job j1": "completes 2 h after its deadline even with every node to itself",
        "deadline of job j1": "2 h later",
        "jobs left out": "1: j1",
    }
    assert {clash.jobs for clash in found.values()} == {("j1",)}


@pytest.mark.parametrize(
    ("job", "changes"),
    [
        # Released at 3 h, two hours long, due out at 4 h.
        ({"release": 3 * HOUR, "deadline": 4 * HOUR}, {}),
        # The node boots for an hour first.
        ({"deadline": 2 * HOUR}, {"pools__0__boot_time": HOUR}),
        # The node is free from 1 h on.
        ({"deadline": 2 * HOUR}, {"pools__0__unavailable": [{"since": 0.0, "until": HOUR}]}),
    ],
)
def test_release_boot_and_windows_count(job: Doc, changes: dict[str, Any]) -> None:
    found = reasons([{"modes": [mode(2)]} | job], **changes)
    assert amounts(found)["job j0"] == "completes 1 h after its deadline even with every node to itself"
    assert amounts(found)["deadline of job j0"] == "1 h later"


def test_a_job_longer_than_the_horizon() -> None:
    found = reasons([{"modes": [mode(8)]}])
    assert amounts(found) == {
        "job j0": "completes 2 h after its horizon even with every node to itself",
        "horizon of job j0": "2 h later",
        "jobs left out": "1: j0",
    }


def test_a_pinned_job_on_a_node_that_goes_away() -> None:
    job: Doc = {"modes": [mode(2)], "running": running("own1", {0: [0]})}
    found = reasons([job], pools__0__unavailable=[{"since": HOUR, "until": 2 * HOUR}])
    assert amounts(found) == {
        "job j0": "finds no nodes that are available for as long as it runs",
        "jobs left out": "1: j0",
    }


# --- jobs against each other -----------------------------------------------------------------------------


def test_contention_for_nodes() -> None:
    # Two jobs want the node for the first two hours: one is 2 h late, or there is one node more.
    found = reasons([{"modes": [mode(2, 2)], "deadline": SOON}] * 2)
    assert total_hours(found, "deadline") == 2.0
    assert amounts(found)["nodes of pool own"] == "1 more"
    assert sorted(found["nodes of pool own"].jobs) == ["j0", "j1"]
    assert found["jobs left out"].amount in ("1: j0", "1: j1")
    assert not any(what.startswith(("job ", "bandwidth", "packing")) for what in found)


def test_contention_of_many() -> None:
    # Three in turn on the rented node: done at 2, 4 and 6 h, so 2 + 4 h late; or two nodes more; or two left out.
    found = reasons([{"modes": [mode(2, 2, "rent")], "deadline": SOON}] * 3)
    assert total_hours(found, "deadline") == 6.0
    assert amounts(found)["nodes of pool rent"] == "2 more"
    assert found["nodes of pool rent"].jobs == ("j0", "j1", "j2")
    assert found["jobs left out"].amount.startswith("2: ")
    assert len(found["jobs left out"].jobs) == 2


def test_a_horizon_too_short_for_all() -> None:
    # Four times 2 h on the one node are 8 h of 6.
    found = reasons([{"modes": [mode(2, 2)]}] * 4)
    assert total_hours(found, "horizon") == 2.0
    assert amounts(found)["nodes of pool own"] == "1 more"
    assert len(found["jobs left out"].jobs) == 1


def test_a_chain_too_long() -> None:
    # 3 + 2 h by 4 h; more nodes would not help.
    found = reasons([{"modes": [mode(3)]}, {"modes": [mode(2)], "after": ["j0"], "deadline": 4 * HOUR}])
    assert amounts(found) == {"deadline of job j1": "1 h later", "jobs left out": "1: j1"}


def test_a_gang_and_a_job_on_one_of_its_nodes() -> None:
    # The gang waits for the job of 1 h, or there is a third node.
    gang: Doc = {"modes": [mode(2, 4)], "deadline": SOON}
    found = reasons([gang, {"modes": [mode(1)], "deadline": HOUR}], pools__0__nodes=2)
    assert amounts(found)["deadline of job j0"] == "1 h later"
    assert amounts(found)["nodes of pool own"] == "1 more"


def test_a_pinned_job_in_the_way() -> None:
    # It has the node for 3 h, then the other runs for 2 h: done at 5 h, 2 h after its deadline.
    pinned: Doc = {"modes": [mode(3, 2)], "running": running("own2", {0: [0, 1]})}
    found = reasons([pinned, {"modes": [mode(2)], "deadline": 3 * HOUR}])
    assert amounts(found)["deadline of job j1"] == "2 h later"
    assert amounts(found)["nodes of pool own"] == "1 more"
    assert found["jobs left out"].amount in ("1: j0", "1: j1")


# --- bandwidth -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("storage", [{"bandwidth_cap": 60.0}, {"bandwidth_cap": 60.0, "cache_capacity": 90.0}])
def test_a_bandwidth_cap_too_low(storage: Doc) -> None:
    # 100 MB/s of 60, and the dataset of 100 GB does not fit the cache.
    found = reasons([READER], sites__0__storage=storage)
    assert amounts(found) == {"bandwidth of site home": "40 MB/s more", "jobs left out": "1: j0"}


def test_readers_at_once_or_late() -> None:
    # Both by the deadline take 200 MB/s of 150; in turn one is 2 h late.
    found = reasons([READER | {"deadline": SOON}] * 2, sites__0__storage={"bandwidth_cap": 150.0})
    assert total_hours(found, "deadline") == 2.0
    assert amounts(found)["bandwidth of site home"] == "50 MB/s more"


def test_pinned_readers_clash() -> None:
    # Both run now, at 200 MB/s of 150.
    jobs = [READER | {"running": running("own1", {0: [gpu]})} for gpu in (0, 1)]
    found = reasons(jobs, sites__0__storage={"bandwidth_cap": 150.0})
    assert amounts(found)["bandwidth of site home"] == "50 MB/s more"
    assert found["jobs left out"].amount in ("1: j0", "1: j1")
    assert not any(what.startswith(("deadline", "horizon", "nodes")) for what in found)


def test_links_and_sites_are_told_apart() -> None:
    found = reasons([READER, FAR_READER], sites__0__storage={"bandwidth_cap": 60.0}, network__0__bandwidth=70.0)
    assert amounts(found) == {
        "bandwidth of site home": "40 MB/s more",
        "bandwidth from home to cloud": "30 MB/s more",
        "jobs left out": "2: j0, j1",
    }


# --- packing ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("jobs", "changes"),
    [
        # A GPU is free on either node, two on none for 2 h.
        (
            [
                {"modes": [mode(2)], "running": running("own1", {0: [0]})},
                {"modes": [mode(2)], "running": running("own1", {1: [1]})},
                {"modes": [mode(2, 2)], "deadline": SOON},
            ],
            {"pools__0__nodes": 2},
        ),
        # 27 GB of the 32 of two GPUs, but no two times 9 GB on one of 16.
        (
            [{"modes": [share(2, 0.5, memory=9.0)], "deadline": SOON}] * 3,
            {"pools__0__slices_per_gpu": 4, "pools__0__gpu_memory": 16.0},
        ),
        # 120 GB of RAM of the 128 of two nodes, but no two times 40 on one of 64.
        (
            [{"modes": [mode(2, ram=40.0)], "deadline": SOON}] * 3,
            {"pools__0__nodes": 2, "pools__0__ram": 64.0},
        ),
    ],
)
def test_sums_fit_but_no_packing_exists(jobs: list[Doc], changes: dict[str, Any]) -> None:
    found = reasons(jobs, **changes)
    assert "sums over the pools own fit" in amounts(found)["packing"]
    assert total_hours(found, "deadline") == 2.0
    assert len(found["jobs left out"].jobs) == 1


def test_large_runs_are_seen_in_the_sums() -> None:
    # 3 + 3 + 2 of 4 + 4 GPUs: a third node, or one of the three 2 h late.
    jobs: list[Doc] = [{"modes": [mode(2, gpus)], "deadline": SOON} for gpus in (3, 3, 2)]
    found = reasons(jobs, pools__0__nodes=2, pools__0__gpus_per_node=4)
    assert amounts(found)["nodes of pool own"] == "1 more"
    assert found["nodes of pool own"].jobs == ("j0", "j1", "j2")
    assert total_hours(found, "deadline") == 2.0


# --- how it is said --------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["auto", "exact", "fast"])
def test_every_engine_explains_what_is_impossible_by_itself(engine: str) -> None:
    assert "job j0" in reasons([{"modes": [mode(8)]}], engine)


def test_with_an_open_horizon_only_deadlines_give_way() -> None:
    # In turn, done at 2, 4 and 6 h.
    found = reasons([{"modes": [mode(2, 2)], "deadline": SOON}] * 3, horizon="auto")
    assert total_hours(found, "deadline") == 2.0 + 4.0
    assert not any(what.startswith("horizon") for what in found)


def test_jobs_that_may_be_rejected_are_no_reason() -> None:
    # j0 runs too long and is rejected at its price; j1 and j2 clash.
    hopeless: Doc = {"modes": [mode(8)], "reject_cost": 1.0}
    found = reasons([hopeless, *[{"modes": [mode(2, 2)], "deadline": SOON}] * 2])
    assert total_hours(found, "deadline") == 2.0
    assert amounts(found)["nodes of pool own"] == "1 more"
    assert found["jobs left out"].amount in ("1: j1", "1: j2")
    assert not any("j0" in clash.jobs or "j0" in str(clash) for clash in found.values())


def test_the_same_explanation_twice() -> None:
    instance = instance_of([{"modes": [mode(2, 2)], "deadline": SOON}] * 2)
    first = explain(instance, frozenset(), Limits(threads=1))
    assert [str(reason) for reason in first.reasons] == [
        str(reason) for reason in explain(instance, frozenset(), Limits(threads=1)).reasons
    ]


def test_a_verdict_stays_one_where_the_open_horizon_cannot_be_planned() -> None:
    """Slots of a second: with the horizon open the two jobs of 30 h would need more slots than there may be."""
    jobs = [{"modes": [mode(30, gpus=2)]}, {"modes": [mode(30, gpus=2)]}]
    with pytest.raises(Infeasible) as caught:
        solve(instance_of(jobs, slot=1.0, horizon=HOUR), "fast", Limits())
    assert {clash.way for clash in caught.value.reasons} == {"alone", "fewer jobs"}
