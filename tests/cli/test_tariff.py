"""`planner tariff`: the page, the JSON document, what it prints pasted into an instance, and every fault at once."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from models.storage.tariff import tariff_of
from planner.io.instances import instance_of_yaml, read_instance
from planner.io.price_list import MOST_POINTS
from tests.cli.conftest import Run, write_document
from tests.cli.terminal import piped
from tests.report.samples import instance_document

LUSTRE = Path(__file__).parents[2] / "instances" / "lustre.csv"
POWER = "mb_s,price\n" + "".join(f"{10 * 2**n},{0.05 * (10 * 2**n) ** 0.6!r}\n" for n in range(10))


@pytest.fixture
def table(tmp_path: Path) -> Any:
    """A file with some text."""

    def written(content: str | bytes) -> Path:
        path = tmp_path / "prices.csv"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return written


def test_the_page(run: Run) -> None:
    result = run("tariff", LUSTRE)
    assert result.exit_code == 0
    said = result.stdout
    assert "lustre.csv, 4 points, 150 to 1,200 MB/s" in said
    assert "1 line   0.155046 + 0.00102565 B   0.60 % at 300" in said
    assert "recommended  1 line: the simplest that is nowhere off by more than 1 %" in said
    assert "least squares of\nrelative errors" in said
    assert "costs more at 300 -> 600 MB/s than below" in said
    assert "off by up to 0.93 % at 300 MB/s" in said
    assert max(map(len, said.splitlines())) <= 100


@pytest.mark.parametrize("content", [LUSTRE.read_text(), POWER, "mb_s,price\n100,1\n200,1.5\n400,1.7\n800,9\n"])
def test_what_it_ends_with_can_be_pasted(run: Run, table: Any, content: str) -> None:
    result = run("tariff", table(content))
    end = result.stdout.split("under storage: of a site:\n\n")[1]
    document = instance_document()
    head = yaml.safe_dump({key: value for key, value in document.items() if key != "sites"})
    sites = f"sites:\n  - id: away\n    kind: cloud\n  - id: home\n    kind: on_prem\n    storage:\n{end}"
    instance = instance_of_yaml(head + sites)
    told = json.loads(run("tariff", table(content), "--json").stdout)
    (fit,) = (fit for fit in told["fits"] if fit["name"] == told["recommended"])
    rows = [tuple(map(float, line.split(","))) for line in content.split()[1:]]
    tariff = tariff_of(instance.sites[1].storage)
    worst = max(abs(float(tariff.price(mb_s)) / price - 1) for mb_s, price in rows)
    assert worst == pytest.approx(fit["largest_relative_error"])
    assert tariff.cap == max(mb_s for mb_s, _ in rows)


def test_every_fragment_of_the_document_reads(run: Run, table: Any, tmp_path: Path) -> None:
    path = table("mb_s,price\n100,1 EUR/h\n0.2 GB/s,1.5\n400,1.8\n800,2\n1600,2.1\n")
    told = json.loads(run("tariff", path, "--json", "--currency", "EUR").stdout)
    assert (told["currency"], told["points"], told["is_concave"], told["remarks"]) == ("EUR", 5, True, [])
    names = [fit["name"] for fit in told["fits"]]
    assert names == ["1 line", "power", "2 lines", "3 lines", "points"]
    assert told["recommended"] in names
    assert "relative" in told["minimised"]
    fields = {"1 line": "tariff", "2 lines": "tariff", "3 lines": "tariff", "power": "power", "points": "points"}
    for fit in told["fits"]:
        assert fields[fit["name"]] in fit["storage"]
        assert {"rms_error", "largest_error", "rms_relative_error", "largest_error_at_mb_s", "r_squared"} <= set(fit)
        document = instance_document() | {"currency": "EUR"}
        document["sites"][0]["storage"] = fit["storage"]
        read_instance(write_document(tmp_path / "pasted.json", document))
    assert told["fits"][-1]["largest_error"] == 0


def test_a_convex_list_is_told(run: Run, table: Any) -> None:
    path = table("mb_s,price\n300,0.3\n600,0.5\n1200,2\n")
    remark = "the price rises faster than bandwidth at 600 -> 1,200 MB/s; no concave tariff fits it"
    said = run("tariff", path).stdout
    assert remark in said
    assert "off by up to 100.00 % at 600 MB/s" in said
    told = json.loads(run("tariff", path, "--json").stdout)
    assert (told["is_concave"], told["remarks"]) == (False, [remark])


def test_long_lists_are_cut_on_the_page(run: Run, table: Any) -> None:
    rows = "".join(f"{10 + n},{1 + n % 2}\n" for n in range(80))
    said = run("tariff", table("mb_s,price\n" + rows)).stdout
    assert "30 more" in said
    assert "more steps; --json lists them all" in said


def test_pipes_and_narrow_pages() -> None:
    done = piped("tariff", LUSTRE, NO_COLOR="1", COLUMNS="60", PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert done.stdout.isascii()
    pasted = "      - {fixed: 0.155046 USD/h, per_mb_s: 0.00102565 USD/h/(MB/s)}"
    assert pasted in done.stdout.splitlines(), "what is pasted is not folded"


NUMBER = re.compile(r"-?[0-9][0-9,.]*(?:e[+-]?[0-9]+)?")


@pytest.mark.parametrize("content", [LUSTRE.read_text(), "mb_s,price\n100,1e9\n200,1.23456789e9\n400,2.3456789e9\n"])
def test_narrow_pages_break_no_number(run: Run, table: Any, content: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every number of a narrow page is one of the wide page."""
    said = {}
    for width in (200, 40):
        monkeypatch.setenv("COLUMNS", str(width))
        said[width] = run("tariff", table(content)).stdout
    wide, narrow = said[200], said[40]
    assert set(NUMBER.findall(narrow)) <= set(NUMBER.findall(wide))
    assert max(len(line) for line in narrow.split("To paste")[0].splitlines()) <= 40
    assert "no room for: rms; largest, USD/h; rms, USD/h" in " ".join(narrow.split())


def test_an_exact_fit_is_said_to_be(run: Run, table: Any) -> None:
    """What rounding leaves of no error is not one."""
    said = run("tariff", table("mb_s,price\n100,0.3\n200,0.5\n400,0.9\n")).stdout
    assert re.search(r"1 line +0.1 \+ 0.002 B +exact +0 % +0 +0 +1.000000", said)
    assert "e-1" not in said


FAULTS = """\
mb_s,price,colour
0,0.1,red
-3,-4,red
cheap,0.2,red
100,0,red
100,1 EUR/h,x
100,,x
,1,x
1e400,nan,x
100,1
"""


def test_every_fault_comes_at_once_with_row_value_and_mend(run: Run, table: Any) -> None:
    result = run("tariff", table(FAULTS), "--json")
    assert result.exit_code == 3
    told = json.loads(result.stdout)
    assert told["status"] == "invalid"
    found = [(int(f["where"].rsplit(" ", 1)[1]), (f["path"] or "").split(".")[-1], f["value"]) for f in told["faults"]]
    assert found == [
        (1, "points", "colour"),
        (2, "mb_s", "0"),
        (3, "mb_s", "-3"),
        (3, "price", "-4"),
        (4, "mb_s", "cheap"),
        (5, "price", "0"),
        (6, "price", "1 EUR/h"),
        (7, "price", None),
        (8, "mb_s", None),
        (9, "mb_s", "1e400"),
        (9, "price", "nan"),
        (10, "points[8]", "2 cells"),
    ]
    assert all(fault["mend"] for fault in told["faults"])
    assert "12 faults" in result.stderr
    for words in ("is not a column", "is negative", "is in EUR", "is missing", "is not a finite number"):
        assert words in result.stderr


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", ["is empty", "mb_s, price"]),
        ("mb_s,price\n", ["fewer than two bandwidths (is 0)"]),
        ("mb_s,price\n150,0.31\n", ["fewer than two bandwidths (is 1)"]),
        ("mb_s,price\n150,0.31\n0.15 GB/s,0.46\n", ["fewer than two bandwidths (is 1)"]),
        ("mb_s,price\n150,-1\n", ["fewer than two bandwidths (is 1)", "row 2", "is negative (is -1)"]),
        ("mb_s,cost\n150,1\n300,2\n", ["2 faults", "is not a column of this table (is cost)", "has no column price"]),
        ("150,0.31\n300,0.46\n", ["does not name columns"]),
        ("mb_s;price\n150;0.31\n", ["does not separate its columns by commas"]),
        ("mb_s,price\n150,0.31\n300," + "9" * 3_000_000 + "\n", ["row 3", "is too long", "99999..."]),
        ('mb_s,price\n150,"' + "x" * (17 << 20) + '"\n', ["is not CSV: field larger than field limit"]),
        (b"\x00\x01\x02mb_s" + bytes(range(256)), ["NUL byte"]),
        (b"\x89PNG\r\n\xff", ["not UTF-8"]),
        (b"PK\x03\x04" + b"x" * 100, ["zip archive"]),
        (
            "mb_s,price\n" + "".join(f"{n},1\n" for n in range(1, MOST_POINTS + 2)),
            [f"has more than {MOST_POINTS:,} points (is {MOST_POINTS + 1:,})"],
        ),
    ],
    ids=lambda value: value[0][:30] if isinstance(value, list) else "",
)
def test_faults_of_files(run: Run, table: Any, content: str | bytes, words: list[str]) -> None:
    result = run("tariff", table(content))
    assert result.exit_code == 3
    assert result.stdout == ""
    assert len(result.stderr) < 2000
    for part in words:
        assert part in result.stderr


def test_no_file_and_no_currency(run: Run, tmp_path: Path) -> None:
    assert run("tariff", tmp_path / "nowhere.csv").exit_code == 3
    assert run("tariff", tmp_path).exit_code == 3
    result = run("tariff", LUSTRE, "--currency", "dollars", "--json")
    assert result.exit_code == 2
    assert json.loads(result.stdout)["status"] == "usage"


def test_a_hostile_table_commands_no_terminal(run: Run, table: Any) -> None:
    result = run("tariff", table("mb_s,price,\x1b[31m\n1,\x1b[2J[red],x\n2,3,x\n"))
    assert result.exit_code == 3
    assert "\x1b" not in result.output
    assert "[red]" in result.stderr
