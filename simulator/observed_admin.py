"""An admin client that tells which controllers it sends a request to."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from attrs import frozen

from controller.admin.client import AdminClient
from transport.messages import BrokerEndpoint, Request
from transport.wire import Connection

R = TypeVar("R")


def _ignore(controller_id: int) -> None:
    """Do nothing."""


@frozen
class ObservedAdmin(AdminClient):
    """An admin client that calls `sent_to` with the id of each controller before it sends it a request."""

    sent_to: Callable[[int], None] = _ignore

    async def _wait_a_while(
        self, connection: Connection, controller: BrokerEndpoint, request: Request[R], left: float
    ) -> R:
        self.sent_to(controller.id)
        return await super()._wait_a_while(connection, controller, request, left)

    async def _wait_while_active(
        self, connection: Connection, controller: BrokerEndpoint, request: Request[R], left: float
    ) -> R:
        self.sent_to(controller.id)
        return await super()._wait_while_active(connection, controller, request, left)
