"""Draws and carries out cancels of moves whose phase B was interrupted by a controller's crash.

Between B4 and B6 the ISR may consist of target replicas alone: restoring the original replicas then loses records.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Final

import trio
from attrs import frozen

from simulator.actions.processes import Crash, Start
from simulator.actions.requests import Reassign
from simulator.actions.scene import CONTROLLER, SAME, CannotBeDone, Node, Scene, Strike
from simulator.actions.znodes import WriteRequests
from simulator.random_run.happenings import AtStep, Happening, InTurn, Lasting
from simulator.random_run.requests import elsewhere
from simulator.random_run.scene import RunScene
from simulator.random_run.topology import Replicas
from simulator.settings import Settings
from simulator.steps import Moment
from simulator.store.durable import Durable
from transport.metadata import TopicPartition

COUNT: Final = "cancels after a failover between B4 and B6"

_POLL_SECONDS: Final = 0.05
_ENDS: Final = (("B4", Moment.COMMITTED), ("B4", Moment.PUBLISHED), ("B3", Moment.PUBLISHED))


def draw(rng: random.Random, settings: Settings, partitions: Mapping[str, Replicas], seconds: float) -> list[Happening]:
    """Draw a cancel and a move that it may meet."""
    at = rng.uniform(0.5, seconds / 2)
    name, (end, moment) = rng.choice(sorted(partitions)), rng.choice(_ENDS)
    cancel = CancelAfterFailover(rng.random() < 0.5, rng.uniform(2.0, 10.0))  # noqa: PLR2004  as often
    move = Reassign({name: elsewhere(rng, settings, partitions[name])})
    return [Happening(at, AtStep(end, moment), cancel), Happening(at, None, move)]


def unfinished(durable: Durable, tps: Sequence[TopicPartition]) -> list[TopicPartition]:
    """Return the partitions whose move has gone through B4 but not through B6."""
    return [tp for tp in tps if _is_between(durable, tp)]


def _is_between(durable: Durable, tp: TopicPartition) -> bool:
    assignment, state = durable.assignment(tp), durable.leadership(tp)
    if assignment is None or state is None or not assignment.removing_replicas:
        return False
    return set(state.isr) <= set(assignment.target_replicas)


@frozen
class CancelAfterFailover(Strike):
    """Crash the controller in the middle of phase B, and ask the next one to cancel the moves that have not ended.

    With `by_hand`, the request is written to the store before the next controller is elected. Otherwise it is made
    through the api, and the brokers of the target crash too; else the moves would complete before the request.
    """

    by_hand: bool
    seconds: float
    """The time for which the crashed nodes stay down."""

    def strike(self, scene: Scene) -> None:
        """Crash the controller of the step, and request the cancels."""
        if scene.step is None:
            raise CannotBeDone("it happens in the middle of a step: write when: anything commits B4")
        durable = scene.cluster.durable
        tps = unfinished(durable, scene.step.subjects)
        InTurn((self._crash(CONTROLLER),)).strike(scene)
        assignments = {tp: assignment for tp in tps if (assignment := durable.assignment(tp)) is not None}
        if tps and self.by_hand:
            WriteRequests({str(tp): assignment.origin_replicas for tp, assignment in assignments.items()}).strike(scene)
            _count(scene, len(assignments))
        elif tps:
            targets = dict.fromkeys(r for assignment in assignments.values() for r in assignment.target_replicas)
            InTurn(tuple(map(self._crash, targets))).strike(scene)
            scene.nursery.start_soon(_cancel_through_the_next, scene, scene.step.controller_id, tps)

    def _crash(self, who: Node) -> Strike:
        return Lasting(Crash(who, noticed=True), self.seconds, (Start(SAME),))


def _count(scene: Scene, number: int) -> None:
    if isinstance(scene, RunScene):
        scene.coverage.counts[COUNT] += number


async def _cancel_through_the_next(scene: Scene, dead: int, tps: Sequence[TopicPartition]) -> None:
    """Ask the controller elected after `dead` to cancel the partitions' moves that have not ended."""
    cluster = scene.cluster
    while cluster.active_controller in (None, dead):  # noqa: ASYNC110  anything may make another one active
        await trio.sleep(_POLL_SECONDS)
    left = unfinished(cluster.durable, tps)
    if not left:
        return
    targets = {tp: cluster.durable.assignment(tp) for tp in left}
    cancel = Reassign(dict.fromkeys(map(str, left)))
    await (scene.ask(cancel) if isinstance(scene, RunScene) else cancel.ask(scene))
    for tp, before in targets.items():
        after = cluster.durable.assignment(tp)
        has_ended = before is None or after is None or after.replicas == before.target_replicas
        _count(scene, int(not has_ended))
