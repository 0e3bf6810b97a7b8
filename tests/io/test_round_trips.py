"""Either spelling turns into the others and back without loss, to the last bit of every number."""

from __future__ import annotations

import random
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from models.domain import Elastic, Instance, StepUtility
from models.errors import InvalidInput
from planner.io.instances import folder_files, instance_of_yaml, read_instance, write_instance
from tests.io.samples import VALID, rich_instance
from tests.random_instances import FAMILIES, random_instance


def check_round_trips(instance: Instance, folder: Path) -> None:
    """Through every spelling and between them, back to the same."""
    spellings = [folder / "a.yaml", folder / "b.json", folder / "c"]
    found = instance
    for path in [*spellings, *reversed(spellings)]:
        write_instance(found, path)
        found = read_instance(path)
        assert found == instance
        assert found.name == instance.name
        assert found.content_hash == instance.content_hash
        assert [job.id for job in found.jobs] == [job.id for job in instance.jobs]


def test_the_rich_instance_has_every_field() -> None:
    def unused(record: Any) -> set[str]:
        fields = type(record).model_fields
        return {name for name, info in fields.items() if getattr(record, name) == info.default}

    instance = rich_instance()
    for records in (
        instance.sites[:1],
        instance.pools,
        instance.jobs,
        instance.throughputs,
        instance.network,
    ):
        assert not set.intersection(*(unused(record) for record in records))
    storages = [site.storage for site in instance.sites]
    assert not set.intersection(*(unused(storage) for storage in storages))
    assert not set.intersection(*(unused(tier) for storage in storages for tier in storage.tiers))
    assert not set.intersection(*(unused(storage.power) for storage in storages if storage.power is not None))


def test_the_rich_instance(tmp_path: Path) -> None:
    check_round_trips(rich_instance(), tmp_path)


def test_what_is_written_does_not_change_from_one_trip_to_the_next(tmp_path: Path) -> None:
    write_instance(rich_instance(), tmp_path / "a.yaml")
    first = (tmp_path / "a.yaml").read_bytes()
    write_instance(read_instance(tmp_path / "a.yaml"), tmp_path / "a.yaml")
    assert (tmp_path / "a.yaml").read_bytes() == first


@pytest.mark.parametrize("family", FAMILIES)
def test_random_instances(tmp_path: Path, family: str) -> None:
    draw = random.Random(7)
    for _ in range(10):
        check_round_trips(random_instance(family, draw), tmp_path)


NUMBERS = st.floats(0, 1e9, allow_nan=False) | st.integers(0, 10**6).map(float) | st.floats(0, 1e-3)
POSITIVE = st.floats(1e-6, 1e7) | st.integers(1, 10**6).map(float)
TIMES = st.floats(-1e6, 1e6) | st.integers(-(10**9), 10**9).map(lambda n: n / 1e6)
STARTS = st.tuples(st.integers(-(10**9), 10**10), st.integers(-14 * 60, 14 * 60)).map(
    lambda draw: datetime.fromtimestamp(draw[0], timezone(timedelta(minutes=draw[1]))).isoformat()
)
NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=8)
COMMON = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@COMMON
@given(data=st.data())
def test_any_quantity_comes_back_to_the_last_bit(tmp_path: Path, data: st.DataObject) -> None:
    def some(numbers: st.SearchStrategy[float]) -> float:
        return data.draw(numbers)

    document = {
        "currency": "JPY",
        "start": data.draw(STARTS),
        "slot": 3600,
        "sites": [
            {"id": "s", "kind": "cloud", "energy_price": some(NUMBERS),
             "storage": {"cache_price": some(NUMBERS), "cache_capacity": some(NUMBERS),
                         "cache_speed": some(POSITIVE), "billed": some(POSITIVE),
                         "tariff": [{"fixed": some(NUMBERS), "per_mb_s": some(NUMBERS)}]}},
            {"id": "t", "kind": "cloud", "storage": {"billed": some(POSITIVE), "tiers": [
                {"up_to": some(POSITIVE), "per_mb_s": 1e9}, {"per_mb_s": some(NUMBERS)}]}},
            {"id": "u", "kind": "cloud", "storage": {"billed": some(POSITIVE), "power": {
                "factor": some(NUMBERS), "exponent": some(st.floats(0, 1)), "up_to": some(POSITIVE),
                "error": some(st.floats(1e-3, 0.5))}}},
        ],
        "pools": [
            {"id": "p", "site": "s", "gpu": "g", "gpus_per_node": 8, "nodes": 2, "price": some(NUMBERS),
             "gpu_power": some(NUMBERS), "boot_time": some(NUMBERS), "ram": some(POSITIVE), "market": "spot",
             "interruption_rate": some(NUMBERS), "unavailable": [{"since": some(TIMES), "until": 2e6}]},
        ],
        "datasets": [{"id": "d", "size": some(POSITIVE), "home": "s"}],
        "jobs": [
            {"id": "j", "due": some(TIMES), "release": -2e9, "weight": some(NUMBERS), "dataset": "d",
             "speed_levels": [some(st.floats(1e-3, 1))], "reject_cost": some(NUMBERS), "spot": True,
             "modes": [{"gpu": "g", "share": some(st.floats(1e-3, 1)), "duration": some(POSITIVE),
                        "slowdown": some(st.floats(1, 10)), "read_rate": some(NUMBERS)}]},
        ],
    }  # fmt: skip
    try:
        instance = Instance.model_validate(document)
    except (InvalidInput, ValueError):
        assume(False)
        raise
    check_round_trips(instance, tmp_path)


@COMMON
@given(names=st.lists(NAMES.filter(lambda name: name == name.strip()), min_size=8, max_size=8, unique=True))
def test_any_name_comes_back(tmp_path: Path, names: list[str]) -> None:
    site, pool, gpu, dataset, one, two, three, mode = names
    document = {
        "name": site, "currency": "USD", "start": "2026-01-12T18:00:00Z", "slot": 60,
        "sites": [{"id": site, "kind": "on_prem"}],
        "pools": [{"id": pool, "site": site, "gpu": gpu, "gpus_per_node": 1, "nodes": 1, "price": 1}],
        "datasets": [{"id": dataset, "size": 1, "home": site}],
        "jobs": [
            {"id": one, "dataset": dataset, "modes": [{"id": mode, "gpu": gpu, "gpus": 1, "duration": 60}]},
            {"id": two, "after": [one], "modes": [{"pool": pool, "gpus": 1, "duration": 60}]},
            {"id": three, "after": [two, one], "modes": [{"pool": pool, "gpus": 1, "duration": 60}]},
        ],
    }  # fmt: skip
    try:
        instance = Instance.model_validate(document)
    except ValueError:  # \u2028 and the like are no names
        assume(False)
        raise
    check_round_trips(instance, tmp_path)


def test_an_instance_without_jobs_and_datasets(tmp_path: Path) -> None:
    instance = instance_of_yaml(VALID.split("datasets:")[0])
    check_round_trips(instance, tmp_path)
    assert sorted(folder_files(instance)) == ["instance.yaml", "pools.csv"]


def test_a_table_may_stand_in_the_head_and_columns_in_any_order(tmp_path: Path) -> None:
    head, tables = VALID.split("pools:")
    (tmp_path / "instance.yaml").write_text(head + "datasets:" + tables.split("datasets:")[1].split("jobs:")[0])
    (tmp_path / "pools.csv").write_text(
        " nodes , price,id,gpu,gpus_per_node,site\r\n"
        "2,4 USD/h,p1,A100,8,dc\r\n\r\n"
        '4,"{""default"": ""12 USD/h""}", p2 ,H100,8,cloud\r\n,,,,,\r\n'
    )
    (tmp_path / "jobs.csv").write_text(
        "id,after,running.mode,running.pool,running.places,spot,speed_levels\n"
        'a,,2xA100,p1,"[{""node"": 0, ""gpus"": [0, 1]}]",TRUE,1; 0.5\n'
        'b,"[""a""]",,,,no,\nc,a ; b,,,,,\n'
    )
    (tmp_path / "modes.csv").write_text(
        "job,gpu,gpus,duration\nc,A100,1,1h\na,A100,2,3h\nc,A100,4,30m\nb,H100,8,1:00:00\n"
    )
    instance = read_instance(tmp_path)
    a, b, c = instance.jobs
    assert a.running is not None
    assert (a.running.mode, a.spot, a.speed_levels) == ("2xA100", True, (1.0, 0.5))
    assert (b.after, b.modes[0].duration, b.spot) == (("a",), 3600.0, False)
    assert (c.after, [mode.gpus for mode in c.modes]) == (("a", "b"), [1, 4])
    assert [pool.id for pool in instance.pools] == ["p1", "p2"]
    (tmp_path / "out").mkdir()
    check_round_trips(instance, tmp_path / "out")


@pytest.mark.parametrize(
    ("columns", "cells"),
    [
        ("utility", '"{""shape"": ""step"", ""worth"": ""3 USD"", ""by"": ""6h""}"'),
        ("utility.shape,utility.worth,utility.by,utility.zero_at", "step,3 USD,6h,"),
    ],
)
def test_a_utility_is_a_cell_or_has_columns(tmp_path: Path, columns: str, cells: str) -> None:
    (tmp_path / "instance.yaml").write_text(VALID.split("datasets:")[0])
    (tmp_path / "jobs.csv").write_text(f"id,{columns}\na,{cells}\n")
    (tmp_path / "modes.csv").write_text("job,gpu,gpus,duration\na,A100,1,1h\n")
    instance = read_instance(tmp_path)
    assert instance.jobs[0].utility == StepUtility(shape="step", worth=3.0, by=6 * 3600.0)
    (tmp_path / "out").mkdir()
    check_round_trips(instance, tmp_path / "out")


@pytest.mark.parametrize(
    ("column", "cell", "expected"),
    [
        ("elastic", "{}", Elastic()),
        ("elastic", '"{""changes"": 2}"', Elastic(changes=2)),
        ("elastic", '"{""changes"": null}"', Elastic()),
        ("elastic.changes", "0", Elastic(changes=0)),
        ("elastic", "", None),
        ("elastic.changes", "", None),
    ],
)
def test_elastic_is_a_cell_or_has_a_column(tmp_path: Path, column: str, cell: str, expected: Elastic | None) -> None:
    (tmp_path / "instance.yaml").write_text(VALID.split("datasets:")[0])
    (tmp_path / "jobs.csv").write_text(f"id,{column}\na,{cell}\n")
    (tmp_path / "modes.csv").write_text("job,gpu,gpus,duration\na,A100,1,1h\n")
    instance = read_instance(tmp_path)
    assert instance.jobs[0].elastic == expected
    (tmp_path / "out").mkdir()
    check_round_trips(instance, tmp_path / "out")


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_any_kind_of_line_end_is_read(tmp_path: Path, newline: str) -> None:
    instance = rich_instance()
    for name, data in folder_files(instance).items():
        (tmp_path / name).write_bytes(data.replace(b"\n", newline.encode()).rstrip(b"\r\n"))
    assert read_instance(tmp_path) == instance
