"""The page of a plan in a real browser; skipped where there is none."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from attrs import evolve

from spark_bridge.model.summary import Summary
from spark_bridge.report.page import html
from tests.spark.report.chromium import MISSING, chromium, opened, with_script
from tests.spark.report.clusters import drain, growth, still

pytestmark = pytest.mark.skipif(chromium() is None, reason=MISSING)


@pytest.mark.parametrize(
    ("summary", "drawings"),
    [
        (growth(5, 2, 2, 1), 6),
        (growth(40, 4, 10, 2), 6),
        (growth(1000, 100, 20, 3), 6),
        (still(growth(6, 1, 3, 4)), 5),
    ],
    ids=["tiny", "40 brokers", "1,000 brokers", "nothing moves"],
)
def test_a_page_opens_without_complaint_and_its_script_runs(summary: Summary, drawings: int, tmp_path: Path) -> None:
    page = opened(html(summary), tmp_path)
    assert page.console == []
    assert page.dom.count("<svg") == drawings
    # Its script made the headings of the table of brokers buttons: the page's policy permits it.
    assert page.dom.count("<button") == 3 + 5 * 3 + 1
    assert page.dom.count("<tbody") >= 3


def test_the_console_is_heard(tmp_path: Path) -> None:
    page = opened(with_script(html(growth(3, 1, 0, 1)), "nobody.has.this()"), tmp_path)
    assert len(page.console) == 1


def test_a_script_that_is_not_the_pages_own_does_not_run(tmp_path: Path) -> None:
    planted = html(growth(3, 1, 0, 1)).replace(b"</body>", b"<script>document.title = 'taken'</script></body>")
    page = opened(planted, tmp_path)
    assert "taken</title>" not in page.dom
    assert len(page.console) == 1


def test_names_that_look_like_markup_stay_text(tmp_path: Path) -> None:
    made = growth(5, 2, 1, 1)
    evil = "<script>document.title = 'taken'</script>"
    page = opened(html(evolve(made, brokers=tuple(evolve(b, rack=evil) for b in made.brokers))), tmp_path)
    assert page.console == []
    assert "<title>Plan: rebalance</title>" in page.dom
    assert page.dom.count("<script") == 1


def test_a_click_on_a_heading_sorts_brokers_and_another_one_turns_them_round(tmp_path: Path) -> None:
    made = drain(12, 1, 3, 1)
    after = {b.id: b.after.bytes for b in made.brokers}
    by_size = sorted(after, key=after.__getitem__)
    # broker, rack, state, then three columns for each of replicas, leaders, bytes: the one in the middle of those.
    click = "document.querySelectorAll('table.sortable button')[3 + 2 * 3 + 1].click();"
    once = opened(with_script(html(made), click), tmp_path)
    assert order(once.dom) == by_size
    assert 'aria-sort="ascending"' in once.dom
    twice = opened(with_script(html(made), click * 2), tmp_path)
    assert order(twice.dom) == by_size[::-1]


@pytest.mark.parametrize("width", [600, 1280])
def test_nothing_is_wider_than_the_window_but_tables_that_scroll(width: int, tmp_path: Path) -> None:
    measure = "document.title = document.documentElement.scrollWidth + ' of ' + document.documentElement.clientWidth"
    page = opened(with_script(html(growth(40, 4, 10, 2)), measure), tmp_path, width)
    assert f"<title>{width} of {width}</title>" in page.dom


def order(dom: str) -> list[int]:
    """Return the brokers in the order of the table."""
    table = dom[dom.index('class="sortable"') :]
    return [int(id_) for id_ in re.findall(r'<tr><th scope="row" data-value="(\d+)"', table)]
