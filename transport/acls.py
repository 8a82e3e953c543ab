"""Kafka's access control lists: what they are about, and their entries."""

from __future__ import annotations

from enum import Enum
from typing import Final

from attrs import frozen

from transport.security.principal import USER, Principal

ANY: Final = "*"
"""Every host, and as the name of a resource every resource of its type."""

ANY_USER: Final = Principal(USER, "*")


class Operation(Enum):
    """An operation on a resource, named as in Kafka's ACLs."""

    ALL = "All"
    ALTER = "Alter"
    ALTER_CONFIGS = "AlterConfigs"
    CLUSTER_ACTION = "ClusterAction"
    CREATE = "Create"
    CREATE_TOKENS = "CreateTokens"
    DELETE = "Delete"
    DESCRIBE = "Describe"
    DESCRIBE_CONFIGS = "DescribeConfigs"
    DESCRIBE_TOKENS = "DescribeTokens"
    IDEMPOTENT_WRITE = "IdempotentWrite"
    READ = "Read"
    WRITE = "Write"


class ResourceType(Enum):
    """The kinds of resources that a controller is asked about, named as in Kafka's ACLs."""

    CLUSTER = "Cluster"
    TOPIC = "Topic"


@frozen
class Resource:
    """The resource of an operation: the cluster, or a topic by its name."""

    type: ResourceType
    name: str

    def __str__(self) -> str:
        return "the cluster" if self.type is ResourceType.CLUSTER else f"topic {self.name}"


CLUSTER: Final = Resource(ResourceType.CLUSTER, "kafka-cluster")
"""The cluster, named as in Kafka's ACLs."""


def needs(operation: Operation, topic: str | None = None) -> str:
    """Return the text of a denial: the operation that is missing, on a topic or on the cluster."""
    resource = CLUSTER if topic is None else Resource(ResourceType.TOPIC, topic)
    return f"our principal needs {operation.value} on {resource}"


class PatternType(Enum):
    """Whether an ACL is about the resource of a name, or about all whose names begin so."""

    LITERAL = "LITERAL"
    PREFIXED = "PREFIXED"


@frozen
class Pattern:
    """The resource that an ACL is about. The literal name `*` means every resource of the type."""

    type: PatternType
    resource: Resource


@frozen
class AclEntry:
    """A principal's permission for an operation from a host, or the denial of it.

    The operation is None if its name is unknown here: no request of ours is that operation.
    """

    principal: Principal
    is_allowed: bool
    host: str
    operation: Operation | None
