"""The steps of elections and shrinks, decided for one partition at a time: the oracle for those decided together."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from controller.handlers.leadership import candidates, leadership_step, stop_replicas, tell
from controller.model import elections
from controller.model.context import ControllerContext
from controller.model.facts import ReplicasMoved
from controller.model.rounds import Step, TellMetadata
from controller.model.state_machines import ReplicaPhase
from transport.metadata import TopicPartition


def election_steps(
    context: ControllerContext, tps: Sequence[TopicPartition], strategy: elections.Strategy, unclean: Collection[str]
) -> list[Step]:
    """Return the steps of an election."""
    result = elections.elect(candidates(context, tps, unclean), strategy, context.epoch)
    return [
        leadership_step(won.tp, won.leadership, tell(context, won.tp, won.leadership, won.recipients))
        for won in result.elected
    ]


def shrink_step(context: ControllerContext, tp: TopicPartition, gone: Sequence[int], *, is_told: bool) -> Step:
    """Return the step that takes the replicas on `gone` offline and out of the ISR."""
    replicas = context.assignment(tp).replicas
    leaving = tuple([r for r in replicas if r in gone])
    moved = ReplicasMoved(tp, context.existing(tp, leaving), ReplicaPhase.OFFLINE)
    alive = [r for r in leaving if r in context.brokers]
    shrunk = elections.without_replicas(context.leadership[tp], gone, context.epoch)
    stops = (stop_replicas(context, tp, alive, shrunk or context.leadership[tp], delete=False),) if alive else ()
    if shrunk is None:
        news = () if is_told else (TellMetadata(None, (context.describe(tp),)),)
        return Step((tp,), facts=(moved,), publications=(*news, *stops))
    others = [r for r in replicas if r not in gone]
    return leadership_step(tp, shrunk, (*tell(context, tp, shrunk, others), *stops), moved)
