"""Requests of brokers for ids of idempotent producers."""

from __future__ import annotations

from attrs import frozen

from simulator.actions.scene import Node, Request, Scene
from transport.errors import ApiError, ErrorCode
from transport.messages import AllocateProducerIdsRequest


@frozen
class AskForProducerIds(Request):
    """Ask the active controller for a block of ids of producers, in the name of a broker."""

    broker: Node

    async def ask(self, scene: Scene) -> None:
        """Send the request. Raises ApiError when it is refused."""
        cluster = scene.cluster
        [id_] = scene.nodes((self.broker,))
        controller, broker = cluster.active_controller, cluster.durable.brokers().get(id_)
        if controller is None or broker is None:
            raise ApiError(ErrorCode.BROKER_NOT_AVAILABLE, "there is no controller to ask, or the broker is not alive")
        given = await cluster.ask(controller, AllocateProducerIdsRequest(id_, broker.epoch))
        cluster.world.safety.producer_ids_given(range(given.start, given.start + given.count))
