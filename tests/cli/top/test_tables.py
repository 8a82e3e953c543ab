"""The tables of `klamm top`: what they have of a reading, their orders, their filter, and their width."""

from __future__ import annotations

import pytest
from attrs import evolve
from msgspec.structs import replace
from rich.cells import cell_len

from controller.admin.visibility import Visibility
from controller.rollout.states import Happening, RolloutState
from klamm.cli.top.board import BAR_CELLS, MOST_AT_RISK, tables
from klamm.cli.top.facts import at_risk, counts, moving
from klamm.cli.top.reading import Reading
from klamm.cli.top.rollouts import Untold
from klamm.cli.top.tables import Cell, Column, Order, Place, Row, Table, Tone, fitted, head, parts_of
from tests.cli.top.readings import busy, cluster, counted, move, partition, rollout, texts
from transport.messages import UNKNOWN, PartitionState
from transport.metadata import LEADER_DURING_DELETE

# --- what the tables have -------------------------------------------------------------------------------------------


def test_a_broker_has_its_replicas_and_moves_and_a_dead_one_is_known_by_its_replicas() -> None:
    brokers, *_ = tables(busy())
    assert [column.name for column in brokers.columns] == [
        "id", "address", "rack", "state", "leaders", "replicas", "out of ISR", "moves in", "out", "to copy",
    ]  # fmt: skip
    assert texts(brokers) == [
        ["1", "kafka1:9092", "r1", "live", "4", "9", "0", "0", "1", "-"],
        ["2", "kafka2:9092", "r2", "live", "4", "9", "0", "0", "0", "-"],
        ["3", "kafka3:9092", "r3", "live", "4", "9", "0", "1", "0", "60.0 MB"],
        ["4", "-", "-", "dead", "0", "2", "2", "0", "0", "-"],
    ]


def test_a_broker_that_shuts_down_says_so() -> None:
    counted = cluster()
    leaving = replace(counted.brokers[0], is_shutting_down=True)
    brokers, *_ = tables(Reading(replace(counted, brokers=(leaving, *counted.brokers[1:]))))
    assert [row[3] for row in texts(brokers)] == ["shutting down", "live", "live"]


def test_a_move_has_its_bytes_and_what_it_waits_for() -> None:
    reading = evolve(busy(), moves=(move(1), *busy().moves, move(2, of=5, in_sync=True)))
    _, moves, *_ = tables(reading)
    bar = "█" * 8 + "░" * 12
    assert [row[:8] + row[9:] for row in texts(moves)] == [
        ["orders-0", "1", "3", "40%", bar, "60.0 MB", "2.0 MB/s", "30 s", "broker 3: 60.0 MB"],
        ["orders-1", "1", "3", "-", "-", "-", "-", "-", "broker 3 to join the ISR"],
        ["orders-2", "1", "3", "100%", "█" * BAR_CELLS, "0 bytes", "-", "-", "the controller to finish it"],
    ]


def test_a_stalled_move_says_so_and_comes_first_also_when_sorted_by_what_it_waits_for() -> None:
    _, moves, *_ = tables(evolve(busy(), moves=(move(1), move(2, waits_for="zeus", stalled_ms=5_000))))
    assert [row[0] for row in texts(moves)] == ["orders-2", "orders-1"]
    arranged = moves.arranged(Order(len(moves.columns) - 1))
    assert [row[-1] for row in texts(arranged)] == ["stalled: zeus", "broker 3 to join the ISR"]
    assert "stalled since " in arranged.rows[0].detail


def test_partitions_at_risk_are_there_the_worst_first() -> None:
    *_, risks, _ = tables(evolve(busy(), least={"orders": 1}))
    assert [row[:7] for row in texts(risks)] == [
        ["orders-2", "offline", "none", "4", "4", "1", "4"],
        ["orders-1", "under-replicated", "2", "4,2", "2", "1", "4"],
    ]


def test_only_the_worst_are_listed_and_all_are_counted_by_broker() -> None:
    states = [partition(number, (4, 2), (2,), 2) for number in range(MOST_AT_RISK + 5)]
    states += [partition(len(states), (4,), (4,), -1)]
    brokers, _, risks, _ = tables(evolve(busy(), partitions=tuple(states), least={}))
    assert (len(risks.rows), risks.rows[0].cells[1].text) == (MOST_AT_RISK, "offline")
    assert texts(brokers)[3][6] == f"{MOST_AT_RISK + 6:,}"


@pytest.mark.parametrize(
    ("state", "least", "risk"),
    [
        (partition(0, (1, 2), (1, 2), 1), 2, None),
        (partition(0, (1, 2), (1,), 1), 1, "under-replicated"),
        (partition(0, (1, 2), (1,), 1), None, "under-replicated"),
        (partition(0, (1, 2), (1,), 1), 2, "under min ISR"),
        (partition(0, (1, 2), (1, 2), 1), 3, "under min ISR"),
        (partition(0, (1, 2), (1, 2), -1), 1, "offline"),
        (partition(0, (9, 2), (9, 2), 9), 1, "offline"),
        (partition(0, (3, 1, 2), (1, 2), 1, adding=(3,)), 2, None),
        (partition(0, (1, 2), (), LEADER_DURING_DELETE), 1, None),
    ],
    ids=[
        "whole",
        "lacks one",
        "min unknown",
        "under min",
        "min above all",
        "no leader",
        "dead leader",
        "moves",
        "goes",
    ],
)
def test_the_risk_of_a_partition(state: PartitionState, least: int | None, risk: str | None) -> None:
    reading = Reading(cluster(), partitions=(state,), least={} if least is None else {"orders": least})
    assert [str(one.risk) for one in at_risk(reading)] == ([] if risk is None else [risk])


def test_a_rollout_has_its_counts_and_tells_what_it_waits_for() -> None:
    held = RolloutState().after(Happening.BRAKE)
    waits = {"broker 2 has 3 moves in flight": 3}
    *_, found = tables(busy(), [rollout(held, "broker 4 is dead", waits, done=5, pending=3, in_flight=1, failed=1)])
    [row] = texts(found)
    assert row[:6] == ["plan", str(held), "5", "10", "1", "1"]
    assert row[7:] == ["90.0 MB", "3.0 MB/s", "30 s", "process 7"]
    assert "broker 4 is dead" in found.rows[0].detail
    assert found.rows[0].detail.endswith("30 s left; 3 wait: broker 2 has 3 moves in flight")


def test_a_rollout_in_the_queue_says_behind_how_many() -> None:
    *_, found = tables(busy(), [evolve(rollout(pending=2), others={"queued_behind": 2})])
    assert texts(found)[0][1] == "in the queue"
    assert "; behind 2 others" in found.rows[0].detail


def test_a_rollout_that_is_over_has_nobody_and_nothing_left() -> None:
    over = RolloutState().after(Happening.FINISHED)
    *_, found = tables(busy(), [rollout(over, done=2)])
    assert texts(found)[0][1:6] + texts(found)[0][7:] == ["done", "2", "2", "0", "0", "-", "-", "-", "-"]
    *_, found = tables(busy(), [Untold("plan", "not begun")])
    assert texts(found)[0][:3] == ["plan", "not begun", "-"]


def test_counts_name_only_what_is_at_risk() -> None:
    assert [one.text for one in counts(busy())] == [
        "3 brokers", "4 partitions", "1 offline", "2 under min ISR", "2 under-replicated",
    ]  # fmt: skip
    assert [one.text for one in counts(Reading(cluster()))][2:] == ["nothing at risk"]
    assert [one.text for one in counts(Reading(counted({"under_min_isr": UNKNOWN})))][-1] == "min ISR unknown"


def test_counts_of_a_part_do_not_say_that_nothing_is_at_risk() -> None:
    seen = Reading(cluster(), visibility=Visibility(sees_all_topics=False, sees_moves=False))
    assert [one.text for one in counts(seen)][2:] == ["nothing visible is at risk", "some topics are hidden"]
    assert moving(seen) == "moves are not known"
    assert [one.text for one in counts(evolve(busy(), visibility=seen.visibility))][-1] == "some topics are hidden"


def test_all_moves_together_are_one_line() -> None:
    assert moving(busy()) == "1 move in flight, 40.0 MB of 100.0 MB, 2.0 MB/s, 30 s left"
    assert moving(Reading(cluster(), (move(),))) == "1 move in flight"
    assert moving(Reading(cluster())) == "nothing moves"


# --- orders, filter, width ------------------------------------------------------------------------------------------


def table(*rows: tuple[str, int | None]) -> Table:
    columns = (Column("name", least=4), Column("size", to_right=True), Column("note", spare=1))
    return Table(
        "t", columns, tuple(Row(n, (Cell(n, n), Cell(str(v or "-"), v), Cell("x")), f"about {n}") for n, v in rows), "-"
    )


def names(arranged: Table) -> list[object]:
    return [row.id for row in arranged.rows]


def test_rows_are_sorted_by_values_and_unknown_ones_come_last_in_both_directions() -> None:
    found = table(("b", 10), ("a", 9), ("c", None), ("d", 100))
    assert names(found.arranged(Order())) == ["b", "a", "c", "d"]
    assert names(found.arranged(Order(1))) == ["a", "b", "d", "c"]
    assert names(found.arranged(Order(1, is_reversed=True))) == ["d", "b", "a", "c"]
    assert names(found.arranged(Order(None, is_reversed=True))) == ["d", "c", "a", "b"]


def test_rows_are_kept_that_have_all_words_in_their_cells_or_details() -> None:
    found = table(("Orders", 10), ("orders-old", 9), ("events", 1))
    assert names(found.arranged(Order(), "orDERS")) == ["Orders", "orders-old"]
    assert names(found.arranged(Order(), "about old")) == ["orders-old"]
    assert names(found.arranged(Order(), "nothing")) == []


def test_in_little_room_a_spare_column_goes_first_and_then_a_wide_one_is_cut() -> None:
    found = table(("a-long-name", 123_456))
    assert [place.column for place in fitted(found, 80)] == [0, 1, 2]
    narrow = fitted(found, 15)
    assert [(place.column, place.width) for place in narrow] == [(0, 7), (1, 6)]
    assert "".join(text for text, _ in parts_of(found, found.rows[0], narrow)) == "a-long…  123456"
    assert head(found, narrow, Order(1, is_reversed=True)) == "name       size↓"


def test_wide_characters_count_twice() -> None:
    found = table(("注文注文注文", 1))
    [place] = [place for place in fitted(found, 14) if place.column == 0]
    [(text, _), *_] = parts_of(found, found.rows[0], [place])
    assert (cell_len(text), text) == (8, "注文注 …")


@pytest.mark.parametrize("room", [80, 120, 200])
def test_all_tables_fit(room: int) -> None:
    for found in tables(busy(), [rollout(done=1_000_000)]):
        places = fitted(found, room)
        assert sum(place.width for place in places) + 2 * (len(places) - 1) <= room


def test_a_cell_commands_no_terminal() -> None:
    found = Table("", (Column("rack"),), (Row(1, (Cell("a\x1b[2J\nb"),), ""),), "")
    assert fitted(found, 80) == [Place(0, 11)]
    assert parts_of(found, found.rows[0], [Place(0, 12)]) == [(r"a\x1b[2J\nb ", Tone.PLAIN)]
