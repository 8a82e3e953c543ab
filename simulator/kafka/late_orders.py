"""Tells orders to a broker of Kafka's that arrive after their controller has given up their connection.

TCP keeps the order of one connection, not that of two: what a controller sent on a connection that broke may arrive
while it already sends on the next. Nothing on Kafka's wire tells such an order from a new one, and Kafka's own
controllers cannot prevent that either. Simulated brokers do not obey it, so that it is no news to the checks.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, Generic, TypeVar

from attrs import define, field

from transport.kafka import messages as kafka

K = TypeVar("K", bound=Hashable)

ORDERS: Final = (kafka.LeaderAndIsrRequest, kafka.StopReplicaRequest, kafka.UpdateMetadataRequest)


@define
class Latest(Generic[K]):
    """The newest connection on which each sender has sent an order; connections without orders do not count."""

    _numbers: dict[K, int] = field(factory=dict, init=False)

    def admit(self, sender: K, number: int) -> bool:
        """Return whether an order is in time, given the number of its connection: a newer one has a higher number."""
        if number < self._numbers.get(sender, number):
            return False
        self._numbers[sender] = number
        return True
