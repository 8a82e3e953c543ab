"""Leaders of Kafka's that write ISRs to the store themselves: every decision reads them first."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from attrs import evolve
from msgspec.structs import replace

from controller.config import ControllerConfig
from controller.events import AutoPreferredReplicaLeaderElection, BrokerReleaseSeen
from controller.model.facts import LeadershipsWritten
from tests.controller.conftest import ENDPOINT, TP, Bench
from tests.controller.meddler import Meddler
from tests.kit import kafka_registrations
from transport.errors import ErrorCode
from transport.kafka.releases import Protocol, Release
from transport.messages import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    ElectionType,
    ElectLeadersRequest,
    ElectLeadersResponse,
    LeaderOrder,
)
from transport.metadata import Listener, ReplicaAssignment
from transport.store import paths
from transport.store.protocol import ANY_VERSION, Check, Set

OLD, NEW, UNKNOWN = Protocol(2, 7, 1), Protocol(2, 7), None


async def start(bench: Bench, *replicas: int, protocol: Protocol | None = OLD, isr: Sequence[int] = (1,)) -> None:
    """Take office where brokers 1 to 4 of Kafka's are alive, and broker 1 leads a partition with an ISR."""
    bench.context.config = ControllerConfig(ENDPOINT.id, kafka=True)
    for broker_id in (1, 2, 3, 4):
        await kafka_registrations.register(bench.store, broker_id, Listener("PLAINTEXT", "h", broker_id))
    await bench.start(replicas, brokers=())
    await bench.write_state(TP, replace(await bench.read_state(TP), leader=1, isr=tuple(isr)))
    bench.context.apply(LeadershipsWritten([TP], [await bench.read_state(TP)]))
    for broker in list(bench.context.brokers.values()):
        await bench.handle(
            BrokerReleaseSeen(broker.id, broker.epoch, Release(needs_registration=False, protocol=protocol))
        )
    bench.seen.clear()


async def write_isr(bench: Bench, *isr: int) -> None:
    """Let the leader write an ISR, of which the controller has not been notified yet."""
    await bench.write_state(TP, replace(await bench.read_state(TP), isr=isr))


async def attempts_at_replacing_1(bench: Bench) -> int:
    """Kill broker 1; return how many times its replacement was written: twice, unless the state was read before."""
    counter = Meddler(bench.store, paths.partition_state(TP), [Check(paths.TOPICS, ANY_VERSION)], endless=True)
    bench.runner.store = counter
    await bench.kill(1)
    return counter.overtaken


async def shut_down(bench: Bench, broker_id: int) -> ControlledShutdownResponse:
    epoch = bench.context.brokers[broker_id].epoch
    return await bench.ask(ControlledShutdownRequest(broker_id, epoch), ControlledShutdownResponse)


@pytest.mark.parametrize(("protocol", "attempts"), [(OLD, 1), (UNKNOWN, 1), (NEW, 2)])
async def test_a_replica_that_has_just_joined_the_isr_is_elected(
    bench: Bench, protocol: Protocol | None, attempts: int
) -> None:
    await start(bench, 1, 2, protocol=protocol)
    await write_isr(bench, 1, 2)
    assert await attempts_at_replacing_1(bench) == attempts
    assert bench.context.leadership[TP].leader == 2


async def test_one_broker_of_an_old_protocol_suffices(bench: Bench) -> None:
    await start(bench, 1, 2, protocol=NEW)
    await bench.handle(
        BrokerReleaseSeen(4, bench.context.brokers[4].epoch, Release(needs_registration=False, protocol=OLD))
    )
    await write_isr(bench, 1, 2)
    assert await attempts_at_replacing_1(bench) == 1


async def test_a_protocol_that_is_set_here_counts_where_brokers_do_not_say(bench: Bench) -> None:
    await start(bench, 1, 2, protocol=UNKNOWN)
    bench.context.config = evolve(bench.context.config, inter_broker_protocol_version="3.9")
    await write_isr(bench, 1, 2)
    assert await attempts_at_replacing_1(bench) == 2


async def test_a_broker_may_shut_down_once_another_has_joined_the_isr(bench: Bench) -> None:
    await start(bench, 1, 2)
    await write_isr(bench, 1, 2)
    assert (await shut_down(bench, 1)).remaining == ()
    assert await bench.leader_and_isr() == (2, (2,))


async def test_a_preferred_leader_that_has_just_caught_up_is_elected(bench: Bench) -> None:
    await start(bench, 2, 1)
    await write_isr(bench, 1, 2)
    request = ElectLeadersRequest(ElectionType.PREFERRED, (TP,))
    [result] = (await bench.ask(request, ElectLeadersResponse)).partitions
    assert (result.error, bench.context.leadership[TP].leader) == (ErrorCode.NONE, 2)


async def test_a_preferred_leader_that_has_just_caught_up_leads_again(bench: Bench) -> None:
    await start(bench, 2, 1)
    await write_isr(bench, 1, 2)
    await bench.handle(AutoPreferredReplicaLeaderElection(bench.context.epoch))
    assert bench.context.leadership[TP].leader == 2


async def test_an_order_is_judged_by_the_isr_in_the_store(bench: Bench) -> None:
    await start(bench, 1, 2)
    await write_isr(bench, 1, 2)
    request = ElectLeadersRequest(ElectionType.PREFERRED, (), (LeaderOrder(*TP, (2, 1)),))
    [result] = (await bench.ask(request, ElectLeadersResponse)).partitions
    assert (result.error, bench.context.leadership[TP].leader) == (ErrorCode.NONE, 2)


async def test_a_move_whose_target_is_in_the_isr_already_is_finished_at_once(bench: Bench) -> None:
    await start(bench, 1, 2)
    await write_isr(bench, 1, 2)
    assert (await bench.move(TP, (2,))).error is ErrorCode.NONE
    assert await bench.read_assignment(TP) == ReplicaAssignment((2,))
    assert await bench.leader_and_isr() == (2, (2,))


async def test_a_state_that_is_gone_decides_nothing(bench: Bench) -> None:
    await start(bench, 1, 2, isr=(1, 2))
    state = await bench.znode(paths.partition_state(TP))
    await bench.store.multi([Set(paths.partition_state(TP), b"damaged", state.stat.version)])
    await bench.kill(1)
    assert bench.context.leadership[TP].isr == (1, 2)
