"""What Kafka's brokers tell besides our messages: the file systems of log directories (KIP-827), and secrets."""

from __future__ import annotations

from typing import Final

from attrs import frozen

from transport.messages import UNKNOWN, LogDir, LogDirReplica

HIDDEN: Final = "(hidden)"
"""The value of a setting that Kafka keeps to itself, such as a password."""


@frozen
class Volume:
    """The bytes that the file system of a log directory has, and those that are free; UNKNOWN before Kafka 3.3."""

    total: int = UNKNOWN
    usable: int = UNKNOWN


@frozen
class ToldLogDir:
    """A log directory as a broker of Kafka's tells of it.

    `futures` has the logs that are on their way to this directory from another one of the broker (KIP-113).
    """

    log_dir: LogDir
    volume: Volume = Volume()
    futures: tuple[LogDirReplica, ...] = ()
