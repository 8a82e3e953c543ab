"""Messages between administrators and the controller: creating, extending and deleting topics."""

from __future__ import annotations

from typing import ClassVar

from transport.errors import ErrorCode
from transport.messages.common import MAX_LISTED_TOPICS, Message, Request


class NewTopic(Message, frozen=True):
    """A topic to create, with `partitions` and `replication_factor`, or else with `assignments`, replicas by partition.

    `configs` are the topic's own settings, as (name, value).
    """

    name: str
    partitions: int
    replication_factor: int
    assignments: tuple[tuple[int, ...], ...] = ()
    configs: tuple[tuple[str, str], ...] = ()


class TopicError(Message, frozen=True):
    """The outcome for one topic."""

    name: str
    error: ErrorCode = ErrorCode.NONE
    message: str = ""


class CreateTopicsResponse(Message, frozen=True):
    """An outcome for each topic."""

    topics: tuple[TopicError, ...]


class CreateTopicsRequest(Request[CreateTopicsResponse], frozen=True):
    """Create topics or, with `validate_only` (since version 2), only check whether this is possible (KIP-4)."""

    max_listed: ClassVar[int | None] = MAX_LISTED_TOPICS

    topics: tuple[NewTopic, ...]
    validate_only: bool = False


class NewPartitions(Message, frozen=True):
    """The new number of partitions of a topic, and the replicas of the added ones unless the controller places them."""

    name: str
    count: int
    assignments: tuple[tuple[int, ...], ...] = ()


class CreatePartitionsResponse(Message, frozen=True):
    """An outcome for each topic."""

    topics: tuple[TopicError, ...]


class CreatePartitionsRequest(Request[CreatePartitionsResponse], frozen=True):
    """Add partitions or, with `validate_only` (since version 1), only check whether this is possible (KIP-195)."""

    max_listed: ClassVar[int | None] = MAX_LISTED_TOPICS

    topics: tuple[NewPartitions, ...]
    validate_only: bool = False


class DeleteTopicsResponse(Message, frozen=True):
    """An outcome for each topic. NONE means that its deletion is durable and has begun, not that it is complete."""

    topics: tuple[TopicError, ...]


class DeleteTopicsRequest(Request[DeleteTopicsResponse], frozen=True):
    """Delete topics."""

    max_listed: ClassVar[int | None] = MAX_LISTED_TOPICS

    names: tuple[str, ...]
