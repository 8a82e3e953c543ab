"""Strays: replicas that remain to be deleted, recorded durably until their broker has deleted them.

A topic's znode no longer lists the replicas removed by a completed reassignment or abandoned by an override, and a
removed topic has no znode at all. Each replica whose broker must still delete it is recorded below `/klamm/strays`, in
the same multi if there is one. Its broker is sent the order again by every new controller, whenever it starts, and
some time after it failed to delete the replica. The record is removed when the broker has answered. So no log is left
behind if a broker was down, or the controller died, at the wrong moment.

Orders to brokers of Kafka's have no topic id. While their own controller was in office, it may have started a replica
of the same name on the same broker, which an order from before would delete. So a record from before is only kept
where no such replica is assigned now.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import chain

from attrs import evolve

from controller.handlers import leadership
from controller.model.context import ControllerContext
from controller.model.facts import (
    DeletionAnswered,
    ReplicasMoved,
    StrayFailed,
    StrayGone,
    StrayIgnored,
    StrayLeft,
    StrayOrdered,
    StrayRecalled,
)
from controller.model.namesakes import that_waited
from controller.model.rounds import (
    Rounds,
    Step,
    TellLeaderAndIsr,
    TellMetadata,
    TellStopReplica,
    apply,
    children,
    commit,
    commit_each,
    existing,
    logged,
    read,
    until_none_is_left,
)
from controller.model.state_machines import PartitionPhase, ReplicaPhase
from transport.log import get_logger
from transport.messages import StopReplicaPartition
from transport.metadata import EPOCH_DURING_DELETE, Stray, TopicPartition
from transport.store import paths
from transport.store.chunks import plan_chunks
from transport.store.protocol import ANY_VERSION, Check, Create, Delete, Op

log = get_logger(__name__)


def leave(context: ControllerContext, tp: TopicPartition, brokers: Iterable[int]) -> Step:
    """Return the step that records the replicas of a partition on brokers as strays."""
    new = [stray for stray in _named(context, tp, brokers) if stray not in context.strays]
    epoch = context.leadership[tp].leader_epoch if tp in context.leadership else EPOCH_DURING_DELETE
    return Step(
        writes=tuple([_record(context, stray) for stray in new]), facts=tuple([StrayLeft(s, epoch) for s in new])
    )


def _record(context: ControllerContext, stray: Stray) -> Op:
    """Return the operation after which a stray is recorded: it may be still, from an earlier time."""
    path = paths.stray(stray)
    return Check(path, ANY_VERSION) if stray in context.closed.strays else Create(path)


def take_back(context: ControllerContext, tp: TopicPartition, brokers: Iterable[int]) -> Step:
    """Return the step that recalls strays on brokers where a partition will have replicas again."""
    return _recall([stray for stray in _named(context, tp, brokers) if stray in context.strays])


def _named(context: ControllerContext, tp: TopicPartition, brokers: Iterable[int]) -> list[Stray]:
    topic_id = context.topic_id(tp.topic)
    return [Stray(topic_id, *tp, broker_id) for broker_id in brokers]


def leave_all(context: ControllerContext, tp: TopicPartition) -> Step:
    """Return the step that records all replicas of a partition of a deleted topic as strays, and stops them."""
    replicas = context.assignment(tp).replicas
    topic_id = context.topic_id(tp.topic)
    partition = StopReplicaPartition(tp.topic, topic_id, tp.partition, EPOCH_DURING_DELETE, delete=True)
    stop = TellStopReplica([replicas], [partition])
    return evolve(leave(context, tp, replicas), subjects=(tp,), publications=(stop,))


def take_back_assigned(context: ControllerContext) -> Rounds[None]:
    """Recall strays that an assignment lists: their topic was created again under its earlier id.

    Where an ACL keeps the record, the stray is ignored: an order to delete it would delete the assigned replica.
    """

    def recall(pending: list[Stray]) -> Rounds[list[Stray]]:
        steps = {stray: _recall([stray]) if stray in context.strays else _removal([stray]) for stray in pending}
        kept = list[Stray]()
        stale = yield from commit_each("strays", steps, on_rejected=kept.extend)
        yield from _ignore([stray for stray in kept if stray in context.strays], StrayRecalled)
        if stale:
            yield from load(context)
        return [stray for stray in stale if stray in context.strays or stray in context.closed.strays]

    known = chain(context.strays, context.closed.strays)
    yield from until_none_is_left("strays", [stray for stray in known if _is_assigned(context, stray)], recall)


def _is_assigned(context: ControllerContext, stray: Stray) -> bool:
    """Return whether a partition has its replica where a stray is, so that the stray is that replica."""
    is_there = stray.broker_id in context.assignment(stray.tp).replicas
    return is_there and context.topic_id(stray.topic) == stray.topic_id


def _ignore(strays: Sequence[Stray], fact: type[StrayRecalled | StrayGone]) -> Rounds[None]:
    """Ignore strays with records that an ACL keeps in the store, as if they were recalled or gone."""
    text = "a replica is needed again, and the record by which it would be deleted stays: it is not deleted"
    for stray in strays:
        log.error(text, partition=str(stray.tp), broker=stray.broker_id, path=paths.stray(stray))
    yield from apply("strays", [Step(facts=(fact(stray), StrayIgnored(stray))) for stray in strays])


def load(context: ControllerContext) -> Rounds[None]:
    """Load the strays from the store."""
    yield from load_named(context, (yield from children(paths.STRAYS)))


def load_named(context: ControllerContext, names: Iterable[str]) -> Rounds[None]:
    """Take the strays that have these names in the store for all that there are."""
    found = dict.fromkeys(stray for name in names if (stray := paths.parse_stray(name)) is not None)
    known = {**context.strays, **context.closed.strays}
    gone = [StrayGone(stray) for stray in known if stray not in found]
    left = [StrayLeft(stray) for stray in found if stray not in known]
    yield from apply("observed", [Step(facts=(*gone, *left))])


def judge_older(context: ControllerContext) -> Rounds[None]:
    """Judge the records from before Kafka's controller was last in office: drop those whose replica is assigned now.

    The others are written anew, which says that they have been judged: a replica that is assigned to their broker later
    will wait for the deletion.
    """

    def judge(pending: list[Stray]) -> Rounds[list[Stray]]:
        older = yield from _older(pending)
        uncertain = yield from _set_aside(context, older)
        assigned = {stray for stray in older if stray.broker_id in context.assignment(stray.tp).replicas}
        dropped = {stray for stray in older if stray in assigned or stray.topic in uncertain}
        steps = {stray: _drop(stray) if stray in dropped else _renew(stray) for stray in older}
        kept = list[Stray]()
        stale = yield from commit_each("strays", steps, on_rejected=kept.extend)
        # One that could not be renewed is judged again by the next controller.
        yield from _ignore([stray for stray in kept if stray in dropped], StrayGone)
        if stale:
            yield from load(context)
        return [stray for stray in stale if stray in context.strays]

    if context.config.kafka:
        yield from until_none_is_left("strays", list(context.strays), judge)


def _older(strays: Sequence[Stray]) -> Rounds[list[Stray]]:
    """Return the strays that were recorded before our `/controller`, which outlives each of our controllers."""
    if not strays:
        return []
    holder, *found = yield from read([paths.CONTROLLER, *map(paths.stray, strays)])
    recorded = [(stray, znode.stat.czxid) for stray, znode in zip(strays, found, strict=True) if znode is not None]
    return [stray for stray, czxid in recorded if holder is None or czxid < holder.stat.czxid]


def _set_aside(context: ControllerContext, strays: Sequence[Stray]) -> Rounds[frozenset[str]]:
    """Return the topics of strays which exist, but whose assignment is not known."""
    unknown = dict.fromkeys(stray.topic for stray in strays if stray.topic not in context.topics)
    return frozenset((yield from existing(paths.topic, unknown)))


def _drop(stray: Stray) -> Step:
    text = "a replica is no longer deleted: Kafka's controller may have started one of the same name there since"
    log.warning(text, partition=str(stray.tp), broker=stray.broker_id, topic_id=stray.topic_id)
    return _removal([stray])


def _removal(strays: Sequence[Stray]) -> Step:
    return Step(writes=_deletes(strays), facts=tuple(map(StrayGone, strays)))


def _renew(stray: Stray) -> Step:
    return Step(writes=(*_deletes([stray]), Create(paths.stray(stray))))


def pursue(context: ControllerContext, brokers: Collection[int] | None = None) -> Rounds[None]:
    """Tell `brokers`, by default all that are alive, to delete their strays."""
    yield from take_back_assigned(context)
    wanted = context.brokers if brokers is None else brokers
    told = [stray for stray in context.strays if stray.broker_id in wanted]
    failed = [stray for stray in told if stray in context.strays.failed]
    again = tuple(StrayOrdered(stray) for stray in failed)
    stops = TellStopReplica([(stray.broker_id,) for stray in told], [_stop(context, stray) for stray in told])
    orders = _refused_before(context, failed)
    yield from apply("strays", [Step(facts=again, publications=(stops, *orders))] if told else [])


def _refused_before(context: ControllerContext, failed: Sequence[Stray]) -> list[TellLeaderAndIsr]:
    """Return the orders that a broker has refused if it still has the log of an earlier topic of the same name.

    Replicas on brokers of Kafka's are not told to start before, see `namesakes`.
    """
    if context.config.kafka:
        return []
    later = [stray for stray in failed if context.has_namesake(stray) and stray.tp in context.leadership]
    return [
        TellLeaderAndIsr([(stray.broker_id,)], [context.describe(stray.tp)])
        for stray in later
        if stray.broker_id in context.assignment(stray.tp).replicas
    ]


def _stop(context: ControllerContext, stray: Stray) -> StopReplicaPartition:
    tp = stray.tp
    topic = context.topics.get(stray.topic)
    # If the stray's topic is deleted, recreated or without leadership, there is no leader epoch to send.
    is_same = topic is not None and topic.znode.topic_id == stray.topic_id and tp in context.leadership
    epoch = context.leadership[tp].leader_epoch if is_same else EPOCH_DURING_DELETE
    return StopReplicaPartition(stray.topic, stray.topic_id, stray.partition, epoch, delete=True)


def deleted(context: ControllerContext, deletions: Sequence[tuple[Stray, int]]) -> Rounds[None]:
    """Forget strays that their broker has deleted.

    The answer may belong to an order from before the replica was recalled and abandoned again. U1 incremented the
    leader epoch in between, so an order with an earlier epoch than the stray's is not about this stray.
    """
    gone = [stray for stray, epoch in deletions if stray in context.strays and _is_over(context.strays[stray], epoch)]
    limits = context.config.request_limits
    chunks = plan_chunks([_deletes([stray]) for stray in gone], max_ops=limits.operations, max_bytes=limits.chunk)
    parts = [tuple(map(gone.__getitem__, chunk)) for chunk in chunks]
    removals = {part: _removal(part) for part in parts}
    again = logged("replicas that are deleted stay recorded, and the order to delete them is repeated later")
    stale = yield from commit_each("deleted", removals, on_rejected=again)
    # A record that is gone already refuses its whole part.
    alone = [stray for part in stale for stray in part]
    if (yield from commit("deleted", [_removal([stray]) for stray in alone], on_rejected=again)):
        yield from load(context)
    yield from _start(context, that_waited(context, gone))
    yield from answered(context, [stray for stray, _ in deletions])


def _start(context: ControllerContext, replicas: Sequence[tuple[TopicPartition, int]]) -> Rounds[None]:
    """Start replicas that waited for the deletion of their namesakes, and elect leaders that this makes possible."""
    kept = (ReplicaPhase.ONLINE, ReplicaPhase.OFFLINE)  # the others are not begun yet, or their topic is being deleted
    able = [replica for replica in replicas if context.is_served(*replica)]
    steps = [_starting(context, *replica) for replica in able if context.replica_phases.get(replica) in kept]
    yield from apply("start", steps)
    if replicas:
        yield from leadership.bring_online(context)


def _starting(context: ControllerContext, tp: TopicPartition, broker_id: int) -> Step:
    online = ReplicasMoved.on(broker_id, [tp], ReplicaPhase.ONLINE)
    # A partition that no leader has been elected for yet: its election orders the replica to start.
    if tp not in context.leadership:
        return Step((tp,), facts=(online,))
    state = context.describe(tp)
    order = TellLeaderAndIsr([(broker_id,)], [state], is_new=True)
    return Step((tp,), facts=(online,), publications=(order, TellMetadata(None, (state,))))


def not_deleted(context: ControllerContext, replicas: Sequence[Stray]) -> Rounds[None]:
    """Record strays that their broker could not delete."""
    for tp, broker_id in sorted(stray.replica for stray in replicas if stray.replica in context.waiting):
        text = "a replica cannot start: its broker could not delete the log of an earlier topic of the same name"
        log.error(text, partition=str(tp), broker=broker_id)
    failed = tuple(StrayFailed(stray) for stray in replicas if stray in context.strays)
    yield from apply("answered", [Step(facts=failed)] if failed else [])
    yield from answered(context, replicas)


def answered(context: ControllerContext, told: Iterable[Stray]) -> Rounds[None]:
    """Allow recalled replicas to lead uncleanly again once their brokers have answered the orders to delete them."""
    recalled = context.strays.recalled
    over = {stray.replica: stray for stray in told if stray.replica in recalled} if recalled else {}
    if over:
        yield from apply("answered", [Step(facts=(DeletionAnswered(stray),)) for stray in over.values()])
        leaderless = [tp for tp, _ in over if context.partition_phases.get(tp) is PartitionPhase.OFFLINE]
        yield from leadership.elect_leaders(context, leaderless)


def are_recorded(context: ControllerContext, deletions: Sequence[tuple[Stray, int]]) -> bool:
    """Return whether strays are still recorded that their broker has deleted: an ACL keeps the records."""
    return any(stray in context.strays and _is_over(context.strays[stray], epoch) for stray, epoch in deletions)


def _is_over(left_at: int, obeyed: int) -> bool:
    return obeyed == EPOCH_DURING_DELETE or obeyed >= left_at


def _recall(strays: Sequence[Stray]) -> Step:
    return Step(writes=_deletes(strays), facts=tuple(map(StrayRecalled, strays)))


def _deletes(strays: Sequence[Stray]) -> tuple[Delete, ...]:
    return tuple(Delete(paths.stray(stray)) for stray in strays)
