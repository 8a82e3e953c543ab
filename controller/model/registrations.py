"""What registrations that cannot be used mean: their brokers are alive.

A registration may be damaged, hidden by an ACL, or without the listener that the controller is set to use. Nothing of
that says that the broker has stopped, and nothing of its end that it has restarted. If the controller has read a usable
registration of the same incarnation, it goes on with that one. Otherwise the broker is unaddressable, as a new
controller may find it: it is sent nothing, and it keeps what it leads and its place in ISRs.

A partition that an unaddressable broker leads is held: the controller begins no leader epoch, because the leader could
not learn of it, and followers of a later epoch cannot fetch from it. What the leader proposes is granted, and when it
shuts down or dies, another one is elected.
"""

from __future__ import annotations

from operator import attrgetter

from controller.model.context import ControllerContext
from transport.messages import BrokerEndpoint
from transport.metadata import NEVER_LED, NO_EPOCH, TopicPartition


def alive(context: ControllerContext) -> frozenset[int]:
    """Return the ids of all live brokers, whether their registrations can be used or not."""
    return frozenset((*context.brokers, *context.unusable))


def is_alive(context: ControllerContext, broker_id: int) -> bool:
    """Return whether a broker is registered, however unusable its registration is."""
    return broker_id in context.brokers or broker_id in context.unusable


def dead(context: ControllerContext) -> list[int]:
    """Return the ids of the brokers that replicas are assigned to and that are not registered."""
    return [broker_id for broker_id in context.brokers_assigned() if not is_alive(context, broker_id)]


def epoch_of(context: ControllerContext, broker_id: int) -> int | None:
    """Return the epoch of a live broker, -1 if an ACL hides it; None if the broker is not alive."""
    known = context.brokers.get(broker_id) or context.unusable.get(broker_id)
    return None if known is None else known.epoch


def is_hidden(context: ControllerContext, broker_id: int) -> bool:
    """Return whether an ACL hides the registration of a live broker, and so the epoch of its incarnation."""
    unusable = context.unusable.get(broker_id)
    return unusable is not None and unusable.epoch == NO_EPOCH


def may_ask(context: ControllerContext, broker_id: int, broker_epoch: int) -> bool:
    """Return whether a request may be that of a live broker's incarnation: a hidden epoch may be any later one."""
    known = epoch_of(context, broker_id)
    if known is None:
        return False
    return broker_epoch == known or (broker_epoch > known and is_hidden(context, broker_id))


def has_restarted(context: ControllerContext, broker_id: int, broker_epoch: int) -> bool:
    """Return whether a registration that was read is that of a later incarnation of a live broker than the known one.

    An epoch that was hidden and can be read now says nothing of the kind. Only a broker that said that it shuts down
    counts as another incarnation then: otherwise, if it did restart unnoticed, it would never lead again.
    """
    known = epoch_of(context, broker_id)
    if known is None or broker_epoch <= known:
        return False
    return known != NO_EPOCH or broker_id in context.shutting_down


def fault_of(context: ControllerContext, broker_id: int) -> str:
    """Return the reason why a broker's registration cannot be used, "" if it can."""
    unusable = context.unusable.get(broker_id)
    return "" if unusable is None else unusable.fault


def endpoints(context: ControllerContext) -> list[BrokerEndpoint]:
    """Return all live brokers by id; an unaddressable one has the host "" and the port 0."""
    nowhere = [one for one in context.unusable.values() if context.is_unaddressable(one.broker_id)]
    found = [*context.live_brokers(), *(BrokerEndpoint(one.broker_id, "", 0, one.rack) for one in nowhere)]
    return sorted(found, key=attrgetter("id"))


def may_go_on(context: ControllerContext, tp: TopicPartition, leader: int) -> bool:
    """Return whether the leader of a partition may stay that: it is online, or nothing says that it is not."""
    is_held = leader not in context.shutting_down and context.is_unaddressable(leader)
    return is_held or context.is_online(tp, leader)


def is_held(context: ControllerContext, tp: TopicPartition) -> bool:
    """Return whether the leader of a partition is alive and unaddressable."""
    return bool(context.unusable) and context.is_unaddressable(context.leadership.get(tp, NEVER_LED).leader)
