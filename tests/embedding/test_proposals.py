"""Leaders that wait with proposals of ISRs are answered in one event, each on its own."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import trio
from msgspec.structs import replace

from controller import events
from controller.handlers import alter_partition
from controller.node.service import ControllerService
from tests.embedding.test_caught_up import moving, with_all
from tests.kit.service import Controllers, until
from transport.errors import ApiError, ErrorCode
from transport.messages import AlterPartitionRequest, AlterPartitionResponse

Outcome = tuple[int, ...] | ErrorCode


async def answered(service: ControllerService, requests: Sequence[AlterPartitionRequest]) -> list[list[Outcome]]:
    """Return the ISRs in the answers to requests that wait together, or the errors."""
    outcomes: dict[int, list[Outcome]] = {}

    async def ask(number: int) -> None:
        try:
            response = await service.answer(requests[number])
            assert isinstance(response, AlterPartitionResponse)
            items = response.partitions
            outcomes[number] = [item.isr if item.error is ErrorCode.NONE else item.error for item in items]
        except ApiError as error:
            outcomes[number] = [error.code]

    service.hold_events()
    async with trio.open_nursery() as nursery:
        for number in range(len(requests)):
            nursery.start_soon(ask, number)
            await until(lambda number=number: service.queue_size() == number + 1)  # type: ignore[misc]
        service.release_events()
    return [outcomes[number] for number in range(len(requests))]


def events_of(service: ControllerService) -> int:
    return service.statistics()["AlterPartition"].count


async def test_each_of_them_has_its_own_answer(controllers: Controllers) -> None:
    service = await moving(controllers)
    stale = replace(with_all(service, 2), broker_epoch=-7)
    refused = with_all(service, 3)
    refused = replace(refused, partitions=(replace(refused.partitions[0], new_isr=(3, 99)),))
    outcomes = await answered(service, [with_all(service, 1), stale, refused])
    assert outcomes == [[(1, 3, 2)], [ErrorCode.STALE_BROKER_EPOCH], [ErrorCode.INELIGIBLE_REPLICA]]
    assert events_of(service) == 1


async def test_a_second_request_about_a_partition_takes_its_turn_afterwards(controllers: Controllers) -> None:
    service = await moving(controllers)
    first, other = with_all(service, 1), with_all(service, 2)
    second = replace(first, partitions=(replace(first.partitions[0], new_isr=(1,)),))
    outcomes = await answered(service, [first, second, other])
    assert outcomes == [[(1, 3, 2)], [ErrorCode.INVALID_UPDATE_VERSION], [(2, 3, 1)]]
    assert events_of(service) == 2


async def test_they_are_not_too_many(controllers: Controllers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "DECIDED_TOGETHER", 2)
    service = await moving(controllers)
    outcomes = await answered(service, [with_all(service, leader) for leader in (1, 2, 3)])
    assert outcomes == [[(1, 3, 2)], [(2, 3, 1)], [(3, 1, 2)]]
    assert events_of(service) == 2


async def test_after_a_fault_of_all_each_is_decided_alone(
    controllers: Controllers, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = await moving(controllers)
    requests = [with_all(service, leader) for leader in (1, 2, 3)]
    with monkeypatch.context() as broken:
        broken.setattr(alter_partition, "_judge", lambda *_: 1 / 0)
        assert await answered(service, requests) == [[ErrorCode.REQUEST_TIMED_OUT]] * 3
    await until(lambda: service.readiness().is_ready and service.is_idle)
    assert [len(outcome) for outcome in await answered(service, requests)] == [1, 1, 1]
    assert events_of(service) == 1 + 3
