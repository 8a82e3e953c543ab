"""Brokers, ISRs and strays, while a path is closed that the controller writes."""

from __future__ import annotations

from typing import Final

from controller.events import BrokerChange, LogDirEventNotification, StrayDeletion
from controller.model.context import ControllerContext
from tests.controller import deletions
from tests.controller.closed.sweeps import Errors, Scenario, deleted_on, is_led, one_topic
from tests.controller.conftest import ENDPOINT, TP, Bench
from tests.controller.deletions import replica
from transport.errors import ErrorCode
from transport.messages import (
    AlterPartitionItem,
    AlterPartitionRequest,
    AlterPartitionResponse,
    ControlledShutdownRequest,
    ControlledShutdownResponse,
)
from transport.metadata import ReplicaAssignment
from transport.store import formats, paths
from transport.store.protocol import FORBIDDEN, Create, Set

EMPTY: Final = 2
"""A broker that lost its data."""

# --- ISRs -------------------------------------------------------------------------------------------------------


async def proposes_an_isr(bench: Bench) -> Errors:
    now = bench.context.leadership[TP]
    item = AlterPartitionItem("orders", "id-of-orders", 0, now.leader_epoch, (1, 2), now.partition_epoch)
    request = AlterPartitionRequest(1, bench.context.brokers[1].epoch, (item,))
    return [one.error for one in (await bench.ask(request, AlterPartitionResponse)).partitions]


async def the_isr_is_smaller(bench: Bench) -> bool:
    return bench.context.leadership[TP].isr == (1, 2)


# --- brokers that come and go -----------------------------------------------------------------------------------


async def sees_brokers(bench: Bench) -> Errors:
    await bench.handle(BrokerChange())
    return ()


async def a_dead_leader(bench: Bench) -> None:
    await one_topic(bench)
    await bench.unregister(1)


async def another_leads(bench: Bench) -> bool:
    return is_led(bench, TP) and 1 not in bench.context.leadership[TP].isr


async def a_leader_that_is_back(bench: Bench) -> None:
    await bench.start((1,))
    await bench.kill(1)
    await bench.register(1)


async def it_leads(bench: Bench) -> bool:
    return is_led(bench, TP)


async def an_empty_broker(bench: Bench) -> None:
    await bench.start((1, 2, 3), storage_id="s")
    await bench.unregister(EMPTY)
    await bench.register(EMPTY, storage_id="another")


async def the_empty_broker_follows_anew(bench: Bench) -> bool:
    return EMPTY in bench.context.brokers and EMPTY not in (await bench.read_state(TP)).isr


async def no_empty_broker_is_in_an_isr(bench: Bench) -> None:
    admitted = bench.context.brokers.get(EMPTY)
    if admitted is not None and admitted.storage_id == "another":
        # A state that cannot be read is known from before.
        is_hidden = await bench.read(paths.partition_state(TP)) == FORBIDDEN
        state = bench.context.leadership[TP] if is_hidden else await bench.read_state(TP)
        assert EMPTY not in state.isr


async def shuts_down(bench: Bench) -> Errors:
    request = ControlledShutdownRequest(1, bench.context.brokers[1].epoch)
    remaining = (await bench.ask(request, ControlledShutdownResponse)).remaining
    return [ErrorCode.UNKNOWN_SERVER_ERROR for _ in remaining]


async def no_move_is_needed(bench: Bench) -> bool:
    return (await bench.read_state(TP)).leader != 1


async def a_log_dir_notice(bench: Bench) -> None:
    await one_topic(bench)
    notice = Create(f"{paths.LOG_DIR_EVENT_NOTIFICATION}/log_dir_event_1", formats.encode_log_dir_event(1))
    await bench.store.multi([notice])


async def sees_log_dirs(bench: Bench) -> Errors:
    await bench.handle(LogDirEventNotification())
    return ()


async def no_notice_is_left(bench: Bench) -> bool:
    return await bench.store.children([paths.LOG_DIR_EVENT_NOTIFICATION]) == [[]]


# --- strays -----------------------------------------------------------------------------------------------------


async def a_stray(bench: Bench) -> None:
    await one_topic(bench)
    await bench.move(TP, (1, 2))
    assert list(bench.context.strays) == [replica(3)]


async def its_broker_deletes_it(bench: Bench) -> Errors:
    await deletions.deleted(bench, replica(3))
    return ()


async def no_stray_is_recorded(bench: Bench) -> bool:
    return await deletions.strays(bench) == []


async def a_stray_that_is_assigned(bench: Bench) -> None:
    await a_stray(bench)
    await bench.change_topic("orders", 0, ReplicaAssignment((1, 2, 3)))
    # Only a new controller takes an assignment of others for its own.
    await bench.store.multi([Set(paths.CONTROLLER_EPOCH, b"2", -1)])
    bench.context = bench.runner.context = ControllerContext(ENDPOINT, 2, 2)


async def takes_office_and_looks(bench: Bench) -> Errors:
    await bench.fail_over()
    await bench.handle(StrayDeletion())
    return ()


async def no_assigned_replica_is_deleted(bench: Bench) -> None:
    assert deleted_on(bench) == set()


SCENARIOS: Final = {
    "an ISR": Scenario(one_topic, proposes_an_isr, the_isr_is_smaller),
    "a leader dies": Scenario(a_dead_leader, sees_brokers, another_leads),
    "a leader comes back": Scenario(a_leader_that_is_back, sees_brokers, it_leads),
    "a broker lost its data": Scenario(
        an_empty_broker, sees_brokers, the_empty_broker_follows_anew, no_empty_broker_is_in_an_isr
    ),
    "a broker shuts down": Scenario(one_topic, shuts_down, no_move_is_needed),
    "a log directory fails": Scenario(a_log_dir_notice, sees_log_dirs, no_notice_is_left),
    "a stray is deleted": Scenario(a_stray, its_broker_deletes_it, no_stray_is_recorded),
    "a stray is assigned": Scenario(
        a_stray_that_is_assigned, takes_office_and_looks, no_stray_is_recorded, no_assigned_replica_is_deleted
    ),
}
