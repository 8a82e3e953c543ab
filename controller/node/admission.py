"""Authorization of requests, and the time that each may wait for its turn."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf
from typing import Any, Final

from attrs import frozen
from msgspec.structs import replace

from transport import messages
from transport.acls import CLUSTER, Operation, Resource, ResourceType
from transport.errors import ApiError, ErrorCode
from transport.messages.features import UpdateFeaturesRequest
from transport.messages.users import AlterScramUsersRequest
from transport.security.principal import ANONYMOUS
from transport.wire import Admit, Caller, Handler

MAX_WAIT_MS: Final = 2**31 - 1
"""The longest waiting time that a request may ask for, in milliseconds: an int32, as in Kafka's messages."""


Authorizer = Callable[[Caller, Operation, Resource], bool]
"""Returns whether a caller may perform an operation on a resource. It must neither block nor raise."""


def topic(name: str) -> Resource:
    """Return the resource of a topic, which need not exist."""
    return Resource(ResourceType.TOPIC, name)


def allow_all(caller: Caller, operation: Operation, resource: Resource) -> bool:  # noqa: ARG001  an Authorizer's shape
    """Allow every operation to every caller."""
    return True


# --- permissions of requests ------------------------------------------------------------------------------------

_CODES: Final = {
    ResourceType.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
}


@frozen
class _Asker:
    """The caller of a request, and the authorizer that decides on it."""

    caller: Caller
    authorizer: Authorizer

    def may(self, operation: Operation, resource: Resource) -> bool:
        """Return whether the caller may perform the operation on the resource."""
        return self.authorizer(self.caller, operation, resource)

    def refusal(self, operation: Operation, resource: Resource) -> tuple[ErrorCode, str]:
        """Return the error code and the message of a refusal."""
        is_known = self.caller.principal != ANONYMOUS
        client = str(self.caller.principal) if is_known else f"client {self.caller.client_id!r}"
        return _CODES[resource.type], f"{client} needs {operation.value} on {resource}: ask who runs the cluster"


@frozen
class OnCluster:
    """The rule for a request that is one operation on the cluster; a refused request is rejected as a whole."""

    operation: Operation

    def guard(self, asker: _Asker, handler: Handler) -> Handler:
        """Return the handler. Raises ApiError if the caller may not make the request."""
        if not asker.may(self.operation, CLUSTER):
            raise ApiError(*asker.refusal(self.operation, CLUSTER))
        return handler


@frozen
class OnEach:
    """The rule for a request whose items each have a resource: refused items get an error, the others are handled.

    `items` and `outcomes` name fields of the request and of the response; `outcome` makes an outcome from an item, an
    error code and a message. If `is_implied`, permission on the cluster implies permission on every topic.
    """

    operation: Operation
    items: str
    resource: Callable[[Any], Resource]
    outcomes: str
    outcome: Callable[[Any, ErrorCode, str], object]
    is_implied: bool = False

    def guard(self, asker: _Asker, handler: Handler) -> Handler:
        """Return a handler that excludes the items for which the caller has no permission."""
        if self.is_implied and asker.may(self.operation, CLUSTER):
            return handler

        async def answer(request: Any) -> object:  # noqa: ANN401  any request that has such items
            judged = [(item, self.resource(item)) for item in getattr(request, self.items)]
            refused = [(item, resource) for item, resource in judged if not asker.may(self.operation, resource)]
            if not refused:
                return await handler(request)
            denied = {resource for _, resource in refused}
            allowed = tuple(item for item, resource in judged if resource not in denied)
            response: Any = await handler(replace(request, **{self.items: allowed}))
            told = [self.outcome(item, *asker.refusal(self.operation, resource)) for item, resource in refused]
            return replace(response, **{self.outcomes: (*getattr(response, self.outcomes), *told)})

        return answer


@frozen
class OnMetadata:
    """The rule for Metadata: topics need DESCRIBE, brokers and the controller need no permission.

    The answer to a request for all topics excludes those that the caller may not describe.
    """

    operation: Operation = Operation.DESCRIBE

    def guard(self, asker: _Asker, handler: Handler) -> Handler:
        """Return a handler that reveals nothing about topics that the caller may not describe."""
        named = _DESCRIBED.guard(asker, handler)

        async def answer(request: messages.MetadataRequest) -> object:
            if request.topics is not None:
                return await named(request)
            response = await handler(request)
            assert isinstance(response, messages.MetadataResponse)
            names = dict.fromkeys(state.topic for state in response.partitions)
            visible = {name for name in names if asker.may(self.operation, topic(name))}
            return replace(response, partitions=tuple(s for s in response.partitions if s.topic in visible))

        return answer


def _of_config(resource: messages.ConfigResource) -> Resource:
    return topic(resource.name) if resource.type is messages.ConfigResourceType.TOPIC else CLUSTER


def _of_named(item: messages.NewTopic | messages.NewPartitions) -> Resource:
    return topic(item.name)


def _refused_named(
    item: messages.NewTopic | messages.NewPartitions, code: ErrorCode, message: str
) -> messages.TopicError:
    return messages.TopicError(item.name, code, message)


_DESCRIBED: Final = OnEach(Operation.DESCRIBE, "topics", topic, "refused", messages.TopicError)

NEEDED: Final[Mapping[type[messages.Request[Any]], OnCluster | OnEach | OnMetadata]] = {
    messages.AllocateProducerIdsRequest: OnCluster(Operation.CLUSTER_ACTION),
    messages.AlterPartitionReassignmentsRequest: OnCluster(Operation.ALTER),
    messages.AlterPartitionRequest: OnCluster(Operation.CLUSTER_ACTION),
    messages.ChangeRolloutRequest: OnCluster(Operation.ALTER),
    messages.CommitTraceRequest: OnCluster(Operation.DESCRIBE),
    messages.ControlledShutdownRequest: OnCluster(Operation.CLUSTER_ACTION),
    messages.CreatePartitionsRequest: OnEach(Operation.ALTER, "topics", _of_named, "topics", _refused_named),
    messages.CreateTopicsRequest: OnEach(
        Operation.CREATE, "topics", _of_named, "topics", _refused_named, is_implied=True
    ),
    messages.DeleteTopicsRequest: OnEach(Operation.DELETE, "names", topic, "topics", messages.TopicError),
    messages.DescribeClusterRequest: OnCluster(Operation.DESCRIBE),
    messages.DescribeConfigsRequest: OnEach(
        Operation.DESCRIBE_CONFIGS,
        "resources",
        _of_config,
        "resources",
        lambda item, code, message: messages.ResourceConfigs(item, (), code, message),
    ),
    messages.DescribeReassignmentsRequest: OnCluster(Operation.DESCRIBE),
    messages.DescribeRolloutMovesRequest: OnCluster(Operation.DESCRIBE),
    messages.DescribeRolloutsRequest: OnCluster(Operation.DESCRIBE),
    messages.ElectLeadersRequest: OnCluster(Operation.ALTER),
    messages.IncrementalAlterConfigsRequest: OnEach(
        Operation.ALTER_CONFIGS,
        "resources",
        lambda item: _of_config(item.resource),
        "resources",
        lambda item, code, message: messages.ResourceError(item.resource, code, message),
    ),
    messages.ListPartitionReassignmentsRequest: OnCluster(Operation.DESCRIBE),
    messages.ListReassignmentsRequest: OnCluster(Operation.DESCRIBE),
    messages.MetadataRequest: OnMetadata(),
    messages.StartRolloutRequest: OnCluster(Operation.ALTER),
    messages.UploadRolloutRequest: OnCluster(Operation.ALTER),
}
"""The permission that each request needs, the same as in Kafka for requests that exist there.

ApiVersions needs none: without the versions that it returns, not even a refusal could be encoded for the client.
"""


NEEDED_BY_KAFKAS: Final[Mapping[type[messages.Request[Any]], OnCluster]] = {
    AlterScramUsersRequest: OnCluster(Operation.ALTER),
    UpdateFeaturesRequest: OnCluster(Operation.ALTER),
}
"""The permission that each request needs which only Kafka's clients have."""


def admitting(authorizer: Authorizer) -> Admit:
    """Return the admission check that lets an authorizer refuse requests or parts of them."""

    def admit(caller: Caller, request: type[messages.Request[Any]], handler: Handler) -> Handler:
        if request is messages.ApiVersionsRequest:
            return handler
        needed = NEEDED_BY_KAFKAS.get(request) or NEEDED[request]
        return needed.guard(_Asker(caller, authorizer), handler)

    return admit


# --- waiting times ----------------------------------------------------------------------------------------------

OF_BROKERS: Final = (
    messages.AllocateProducerIdsRequest,
    messages.AlterPartitionRequest,
    messages.ControlledShutdownRequest,
)
"""The requests of brokers, which precede those of administrators because clients wait for their outcome."""


def patience(request: messages.Request[Any]) -> float:
    """Return the time that a request may take, from its arrival to its answer, in seconds.

    Raises ApiError(INVALID_REQUEST) for a time out of range.
    """
    match request:
        case messages.DescribeReassignmentsRequest(timeout_ms=ms) | messages.ListReassignmentsRequest(timeout_ms=ms):
            return seconds_of("timeout_ms", ms)
        case _:
            return inf


def seconds_of(name: str, ms: int) -> float:
    """Convert a waiting time to seconds. Raises ApiError(INVALID_REQUEST) if it is negative, or over 24 days."""
    if not 0 <= ms <= MAX_WAIT_MS:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"{name} must be from 0 to {MAX_WAIT_MS}, is {ms}")
    return ms / 1000


def too_late() -> ApiError:
    """Return the answer to a request that exceeded its client's timeout."""
    return ApiError(ErrorCode.REQUEST_TIMED_OUT, "the controller was busy for longer than the request's timeout")
