"""Elections that somebody asks for: preferred or unclean, through ElectLeaders or `/admin/preferred_replica_election`.

KIP-183 and KIP-460. An election that fails is not tried again: whoever asked is told why.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import structlog

from controller import elections
from controller.context import ControllerContext
from controller.handlers import leadership, reassignments
from controller.rounds import Rounds, Step, change, read
from transport.errors import ErrorCode
from transport.messages import ElectionType, ElectLeadersResponse, PartitionError
from transport.metadata import NO_LEADER, TopicPartition
from transport.store import formats, paths
from transport.store.protocol import Delete

log = structlog.get_logger(__name__)


def requested_by_api(
    context: ControllerContext, election_type: ElectionType, partitions: Sequence[tuple[str, int]] | None
) -> Rounds[ElectLeadersResponse]:
    """Elect leaders for the partitions named, or for all; then those that need no election are left out."""
    tps = [TopicPartition(*item) for item in partitions or ()]
    if partitions is None:
        tps = [tp for tp in context.partitions() if tp.topic not in context.deletions]
    results = yield from elect(context, election_type, tps)
    if partitions is None:
        results = [result for result in results if result.error is not ErrorCode.ELECTION_NOT_NEEDED]
    return ElectLeadersResponse(tuple(results))


def requested_in_store(context: ControllerContext) -> Rounds[None]:
    """Run the preferred elections that `/admin/preferred_replica_election` asks for, and delete it, whatever comes.

    Whoever writes it once more meanwhile is seen by the watch.
    """
    [znode] = yield from read([paths.PREFERRED_REPLICA_ELECTION], watch=True)
    if znode is None:
        return
    try:
        tps = formats.decode_partitions(paths.PREFERRED_REPLICA_ELECTION, znode.data)
    except formats.UndecodableZnode as fault:
        log.error("election requests removed: they cannot be decoded, write them again", fault=str(fault))
        tps = ()
    for result in (yield from elect(context, ElectionType.PREFERRED, tps)):
        _log_outcome(result)
    yield from change("requests", [Step(writes=(Delete(paths.PREFERRED_REPLICA_ELECTION, znode.stat.version),))])


def _log_outcome(result: PartitionError) -> None:
    partition = f"{result.topic}-{result.partition}"
    if result.error in (ErrorCode.NONE, ErrorCode.ELECTION_NOT_NEEDED):
        log.info("preferred leader elected", partition=partition, outcome=result.error.name)
    else:
        log.warning("preferred leader not elected", partition=partition, reason=result.message)


def elect(
    context: ControllerContext, election_type: ElectionType, tps: Iterable[TopicPartition]
) -> Rounds[list[PartitionError]]:
    """Elect leaders where that is needed and possible; return an outcome for each partition."""
    refusals = {tp: _refusal(context, election_type, tp) for tp in tps}
    wanted = [tp for tp, refusal in refusals.items() if refusal is None]
    if election_type is ElectionType.PREFERRED:
        yield from leadership.elect(context, wanted, elections.preferred)
    else:
        yield from leadership.elect(context, wanted, elections.offline, unclean={tp.topic for tp in wanted})
        # A move may have waited for nothing but a leader.
        yield from reassignments.finish(context, [tp for tp in wanted if reassignments.may_finish(context, tp)])
    return [refusal or _outcome(context, election_type, tp) for tp, refusal in refusals.items()]


def _refusal(context: ControllerContext, election_type: ElectionType, tp: TopicPartition) -> PartitionError | None:
    if not context.assignment(tp).replicas:
        return PartitionError(*tp, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {tp}")
    if tp.topic in context.deletions:
        return PartitionError(*tp, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {tp.topic} is being deleted")
    if _is_led(context, election_type, tp):
        leader = context.leadership[tp].leader
        return PartitionError(*tp, ErrorCode.ELECTION_NOT_NEEDED, f"broker {leader} leads {tp} already")
    return None


def _is_led(context: ControllerContext, election_type: ElectionType, tp: TopicPartition) -> bool:
    """Whether a partition is led as asked for: by its preferred leader, or by any that is alive."""
    leader = context.leadership[tp].leader if tp in context.leadership else NO_LEADER
    if election_type is ElectionType.PREFERRED:
        return leader == context.assignment(tp).replicas[0]
    return context.is_online(tp, leader)


def _outcome(context: ControllerContext, election_type: ElectionType, tp: TopicPartition) -> PartitionError:
    if not context.assignment(tp).replicas:
        return PartitionError(*tp, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{tp} was deleted meanwhile")
    if _is_led(context, election_type, tp):
        return PartitionError(*tp)
    if election_type is ElectionType.UNCLEAN:
        return PartitionError(*tp, ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, _why_nobody(context, tp))
    return PartitionError(*tp, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, _why_not_preferred(context, tp))


def _why_nobody(context: ControllerContext, tp: TopicPartition) -> str:
    replicas = context.assignment(tp).replicas
    if context.online(tp, replicas):
        return f"the state of {tp} cannot be read or written: see the controller's log"
    return f"no replica of {tp} is alive: start one of the brokers {list(replicas)}"


def _why_not_preferred(context: ControllerContext, tp: TopicPartition) -> str:
    preferred, current = context.assignment(tp).replicas[0], context.leadership.get(tp)
    if current is None or not context.is_online(tp, preferred):
        return f"the preferred leader {preferred} of {tp} is not alive, shuts down or cannot use its log: start it"
    if preferred not in current.isr:
        return (
            f"the preferred leader {preferred} of {tp} is not in the ISR {list(current.isr)}: wait for it to catch up"
        )
    return f"the state of {tp} cannot be read or written: see the controller's log"
