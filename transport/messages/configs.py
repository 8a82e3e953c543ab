"""Messages between administrators and the controller: settings of topics and brokers that change at run time."""

from __future__ import annotations

from enum import IntEnum
from typing import ClassVar

from transport.errors import ErrorCode
from transport.messages.common import MAX_LISTED_TOPICS, Message, Request


class ConfigResourceType(IntEnum):
    """The kinds of resources with settings; the numbers are Kafka's."""

    TOPIC = 2
    BROKER = 4


class ConfigOperation(IntEnum):
    """An operation on one setting (KIP-339); the numbers are Kafka's. The last two apply to lists of replicas."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ConfigResource(Message, frozen=True):
    """A topic, a broker by its id or, if the name is empty, the default of all brokers."""

    type: ConfigResourceType
    name: str


class ConfigEntry(Message, frozen=True):
    """The value in effect of one setting, and its source under Kafka's name."""

    name: str
    value: str
    source: str


class ResourceConfigs(Message, frozen=True):
    """The settings of one resource, or the reason why they cannot be described."""

    resource: ConfigResource
    entries: tuple[ConfigEntry, ...] = ()
    error: ErrorCode = ErrorCode.NONE
    message: str = ""


class DescribeConfigsResponse(Message, frozen=True):
    """The settings of each resource."""

    resources: tuple[ResourceConfigs, ...]


class DescribeConfigsRequest(Request[DescribeConfigsResponse], frozen=True):
    """Ask for the settings in effect."""

    max_listed: ClassVar[int | None] = MAX_LISTED_TOPICS

    resources: tuple[ConfigResource, ...]


class AlterableConfig(Message, frozen=True):
    """A change of one setting. `value` is the new value, or the part to append or subtract."""

    name: str
    operation: ConfigOperation
    value: str = ""


class AlterConfigsResource(Message, frozen=True):
    """The changes of one resource, all of which are made, or none."""

    resource: ConfigResource
    configs: tuple[AlterableConfig, ...]


class ResourceError(Message, frozen=True):
    """The outcome for one resource."""

    resource: ConfigResource
    error: ErrorCode = ErrorCode.NONE
    message: str = ""


class IncrementalAlterConfigsResponse(Message, frozen=True):
    """An outcome for each resource."""

    resources: tuple[ResourceError, ...]


class IncrementalAlterConfigsRequest(Request[IncrementalAlterConfigsResponse], frozen=True):
    """Change settings (KIP-339), or only check whether they could be changed, since version 1."""

    max_listed: ClassVar[int | None] = MAX_LISTED_TOPICS

    resources: tuple[AlterConfigsResource, ...]
    validate_only: bool = False

    @property
    def least_version(self) -> int:
        """The version since which a controller does not change what is only to be checked."""
        return int(self.validate_only)
