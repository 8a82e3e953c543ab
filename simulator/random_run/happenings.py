"""The events of a random run, and the actions that only random runs draw. Times are virtual seconds."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

import trio
from attrs import evolve, field, frozen

from simulator.actions.processes import Start
from simulator.actions.requests import CreateTopic, DeleteTopic, Elect
from simulator.actions.scene import SAME, Action, CannotBeDone, Node, Request, Scene, Strike, as_nodes
from simulator.actions.znodes import MarkForDeletion
from simulator.administration import partition_named
from simulator.steps import Moment
from transport.errors import ApiError, ErrorCode
from transport.messages import ElectionType

_TRY_AGAIN_SECONDS: Final = 0.05
"""Interval between attempts to create a topic while its namesake is still being deleted."""

_READS_AFTER: Final = 3
"""The number of reads that show whether a topic is there."""


@frozen
class AtStep:
    """The next step of this kind, or `delay` seconds after it."""

    round: str
    moment: Moment
    delay: float = 0.0
    partition: str | None = None
    """A subject of the step; None for any."""


@frozen
class Happening:
    """An action, at a time or at the first matching step from that time on."""

    at: float
    step: AtStep | None
    action: Action


@frozen
class Lasting(Strike):
    """A fault that ends after some time, by the actions in `ends` on the `same` nodes."""

    fault: Strike
    seconds: float
    ends: tuple[Strike, ...]

    def strike(self, scene: Scene) -> None:
        """Begin the fault and schedule its end. Raises CannotBeDone."""
        self.fault.strike(scene)
        scene.nursery.start_soon(self._end, evolve(scene, chosen=scene.struck or scene.chosen))

    async def _end(self, scene: Scene) -> None:
        await trio.sleep(self.seconds)
        for end in self.ends:
            with suppress(CannotBeDone):
                end.strike(scene)


@frozen
class Leave(Strike):
    """Shut nodes down cleanly and start them again some time later; with `elsewhere`, on another port."""

    nodes: tuple[Node, ...] = field(converter=as_nodes)
    seconds: float
    elsewhere: bool = False

    def strike(self, scene: Scene) -> None:
        """Begin to shut the nodes down. Raises CannotBeDone."""
        for id_ in scene.victims(self, self.nodes):
            scene.nursery.start_soon(self._leave, evolve(scene, chosen=(id_,)), id_)

    async def _leave(self, scene: Scene, id_: int) -> None:
        try:
            await scene.cluster.stop(id_)
        finally:
            # A broker that asked for a controlled shutdown exits even if the faults end before it gets the answer.
            scene.cluster.crash(id_)
        await trio.sleep(self.seconds)
        Start(SAME, elsewhere=self.elsewhere).strike(scene)


@frozen
class InTurn(Strike):
    """Strikes one after the other, without those that cannot be done."""

    strikes: tuple[Strike, ...]

    def strike(self, scene: Scene) -> None:
        """Carry them out."""
        for strike in self.strikes:
            try:
                strike.strike(scene)
            except CannotBeDone:
                continue


@frozen
class NameLeader(Request):
    """Put the replicas of partitions into another order: the one at index `place` becomes the first and leads."""

    partitions: tuple[str, ...]
    place: int

    async def ask(self, scene: Scene) -> None:
        """Request the new orders of the partitions that exist."""
        orders = {}
        for name in self.partitions:
            assignment = scene.cluster.durable.assignment(partition_named(name))
            if assignment is not None:
                place = self.place % len(assignment.replicas)
                orders[name] = (*assignment.replicas[place:], *assignment.replicas[:place])
        await Elect(ElectionType.PREFERRED, (), orders).ask(scene)


@frozen
class Replace(Request):
    """Delete a topic, through the api or by a marker in the store, and create it again as soon as it is gone."""

    topic: CreateTopic
    by_hand: bool

    async def ask(self, scene: Scene) -> None:
        """Delete the topic, and retry creating its namesake until the old one is gone."""
        if self.by_hand:
            MarkForDeletion(self.topic.name).strike(scene)
        else:
            await DeleteTopic(self.topic.name).ask(scene)
        while True:
            try:
                await self.topic.ask(scene)
            except ApiError as refusal:
                if refusal.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                    raise
            else:
                return
            await trio.sleep(_TRY_AGAIN_SECONDS)


@frozen
class CreateAndRead(Request):
    """Create a topic, and have the controller in office describe all topics as soon as that is acknowledged."""

    topic: CreateTopic

    async def ask(self, scene: Scene) -> None:
        """Create the topic, and read a few times, one after the other."""
        await self.topic.ask(scene)
        for _ in range(_READS_AFTER):
            controller = scene.cluster.active_controller
            if controller is not None:
                await scene.cluster.read_from(controller)
