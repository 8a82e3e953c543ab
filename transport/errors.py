"""Error codes with Kafka's numbers, and the exceptions that carry them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Final


class ErrorCode(IntEnum):
    """The reason why a request, or one item of it, failed. The numbers are those of Kafka's protocol."""

    UNKNOWN_SERVER_ERROR = -1
    NONE = 0
    OFFSET_OUT_OF_RANGE = 1
    CORRUPT_MESSAGE = 2
    UNKNOWN_TOPIC_OR_PARTITION = 3
    LEADER_NOT_AVAILABLE = 5
    NOT_LEADER_OR_FOLLOWER = 6
    REQUEST_TIMED_OUT = 7
    BROKER_NOT_AVAILABLE = 8
    REPLICA_NOT_AVAILABLE = 9
    STALE_CONTROLLER_EPOCH = 11
    INVALID_TOPIC_EXCEPTION = 17
    NOT_ENOUGH_REPLICAS = 19
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20
    TOPIC_AUTHORIZATION_FAILED = 29
    CLUSTER_AUTHORIZATION_FAILED = 31
    UNSUPPORTED_SASL_MECHANISM = 33
    ILLEGAL_SASL_STATE = 34
    UNSUPPORTED_VERSION = 35
    TOPIC_ALREADY_EXISTS = 36
    INVALID_PARTITIONS = 37
    INVALID_REPLICATION_FACTOR = 38
    INVALID_REPLICA_ASSIGNMENT = 39
    INVALID_CONFIG = 40
    NOT_CONTROLLER = 41
    INVALID_REQUEST = 42
    OPERATION_NOT_ATTEMPTED = 55
    KAFKA_STORAGE_ERROR = 56
    LOG_DIR_NOT_FOUND = 57
    SASL_AUTHENTICATION_FAILED = 58
    REASSIGNMENT_IN_PROGRESS = 60
    LISTENER_NOT_FOUND = 72
    TOPIC_DELETION_DISABLED = 73
    FENCED_LEADER_EPOCH = 74
    UNKNOWN_LEADER_EPOCH = 75
    STALE_BROKER_EPOCH = 77
    PREFERRED_LEADER_NOT_AVAILABLE = 80
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83
    ELECTION_NOT_NEEDED = 84
    NO_REASSIGNMENT_IN_PROGRESS = 85
    THROTTLING_QUOTA_EXCEEDED = 89
    RESOURCE_NOT_FOUND = 91
    DUPLICATE_RESOURCE = 92
    UNACCEPTABLE_CREDENTIAL = 93
    INVALID_UPDATE_VERSION = 95
    UNKNOWN_TOPIC_ID = 100
    BROKER_ID_NOT_REGISTERED = 102
    INCONSISTENT_TOPIC_ID = 103
    INELIGIBLE_REPLICA = 107
    MISMATCHED_ENDPOINT_TYPE = 114
    UNSUPPORTED_ENDPOINT_TYPE = 115

    @classmethod
    def _missing_(cls, value: object) -> ErrorCode | None:
        """Take a code that only a newer peer knows for an unknown error."""
        return cls.UNKNOWN_SERVER_ERROR if type(value) is int else None


_WORDS: Final[Mapping[ErrorCode, str]] = MappingProxyType(
    {
        ErrorCode.UNKNOWN_SERVER_ERROR: "it failed for a reason that only its log has",
        ErrorCode.NONE: "no error",
        ErrorCode.OFFSET_OUT_OF_RANGE: "there is no such offset",
        ErrorCode.CORRUPT_MESSAGE: "the records are damaged",
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "there is no such topic or partition",
        ErrorCode.LEADER_NOT_AVAILABLE: "there is no leader now",
        ErrorCode.NOT_LEADER_OR_FOLLOWER: "the broker does not have this replica, or does not lead it",
        ErrorCode.REQUEST_TIMED_OUT: "it took too long",
        ErrorCode.BROKER_NOT_AVAILABLE: "the broker is not alive",
        ErrorCode.REPLICA_NOT_AVAILABLE: "the broker does not have this replica",
        ErrorCode.STALE_CONTROLLER_EPOCH: "another controller is in office",
        ErrorCode.INVALID_TOPIC_EXCEPTION: "a topic cannot have this name, or not now",
        ErrorCode.NOT_ENOUGH_REPLICAS: "too few replicas are in sync",
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: "too few replicas are in sync, the records may be written",
        ErrorCode.TOPIC_AUTHORIZATION_FAILED: "not permitted for this topic",
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "not permitted for this cluster",
        ErrorCode.UNSUPPORTED_SASL_MECHANISM: "the server does not have this mechanism of SASL",
        ErrorCode.ILLEGAL_SASL_STATE: "the client has to log in first",
        ErrorCode.UNSUPPORTED_VERSION: "the server does not have this version of the request",
        ErrorCode.TOPIC_ALREADY_EXISTS: "there is such a topic already",
        ErrorCode.INVALID_PARTITIONS: "the number of partitions is not valid",
        ErrorCode.INVALID_REPLICATION_FACTOR: "the replication factor is not valid, or too few brokers are alive",
        ErrorCode.INVALID_REPLICA_ASSIGNMENT: "the replicas are not valid",
        ErrorCode.INVALID_CONFIG: "a setting is not valid",
        ErrorCode.NOT_CONTROLLER: "the node is not the controller any more",
        ErrorCode.INVALID_REQUEST: "the request is not valid",
        ErrorCode.OPERATION_NOT_ATTEMPTED: "it was not tried, as another part of the request failed",
        ErrorCode.KAFKA_STORAGE_ERROR: "the disk or the log directory has failed",
        ErrorCode.LOG_DIR_NOT_FOUND: "the broker does not have this log directory",
        ErrorCode.SASL_AUTHENTICATION_FAILED: "the login failed",
        ErrorCode.REASSIGNMENT_IN_PROGRESS: "the partition is being moved",
        ErrorCode.LISTENER_NOT_FOUND: "the leader does not have this listener",
        ErrorCode.TOPIC_DELETION_DISABLED: "the cluster does not let topics be deleted",
        ErrorCode.FENCED_LEADER_EPOCH: "there is a newer leader",
        ErrorCode.UNKNOWN_LEADER_EPOCH: "the broker does not know the newest leader yet",
        ErrorCode.STALE_BROKER_EPOCH: "the broker has registered anew",
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE: "the first replica is not alive, or not in the ISR",
        ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE: "no replica that may lead is alive",
        ErrorCode.ELECTION_NOT_NEEDED: "it is led as wanted already",
        ErrorCode.NO_REASSIGNMENT_IN_PROGRESS: "the partition is not being moved",
        ErrorCode.THROTTLING_QUOTA_EXCEEDED: "the quota for such requests is used up",
        ErrorCode.RESOURCE_NOT_FOUND: "there is no such thing",
        ErrorCode.DUPLICATE_RESOURCE: "there is such a thing already",
        ErrorCode.UNACCEPTABLE_CREDENTIAL: "the credential is not acceptable",
        ErrorCode.INVALID_UPDATE_VERSION: "it has changed meanwhile",
        ErrorCode.UNKNOWN_TOPIC_ID: "there is no topic of this id",
        ErrorCode.BROKER_ID_NOT_REGISTERED: "the broker is not registered",
        ErrorCode.INCONSISTENT_TOPIC_ID: "the topic was deleted and created again",
        ErrorCode.INELIGIBLE_REPLICA: "the replica may not be in the ISR now",
        ErrorCode.MISMATCHED_ENDPOINT_TYPE: "the address is that of another kind of node",
        ErrorCode.UNSUPPORTED_ENDPOINT_TYPE: "the node does not know this kind of address",
    }
)


def reason_of(error: ErrorCode, message: str | None = None) -> str:
    """Return for people why something failed: the message that came with the error, or else the error in words."""
    return message or _WORDS[error]


def in_words(error: Exception) -> str:
    """Return the text of an error for people, in words where that of an ApiError has the name of the code."""
    if not isinstance(error, ApiError):
        return str(error)
    words = _WORDS[error.code]
    return f"{words}: {error.message}" if error.message else words


Fault = tuple[ErrorCode, str]
"""The reason why a request, or one item of it, is refused, and a text that says what to do."""


class ApiError(Exception):
    """A request was answered with an error code; `message` tells people what to do."""

    def __init__(self, code: ErrorCode, message: str = "") -> None:
        super().__init__(f"{code.name}: {message}" if message else code.name)
        self.code = code
        self.message = message
