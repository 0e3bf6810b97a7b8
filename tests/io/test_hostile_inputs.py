"""Files that are huge, binary or in other encodings, and paths that are no files: refused with reasons."""

from __future__ import annotations

import gzip
import json
import os
import random
import time
from pathlib import Path

import pytest
from pydantic import TypeAdapter, ValidationError

from models.domain.fields import Id
from models.errors import Fault
from planner.io.instances import read_instance
from tests.io.reading import faults_of, write
from tests.io.samples import VALID

MIB = 1 << 20
HEAD = VALID.split("pools:")[0]
POOLS = "id,site,gpu,gpus_per_node,nodes,price\np1,dc,A100,8,2,4 USD/h\n"


def _only(path: Path) -> Fault:
    (fault,) = faults_of(path)
    return fault


@pytest.mark.parametrize(
    "char", ["\x00", "\x7f", "\x80", "\x9b", "\x9f", "\u2028", "\u202a", "\u202e", "\u2066", "\u2069"]
)
def test_names_that_command_a_terminal_are_refused(char: str) -> None:
    with pytest.raises(ValidationError, match="control character"):
        TypeAdapter(Id).validate_python(f"a{char}b")


@pytest.mark.parametrize("name", ["a\xa0b", "n\u200dm", "名前", "\u05d0\u05d1", "a\u2065b", "a\u206ab"])
def test_names_of_every_script_are_taken(name: str) -> None:
    assert TypeAdapter(Id).validate_python(name) == name


@pytest.mark.parametrize("kind", ["bytes", "letters", "zeros"])
@pytest.mark.parametrize("name", ["a.yaml", "a.json", "folder/pools.csv", "folder/instance.yaml"])
def test_200_mb_of_noise_is_refused_quickly(tmp_path: Path, name: str, kind: str) -> None:
    write(tmp_path / "folder", {"instance.yaml": HEAD, "pools.csv": POOLS})
    path = tmp_path / name
    noise = random.Random(0).randbytes(MIB)
    block = bytes(97 + byte % 26 for byte in noise) if kind == "letters" else noise
    with open(path, "wb") as file:
        if kind == "zeros":
            file.truncate(200 * MIB)  # sparse
        else:
            for _ in range(200):
                file.write(block)
    begin = time.perf_counter()
    faults = faults_of(path.parent if "folder" in name else path)
    assert time.perf_counter() - begin < 20
    assert len(faults) == 1
    path.unlink()


def test_a_wide_first_row_of_a_table_is_refused(tmp_path: Path) -> None:
    folder = write(tmp_path / "f", {"instance.yaml": HEAD, "pools.csv": ",".join(["id"] + ["x"] * 20_000)})
    assert any("too many columns" in fault.problem for fault in faults_of(folder))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_other_unicode_encodings_are_named(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "a.yaml"
    path.write_bytes(VALID.encode(encoding))
    fault = _only(path)
    assert "UTF-" in fault.problem
    assert "UTF-8" in str(fault.mend)


def test_a_byte_order_mark_is_no_fault(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + VALID.encode())
    assert read_instance(path).jobs[0].id == "a"
    mark = b"\xef\xbb\xbf" + POOLS.encode()
    assert read_instance(write(tmp_path / "f", {"instance.yaml": HEAD, "pools.csv": mark})).pools[0].id == "p1"


def test_latin_1_is_refused_with_its_place(tmp_path: Path) -> None:
    table = POOLS.encode() + "café,dc,A100,8,2,4 USD/h\n".encode("latin-1")
    fault = _only(write(tmp_path / "f", {"instance.yaml": HEAD, "pools.csv": table}))
    assert fault.problem == "has a byte that is not UTF-8"
    assert fault.value == f"0xE9 at byte {len(POOLS) + 3}, line 3"


def test_a_nul_byte_is_refused_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_bytes(b"x" * 100_000 + b"\n\0")
    assert _only(path).value == "byte 100001, line 2"


@pytest.mark.parametrize(
    ("data", "word"),
    [(gzip.compress(b"a: 1", mtime=0), "gzip"), (b"PK\x03\x04rest", "zip"), (b"%PDF-1.7", "PDF")],
    ids=["gzip", "zip", "PDF"],
)
def test_files_of_other_programs_are_named(tmp_path: Path, data: bytes, word: str) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(data)
    assert word in _only(path).problem


def test_one_bad_cell_in_thousands_of_rows_is_one_fault(tmp_path: Path) -> None:
    rows = [f"j{k},{k % 7}h,2 USD/h\n" for k in range(5000)]
    rows[3210] = "j3210,soon,2 USD/h\n"
    modes = [f"j{k},A100,1,30m\n" for k in range(5000)]
    files = {
        "instance.yaml": HEAD,
        "pools.csv": POOLS,
        "jobs.csv": "id,due,weight\n" + "".join(rows),
        "modes.csv": "job,gpu,gpus,duration\n" + "".join(modes),
    }
    fault = _only(write(tmp_path / "f", files))
    assert fault.where == f"{tmp_path / 'f' / 'jobs.csv'} row 3212"
    assert fault.location == "jobs[3210].due"


def test_thousands_of_dangling_references_take_no_time_and_are_cut(tmp_path: Path) -> None:
    rows = "".join(f"j{k},k{k}\n" for k in range(5000))
    modes = "".join(f"j{k},A100,1,30m\n" for k in range(5000))
    files = {
        "instance.yaml": HEAD,
        "pools.csv": POOLS,
        "jobs.csv": "id,after\n" + rows,
        "modes.csv": "job,gpu,gpus,duration\n" + modes,
    }
    begin = time.perf_counter()
    faults = faults_of(write(tmp_path / "f", files))
    assert time.perf_counter() - begin < 30
    assert len(faults) == 1001
    assert faults[-1].problem == "and 4000 more faults"


def test_a_file_of_bad_rows_is_given_up(tmp_path: Path) -> None:
    table = POOLS + "p,q\n" * 100_000
    faults = faults_of(write(tmp_path / "f", {"instance.yaml": HEAD, "pools.csv": table}))
    assert "reading stopped here" in [fault.problem for fault in faults]
    assert len(faults) < 500


def test_a_large_bomb_of_aliases_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("a: &a [" + "x, " * 1000 + "]\nb: [" + "*a, " * 100_000 + "]\n")
    assert all("not allowed" in fault.problem for fault in faults_of(path))


@pytest.mark.parametrize("text", ["[" * 1_000_000, "{a: " * 100_000, "- " * 1_000_000, "? " * 100_000])
def test_deep_yaml_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(text)
    _only(path)


@pytest.mark.parametrize("text", ["[" * 1_000_000, '{"a":' * 1_000_000])
def test_deep_json_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(text)
    assert "deep" in _only(path).problem


def test_deep_json_in_a_cell_is_refused(tmp_path: Path) -> None:
    table = POOLS.replace("4 USD/h", "[" * 100_000)
    assert "deep" in _only(write(tmp_path / "f", {"instance.yaml": HEAD, "pools.csv": table})).problem


def test_long_texts_of_digits_are_refused_quickly(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    document = {"currency": "USD", "start": "9" * 50_000, "slot": "9" * 50_000 + "x", "horizon": 10**4000}
    jobs = [{"id": "9" * 50_000, "samples": "9" * 50_000 + "x", "speed_levels": ["1" * 50_000]}]
    path.write_text(json.dumps(document | {"cache_levels": "9" * 50_000, "jobs": jobs}))
    begin = time.perf_counter()
    assert len(faults_of(path)) >= 7
    assert time.perf_counter() - begin < 5


def test_paths_that_are_no_instance_are_refused(tmp_path: Path) -> None:
    (tmp_path / "night.yaml").write_text(VALID)
    missing = _only(tmp_path / "nigth.yaml")
    assert missing.problem == "does not exist"
    assert missing.mend == "did you mean night.yaml?"
    assert "does not exist" in _only(tmp_path / "no" / "a.yaml").problem
    assert "does not exist" in _only(tmp_path / "night").problem
    (tmp_path / "a.txt").write_text("x")
    assert "folder" in str(_only(tmp_path / "a.txt").mend)
    (tmp_path / "jobs.csv").write_text("x")
    assert "folder" in str(_only(tmp_path / "jobs.csv").mend)
    (tmp_path / "empty").mkdir()
    assert "missing from the folder" in _only(tmp_path / "empty").problem
    assert _only(tmp_path / "a\0b.yaml").problem.startswith("cannot be read")
    assert _only(tmp_path / ("x" * 300)).problem.startswith(("cannot be read", "is not an instance"))
    assert _only(tmp_path / ("x" * 300 + ".json")).problem.startswith("cannot be read")
    assert _only(Path("/dev/null/x.yaml")).problem.startswith("cannot be read")


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.yaml")
    assert _only(tmp_path / "a.yaml").problem == "is not a file"


def test_a_folder_under_the_name_of_a_table_is_refused(tmp_path: Path) -> None:
    folder = write(tmp_path / "f", {"instance.yaml": HEAD, "pools.csv": POOLS})
    (folder / "jobs.csv").mkdir()
    assert _only(folder).problem == "is a folder"


def test_a_link_to_itself_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").symlink_to("a.yaml")
    assert _only(tmp_path / "a.yaml").problem.startswith("cannot be read")


def test_the_head_alone_sends_to_its_folder(tmp_path: Path) -> None:
    folder = write(tmp_path / "f", {"instance.yaml": HEAD, "pools.csv": POOLS})
    assert _only(folder / "instance.yaml").mend == "give the folder that it is in"


def test_names_of_files_are_shown_escaped(tmp_path: Path) -> None:
    fault = _only(tmp_path / "a\x1b[31m\n.yaml")
    assert "\\x1b[31m\\n.yaml" in str(fault.where)
