"""`--throttle auto`: moves as fast as keeps the answers of brokers quick and other replicas in their ISRs.

The rate grows by a quarter as long as both are so, and is halved as soon as one is not. It does not grow far beyond
what is copied: else it would be halved many times before that has an effect.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import trio
from attrs import define

from controller.admin.move_admin import MoveAdmin
from klamm.cli.units import rate as in_words
from transport.metadata import TopicPartition

FIRST: Final = 10_000_000
LEAST: Final = 1_000_000
"""Bytes per second of each broker."""

LONGEST_ANSWER: Final = 0.5
"""The seconds within which each broker has to answer a small request."""

SECONDS: Final = 10.0
"""The time between two changes: a throttle takes effect within that."""


@define
class Adapting:
    """Finds the rate of a throttle, in bytes per second of each broker."""

    rate: int = FIRST
    _next: float = float("-inf")

    async def look(
        self, admin: MoveAdmin, brokers: Collection[int], lagging: Collection[TopicPartition], copied: float | None
    ) -> str | None:
        """Change the rate if it is time; return why it was halved, None if it was not.

        Args:
            admin: The cluster.
            brokers: Those that are asked, as they copy.
            lagging: The partitions that lack live replicas, and are not being moved.
            copied: The bytes per second that are copied in all, None if that is not known.
        """
        if trio.current_time() < self._next or not brokers:
            return None
        began = trio.current_time()
        told = await admin.describe_log_dirs(sorted(brokers), ())
        seconds = trio.current_time() - began
        self._next = trio.current_time() + SECONDS
        silent = [broker for broker, answer in told.items() if answer.fault]
        why = _fault(seconds, silent, lagging)
        if why is None:
            self.rate = max(self.rate, min(self.rate * 5 // 4, max(FIRST, round(2 * (copied or 0)))))
            return None
        self.rate = max(self.rate // 2, LEAST)
        return f"throttle lowered to {in_words(self.rate)}: {why}"


def _fault(seconds: float, silent: Collection[int], lagging: Collection[TopicPartition]) -> str | None:
    """Return what says that brokers have too much to do."""
    if silent:
        return f"broker {min(silent)} does not answer"
    if seconds > LONGEST_ANSWER:
        return f"an answer of a broker took {seconds:.1f} s"
    if lagging:
        more = f" and {len(lagging) - 1:,} more" if len(lagging) > 1 else ""
        return f"{min(lagging)}{more} lost a replica from its ISR"
    return None
