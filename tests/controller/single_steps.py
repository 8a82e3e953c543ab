"""The steps of first leaders, elections and shrinks, one partition at a time: the oracle for what is done together."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from controller.handlers.leadership import leadership_step, stop_replicas, tell
from controller.model import elections
from controller.model.choosing import candidates
from controller.model.context import ControllerContext
from controller.model.facts import LeadershipWritten, PartitionMoved, ReplicasMoved
from controller.model.rounds import Step, TellMetadata
from controller.model.state_machines import PartitionPhase, ReplicaPhase
from transport.metadata import TopicPartition
from transport.store import formats, paths
from transport.store.protocol import Create


def election_steps(
    context: ControllerContext, tps: Sequence[TopicPartition], strategy: elections.Strategy, unclean: Collection[str]
) -> list[Step]:
    """Return the steps of an election."""
    result = elections.elect(candidates(context, tps, unclean), strategy, context.epoch)
    return [
        leadership_step(won.tp, won.leadership, tell(context, won.tp, won.leadership, won.recipients))
        for won in result.elected
    ]


def leave_step(context: ControllerContext, tp: TopicPartition, gone: Sequence[int], unclean: Collection[str]) -> Step:
    """Return the step that replaces a missing leader, and takes the replicas on `gone` offline and out of the ISR."""
    replicas = context.assignment(tp).replicas
    leaving = tuple([r for r in replicas if r in gone])
    others = [r for r in replicas if r not in gone]
    after, recipients = elections.without_replicas(context.leadership[tp], gone, context.epoch), others
    if context.partition_phases[tp] is PartitionPhase.OFFLINE:
        for won in elections.elect(candidates(context, [tp], unclean), elections.offline, context.epoch).elected:
            after, recipients = won.leadership, list(won.recipients)
    moved = ReplicasMoved(tp, context.existing(tp, leaving), ReplicaPhase.OFFLINE)
    alive = [r for r in leaving if r in context.brokers]
    stops = (stop_replicas(context, tp, alive, after or context.leadership[tp], delete=False),) if alive else ()
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
        facts=(LeadershipWritten(tp, first), PartitionMoved(tp, PartitionPhase.ONLINE)),
        publications=tell(context, tp, first, (), new=online),
    )
