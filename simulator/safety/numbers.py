"""Check that each order of a controller to a broker has a number, by which the broker recognises a copy of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from attrs import define, field

from simulator.frames import ControlRequest
from transport.messages.control import UNNUMBERED

_REMEMBERED: Final = 32
"""The number of orders remembered for each incarnation of a broker; those under way and their copies are few."""

_Channel = tuple[int, int]
"""A controller epoch and a broker epoch."""


@define
class Numbers:
    """The latest orders of the latest controller to each broker's latest incarnation, by number."""

    _orders: dict[int, tuple[_Channel, dict[int, ControlRequest]]] = field(factory=dict, init=False)

    def ordered(self, broker_id: int, request: ControlRequest) -> Iterator[str]:
        """Check the number of an order, as the broker takes it from the network."""
        kind, number = type(request).__name__, request.number
        if number == UNNUMBERED:
            yield f"broker {broker_id} was sent {kind} without a number"
        this = request.controller_epoch, request.broker_epoch
        channel, orders = self._orders.setdefault(broker_id, (this, {}))
        if this > channel:
            orders = {}
            self._orders[broker_id] = this, orders
        # A copy of an order of an earlier controller, or to an earlier incarnation, is turned away.
        if this < channel or number == UNNUMBERED:
            return
        known = orders.setdefault(number, request)
        # Most are the first of their number; comparing these with themselves takes time.
        if known is not request and known != request:
            yield f"broker {broker_id} was sent {kind} under the number {number} of another order"
        if len(orders) > _REMEMBERED:
            del orders[min(orders)]
