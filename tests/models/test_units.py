"""Quantities: what people write is read as they mean it; what is written back is exactly the same number."""

from __future__ import annotations

import contextlib
import math
import subprocess
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models import units
from models.units import Kind, parse, write

KINDS = [
    *(units.DURATION, units.SIZE, units.MEMORY, units.RATE, units.POWER, units.MONEY, units.PRICE_PER_HOUR),
    *(units.PRICE_PER_GB, units.PRICE_PER_GB_HOUR, units.PRICE_PER_KWH, units.PRICE_PER_RATE, units.PER_HOUR),
]
IDS = [kind.name for kind in KINDS]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        *(("90m", 5400), ("1h30m", 5400), ("1h 30m", 5400), ("1.5h", 5400), ("90 min", 5400), ("5400", 5400)),
        *(("2d", 172800), ("1d12h", 129600), ("PT36H", 129600), ("P1DT12H", 129600), ("PT0.5S", 0.5)),
        *(("1-12:00:00", 129600), ("36:00:00", 129600), ("1-12:30", 131400), ("00:00:30", 30)),
        *(
            ("0.1s", 0.1),
            ("1e3 s", 1000),
            (".5 h", 1800),
            ("1_000 s", 1000),
            ("-5m", -300),
            (" 3 hours ", 10800),
        ),
    ],
)
def test_durations(text: str, seconds: float) -> None:
    assert parse(text, units.DURATION) == seconds


@pytest.mark.parametrize(
    ("text", "kind", "number"),
    [
        ("1.2TB", units.SIZE, 1200.0), ("640 GB", units.SIZE, 640.0), ("1TiB", units.SIZE, 1099.511627776),
        ("40GiB", units.MEMORY, 42.94967296), ("512 MB", units.MEMORY, 0.512),
        ("500 MB/s", units.RATE, 500.0), ("2GB/s", units.RATE, 2000.0), ("10 Gb/s", units.RATE, 1250.0),
        ("10Gbit/s", units.RATE, 1250.0), ("350W", units.POWER, 0.35), ("0.35 kW", units.POWER, 0.35),
        ("250 USD", units.MONEY, 250.0), ("$250", units.MONEY, 250.0), ("250", units.MONEY, 250.0),
        ("3.06 USD/h", units.PRICE_PER_HOUR, 3.06), ("$3.06/h", units.PRICE_PER_HOUR, 3.06),
        ("0.051 USD/min", units.PRICE_PER_HOUR, 3.06), ("0.09 USD/GB", units.PRICE_PER_GB, 0.09),
        ("90 USD/TB", units.PRICE_PER_GB, 0.09), ("0.18 USD/kWh", units.PRICE_PER_KWH, 0.18),
        ("180 USD/MWh", units.PRICE_PER_KWH, 0.18), ("0.0002 USD/GB/h", units.PRICE_PER_GB_HOUR, 0.0002),
        ("0.001 USD/h/(MB/s)", units.PRICE_PER_RATE, 0.001), ("0.05/h", units.PER_HOUR, 0.05),
        ("1.2/d", units.PER_HOUR, 0.05), ("0.05", units.PER_HOUR, 0.05),
    ],
)  # fmt: skip
def test_quantities(text: str, kind: Kind, number: float) -> None:
    assert parse(text, kind, "USD") == pytest.approx(number, rel=1e-15)


@pytest.mark.parametrize(
    ("value", "kind", "words"),
    [
        ("1:30", units.DURATION, "is not a duration"), ("90", units.SIZE, None),
        ("3GB", units.DURATION, "not a unit"),
        ("3 Gigs", units.SIZE, "not a unit"), ("3 h", units.RATE, "not a unit"),
        ("", units.SIZE, "is not a size"),
        ("GB", units.SIZE, "is not a size"), ("1 GB 2", units.SIZE, "is not a size"),
        ("0x10", units.SIZE, "is not a size"),
        ("12 EUR/h", units.PRICE_PER_HOUR, "in EUR while the file's currency is USD"),
        ("€12/h", units.PRICE_PER_HOUR, "in EUR while"), ("12 /h", units.PRICE_PER_HOUR, "no currency"),
        ("12 dollars", units.MONEY, "no currency"), ("12 USD", units.PRICE_PER_HOUR, "not a unit"),
        (True, units.SIZE, "true or false"), (None, units.SIZE, "is not a size"),
        ([1], units.SIZE, "is not a size"),
        (math.nan, units.SIZE, "not a finite"), (math.inf, units.SIZE, "not a finite"),
        ("nan", units.SIZE, "not a finite"),
        ("-Infinity", units.SIZE, "not a finite"), (".inf", units.SIZE, "not a finite"),
        ("1e999", units.SIZE, "not a finite"),
        (10**400, units.SIZE, "too large"), (1e16, units.SIZE, "too large"),
        ("1e13 d", units.DURATION, "too large"),
        ("1e308h1e308h", units.DURATION, "not a finite"), ("9" * 101, units.SIZE, "too long"),
        ("1 h**2", units.DURATION, "is not a duration"),
        ("1 s**9**9**9", units.DURATION, "is not a duration"),
        ("1 h)(", units.DURATION, "not a unit"), ("P", units.DURATION, "is not a duration"),
        ("PT", units.DURATION, "is not"),
    ],
)  # fmt: skip
def test_what_is_no_quantity_is_refused_in_words(value: object, kind: Kind, words: str | None) -> None:
    if words is None:
        assert parse(value, kind) == 90
        return
    with pytest.raises(ValueError, match=words.replace("(", r"\(")) as caught:
        parse(value, kind, "USD")
    assert caught.type is ValueError
    assert ";" in str(caught.value), "how to mend it follows a semicolon"


@pytest.mark.parametrize("kind", KINDS, ids=IDS)
@given(number=st.floats(0, 1e15) | st.integers(0, 10**9).map(float) | st.floats(0, 1e-6))
def test_what_is_written_reads_back_to_the_last_bit(kind: Kind, number: float) -> None:
    text = write(number, kind, "EUR")
    assert parse(text, kind, "EUR" if kind.has_money else None) == number


@pytest.mark.parametrize(("canonical", "unit"), [(c, u) for c, table in units._USUAL.items() for u in table])
def test_the_table_of_usual_units_agrees_with_pint(canonical: str, unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    scale = units._scale.__wrapped__(unit, canonical)
    monkeypatch.setattr(units, "_USUAL", {})
    assert scale == units._scale.__wrapped__(unit, canonical)


def test_usual_quantities_do_not_import_pint() -> None:
    code = (
        "import sys\n"
        "from models import units\n"
        "for kind in [value for value in vars(units).values() if isinstance(value, units.Kind)]:\n"
        "    for example in kind.example.replace(' or ', ', ').split(', '):\n"
        "        units.parse(units.write(units.parse(example, kind, 'USD'), kind, 'USD'), kind, 'USD')\n"
        "sys.exit('pint' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("kind", KINDS, ids=IDS)
def test_the_example_of_every_kind_is_valid(kind: Kind) -> None:
    for example in kind.example.replace(" or ", ", ").split(", "):
        assert parse(example, kind, "USD") > 0


@pytest.mark.parametrize(
    ("number", "kind", "text"),
    [
        (900.0, units.DURATION, "15 min"), (12600.0, units.DURATION, "3.5 h"),
        (86400.0, units.DURATION, "24 h"),
        (146.0, units.SIZE, "146 GB"), (1200.0, units.SIZE, "1.2 TB"), (300.0, units.RATE, "300 MB/s"),
        (42.94967296, units.MEMORY, "40 GiB"), (3.06, units.PRICE_PER_HOUR, "3.06 EUR/h"),
        (0.0, units.MONEY, "0 EUR"),
        (0.05, units.PER_HOUR, "0.05/h"), (0.35, units.POWER, "350 W"),
    ],
)  # fmt: skip
def test_quantities_are_written_as_people_do(number: float, kind: Kind, text: str) -> None:
    assert write(number, kind, "EUR") == text


@given(st.text(max_size=120) | st.text("0123456789.eE+-_ hmsdGB/()*$", max_size=110))
def test_any_text_is_read_or_refused_at_once(text: str) -> None:
    begin = time.perf_counter()
    for kind in KINDS:
        with contextlib.suppress(ValueError):
            assert abs(parse(text, kind, "USD")) <= units.LARGEST
    assert time.perf_counter() - begin < 2
