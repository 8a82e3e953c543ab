"""The brokers on the page: those that are registered, and those that replicas are assigned to but that are not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from operator import attrgetter
from typing import Final

import trio
from attrs import frozen

from controller.channels.broker_channels import BrokerChannels
from controller.model.context import ControllerContext
from transport.addresses import address_text

MAX_BROKERS: Final = 200
SLICE: Final = 10_000
"""The number of partitions counted before other tasks may run, which takes about 1 ms."""


@frozen
class BrokerRow:
    """A broker as the page shows it; `waiting` are the entries that wait to be sent to it."""

    id: int
    state: str
    address: str = ""
    rack: str | None = None
    leaders: int = 0
    replicas: int = 0
    waiting: int = 0


@frozen
class BrokersView:
    """All brokers; those that are not alive come first, and then the others by id."""

    live: int
    count: int
    rows: tuple[BrokerRow, ...]


async def count_leaders(context: ControllerContext) -> Mapping[int, int]:
    """Return the number of partitions that each broker leads; other tasks run in between."""
    led: Counter[int] = Counter()
    leaderships = list(context.leadership.values())
    for start in range(0, len(leaderships), SLICE):
        led.update(map(attrgetter("leader"), leaderships[start : start + SLICE]))
        await trio.lowlevel.checkpoint()
    return led


def _state(context: ControllerContext, broker_id: int) -> str:
    if broker_id in context.unusable:
        return "unusable"
    return "shutting down" if broker_id in context.shutting_down else "live"


def view_of_brokers(context: ControllerContext, channels: BrokerChannels, led: Mapping[int, int]) -> BrokersView:
    """Return the brokers, given how many partitions each leads."""
    held, waiting = context.replica_counts(), channels.queue_sizes()
    dead = [
        BrokerRow(id_, "unusable" if id_ in context.unusable else "not alive", "", None, led.get(id_, 0), held[id_])
        for id_ in sorted(held)
        if id_ not in context.brokers
    ]
    live = [
        BrokerRow(
            broker.id,
            _state(context, broker.id),
            address_text(broker.host, broker.port),
            broker.rack,
            led.get(broker.id, 0),
            held.get(broker.id, 0),
            waiting.get(broker.id, 0),
        )
        for _, broker in sorted(context.brokers.items())
    ]
    return BrokersView(len(live), len(dead) + len(live), tuple([*dead, *live][:MAX_BROKERS]))
