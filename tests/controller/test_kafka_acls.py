"""The ACLs of Kafka's brokers apply to our znodes, and forbid an office that they could not take back."""

from __future__ import annotations

import pytest

from controller.model.kafka_acls import is_protected, shut_out
from controller.node.candidacy import AmongKafka
from controller.node.controller_election import ForeignCluster
from tests.kit.acls import give_away
from transport.store import paths
from transport.store.acls import ALL, CREATE, DELETE, OPEN, READ, Acl, AclEntry, identities
from transport.store.protocol import Create, MetadataStore, ensure_paths
from transport.store.security import ZooKeeperSecurity
from transport.store.zookeeper import open_zookeeper

BROKERS = ZooKeeperSecurity("kafka:secret", set_acl=True)
OTHERS = ZooKeeperSecurity("other:secret", set_acl=True)


def acl(*names: str, anyone: int = READ, permissions: int = ALL) -> Acl:
    return *(AclEntry(permissions, "sasl", name) for name in names), AclEntry(anyone, "world", "anyone")


@pytest.mark.parametrize(
    ("epoch", "brokers", "expected"),
    [
        (None, {}, None),
        (OPEN, {}, False),
        (acl("kafka"), {}, True),
        (OPEN, {1: acl("kafka")}, True),
        (acl("kafka"), {1: acl("kafka"), 2: OPEN}, False),
    ],
)
def test_znodes_are_protected_as_those_of_the_brokers(epoch: Acl, brokers: dict[int, Acl], expected: bool) -> None:
    assert is_protected(epoch, brokers) is expected


MODEST: Acl = acl("kafka", permissions=CREATE | DELETE)
ADDRESS: Acl = (AclEntry(ALL, "ip", "10.0.0.0/8"),)


@pytest.mark.parametrize("root", [None, OPEN, acl(anyone=CREATE | DELETE), acl("kafka", "klamm"), MODEST, ADDRESS])
def test_brokers_that_may_replace_us_are_no_obstacle(root: Acl | None) -> None:
    assert shut_out(root, {1: acl("kafka")}) == ""


@pytest.mark.parametrize("root", [acl("klamm"), acl("kafka", permissions=CREATE), acl("kafka", permissions=DELETE)])
def test_a_broker_that_could_not_replace_us_is_named(root: Acl) -> None:
    assert shut_out(acl("kafka"), {1: acl("kafka"), 2: acl("klamm")}).startswith("broker 2 could not delete Klamm's")
    assert shut_out(root, {1: acl("kafka")}).endswith(
        "this broker is sasl:kafka: let the brokers create and delete there"
    )
    assert "this broker is known by no identity" in shut_out(root, {1: OPEN})
    assert shut_out(root, {}) == ""


# --- on ZooKeeper -----------------------------------------------------------------------------------------------


@pytest.fixture
def address(zookeeper: str, request: pytest.FixtureRequest) -> str:
    return f"{zookeeper}/{request.node.name}"


async def owners(store: MetadataStore, path: str) -> set[str]:
    [found] = await store.acls([path])
    assert found is not None
    return {name.partition(":")[0] for name in identities(found)}


def candidate() -> AmongKafka:
    return AmongKafka(1001, lambda: 0)


@pytest.mark.parametrize(("kafka", "ours", "scheme"), [(BROKERS, "kafka:secret", "digest"), (None, "a:b", "world")])
async def test_the_znodes_of_the_office_are_protected_as_the_brokers_do(
    address: str, kafka: ZooKeeperSecurity | None, ours: str, scheme: str
) -> None:
    """Whatever our own setting is."""
    set_acl = kafka is None
    async with open_zookeeper(address, security=kafka or ZooKeeperSecurity()) as broker:
        await ensure_paths(broker, paths.PERSISTENT)
        await broker.multi([Create(paths.broker(1), b"{}", ephemeral=True), Create(paths.CONTROLLER_EPOCH, b"0")])
        async with open_zookeeper(address, security=ZooKeeperSecurity(ours, set_acl=set_acl)) as store:
            await stand(store)
            for path in (paths.CONTROLLER, paths.OFFICE_LOCK):
                assert await owners(store, path) == {scheme}


async def test_an_epoch_that_we_may_not_read_refuses_the_office(address: str) -> None:
    async with open_zookeeper(address) as broker, open_zookeeper(address) as store:
        await ensure_paths(broker, paths.PERSISTENT)
        await broker.multi([Create(paths.CONTROLLER_EPOCH, b"0")])
        await give_away(address, paths.CONTROLLER_EPOCH)
        await expect_refusal(store, "^the office cannot be judged: /controller_epoch: may not be read")


async def stand(store: MetadataStore) -> None:
    me = candidate()
    await me.require_eligible(store)
    await me.elect(store, None)


async def expect_refusal(store: MetadataStore, reason: str) -> None:
    with pytest.raises(ForeignCluster, match=reason):
        await stand(store)
    assert await store.read([paths.CONTROLLER, paths.OFFICE_LOCK]) == [None, None]


async def test_an_identity_that_is_not_the_brokers_refuses_the_office(address: str) -> None:
    async with open_zookeeper(address, security=BROKERS) as broker, open_zookeeper(address, security=OTHERS) as store:
        await ensure_paths(broker, paths.PERSISTENT)
        await broker.multi([Create(paths.CONTROLLER_EPOCH, b"0")])
        await expect_refusal(
            store, r"^the office cannot be taken: /controller_epoch may not be touched: its ACL forbids"
        )


async def test_a_chroot_that_is_closed_to_the_brokers_refuses_the_office(address: str) -> None:
    async with open_zookeeper(address, security=OTHERS) as store, open_zookeeper(address) as broker:
        store.protect(set_acl=False)
        await ensure_paths(store, paths.PERSISTENT)
        await broker.multi([Create(paths.broker(1), b"{}", ephemeral=True)])
        await expect_refusal(
            store, "^broker 1 could not delete Klamm's /controller: the ACL of the chroot lets only digest:other"
        )
