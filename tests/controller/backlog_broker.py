"""A model of a broker that obeys the controller's requests: which replicas run, which logs exist, what it knows.

Its decisions are those of the broker kit's fence; what stands in for the service is a dict of logs.
"""

from __future__ import annotations

from attrs import define, field
from msgspec.structs import replace

from broker.fencing import HostedReplica, Verdict, judge_leader_and_isr, judge_stop_replica
from broker.metadata_cache import MetadataCache
from transport.errors import ApiError
from transport.messages import (
    LeaderAndIsrPartition,
    LeaderAndIsrRequest,
    Request,
    StopReplicaPartition,
    StopReplicaRequest,
    UpdateMetadataRequest,
)
from transport.metadata import TopicPartition


@define
class Log:
    """A log of a topic id, and the leader epochs under which it was led or followed."""

    topic_id: str
    epochs: set[int] = field(factory=set)


@define
class ModelBroker:
    """One broker. A replica that it does not hold it creates only if told that it is new (KAFKA-10314)."""

    hosted: dict[TopicPartition, HostedReplica] = field(factory=dict)
    logs: dict[TopicPartition, Log] = field(factory=dict)
    metadata: MetadataCache = field(factory=MetadataCache)

    def deliver(self, request: Request[object]) -> None:
        """Obey a request."""
        match request:
            case LeaderAndIsrRequest(partitions=items):
                for item in items:
                    self._lead_or_follow(item)
            case StopReplicaRequest(partitions=stops):
                for stop in stops:
                    self._stop(stop)
            case UpdateMetadataRequest():
                self.metadata.update(request)

    def _lead_or_follow(self, item: LeaderAndIsrPartition) -> None:
        state = item.state
        tp = state.tp
        try:
            if judge_leader_and_isr(self.hosted.get(tp), state) is Verdict.KNOWN:
                return
        except ApiError:
            return
        log = self.logs.get(tp)
        if log is None and item.is_new:
            log = self.logs[tp] = Log(state.topic_id)
        if log is None or log.topic_id != state.topic_id:
            return
        log.epochs.add(state.leader_epoch)
        self.hosted[tp] = HostedReplica(state)

    def _stop(self, stop: StopReplicaPartition) -> None:
        tp = stop.tp
        hosted, log = self.hosted.get(tp), self.logs.get(tp)
        try:
            if not judge_stop_replica(hosted, stop):
                return
        except ApiError:
            return
        if stop.delete:
            self.hosted.pop(tp, None)
            if log is not None and log.topic_id == stop.topic_id:
                del self.logs[tp]
        elif hosted is not None:
            epoch = max(hosted.state.leader_epoch, stop.leader_epoch)
            self.hosted[tp] = HostedReplica(replace(hosted.state, leader_epoch=epoch), stopped=True)
