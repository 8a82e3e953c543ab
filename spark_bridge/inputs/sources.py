"""Which files a plan is made from, and what to do with a bad row."""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from attrs import frozen

_URL: Final = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]+)://")
_HERE: Final = "file"


class Url(str):
    """A file or folder that Spark reaches and this process does not, such as s3a://bucket/folder."""

    __slots__ = ()

    @property
    def name(self) -> str:
        """Return the last part of its path."""
        return self.rstrip("/").rpartition("/")[2]

    @property
    def scheme(self) -> str:
        """Return what it begins with, such as "s3a"."""
        return self.partition(":")[0]


Source = Path | Url


def source_of(text: str) -> Source:
    """Return what a user named: a file of this machine, also as file://, or one that only Spark reaches."""
    scheme = _URL.match(text)
    if scheme is None:
        return Path(text)
    return Path(text[scheme.end() :]) if scheme[1].lower() == _HERE else Url(text.rstrip("/"))


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

    snapshot: Source
    loads: tuple[Source, ...] = ()
    brokers: Source | None = None
    on_bad_rows: OnBadRows = OnBadRows.REFUSE

    @property
    def urls(self) -> list[Url]:
        """Return those that only Spark reaches."""
        return [source for source in (self.snapshot, *self.loads, self.brokers) if isinstance(source, Url)]

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
            snapshot=source_of(document["snapshot"]),
            loads=tuple(map(source_of, document["loads"])),
            brokers=None if brokers is None else source_of(brokers),
            on_bad_rows=OnBadRows(document["on_bad_rows"]),
        )


def file_url(path: Path) -> str:
    """Return the name of a file of this machine, also for a Spark whose own file system is another."""
    return f"file://{path.absolute()}"
