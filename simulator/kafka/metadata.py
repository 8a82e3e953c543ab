"""A broker of Kafka's view of the cluster."""

from __future__ import annotations

from broker.metadata_cache import MetadataCache
from transport.messages import PartitionState, UpdateMetadataRequest
from transport.metadata import LEADER_DURING_DELETE


class KafkaMetadata(MetadataCache):
    """A metadata cache that takes what it is sent last, whatever its epochs.

    The live brokers of each request replace all. A partition stays until it is sent with the leader -2. The controller
    is known only if it is among the live brokers.
    """

    def update(self, request: UpdateMetadataRequest) -> None:
        """Apply a controller's request."""
        super().update(request)
        if not request.controller.port:
            self._controller = None

    def _take(self, state: PartitionState) -> None:
        if state.leader != LEADER_DURING_DELETE:
            self._topics.setdefault(state.topic, {})[state.partition] = state
            return
        partitions = self._topics.get(state.topic, {})
        partitions.pop(state.partition, None)
        if not partitions:
            self._topics.pop(state.topic, None)
