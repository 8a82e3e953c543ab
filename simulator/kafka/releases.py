"""The releases of Apache Kafka whose brokers are simulated, and what tells them apart."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from attrs import frozen

from transport.kafka import messages as kafka
from transport.kafka.schema import Message, Versions


@frozen
class Release:
    """One release: the highest versions of the requests that its brokers take and send, and its rules."""

    name: str
    leader_and_isr: int
    stop_replica: int
    update_metadata: int
    alter_partition: int
    api_versions: int
    stops_at_equal_epoch: bool
    """Whether StopReplica may name the leader epoch that the replica knows (KAFKA-13972)."""

    finds_controller_in_store: bool
    """Whether a broker that shuts down looks for the controller among the registrations in the store."""

    repeats_refused: bool = False
    """Whether a leader proposes an ISR again that was refused, and counts it as pending, until its next epoch."""

    @property
    def offered(self) -> dict[type[Message], Versions]:
        """The versions of each request that its brokers name as theirs."""
        passed_on = {} if self.finds_controller_in_store else {kafka.AllocateProducerIdsRequest: Versions(0, 0)}
        return passed_on | {
            kafka.LeaderAndIsrRequest: Versions(0, self.leader_and_isr),
            kafka.StopReplicaRequest: Versions(0, self.stop_replica),
            kafka.UpdateMetadataRequest: Versions(0, self.update_metadata),
            kafka.AlterPartitionRequest: Versions(0, self.alter_partition),
            kafka.ApiVersionsRequest: Versions(0, self.api_versions),
            kafka.DescribeConfigsRequest: Versions(0, 4),
        }


PROTOCOL: Final = "2.8-IV1"
"""The inter.broker.protocol.version of every cluster: that of the oldest of these releases."""

RELEASES: Final = MappingProxyType(
    {
        release.name: release
        for release in (
            Release(
                "2.8", 5, 3, 7, 0, 3, stops_at_equal_epoch=False, finds_controller_in_store=True, repeats_refused=True
            ),
            Release("3.3", 6, 3, 7, 2, 3, stops_at_equal_epoch=False, finds_controller_in_store=False),
            Release("3.9", 7, 4, 8, 3, 4, stops_at_equal_epoch=True, finds_controller_in_store=False),
        )
    }
)
"""The releases by name."""
