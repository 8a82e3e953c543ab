"""The page of a plan: its contents, and what it must never contain."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from attrs import define, evolve, field

from spark_bridge.model.summary import RackFlow, Summary
from spark_bridge.report.page import html
from tests.spark.report.clusters import drain, growth, planned, still

EVIL = "<script>alert(1)</script>"


@define
class Page(HTMLParser):
    """A page as a browser would parse it, as far as a test looks."""

    tags: list[str] = field(factory=list)
    links: list[str] = field(factory=list)
    texts: list[str] = field(factory=list)
    structure: list[tuple[str, ...]] = field(factory=list)

    def __attrs_post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.structure.append((tag, *(name for name, _ in attrs)))
        self.links += [value or "" for name, value in attrs if name in {"src", "href", "action", "srcset"}]

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(self.texts)


def read(summary: Summary) -> Page:
    page = Page()
    page.feed(html(summary).decode())
    return page


@pytest.mark.parametrize(
    "summary",
    [growth(5, 2, 2, 1), growth(60, 4, 0, 2), growth(300, 30, 20, 3), still(growth(6, 1, 3, 4)), drain(24, 2, 3, 5)],
    ids=["tiny", "without racks", "large", "nothing moves", "drain"],
)
def test_a_page_needs_nothing_else(summary: Summary) -> None:
    page = read(summary)
    assert page.links == ["data:,"]
    assert page.tags.count("script") == page.tags.count("style") == 1
    assert b"default-src 'none'; img-src data:;" in html(summary)
    assert not re.search(rb"https?:|url\(|@import", html(summary))
    for tag in ("svg", "figure"):
        assert page.tags.count(tag) >= 4
    # Each drawing says what it shows, beside the title of the page itself.
    assert page.tags.count("desc") == page.tags.count("svg")


def test_names_are_text_wherever_they_stand() -> None:
    made = growth(6, 1, 2, 1)
    racks = {"rack-00": EVIL, "rack-01": '"><img src=x onerror=alert(1)>'}
    flows = tuple(
        evolve(flow, source=racks[flow.source or ""], destination=racks[flow.destination or ""])
        for flow in made.rack_flows
    )
    made = evolve(
        made,
        goal=f"rebalance {EVIL}",
        options={EVIL: EVIL},
        brokers=tuple(evolve(b, rack=racks[b.rack or ""], state=EVIL if b.id == 1 else b.state) for b in made.brokers),
        rack_flows=flows,
        flows_left=1,
        reasons={EVIL: 5},
        notes=(EVIL,),
        worse=(EVIL,),
        needless=(EVIL,),
        set_aside={EVIL: 3},
    )
    page = read(made)
    assert page.tags.count("script") == 1
    assert "img" not in page.tags
    assert page.text.count(EVIL) > 10


@pytest.mark.parametrize("name", [EVIL, '"><img src=x onerror=alert(1)>', "R&D <'a'> &amp; \"b\"", "{{ 7 * 7 }}"])
def test_a_name_of_a_rack_or_topic_changes_nothing_but_text(name: str) -> None:
    made = growth(6, 1, 0, 1)

    def named(rack: str) -> Page:
        brokers = tuple(evolve(b, rack=f"{rack} {b.id % 2}") for b in made.brokers)
        flows = (RackFlow(f"{rack} 0", f"{rack} 1", 3, 500),)
        return read(
            evolve(made, brokers=brokers, rack_flows=flows, flows_left=1, notes=(rack,), options={"topics": rack})
        )

    strange, plain = named(name), named("x" * len(name))
    assert strange.structure == plain.structure
    assert name in strange.texts
    assert f"{name} 0" in strange.texts
    assert f"{name} 0 to {name} 1: 500 B" in strange.texts


def test_names_that_no_encoding_knows_are_written_all_the_same() -> None:
    assert b"lost &#56448; byte" in html(evolve(growth(3, 1, 0, 1), notes=("lost \udc80 byte",)))


def test_the_top_tells_cost_bound_and_what_to_beware_of() -> None:
    made = drain(24, 2, 3, 5)
    made = evolve(
        made, moved_bytes=1_500_000_000, lower_bound=1_000_000_000, unknown_loads=17, set_aside={"no size": 2}
    )
    text = read(evolve(made, worse=("leaders",), needless=("leaders",), notes=("Rack r1 is small.",))).text
    for told in (
        "1.50 GB",
        "1.00 GB",
        "the plan moves 1.500 times that",
        "it leaves leaders worse than before and out of tolerance",
        "Rack r1 is small.",
        "The size of 17 of",
        "2 rows of the inputs were set aside: no size.",
    ):
        assert told in text


def test_a_plan_that_changes_nothing_says_so_and_draws_no_movement() -> None:
    text = read(still(growth(6, 1, 3, 4))).text
    assert "Nothing has to change" in text
    assert "What moves from where to where" not in text
    assert "Why partitions change" not in text
    assert "Load per broker" in text


def test_few_brokers_are_bars_and_many_are_curves() -> None:
    few, many = html(growth(50, 5, 0, 1)).decode(), html(growth(51, 5, 0, 1)).decode()
    assert few.count('class="line after"') == 0
    assert few.count('rect class="after') == 4 * 50
    assert many.count('class="line after"') == 4
    assert many.count('rect class="after') == 0


def test_movement_is_by_broker_for_few_and_by_rack_for_many() -> None:
    assert "From brokers (rows)" in read(growth(12, 2, 3, 1)).text
    assert "From racks (rows)" in read(growth(300, 30, 20, 3)).text


def test_movement_is_by_rack_also_if_not_all_brokers_are_listed_or_they_are_too_many_to_draw() -> None:
    assert "From racks (rows)" in read(evolve(growth(12, 2, 3, 1), flows_left=1)).text
    many = drain(28, 26, 3, 1)
    assert many.flows_left == 0
    assert "From racks (rows)" in read(many).text


def test_a_rack_may_be_called_others() -> None:
    made = growth(300, 30, 2, 3)
    names = {"rack-00": "others", "rack-01": "rack-01"}
    flows = tuple(
        evolve(flow, source=names[flow.source or ""], destination=names[flow.destination or ""])
        for flow in made.rack_flows
    )
    brokers = tuple(evolve(b, rack=names[b.rack or ""]) for b in made.brokers)
    page = html(evolve(made, brokers=brokers, rack_flows=flows)).decode()
    assert page.partition('class="matrix"')[2].count(">others</text>") == 2


def test_without_racks_the_greatest_brokers_stand_for_all_and_the_page_says_so() -> None:
    text = read(growth(300, 30, 0, 3)).text
    assert "From brokers (rows)" in text
    assert "others" in text
    assert "Only the 200 greatest flows between brokers are drawn" in text
    assert "Each rack before and after" not in text


def test_flows_between_racks_are_gathered_from_those_between_brokers_if_nobody_counted() -> None:
    text = read(evolve(growth(300, 30, 20, 3), rack_flows=())).text
    assert "From racks (rows)" in text
    assert "Only the 200 greatest flows between brokers are drawn" in text


def test_of_very_many_brokers_the_page_has_those_that_change_most() -> None:
    page = read(drain(2500, 10, 40, 1))
    assert "The 2,000 brokers of 2,500 that change most; the JSON has all" in page.text
    assert page.tags.count("tr") < 2200


def test_what_nobody_knows_is_not_drawn() -> None:
    made = growth(6, 1, 2, 1)

    def counted(summary: Summary) -> Summary:
        rows = (
            evolve(
                b,
                before=evolve(b.before, bytes=0, bytes_in=0, bytes_out=0),
                after=evolve(b.after, bytes=0, bytes_in=0, bytes_out=0),
                disk=None,
            )
            for b in summary.brokers
        )
        return evolve(summary, brokers=tuple(rows), unknown_loads=summary.partitions)

    page = read(counted(made))
    assert "bytes in/s" not in page.text
    assert "disk after" not in page.text
    assert "No size is known: each replica counts the same." in page.text
    assert page.tags.count("svg") == 4  # replicas, leaders, racks, movement


def test_a_cluster_that_has_nothing_is_drawn_too() -> None:
    from random import Random  # noqa: PLC0415

    made = growth(3, 1, 2, 1)
    empty = tuple(evolve(b, before=type(b.before)(), after=type(b.after)()) for b in made.brokers)
    assert "0 partitions" in read(planned("rebalance", empty, Random(1))).text


def test_a_broker_without_a_disk_size_has_a_dash() -> None:
    made = growth(3, 1, 2, 1)
    mixed = evolve(made, brokers=(evolve(made.brokers[0], disk=None), *made.brokers[1:]))
    assert '<td class="number" data-value="-1">-</td>' in html(mixed).decode()
