"""A broker's view of the cluster, as received from the controller."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from transport.messages import (
    BrokerEndpoint,
    MetadataRequest,
    MetadataResponse,
    PartitionState,
    UpdateMetadataRequest,
)
from transport.metadata import LEADER_DURING_DELETE, NO_EPOCH, TopicPartition


class MetadataCache:
    """The live brokers, the state of every partition, and the address of the active controller.

    Only `update` changes it, and only with requests that passed the fence.
    """

    def __init__(self) -> None:
        self._brokers: dict[int, BrokerEndpoint] = {}
        self._topics: dict[str, dict[int, PartitionState]] = {}
        self._controller: BrokerEndpoint | None = None
        self._controller_epoch = NO_EPOCH

    @property
    def controller(self) -> BrokerEndpoint | None:
        """The endpoint of the active controller; None before its first request."""
        return self._controller

    @property
    def controller_epoch(self) -> int:
        """The epoch of that controller; -1 before its first request."""
        return self._controller_epoch

    @property
    def live_brokers(self) -> tuple[int, ...]:
        """The ids of the live brokers, in order."""
        return tuple(sorted(self._brokers))

    def broker(self, broker_id: int) -> BrokerEndpoint | None:
        """Return the endpoint of a live broker, None for any other."""
        return self._brokers.get(broker_id)

    def partition(self, tp: TopicPartition) -> PartitionState | None:
        """Return the latest known state of a partition."""
        return self._topics.get(tp.topic, {}).get(tp.partition)

    def update(self, request: UpdateMetadataRequest) -> None:
        """Apply a controller's changes: partitions, and the live brokers and topics unless None."""
        self._controller = request.controller
        self._controller_epoch = request.controller_epoch
        if request.live_brokers is not None:
            self._brokers = {broker.id: broker for broker in request.live_brokers}
        if request.topics is not None:
            self._keep(dict(request.topics))
        for state in request.partitions:
            self._take(state)

    def describe(self, request: MetadataRequest) -> MetadataResponse:
        """Answer a Metadata request, sorted by names and numbers."""
        names: Sequence[str] = sorted(self._topics) if request.topics is None else sorted(set(request.topics))
        partitions = [state for name in names for _, state in sorted(self._topics.get(name, {}).items())]
        brokers = tuple(broker for _, broker in sorted(self._brokers.items()))
        return MetadataResponse(self._controller, self._controller_epoch, brokers, tuple(partitions))

    def _keep(self, topic_ids: Mapping[str, str]) -> None:
        """Forget all partitions of topics that are not in this complete list of ids by name."""
        for name, partitions in list(self._topics.items()):
            topic_id = topic_ids.get(name)
            # "" stands for an id that the controller does not know either.
            kept = {number: state for number, state in partitions.items() if topic_id in ("", state.topic_id)}
            if kept:
                self._topics[name] = kept
            else:
                del self._topics[name]

    def _take(self, state: PartitionState) -> None:
        if state.leader == LEADER_DURING_DELETE:
            self._remove(state)
            return
        known = self._topics.get(state.topic, {}).get(state.partition)
        if known is None or known.topic_id != state.topic_id or _epochs(state) >= _epochs(known):
            self._topics.setdefault(state.topic, {})[state.partition] = state

    def _remove(self, state: PartitionState) -> None:
        partitions = self._topics.get(state.topic, {})
        known = partitions.get(state.partition)
        if known is not None and known.topic_id != state.topic_id:
            return  # it belongs to a newer topic of that name
        partitions.pop(state.partition, None)
        if not partitions:
            self._topics.pop(state.topic, None)


def _epochs(state: PartitionState) -> tuple[int, int, int]:
    return state.controller_epoch, state.leader_epoch, state.partition_epoch
