"""The steps of first leaders, elections and shrinks, one partition at a time: the oracle for what is done together."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from controller.model import elections
from controller.model.choosing import candidate
from controller.model.context import ControllerContext
from controller.model.facts import Fact, LeadershipsWritten, PartitionsMoved, ReplicasMoved
from controller.model.rounds import Publication, Step, TellMetadata
from controller.model.state_machines import PartitionPhase, ReplicaPhase
from tests.kit.told import tell_order, tell_stop
from transport.messages import StopReplicaPartition
from transport.metadata import NO_LEADER, LeaderAndIsr, TopicPartition
from transport.store import formats, paths
from transport.store.protocol import Create, Set


def leadership_step(
    tp: TopicPartition, leadership: LeaderAndIsr, publications: Sequence[Publication], *facts: Fact
) -> Step:
    """Return the step that writes a partition's next leadership over the version before it."""
    phase = PartitionPhase.OFFLINE if leadership.leader == NO_LEADER else PartitionPhase.ONLINE
    data = formats.encode_partition_state(leadership)
    return Step(
        subjects=(tp,),
        writes=(Set(paths.partition_state(tp), data, leadership.partition_epoch - 1),),
        facts=(LeadershipsWritten([tp], [leadership]), PartitionsMoved([tp], phase), *facts),
        publications=tuple(publications),
    )


def tell(
    context: ControllerContext,
    tp: TopicPartition,
    leadership: LeaderAndIsr,
    recipients: Sequence[int],
    *,
    new: Sequence[int] = (),
) -> tuple[Publication, ...]:
    """Return LeaderAndIsr for `recipients`, with isNew for those in `new`, and the metadata for every broker."""
    state = context.describe(tp, leadership=leadership)
    known = tuple([r for r in recipients if r not in new])
    told = (tell_order(known, state), tell_order(tuple(new), state, is_new=True))
    return (*(order for order in told if any(order.recipients)), TellMetadata(None, (state,)))


def election_steps(
    context: ControllerContext, tps: Sequence[TopicPartition], strategy: elections.Strategy, unclean: Collection[str]
) -> list[Step]:
    """Return the steps of an election."""
    among = [(tp, candidate(context, tp, unclean=unclean)) for tp in tps]
    chosen = [(tp, one, choice) for tp, one in among if (choice := strategy(one)) is not None]
    won = [(tp, elections.led_by(choice, one.leadership, context.epoch), choice) for tp, one, choice in chosen]
    return [leadership_step(tp, after, tell(context, tp, after, choice.recipients)) for tp, after, choice in won]


def leave_step(context: ControllerContext, tp: TopicPartition, gone: Sequence[int], unclean: Collection[str]) -> Step:
    """Return the step that replaces a missing leader, and takes the replicas on `gone` offline and out of the ISR."""
    replicas = context.assignment(tp).replicas
    leaving = tuple([r for r in replicas if r in gone])
    existing = tuple([r for r in leaving if (tp, r) in context.replica_phases])
    others = [r for r in replicas if r not in gone]
    before, recipients = context.leadership[tp], others
    leader, isr = elections.without_replicas(before, gone)
    is_shrunk = (leader, isr) != (before.leader, before.isr)
    after = elections.led_by(elections.Choice(leader, isr), before, context.epoch) if is_shrunk else None
    if context.partition_phases[tp] is PartitionPhase.OFFLINE:
        choice = elections.offline(candidate(context, tp, replicas, unclean))
        if choice is not None:
            after = elections.led_by(choice, context.leadership[tp], context.epoch)
            recipients = list(choice.recipients)
    moved = ReplicasMoved([tp], [existing], ReplicaPhase.OFFLINE)
    alive = [r for r in leaving if r in context.brokers]
    epoch = (after or context.leadership[tp]).leader_epoch
    stop = StopReplicaPartition(tp.topic, context.topic_id(tp.topic), tp.partition, epoch, delete=False)
    stops = (tell_stop(tuple(alive), stop),) if alive else ()
    if after is None:
        return Step((tp,), facts=(moved,), publications=(TellMetadata(None, (context.describe(tp),)), *stops))
    return leadership_step(tp, after, (*tell(context, tp, after, recipients), *stops), moved)


def creation_step(context: ControllerContext, tp: TopicPartition, *, without_parent: bool) -> Step:
    """Return the step that creates the state of a partition, and its parent if that is missing."""
    online = context.online(tp, context.assignment(tp).replicas)
    first = elections.initial(online, context.epoch)
    assert first is not None
    state = Create(paths.partition_state(tp), formats.encode_partition_state(first))
    return Step(
        subjects=(tp,),
        writes=(Create(paths.partition(tp)), state) if without_parent else (state,),
        facts=(LeadershipsWritten([tp], [first]), PartitionsMoved([tp], PartitionPhase.ONLINE)),
        publications=tell(context, tp, first, (), new=online),
    )
