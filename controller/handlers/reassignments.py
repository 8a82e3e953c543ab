"""Replica reassignment (KIP-455): U stores the target, A adds replicas, B removes the others.

For ORS = {1,2,3} and TRS = {4,5,6} a partition passes through these states in the store:

    RS             AR       RR       leader  ISR             after
    {1,2,3}                          1       {1,2,3}         (before)
    {4,5,6,1,2,3}  {4,5,6}  {1,2,3}  1       {1,2,3}         U1, A1, A2: AR starts to follow
    {4,5,6,1,2,3}  {4,5,6}  {1,2,3}  1       {1,2,3,4,5,6}   AR caught up: phase B may begin
    {4,5,6,1,2,3}  {4,5,6}  {1,2,3}  4       {1,2,3,4,5,6}   B3: the leader is inside TRS
    {4,5,6,1,2,3}  {4,5,6}  {1,2,3}  4       {4,5,6}         B4: RR has left the ISR; then B5: RR is deleted
    {4,5,6}                          4       {4,5,6}         B6: RS = TRS, written last

RS = TRS is written last because until then the topic's znode is the only durable copy of ORS. Kafka's step B2, which
changes memory first, does not exist here: B3 and B4 send RS = TRS to the brokers, and the context changes when B6 is
committed. B4 deletes nothing, and begins only once a live leader inside TRS is committed; until then the move waits.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final

from attrs import evolve

from controller.handlers import reassignment_entries, reassignment_znodes, strays
from controller.handlers.leadership import (
    initialise,
    leadership_step,
    read_again,
    refresh,
    stop_replicas,
    tell,
    write_leadership,
)
from controller.handlers.metadata import publish
from controller.handlers.topics import refresh_topics
from controller.model import elections
from controller.model.choosing import candidate
from controller.model.context import ControllerContext
from controller.model.facts import ReplicaMoved, TopicWritten
from controller.model.reassignment import beginners, completed, is_caught_up, reassign_to
from controller.model.rounds import Rounds, Step, TellLeaderAndIsr, change, until_none_is_left
from controller.model.state_machines import PartitionPhase, ReplicaPhase
from transport.log import get_logger
from transport.metadata import LeaderAndIsr, ReplicaAssignment, TopicPartition
from transport.store import formats, paths
from transport.store.protocol import Set
from transport.store.requests import weight_of

log = get_logger(__name__)

MAX_PARTITIONS: Final = 500
"""The most partitions of one topic that are written in one multi, together with what accompanies each."""

Targets = Mapping[TopicPartition, tuple[int, ...]]

Alongside = Callable[[ControllerContext, TopicPartition, ReplicaAssignment], Sequence[Step]]
"""Returns the steps to commit in the same multi as a partition's new assignment."""


def begin(context: ControllerContext, targets: Targets) -> Rounds[None]:
    """Store new targets of known partitions (U1), then advance each move as far as its ISR allows."""

    def wanted(tp: TopicPartition) -> ReplicaAssignment:
        current = context.assignment(tp)
        new = reassign_to(current, targets[tp])
        # The ISR may have changed since the request was validated: a target without a possible leader is not stored.
        return _in_safety(context, tp, new) if leaves_a_leader(context, tp, new) else current

    yield from write_assignments(context, "U1", list(targets), wanted, _settle_strays)
    yield from reassignment_znodes.identify(context, targets)
    yield from advance(context, list(targets))


def advance(context: ControllerContext, tps: Iterable[TopicPartition]) -> Rounds[None]:
    """Run phase B for the partitions that have caught up and phase A for the rest. Idempotent, as failover requires."""
    tps = list(tps)
    # A New partition has never had a leader to catch up with: any live replica may be the first.
    yield from initialise(context, [tp for tp in tps if context.partition_phases.get(tp) is PartitionPhase.NEW])
    led = yield from read_again(context, tps)
    ready = dict.fromkeys(tp for tp in led if is_ready(context, tp))
    yield from _bring_in(context, [tp for tp in led if tp not in ready])
    yield from finish(context, list(ready))


def is_ready(context: ControllerContext, tp: TopicPartition) -> bool:
    """Return whether phase B may begin: the partition is not being reassigned, or the ISR covers TRS."""
    assignment = context.assignment(tp)
    return not assignment.is_being_reassigned or is_caught_up(assignment, context.leadership[tp].isr)


def may_finish(context: ControllerContext, tp: TopicPartition) -> bool:
    """Return whether a partition is being reassigned and phase B may begin."""
    return tp in context.reassigning and tp in context.leadership and is_ready(context, tp)


# --- topic znodes: U1 and B6 ------------------------------------------------------------------------------------


def write_assignments(
    context: ControllerContext,
    name: str,
    tps: Sequence[TopicPartition],
    wanted: Callable[[TopicPartition], ReplicaAssignment],
    alongside: Alongside,
) -> Rounds[None]:
    """Write the assignments that differ, up to MAX_PARTITIONS of a topic at a time, or fewer if its znode is large.

    A znode changed by a concurrent write is read again and the write retried. A topic that has been deleted, or whose
    znodes cannot be decoded or written, is left unchanged.
    """

    def write(pending: list[TopicPartition]) -> Rounds[list[TopicPartition]]:
        by_topic: defaultdict[str, dict[TopicPartition, ReplicaAssignment]] = defaultdict(dict)
        later = []
        for tp in pending:
            if len(by_topic[tp.topic]) == MAX_PARTITIONS:
                later.append(tp)  # the multi of this topic is full
            elif (assignment := wanted(tp)) != context.assignment(tp):
                by_topic[tp.topic][tp] = assignment
        steps = []
        for name_of_topic, assignments in by_topic.items():
            if assignments:
                steps.append(_largest_step(context, name_of_topic, assignments, alongside))
                later += list(assignments)[len(steps[-1].subjects) :]  # what did not fit into the multi
        refused = yield from change(name, steps)
        # No other znode tells whether a write of the topic alone took effect whose answer was lost.
        alone = {tp: by_topic[tp.topic][tp] for step in refused if len(step.writes) == 1 for tp in step.subjects}
        again = yield from _read_again(context, [tp for step in refused for tp in step.subjects], alone)
        return [*again, *later]

    yield from until_none_is_left(name, tps, write)


def _largest_step(
    context: ControllerContext, name: str, assignments: Mapping[TopicPartition, ReplicaAssignment], alongside: Alongside
) -> Step:
    """Return the step for the longest prefix, by halving, of the partitions that fits into a multi with their topic."""
    members = list(assignments.items())
    while True:
        step = _topic_step(context, name, dict(members), alongside)
        # One partition cannot be split; requests for topics that would outgrow their znode were refused.
        if len(members) == 1 or weight_of(step.writes) <= context.config.request_limits.group:
            return step
        members = members[: len(members) // 2]


def _topic_step(
    context: ControllerContext, name: str, assignments: Mapping[TopicPartition, ReplicaAssignment], alongside: Alongside
) -> Step:
    known = context.topics[name]
    partitions = {**known.znode.partitions, **{tp.partition: a for tp, a in assignments.items()}}
    znode = evolve(known.znode, partitions=partitions)
    write = Set(paths.topic(name), formats.encode_topic(znode), known.version)
    moves = reassignment_znodes.writes_with(context, name, assignments)
    extras = [extra for item in assignments.items() for extra in alongside(context, *item)]
    return Step(
        tuple(assignments),
        writes=(write, *(write for extra in extras for write in extra.writes), *moves),
        facts=(TopicWritten(name, znode, known.version + 1), *(fact for extra in extras for fact in extra.facts)),
        publications=tuple(publication for extra in extras for publication in extra.publications),
    )


def _settle_strays(context: ControllerContext, tp: TopicPartition, new: ReplicaAssignment) -> list[Step]:
    """Return the steps that accompany a new target: recall strays it needs again, drop replicas it abandons."""
    steps = [strays.take_back(context, tp, new.replicas)]
    dropped = tuple(r for r in context.assignment(tp).replicas if r not in new.replicas)
    if dropped and tp in context.leadership:
        steps += [strays.leave(context, tp, dropped), _drop(context, tp, new, dropped)]
    return steps


def _drop(context: ControllerContext, tp: TopicPartition, new: ReplicaAssignment, dropped: tuple[int, ...]) -> Step:
    """Return the step that drops the replicas abandoned by an override or a cancellation.

    The multi with the new target also shrinks the ISR, and moves leadership to a replica that stays (KAFKA-14808).
    """
    current = context.leadership[tp]
    # The leader stays if the target keeps it; otherwise `leaves_a_leader` has made sure of a survivor.
    leader = current.leader if current.leader in new.replicas else _surviving(context, tp, new)[0]
    isr = tuple(r for r in current.isr if r in new.replicas)
    leadership = elections.next_epoch(current, context.epoch, leader=leader, isr=isr)
    stop = stop_replicas(context, tp, dropped, leadership, delete=True)
    told = tell(context, tp, leadership, new.replicas, new=beginners(new, isr), assignment=new)
    return leadership_step(tp, leadership, (*told, stop))


def _leave_strays(context: ControllerContext, tp: TopicPartition, new: ReplicaAssignment) -> list[Step]:
    """Return the step that accompanies RS = TRS: removed replicas are strays until their brokers delete them."""
    return [strays.leave(context, tp, [r for r in context.assignment(tp).replicas if r not in new.replicas])]


def leaves_a_leader(context: ControllerContext, tp: TopicPartition, new: ReplicaAssignment) -> bool:
    """Return whether a replica of `new`, which may abandon others, could still lead the partition."""
    # Only a new target for a move in progress abandons replicas at once.
    if tp not in context.leadership or not context.assignment(tp).is_being_reassigned:
        return True
    return bool(_surviving(context, tp, new))


def _in_safety(context: ControllerContext, tp: TopicPartition, new: ReplicaAssignment) -> ReplicaAssignment:
    """Return `new`, or a move back in its place if cancelling at once would leave the ISR too small for acks=all.

    During the move back, abandoned replicas that are in the ISR stay until the original replicas have caught up.
    """
    # Only a cancellation ends the move at once; a new target keeps ORS until its own phase B.
    if new.is_being_reassigned or not context.assignment(tp).is_being_reassigned or tp not in context.leadership:
        return new
    isr = context.leadership[tp].isr
    left = [r for r in isr if r in new.replicas]
    # An ISR that is below min.insync.replicas already only must not shrink.
    if len(left) >= min(context.min_isr(tp.topic), len(isr)):
        return new
    helpers = tuple(r for r in isr if r not in new.replicas)
    log.info("cancelled by moving back: too few of the ISR would remain", partition=str(tp), left=left, kept=helpers)
    return ReplicaAssignment((*new.replicas, *helpers), (), helpers)


def _surviving(context: ControllerContext, tp: TopicPartition, new: ReplicaAssignment) -> tuple[int, ...]:
    """Return the replicas of `new` that could lead at once: online and in the ISR."""
    isr = context.leadership[tp].isr
    return tuple(r for r in context.online(tp, new.replicas) if r in isr)


def _read_again(
    context: ControllerContext, tps: Sequence[TopicPartition], in_doubt: Mapping[TopicPartition, ReplicaAssignment]
) -> Rounds[list[TopicPartition]]:
    """Reload the state that refused steps depend on; return the partitions that still have all of it."""
    if not tps:
        return []
    found = yield from refresh_topics(context, list(dict.fromkeys(tp.topic for tp in tps)), in_doubt)
    yield from strays.load(context)
    closed = yield from reassignment_znodes.settle(context, found)
    there = [tp for tp in tps if tp.topic in found and tp.topic not in closed]
    led = [tp for tp in there if tp in context.leadership]
    gone = set(led) - set((yield from refresh(context, led)))
    return [tp for tp in there if tp not in gone]


# --- phase A ----------------------------------------------------------------------------------------------------


def _bring_in(context: ControllerContext, tps: Sequence[TopicPartition]) -> Rounds[None]:
    """Have the adding replicas follow: A1 bumps the leader epoch, A2 makes them NewReplica."""

    def bump(pending: Sequence[TopicPartition]) -> list[Step]:
        steps = []
        for tp in pending:
            assignment = context.assignment(tp)
            leadership = elections.next_epoch(context.leadership[tp], context.epoch)
            told = tell(context, tp, leadership, assignment.replicas, new=beginners(assignment, leadership.isr))
            steps.append(leadership_step(tp, leadership, told))
        return steps

    bumped = yield from write_leadership(context, "A1", tps, bump)
    yield from change("A2", [_new_replicas(context, tp) for tp in bumped])


def _new_replicas(context: ControllerContext, tp: TopicPartition) -> Step:
    assignment = context.assignment(tp)
    unknown = [r for r in assignment.adding_replicas if (tp, r) not in context.replica_phases]
    new = beginners(assignment, context.leadership[tp].isr)
    return Step(
        subjects=(tp,),
        facts=tuple(ReplicaMoved((tp, r), ReplicaPhase.NEW) for r in unknown),
        publications=(TellLeaderAndIsr(new, context.describe(tp), is_new=True),),
    )


# --- phase B ----------------------------------------------------------------------------------------------------


def finish_ready(context: ControllerContext, tps: Iterable[TopicPartition]) -> Rounds[None]:
    """Finish those moves of `tps` whose ISR covers TRS: a change of leadership may have been all they waited for."""
    moving = yield from read_again(context, [tp for tp in tps if tp in context.reassigning])
    yield from finish(context, [tp for tp in moving if may_finish(context, tp)])


def finish(context: ControllerContext, tps: Sequence[TopicPartition]) -> Rounds[None]:
    """Remove the removing replicas of partitions whose ISR covers TRS."""

    def retire(pending: Sequence[TopicPartition]) -> list[Step]:
        return [_retire(context, tp) for tp in _ready_to_retire(context, pending)]

    yield from change("B1", [_online(context, tp) for tp in tps])
    led = yield from write_leadership(context, "B3", tps, lambda pending: _lead_inside_target(context, pending))
    retired = yield from write_leadership(context, "B4", _ready_to_retire(context, led), retire)
    # Looked at again after each round: a write that the store refused was decided again, perhaps with another leader.
    ready = _ready_to_retire(context, retired)
    yield from change("B5", [_delete(context, tp) for tp in ready])
    yield from write_assignments(context, "B6", ready, lambda tp: completed(context.assignment(tp)), _leave_strays)
    # B7 also removes entries that finished earlier, when the remaining entries were too large to write.
    yield from reassignment_entries.rewrite(context, partial(reassignment_entries.is_done, context))
    done = [tp for tp in ready if tp in context.leadership]
    yield from publish(context, "B8", done)


def _online(context: ControllerContext, tp: TopicPartition) -> Step:
    assignment, phases = context.assignment(tp), context.replica_phases
    adding = assignment.adding_replicas
    new = tuple(ReplicaMoved((tp, r), ReplicaPhase.NEW) for r in adding if (tp, r) not in phases)
    # An earlier move may have added what this one keeps: such a replica is NewReplica, and not adding any more.
    kept = [r for r in assignment.target_replicas if phases.get((tp, r)) is ReplicaPhase.NEW and r not in adding]
    return Step((tp,), facts=(*new, *(ReplicaMoved((tp, r), ReplicaPhase.ONLINE) for r in (*adding, *kept))))


def _lead_inside_target(context: ControllerContext, tps: Sequence[TopicPartition]) -> list[Step]:
    """B3: elect a leader inside TRS, or bump the epoch if a live one leads already; send RS = TRS to TRS."""
    settled = dict.fromkeys(tp for tp in tps if _led_inside_target(context, tp))
    open_ = [tp for tp in tps if tp not in settled]
    among = [candidate(context, tp, context.assignment(tp).target_replicas) for tp in open_]
    result = elections.elect(among, elections.reassign, context.epoch)
    for waiting in result.failed:
        if waiting.tp in context.reassigning:
            log.warning("move waits: no live member of the ISR in the target", partition=str(waiting.tp))
    bumped = [(tp, elections.next_epoch(context.leadership[tp], context.epoch)) for tp in settled]
    return [_told_target(context, tp, new) for tp, new in (*((e.tp, e.leadership) for e in result.elected), *bumped)]


def _told_target(context: ControllerContext, tp: TopicPartition, leadership: LeaderAndIsr) -> Step:
    target = completed(context.assignment(tp))
    return leadership_step(tp, leadership, tell(context, tp, leadership, target.replicas, assignment=target))


def _led_inside_target(context: ControllerContext, tp: TopicPartition) -> bool:
    leader = context.leadership[tp].leader
    return context.is_online(tp, leader) and leader in context.assignment(tp).target_replicas


def _ready_to_retire(context: ControllerContext, tps: Iterable[TopicPartition]) -> list[TopicPartition]:
    """Return the partitions that are not being reassigned, or whose committed leader is online and inside TRS."""
    plain = [tp for tp in tps if tp not in context.reassigning]
    return [*plain, *(tp for tp in tps if may_finish(context, tp) and _led_inside_target(context, tp))]


def _retire(context: ControllerContext, tp: TopicPartition) -> Step:
    """B4: remove RR from the ISR, under an epoch new to RR, so that RR accepts StopReplica (KAFKA-13972)."""
    target, removing = completed(context.assignment(tp)), context.assignment(tp).removing_replicas
    moved = tuple(ReplicaMoved((tp, r), ReplicaPhase.OFFLINE) for r in context.existing(tp, removing))
    shrunk = elections.without_replicas(context.leadership[tp], removing, context.epoch)
    leadership = shrunk or context.leadership[tp]
    stop = stop_replicas(context, tp, removing, leadership, delete=False)
    # The removing replicas are not in the ISR any more: only the order to stop remains.
    if shrunk is None:
        return Step((tp,), facts=moved, publications=(stop,))
    told = tell(context, tp, leadership, target.replicas, assignment=target)
    return leadership_step(tp, leadership, (*told, stop), *moved)


_LAST_PHASES = (ReplicaPhase.DELETION_STARTED, ReplicaPhase.DELETION_SUCCESSFUL, ReplicaPhase.NON_EXISTENT)


def _delete(context: ControllerContext, tp: TopicPartition) -> Step:
    removing = context.assignment(tp).removing_replicas
    stop = stop_replicas(context, tp, removing, context.leadership[tp], delete=True)
    # A move whose last write failed deletes its replicas again.
    facts = tuple(ReplicaMoved((tp, r), phase) for r in context.existing(tp, removing) for phase in _LAST_PHASES)
    return Step((tp,), facts=facts, publications=(stop,))
