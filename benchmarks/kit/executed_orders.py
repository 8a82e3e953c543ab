"""The orders of a controller that a broker of Kafka's has executed, as its log of state changes tells them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from attrs import define, field

from benchmarks.kit.kafka_broker import time_of

_LINE: Final = re.compile(
    rb"\[Broker id=\d+\] (?:Finished LeaderAndIsr request .* for (\d+) partitions|Add (\d+) partitions and deleted)"
)


@define
class ExecutedOrders:
    """The orders that a broker has executed since the last `mark`."""

    log: Path
    replicas: int = field(default=0, init=False)
    """The number of partitions in LeaderAndIsr requests."""

    partitions: int = field(default=0, init=False)
    """The number of partitions in UpdateMetadata requests."""

    last: int = field(default=0, init=False)
    """The time of the last of either, in microseconds since 1970."""

    _read: int = field(default=0, init=False)

    def mark(self) -> None:
        """Forget what has been executed up to now."""
        self._read = self.log.stat().st_size
        self.replicas = self.partitions = self.last = 0

    def look(self) -> None:
        """Read what has been logged since the last call."""
        with self.log.open("rb") as log:
            log.seek(self._read)
            whole, end, _ = log.read().rpartition(b"\n")
        self._read += len(whole) + len(end)
        for line in whole.splitlines():
            if match := _LINE.search(line):
                self.replicas += int(match[1] or 0)
                self.partitions += int(match[2] or 0)
                self.last = time_of(line.decode())
