"""The instance as of now: times moved with the start, what runs where it runs, what is down left out; its faults."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from models.domain import Instance
from models.errors import Fault, InvalidInput
from planner.io.instances import document_of, instance_of_yaml, yaml_bytes
from planner.nightly.now import Now, read_now
from tests.documents import HOUR
from tests.engines.samples import mode, share
from tests.nightly.nights import Cluster, hours

RUNS = {"job": "j0", "mode": "own1", "pool": "own", "places": [{"node": 0, "gpus": [1]}]}


def now(
    folder: Path, jobs: list[dict[str, Any]], at: float = 2, state: dict[str, Any] | None = None, **changes: Any
) -> Now:
    """The instance so many hours later."""
    cluster = Cluster(folder, jobs, **changes)
    return read_now(cluster.instance, cluster.say(hours(at), **(state or {})))


def faults(folder: Path, jobs: list[dict[str, Any]], at: float = 2, state: Any = None, **changes: Any) -> list[Fault]:
    """The faults of a state."""
    with pytest.raises(InvalidInput) as told:
        now(folder, jobs, at, state, **changes)
    return list(told.value.faults)


def round_trip(instance: Instance) -> Instance:
    """The same written and read."""
    return instance_of_yaml(yaml_bytes(document_of(instance)).decode())


def test_every_instant_stays_what_it_was(tmp_path: Path) -> None:
    jobs = [
        {"modes": [mode(1)], "release": HOUR, "due": 4 * HOUR, "weight": 1.0, "deadline": 20 * HOUR},
        {"modes": [mode(1)], "value": [{"by": 3 * HOUR, "value": 5.0}], "due": HOUR, "weight": 1.0},
        {"modes": [mode(1)], "utility": {"shape": "step", "worth": 3.0, "by": 6 * HOUR}},
        {"modes": [mode(1)], "utility": {"shape": "finish_time_fairness", "worth": 3.0, "fair_time": HOUR}},
    ]
    windows = [{"since": HOUR, "until": 2 * HOUR}, {"since": HOUR, "until": 5 * HOUR}]
    found = now(tmp_path, jobs, pools__1__unavailable=windows).instance
    assert found.start.isoformat() == hours(2)
    first, second, third, fourth = found.jobs
    assert (first.release, first.due, first.deadline) == (-HOUR, 2 * HOUR, 18 * HOUR)
    assert (second.value[0].by, second.due) == (HOUR, -HOUR)
    assert third.utility is not None
    assert third.utility.model_dump()["by"] == 4 * HOUR
    assert fourth.utility is not None
    assert fourth.utility.model_dump()["fair_time"] == HOUR
    assert fourth.release == -2 * HOUR, "fairness counts from it"
    (window,) = found.pools[1].unavailable
    assert (window.since, window.until) == (-HOUR, 3 * HOUR)
    assert round_trip(found).content_hash == found.content_hash


def test_without_a_state_the_instance_is_as_it_is(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    found = read_now(cluster.instance, None)
    assert (found.complete, found.running) == (frozenset(), frozenset())
    assert found.instance.start.isoformat() == hours(0)


def test_what_is_complete_is_left_out_and_nobody_waits_for_it(tmp_path: Path) -> None:
    jobs = [{"modes": [mode(1)]}, {"modes": [mode(1)], "after": ["j0"]}, {"modes": [mode(1)], "after": ["j1"]}]
    found = now(tmp_path, jobs, state={"complete": ["j0"]})
    assert [(job.id, job.after) for job in found.instance.jobs] == [("j1", ()), ("j2", ("j1",))]
    assert found.complete == {"j0"}


@pytest.mark.parametrize(
    ("left", "expected_h"), [({}, 4.0), ({"remaining": 0.25}, 1.0), ({"remaining_time": "3h"}, 3.0)]
)
def test_a_job_that_runs_has_what_is_left_of_all_its_modes(
    tmp_path: Path, left: dict[str, Any], expected_h: float
) -> None:
    jobs = [{"modes": [mode(4), mode(2, 2)], "release": HOUR, "after": ["j1"]}, {"modes": [mode(1)]}]
    (job, _) = now(tmp_path, jobs, state={"running": [RUNS | left]}).instance.jobs
    assert [entry.duration / HOUR for entry in job.modes] == pytest.approx([expected_h, expected_h / 2])
    assert job.running is not None
    assert (job.running.mode, job.running.places[0].gpus) == ("own1", (1,))
    assert (job.release, job.after) == (-HOUR, ()), "that it runs proves that it may"


def test_a_job_that_is_paused_goes_on_from_where_it_was(tmp_path: Path) -> None:
    running = {"mode": "own1", "pool": "own", "places": [{"node": 0, "gpus": [0]}]}
    jobs = [{"modes": [mode(4), mode(2, 2)], "running": running}]
    found = now(tmp_path, jobs, state={"paused": [{"job": "j0", "remaining": 0.25}]})
    (job,) = found.instance.jobs
    assert [entry.duration / HOUR for entry in job.modes] == [1.0, 0.5]
    assert job.running is None
    assert (found.paused, found.running) == ({"j0"}, frozenset())


def test_what_is_left_of_samples_and_of_a_share(tmp_path: Path) -> None:
    throughputs = [{"model": "m", "gpu": "A", "gpus": 1, "samples_per_s": 10.0}]
    jobs = [{"model": "m", "samples": 72000.0}, {"modes": [share(2, 0.5, slowdown=1.5)]}]
    rows = [RUNS | {"mode": "1xA", "remaining_time": "30m"}]
    rows.append(
        RUNS | {"job": "j1", "mode": "share 0.5", "places": [{"node": 0, "gpus": [0]}], "remaining_time": "90m"}
    )
    changes: dict[str, Any] = {"throughputs": throughputs, "pools__0__slices_per_gpu": 2}
    one, two = now(tmp_path, jobs, state={"running": rows}, **changes).instance.jobs
    assert one.samples == pytest.approx(18000.0)
    assert two.modes[0].duration == pytest.approx(HOUR), "half of it is 90 minutes with the neighbours' slowdown"


def test_nodes_that_are_down_or_on(tmp_path: Path) -> None:
    state = {
        "down": [{"pool": "own", "nodes": [1], "until": hours(5)}, {"pool": "rent", "until": "4h"}],
        "nodes_on": [{"pool": "own", "nodes": 2}],
    }
    found = now(tmp_path, [], state=state, pools__0__nodes=3).instance
    own, rent = found.pools
    assert own.nodes_on == 2
    assert [(w.since, w.until, w.nodes) for w in own.unavailable] == [(0.0, 3 * HOUR, (1,))]
    assert [(w.since, w.until, w.nodes) for w in rent.unavailable] == [(0.0, 2 * HOUR, None)]


def test_lists_of_prices_lose_the_slots_that_have_passed(tmp_path: Path) -> None:
    found = now(tmp_path, [], horizon=6 * HOUR, pools__0__price=[1, 2, 3, 4, 5, 6]).instance
    assert found.pools[0].price == (3, 4, 5, 6)
    assert found.horizon == 4 * HOUR
    assert round_trip(found).content_hash == found.content_hash


def test_a_horizon_that_is_stated_keeps_its_length_where_no_price_ends(tmp_path: Path) -> None:
    assert now(tmp_path, [], horizon=6 * HOUR).instance.horizon == 6 * HOUR


@pytest.mark.parametrize(
    ("state", "place", "words"),
    [
        ({"running": [RUNS | {"job": "j7"}]}, "running[0].job", "no such name in jobs"),
        ({"running": [RUNS | {"pool": "onw"}]}, "running[0].pool", "own"),
        ({"running": [RUNS | {"mode": "own9"}]}, "running[0].mode", "mode"),
        ({"running": [RUNS | {"places": [{"node": 4, "gpus": [0]}]}]}, "running[0].places[0]", "node"),
        ({"running": [RUNS | {"places": [{"node": 0, "gpus": [7]}]}]}, "running[0].places[0]", "GPU"),
        ({"running": [RUNS, RUNS | {"job": "j1"}]}, "running[1].places[0]", "taken"),
        ({"running": [RUNS], "complete": ["j0"]}, "complete[0]", "running[0]"),
        ({"running": [RUNS | {"remaining": 0.5, "remaining_time": 5}]}, "running[0]", "both"),
        ({"running": [RUNS | {"remaining": 0}]}, "running[0].remaining", "more than 0"),
        ({"running": [RUNS | {"remaining": 2}]}, "running[0].remaining", "more than 1"),
        ({"running": [{"job": "j0"}]}, "running[0].places", "missing"),
        ({"paused": [{"job": "j0"}]}, "paused[0].remaining", "missing"),
        ({"paused": [{"job": "j9", "remaining": 0.5}]}, "paused[0].job", "no such name"),
        ({"running": [RUNS], "paused": [{"job": "j0", "remaining": 0.5}]}, "paused[0].job", "running[0]"),
        ({"complete": ["j0", "j0"]}, "complete[1]", "complete[0]"),
        ({"complete": [["j0"]]}, "complete[0]", "not a name"),
        ({"down": [{"pool": "own", "until": "1h"}]}, "down[0].until", "not after the moment"),
        ({"down": [{"pool": "own", "nodes": [9], "until": "5h"}]}, "down[0].nodes", "9"),
        ({"down": [{"pool": "own", "until": "5h"}], "running": [RUNS]}, "running[0].places[0].node", "down[0]"),
        ({"nodes_on": [{"pool": "own", "nodes": 5}]}, "nodes_on[0].nodes", "5"),
        ({"nodes_on": [{"pool": "own", "nodes": 1}] * 2}, "nodes_on[1].pool", "nodes_on[0]"),
        ({"runing": []}, "runing", "not a field"),
        ({"format": "burstplan-state/9"}, "format", "burstplan-state/1"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_fault_is_told_at_its_place(tmp_path: Path, state: dict[str, Any], place: str, words: str) -> None:
    found = faults(tmp_path, [{"modes": [mode(4)]}, {"modes": [mode(4)]}], state=state)
    told = [fault for fault in found if fault.location.startswith(place)]
    assert told, [str(fault) for fault in found]
    assert any(words in str(fault) for fault in told), [str(fault) for fault in told]
    assert all("now.json line" in str(fault.where) for fault in found)
    assert all(fault.mend for fault in found)


@pytest.mark.parametrize(
    ("at", "changes", "words"),
    [
        (-1, {}, "before the start"),
        (2.5, {"horizon": 6 * HOUR, "pools__0__price": [1, 2, 3, 4, 5, 6]}, "within a slot"),
        (7, {"horizon": 6 * HOUR, "pools__0__price": [1, 2, 3, 4, 5, 6]}, "after the last of the prices"),
    ],
)
def test_moments_that_cannot_be(tmp_path: Path, at: float, changes: dict[str, Any], words: str) -> None:
    (fault,) = faults(tmp_path, [], at, None, **changes)
    assert fault.location == "at"
    assert words in fault.problem


def test_all_faults_of_all_parts_are_told_at_once(tmp_path: Path) -> None:
    state = {"running": [RUNS | {"job": "j7"}, "x"], "complete": ["j8"], "down": [{"pool": "no", "until": "soon"}]}
    places = {fault.location for fault in faults(tmp_path, [{"modes": [mode(4)]}], state=state)}
    assert {"running[0].job", "running[1]", "complete[0]", "down[0].until"} <= places


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("now.yaml", "at: 2h\nat: 3h\n", "twice"),
        ("now.yaml", "- 1\n", "not a record"),
        ("now.yaml", "", "empty"),
        ("now.json", "{", "not JSON"),
        ("now.txt", "at: 2h", "not a state file"),
        ("nowhere.yaml", None, "does not exist"),
    ],
)
def test_files_that_are_none(tmp_path: Path, name: str, text: str | None, words: str) -> None:
    cluster = Cluster(tmp_path)
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(InvalidInput, match=words):
        read_now(cluster.instance, tmp_path / name)


def test_a_job_that_the_instance_has_running_must_be_in_the_state(tmp_path: Path) -> None:
    running = {"mode": "own1", "pool": "own", "places": [{"node": 0, "gpus": [0]}]}
    jobs = [{"modes": [mode(4)], "running": running}]
    (fault,) = faults(tmp_path, jobs)
    assert fault.location == "running"
    assert fault.value == "j0"
    assert now(tmp_path, jobs, state={"complete": ["j0"]}).instance.jobs == ()


def test_yaml_states_are_read_as_json_ones(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    path = cluster.say(hours(1), running=[RUNS | {"remaining": 0.5}])
    other = tmp_path / "now.yaml"
    other.write_text(json.dumps(json.loads(path.read_text())))
    assert (
        read_now(cluster.instance, path).instance.content_hash
        == read_now(cluster.instance, other).instance.content_hash
    )
