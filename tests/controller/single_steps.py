"""The steps of first leaders, elections and shrinks, one partition at a time: the oracle for what is done together."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from controller.handlers.leadership import leadership_step, tell
from controller.model import elections
from controller.model.choosing import candidate, candidates
from controller.model.context import ControllerContext
from controller.model.facts import LeadershipsWritten, PartitionsMoved, ReplicasMoved
from controller.model.rounds import Step, TellMetadata, TellStopReplica
from controller.model.state_machines import PartitionPhase, ReplicaPhase
from transport.messages import StopReplicaPartition
from transport.metadata import TopicPartition
from transport.store import formats, paths
from transport.store.protocol import Create


def election_steps(
    context: ControllerContext, tps: Sequence[TopicPartition], strategy: elections.Strategy, unclean: Collection[str]
) -> list[Step]:
    """Return the steps of an election."""
    among = candidates(context, tps, unclean)
    chosen = [(one, choice) for one in among if (choice := strategy(one)) is not None]
    won = [(one.tp, elections.led_by(choice, one.leadership, context.epoch), choice) for one, choice in chosen]
    return [leadership_step(tp, after, tell(context, tp, after, choice.recipients)) for tp, after, choice in won]


def leave_step(context: ControllerContext, tp: TopicPartition, gone: Sequence[int], unclean: Collection[str]) -> Step:
    """Return the step that replaces a missing leader, and takes the replicas on `gone` offline and out of the ISR."""
    replicas = context.assignment(tp).replicas
    leaving = tuple([r for r in replicas if r in gone])
    existing = tuple([r for r in leaving if (tp, r) in context.replica_phases])
    others = [r for r in replicas if r not in gone]
    after, recipients = elections.without_replicas(context.leadership[tp], gone, context.epoch), others
    if context.partition_phases[tp] is PartitionPhase.OFFLINE:
        choice = elections.offline(candidate(context, tp, replicas, unclean))
        if choice is not None:
            after = elections.led_by(choice, context.leadership[tp], context.epoch)
            recipients = list(choice.recipients)
    moved = ReplicasMoved([tp], [existing], ReplicaPhase.OFFLINE)
    alive = [r for r in leaving if r in context.brokers]
    epoch = (after or context.leadership[tp]).leader_epoch
    stop = StopReplicaPartition(tp.topic, context.topic_id(tp.topic), tp.partition, epoch, delete=False)
    stops = (TellStopReplica(tuple(alive), stop),) if alive else ()
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
