"""Cancels of moves whose phase B a controller's death interrupted: drawn, and carried out.

Between B4 and B6 the ISR may be the target alone: who then goes back to the original replicas loses records.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Final

import trio

from simulator import administration
from simulator.cluster import SimulatedCluster
from simulator.random_run.actions import AtStep, CancelAfterFailover, Happening, Reassign
from simulator.random_run.administrator import Administrator
from simulator.random_run.coverage import Coverage
from simulator.random_run.requests import elsewhere
from simulator.random_run.topology import Replicas
from simulator.settings import Settings
from simulator.steps import Moment
from simulator.store.durable import Durable
from transport.metadata import TopicPartition

COUNT: Final = "cancels after a failover between B4 and B6"

_CHANCE: Final = 0.3
_POLL_SECONDS: Final = 0.05
_ENDS: Final = (("B4", Moment.COMMITTED), ("B4", Moment.PUBLISHED), ("B5", Moment.PUBLISHED))


def draw(rng: random.Random, settings: Settings, partitions: Mapping[str, Replicas], seconds: float) -> list[Happening]:
    """Draw a cancel, or none, and a move that it may meet."""
    if rng.random() > _CHANCE:
        return []
    at = rng.uniform(0.5, seconds / 2)
    name, (end, moment) = rng.choice(sorted(partitions)), rng.choice(_ENDS)
    cancel = CancelAfterFailover(rng.random() < 0.5, rng.uniform(2.0, 10.0))  # noqa: PLR2004  as often
    move = Reassign(((name, elsewhere(rng, settings, partitions[name])),))
    return [Happening(at, AtStep(end, moment), cancel), Happening(at, None, move)]


def unfinished(durable: Durable, tps: Sequence[TopicPartition]) -> list[TopicPartition]:
    """Return those of the partitions that have gone through B4 of a move, and not through B6."""
    return [tp for tp in tps if _is_between(durable, tp)]


def _is_between(durable: Durable, tp: TopicPartition) -> bool:
    assignment, state = durable.assignment(tp), durable.leadership(tp)
    if assignment is None or state is None or not assignment.removing_replicas:
        return False
    return set(state.isr) <= set(assignment.target_replicas)


def cancel_by_hand(cluster: SimulatedCluster, coverage: Coverage, tps: Sequence[TopicPartition]) -> None:
    """Write into the store that partitions are to go back to where they were."""
    assignments = {tp: cluster.durable.assignment(tp) for tp in tps}
    origins = {tp: assignment.origin_replicas for tp, assignment in assignments.items() if assignment is not None}
    administration.request_moves(cluster, origins)
    coverage.counts[COUNT] += len(origins)


async def cancel_through_the_next(
    cluster: SimulatedCluster, coverage: Coverage, dead: int, tps: Sequence[TopicPartition]
) -> None:
    """Ask the controller after the one that died to cancel the moves of partitions that have not ended."""
    while cluster.active_controller in (None, dead):  # noqa: ASYNC110  anything may make another one active
        await trio.sleep(_POLL_SECONDS)
    left = unfinished(cluster.durable, tps)
    if not left:
        return
    targets = {tp: cluster.durable.assignment(tp) for tp in left}
    await Administrator(cluster, coverage).do(Reassign(tuple((str(tp), None) for tp in left)))
    for tp, before in targets.items():
        after = cluster.durable.assignment(tp)
        has_ended = before is None or after is None or after.replicas == before.target_replicas
        coverage.counts[COUNT] += not has_ended
