"""Requested elections: preferred or unclean, through ElectLeaders or `/admin/preferred_replica_election`.

KIP-183 and KIP-460. A failed election is not retried; the answer gives the reason. With an order, ElectLeaders reorders
a partition's replicas and elects the first of them in one multi, so that no intermediate state is visible.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from controller.handlers import leadership, reassignment_entries, reassignments
from controller.model import choosing, elections, registrations
from controller.model.assignments import Change
from controller.model.context import ControllerContext
from controller.model.elections import Choice
from controller.model.rounds import Rounds, Step, commit, logged, read
from transport.errors import ApiError, ErrorCode, Fault
from transport.log import get_logger
from transport.messages import ElectionType, ElectLeadersRequest, ElectLeadersResponse, PartitionError
from transport.metadata import NEVER_LED, ReplicaAssignment, TopicPartition
from transport.store import formats, paths
from transport.store.protocol import FORBIDDEN, Delete

log = get_logger(__name__)


Orders = Mapping[TopicPartition, tuple[int, ...]]


def requested_by_api(context: ControllerContext, request: ElectLeadersRequest) -> Rounds[ElectLeadersResponse]:
    """Elect leaders for the partitions named, or for all; the answer for all excludes those that need no election.

    Raises ApiError(INVALID_REQUEST) for invalid orders.
    """
    orders = _orders(request)
    is_for_all = request.partitions is None and not orders
    tps = list(request.partitions or ())
    if is_for_all:
        tps = [tp for tp in context.partitions() if tp.topic not in context.deletions]
    results = yield from put_in_order(context, orders)
    plain = [tp for tp in (*tps, *orders) if tp not in results]
    elected = yield from elect(context, request.election_type, plain)
    if is_for_all:
        elected = [result for result in elected if result.error is not ErrorCode.ELECTION_NOT_NEEDED]
    return ElectLeadersResponse((*results.values(), *elected))


def _orders(request: ElectLeadersRequest) -> Orders:
    orders = {order.tp: order.replicas for order in request.orders}
    if orders and request.election_type is not ElectionType.PREFERRED:
        raise ApiError(ErrorCode.INVALID_REQUEST, "an order names a preferred leader: ask for a preferred election")
    if len(orders) < len(request.orders):
        raise ApiError(ErrorCode.INVALID_REQUEST, "two orders name the same partition: name each once")
    return orders


def requested_in_store(context: ControllerContext) -> Rounds[None]:
    """Run the preferred elections requested in `/admin/preferred_replica_election`, then delete it in any case.

    A concurrent rewrite of the znode keeps it from being deleted and fires the watch.
    """
    [znode] = yield from read([paths.PREFERRED_REPLICA_ELECTION], watch=True)
    if znode is None:
        return
    if znode == FORBIDDEN:
        log.error("requested elections wait: an ACL keeps us from reading them", path=paths.PREFERRED_REPLICA_ELECTION)
        return
    try:
        tps = formats.decode_partitions(paths.PREFERRED_REPLICA_ELECTION, znode.data)
    except formats.UndecodableZnode as fault:
        log.error("election requests removed: they cannot be decoded, write them again", fault=str(fault))
        tps = ()
    for result in (yield from elect(context, ElectionType.PREFERRED, tps)):
        _log_outcome(result)
    delete = Delete(paths.PREFERRED_REPLICA_ELECTION, znode.stat.version)
    stays = logged(
        f"{paths.PREFERRED_REPLICA_ELECTION} stays: each new controller runs its elections again, and tools take them "
        "to be in progress until it is deleted"
    )
    yield from commit("requests", [Step(writes=(delete,))], on_rejected=stays)


def _log_outcome(result: PartitionError) -> None:
    partition = str(result.tp)
    if result.error in (ErrorCode.NONE, ErrorCode.ELECTION_NOT_NEEDED):
        log.info("preferred leader elected", partition=partition, outcome=result.error.name)
    else:
        log.warning("preferred leader not elected", partition=partition, reason=result.message)


def elect(
    context: ControllerContext, election_type: ElectionType, tps: Iterable[TopicPartition]
) -> Rounds[list[PartitionError]]:
    """Elect leaders if needed and possible; return an outcome for each partition."""
    faults = {tp: _refusal(context, election_type, tp) for tp in tps}
    wanted = [tp for tp, fault in faults.items() if fault is None]
    if election_type is ElectionType.PREFERRED:
        yield from leadership.elect(context, wanted, elections.preferred)
    else:
        yield from leadership.elect(context, wanted, elections.offline, unclean={tp.topic for tp in wanted})
        # A move may have been waiting only for a leader.
        yield from reassignments.finish_ready(context, wanted)
    faults |= {tp: _failure(context, election_type, tp) for tp in wanted}
    return [PartitionError(*tp, *fault or ()) for tp, fault in faults.items()]


def _refusal(context: ControllerContext, election_type: ElectionType, tp: TopicPartition) -> Fault | None:
    fault = _not_there(context, tp)
    if fault is None and _is_led(context, election_type, tp):
        return ErrorCode.ELECTION_NOT_NEEDED, f"broker {context.leadership[tp].leader} leads {tp} already"
    return fault


def _not_there(context: ControllerContext, tp: TopicPartition) -> Fault | None:
    if not context.assignment(tp).replicas:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {tp}"
    if tp.topic in context.deletions:
        return ErrorCode.INVALID_TOPIC_EXCEPTION, f"topic {tp.topic} is being deleted"
    return None


def _is_led(context: ControllerContext, election_type: ElectionType, tp: TopicPartition) -> bool:
    """Return whether a partition is led as requested: by its preferred leader, or for UNCLEAN by any live replica."""
    leader = context.leadership.get(tp, NEVER_LED).leader
    if election_type is ElectionType.PREFERRED:
        return leader == context.assignment(tp).replicas[0]
    return registrations.may_go_on(context, tp, leader)


def _failure(context: ControllerContext, election_type: ElectionType, tp: TopicPartition) -> Fault | None:
    """Return why an election that was needed has failed, None if it has not."""
    replicas = context.assignment(tp).replicas
    if not replicas:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{tp} was deleted meanwhile"
    if _is_led(context, election_type, tp):
        return None
    if election_type is ElectionType.UNCLEAN:
        return ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, _why_nobody(context, tp)
    text = _why_not_preferred(context, tp, replicas[0]) or _unusable(tp)
    return ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, text


def _why_nobody(context: ControllerContext, tp: TopicPartition) -> str:
    replicas = context.assignment(tp).replicas
    online = context.online(tp, replicas)
    if online and choosing.awaits_member(context, tp):
        text = "is alive with a registration that cannot be used: repair that, or stop the broker"
        return f"a broker in the ISR {list(context.leadership[tp].isr)} of {tp} {text}"
    if online and all((tp, r) in context.strays.recalled for r in online):
        return f"the replicas of {tp} may be about to be deleted on brokers {list(online)}: try again once they answer"
    if any(choosing.failing(context, tp, context.leadership.get(tp, NEVER_LED).isr)):
        return f"all members of the ISR of {tp} failed to lead: they are tried again, see `klamm topic describe`"
    if online:
        return _unusable(tp)
    return f"no replica of {tp} is alive: start one of the brokers {list(replicas)}"


def _why_not_preferred(context: ControllerContext, tp: TopicPartition, preferred: int) -> str | None:
    """Return why a replica cannot be elected as the preferred leader, None if it can."""
    current = context.leadership.get(tp)
    failure = context.failures.get((tp, preferred))
    if failure is not None and failure.keeps_from_leading:
        order, reason = failure.order.value, failure.reason
        return f"the preferred leader {preferred} of {tp} failed to {order} ({reason}): it is tried again soon"
    if current is None or not context.is_online(tp, preferred):
        return f"the preferred leader {preferred} of {tp} is not alive, shuts down or cannot use its log: start it"
    if registrations.is_held(context, tp):
        text = "has a registration that cannot be used, so it cannot be sent who leads: see `klamm cluster describe`"
        return f"the leader {current.leader} of {tp} {text}"
    if preferred not in current.isr:
        isr = list(current.isr)
        return f"the preferred leader {preferred} of {tp} is not in the ISR {isr}: wait for it to catch up"
    return None


def _unusable(tp: TopicPartition) -> str:
    return f"the state of {tp} cannot be read or written: see the controller's log"


# --- a named order ----------------------------------------------------------------------------------------------


def put_in_order(context: ControllerContext, orders: Orders) -> Rounds[dict[TopicPartition, PartitionError]]:
    """Reorder replicas and elect the first of each, with one write per topic and chunk.

    Return the outcome of each partition whose order had to change or that is refused; refused ones are unchanged. A
    partition that already has its order is left for a plain election.
    """
    yield from leadership.read_again(context, orders)
    faults = {tp: fault for tp, order in orders.items() if (fault := _order_fault(context, tp, order)) is not None}
    new = {tp: order for tp, order in orders.items() if tp not in faults and context.assignment(tp).replicas != order}
    # A finished request that stays in the store would bring its own order back after a failover.
    kept = yield from reassignment_entries.withdraw(context, new)
    faults |= kept
    new = {tp: order for tp, order in new.items() if tp not in kept}

    def decide(tp: TopicPartition) -> Change | None:
        is_refused = _order_fault(context, tp, orders[tp]) is not None
        order = ReplicaAssignment(orders[tp])
        return None if is_refused else reassignments.change_to(context, tp, order, _first_leads)

    yield from reassignments.write_assignments(context, "order", new, decide, orders.get)
    # A concurrent write may have prevented the new order.
    left = {tp: order for tp, order in new.items() if context.assignment(tp).replicas != order}
    faults |= {tp: _order_fault(context, tp, order) or _lost(tp) for tp, order in left.items()}
    return {tp: PartitionError(*tp, *faults.get(tp, ())) for tp in orders if tp in faults or tp in new}


def _first_leads(context: ControllerContext, tp: TopicPartition, new: ReplicaAssignment) -> Choice:
    """Return the election to commit in the multi with a new order, even if the first replica leads already.

    Brokers accept a new order only with a new leader epoch.
    """
    choice = elections.preferred(choosing.candidate(context, tp, new.replicas))
    assert choice is not None, "orders whose first replica cannot lead were refused"
    return choice


def _order_fault(context: ControllerContext, tp: TopicPartition, order: tuple[int, ...]) -> Fault | None:
    """Return why a partition's replicas cannot take an order with its first replica as the leader, None if they can."""
    fault, current = _not_there(context, tp), context.assignment(tp)
    if fault is not None:
        return fault
    if current.is_being_reassigned:
        target = list(current.target_replicas)
        text = f"{tp} is being moved to {target}: wait until it is, or move it to the order that you want"
        return ErrorCode.REASSIGNMENT_IN_PROGRESS, text
    if sorted(order) != sorted(current.replicas):
        text = f"{list(order)} is no order of {tp}'s replicas {list(current.replicas)}: name each of them once"
        return ErrorCode.INVALID_REPLICA_ASSIGNMENT, text
    why = _why_not_preferred(context, tp, order[0])
    return None if why is None else (ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, why)


def _lost(tp: TopicPartition) -> Fault:
    text = f"{tp} was deleted meanwhile, or its znodes cannot be read or written: see the controller's log"
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text
