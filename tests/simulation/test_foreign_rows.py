"""A damaged row is set aside, whatever others wrote into it: the office and the valid topics are not affected."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
import trio
from attrs import evolve, frozen
from hypothesis import given, strategies as st
from structlog.testing import capture_logs
from trio.testing import MockClock

from controller.monitoring import state_dump
from klamm.testing import open_cluster
from simulator.cluster import SimulatedCluster
from simulator.random_run.foreign_rows import (
    ABSURD_NAMES,
    ABSURD_VALUES,
    DEEP,
    ID,
    ROLLOUT_ROWS,
    ROWS,
    SOUND_DATA,
    STRANGER,
    THROTTLE_ROWS,
    TOPIC,
    TP,
    Row,
    places,
    renamed,
    with_field,
    with_key,
)
from tests.kit.examples import examples
from transport.errors import ApiError
from transport.messages import ElectionType
from transport.store import paths
from transport.store.protocol import ANY_VERSION, Create, Op, Set
from transport.store.tree import Access

EVERY_ROW = {**ROWS, **ROLLOUT_ROWS, **THROTTLE_ROWS}
"""The rows by kind. Those of rollouts are read when a controller takes office."""


@frozen
class RowCase:
    """A row with one absurdity, which may be its ACL."""

    kind: str
    row: Row
    access: Access = Access.ALL
    at_takeover: bool = False


@st.composite
def cases(draw: st.DrawFn) -> RowCase:
    """Draw a kind, and the absurdity of its row: a value, a key, the name, or only the ACL."""
    kind = draw(st.sampled_from(sorted(EVERY_ROW)))
    row, what = EVERY_ROW[kind], draw(st.sampled_from(["value", "value", "value", "key", "name", "ACL"]))
    at = sorted(places(row.value), key=str)
    keys = [place for place in at if isinstance(place[-1], str)]
    if what == "name" or not at:
        row = renamed(row, draw(st.sampled_from(ABSURD_NAMES)))
    elif what == "value" or not keys:
        row = evolve(row, value=with_field(row.value, draw(st.sampled_from(at)), draw(st.sampled_from(ABSURD_VALUES))))
    elif what == "key":
        row = evolve(row, value=with_key(row.value, draw(st.sampled_from(keys)), draw(names)))
    access = draw(st.sampled_from([Access.READ, Access.NONE]) if what == "ACL" else rarely)
    # It is another storage, and a loss that cannot be recorded keeps its broker out: that costs the broker its topics.
    if kind == "storage id" and access is Access.READ:
        access = Access.NONE
    return RowCase(kind, row, access, at_takeover=kind in ROLLOUT_ROWS or draw(st.booleans()))


names = st.sampled_from(ABSURD_NAMES)
rarely = st.sampled_from([Access.ALL] * 4 + [Access.READ, Access.NONE])


def write(cluster: SimulatedCluster, case: RowCase) -> None:
    """Write a row and its parents, as another tool would."""
    tree = cluster.durable.tree
    row = case.row
    if case.kind in ROLLOUT_ROWS:
        cluster.world.safety.exempt.add(row.path)  # as if a scenario had damaged it
    missing = [parent for parent in row.parents if tree.read(parent) is None]
    is_there = tree.read(row.path) is not None
    ops: list[Op] = []
    for path in sorted({*missing, row.path}):
        data = row.data if path == row.path else SOUND_DATA.get(path, b"")
        ops.append(Set(path, data, ANY_VERSION) if path == row.path and is_there else Create(path, data))
    cluster.world.ensemble.commit_by_hand(ops)
    tree.allow(row.path, case.access)
    if case.access is Access.NONE:
        cluster.world.safety.exempt.add(row.path)  # as if a scenario had closed it


async def live_well(cluster: SimulatedCluster, name: str) -> None:
    """Create a topic, move a partition of it, wait for a leader in the target, and delete the topic."""
    await cluster.create_topic(name, [(1, 2), (2, 3)])
    await cluster.until(lambda: leaders(cluster, name) == [1, 2], what=f"the leaders of {name}")
    await cluster.reassign({f"{name}-0": (3, 1)})
    await cluster.until_moved(f"{name}-0")
    await cluster.until(lambda: leaders(cluster, name)[0] in (1, 3), what="a leader in the target")
    await cluster.delete_topic(name)
    await cluster.until(lambda: cluster.durable.tree.read(paths.topic(name)) is None, what="the end of the deletion")


def leaders(cluster: SimulatedCluster, name: str) -> list[int]:
    states = (cluster.partition(f"{name}-{number}") for number in range(2))
    return [-1 if state is None else state.leader for state in states]


def waiting(cluster: SimulatedCluster) -> dict[int, int]:
    """Return the sizes of the queues to brokers, excluding empty ones."""
    active = cluster.controllers[cluster.active_controller or 0].service
    office = None if active is None else active._office  # noqa: SLF001 - what metrics are made of
    assert office is not None
    return {id_: size for id_, size in office.channels.queue_sizes().items() if id_ in cluster.brokers and size}


async def ask_for_theirs(cluster: SimulatedCluster) -> None:
    """Wait for a check of the leaders, then request a move, an election and a deletion, ignoring refusals."""
    await trio.sleep(6)
    with suppress(ApiError):
        await cluster.reassign({str(TP): (2, 3)})
    with suppress(ApiError):
        await cluster.elect_leaders(ElectionType.PREFERRED, [str(TP)])
    await trio.sleep(1)
    with suppress(ApiError):
        await cluster.delete_topic(TOPIC)


FAULTS = {"resigning after a fault", "restarting after a fault", "metadata store failed: loading again"}


@asynccontextmanager
async def quiet_cluster(controllers: int) -> AsyncIterator[SimulatedCluster]:
    """Open a cluster, and fail if anything ends an office or a channel before the end of the block."""
    with capture_logs() as logs:
        async with open_cluster(brokers=3, controllers=controllers, leader_rebalance_interval=5) as cluster:
            yield cluster
            assert [log for log in logs if log["event"] in FAULTS] == []


async def run(case: RowCase) -> None:
    """Run a cluster with a row, and make requests that concern the row."""
    async with quiet_cluster(controllers=2) as cluster:
        await cluster.create_topic("ours", [(1, 2), (2, 3)])
        await cluster.until(lambda: leaders(cluster, "ours") == [1, 2])
        epoch = cluster.durable.controller_epoch()
        write(cluster, case)
        if case.at_takeover:
            epoch += 1
            cluster.crash(cluster.active_controller or 0)
            await cluster.until(lambda: cluster.durable.controller_epoch() == epoch)
        await live_well(cluster, "good")
        await ask_for_theirs(cluster)
        cluster.restart(2)
        await trio.sleep(30)  # three checks of the preferred leaders
        await live_well(cluster, "better")
        await cluster.until(lambda: not waiting(cluster), what="brokers that were told everything")
        assert leaders(cluster, "ours") == [1, 2]
        assert cluster.durable.controller_epoch() == epoch


async def until_repaired(case: RowCase) -> None:
    """Write a row with its fault, and then without it."""
    async with quiet_cluster(controllers=1) as cluster:
        write(cluster, case)
        await trio.sleep(5)
        assert case.row.path in " ".join((await dump(cluster))["undecodable"])
        sound = ROWS[case.kind]
        if case.access is Access.NONE:
            cluster.durable.tree.allow(case.row.path, Access.ALL)
        else:
            cluster.world.ensemble.commit_by_hand([Set(sound.path, sound.data, ANY_VERSION)])
        if case.kind == "topic":
            await cluster.until(lambda: leaders(cluster, TOPIC) == [1, 2], within=90)
        brokers = {1, 2, 3, STRANGER} if case.kind == "broker" else {1, 2, 3}
        broker = cluster.brokers[1].handle
        assert broker is not None
        await cluster.until(lambda: {*broker.metadata.live_brokers} == brokers)
        assert case.row.path not in " ".join((await dump(cluster))["undecodable"])
        assert cluster.durable.controller_epoch() == 1


async def dump(cluster: SimulatedCluster) -> dict[str, Any]:
    """Return the output of `klamm state dump`."""
    async with cluster.world.ensemble.session("operator", 18.0) as store:
        return await state_dump.dump(store)


def absurd(kind: str, value: object, *place: str | int) -> RowCase:
    """Return a row with this value in one of its fields."""
    row = EVERY_ROW[kind]
    return RowCase(kind, evolve(row, value=with_field(row.value, place, value)))


def named(kind: str, name: str) -> RowCase:
    """Return a row with this name."""
    return RowCase(kind, renamed(ROWS[kind], name))


HUGE = 10**30

KNOWN = {
    "a topic id in standard base64": absurd("topic", "ab/d+fgAAAAAAAAAAAAAAA==", "topic_id"),
    "a partition without replicas": absurd("topic", [], "partitions", "0"),
    "a partition number beyond all": absurd("topic", {str(HUGE): [1]}, "partitions"),
    "a topic of somebody else": RowCase("topic", ROWS["topic"], Access.NONE),
    "a topic that we may only read": RowCase("topic", ROWS["topic"], Access.READ),
    "a state that we may only read": RowCase("state", ROWS["state"], Access.READ),
    "moves that we may only look at": RowCase("identity of a move", ROWS["identity of a move"], Access.READ),
    "what could not be written again": absurd("topic", DEEP, "others"),
    "a leader epoch beyond all": absurd("state", 2**64 - 1, "leader_epoch"),
    "an ISR that names a broker twice": absurd("state", [1, 1], "isr"),
    "a state of somebody else": RowCase("state", ROWS["state"], Access.NONE),
    "a broker id beyond all": named("broker", "99999999999999999999"),
    "a port beyond all": absurd("broker", f"KLAMM://h:{HUGE}", "endpoints", 0),
    "a host that is none": absurd("broker", "KLAMM://h\n:1", "endpoints", 0),
    "a stray of a partition beyond all": named("stray", f"{ID}:{TOPIC}:{HUGE}:1"),
    "a stray on a broker beyond all": named("stray", f"{ID}:{TOPIC}:0:{HUGE}"),
    "a rollout in no phase": absurd("rollout state", "walking", "phase"),
    "a rollout with a limit that is text": absurd("rollout state", "5", "settings", "into"),
    "a rollout with marks beyond all": absurd("rollout marks", [2, 99], "marks"),
    "a rollout of brokers that cannot be": absurd("rollout moves", [[-1], [2]], 1),
    "a rollout of somebody else": RowCase("rollout state", ROLLOUT_ROWS["rollout state"], Access.NONE),
    "the moves of somebody else": RowCase("identity of a move", ROWS["identity of a move"], Access.NONE),
}


# Every other case is found in office, the others at a takeover; `make soak` runs each at both times.
TIMES = [
    pytest.param(
        case,
        at_takeover,
        id=f"{name}-{'at takeover' if at_takeover else 'in office'}",
        marks=[] if at_takeover is bool(number % 2) else pytest.mark.soak,
    )
    for number, (name, case) in enumerate(KNOWN.items())
    for at_takeover in (False, True)
]


@pytest.mark.parametrize(("case", "at_takeover"), TIMES)
def test_what_once_cost_the_office_is_set_aside(case: RowCase, at_takeover: bool) -> None:
    trio.run(run, evolve(case, at_takeover=at_takeover), clock=MockClock(autojump_threshold=0))


AT_ONCE = (ROWS["topic"].path, ROWS["broker"].path)
REPAIRABLE = [n for n, case in KNOWN.items() if case.row.path in AT_ONCE and case.access is not Access.READ]


@pytest.mark.parametrize("name", REPAIRABLE)
def test_once_repaired_it_counts(name: str) -> None:
    trio.run(until_repaired, KNOWN[name], clock=MockClock(autojump_threshold=0))


# Each example is a whole cluster; examples that once failed are among the known ones.
@examples(6, 2_000)
@given(cases())
def test_a_row_of_others_costs_nothing_but_itself(case: RowCase) -> None:
    trio.run(run, case, clock=MockClock(autojump_threshold=0))
