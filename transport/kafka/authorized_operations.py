"""The operations that a client may perform, as answers carry them: a bit for each, by Kafka's numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from transport.acls import Operation, Resource, ResourceType

_BITS: Final = {
    Operation.READ: 3,
    Operation.WRITE: 4,
    Operation.CREATE: 5,
    Operation.DELETE: 6,
    Operation.ALTER: 7,
    Operation.DESCRIBE: 8,
    Operation.CLUSTER_ACTION: 9,
    Operation.DESCRIBE_CONFIGS: 10,
    Operation.ALTER_CONFIGS: 11,
    Operation.IDEMPOTENT_WRITE: 12,
}
_OF_BOTH: Final = (
    Operation.CREATE,
    Operation.ALTER,
    Operation.DESCRIBE,
    Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS,
)
_OF: Final = {
    ResourceType.CLUSTER: (*_OF_BOTH, Operation.CLUSTER_ACTION, Operation.IDEMPOTENT_WRITE),
    ResourceType.TOPIC: (*_OF_BOTH, Operation.READ, Operation.WRITE, Operation.DELETE),
}
"""The operations that there are on each type of resource."""

NOT_ASKED: Final = -(2**31)
"""The value of a client that has not asked for operations."""


def authorized_operations(resource: Resource, may: Callable[[Operation, Resource], bool]) -> int:
    """Return the operations on a resource that `may` allows."""
    return sum(1 << _BITS[operation] for operation in _OF[resource.type] if may(operation, resource))
