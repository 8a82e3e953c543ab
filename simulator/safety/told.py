"""The orders that each incarnation of a broker has been sent, in the order in which it obeyed.

Requests that the broker's fence turns away are left out: those of an earlier controller, to an earlier incarnation,
and copies of requests that were obeyed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import trio
from attrs import define, field

from simulator.frames import ControlRequest
from simulator.safety.exemptions import Exemptions
from transport.messages import LeaderAndIsrRequest, PartitionState, StopReplicaRequest, UpdateMetadataRequest
from transport.messages.control import UNNUMBERED
from transport.metadata import NO_LEADER, TopicPartition


@define
class Channel:
    """The orders that one incarnation of a broker has obeyed."""

    broker_epoch: int
    registered_at: float
    controller_epoch: int = 0
    elected_at: float = 0.0

    requests: int = 0
    """The number of requests that the broker has obeyed since."""

    live: dict[int, None] | None = None
    """The brokers that are alive, as told last by this controller; None before that."""

    ever_live: dict[int, None] = field(factory=dict)
    """The brokers that this controller has listed as alive."""

    replicas: dict[TopicPartition, PartitionState] = field(factory=dict)
    """The last LeaderAndIsr of each partition that the broker has not been told to stop since."""

    _latest: int = UNNUMBERED

    @property
    def began_at(self) -> float:
        """The time of the controller's election, or of the registration if that is later."""
        return max(self.elected_at, self.registered_at)

    def admit(self, request: ControlRequest, elected_at: float) -> bool:
        """Return whether the broker obeys a request, and record that."""
        if request.broker_epoch < self.broker_epoch or request.controller_epoch < self.controller_epoch:
            return False
        if request.controller_epoch > self.controller_epoch:
            self.controller_epoch, self._latest, self.requests = request.controller_epoch, UNNUMBERED, 0
            self.elected_at, self.live, self.ever_live = elected_at, None, {}
        if request.number != UNNUMBERED:
            if request.number <= self._latest:
                return False
            self._latest = request.number
        self.requests += 1
        return True

    def obey(self, request: ControlRequest) -> None:
        """Record what a request says."""
        match request:
            case UpdateMetadataRequest(live_brokers=live) if live is not None:
                self.live = {broker.id: None for broker in live}
                self.ever_live |= self.live
            case LeaderAndIsrRequest(partitions=items):
                self.replicas.update((item.state.tp, item.state) for item in items)
            case StopReplicaRequest(partitions=items):
                for item in items:
                    told = self.replicas.get(item.tp)
                    # A broker of Kafka's without the log does not know whose it would be.
                    if told is not None and item.topic_id in ("", told.topic_id):
                        del self.replicas[item.tp]


@define
class Told:
    """The channels to the brokers that are registered."""

    exempt: Exemptions
    _channels: dict[int, Channel] = field(factory=dict, init=False)

    def registered(self, broker_id: int, broker_epoch: int) -> None:
        """Record a new incarnation of a broker, which has been told nothing."""
        self._channels[broker_id] = Channel(broker_epoch, trio.current_time())

    def requests(self, broker_id: int) -> int:
        """Return how many requests of its controller a broker has obeyed."""
        channel = self._channels.get(broker_id)
        return 0 if channel is None else channel.requests

    def admit(self, broker_id: int, request: ControlRequest, elected_at: float) -> Channel | None:
        """Return the channel of a request that the broker obeys, None for any other."""
        channel = self._channels.get(broker_id)
        return channel if channel is not None and channel.admit(request, elected_at) else None

    def differences(self, broker_ids: Iterable[int], durable: Mapping[TopicPartition, PartitionState]) -> Iterator[str]:
        """Yield where brokers were last told something else than the store has, once nothing disturbs the cluster.

        `durable` has the partitions with leadership. Leaders change the ISR themselves, so it is not compared.
        """
        for broker_id in broker_ids:
            channel = self._channels.get(broker_id)
            replicas = {} if channel is None else channel.replicas
            told = {tp: state for tp, state in replicas.items() if not self.exempt.has_topic(tp.topic)}
            wanted = {tp: state for tp, state in durable.items() if broker_id in state.replicas}
            differing = [tp for tp in {**told, **wanted} if _order(told.get(tp)) != _order(wanted.get(tp))]
            for tp in differing[:1]:
                others = f" (and {len(differing) - 1} more)" if differing[1:] else ""
                said, meant = _order(told.get(tp)), _order(wanted.get(tp))
                yield f"broker {broker_id} was last told {said} of {tp}, not {meant}{others}"


def _order(state: PartitionState | None) -> str:
    if state is None:
        return "nothing"
    moving = f" +{state.adding_replicas} -{state.removing_replicas}"
    # A new order of replicas is told with the next leader epoch, which a partition without a leader has to wait for.
    replicas = state.replicas if state.leader != NO_LEADER else tuple(sorted(state.replicas))
    return f"RS {replicas}{moving}, leader {state.leader}, leader epoch {state.leader_epoch}, {state.topic_id}"
