"""The report of a night: one page, sound, safe whatever the names are, and needing nothing beside it."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import pytest

from planner.history.records import RunRecord, Status
from planner.nightly.page import CHANGES_SHOWN, LANES_SHOWN, NOTES_SHOWN, POOLS_SHOWN, SUFFERING_SHOWN, report_html
from tests.documents import HOUR
from tests.engines.samples import mode
from tests.nightly.courses import at, compared, plan, stretch
from tests.nightly.nights import Cluster

RECORD = RunRecord(number=7, key="k", started="2026-01-12T17:00:00+00:00", status=Status.PLANNED)
ELEMENTS = {
    *("html", "head", "meta", "title", "style", "body", "h1", "h2", "dl", "dt", "dd", "ul", "li", "p", "table", "tr"),
    *("th", "td", "svg", "g", "rect", "polygon", "path", "text"),
}
_ALONE = {"meta"}


class Outline(HTMLParser):
    """Checks that every element is closed in turn, and keeps names, attributes and text."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """An element begins."""
        self.seen.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag not in _ALONE:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """An element that is closed at once."""
        self.seen.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_endtag(self, tag: str) -> None:
        """The element ends that began last."""
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Text."""
        self.text += data


def outline(page: bytes) -> Outline:
    """What is on a page that is sound."""
    found = Outline()
    found.feed(page.decode())
    found.close()
    assert found.open == []
    return found


def test_a_night_is_on_a_page_that_needs_nothing(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    cluster.run()
    cluster.write([{"modes": [mode(1)]}])
    night = cluster.run()
    page = outline((night.folder / "report.html").read_bytes())
    assert page.seen <= ELEMENTS
    assert not any(name.startswith("on") or name in ("src", "href") for name in page.attributes)
    assert "url(" not in (night.folder / "report.html").read_text()
    for words in ("instance, 2026-01-12 18:00", "What has changed", "Cost", "Jobs by pool", "since 2026-01-12"):
        assert words in page.text


@pytest.mark.parametrize(
    "name", ["</title><script>alert(1)</script>", '"><img src=x onerror=y>', "a&b<c>'d'", "\x1b[31mred"]
)
def test_names_are_text_wherever_they_stand(name: str) -> None:
    """Those that no instance may have, too: a plan file may hold them."""
    instance = at(0, [{"modes": [mode(1)]}])
    before = plan(0, {name: [stretch(0, 1)], f"{name}2": [stretch(0, 1)]})
    late = {name: 1.0}
    after = plan(0, {name: [stretch(1, 2, mode=name, pool=name)], "x": []}, late, instance=name, currency=name)
    page = report_html(RECORD, after, instance, compared(before, after), [name])
    found = outline(page)
    assert found.seen.isdisjoint({"script", "img"})
    assert not any(name.startswith("on") for name in found.attributes)
    assert b"\x1b" not in page
    shown = name.replace("\x1b", "\\x1b")
    assert found.text.count(shown) >= 5


def test_what_does_not_fit_is_counted() -> None:
    jobs = {f"j{k}": [stretch(k, k + 1)] for k in range(60)}
    moved = {name: [stretch(k + 1, k + 2)] for k, name in enumerate(jobs)}
    instance = at(0, [{"modes": [mode(1)], "due": HOUR, "weight": 1.0} for _ in range(60)])
    after = plan(0, moved, dict.fromkeys(jobs, 1.0))
    page = outline(report_html(RECORD, after, instance, compared(plan(0, jobs), after), ()))
    assert f"and {60 - CHANGES_SHOWN} changes more, in difference.txt" in page.text
    assert f"and {60 - SUFFERING_SHOWN} jobs more" in page.text
    assert page.text.count("because") == 1


def test_many_pools_and_lanes_are_cut_and_counted() -> None:
    """A hundred pools, and one with a hundred jobs at once."""
    jobs = {f"a{k}": [stretch(0, 2, pool="p0", places=[{"node": k, "gpus": [0]}])] for k in range(100)}
    jobs |= {f"b{k}": [stretch(0, 2, pool=f"p{k}")] for k in range(100)}
    instance = at(0, [{"modes": [mode(1)]}])
    page = report_html(RECORD, plan(0, jobs), instance, None, [f"note {k}" for k in range(50)]).decode()
    assert page.count("<rect") <= LANES_SHOWN
    text = outline(page.encode()).text
    assert f"and {100 - POOLS_SHOWN} pools more" in text
    assert f"and {50 - NOTES_SHOWN} notes more" in text
    assert "runs not drawn" in text


@pytest.mark.parametrize("span_h", [0.5, 3, 30, 400, 5000])
def test_times_are_marked_about_a_dozen_times(span_h: float) -> None:
    instance = at(0, [{"modes": [mode(1)]}])
    slots = max(1, round(span_h))
    after = plan(0, {"j0": [stretch(0, slots)]}, slot_s=3600.0 * span_h / slots)
    page = report_html(RECORD, after, instance, None, ()).decode()
    assert page.count("<path") <= 13
    assert len(page) < 20_000 + 60 * slots
