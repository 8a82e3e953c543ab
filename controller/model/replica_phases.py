"""The states of all replicas, the most numerous entries in a controller's memory."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, Sequence

from controller.model.facts import Replica
from controller.model.state_machines import REPLICA_TRANSITIONS, ReplicaPhase, move_all
from transport.metadata import TopicPartition


class ReplicaPhases(MutableMapping[Replica, ReplicaPhase]):
    """The state of each replica, grouped by broker: a dictionary keyed by pairs would take twice the memory."""

    def __init__(self) -> None:
        self._by_broker: dict[int, dict[TopicPartition, ReplicaPhase]] = {}

    def __getitem__(self, replica: Replica) -> ReplicaPhase:
        tp, broker_id = replica
        return self._by_broker[broker_id][tp]

    def move_all(self, tps: Sequence[TopicPartition], broker_id: int, phase: ReplicaPhase) -> bool:
        """Let replicas on a broker enter a state; return False, and change nothing, if one of them may not."""
        return move_all(REPLICA_TRANSITIONS, self._by_broker.setdefault(broker_id, {}), tps, phase)

    def __setitem__(self, replica: Replica, phase: ReplicaPhase) -> None:
        tp, broker_id = replica
        if broker_id in self._by_broker:
            self._by_broker[broker_id][tp] = phase
        else:
            self._by_broker[broker_id] = {tp: phase}

    def __delitem__(self, replica: Replica) -> None:
        tp, broker_id = replica
        del self._by_broker[broker_id][tp]

    def __iter__(self) -> Iterator[Replica]:
        for broker_id, phases in self._by_broker.items():
            yield from ((tp, broker_id) for tp in phases)

    def __len__(self) -> int:
        return sum(map(len, self._by_broker.values()))
