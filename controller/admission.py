"""Who may ask the controller what, and how long a request may wait for its turn."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from math import inf
from typing import Any, Final

from transport.errors import ApiError, ErrorCode
from transport.messages import (
    AlterPartitionReassignmentsRequest,
    DescribeReassignmentsRequest,
    ElectLeadersRequest,
    ListPartitionReassignmentsRequest,
    ListReassignmentsRequest,
    Request,
)
from transport.wire import Admit, Caller


class Operation(Enum):
    """What somebody wants to do with the cluster, in the terms of Kafka's ACLs."""

    DESCRIBE = "describe"
    ALTER = "alter"


Authorizer = Callable[[Caller, Operation], bool]
"""Whether a caller may do something with the cluster. It must neither block nor raise."""

_NEEDED: Final[dict[type[Request[Any]], Operation]] = {
    AlterPartitionReassignmentsRequest: Operation.ALTER,
    DescribeReassignmentsRequest: Operation.DESCRIBE,
    ElectLeadersRequest: Operation.ALTER,
    ListPartitionReassignmentsRequest: Operation.DESCRIBE,
    ListReassignmentsRequest: Operation.DESCRIBE,
}
"""As in Kafka; other requests need nothing."""


def allow_all(caller: Caller, operation: Operation) -> bool:  # noqa: ARG001  the shape of an Authorizer
    """Let everyone do everything."""
    return True


def admitting(authorizer: Authorizer) -> Admit:
    """Return what lets those requests in that their callers may make."""

    def admit(caller: Caller, request: type[Request[Any]]) -> None:
        needed = _NEEDED.get(request)
        if needed is not None and not authorizer(caller, needed):
            text = f"client {caller.client_id!r} needs permission to {needed.value} the cluster: ask who runs it"
            raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, text)

    return admit


def patience(request: Request[Any]) -> float:
    """Return for how many seconds a request may wait, its processing included."""
    match request:
        case DescribeReassignmentsRequest(timeout_ms=ms) | ListReassignmentsRequest(timeout_ms=ms):
            return ms / 1000
        case _:
            return inf


def too_late() -> ApiError:
    """Return the answer to a request that waited for longer than its client does."""
    return ApiError(ErrorCode.REQUEST_TIMED_OUT, "the controller was busy for longer than the request's timeout")
