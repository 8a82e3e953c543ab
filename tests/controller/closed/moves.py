"""Moves and elections, while a path is closed that the controller writes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from msgspec.structs import replace
from structlog.testing import capture_logs

from controller.events import IsrChangeNotification, PreferredReplicaElection, ZkPartitionReassignment
from controller.handlers.leadership import refresh
from tests.controller import deletions
from tests.controller.closed.brokers import it_leads, sees_brokers
from tests.controller.closed.sweeps import OTHER, Errors, Scenario, obey, one_topic
from tests.controller.conftest import TP, Bench
from transport.errors import ErrorCode
from transport.messages import ElectionType, ElectLeadersRequest, ElectLeadersResponse, LeaderOrder
from transport.metadata import ReplicaAssignment
from transport.store import formats, paths
from transport.store.protocol import Create

PREFERRED: Final = 2
"""The preferred leader where another one leads."""

# --- moves ------------------------------------------------------------------------------------------------------


def moves(target: tuple[int, ...] | None) -> Callable[[Bench], Awaitable[Errors]]:
    """Return what asks for a move, or with None for a cancel."""

    async def move(bench: Bench) -> Errors:
        return [(await bench.move(TP, target)).error]

    return move


def has_target(*target: int) -> Callable[[Bench], Awaitable[bool]]:
    """Return the question whether the partition moves to these replicas, or has them."""

    async def is_so(bench: Bench) -> bool:
        return bench.context.assignment(TP).target_replicas == target

    return is_so


def has_moved_to(*replicas: int) -> Callable[[Bench], Awaitable[bool]]:
    """Return the question whether the partition has these replicas, and others are deleted."""

    async def is_so(bench: Bench) -> bool:
        return bench.context.assignment(TP) == ReplicaAssignment(replicas) and await deletions.strays(bench) == []

    return is_so


async def a_move(bench: Bench) -> None:
    await bench.begin_move((1, 2, 3), (4, 5, 6))


async def a_move_that_has_caught_up(bench: Bench) -> None:
    await a_move(bench)
    await bench.write_state(TP, replace(bench.context.leadership[TP], isr=(1, 2, 3, 4, 5, 6)))
    notice = Create(f"{paths.ISR_CHANGE_NOTIFICATION}/isr_change_1", formats.encode_partitions([TP]))
    await bench.store.multi([notice])


async def sees_isrs(bench: Bench) -> Errors:
    await bench.handle(IsrChangeNotification())
    await obey(bench)
    return ()


async def a_move_with_a_target_that_is_back(bench: Bench) -> None:
    await a_move(bench)
    await bench.kill(4)
    await bench.register(4)


async def znodes_without_a_move(bench: Bench) -> None:
    await one_topic(bench)
    await bench.store.multi([Create(paths.topic_reassignments("orders")), Create(paths.reassignment(TP), b"{")])


async def takes_office(bench: Bench) -> Errors:
    await bench.fail_over()
    return ()


# --- requests of tools ------------------------------------------------------------------------------------------


async def a_request_of_a_tool(bench: Bench) -> None:
    await one_topic(bench)
    await bench.request_moves({TP: (1, 2), OTHER: (7, 8)})


async def sees_requests(bench: Bench) -> Errors:
    await bench.handle(ZkPartitionReassignment())
    await obey(bench)
    return ()


async def the_requests_are_done(bench: Bench) -> bool:
    return bench.context.assignment(TP) == ReplicaAssignment((1, 2)) and await bench.requested_moves() is None


async def a_finished_request(bench: Bench) -> None:
    await bench.start((1, 2, 3), (1, 2, 3))
    await bench.request_moves({TP: (1, 2, 3), OTHER: (4, 5, 6)})


# --- elections --------------------------------------------------------------------------------------------------


async def a_leader_that_is_not_preferred(bench: Bench) -> None:
    await bench.start((PREFERRED, 1))
    await bench.write_state(TP, replace(await bench.read_state(TP), leader=1))
    await bench.run(refresh(bench.context, [TP]))


async def elects(bench: Bench) -> Errors:
    answer = await bench.ask(ElectLeadersRequest(ElectionType.PREFERRED, (TP,)), ElectLeadersResponse)
    return [one.error for one in answer.partitions]


async def the_preferred_leads(bench: Bench) -> bool:
    return bench.context.leadership[TP].leader == PREFERRED


async def an_election_of_a_tool(bench: Bench) -> None:
    await a_leader_that_is_not_preferred(bench)
    await bench.store.multi([Create(paths.PREFERRED_REPLICA_ELECTION, formats.encode_partitions([TP]))])


async def sees_elections(bench: Bench) -> Errors:
    with capture_logs() as logs:
        await bench.handle(PreferredReplicaElection())
    # The log is all that a tool has for an answer.
    failed = any(line["event"] == "preferred leader not elected" for line in logs)
    return [ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE] if failed else ()


async def nothing_is_requested(bench: Bench) -> bool:
    return await bench.read(paths.PREFERRED_REPLICA_ELECTION) is None and await the_preferred_leads(bench)


async def orders_replicas(bench: Bench) -> Errors:
    request = ElectLeadersRequest(ElectionType.PREFERRED, (), (LeaderOrder(*TP, (2, 1, 3)),))
    return [one.error for one in (await bench.ask(request, ElectLeadersResponse)).partitions]


async def they_are_in_order(bench: Bench) -> bool:
    return bench.context.assignment(TP).replicas == (2, 1, 3) and await the_preferred_leads(bench)


SCENARIOS: Final = {
    "a move begins": Scenario(one_topic, moves((4, 5, 6)), has_target(4, 5, 6)),
    "a move gets another target": Scenario(a_move, moves((1, 5)), has_target(1, 5)),
    "a move is cancelled": Scenario(a_move, moves(None), has_moved_to(1, 2, 3)),
    "a move ends": Scenario(a_move_that_has_caught_up, sees_isrs, has_moved_to(4, 5, 6)),
    "a move goes on": Scenario(a_move_with_a_target_that_is_back, sees_brokers, has_target(4, 5, 6)),
    "znodes without a move": Scenario(znodes_without_a_move, takes_office, it_leads),
    "a request of a tool": Scenario(a_request_of_a_tool, sees_requests, the_requests_are_done),
    "a target against that of a tool": Scenario(a_finished_request, moves((4, 5, 6)), has_target(4, 5, 6)),
    "an order against a target of a tool": Scenario(a_finished_request, orders_replicas, they_are_in_order),
    "an election": Scenario(a_leader_that_is_not_preferred, elects, the_preferred_leads),
    "an election of a tool": Scenario(an_election_of_a_tool, sees_elections, nothing_is_requested),
    "an order": Scenario(one_topic, orders_replicas, they_are_in_order),
}
