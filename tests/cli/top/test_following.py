"""Looking again and again: how often, how little is asked, and what happens while a cluster does not answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from typing import Any, Final, cast

import pytest
import trio
from attrs import define, field
from trio.testing import MockClock

from controller.admin.active_controller import ClusterUnreachable
from controller.admin.reassignments import ReassignmentDescriptions
from controller.admin.visibility import WHOLE, Visibility
from klamm.cli.connect import Cluster
from klamm.cli.rollout.report import Report
from klamm.cli.top.facts import Risk, at_risk
from klamm.cli.top.following import Following, Look
from klamm.cli.top.reading import OwnReader, Reader, Reading, Rights, Settings, ZnodeReader
from tests.cli.top.readings import busy, cluster, counted, look, rollout
from transport.messages import UNKNOWN, DescribeClusterResponse, MetadataResponse, RolloutDescription, RolloutSettings
from transport.network import TcpNetwork
from transport.store.protocol import SessionExpired
from transport.wire import UnsupportedApi

CLUSTER: Final = Cluster("127.0.0.1:1", None, 30, TcpNetwork())
CALM: Final = Reading(cluster())


@define
class Script:
    """A cluster that answers each look as its script says; an answer takes a number of seconds, or raises."""

    answers: list[float | Exception]
    opened: list[float] = field(factory=list)
    looks: list[float] = field(factory=list)

    @asynccontextmanager
    async def open(self, _: Cluster) -> AsyncIterator[Reader]:
        self.opened.append(trio.current_time())
        yield self

    async def look(self) -> Reading:
        self.looks.append(trio.current_time())
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        await trio.sleep(answer)
        return CALM


async def follow(script: Script, seconds: float, interval: float = 2) -> list[Look]:
    """Follow a script for a time, and return what is told."""
    told: list[Look] = []
    with trio.move_on_after(seconds):
        await Following(CLUSTER, interval, told.append, open=script.open).run()
    return told


async def test_there_is_one_look_per_interval_and_one_connection(autojump_clock: MockClock) -> None:  # noqa: ARG001
    script = Script([0.0] * 9)
    told = await follow(script, 9)
    assert (script.looks, script.opened) == ([0, 2, 4, 6, 8], [0])
    assert [look.reading for look in told] == [CALM] * 5


async def test_a_cluster_that_takes_long_is_asked_less_often(autojump_clock: MockClock) -> None:  # noqa: ARG001
    script = Script([1.0] * 9)
    await follow(script, 13)
    assert script.looks == [0, 6, 12]


async def test_what_goes_wrong_is_told_and_tried_again_and_the_cluster_found_anew(
    autojump_clock: MockClock,  # noqa: ARG001
) -> None:
    gone = ClusterUnreachable("no controller answers")
    script = Script([0.0, gone, 0.0, gone, gone, SessionExpired("the session is over"), 0.0, 0.0])
    told = await follow(script, 8.5)
    assert [look.trouble for look in told] == [
        "", "no controller answers", "", "no controller answers", "no controller answers", "the session is over", "",
    ]  # fmt: skip
    assert script.looks == [0, 2, 3, 5, 6, 7, 8]
    assert script.opened == [0, 7]


async def test_a_fault_of_ours_is_not_taken_for_the_cluster(autojump_clock: MockClock) -> None:  # noqa: ARG001
    with pytest.raises(ZeroDivisionError):
        await follow(Script([ZeroDivisionError()]), 5)


async def test_a_key_ends_the_pause(autojump_clock: MockClock) -> None:  # noqa: ARG001
    script = Script([0.0] * 9)
    following = Following(CLUSTER, 100, lambda _: None, open=script.open)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(following.run)
        for _ in range(2):
            await trio.sleep(10)
            following.hurry()
        await trio.sleep(1)
        nursery.cancel_scope.cancel()
    assert script.looks == [0, 10, 20]


# --- how little is asked --------------------------------------------------------------------------------------------


@define
class Counted:
    """An admin client that counts what it is asked."""

    cluster: DescribeClusterResponse
    asked: Counter[str] = field(factory=Counter)
    rollouts: tuple[RolloutDescription, ...] = ()
    seen: Visibility = WHOLE

    async def describe_cluster(self) -> DescribeClusterResponse:
        self.asked["cluster"] += 1
        return self.cluster

    async def describe_reassignments(self) -> ReassignmentDescriptions:
        self.asked["moves"] += 1
        return ReassignmentDescriptions({})

    async def describe_rollouts(self) -> tuple[RolloutDescription, ...]:
        self.asked["rollouts"] += 1
        if not self.rollouts:
            raise UnsupportedApi("it has none")
        return self.rollouts

    async def visibility(self) -> Visibility:
        self.asked["visibility"] += 1
        return self.seen

    async def read_metadata(self) -> MetadataResponse:
        self.asked["partitions"] += 1
        brokers = tuple(broker.endpoint for broker in self.cluster.brokers)
        return MetadataResponse(None, 7, brokers, busy().partitions)


async def asked(counts: dict[str, int], looks: int) -> dict[str, int]:
    admin = Counted(counted(counts))

    async def ask(topics: Collection[str]) -> dict[str, int]:
        admin.asked["settings"] += 1
        return dict.fromkeys(topics, 2)

    reader = OwnReader(cast("Any", admin), Settings(ask), Rights(admin.visibility))
    for _ in range(looks):
        await reader.look()
        await trio.sleep(2)
    return dict(admin.asked)


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ({}, {"cluster": 31, "rollouts": 1}),
        ({"being_reassigned": 1}, {"cluster": 31, "moves": 31, "rollouts": 1}),
        ({"under_replicated": 1}, {"cluster": 31, "partitions": 31, "settings": 2, "visibility": 2, "rollouts": 1}),
        ({"offline": 1}, {"cluster": 31, "partitions": 31, "settings": 2, "visibility": 2, "rollouts": 1}),
    ],
    ids=["at rest", "moving", "at risk", "offline"],
)
async def test_a_controller_is_asked_for_no_more_than_there_is_and_once_for_what_it_does_not_have(
    counts: dict[str, int],
    expected: dict[str, int],
    autojump_clock: MockClock,  # noqa: ARG001
) -> None:
    assert await asked(counts, 31) == expected


async def test_rollouts_of_the_controller_come_before_those_of_plans(autojump_clock: MockClock) -> None:  # noqa: ARG001
    counts = (("done", 3), ("pending", 4))
    told = RolloutDescription("big", "d", "running", (), "", 0, RolloutSettings(), 0, "me", 7, counts)
    admin = Counted(cluster(), rollouts=(told,))
    reading = await OwnReader(cast("Any", admin), Settings(no_settings), Rights(admin.visibility)).look()
    shown = look(reading, rollout(done=1)).rollouts
    assert [(one.name, one.total) for one in shown if isinstance(one, Report)] == [("big", 7), ("plan", 1)]


async def test_of_znodes_partitions_are_counted_and_min_isrs_are_unknown() -> None:
    admin = Counted(cluster())
    reading = await ZnodeReader(cast("Any", admin)).look()
    assert dict(admin.asked) == {"partitions": 1, "moves": 1}
    assert (reading.cluster.partitions, reading.cluster.under_min_isr) == (4, UNKNOWN)
    assert [str(one.state.tp) for one in at_risk(reading) if one.risk is Risk.OFFLINE] == ["orders-2"]


async def no_settings(_: Collection[str]) -> dict[str, int]:
    return {}


async def test_settings_are_asked_for_again_for_a_new_topic(autojump_clock: MockClock) -> None:  # noqa: ARG001
    questions: list[Collection[str]] = []

    async def ask(topics: Collection[str]) -> dict[str, int]:
        questions.append(topics)
        return {name: 2 for name in topics if name != "refused"}

    settings = Settings(ask)
    assert await settings.of({"a", "refused"}) == {"a": 2}
    assert await settings.of({"a", "b", "refused"}) == {"a": 2, "b": 2}
    assert questions == [["a", "refused"], ["b"]]
