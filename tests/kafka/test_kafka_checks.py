"""The checks of a controller's settings against the brokers: before an election, for an order, and for the command."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import trio
from structlog.testing import capture_logs

import klamm
from controller.admin.handover import HandoverRefused, take_over
from controller.model.kafka_checks import Finding, Weight, exit_code
from controller.node.kafka_checks import KafkaChecks
from controller.node.service import ControllerService
from tests.kafka.scripted_broker import HOST, ScriptedBroker
from tests.kit import kafka_registrations
from tests.kit.kafka_registrations import MIGRATION
from tests.kit.service import Controllers, until
from transport.kafka import messages as kafka
from transport.kafka.messages.describe_configs_response import DescribeConfigsResourceResult, DescribeConfigsResult
from transport.kafka.releases import PROTOCOL
from transport.metadata import Listener, ReplicaAssignment
from transport.network import TcpNetwork
from transport.store import formats, paths
from transport.store.memory import MemoryStore
from transport.store.protocol import Create, Delete, Set, ensure_paths
from transport.store.tree import Access

SETTINGS: dict[str, str | None] = {
    PROTOCOL: "3.9-IV0",
    "inter.broker.listener.name": "INTERNAL",
    "security.inter.broker.protocol": "PLAINTEXT",
    "control.plane.listener.name": None,
    "listeners": "INTERNAL://:9091,EXTERNAL://:9092",
}
RIGHT: dict[str, Any] = {"kafka": True, "inter_broker_listener_name": "INTERNAL"}
BOTH = f"INTERNAL://{HOST}:0,EXTERNAL://{HOST}:0"
OPTIONS = "--inter-broker-listener-name INTERNAL --listeners INTERNAL://HOST:PORT,EXTERNAL://HOST:PORT"
KAFKAS = Create(paths.CONTROLLER, formats.encode_controller(3, 0))


def answers(settings: dict[str, str | None]) -> dict[Any, Any]:
    configs = tuple(DescribeConfigsResourceResult(name, value) for name, value in settings.items())
    offered = dict.fromkeys((kafka.AlterPartitionRequest, kafka.AllocateProducerIdsRequest))
    described = kafka.DescribeConfigsResponse(results=(DescribeConfigsResult(configs=configs),))
    return dict.fromkeys(offered) | {kafka.DescribeConfigsRequest: described}


@pytest.fixture
async def store(controllers: Controllers) -> AsyncIterator[MemoryStore]:
    async with controllers.memory.session() as session:
        await ensure_paths(session, paths.PERSISTENT)
        await kafka_registrations.begin_cluster(session)
        yield session


@pytest.fixture
async def broker(store: MemoryStore, nursery: trio.Nursery) -> ScriptedBroker:
    """Give the test a broker that listens for brokers at INTERNAL, and for clients elsewhere."""
    broker = ScriptedBroker(1, answers=answers(SETTINGS))
    await broker.listen(nursery)
    await broker.register(store)
    return broker


async def found(store: MemoryStore, controller_id: int = 1001, **options: Any) -> list[Finding]:
    config = klamm.ControllerConfig(controller_id, **{**RIGHT, "listeners": BOTH, **options})
    return await KafkaChecks(config, TcpNetwork()).all(store)


def reason_of(service: ControllerService) -> str:
    return service.readiness().reason


async def standing_by(service: ControllerService) -> None:
    """Wait until a controller has found Kafka's in office."""
    await until(lambda: "Kafka's controller 3 is in office" in reason_of(service))


async def refused(store: MemoryStore) -> str:
    with pytest.raises(HandoverRefused) as refusal:
        await take_over(store, 0, 10)
    assert await store.read([paths.TAKE_OVER, paths.OFFICE_LOCK]) == [None, None]
    return str(refusal.value)


# --- the findings -----------------------------------------------------------------------------------------------


async def test_nothing_speaks_against_the_right_settings(store: MemoryStore, broker: ScriptedBroker) -> None:
    before = await store.read([paths.CONTROLLER_EPOCH, *paths.PERSISTENT])
    assert await found(store) == []
    assert exit_code([]) == 0
    assert broker.orders == []
    assert await store.read([paths.CONTROLLER_EPOCH, *paths.PERSISTENT]) == before


@pytest.mark.parametrize("name", ["WRONG", "PLAINTEXT"])
async def test_a_name_that_no_broker_has(store: MemoryStore, name: str, broker: ScriptedBroker) -> None:
    findings = await found(store, inter_broker_listener_name=name, listeners=f"{name}://{HOST}:0")
    text = f"no live broker has a listener named {name}: broker 1 has EXTERNAL, INTERNAL: start the controller with"
    assert findings == [Finding(Weight.DANGER, f"{text} {OPTIONS}")]
    assert exit_code(findings) == 4
    assert broker.orders == []


async def test_the_listener_of_clients(store: MemoryStore, nursery: trio.Nursery) -> None:
    broker = ScriptedBroker(1, answers=answers(SETTINGS))
    await broker.listen(nursery)
    both = (Listener("INTERNAL", HOST, 1), Listener("EXTERNAL", HOST, broker.port))
    await kafka_registrations.register(store, 1, *both)
    [finding] = await found(store, inter_broker_listener_name="EXTERNAL")
    assert finding.weight is Weight.DANGER
    assert finding.text == (
        "the brokers use listener INTERNAL among themselves, and this controller is set to EXTERNAL:"
        f" start it with {OPTIONS}"
    )


async def test_a_listener_for_the_controller(store: MemoryStore, nursery: trio.Nursery) -> None:
    broker = ScriptedBroker(1, answers=answers({**SETTINGS, "control.plane.listener.name": "CONTROL"}))
    await broker.listen(nursery)
    await broker.register(store)
    [finding] = await found(store)
    assert finding.weight is Weight.DANGER
    assert "the brokers' control.plane.listener.name is CONTROL, and this controller's is not set" in finding.text
    assert "--control-plane-listener-name CONTROL" in finding.text


async def test_one_broker_that_answers_among_many_that_do_not_decides(
    store: MemoryStore, nursery: trio.Nursery
) -> None:
    for id_ in range(2, 20):
        await kafka_registrations.register(store, id_, Listener("INTERNAL", HOST, 1))
    broker = ScriptedBroker(99, answers=answers({**SETTINGS, "control.plane.listener.name": "CONTROL"}))
    await broker.listen(nursery)
    await broker.register(store)
    config = klamm.ControllerConfig(1001, **{**RIGHT, "listeners": BOTH})
    [finding] = await KafkaChecks(config, TcpNetwork()).before_election(store)
    assert finding.weight is Weight.DANGER
    assert "the brokers' control.plane.listener.name is CONTROL" in finding.text


async def test_a_listener_that_some_brokers_lack(store: MemoryStore, broker: ScriptedBroker) -> None:
    await kafka_registrations.register(store, 2, Listener("EXTERNAL", HOST, 1))
    [finding] = await found(store)
    text = "broker 2 would get no orders: no listener named INTERNAL, which others have: add it there"
    assert finding == Finding(Weight.DANGER, text)
    assert broker.orders == []


async def test_clients_that_find_no_controller_are_something_to_look_at(
    store: MemoryStore, broker: ScriptedBroker
) -> None:
    findings = await found(store, listeners=f"INTERNAL://{HOST}:0")
    assert [finding.weight for finding in findings] == [Weight.LOOK]
    assert findings[0].text.startswith("clients at EXTERNAL find no controller")
    assert exit_code(findings) == 3
    assert broker.orders == []


async def test_settings_that_cannot_be_read_are_said(store: MemoryStore, nursery: trio.Nursery) -> None:
    broker = ScriptedBroker(1, answers=answers({PROTOCOL: "3.9-IV0"}))
    await broker.listen(nursery)
    await broker.register(store)
    findings = await found(store)
    assert [finding.weight for finding in findings] == [Weight.UNKNOWN]
    assert "broker 1 does not let this controller read its listeners" in findings[0].text
    assert exit_code(findings) == 1


async def test_brokers_that_do_not_answer(store: MemoryStore, broker: ScriptedBroker) -> None:
    await kafka_registrations.register(store, 2, Listener("INTERNAL", HOST, 1))
    [silent] = await found(store)
    assert (silent.weight, "broker 2 at 127.0.0.1:1" in silent.text) == (Weight.LOOK, True)
    await store.multi([Delete(paths.broker(1))])
    unknown, _ = await found(store)
    assert unknown.weight is Weight.UNKNOWN
    assert "no live broker answers at its listener INTERNAL" in unknown.text
    assert broker.orders == []


async def test_settings_by_which_kafkas_controller_decides(store: MemoryStore, nursery: trio.Nursery) -> None:
    described = {**SETTINGS, "auto.leader.rebalance.enable": "false"}
    configs = tuple(DescribeConfigsResourceResult(name, value, config_source=5) for name, value in described.items())
    response = kafka.DescribeConfigsResponse(results=(DescribeConfigsResult(configs=configs),))
    broker = ScriptedBroker(1, answers={**answers(SETTINGS), kafka.DescribeConfigsRequest: response})
    await broker.listen(nursery)
    await broker.register(store)
    [finding] = await found(store)
    assert finding.weight is Weight.LOOK
    assert finding.text.endswith("auto.leader.rebalance.enable=false")


async def test_an_id_that_assignments_name_as_a_brokers(store: MemoryStore, broker: ScriptedBroker) -> None:
    topic = formats.TopicZnode({0: ReplicaAssignment((1, 2)), 1: ReplicaAssignment((1, 3))}, "id")
    await store.multi([Create(paths.topic("orders"), formats.encode_topic(topic))])
    [finding] = await found(store, controller_id=3)
    assert finding.weight is Weight.DANGER
    assert finding.text.startswith("id 3 is that of a broker, which has a replica of orders-1")
    await ensure_paths(store, [paths.controller_id(3)])  # a controller of this id was in office
    assert await found(store, controller_id=3) == []
    [live] = await found(store, controller_id=1)
    assert live.text == "id 1 is that of a live broker: give the controller one that no broker has"
    assert broker.orders == []


@pytest.mark.parametrize(
    ("data", "weight", "text"),
    [
        (b"", Weight.LOOK, "/migration is empty, as zookeeper-security-migration leaves it"),
        (b"{}", Weight.DANGER, "/migration is malformed, so a migration to KRaft may have begun"),
        (MIGRATION, Weight.DANGER, "/migration exists, so a migration to KRaft has begun"),
    ],
)
async def test_a_migration_znode(
    store: MemoryStore, broker: ScriptedBroker, data: bytes, weight: Weight, text: str
) -> None:
    await store.multi([Create(paths.MIGRATION, data)])
    [finding] = await found(store)
    assert finding.weight is weight
    assert finding.text.startswith(text)
    assert broker.orders == []


async def test_a_chroot_without_a_cluster(store: MemoryStore) -> None:
    await store.multi([Delete(paths.CLUSTER_ID)])
    [finding] = await found(store, zookeeper_connect="zk1:2181/misspelt")
    assert finding.weight is Weight.DANGER
    assert finding.text.startswith("there is no /cluster/id below /misspelt")


async def test_znodes_that_cannot_be_written(
    controllers: Controllers, store: MemoryStore, broker: ScriptedBroker
) -> None:
    await store.multi([Create(paths.topic("orders"), formats.encode_topic(formats.TopicZnode({}, "id")))])
    controllers.memory.tree.allow(paths.topic("orders"), Access.READ)
    [finding] = await found(store)
    assert finding.weight is Weight.DANGER
    assert f"the ACL of {paths.topic('orders')} forbids" in finding.text
    assert broker.orders == []


# --- elections --------------------------------------------------------------------------------------------------


async def test_a_controller_does_not_stand_with_a_wrong_listener(
    controllers: Controllers, store: MemoryStore, broker: ScriptedBroker
) -> None:
    service = await controllers.start(kafka=True)
    await until(lambda: "no live broker has a listener named PLAINTEXT" in reason_of(service))
    assert await store.read([paths.CONTROLLER]) == [None]
    # A broker that has the listener is reason enough to stand, even if it does not say what the listener is for.
    await kafka_registrations.register(store, 2, Listener("PLAINTEXT", HOST, broker.port))
    await until(lambda: "the brokers use listener INTERNAL" in reason_of(service))
    await store.multi([Delete(paths.broker(1)), Delete(paths.broker(2))])
    await until(lambda: service.is_active)


async def test_a_controller_waits_for_a_cluster(controllers: Controllers, store: MemoryStore) -> None:
    async def no_cluster() -> None:
        await store.multi([Delete(paths.CLUSTER_ID)])

    config = klamm.ControllerConfig(1001, kafka=True)
    await no_cluster()

    async def run(task_status: trio.TaskStatus[ControllerService]) -> None:
        await klamm.run(config, open_store=controllers.memory.session, task_status=task_status)

    service: ControllerService = await controllers.nursery.start(run)
    await until(lambda: "there is no /cluster/id below /" in reason_of(service))
    assert await store.read([paths.CONTROLLER]) == [None]
    await kafka_registrations.begin_cluster(store)
    await until(lambda: service.is_active)


async def test_a_controller_that_may_not_stand_again_leaves_the_lock_to_others(
    controllers: Controllers, store: MemoryStore
) -> None:
    first = await controllers.start_active(kafka=True)
    second = await controllers.start(1002, kafka=True)
    await until(lambda: reason_of(second) == "standing by for controller 1001")
    taken_id = Create(paths.broker(1001), kafka_registrations.encode(Listener("PLAINTEXT", HOST, 1)), ephemeral=True)
    await store.multi([taken_id, Set(paths.CONTROLLER_EPOCH, b"9", -1)])
    await until(lambda: second.is_active)
    await until(lambda: reason_of(first) == "standing by for controller 1002")


async def test_a_standby_learns_that_its_id_has_become_a_brokers(controllers: Controllers, store: MemoryStore) -> None:
    first = await controllers.start_active(kafka=True)
    second = await controllers.start(1002, kafka=True)
    await until(lambda: reason_of(second) == "standing by for controller 1001")
    topic = formats.TopicZnode({0: ReplicaAssignment((1, 1002))}, "id")
    await store.multi([Create(paths.topic("orders"), formats.encode_topic(topic))])
    controllers.memory.expire(first.store.session_id, reconnect=False)
    await until(lambda: "id 1002 is that of a broker, which has a replica of orders-0" in reason_of(second))
    controllers.memory.reconnect(first.store.session_id)
    await until(lambda: first.is_active)


async def test_what_cannot_be_read_does_not_keep_a_vacant_office_of_ours(
    controllers: Controllers, store: MemoryStore, nursery: trio.Nursery
) -> None:
    broker = ScriptedBroker(1)
    await broker.listen(nursery)
    await broker.register(store)
    service = await controllers.start(**RIGHT)
    await until(lambda: service.is_active)


# --- orders -----------------------------------------------------------------------------------------------------


async def test_take_over_ends_with_the_reason(
    controllers: Controllers, store: MemoryStore, broker: ScriptedBroker
) -> None:
    await store.multi([KAFKAS, Create(paths.CONTROLLER_EPOCH, b"4")])
    wrong = [await controllers.start(id_, kafka=True) for id_ in (1001, 1002)]
    for service in wrong:
        await standing_by(service)
    text = await refused(store)
    assert "\n" not in text
    assert "controllers 1001, 1002: danger: no live broker has a listener named PLAINTEXT" in text
    assert OPTIONS in text
    assert not any(service.is_active for service in wrong)
    await standing_by(right := await controllers.start(1003, **RIGHT, listeners=BOTH))
    assert (await take_over(store, 0, 10)).controller_id == 1003
    assert right.is_active
    assert broker.orders == []


async def test_take_over_is_refused_for_a_listener_that_some_lack(
    controllers: Controllers, store: MemoryStore, broker: ScriptedBroker
) -> None:
    await store.multi([KAFKAS, Create(paths.CONTROLLER_EPOCH, b"4")])
    await kafka_registrations.register(store, 2, Listener("EXTERNAL", HOST, 1))
    await standing_by(await controllers.start(**RIGHT))
    assert "broker 2 would get no orders" in await refused(store)
    assert broker.orders == []


@pytest.mark.parametrize("access", [Access.ALL, Access.READ])
@pytest.mark.parametrize("is_refused", [False, True])
async def test_an_order_is_judged_although_the_findings_cannot_be_recorded(
    controllers: Controllers, store: MemoryStore, broker: ScriptedBroker, access: Access, is_refused: bool
) -> None:
    await store.multi([KAFKAS, Create(paths.CONTROLLER_EPOCH, b"4")])
    await standing_by(
        service := await controllers.start(kafka=True) if is_refused else await controllers.start(**RIGHT)
    )
    address = paths.controller_endpoint(1001)
    if access is Access.ALL:
        await store.multi([Set(address, b"damaged", -1)])
    controllers.memory.tree.allow(address, access)
    with capture_logs() as logs:
        await store.multi([Create(paths.TAKE_OVER)])
        if is_refused:
            await until(lambda: "no live broker has a listener named PLAINTEXT" in reason_of(service))
            await store.multi([Delete(paths.TAKE_OVER)])
            await standing_by(service)
        else:
            await until(lambda: service.is_active)
    [warning] = [log for log in logs if log["event"] == "the findings about an order cannot be recorded"]
    assert address in warning["fault"]
    assert warning["log_level"] == "warning"
    assert "start it again" in warning["cure"]
    assert not [log for log in logs if log["log_level"] == "error" or "failed" in log["event"]]
    assert broker.orders == []


async def test_force_names_what_it_ignores_and_lasts(
    controllers: Controllers, store: MemoryStore, nursery: trio.Nursery
) -> None:
    broker = ScriptedBroker(1)
    await broker.listen(nursery)
    await broker.register(store)
    await store.multi([KAFKAS, Create(paths.CONTROLLER_EPOCH, b"4")])
    await standing_by(first := await controllers.start(**RIGHT))
    assert "could not tell: broker 1 does not let this controller read its listeners" in await refused(store)
    done = await take_over(store, 0, 10, is_forced=True)
    assert done.controller_id == 1001
    assert any("broker 1 does not let this controller read" in line for line in done.findings)
    # The next controller of ours stands on the same terms, with whatever it finds.
    second = await controllers.start(1002, kafka=True, inter_broker_listener_name="EXTERNAL")
    await until(lambda: reason_of(second) == "standing by for controller 1001")
    controllers.memory.expire(first.store.session_id)
    await until(lambda: first.is_active or second.is_active)
    [holder] = await store.read([paths.CONTROLLER])
    assert holder is not None
    assert b'"forced":true' in holder.data


async def test_an_order_of_an_earlier_release_is_carried_out_after_the_checks(
    controllers: Controllers, store: MemoryStore, broker: ScriptedBroker
) -> None:
    await store.multi([KAFKAS, Create(paths.CONTROLLER_EPOCH, b"4")])
    service = await controllers.start(**RIGHT)
    await store.multi([Create(paths.TAKE_OVER), Set(paths.TAKE_OVER, b"", 0)])
    await until(lambda: service.is_active)
    assert broker.orders == []
