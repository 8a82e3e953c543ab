"""Live brokers with registrations that cannot be used: none of what they lead and follow changes because of that."""

from __future__ import annotations

import pytest

from controller.config import ControllerConfig
from controller.events import AutoPreferredReplicaLeaderElection, BrokerChange, BrokerModifications
from controller.model import registrations
from controller.model.facts import BrokerUnusable
from controller.model.state_machines import PartitionPhase, ReplicaPhase
from controller.node import alarms
from tests.controller.conftest import ENDPOINT, TP, Bench
from tests.controller.test_failed_replicas import Answers
from tests.kit import kafka_registrations
from transport.errors import ApiError, ErrorCode
from transport.messages import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    AlterPartitionItem,
    AlterPartitionRequest,
    AlterPartitionResponse,
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    ElectionType,
    ElectLeadersRequest,
    ElectLeadersResponse,
)
from transport.metadata import NO_EPOCH, NO_LEADER, Listener, ReplicaAssignment, TopicPartition
from transport.store import formats, paths
from transport.store.protocol import Create, Delete, Set
from transport.store.tree import Access

DAMAGES = {"empty": b"", "no JSON": b"{", "no address": b"{}", "another listener": b'{"endpoints":["X://h:1"]}'}


async def damage(bench: Bench, broker_id: int, data: bytes = b"{") -> None:
    """Write a registration that cannot be used over that of a broker, in the same incarnation."""
    await bench.store.multi([Set(paths.broker(broker_id), data, -1)])


async def repair(bench: Bench, broker_id: int) -> None:
    """Write a usable registration over that of a broker."""
    path = paths.broker(broker_id)
    await bench.register(99)
    data = (await bench.znode(paths.broker(99))).data
    await bench.store.multi([Delete(paths.broker(99)), Set(path, data, -1)])


async def restart(bench: Bench, broker_id: int, data: bytes) -> None:
    """Replace the registration of a broker by that of its next incarnation."""
    path = paths.broker(broker_id)
    await bench.store.multi([Delete(path)])
    await bench.store.multi([Create(path, data, ephemeral=True)])


async def states(bench: Bench) -> object:
    return await bench.store.read([paths.partition_state(TP), paths.topic("orders")])


# --- while the controller is active -----------------------------------------------------------------------------


@pytest.mark.parametrize("data", DAMAGES.values(), ids=DAMAGES)
@pytest.mark.parametrize("event", [BrokerChange(), BrokerModifications(1)], ids=str)
async def test_the_last_usable_registration_stays_in_effect(
    bench: Bench, data: bytes, event: BrokerChange | BrokerModifications
) -> None:
    await bench.start((1, 2, 3))
    before, known = await states(bench), dict(bench.context.brokers)
    await damage(bench, 1, data)
    await bench.handle(event)
    assert await states(bench) == before
    assert bench.context.brokers == known
    assert list(bench.context.unusable) == [1]
    assert bench.seen.published == []
    # Another broker comes and goes: the damaged one leads on.
    await bench.revive(7)
    await bench.kill(7)
    assert await states(bench) == before
    await repair(bench, 1)
    await bench.handle(BrokerModifications(1))
    assert bench.context.unusable == {}
    assert await states(bench) == before


async def test_a_damaged_follower_joins_the_next_leader(bench: Bench) -> None:
    await bench.start((1, 2, 3))
    await damage(bench, 2)
    await bench.kill(1)
    assert await bench.leader_and_isr() == (2, (2, 3))


async def test_a_damaged_broker_that_dies_is_dead(bench: Bench) -> None:
    await bench.start((1, 2, 3))
    await damage(bench, 1)
    await bench.handle(BrokerChange())
    await bench.kill(1)
    assert await bench.leader_and_isr() == (2, (2, 3))
    assert bench.context.unusable == {}


async def test_a_restart_with_an_unusable_registration_ends_the_incarnation_before(bench: Bench) -> None:
    await bench.start((1, 2, 3))
    await restart(bench, 1, b"{")
    await bench.handle(BrokerChange())
    assert await bench.leader_and_isr() == (2, (2, 3))
    assert 1 not in bench.context.brokers
    assert bench.context.is_unaddressable(1)


async def test_nobody_is_elected_uncleanly_while_the_last_member_is_alive(bench: Bench) -> None:
    await bench.store.multi(
        [Create(paths.topic_config("orders"), formats.encode_config({"unclean.leader.election.enable": "true"}))]
    )
    await bench.start((1, 2), brokers=(1,))
    assert await bench.leader_and_isr() == (1, (1,))
    await restart(bench, 1, b"{")
    await bench.revive(2)
    assert await bench.leader_and_isr() == (NO_LEADER, (1,))
    await bench.handle(BrokerChange())
    answer = await bench.ask(ElectLeadersRequest(ElectionType.UNCLEAN, (TP,)), ElectLeadersResponse)
    assert answer.partitions[0].error is ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
    assert "alive with a registration that cannot be used" in answer.partitions[0].message
    assert await bench.leader_and_isr() == (NO_LEADER, (1,))
    await repair(bench, 1)
    await bench.handle(BrokerModifications(1))
    assert (await bench.leader_and_isr())[0] == 1


# --- a new controller -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", DAMAGES.values(), ids=DAMAGES)
async def test_a_new_controller_changes_nothing_of_what_it_finds(bench: Bench, data: bytes) -> None:
    await bench.start((1, 2, 3))
    before = await states(bench)
    for broker_id in (1, 2):
        await damage(bench, broker_id, data)
    await bench.fail_over()
    assert await states(bench) == before
    assert bench.context.partition_phases.get(TP) is PartitionPhase.ONLINE
    assert bench.context.replica_phases.of(TP) == (ReplicaPhase.ONLINE,) * 3
    assert bench.seen.latest_metadata(TP).offline_replicas == ()
    for broker_id in (1, 2):
        await repair(bench, broker_id)
        await bench.handle(BrokerModifications(broker_id))
    assert await states(bench) == before
    assert sorted(bench.context.brokers) == [1, 2, 3, 4, 5, 6]


async def test_no_listener_at_all_changes_nothing(bench: Bench) -> None:
    bench.context.config = ControllerConfig(ENDPOINT.id, kafka=True, inter_broker_listener_name="INTERNAL")
    for broker_id in (1, 2, 3):
        await kafka_registrations.register(bench.store, broker_id, Listener("INTERNAL", "h", broker_id))
    await bench.start((1, 2, 3), (2, 3, 1), brokers=())
    before = await states(bench)
    bench.context.config = ControllerConfig(ENDPOINT.id, kafka=True, inter_broker_listener_name="WRONG")
    await bench.fail_over()
    assert await states(bench) == before
    assert bench.context.brokers == {}
    assert {id_: one.listeners for id_, one in bench.context.unusable.items()} == {
        id_: (Listener("INTERNAL", "h", id_),) for id_ in (1, 2, 3)
    }
    await bench.unregister(1)
    await bench.handle(BrokerChange())
    assert await bench.leader_and_isr() == (NO_LEADER, (2, 3))  # this broker did die


async def test_the_death_of_an_unaddressable_leader_elects_another(bench: Bench) -> None:
    await bench.start((1, 2, 3))
    await damage(bench, 1)
    await bench.fail_over()
    await bench.kill(1)
    assert await bench.leader_and_isr() == (2, (2, 3))


async def test_a_restart_of_an_unaddressable_broker_is_a_bounce(bench: Bench) -> None:
    await bench.start((1, 2, 3))
    usable = (await bench.znode(paths.broker(1))).data
    await damage(bench, 1)
    await bench.fail_over()
    await restart(bench, 1, usable)
    await bench.handle(BrokerChange())
    assert await bench.leader_and_isr() == (2, (2, 3))
    assert 1 in bench.context.brokers


async def test_members_that_died_under_an_unaddressable_leader_leave_with_it(bench: Bench) -> None:
    await bench.start((1, 2), (1, 2, 3))
    await damage(bench, 1)
    await bench.fail_over()
    await bench.kill(2)
    await bench.kill(1)
    assert await bench.leader_and_isr() == (NO_LEADER, (1, 2))  # both have all records
    assert await bench.leader_and_isr(TopicPartition("orders", 1)) == (3, (3,))


async def test_members_that_died_leave_with_an_unaddressable_leader_that_shuts_down(bench: Bench) -> None:
    await bench.start((1, 2, 3))
    epoch = bench.context.brokers[1].epoch
    await damage(bench, 1)
    await bench.fail_over()
    await bench.kill(2)
    left = await bench.ask(ControlledShutdownRequest(1, epoch), ControlledShutdownResponse)
    assert left.remaining == ()
    assert await bench.leader_and_isr() == (3, (3,))


async def test_a_partition_of_an_unaddressable_leader_begins_no_leader_epoch(bench: Bench) -> None:
    await bench.start((2, 1, 3))
    await damage(bench, 2)
    await bench.fail_over()
    before = await states(bench)
    await bench.kill(3)  # its leader takes it out of the ISR itself
    assert await states(bench) == before
    assert bench.seen.latest_metadata(TP).offline_replicas == (3,)
    elections = ((ElectionType.UNCLEAN, ErrorCode.ELECTION_NOT_NEEDED), (ElectionType.PREFERRED, None))
    for kind, error in elections:
        answer = await bench.ask(ElectLeadersRequest(kind, (TP,)), ElectLeadersResponse)
        assert error in (None, answer.partitions[0].error)
    refused = await bench.move(TP, (4, 5))
    assert refused.error is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert "the registration of the leader cannot be used" in refused.message
    await bench.handle(AutoPreferredReplicaLeaderElection(bench.context.epoch))
    assert await states(bench) == before
    await repair(bench, 2)
    await bench.handle(BrokerModifications(2))
    assert await bench.leader_and_isr() == (2, (2, 1))


async def test_no_preferred_election_replaces_an_unaddressable_leader(bench: Bench) -> None:
    await bench.start((1, 2, 3))
    await bench.kill(1)
    await bench.revive(1)
    await bench.alter_isr(TP, 2, 3, 1)
    await damage(bench, 2)
    await bench.fail_over()
    before = await states(bench)
    answer = await bench.ask(ElectLeadersRequest(ElectionType.PREFERRED, (TP,)), ElectLeadersResponse)
    assert "the leader 2 of orders-0 has a registration that cannot be used" in answer.partitions[0].message
    await bench.handle(AutoPreferredReplicaLeaderElection(bench.context.epoch))
    assert await states(bench) == before


async def test_an_election_for_a_partition_without_a_state_is_answered(bench: Bench) -> None:
    await bench.start((1, 2), (1, 2))
    await damage(bench, 1)
    await bench.store.multi([Set(paths.partition_state(TP), b"{", -1)])
    await bench.fail_over()
    [result] = (await bench.ask(ElectLeadersRequest(ElectionType.UNCLEAN, (TP,)), ElectLeadersResponse)).partitions
    assert result.error is ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
    assert result.message == "the state of orders-0 cannot be read or written: see the controller's log"


async def test_a_move_waits_for_the_registration_of_the_leader(bench: Bench) -> None:
    await bench.begin_move((1, 2, 3), (4, 5, 6))
    usable = (await bench.znode(paths.broker(1))).data
    await damage(bench, 1)
    await bench.fail_over()
    before = await states(bench)
    await bench.handle(BrokerChange())
    assert await states(bench) == before
    await damage(bench, 1, usable)
    await bench.handle(BrokerModifications(1))
    await bench.alter_isr(TP, 1, 2, 3, 4, 5, 6)
    assert await bench.read_assignment(TP) == ReplicaAssignment((4, 5, 6))
    assert (await bench.leader_and_isr())[0] == 4


async def test_an_unaddressable_leader_is_served(bench: Bench) -> None:
    await bench.start((1, 2, 3))
    await damage(bench, 1)
    await damage(bench, 2)
    await bench.fail_over()
    epoch = (await bench.znode(paths.broker(1))).stat.czxid
    assert isinstance(
        await bench.ask(AllocateProducerIdsRequest(1, epoch), AllocateProducerIdsResponse), AllocateProducerIdsResponse
    )
    for isr in ((1, 2), (1, 2, 3)):
        now = bench.context.leadership[TP]
        item = AlterPartitionItem("orders", "id-of-orders", 0, now.leader_epoch, isr, now.partition_epoch)
        answer = await bench.ask(AlterPartitionRequest(1, epoch, (item,)), AlterPartitionResponse)
        assert answer.partitions[0].error is ErrorCode.NONE
    late = AlterPartitionRequest(1, epoch - 1, ())
    with pytest.raises(ApiError) as stale:
        await bench.ask(late, AlterPartitionResponse)
    assert stale.value.code is ErrorCode.STALE_BROKER_EPOCH
    left = await bench.ask(ControlledShutdownRequest(1, epoch), ControlledShutdownResponse)
    assert left.remaining == ()
    assert await bench.leader_and_isr() == (3, (2, 3))


# --- hidden registrations ---------------------------------------------------------------------------------------


def allow(bench: Bench, broker_id: int, access: Access = Access.ALL) -> None:
    bench.seen.zookeeper.tree.allow(paths.broker(broker_id), access)


async def start_hidden(bench: Bench) -> int:
    """Let a new controller find the registration of the leader hidden; return the epoch of that broker."""
    await bench.start((1, 2, 3))
    epoch = bench.context.brokers[1].epoch
    allow(bench, 1, Access.NONE)
    await bench.fail_over()
    assert registrations.epoch_of(bench.context, 1) == NO_EPOCH
    return epoch


@pytest.mark.parametrize("event", [BrokerChange(), BrokerModifications(1)], ids=str)
@pytest.mark.parametrize("data", [None, b"{"], ids=["usable", "damaged"])
async def test_a_hidden_registration_that_opens_is_no_restart(
    bench: Bench, data: bytes | None, event: BrokerChange | BrokerModifications
) -> None:
    epoch = await start_hidden(bench)
    before = await states(bench)
    # No watch fires when an ACL changes.
    assert (alarms.CLOSED_SECONDS, BrokerChange()) in alarms.first_alarms(bench.context)
    allow(bench, 1)
    if data is not None:
        await damage(bench, 1, data)
    await bench.handle(event)
    assert await states(bench) == before
    assert registrations.epoch_of(bench.context, 1) == epoch
    assert (1 in bench.context.brokers) is (data is None)
    assert BrokerChange() not in [event for _, event in alarms.first_alarms(bench.context)]


async def test_a_broker_with_a_hidden_registration_is_served(bench: Bench) -> None:
    epoch = await start_hidden(bench)
    given = await bench.ask(AllocateProducerIdsRequest(1, epoch), AllocateProducerIdsResponse)
    assert isinstance(given, AllocateProducerIdsResponse)
    now = bench.context.leadership[TP]
    item = AlterPartitionItem("orders", "id-of-orders", 0, now.leader_epoch, (1, 2), now.partition_epoch)
    answer = await bench.ask(AlterPartitionRequest(1, epoch, (item,)), AlterPartitionResponse)
    assert answer.partitions[0].error is ErrorCode.NONE
    left = await bench.ask(ControlledShutdownRequest(1, epoch), ControlledShutdownResponse)
    assert left.remaining == ()
    assert (await bench.leader_and_isr())[0] == 2
    # If it has restarted by the time that its registration opens, it leads again.
    allow(bench, 1)
    await bench.handle(BrokerChange())
    assert 1 not in bench.context.shutting_down


async def test_a_later_incarnation_with_a_hidden_registration_is_served(bench: Bench) -> None:
    """The controller has an address for the earlier one, and has not seen it go."""
    await bench.start((1, 2, 3))
    epoch = bench.context.brokers[1].epoch
    usable = (await bench.znode(paths.broker(1))).data
    await restart(bench, 1, usable)
    later = (await bench.znode(paths.broker(1))).stat.czxid
    allow(bench, 1, Access.NONE)
    await bench.handle(BrokerChange())
    assert bench.context.brokers[1].epoch == epoch
    with pytest.raises(ApiError) as stale:
        await bench.ask(ControlledShutdownRequest(1, epoch - 1), ControlledShutdownResponse)
    assert stale.value.code is ErrorCode.STALE_BROKER_EPOCH
    assert isinstance(
        await bench.ask(AllocateProducerIdsRequest(1, later), AllocateProducerIdsResponse), AllocateProducerIdsResponse
    )
    allow(bench, 1)
    await bench.handle(BrokerChange())
    assert bench.context.brokers[1].epoch == later
    assert (await bench.leader_and_isr())[0] == 2


async def test_the_reason_is_kept(bench: Bench) -> None:
    await bench.start((1, 2))
    await damage(bench, 1, kafka_registrations.encode(Listener("X", "h", 1)))
    await bench.handle(BrokerModifications(1))
    epoch = bench.context.brokers[1].epoch
    fault = "/brokers/ids/1: no listener named KLAMM: not a broker of this kind of cluster"
    assert bench.context.unusable == {1: BrokerUnusable(1, epoch, fault, None, (Listener("X", "h", 1),))}


# --- members of the ISR that failed or died under an unaddressable leader ------------------------------------------


async def led_by_an_unaddressable_broker(bench: Bench, answers: Answers) -> bytes:
    """Let 1 lead (1, 2, 3) without an address while 2 cannot use its log; return the registration of 1."""
    await bench.start((1, 2, 3), storage_id="s")
    usable = (await bench.znode(paths.broker(1))).data
    await damage(bench, 1)
    await bench.fail_over()
    await answers(2, ErrorCode.KAFKA_STORAGE_ERROR)
    assert await bench.leader_and_isr() == (1, (1, 2, 3)), "no leader epoch begins"
    return usable


async def test_a_member_that_failed_leaves_with_an_unaddressable_leader_that_shuts_down(bench: Bench) -> None:
    await led_by_an_unaddressable_broker(bench, Answers(bench))
    epoch = bench.context.unusable[1].epoch
    left = await bench.ask(ControlledShutdownRequest(1, epoch), ControlledShutdownResponse)
    assert left.remaining == ()
    assert await bench.leader_and_isr() == (3, (3,))


async def test_a_member_that_failed_leaves_when_the_registration_of_its_leader_is_repaired(bench: Bench) -> None:
    usable = await led_by_an_unaddressable_broker(bench, Answers(bench))
    await damage(bench, 1, usable)
    await bench.handle(BrokerModifications(1))
    assert await bench.leader_and_isr() == (1, (1, 3))


async def test_a_member_that_died_has_left_before_a_move_to_the_repaired_leader_goes_on(bench: Bench) -> None:
    await bench.begin_move((1, 2, 3), (1, 3, 4))
    usable = (await bench.znode(paths.broker(1))).data
    await damage(bench, 1)
    await bench.fail_over()
    await bench.kill(2)
    await damage(bench, 1, usable)
    bench.seen.clear()
    await bench.handle(BrokerModifications(1))
    assert (await bench.read_state(TP)).isr == (1, 3)
    assert bench.seen.rounds.index("leave") < bench.seen.rounds.index("A1")


async def test_a_member_that_failed_leaves_with_an_unaddressable_leader_without_its_data(bench: Bench) -> None:
    await led_by_an_unaddressable_broker(bench, Answers(bench))
    await bench.unregister(1)
    await bench.register(1, storage_id="another")
    await bench.handle(BrokerChange())
    assert await bench.leader_and_isr() == (3, (3,))


@pytest.mark.parametrize("path", [paths.storage_id(1), paths.partition_state(TP)])
async def test_a_repaired_broker_without_its_data_counts_as_dead_until_that_is_written(bench: Bench, path: str) -> None:
    await bench.start((1, 2, 3), (1, 2, 3), storage_id="s")
    await bench.unregister(1)
    await bench.register(1, storage_id="another")
    repaired = (await bench.znode(paths.broker(1))).data
    await damage(bench, 1)
    await bench.fail_over()
    bench.seen.zookeeper.tree.allow(path, Access.READ)
    await damage(bench, 1, repaired)
    await bench.handle(BrokerChange())
    assert bench.context.closed.brokers == {1}
    assert registrations.epoch_of(bench.context, 1) is None
    assert (await bench.read_state(TopicPartition("orders", 1))).leader == 2
    bench.seen.zookeeper.tree.allow(path, Access.ALL)
    await bench.handle(BrokerChange())
    assert bench.context.closed.brokers == frozenset()
    assert await bench.leader_and_isr() == (2, (2, 3))
