"""Messages between brokers and the controller: ids for idempotent producers (KIP-730)."""

from __future__ import annotations

from transport.messages.common import Message, Request


class AllocateProducerIdsResponse(Message, frozen=True):
    """A block of ids that nobody was given before."""

    start: int
    count: int


class AllocateProducerIdsRequest(Request[AllocateProducerIdsResponse], frozen=True):
    """Ask the controller, as a broker, for ids for producers."""

    broker_id: int
    broker_epoch: int
