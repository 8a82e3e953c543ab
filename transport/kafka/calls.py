"""Calls to nodes of Kafka's in our terms: the request in each version, and how its answer is read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

from attrs import frozen

from transport.errors import ApiError, ErrorCode
from transport.kafka.client import KafkaConnection
from transport.kafka.schema import Message

R = TypeVar("R")


@frozen
class Call(Generic[R]):
    """A request, and its answer.

    `write` returns the request in a version. `read` returns what the response of that kind says, and raises ApiError
    for an error of the whole request.
    """

    request: type[Message]
    response: type[Message]
    write: Callable[[int], Message]
    read: Callable[[Any], R]

    @classmethod
    def of(cls, request: Message, response: type[Message], read: Callable[[Any], R]) -> Call[R]:
        """Return a call whose request has the same fields in all versions."""
        return cls(type(request), response, lambda _: request, read)


async def ask(connection: KafkaConnection, call: Call[R], timeout: float) -> R:  # noqa: ASYNC109  of the request
    """Make a call in the highest version that both ends have. Raises as `KafkaConnection.send`, and ApiError."""
    version = connection.version_of(call.request)
    return call.read(await connection.send(call.write(version), call.response, version, timeout=timeout))


_DENIED: Final = frozenset({ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ErrorCode.TOPIC_AUTHORIZATION_FAILED})


def fault_of(code: int, message: str | None, denial: str = "") -> tuple[ErrorCode, str]:
    """Return an error of Kafka's with its text; one that has no name here keeps its number in the text.

    A denied request has the text of `denial` instead: what brokers write there may be the dump of a Java object.
    """
    error = ErrorCode(code)
    if error in _DENIED:
        return error, denial
    if error is ErrorCode.UNKNOWN_SERVER_ERROR and code != error:
        return error, message or f"Kafka's error {code}"
    return error, message or ""


def require_success(code: int, message: str | None = None, denial: str = "") -> None:
    """Raise ApiError for an error of a whole request; see `fault_of` for `denial`."""
    error, text = fault_of(code, message, denial)
    if error is not ErrorCode.NONE:
        raise ApiError(error, text)
