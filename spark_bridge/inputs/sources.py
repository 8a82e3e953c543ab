"""Which files a plan is made from, and what to do with a bad row."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Any

from attrs import frozen


class OnBadRows(StrEnum):
    """What to do where a row of a snapshot or of loads is wrong."""

    REFUSE = "refuse"
    SET_ASIDE = "set-aside"


@frozen
class Sources:
    """The files that a plan is made from. What each may hold is told by its content, a folder holds Parquet.

    Attributes:
        snapshot: The partitions and, where it has them, the brokers.
        loads: Sizes and rates of partitions; where two files know the same of a partition, the later one counts.
        brokers: A table that adds to what the snapshot says of brokers, or overrides it.
        on_bad_rows: Whether a bad row of a snapshot or of loads is refused, or left out and counted.
    """

    snapshot: Path
    loads: tuple[Path, ...] = ()
    brokers: Path | None = None
    on_bad_rows: OnBadRows = OnBadRows.REFUSE

    def to_document(self) -> dict[str, Any]:
        """Return the sources as a JSON document."""
        return {
            "snapshot": str(self.snapshot),
            "loads": [str(path) for path in self.loads],
            "brokers": None if self.brokers is None else str(self.brokers),
            "on_bad_rows": str(self.on_bad_rows),
        }

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> Sources:
        """Read what `to_document` made, also after it went through JSON."""
        brokers = document["brokers"]
        return cls(
            snapshot=Path(document["snapshot"]),
            loads=tuple(map(Path, document["loads"])),
            brokers=None if brokers is None else Path(brokers),
            on_bad_rows=OnBadRows(document["on_bad_rows"]),
        )


def file_url(path: Path) -> str:
    """Return the name of a file of this machine, also for a Spark whose own file system is another."""
    return f"file://{path.absolute()}"
