"""Moving logs between the directories of their brokers (KIP-113), which brokers of Kafka's do when they are told to.

A broker without a log of the partition remembers the directory until its process ends, and creates the log there. So a
new replica gets its directory before its move begins.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from attrs import frozen

from controller.admin.broker_log_dirs import BrokerLogDirs
from transport.errors import ErrorCode, reason_of
from transport.messages import LogDirReplica
from transport.metadata import TopicPartition

Replica = tuple[TopicPartition, int]
"""A partition and the id of a broker."""

Directories = Mapping[Replica, str]
"""The path of a log directory for each replica."""


class LogMover(Protocol):
    """Tells brokers where to keep logs, and asks where these are."""

    async def describe_log_dirs(
        self, broker_ids: Sequence[int] | None = None, partitions: Sequence[TopicPartition] | None = None
    ) -> dict[int, BrokerLogDirs]:
        """Return the contents of the log directories of brokers."""

    async def alter_replica_log_dirs(self, directories: Directories) -> dict[Replica, str]:
        """Let brokers move logs, or remember where to create them; return the reason for each that is refused."""


@frozen
class LogPlaces:
    """Where brokers have logs: by replica, the directory and the one that it is copied to, if any."""

    brokers: Mapping[int, BrokerLogDirs]
    paths: Directories
    futures: Directories

    @classmethod
    def of(cls, told: Mapping[int, BrokerLogDirs]) -> LogPlaces:
        """Return what brokers have told."""
        logs = ((b, one.path, one.replicas) for b, answer in told.items() for one in answer.log_dirs)
        futures = ((b, path, found) for b, answer in told.items() for path, found in answer.futures.items())
        return cls(told, _by_replica(logs), _by_replica(futures))

    def faults(self, wanted: Directories) -> dict[Replica, str]:
        """Return the directories that cannot be used, each with the reason."""
        found = {replica: self._fault(replica[1], path) for replica, path in wanted.items()}
        return {replica: text for replica, text in found.items() if text}

    def _fault(self, broker_id: int, path: str) -> str:
        answer = self.brokers[broker_id]
        if answer.fault:
            return answer.fault
        errors = {one.path: one.error for one in answer.log_dirs}
        if path not in errors:
            return f"broker {broker_id} has no log directory {path}, only {', '.join(sorted(errors))}"
        error = errors[path]
        return "" if error is ErrorCode.NONE else f"{path} of broker {broker_id} cannot be used: {reason_of(error)}"

    def unfinished(self, wanted: Directories) -> dict[Replica, str]:
        """Return the replicas whose logs are not yet in their directories, and in words where they are."""
        left = {replica: path for replica, path in wanted.items() if self.paths.get(replica) != path}
        return {replica: self._whereabouts(replica, path) for replica, path in left.items()}

    def _whereabouts(self, replica: Replica, path: str) -> str:
        _, broker_id = replica
        fault, now = self.brokers[broker_id].fault, self.paths.get(replica)
        if fault:
            return f"the log directories of broker {broker_id} are not known: {fault}"
        if now is None:
            return f"broker {broker_id} has no log to keep in {path}"
        if self.futures.get(replica) == path:
            return f"broker {broker_id} moves its log from {now} to {path}"
        return f"broker {broker_id} has its log in {now}, not in {path}"

    def forgotten(self, wanted: Directories) -> Directories:
        """Return the replicas whose brokers have the log elsewhere and do not move it: after a restart, for example."""
        return {
            replica: path
            for replica, path in wanted.items()
            if self.paths.get(replica, path) != path and self.futures.get(replica) != path
        }


def _by_replica(logs: Iterable[tuple[int, str, Iterable[LogDirReplica]]]) -> Directories:
    return {(log.tp, broker_id): path for broker_id, path, found in logs for log in found}
