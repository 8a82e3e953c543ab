"""The expectations of scenarios and tests about a cluster, with public names of Klamm only."""

from __future__ import annotations

import pytest
from trio.testing import MockClock

from klamm.testing import NotInTime, open_cluster, run_scenario
from klamm.testing.actions import Crash

STAYS = """
topics: {{orders: [[1, 2]]}}
events:
  - produce: {{orders-0: 5}}
    expect: {{records: {{orders-0: {records}}}, unclean: {unclean}}}
  - expect: {{orders-0: {{leader: 1}}}}
    stays: {stays}
  - at: 20s
    crash: 1
"""


@pytest.mark.parametrize(
    ("values", "missed"),
    [
        ({"records": 5, "unclean": 0, "stays": "19s"}, []),
        ({"records": 4, "unclean": 0, "stays": "19s"}, ["line 4: orders-0 has 5 records, expected 4"]),
        ({"records": 5, "unclean": 1, "stays": "19s"}, ["line 4: there were 0 unclean elections, expected 1"]),
        ({"records": 5, "unclean": 0, "stays": "60s"}, ["line 6: orders-0: leader is 2, expected 1"]),
    ],
    ids=["as expected", "records", "unclean elections", "does not stay"],
)
def test_records_unclean_elections_and_what_stays(values: dict[str, object], missed: list[str]) -> None:
    assert run_scenario(STAYS.format(**values)) == missed


PATH = """
topics: {{orders: [[1, 2, 3]]}}
events:
  - crash: {{nodes: 1, noticed: true}}
    expect: {{orders-0: {{leader: 2}}}}
    within: 5s
  - crash: {{nodes: 2, noticed: true}}
    expect: {{orders-0: {{leader: 3}}}}
    within: 5s
expect: {expect}
"""


@pytest.mark.parametrize(
    ("expect", "missed"),
    [
        ("{passes: {orders-0: [{leader: 1}, {leader: 2, isr: [2, 3]}, {leader: 3}]}}", []),
        (
            "{passes: {orders-0: [{leader: 2}, {leader: 3}, {leader: 2}]}}",
            ["line 10: orders-0 did not pass through state 3 of 3"],
        ),
        ("{never: {orders-0: {leader: 1, isr: [1, 2]}}}", []),
        ("{never: {orders-0: {leader: 3}}}", ["line 10: orders-0 was in a state that must never occur"]),
    ],
    ids=["path", "another path", "never", "after all"],
)
def test_the_states_a_partition_passes_through(expect: str, missed: list[str]) -> None:
    assert run_scenario(PATH.format(expect=expect)) == missed


WAITS = """
topics: {{orders: [[1, 2, 3]]}}
events:
  - crash: 1
    waits_for: {{orders-0: {{leader: {leader}}}}}
    within: {within}
    expect: {{orders-0: {{isr: [2, 3], leader_epoch: 1}}}}
  - after: 0s
    restart: 1
    waits_for: {{orders-0: {{isr: [1, 2, 3]}}}}
  - waits_for: {{controller: [101, 102]}}
"""


@pytest.mark.parametrize(
    ("leader", "within", "missed"),
    [
        (2, "20s", []),
        (3, "20s", ["line 4: waited 20 s: orders-0: leader is 2, expected 3"]),
        (
            2,
            "1s",
            [
                "line 4: waited 1 s: orders-0: leader is 1, expected 2",
                "line 4: orders-0: isr is [1, 2, 3], expected [2, 3] in any order",
                "line 4: orders-0: leader_epoch is 0, expected 1",
            ],
        ),
    ],
    ids=["in time", "another leader", "too late"],
)
def test_an_event_waits_for_something_before_it_compares(leader: int, within: str, missed: list[str]) -> None:
    assert sorted(run_scenario(WAITS.format(leader=leader, within=within))) == sorted(missed)


async def test_a_test_waits_for_something_with_a_name(autojump_clock: MockClock) -> None:  # noqa: ARG001
    async with open_cluster() as c:
        Crash("controller").on(c)
        first = c.active_controller
        await c.until(lambda: c.active_controller not in {first, None}, what="another controller")
        with pytest.raises(NotInTime, match="an eclipse did not happen within 300 s"):
            await c.until(lambda: False, within=300, what="an eclipse")
