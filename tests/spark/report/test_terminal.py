"""A plan's summary on a terminal of 80 columns."""

from __future__ import annotations

import io

from attrs import evolve

from klamm.cli.plan_report import WIDTH, print_report
from spark_bridge.model.summary import Summary
from tests.spark.report.clusters import drain, growth, still, without_sizes

REPORT = """\
broker  rack     state  replicas  after  change  leaders  after  change
───────────────────────────────────────────────────────────────────────
     1  rack-01  live      1,160    900    -260      387    300     -87
     2  rack-00  live        961    923     -38      320    308     -12
     3  rack-01  live      1,269    921    -348      423    307    -116
     4  rack-00  live          0    860    +860        0    287    +287
     5  rack-01  live          0    896    +896        0    299    +299

broker  rack       bytes    after    change  bytes in/s    after    change
──────────────────────────────────────────────────────────────────────────
     1  rack-01  1.42 TB  1.10 TB   -318 GB     51.5 MB  40.0 MB  -11.6 MB
     2  rack-00  1.17 TB  1.13 TB  -45.6 GB     42.7 MB  41.0 MB  -1.66 MB
     3  rack-01  1.55 TB  1.13 TB   -425 GB     56.4 MB  40.9 MB  -15.4 MB
     4  rack-00      0 B  1.05 TB  +1.05 TB         0 B  38.2 MB  +38.2 MB
     5  rack-01      0 B  1.09 TB  +1.09 TB         0 B  39.8 MB  +39.8 MB

5 of 5 brokers change.

rack     brokers  replicas  after  change  leaders  after  change
─────────────────────────────────────────────────────────────────
rack-00        2       961  1,783    +822      320    595    +275
rack-01        3     2,429  2,717    +288      810    906     +96

rack     brokers    bytes    after    change  bytes in/s    after    change
───────────────────────────────────────────────────────────────────────────
rack-00        2  1.17 TB  2.18 TB  +1.01 TB     42.7 MB  79.2 MB  +36.5 MB
rack-01        3  2.97 TB  3.32 TB   +352 GB      108 MB   121 MB  +12.8 MB

reason            partitions
────────────────────────────
balance                  603
preferred leader         512
racks                     40

hottest  rack     why
───────────────────────────────────────────────────────────────────────────
      2  rack-00  bytes in: 41.0 MB/s is 2.6 % above its share of 40.0 MB/s
      3  rack-01  bytes: 1.13 TB is 2.4 % above its share of 1.10 TB

farthest from its share  before  after  aimed at  result
─────────────────────────────────────────────────────────
replicas                  100 %  4.4 %       5 %  reached
leaders                   100 %  4.4 %       5 %  reached
bytes                     100 %  4.5 %       5 %  reached
bytes in                  100 %  4.5 %       5 %  reached

1,155 of 3,390 partitions change, 512 of them by order only.
To move: 788 GB in 643 replicas.
The least that any plan can move: 778 GB; the plan moves 1.013 times that.
The leaders shown are those after an election: when the moves are done, run
`klamm leader elect --election-type preferred --all-topic-partitions`.
"""


def printed(summary: Summary) -> str:
    stream = io.StringIO()
    print_report(summary, stream)
    return stream.getvalue()


def test_a_plan_is_told_in_eighty_columns() -> None:
    text = printed(growth(5, 2, 2, 1))
    assert max(map(len, text.split("\n"))) <= WIDTH
    assert "…" not in text
    assert text == REPORT


def test_of_five_thousand_brokers_a_screen_is_shown() -> None:
    text = printed(drain(5000, 100, 40, 1))
    assert len(text.split("\n")) < 120
    assert "5,000 of 5,000 brokers change, 4,988 of them not shown: those that change less.\n" in text
    assert "28 more racks not shown.\n\n" in text
    assert "90 more reasons, of " in text


def test_what_is_left_out_or_wrong_comes_last() -> None:
    made = drain(6, 1, 2, 1)
    lines = printed(
        evolve(
            made,
            unknown_loads=17,
            set_aside={"no such broker": 1, "negative size": 4},
            worse=("leaders", "bytes"),
            needless=("leaders", "bytes"),
            notes=("Rack r1 has one broker alone.",),
        )
    ).split("\n")
    assert lines[-7:] == [
        f"The size of 17 of {made.partitions:,} partitions is not known: these count as empty.",
        "1 row of the inputs was set aside: no such broker.",
        "4 rows of the inputs were set aside: negative size.",
        "This plan was forced: it leaves leaders, bytes worse than before and out of",
        "tolerance.",
        "Rack r1 has one broker alone.",
        "",
    ]


def test_a_plan_that_changes_nothing_says_so() -> None:
    text = printed(still(growth(6, 1, 3, 4)))
    assert text.endswith("Nothing has to change: the cluster is as the goal asks, or as close to that as\npossible.\n")
    assert "change  " not in text


def test_without_sizes_replicas_are_counted() -> None:
    made = without_sizes(growth(6, 1, 2, 1))
    made = evolve(made, unknown_loads=made.partitions, moved_replicas=30, lower_bound=20)
    text = printed(made)
    assert "To move: 30 replicas.\n" in text
    assert "The least that any plan can move: 20 replicas; the plan moves 1.500 times that.\n" in text
    assert "No size is known: each replica counts the same.\n" in text
    empty = printed(evolve(made, unknown_loads=made.partitions - 1))
    assert "No partition is known to hold a byte: each replica counts the same.\n" in empty
    assert "each replica counts" not in printed(evolve(made, goal="leaders"))


def test_a_goal_that_forces_nothing_says_so() -> None:
    text = printed(evolve(growth(6, 1, 2, 1), lower_bound=0))
    assert "The least that any plan can move: 0 B; the goal forces no move.\n" in text


def test_names_are_no_markup_and_their_ends_are_kept() -> None:
    made = growth(5, 2, 2, 1)
    racks = {"rack-00": "[red]x[/red]", "rack-01": "a-very-long-name-1b"}
    text = printed(evolve(made, brokers=tuple(evolve(b, rack=racks[b.rack or ""]) for b in made.brokers)))
    assert "[red]x[/red]" in text
    assert "…ong-name-1b" in text
    assert max(map(len, text.split("\n"))) <= WIDTH
