"""`--throttle auto`: moves as fast as keeps the answers of brokers quick and other replicas in their ISRs. Pure.

The rate grows by a quarter as long as both are so, and is halved as soon as one is not. It does not grow far beyond
what is copied: else it would be halved many times before that has an effect.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from transport.metadata import TopicPartition

FIRST: Final = 10_000_000
LEAST: Final = 1_000_000
"""Bytes per second of each broker."""

LONGEST_ANSWER: Final = 0.5
"""The seconds within which each broker has to answer a small request."""

SECONDS: Final = 10.0
"""The time between two changes: a throttle takes effect within that."""


def adapted(rate: int, copied: float | None, fault: str | None) -> int:
    """Return the next rate; `copied` are the bytes per second that are copied in all, None if that is not known."""
    if fault is not None:
        return min(rate, max(rate // 2, LEAST))
    return max(rate, min(rate * 5 // 4, max(FIRST, round(2 * (copied or 0)))))


def fault_of(seconds: float, silent: Collection[int], lagging: Collection[TopicPartition]) -> str | None:
    """Return what says that brokers have too much to do, None if nothing does.

    Args:
        seconds: The longest that a broker took to answer.
        silent: The brokers that did not answer.
        lagging: The partitions that lack live replicas, and are not being moved.
    """
    if silent:
        return f"broker {min(silent)} does not answer"
    if seconds > LONGEST_ANSWER:
        return f"an answer of a broker took {seconds:.1f} s"
    if lagging:
        more = f" and {len(lagging) - 1:,} more" if len(lagging) > 1 else ""
        return f"{min(lagging)}{more} lost a replica from its ISR"
    return None
