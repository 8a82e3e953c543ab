"""Damaged znodes stop neither a failover nor an event: they are logged and shown, and the rest continues."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import pytest
from attrs import frozen
from structlog.testing import capture_logs

from controller.events import (
    BrokerChange,
    BrokerModifications,
    ConfigChange,
    ControllerEvent,
    IsrChangeNotification,
    LogDirEventNotification,
    PartitionModifications,
    PreferredReplicaElection,
    TopicChange,
    TopicDeletion,
    ZkPartitionReassignment,
)
from controller.monitoring import state_dump
from tests.controller.conftest import TP, Bench
from transport.metadata import TopicPartition
from transport.store import paths
from transport.store.protocol import ANY_VERSION, Create, Delete, Set

BAD = "bad"
BAD_TP = TopicPartition(BAD, 0)


@frozen
class DamageKind:
    """A kind of znode: where one is, what looks at it, and whether the controller has reason to say that it is bad."""

    path: str
    events: tuple[ControllerEvent, ...]
    is_logged: bool = True


KINDS = {
    "topic": DamageKind(paths.topic(BAD), (TopicChange(), PartitionModifications(BAD))),
    "state": DamageKind(paths.partition_state(BAD_TP), (BrokerChange(), PartitionModifications(BAD))),
    "broker": DamageKind(paths.broker(9), (BrokerChange(), BrokerModifications(9))),
    "storage id": DamageKind(paths.storage_id(3), (BrokerChange(),)),
    "reassignments": DamageKind(paths.REASSIGN_PARTITIONS, (ZkPartitionReassignment(),)),
    "elections": DamageKind(paths.PREFERRED_REPLICA_ELECTION, (PreferredReplicaElection(),)),
    "deletion marker": DamageKind(paths.delete_topic(TP.topic + "-unknown"), (TopicDeletion(),), is_logged=False),
    "topic config": DamageKind(paths.topic_config(TP.topic), (ConfigChange(), BrokerChange()), is_logged=False),
    "broker config": DamageKind(paths.broker_config(1), (ConfigChange(),), is_logged=False),
    "default config": DamageKind(paths.broker_config(None), (ConfigChange(), BrokerChange())),
    "config change": DamageKind(f"{paths.CONFIG_CHANGES}/config_change_0000000001", (ConfigChange(),), is_logged=False),
    "isr change": DamageKind(f"{paths.ISR_CHANGE_NOTIFICATION}/isr_change_0000000001", (IsrChangeNotification(),)),
    "log dir": DamageKind(f"{paths.LOG_DIR_EVENT_NOTIFICATION}/log_dir_event_0000000001", (LogDirEventNotification(),)),
    "stray": DamageKind(f"{paths.STRAYS}/no:replica", (BrokerChange(),), is_logged=False),
}
JUNK = {
    "nothing": b"",
    "no text": b"\xff\xfe\x00",
    "no JSON": b"{version:1}",
    "endless": b'{"partitions":' + 5000 * b"[",
    "null": b"null",
    "a list": b"[1]",
    "wrong types": b'{"version":"1","partitions":{"0":"1","x":[1]},"endpoints":{"KLAMM":1},"leader":[],"config":[]}',
    "wrong items": b'{"version":1,"partitions":[{"topic":1}],"config":{"unclean.leader.election.enable":1},"id":"x"}',
}


async def write(bench: Bench, kind: DamageKind, data: bytes) -> None:
    """Write a damaged znode behind the controller's back."""
    if kind.path == paths.partition_state(BAD_TP):
        await bench.write_topic(BAD, (1, 2))
        parents = (paths.topic_partitions(BAD), paths.partition(BAD_TP))
        await bench.store.multi([Create(path) for path in parents])
    is_there = await bench.read(kind.path) is not None
    await bench.store.multi([Set(kind.path, data, ANY_VERSION) if is_there else Create(kind.path, data)])


async def require_shown(bench: Bench, kind: DamageKind, junk: bytes) -> None:
    """Require that `klamm state dump` names the znode, if it is still there, unmended, and says anything at all."""
    znode = await bench.read(kind.path)
    if znode is not None and znode.data == junk and not kind.path.startswith(paths.DELETE_TOPICS):
        shown = (await state_dump.dump(bench.store))["undecodable"]
        assert any(fault.startswith(kind.path) for fault in shown), shown


async def require_going_on(bench: Bench) -> None:
    """Require that a sound partition loses its leader and gets another."""
    leader = bench.context.leadership[TP].leader
    await bench.kill(leader)
    assert bench.context.leadership[TP].leader not in (leader, -1)
    await bench.revive(leader, storage_id="disk")
    await bench.alter_isr(TP, 1, 2, 3)


@pytest.mark.requirement("D7")
@pytest.mark.parametrize(
    ("kind", "junk"),
    [
        pytest.param(kind, junk, id=f"{name}, {what}")
        for name, kind in KINDS.items()
        for what, junk in JUNK.items()
        if junk or not name.endswith(" config")  # to Kafka, a config znode without data has no settings
    ],
)
async def test_no_failover_and_no_event_stops_at_a_damaged_znode(bench: Bench, kind: DamageKind, junk: bytes) -> None:
    await bench.start((1, 2, 3), storage_id="disk")
    logged = False
    looks: Sequence[Callable[[], Awaitable[object]]]
    looks = (bench.fail_over, *(handling(bench, event) for event in kind.events))
    for look in looks:
        await write(bench, kind, junk)
        with capture_logs() as logs:
            await look()
        logged = logged or any(kind.path in str(log) for log in logs)
        await require_shown(bench, kind, junk)
        await require_going_on(bench)
        await clean(bench, kind)
    assert logged or not kind.is_logged


def handling(bench: Bench, event: ControllerEvent) -> Callable[[], Awaitable[object]]:
    return lambda: bench.handle(event)


async def clean(bench: Bench, kind: DamageKind) -> None:
    if await bench.read(kind.path) is not None:
        await bench.store.multi([Delete(kind.path)])
    if kind.path.startswith(paths.topic(BAD)) and await bench.read(paths.topic(BAD)) is not None:
        await bench.store.multi(
            [Delete(paths.partition(BAD_TP)), Delete(paths.topic_partitions(BAD)), Delete(paths.topic(BAD))]
        )
        await bench.handle(TopicChange())
