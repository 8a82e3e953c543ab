"""Check that brokers are told which brokers are alive before they are told of leaders, and which replicas are offline.

A controller knows all brokers that are registered when it takes office, and only those that register later. Where
a broker's registration began or ended only once during an office, the order of what the controller has learned of it
follows from the order of what it does, without any assumption about time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import inf
from typing import Final

from attrs import define, field

from simulator.frames import ControlRequest
from simulator.safety.exemptions import Exemptions
from simulator.safety.namesakes import Namesakes
from simulator.safety.partitions import PartitionChange
from simulator.safety.registrations import Registrations
from simulator.safety.told import Channel
from simulator.steps import ControllerStep
from transport.messages import LeaderAndIsrRequest, PartitionState, StopReplicaRequest, UpdateMetadataRequest
from transport.metadata import NO_LEADER, TopicPartition

_REMEMBERED: Final = 64
"""Number of states remembered for each partition."""

_Key = tuple[TopicPartition, str]


@define
class Announcements:
    """The times at which states were committed, and what controllers have announced about brokers."""

    exempt: Exemptions
    registrations: Registrations
    namesakes: Namesakes
    has_kept_out: Callable[[int], bool]
    """Returns whether a controller takes a live broker for dead that lost its data."""

    _committed: dict[_Key, dict[int, float]] = field(factory=dict, init=False)
    """The time of each partition epoch."""

    _doubted: dict[TopicPartition, None] = field(factory=dict, init=False)
    """The partitions of which a replica has failed, or may lead again."""

    _gone: dict[tuple[int, int], float] = field(factory=dict, init=False)
    """When it was first seen that a controller, by its epoch, knew of the end of a registration."""

    def changed(self, change: PartitionChange, now: float) -> None:
        """Record when a state was committed."""
        after = change.after
        if after is None or after.leadership is None:
            return
        if change.before is not None and change.before.leadership == after.leadership:
            return
        times = self._committed.setdefault((change.tp, after.topic_id), {})
        times[after.leadership.partition_epoch] = now
        if len(times) > _REMEMBERED:
            del times[next(iter(times))]

    def stepped(self, step: ControllerStep) -> bool:
        """Record the partitions with replicas that failed or may lead again; a watcher of `Steps`."""
        if step.round in ("failures", "forgiven"):
            self._doubted.update(dict.fromkeys(step.subjects))
        return False

    def told(self, broker_id: int, channel: Channel, request: ControlRequest, now: float) -> Iterator[str]:
        """Check a request that a broker obeys, before it is recorded in `channel`."""
        if isinstance(request, StopReplicaRequest) or self.exempt.has_brokers:
            return
        is_order = isinstance(request, LeaderAndIsrRequest)
        live = channel.live
        if isinstance(request, UpdateMetadataRequest) and request.live_brokers is not None:
            live = {broker.id: None for broker in request.live_brokers}
            self._heard(channel, live, now)
        if is_order and live is None:
            yield f"broker {broker_id} was told of leaders before it was told who is alive"
            return
        ever_live = channel.ever_live if live is None else {**channel.ever_live, **live}
        for state in _states(request):
            if state.leader < NO_LEADER or self.exempt.has_topic(state.topic):
                continue
            yield from self._leader(broker_id, channel, state, ever_live)
            # Kafka's LeaderAndIsr names no offline replicas.
            if not (is_order and self.namesakes.is_kafkas):
                yield from self._offline(broker_id, channel, state)
            if is_order and live is not None:
                yield from self._dead(broker_id, channel, state, live)

    def _heard(self, channel: Channel, live: dict[int, None], now: float) -> None:
        for id_ in channel.live or ():
            if id_ not in live:
                self._gone.setdefault((channel.controller_epoch, id_), now)

    def _leader(
        self, broker_id: int, channel: Channel, state: PartitionState, ever_live: dict[int, None]
    ) -> Iterator[str]:
        """Check that a leader that this controller has chosen was announced as alive."""
        leader, elected_at = state.leader, channel.elected_at
        is_own = state.controller_epoch == channel.controller_epoch
        if not is_own or leader == NO_LEADER or leader in ever_live:
            return
        if not self.registrations.ends_since(leader, elected_at):
            yield f"broker {broker_id} was told that {leader} leads {state.tp}, not that {leader} is alive"

    def _offline(self, broker_id: int, channel: Channel, state: PartitionState) -> Iterator[str]:
        """Check the offline replicas of a state."""
        registrations, elected_at = self.registrations, channel.elected_at
        for replica in state.replicas:
            ends = registrations.ends_since(replica, elected_at)
            is_listed = replica in state.offline_replicas
            if is_listed and not ends and registrations.has_been_live(replica, since=elected_at):
                is_excused = state.tp in self._doubted or self.namesakes.has_waited(state, replica)
                is_excused = is_excused or self.has_kept_out(replica)
                if not registrations.is_shutting_down(replica) and not is_excused:
                    yield f"broker {broker_id} was told that {state.tp} is offline on broker {replica}, which is alive"
            elif not is_listed and not registrations.was_live(replica, since=elected_at):
                yield f"broker {broker_id} was not told that {state.tp} is offline on broker {replica}, long dead"
            elif not is_listed and ends == 1 and not registrations.is_registered(replica):
                known_at = self._gone.get((channel.controller_epoch, replica))
                if known_at is not None and self._committed_at(channel, state) > known_at:
                    yield f"broker {broker_id} was not told that {state.tp} is offline on broker {replica}, known dead"

    def _dead(self, broker_id: int, channel: Channel, state: PartitionState, live: dict[int, None]) -> Iterator[str]:
        """Check that the end of a broker was announced before what follows from it."""
        registrations, committed_at = self.registrations, self._committed_at(channel, state)
        for replica in state.offline_replicas:
            is_excused = state.tp in self._doubted or self.namesakes.has_waited(state, replica)
            if replica not in live or registrations.is_shutting_down(replica) or is_excused:
                continue
            if not registrations.was_live(replica, since=committed_at):
                yield f"broker {broker_id} was told of {state.tp} without {replica} before it was told that it is dead"

    def _committed_at(self, channel: Channel, state: PartitionState) -> float:
        """Return when the controller of a channel committed a state; -inf if it did not, or if that is not known."""
        if state.controller_epoch != channel.controller_epoch:
            return -inf
        return self._committed.get((state.tp, state.topic_id), {}).get(state.partition_epoch, -inf)


def _states(request: ControlRequest) -> Iterator[PartitionState]:
    if isinstance(request, UpdateMetadataRequest):
        yield from request.partitions
    elif isinstance(request, LeaderAndIsrRequest):
        yield from (item.state for item in request.partitions)
