"""An authorizer that follows Kafka's ACLs in the metadata store."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import pytest
import trio
from structlog.testing import capture_logs
from trio.testing import wait_all_tasks_blocked

from controller.node.acl_authorizer import AclAuthorizer
from transport.acls import CLUSTER, AclEntry, Operation, Pattern, PatternType, Resource, ResourceType
from transport.security.principal import Principal
from transport.security.settings import AuthorizerSettings
from transport.store import kafka_acls as acls
from transport.store.fields import UndecodableZnode
from transport.store.memory import MemoryZooKeeper
from transport.store.protocol import ANY_VERSION, UNREADABLE, Create, Delete, MetadataStore, Set, ensure_paths
from transport.wire import Caller

KLAMM: Final = Principal("User", "klamm")
ROOT: Final = Principal("User", "root")
CALLER: Final = Caller("broker-1", "10.0.0.1", KLAMM)
LITERAL: Final = Pattern(PatternType.LITERAL, CLUSTER)
ORDERS: Final = Resource(ResourceType.TOPIC, "orders")
PREFIX: Final = Pattern(PatternType.PREFIXED, Resource(ResourceType.TOPIC, "ord"))
ALLOWED: Final = AclEntry(KLAMM, True, "*", Operation.CLUSTER_ACTION)  # noqa: FBT003
CREATES: Final = AclEntry(KLAMM, True, "*", Operation.CREATE)  # noqa: FBT003
SETTINGS: Final = AuthorizerSettings(is_enabled=True, super_users=frozenset({ROOT}))
LITERAL_CHANGE: Final = (f"{acls.CHANGES}/acl_changes_", b"Cluster:kafka-cluster")
EXTENDED_CHANGE: Final = (
    f"{acls.EXTENDED_CHANGES}/acl_changes_",
    b'{"version":1,"resourceType":"TOPIC","name":"ord","patternType":"PREFIXED"}',
)


@asynccontextmanager
async def following(store: MetadataStore) -> AsyncIterator[AclAuthorizer]:
    authorizer = AclAuthorizer(store, SETTINGS)
    async with trio.open_nursery() as nursery:
        await nursery.start(authorizer.follow)
        yield authorizer
        nursery.cancel_scope.cancel()


@pytest.fixture
async def store(memory: MemoryZooKeeper) -> AsyncIterator[MetadataStore]:
    async with memory.session() as session:
        yield session


def acts(authorizer: AclAuthorizer) -> bool:
    return authorizer(CALLER, Operation.CLUSTER_ACTION, CLUSTER)


def creates(authorizer: AclAuthorizer) -> bool:
    return authorizer(CALLER, Operation.CREATE, ORDERS)


async def change(store: MetadataStore, pattern: Pattern, data: bytes | None, notification: tuple[str, bytes]) -> None:
    """Write the entries of a pattern, or delete them, and announce that as Kafka's tools do."""
    path = acls.path_of(pattern)
    [there] = await store.read([path])
    if data is None:
        write: Create | Set | Delete = Delete(path)
    else:
        write = Create(path, data) if there is None else Set(path, data, ANY_VERSION)
    await store.multi([write])
    await store.multi([Create(*notification, sequence=True)])
    await wait_all_tasks_blocked()


async def test_acls_are_read_at_the_start_and_followed(store: MetadataStore) -> None:
    await ensure_paths(store, acls.PERSISTENT)
    await store.multi([Create(acls.path_of(LITERAL), acls.encode_entries([ALLOWED]))])
    async with following(store) as authorizer:
        assert acts(authorizer)
        assert not creates(authorizer)
        await change(store, PREFIX, acls.encode_entries([CREATES]), EXTENDED_CHANGE)
        assert acts(authorizer)
        assert creates(authorizer)
        await change(store, LITERAL, acls.encode_entries([]), LITERAL_CHANGE)
        assert not acts(authorizer)
        assert creates(authorizer)
        await change(store, PREFIX, None, EXTENDED_CHANGE)
        assert not creates(authorizer)
        assert authorizer(Caller("", "", ROOT), Operation.CREATE, ORDERS)


async def test_only_what_has_changed_is_read_again(store: MetadataStore, monkeypatch: pytest.MonkeyPatch) -> None:
    async with following(store) as authorizer:
        read: list[list[Pattern]] = []
        whole = acls.read_entries

        async def counting(session: MetadataStore, patterns: list[Pattern]) -> object:
            read.append(patterns)
            return await whole(session, patterns)

        monkeypatch.setattr("controller.node.acl_authorizer.read_entries", counting)
        await change(store, LITERAL, acls.encode_entries([ALLOWED]), LITERAL_CHANGE)
        assert read == [[LITERAL]]
        assert acts(authorizer)


async def test_a_notification_that_cannot_be_read_makes_all_be_read(store: MetadataStore) -> None:
    async with following(store) as authorizer:
        with capture_logs() as logs:
            await change(store, LITERAL, acls.encode_entries([ALLOWED]), (f"{acls.CHANGES}/acl_changes_", b"?"))
        assert acts(authorizer)
        assert [line["event"] for line in logs] == ["all ACLs are read again: a notification cannot be read"]


async def test_an_acl_that_cannot_be_read_denies_and_is_told(store: MetadataStore) -> None:
    async with following(store) as authorizer:
        await change(store, LITERAL, acls.encode_entries([ALLOWED]), LITERAL_CHANGE)
        assert acts(authorizer)
        with capture_logs() as logs:
            await change(store, LITERAL, b"{}", LITERAL_CHANGE)
        assert not acts(authorizer)
        assert [line["reason"] for line in logs] == ["/kafka-acl/Cluster/kafka-cluster: version must be 1, is None"]


async def test_after_a_lost_connection_all_is_read_again(memory: MemoryZooKeeper, store: MetadataStore) -> None:
    async with following(store) as authorizer, memory.session() as other:
        memory.disconnect(store.session_id)
        await other.multi([Create(acls.path_of(LITERAL), acls.encode_entries([ALLOWED]))])
        # The notification is gone, as after a quarter of an hour.
        assert not acts(authorizer)
        memory.reconnect(store.session_id)
        await wait_all_tasks_blocked()
        assert acts(authorizer)


@pytest.mark.usefixtures("autojump_clock")
async def test_a_store_that_is_away_is_asked_again(memory: MemoryZooKeeper, store: MetadataStore) -> None:
    async with memory.session() as other:
        await ensure_paths(other, acls.PERSISTENT)
        await other.multi([Create(acls.path_of(LITERAL), acls.encode_entries([ALLOWED]))])
    memory.disconnect(store.session_id)
    authorizer = AclAuthorizer(store, SETTINGS)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(authorizer.follow)
        await trio.sleep(3)
        assert not acts(authorizer)
        memory.reconnect(store.session_id)
        await trio.sleep(3)
        assert acts(authorizer)
        nursery.cancel_scope.cancel()


# --- formats ----------------------------------------------------------------------------------------------------


def test_entries_are_written_as_by_kafka() -> None:
    data = acls.encode_entries([ALLOWED])
    assert data == (
        b'{"version":1,"acls":[{"principal":"User:klamm","permissionType":"Allow",'
        b'"operation":"ClusterAction","host":"*"}]}'
    )
    assert acls.decode_entries("/x", data) == {ALLOWED}
    assert acls.decode_entries("/x", b"") == frozenset()


def test_an_operation_that_is_unknown_here_is_none() -> None:
    data = acls.encode_entries([ALLOWED]).replace(b"ClusterAction", b"TwoPhaseCommit")
    [entry] = acls.decode_entries("/x", data)
    assert entry.operation is None


@pytest.mark.parametrize(
    "data",
    [
        UNREADABLE,
        b"[]",
        b'{"version":2,"acls":[]}',
        b'{"version":1,"acls":{}}',
        b'{"version":1,"acls":["x"]}',
        b'{"version":1,"acls":[{"principal":"User:a","permissionType":"Maybe","operation":"Read","host":"*"}]}',
        b'{"version":1,"acls":[{"principal":"a","permissionType":"Deny","operation":"Read","host":"*"}]}',
        b'{"version":1,"acls":[{"principal":"User:a","permissionType":"Deny","operation":"Read"}]}',
        b'{"version":1,"acls":[{"principal":"User:a","permissionType":"Deny","operation":1,"host":"*"}]}',
    ],
)
def test_entries_that_are_none_are_refused(data: bytes) -> None:
    with pytest.raises(UndecodableZnode):
        acls.decode_entries("/x", data)


def test_notifications_of_other_types_are_of_no_interest() -> None:
    assert acls.changed_pattern(f"{acls.CHANGES}/acl_changes_1", b"Group:g:h") is None
    extended = EXTENDED_CHANGE[1].replace(b"TOPIC", b"TRANSACTIONAL_ID")
    assert acls.changed_pattern(f"{acls.EXTENDED_CHANGES}/acl_changes_1", extended) is None
    assert acls.changed_pattern(f"{acls.CHANGES}/x", b"Topic:orders") == Pattern(PatternType.LITERAL, ORDERS)
    with pytest.raises(UndecodableZnode):
        acls.changed_pattern(f"{acls.EXTENDED_CHANGES}/x", EXTENDED_CHANGE[1].replace(b"PREFIXED", b"MATCH"))
