"""Requests to move many partitions: processed part by part, so that others have their turn in between.

A partition's move depends on no other of the request, and each has an outcome of its own.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from msgspec.structs import replace

from controller.events import cut_off
from transport.errors import ApiError
from transport.messages import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    PartitionError,
    Request,
)
from transport.metadata import TopicPartition

REQUESTS_PER_EVENT: Final = 2
"""The most requests to the store that the moves would fill which one event begins, or finishes."""


async def in_parts(
    answer: Callable[[Request[object]], Awaitable[object]], request: AlterPartitionReassignmentsRequest, most: int
) -> AlterPartitionReassignmentsResponse:
    """Answer a request by parts of at most so many partitions. Raises ApiError.

    Once a part has been answered, no error may say that nothing was done.
    """
    wanted = {item.tp: item for item in request.partitions}
    outcomes: dict[TopicPartition, PartitionError] = {}
    # The moves of a topic are written together.
    tps = sorted(wanted) if len(wanted) > most else list(wanted)
    for start in range(0, len(tps) or 1, most):
        part = replace(request, partitions=tuple([wanted[tp] for tp in tps[start : start + most]]))
        try:
            answered = await answer(part)
        except ApiError as error:
            raise (cut_off() if outcomes else error) from error
        assert isinstance(answered, AlterPartitionReassignmentsResponse)
        outcomes |= {outcome.tp: outcome for outcome in answered.partitions}
    return AlterPartitionReassignmentsResponse(tuple([outcomes[tp] for tp in wanted]))
