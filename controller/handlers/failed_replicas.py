"""Replicas for which live brokers fail to carry out an order (KIP-112, and any error of a service).

A broker answers each order for a replica with an outcome. `model.replica_failures` has the rules by which a failed
replica leads, follows and is tried again. Of Kafka brokers only KAFKA_STORAGE_ERROR counts, and their orders are not
repeated by a timer, as with Kafka's own controller.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from controller.gathered import Outcome, ReplicaOrder
from controller.handlers import leadership, reassignments
from controller.handlers.brokers import orders_of_all
from controller.handlers.metadata import publish
from controller.model.context import ControllerContext
from controller.model.descriptions import describe_led
from controller.model.facts import (
    Fact,
    PartitionsMoved,
    Replica,
    ReplicasMoved,
)
from controller.model.replica_failures import (
    FailedLeaderReplaced,
    ReplicaFailed,
    ReplicaFailure,
    ReplicaForgiven,
    ReplicaOrderedAgain,
    ReplicaRecovered,
)
from controller.model.rounds import Publication, Rounds, Step, TellStopReplica, apply
from controller.model.state_machines import PartitionPhase, ReplicaPhase
from transport.errors import ErrorCode
from transport.log import get_logger
from transport.messages import StopReplicaPartition
from transport.metadata import NEVER_LED, TopicPartition

log = get_logger(__name__)


def orders_answered(
    context: ControllerContext,
    broker_id: int,
    epochs: tuple[int, int],
    outcomes: Mapping[tuple[str, TopicPartition], Outcome],
    now: float,
) -> Rounds[None]:
    """Take note of the replicas of a broker that failed or recovered, and elect leaders and go on with moves.

    `outcomes` has the latest answer for each replica, by topic id and partition. `epochs` are the broker epoch and the
    controller epoch of the answers; answers of another incarnation or to another controllership are ignored. `now` is a
    time of trio's clock.
    """
    broker_epoch, controller_epoch = epochs
    if controller_epoch != context.epoch or not context.is_registered(broker_id, broker_epoch):
        return
    # Meanwhile a replica may have left the broker, or its topic may be a new one of the same name. The replicas of a
    # topic that is being deleted do not come back online.
    here = {
        tp: outcome
        for (topic_id, tp), outcome in outcomes.items()
        if broker_id in context.assignment(tp).replicas
        and context.topic_id(tp.topic) == topic_id
        and tp.topic not in context.deletions
    }
    failed = {tp: outcome for tp, outcome in here.items() if _counts(context, (tp, broker_id), outcome)}
    obeyed = [tp for tp, outcome in here.items() if outcome.error is ErrorCode.NONE]
    yield from _failed(context, broker_id, failed, now)
    ended = [tp for tp in obeyed if _ends(context, (tp, broker_id), here[tp])]
    stopped = [tp for tp in ended if here[tp].order is ReplicaOrder.STOP]
    facts = tuple([ReplicaRecovered((tp, broker_id)) for tp in stopped])
    yield from apply("stops", [Step(tuple(stopped), facts=facts)] if stopped else [])
    carried_out = {tp: here[tp].order for tp in ended if here[tp].order is not ReplicaOrder.STOP}
    yield from _recovered(context, broker_id, carried_out)


def _counts(context: ControllerContext, replica: Replica, outcome: Outcome) -> bool:
    """Return whether an outcome is a failure of an order that still matters.

    One to follow does not where the replica leads by now, nor one to stop where it must follow again.
    """
    (tp, broker_id), order = replica, outcome.order
    if outcome.error is ErrorCode.NONE:
        return False
    if order is ReplicaOrder.STOP:
        return _is_to_stop(context, replica)
    is_leader = context.leadership.get(tp, NEVER_LED).leader == broker_id
    return outcome.error is ErrorCode.KAFKA_STORAGE_ERROR or order is ReplicaOrder.LEAD or not is_leader


def _ends(context: ControllerContext, replica: Replica, outcome: Outcome) -> bool:
    """Return whether a replica has recovered because an order was carried out.

    One that failed to lead has not recovered when it follows.
    """
    failure = context.failures.get(replica)
    if failure is None or ReplicaOrder.STOP in (failure.order, outcome.order):
        return failure is not None and failure.order is outcome.order
    # The order of an earlier epoch was sent before the failure, and what followed from it, such as a stop. Kafka
    # brokers are not ordered again for long, so for them it counts.
    is_old = outcome.leader_epoch < context.leadership.get(replica[0], NEVER_LED).leader_epoch
    if is_old and not context.config.kafka:
        return False
    if failure.keeps_from_following:
        return context.config.kafka or failure.is_ended_by(outcome.leader_epoch)
    return outcome.order is ReplicaOrder.LEAD


# --- failures -----------------------------------------------------------------------------------------------------


def _failed(
    context: ControllerContext, broker_id: int, outcomes: Mapping[TopicPartition, Outcome], now: float
) -> Rounds[None]:
    """Record failures. A leader that failed is replaced; a replica that cannot follow leaves the ISR."""
    steps: dict[ReplicaOrder, list[Step]] = defaultdict(list)
    demoted, unserved = [], []
    for tp, outcome in outcomes.items():
        before = context.failures.get((tp, broker_id))
        reason = outcome.reason or outcome.error.name
        epoch = context.leadership.get(tp, NEVER_LED).leader_epoch
        failure = ReplicaFailure(outcome.order, outcome.error, reason, now, leader_epoch=epoch).after(before)
        if before is None or (before.order, before.reason) != (failure.order, failure.reason):
            text = "a replica failed: its broker did not carry out an order"
            log.error(text, partition=str(tp), broker=broker_id, order=outcome.order.value, reason=reason)
        steps[outcome.order].append(Step((tp,), facts=(ReplicaFailed((tp, broker_id), failure),)))
        if outcome.order is ReplicaOrder.STOP:
            continue
        if failure.keeps_from_following:
            unserved += [tp] if context.is_served(tp, broker_id) else []
        elif before is None or before.is_over or context.leadership.get(tp, NEVER_LED).leader == broker_id:
            demoted.append(tp)
    yield from apply("stops", steps.pop(ReplicaOrder.STOP, []))
    yield from apply("failures", [step for of_order in steps.values() for step in of_order])
    if unserved:
        yield from leadership.replace_offline(context, unserved, [broker_id])
    yield from _replace_leaders(context, [tp for tp in demoted if tp in context.leadership], now)
    yield from reassignments.finish_ready(context, (*unserved, *demoted))


def _replace_leaders(context: ControllerContext, tps: Sequence[TopicPartition], now: float) -> Rounds[None]:
    """Elect other leaders where the leader has failed, and publish which replicas have failed."""
    led = {tp: context.leadership[tp] for tp in tps}
    leaderless = [tp for tp, state in led.items() if not context.is_online(tp, state.leader)]
    offline = Step(tuple(leaderless), facts=(PartitionsMoved(leaderless, PartitionPhase.OFFLINE),))
    yield from apply("offline", [offline] if leaderless else [])
    yield from leadership.elect_leaders(context, leaderless, only_cleanly=True)
    elected = [tp for tp in leaderless if context.leadership.get(tp, NEVER_LED).leader != led[tp].leader]
    replaced = dict.fromkeys(elected)
    facts = tuple([FailedLeaderReplaced(tp, now) for tp in replaced])
    yield from apply("replaced", [Step(tuple(replaced), facts=facts)] if replaced else [])
    yield from publish(context, [tp for tp in tps if tp not in replaced])


# --- recoveries ---------------------------------------------------------------------------------------------------


def _recovered(
    context: ControllerContext, broker_id: int, orders: Mapping[TopicPartition, ReplicaOrder]
) -> Rounds[None]:
    """Use replicas again that have carried out these orders to lead or follow."""
    if not orders:
        return
    tps, facts = tuple(orders), list[Fact]()
    for tp, order in orders.items():
        failure = context.failures[tp, broker_id]
        log.info("a replica works again", partition=str(tp), broker=broker_id, failed_to=failure.order.value)
        if order is ReplicaOrder.FOLLOW and failure.to_lead is not None:
            facts.append(ReplicaFailed((tp, broker_id), failure.to_lead))
        else:
            facts.append(ReplicaRecovered((tp, broker_id)))
    begun = context.replica_phases.those_on(broker_id, tps)
    online = ReplicasMoved.on(broker_id, begun, ReplicaPhase.ONLINE)
    led = [tp for tp in tps if context.leadership.get(tp, NEVER_LED).leader == broker_id]
    facts += [online, PartitionsMoved(led, PartitionPhase.ONLINE)]
    yield from apply("failures", [Step(tps, facts=tuple(facts))])
    yield from _go_on(context, tps)


def _go_on(context: ControllerContext, tps: Sequence[TopicPartition]) -> Rounds[None]:
    """Publish that replicas are online again, elect leaders and end moves."""
    yield from publish(context, tps)
    yield from leadership.bring_online(context)
    yield from reassignments.finish_ready(context, tps)


# --- repetitions --------------------------------------------------------------------------------------------------


def next_try(context: ControllerContext) -> float | None:
    """Return the time of trio's clock at which a failed replica is due next, None if none is."""
    waiting = [replica for replica in context.failures if _waits(context, replica)]
    return min((_next_try(context, replica) for replica in waiting), default=None)


def _waits(context: ControllerContext, replica: Replica) -> bool:
    is_over = context.failures[replica].is_over or replica[0].topic in context.deletions
    return not is_over and not context.config.kafka


def _next_try(context: ControllerContext, replica: Replica) -> float:
    (tp, broker_id), failures = replica, context.failures
    leader = context.leadership.get(tp, NEVER_LED).leader
    own = failures[replica].next_try(leads=leader == broker_id)
    if not _may_lead_again(context, replica):
        return own
    return max(own, failures.next_election(tp, is_led=context.is_online(tp, leader)))


def try_again(context: ControllerContext, now: float) -> Rounds[None]:
    """Repeat the orders that are due, and let replicas lead again that failed to."""
    waiting = [replica for replica in context.failures if _waits(context, replica)]
    due = [replica for replica in waiting if _next_try(context, replica) <= now]
    leaving = dict.fromkeys(replica for replica in due if context.failures[replica].order is ReplicaOrder.STOP)
    able = dict.fromkeys(replica for replica in due if _may_lead_again(context, replica))
    others = [replica for replica in due if replica not in leaving and replica not in able]
    yield from _stop_again(context, leaving, now)
    yield from _order_again(context, others, now)
    yield from _let_lead(context, able, now)


def _may_lead_again(context: ControllerContext, replica: Replica) -> bool:
    """Return whether a replica waits for nothing but to lead again: it follows, and has not failed at that."""
    (tp, broker_id), failure = replica, context.failures[replica]
    is_leader = context.leadership.get(tp, NEVER_LED).leader == broker_id
    return failure.order is ReplicaOrder.LEAD and not failure.keeps_from_following and not is_leader


def _order_again(context: ControllerContext, replicas: Iterable[Replica], now: float) -> Rounds[None]:
    """Repeat the orders in effect to lead and follow."""
    by_broker: dict[int, list[TopicPartition]] = defaultdict(list)
    for tp, broker_id in replicas:
        by_broker[broker_id].append(tp)
    steps = []
    for broker_id, tps in by_broker.items():
        orders = tuple(orders_of_all(context, describe_led(context, tps), [broker_id], ()))
        facts = tuple([ReplicaOrderedAgain((tp, broker_id), now) for tp in tps])
        steps.append(Step(tuple(tps), facts=facts, publications=orders))
    yield from apply("resend", steps)


def _stop_again(context: ControllerContext, replicas: Iterable[Replica], now: float) -> Rounds[None]:
    """Repeat the orders to stop, except those that have become void."""
    steps = []
    for tp, broker_id in replicas:
        replica = tp, broker_id
        if not _is_to_stop(context, replica):
            steps.append(Step((tp,), facts=(ReplicaRecovered(replica),)))
            continue
        epoch = context.leadership[tp].leader_epoch
        stop = StopReplicaPartition(tp.topic, context.topic_id(tp.topic), tp.partition, epoch, delete=False)
        told: tuple[Publication, ...] = (TellStopReplica([(broker_id,)], [stop]),)
        steps.append(Step((tp,), facts=(ReplicaOrderedAgain(replica, now),), publications=told))
    yield from apply("stops", steps)


def _is_to_stop(context: ControllerContext, replica: Replica) -> bool:
    """Return whether a replica must not follow: its broker shuts down, and it has left the ISR.

    Other replicas that are stopped have failed, and are ordered to follow again, which makes a stop void.
    """
    tp, broker_id = replica
    state = context.leadership.get(tp)
    return state is not None and broker_id in context.shutting_down and broker_id not in (state.leader, *state.isr)


def _let_lead(context: ControllerContext, replicas: Iterable[Replica], now: float) -> Rounds[None]:
    """Let replicas lead again: those of partitions with a working leader, and one of each of the others.

    Where no leader works, the member of the ISR leads that has waited longest.
    """
    oldest = sorted(replicas, key=lambda replica: context.failures[replica].at)
    chosen: dict[TopicPartition, int] = {}
    forgiven: list[Replica] = []
    for tp, broker_id in oldest:
        state = context.leadership.get(tp, NEVER_LED)
        if context.is_online(tp, state.leader) or broker_id not in state.isr:
            forgiven.append((tp, broker_id))
        elif tp not in chosen:
            chosen[tp] = broker_id
            forgiven.append((tp, broker_id))
    steps = [Step((replica[0],), facts=(ReplicaForgiven(replica),)) for replica in forgiven]
    yield from apply("forgiven", steps)
    yield from _replace_leaders(context, list(dict.fromkeys(tp for tp, _ in forgiven)), now)
    yield from reassignments.finish_ready(context, [tp for tp, _ in forgiven])
