"""A request to move many partitions is processed part by part, and answered as one."""

from __future__ import annotations

import pytest
from attrs import define, field

from controller.node.many_moves import in_parts
from transport.errors import ApiError, ErrorCode
from transport.messages import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    PartitionError,
    ReassignablePartition,
    Request,
)


@define
class Queue:
    """Answers each part, until an error comes."""

    error_at: int | None = None
    parts: list[list[tuple[str, int]]] = field(factory=list)

    async def answer(self, request: Request[object]) -> object:
        assert isinstance(request, AlterPartitionReassignmentsRequest)
        if len(self.parts) == self.error_at:
            raise ApiError(ErrorCode.NOT_CONTROLLER, "another controller is in office")
        self.parts.append([item.tp for item in request.partitions])
        return AlterPartitionReassignmentsResponse(tuple(PartitionError(*item.tp) for item in request.partitions))


def moves(*of: tuple[str, int]) -> AlterPartitionReassignmentsRequest:
    return AlterPartitionReassignmentsRequest(tuple(ReassignablePartition(*tp, (1, 2)) for tp in of))


INTERLEAVED = [(name, number) for number in range(3) for name in ("a", "b")]


async def test_parts_keep_topics_together_and_the_answer_has_the_order_of_the_request() -> None:
    queue = Queue()
    answer = await in_parts(queue.answer, moves(*INTERLEAVED), 4)
    assert queue.parts == [[("a", 0), ("a", 1), ("a", 2), ("b", 0)], [("b", 1), ("b", 2)]]
    assert [item.tp for item in answer.partitions] == INTERLEAVED


async def test_a_small_request_is_one_part() -> None:
    for request in (moves(), moves(*INTERLEAVED)):
        queue = Queue()
        answer = await in_parts(queue.answer, request, 6)
        assert queue.parts == [[item.tp for item in answer.partitions]] == [[item.tp for item in request.partitions]]


@pytest.mark.parametrize(
    ("error_at", "code"), [(0, ErrorCode.NOT_CONTROLLER), (1, ErrorCode.REQUEST_TIMED_OUT)], ids=["first", "later"]
)
async def test_no_error_says_that_nothing_was_done_after_some_was(error_at: int, code: ErrorCode) -> None:
    with pytest.raises(ApiError) as error:
        await in_parts(Queue(error_at).answer, moves(*INTERLEAVED), 4)
    assert error.value.code is code
