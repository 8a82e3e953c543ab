"""What Kafka's brokers tell of the file systems of their log directories (KIP-827)."""

from __future__ import annotations

from attrs import frozen

from transport.messages import UNKNOWN


@frozen
class Volume:
    """The bytes that the file system of a log directory has, and those that are free; UNKNOWN before Kafka 3.3."""

    total: int = UNKNOWN
    usable: int = UNKNOWN
