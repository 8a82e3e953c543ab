"""Proposals of ISRs that no controller may grant, as from a broker that is out of date or has gone mad."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum

from attrs import frozen
from msgspec.structs import replace

from simulator.actions.scene import Request, Scene
from simulator.store.durable import Durable
from transport.errors import ApiError, ErrorCode
from transport.messages import AlterPartitionItem, AlterPartitionRequest, PartitionState

_STRANGER = 99
"""A broker that never exists."""

_AHEAD = 1000
"""More epochs than any run has."""


class Flaw(Enum):
    """The reasons for which a proposal must be refused."""

    STALE_PARTITION_EPOCH = "stale partition epoch"
    STALE_LEADER_EPOCH = "stale leader epoch"
    LATER_PARTITION_EPOCH = "later partition epoch"
    LATER_LEADER_EPOCH = "later leader epoch"
    STALE_BROKER_EPOCH = "stale broker epoch"
    OTHER_TOPIC = "other topic"
    NOT_THE_LEADER = "not the leader"
    WITHOUT_LEADER = "without the leader"
    STRANGER = "stranger"
    TWICE = "a replica twice"
    BEGINS_RECOVERY = "begins a recovery"
    ABSURD_RECOVERY = "absurd recovery state"


@frozen
class ProposeIsr(Request):
    """Propose an ISR to the active controller in the name of a partition's leader, with a flaw."""

    partition: str
    flaw: Flaw

    async def ask(self, scene: Scene) -> None:
        """Send the proposal. Raises ApiError when it is refused."""
        cluster = scene.cluster
        controller, state = cluster.active_controller, cluster.partition(self.partition)
        if controller is None or state is None:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "there is nobody to ask, or nothing to ask for")
        request = _proposal(cluster.durable, state, self.flaw)
        [answered] = (await cluster.ask(controller, request)).partitions
        if answered.error is not ErrorCode.NONE:
            raise ApiError(answered.error, f"{self.flaw.value} of {self.partition}")


def _proposal(durable: Durable, state: PartitionState, flaw: Flaw) -> AlterPartitionRequest:
    """Return a proposal with a flaw, which stays one whatever changes until it arrives. Raises ApiError.

    Apart from its flaw, it proposes the leader alone.
    """
    brokers, followers = durable.brokers(), [r for r in state.replicas if r != state.leader]
    asker = brokers.get(followers[0] if flaw is Flaw.NOT_THE_LEADER and followers else state.leader)
    if asker is None:
        raise ApiError(ErrorCode.BROKER_NOT_AVAILABLE, "the broker that is to ask is not alive")
    item = AlterPartitionItem(
        state.topic, state.topic_id, state.partition, state.leader_epoch, (state.leader,), state.partition_epoch
    )
    changed = {field: value for at, field, value in _flaws(item, followers) if at is flaw}
    epoch = asker.epoch - 1 if flaw is Flaw.STALE_BROKER_EPOCH else asker.epoch
    return AlterPartitionRequest(asker.id, epoch, (replace(item, **changed),))


def _flaws(item: AlterPartitionItem, followers: Sequence[int]) -> Iterator[tuple[Flaw, str, object]]:
    """Yield the fields that flaws change, and their values."""
    [leader] = item.new_isr
    yield Flaw.STALE_PARTITION_EPOCH, "partition_epoch", item.partition_epoch - 1
    yield Flaw.STALE_LEADER_EPOCH, "leader_epoch", item.leader_epoch - 1
    yield Flaw.LATER_PARTITION_EPOCH, "partition_epoch", item.partition_epoch + _AHEAD
    yield Flaw.LATER_LEADER_EPOCH, "leader_epoch", item.leader_epoch + _AHEAD
    yield Flaw.OTHER_TOPIC, "topic_id", "of-another-topic"
    yield Flaw.WITHOUT_LEADER, "new_isr", tuple(followers)
    yield Flaw.STRANGER, "new_isr", (leader, _STRANGER)
    yield Flaw.TWICE, "new_isr", (leader, leader)
    yield Flaw.BEGINS_RECOVERY, "new_isr", (leader, *followers)
    yield Flaw.BEGINS_RECOVERY, "leader_recovery_state", 1
    yield Flaw.ABSURD_RECOVERY, "leader_recovery_state", 7
