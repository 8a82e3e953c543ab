"""Between administrators and the controller: settings of topics and brokers that can change at run time."""

from __future__ import annotations

from enum import IntEnum
from typing import ClassVar

from attrs import frozen

from transport.errors import ErrorCode
from transport.messages.common import MAX_LISTED_TOPICS, Request


class ConfigResourceType(IntEnum):
    """What has settings; the numbers are Kafka's."""

    TOPIC = 2
    BROKER = 4


class ConfigOperation(IntEnum):
    """What becomes of one setting (KIP-339); the numbers are Kafka's. The last two are for lists of replicas."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


@frozen
class ConfigResource:
    """A topic, a broker by its id, or with an empty name the default of all brokers."""

    type: ConfigResourceType
    name: str


@frozen
class ConfigEntry:
    """One setting as it is in force, and where its value is from: the source is Kafka's name for that."""

    name: str
    value: str
    source: str


@frozen
class ResourceConfigs:
    """The settings of one resource, or why they cannot be told."""

    resource: ConfigResource
    entries: tuple[ConfigEntry, ...] = ()
    error: ErrorCode = ErrorCode.NONE
    message: str = ""


@frozen
class DescribeConfigsResponse:
    """The settings of each resource."""

    resources: tuple[ResourceConfigs, ...]


@frozen
class DescribeConfigsRequest(Request[DescribeConfigsResponse]):
    """Ask what settings are in force."""

    max_listed: ClassVar[int | None] = MAX_LISTED_TOPICS

    resources: tuple[ConfigResource, ...]


@frozen
class AlterableConfig:
    """What becomes of one setting; `value` is what it is set to, or what is appended or subtracted."""

    name: str
    operation: ConfigOperation
    value: str = ""


@frozen
class AlterConfigsResource:
    """The changes of one resource, made together or not at all."""

    resource: ConfigResource
    configs: tuple[AlterableConfig, ...]


@frozen
class ResourceError:
    """The outcome for one resource."""

    resource: ConfigResource
    error: ErrorCode = ErrorCode.NONE
    message: str = ""


@frozen
class IncrementalAlterConfigsResponse:
    """An outcome for each resource."""

    resources: tuple[ResourceError, ...]


@frozen
class IncrementalAlterConfigsRequest(Request[IncrementalAlterConfigsResponse]):
    """Change settings (KIP-339)."""

    max_listed: ClassVar[int | None] = MAX_LISTED_TOPICS

    resources: tuple[AlterConfigsResource, ...]
