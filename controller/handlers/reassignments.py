"""Replica reassignment (KIP-455): U stores the target, and replicas are added; B removes the others.

For ORS = {1,2,3} and TRS = {4,5,6} a partition passes through these states in the store:

    RS             AR       RR       leader  ISR             after
    {1,2,3}                          1       {1,2,3}         (before)
    {4,5,6,1,2,3}  {4,5,6}  {1,2,3}  1       {1,2,3}         U1: AR starts to follow, in a new leader epoch
    {4,5,6,1,2,3}  {4,5,6}  {1,2,3}  1       {1,2,3,4,5,6}   ISR: AR caught up, phase B may begin
    {4,5,6,1,2,3}  {4,5,6}  {1,2,3}  4       {1,2,3,4,5,6}   B3: the leader is inside TRS
    {4,5,6,1,2,3}  {4,5,6}  {1,2,3}  4       {4,5,6}         B4: RR has left the ISR, and is stopped
    {4,5,6}                          4       {4,5,6}         B6: RS = TRS, and RR is deleted

Where a live leader is inside TRS already, B3 and B4 have nothing to do: RR leaves the ISR with B6. An assignment and
the leadership that goes with it are always written in one multi, with a record of each replica that is to be deleted.
So whoever reads RS = TRS finds a live leader inside TRS and the ISR without RR; until such a leader is committed, a
move waits. ORS is known until then: the topic's znode is its only durable copy. A controller that resumes a move raises
the leader epoch again (A1), so that AR starts to follow.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Final

from controller.handlers import reassignment_entries, reassignment_znodes, strays
from controller.handlers.leadership import initialise, read_again, refresh, write_choices
from controller.handlers.topics import refresh_topics
from controller.model import choosing, elections, registrations
from controller.model.assignments import AssignmentSteps, Change, Changes, TopicWrite
from controller.model.choosing import decide_all
from controller.model.context import ControllerContext
from controller.model.elections import Choice
from controller.model.facts import TopicWritten
from controller.model.reassignment import beginners, completed, is_caught_up, reassign_to
from controller.model.rounds import Rounds, Step, commit, until_none_is_left
from controller.model.state_machines import PartitionPhase, ReplicaPhase
from transport.log import get_logger
from transport.metadata import NO_LEADER, ReplicaAssignment, TopicPartition
from transport.store import formats, paths
from transport.store.formats import TopicZnode
from transport.store.protocol import Set
from transport.store.requests import weight_of

log = get_logger(__name__)

MAX_PARTITIONS: Final = 500
"""The most partitions of one topic that are written in one multi, together with what accompanies each."""

Targets = Mapping[TopicPartition, tuple[int, ...]]

Choose = Callable[[ControllerContext, TopicPartition, ReplicaAssignment], Choice]
"""Returns how a partition is led under a new assignment, to be committed in the same multi."""


def begin(context: ControllerContext, targets: Targets) -> Rounds[None]:
    """Store new targets of known partitions (U1), then advance each move as far as its ISR allows."""

    def decide(tp: TopicPartition) -> Change | None:
        # The ISR may have changed since the request was validated: a target without a possible leader is not stored.
        if registrations.is_held(context, tp) or not leaves_a_leader(context, tp, targets[tp]):
            return None
        new = _in_safety(context, tp, reassign_to(context.assignment(tp), targets[tp]))
        return change_to(context, tp, new, leads)

    kinds = {tp: (target, context.min_isr(tp.topic)) for tp, target in targets.items()}
    yield from write_assignments(context, "U1", targets, decide, kinds.get)
    yield from reassignment_znodes.identify(context, targets)
    yield from _initialise(context, targets)
    yield from finish_ready(context, targets)


def advance(context: ControllerContext, tps: Iterable[TopicPartition]) -> Rounds[None]:
    """Run phase B for the moves that have caught up, and have the adding replicas of the rest follow (A1)."""
    tps = list(tps)
    yield from _initialise(context, tps)
    led = yield from read_again(context, tps)
    ready = dict.fromkeys(tp for tp in led if may_finish(context, tp))
    behind = [
        tp for tp in led if tp in context.reassigning and tp not in ready and not registrations.is_held(context, tp)
    ]
    yield from write_choices(
        context,
        "A1",
        behind,
        lambda tp: leads(context, tp, context.assignment(tp)),
        lambda pending: [context.assignment(tp) for tp in pending],
    )
    yield from finish(context, list(ready))


def _initialise(context: ControllerContext, tps: Iterable[TopicPartition]) -> Rounds[None]:
    # A New partition has never had a leader to catch up with: any live replica may be the first.
    yield from initialise(context, [tp for tp in tps if context.partition_phases.get(tp) is PartitionPhase.NEW])


def may_finish(context: ControllerContext, tp: TopicPartition) -> bool:
    """Return whether phase B of a move may begin: the ISR covers TRS."""
    is_led = tp in context.reassigning and tp in context.leadership
    return is_led and is_caught_up(context.assignment(tp), context.leadership[tp].isr)


# --- topic znodes: U1 and B6 ------------------------------------------------------------------------------------


def leads(context: ControllerContext, tp: TopicPartition, new: ReplicaAssignment) -> Choice:
    """Return the choice by which a partition is led under an assignment, perhaps a new one, in the next leader epoch.

    Replicas that are not assigned any more leave the ISR and are deleted, under an epoch that is new to them, so that
    they accept the order (KAFKA-13972). One of them that leads is replaced by a replica that stays (KAFKA-14808).
    """
    current = context.leadership[tp]
    stays = current.leader in new.replicas
    leader = current.leader if stays else next(iter(_surviving(context, tp, new)), NO_LEADER)
    isr = tuple(r for r in current.isr if r in new.replicas)
    first = beginners(new, isr)
    others = tuple(r for r in new.replicas if r not in first)
    dropped = tuple(r for r in context.assignment(tp).replicas if r not in new.replicas)
    return Choice(leader, isr, others, first, stopped=dropped, deletes=True)


def change_to(context: ControllerContext, tp: TopicPartition, new: ReplicaAssignment, choose: Choose) -> Change | None:
    """Return what becomes of a partition with a new assignment, None if it has that already."""
    before = context.assignment(tp)
    if new == before:
        return None
    added = tuple(r for r in new.replicas if r not in before.replicas)
    phases = {r: context.replica_phases.get((tp, r)) for r in new.replicas}
    first = tuple(r for r, phase in phases.items() if phase is None)
    begun = tuple(r for r, phase in phases.items() if phase in (None, ReplicaPhase.NEW))
    choice = choose(context, tp, new) if tp in context.leadership else None
    return Change(new, choice, added, first, () if new.is_being_reassigned else begun)


def write_assignments(
    context: ControllerContext,
    name: str,
    tps: Iterable[TopicPartition],
    decide: Callable[[TopicPartition], Change | None],
    kind: Callable[[TopicPartition], Hashable],
) -> Rounds[None]:
    """Write what is decided, up to MAX_PARTITIONS of a topic at a time, or fewer if its znode is large.

    A decision follows from a partition's assignment, its leadership, the live brokers and its `kind`; None leaves it
    unchanged. A znode changed by a concurrent write is read again and the write retried. A topic that has been deleted,
    or whose znodes cannot be decoded or written, is left unchanged. If the state of one partition cannot be written,
    those that were to be written with it are written one by one.
    """
    apart = set[str]()

    def write(pending: list[TopicPartition]) -> Rounds[list[TopicPartition]]:
        now, later = _divided(pending, apart)
        changes = decide_all(context, now, decide, [(_kind(context, tp), kind(tp)) for tp in now])
        by_topic: defaultdict[str, dict[TopicPartition, Change]] = defaultdict(dict)
        for tp, change in zip(now, changes, strict=True):
            if change is not None:
                by_topic[tp.topic][tp] = change
        writes = [_largest_write(context, members) for members in by_topic.values()]
        for members, written in zip(by_topic.values(), writes, strict=True):
            later += list(members)[len(written.changes) :]  # what did not fit into the multi
        rejected = list[Step]()
        refused = yield from commit(name, AssignmentSteps(context, writes), on_rejected=rejected.extend)
        together = [step.subjects for step in rejected if len(step.subjects) > 1]
        apart.update(tps[0].topic for tps in together)
        again = yield from _read_again(context, refused, by_topic)
        return [*again, *later, *chain.from_iterable(together)]

    yield from until_none_is_left(name, tps, write)


def _kind(context: ControllerContext, tp: TopicPartition) -> Hashable:
    return context.assignment(tp), context.replica_phases.of(tp), tp in context.leadership


def _divided(
    pending: Sequence[TopicPartition], apart: Container[str]
) -> tuple[list[TopicPartition], list[TopicPartition]]:
    """Return what one multi of each topic may have, and the rest; a topic `apart` has one partition in each."""
    now, later = list[TopicPartition](), list[TopicPartition]()
    counts = Counter[str]()
    for tp in pending:
        counts[tp.topic] += 1
        (now if counts[tp.topic] <= (1 if tp.topic in apart else MAX_PARTITIONS) else later).append(tp)
    return now, later


def _largest_write(context: ControllerContext, changes: Changes) -> TopicWrite:
    """Return the write of the longest prefix, by halving, of the partitions that fits into a multi with their topic."""
    members = list(changes.items())
    while True:
        write = _topic_write(context, dict(members))
        # One partition cannot be split; requests for topics that would outgrow their znode were refused.
        if len(members) == 1 or weight_of(write.group) <= context.config.request_limits.group:
            return write
        members = members[: len(members) // 2]


def _topic_write(context: ControllerContext, changes: Changes) -> TopicWrite:
    """Return the write of a topic's znode, and for each partition those of its strays, state and reassignment."""
    [name] = {tp.topic for tp in changes}
    known = context.topics[name]
    partitions = {**known.znode.partitions, **{tp.partition: change.assignment for tp, change in changes.items()}}
    topic = TopicWritten(name, TopicZnode(partitions, known.znode.topic_id, known.znode.unknown), known.version + 1)
    write = Set(paths.topic(name), formats.encode_topic(topic.znode), known.version)
    replicas = [step for tp, change in changes.items() for step in _strays(context, tp, change)]
    led = {
        tp: elections.led_by(change.choice, context.leadership[tp], context.epoch)
        for tp, change in changes.items()
        if change.choice is not None
    }
    states = [
        Set(path, formats.encode_partition_state(after), after.partition_epoch - 1)
        for path, after in zip(paths.partition_states(led), led.values(), strict=True)
    ]
    moves = reassignment_znodes.writes_with(context, name, changes)
    group = (write, *chain.from_iterable([step.writes for step in replicas]), *states, *moves)
    return TopicWrite(topic, changes, group, led, tuple(chain.from_iterable([step.facts for step in replicas])))


def _strays(context: ControllerContext, tp: TopicPartition, change: Change) -> Iterator[Step]:
    """Yield the steps that recall strays of a partition, and leave its replicas that are assigned no longer."""
    if change.added and context.strays:
        yield strays.take_back(context, tp, change.added)
    if change.choice is not None and change.choice.stopped:
        yield strays.leave(context, tp, change.choice.stopped)


def leaves_a_leader(context: ControllerContext, tp: TopicPartition, target: Sequence[int]) -> bool:
    """Return whether a replica could lead the partition while it moves to `target`."""
    current = context.assignment(tp)
    # Only a new target for a move in progress abandons replicas at once.
    if tp not in context.leadership or not current.is_being_reassigned:
        return True
    return bool(_surviving(context, tp, reassign_to(current, target)))


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
    context: ControllerContext, refused: Sequence[Step], tried: Mapping[str, Changes]
) -> Rounds[list[TopicPartition]]:
    """Reload the state that refused steps depend on; return the partitions that still have all of it."""
    if not refused:
        return []
    tps = [tp for step in refused for tp in step.subjects]
    # No other znode tells whether a write of the topic alone took effect whose answer was lost.
    alone = [tp for step in refused if len(step.writes) == 1 for tp in step.subjects]
    in_doubt = {tp: tried[tp.topic][tp].assignment for tp in alone}
    found = yield from refresh_topics(context, list(dict.fromkeys(tp.topic for tp in tps)), in_doubt)
    yield from strays.load(context)
    closed = yield from reassignment_znodes.settle(context, found)
    there = [tp for tp in tps if tp.topic in found and tp.topic not in closed]
    led = [tp for tp in there if tp in context.leadership]
    gone = set(led) - set((yield from refresh(context, led)))
    return [tp for tp in there if tp not in gone]


# --- phase B ----------------------------------------------------------------------------------------------------


def finish_ready(context: ControllerContext, tps: Iterable[TopicPartition]) -> Rounds[None]:
    """Finish those moves of `tps` whose ISR covers TRS: a change of leadership may have been all they waited for."""
    moving = yield from read_again(context, [tp for tp in tps if tp in context.reassigning])
    yield from finish(context, [tp for tp in moving if may_finish(context, tp)])


def finish(context: ControllerContext, tps: Sequence[TopicPartition]) -> Rounds[None]:
    """End moves whose ISR covers TRS (B6), as soon as a live replica of TRS leads."""

    def decide(tp: TopicPartition) -> Change | None:
        is_over = may_finish(context, tp) and _led_inside_target(context, tp)
        return change_to(context, tp, completed(context.assignment(tp)), leads) if is_over else None

    yield from _lead_inside_target(context, [tp for tp in tps if not _led_inside_target(context, tp)])
    yield from write_assignments(context, "B6", tps, decide, lambda _: None)
    # B7 also removes entries that finished earlier, when the remaining entries were too large to write.
    yield from reassignment_entries.rewrite(context, partial(reassignment_entries.is_done, context))


def _lead_inside_target(context: ControllerContext, tps: Sequence[TopicPartition]) -> Rounds[None]:
    """Elect leaders inside TRS (B3), and take RR out of the ISRs (B4); a move without a live candidate waits."""

    def elect(tp: TopicPartition) -> elections.Choice | None:
        return elections.reassign(choosing.candidate(context, tp, context.assignment(tp).target_replicas))

    def retire(tp: TopicPartition) -> elections.Choice | None:
        removing = context.assignment(tp).removing_replicas
        return choosing.without(context, tp, removing) if _led_inside_target(context, tp) else None

    def kinds(pending: Sequence[TopicPartition]) -> list[tuple[int, ...]]:
        return [context.assignment(tp).target_replicas for tp in pending]

    reached = [tp for tp in tps if not registrations.is_held(context, tp)]
    for held in [tp for tp in tps if registrations.is_held(context, tp)]:
        log.warning("move waits: the registration of the leader cannot be used", partition=str(held))
    able = dict.fromkeys(tp for tp in reached if _surviving(context, tp, completed(context.assignment(tp))))
    for waiting in [tp for tp in reached if tp not in able]:
        log.warning("move waits: no live member of the ISR in the target", partition=str(waiting))
    yield from write_choices(context, "B3", able, elect, kinds)
    yield from write_choices(context, "B4", [tp for tp in able if _led_inside_target(context, tp)], retire, kinds)


def _led_inside_target(context: ControllerContext, tp: TopicPartition) -> bool:
    leader = context.leadership[tp].leader
    return context.is_online(tp, leader) and leader in context.assignment(tp).target_replicas
