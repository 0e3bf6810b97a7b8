"""Charts: bars stand where the slots are, marks do not hang on colour, rows fit the page."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from planner.report.canvas import Axis, Bar, Canvas, Row, draw_bar, lanes, strip
from planner.report.facts import Facts
from planner.report.gantt import View, busy_gpus, gantt, last_slot, portions
from planner.report.text import Clock
from tests.report.samples import START, changed_runs, sample_instance, sample_plan, segment

CLOCK = Clock(START, 1800)


def plain(lines: list) -> list[str]:
    return [line.plain for line in lines]


def test_by_job_each_job_has_one_row_with_its_marks() -> None:
    instance = sample_instance()
    rows = plain(gantt(Facts(sample_plan(instance), instance), Canvas(60, ascii_only=True), "job"))
    assert rows[2].startswith("alpha [2xA100")
    beta = next(row for row in rows if row.startswith("beta"))
    assert "~" in beta, "rented nodes have another filling"
    assert "....[" in beta.replace("D", "."), "waits from its release"
    gamma = next(row for row in rows if row.startswith("gamma"))
    assert gamma.rstrip().endswith("!"), "a late job is marked without colour"
    assert "D" in gamma, "the due date lies within the bar"
    assert any("delta" in row and "rejected" in row for row in rows)
    assert "late" in rows[-2]
    assert "+01:00" in rows[-1]


def test_by_pool_owned_pools_come_first_with_their_load() -> None:
    instance = sample_instance()
    text = "\n".join(plain(gantt(Facts(sample_plan(instance), instance), Canvas(80), "pool")))
    assert text.index("owned, A100, owned: at most 2 of 8 GPUs busy, 8.0 GPU-hours") < text.index("burst, A100, rented")
    assert "busy GPUs █" in text
    assert "[alpha━" in text
    assert "[beta┅" in text


def test_by_pool_says_what_it_leaves_out() -> None:
    instance = sample_instance()
    runs = [
        {"job": f"j{k}", "segments": [segment("owned", 0, 4)], "completion": "", "tardiness_h": 0} for k in range(9)
    ]
    rows = plain(gantt(Facts(sample_plan(instance, runs=runs)), Canvas(80), "pool", max_lanes=4))
    assert sum("[j" in row for row in rows) == 3
    assert any("and 6 runs more" in row for row in rows)


def many_runs(number: int) -> list[dict[str, object]]:
    """Runs at the same time, each on its own node."""
    return [
        {"job": f"j{k}", "segments": [segment("owned", 0, 4, node=k)], "completion": "", "tardiness_h": 0}
        for k in range(number)
    ]


@pytest.mark.parametrize(("view", "noun"), [("pool", "run"), ("node", "node"), ("job", "job")])
def test_a_long_chart_shows_its_head_and_says_what_it_leaves_out(view: View, noun: str) -> None:
    instance = sample_instance()
    facts = Facts(sample_plan(instance, runs=many_runs(20), nodes_on=[], rejected=[]))
    rows = plain(gantt(facts, Canvas(80), view, max_rows=8))
    shown = sum("[" in row and "━" in row for row in rows[:-2])
    assert shown in (7, 8)
    assert any(f"and {20 - shown} {noun}s more; `planner show --all` draws them all" in row for row in rows)
    whole = plain(gantt(facts, Canvas(80), view))
    assert whole == plain(gantt(facts, Canvas(80), view, max_rows=20))
    assert not any("more" in row for row in whole)


def test_small_parts_of_a_long_chart_are_whole() -> None:
    assert portions([3, 500, 4, 900], None) == [3, 500, 4, 900]
    assert portions([3, 500, 4, 900], 2000) == [3, 500, 4, 900]
    assert portions([3, 500, 4, 900], 107) == [3, 50, 4, 50]
    assert portions([9] * 4, 2) == [2] * 4


def test_by_node_shows_idle_time_and_gpus() -> None:
    instance = sample_instance()
    rows = plain(gantt(Facts(sample_plan(instance), instance), Canvas(100, ascii_only=True), "node"))
    row = next(row for row in rows if row.startswith("owned 0"))
    assert "[alpha (0-1)=" in row
    assert "." in row[row.index("]") : row.index("[gamma")], "on without work"


@pytest.mark.parametrize("known", [True, False])
def test_by_job_a_run_of_several_segments_is_one_row(known: bool) -> None:
    instance = sample_instance()
    plan = sample_plan(instance, runs=changed_runs())
    rows = plain(gantt(Facts(plan, instance if known else None), Canvas(104, ascii_only=True), "job"))
    (row,) = [row for row in rows if row.startswith("alpha")]
    one, _, rest = row.partition("]")
    assert one.startswith("alpha [2xA100")
    assert set(rest.partition(">")[0]) == {"."}, "paused"
    assert rest.count(">") == 2
    assert row.count("[") == 1
    assert row.count("!") == 1
    assert row.rstrip().endswith("!"), "late at its end, not at each change"
    assert any(">==] after a change" in row and "paused" in row for row in rows[-2:])
    assert not any("after a change" in row for row in plain(gantt(Facts(sample_plan(instance)), Canvas(99), "job")))


def test_by_pool_a_run_stays_on_its_line_where_it_fits() -> None:
    instance = sample_instance()
    rows = plain(
        gantt(Facts(sample_plan(instance, runs=changed_runs()), instance), Canvas(104, ascii_only=True), "pool")
    )
    (line,) = [row for row in rows if "[alpha" in row]
    assert ">alpha" in line, "the line is kept for it though gamma could have it"
    assert line.rstrip().endswith("!")
    assert "gamma" not in line
    burst = rows[next(k for k, row in enumerate(rows) if row.startswith("burst,")) + 2]
    assert burst.strip().startswith(">alpha~")


def test_by_pool_hidden_segments_of_a_run_count_once() -> None:
    stretches = [segment("owned", k, k + 1) for k in range(0, 40, 8)]
    runs = [{"job": f"j{k}", "segments": stretches, "completion": "", "tardiness_h": 0} for k in range(9)]
    rows = plain(gantt(Facts(sample_plan(sample_instance(), runs=runs)), Canvas(80), "pool", max_lanes=4))
    assert any("and 6 runs more" in row for row in rows)


def test_without_an_instance_nothing_is_called_owned() -> None:
    rows = plain(gantt(Facts(sample_plan(sample_instance())), Canvas(80), "pool"))
    assert not any("owned nodes" in row or "rented" in row for row in rows)


def test_an_empty_plan_has_a_chart() -> None:
    plan = sample_plan(sample_instance(), runs=[], nodes_on=[], rejected=[])
    assert plain(gantt(Facts(plan), Canvas(80))) == ["nothing runs"]
    assert last_slot(plan) == 1


def test_a_shared_gpu_is_busy_once() -> None:
    stretches = [
        segment("owned", 0, 4, gpus=(0,)),
        segment("owned", 2, 6, gpus=(0,)),
        segment("owned", 1, 2, gpus=(1,)),
    ]
    runs = [
        {"job": f"j{k}", "segments": [stretch], "completion": "", "tardiness_h": 0}
        for k, stretch in enumerate(stretches)
    ]
    assert busy_gpus(sample_plan(sample_instance(), runs=runs), "owned", 7) == [1, 2, 1, 1, 1, 1, 0]


@pytest.mark.parametrize("view", ["pool", "node", "job"])
@pytest.mark.parametrize("width", [40, 60, 100, 213])
@pytest.mark.parametrize("ascii_only", [False, True])
def test_no_row_is_wider_than_the_page(view: str, width: int, ascii_only: bool) -> None:
    instance = sample_instance("x" * 200, "名前" * 40, "\u200e\xad" + "y" * 50, "e\u0301" * 30)
    for row in gantt(Facts(sample_plan(instance), instance), Canvas(width, ascii_only), view)[:-2]:
        # Headings of pools and the legend are sentences, which are folded when printed.
        if ": at most" not in row.plain:
            assert cell_len(row.plain) <= width
            assert not ascii_only or row.plain.isascii()


@given(
    st.lists(st.tuples(st.integers(0, 300), st.integers(1, 90), st.none() | st.sampled_from("abc")), max_size=40),
    st.integers(8, 150),
    st.integers(390, 800),
)
def test_lanes_hold_every_bar_and_none_covers_another(spans: list, columns: int, num_slots: int) -> None:
    axis = Axis(CLOCK, num_slots, columns)
    runs = [run for _, _, run in spans]
    bars = [
        Bar(first, first + length, f"j{k}", run=run, is_change=run is not None and run in runs[:k])
        for k, (first, length, run) in enumerate(spans)
    ]
    rows = lanes(bars, axis)
    assert sorted(bar.text for row in rows for bar in row) == sorted(bar.text for bar in bars)
    for row in rows:
        for one, two in pairwise(row):
            assert axis.span(one)[1] <= axis.span(two)[0]
    spans_drawn = [axis.span(bar) for bar in bars]
    assert len(rows) == max((sum(a <= t < b for a, b in spans_drawn) for t in range(columns)), default=0)


@pytest.mark.parametrize("others", [[(4, 8)], [(0, 4), (4, 9), (6, 12)], [(4, 20), (4, 6)]])
def test_stretches_without_a_pause_share_a_row(others: list[tuple[int, int]]) -> None:
    run = [Bar(first, first + 4, "run", run="run", is_change=first > 0) for first in (0, 4, 8)]
    bars = [Bar(first, end, f"a{k}") for k, (first, end) in enumerate(others)]
    rows = lanes([*bars, *run], Axis(CLOCK, 20, 20))
    assert [bar for row in rows for bar in row if bar.run] == run
    assert sum(any(bar.run for bar in row) for row in rows) == 1


@settings(max_examples=60)
@given(
    st.integers(1, 2000),
    st.integers(8, 200),
    st.sampled_from([7.0, 60.0, 1800.0, 86400.0]),
    st.integers(0, 86399),
)
def test_axis_labels_stand_at_their_ticks(num_slots: int, columns: int, slot_s: float, second: int) -> None:
    hour, rest = divmod(second, 3600)
    clock = Clock(f"2026-01-12T{hour:02}:{rest // 60:02}:{rest % 60:02}+05:30", slot_s)
    dates, times = (line.plain for line in Axis(clock, num_slots, columns).lines(Canvas(columns, True), 0))
    assert dates.strip(), "the day is always said"
    for at, char in enumerate(times):
        label = times[at + 1 : at + 6]
        if char == "|" and len(label) == 5 and label[2] == ":":
            moment = clock.at(at * num_slots / columns)
            expected = int(label[:2]) * 3600 + int(label[3:]) * 60
            away = (moment.hour * 3600 + moment.minute * 60 + moment.second - expected + 43200) % 86400 - 43200
            assert abs(away) <= num_slots * slot_s / columns + 1


def test_a_bar_of_one_column_still_says_late_rented_or_changed() -> None:
    axis = Axis(CLOCK, 100, 10)
    seen = set()
    for is_late, is_burst, is_change in (
        *((False, False, False), (True, False, False), (False, True, False), (False, False, True)),
        *((True, True, True), (False, True, True)),
    ):
        row = Row(10)
        bar = Bar(3, 4, "j", is_late=is_late, is_burst=is_burst, is_change=is_change)
        draw_bar(row, axis, bar, Canvas(10, True))
        seen.add(row.text().plain.strip())
    assert seen == {"#", "!", "~", ">"}


def test_overwriting_half_a_wide_character_blanks_the_other_half() -> None:
    row = Row(6)
    row.put(0, "名前")
    row.put(1, "|")
    assert row.text().plain == " |前"
    row.put(2, "x")
    assert row.text().plain == " |x"
    row.put(5, "名")
    assert cell_len(row.text().plain) <= 6


def test_a_strip_is_relative_to_its_peak_and_shows_the_least_load() -> None:
    row = strip([0, 1, 100, 50], Axis(CLOCK, 4, 8), Canvas(8, True))
    assert row.text().plain == "  ..@@=="


@given(st.text(max_size=30), st.integers(1, 20), st.booleans())
def test_a_cut_name_has_exactly_its_width(name: str, width: int, ascii_only: bool) -> None:
    assert cell_len(Canvas(ascii_only=ascii_only).crop(name, width)) == width


def test_a_cut_name_keeps_its_end() -> None:
    assert Canvas().crop("experiment-00017", 10) == "exp…-00017"
