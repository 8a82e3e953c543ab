"""The files that a plan is made from, and the treatment of bad rows."""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path
from typing import Final

from attrs import frozen

_URL: Final = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]+)://")
_HERE: Final = "file"


class Url(str):
    """A file or folder that only Spark can reach, such as s3a://bucket/folder."""

    __slots__ = ()

    @property
    def name(self) -> str:
        """Return the last part of its path."""
        return self.rstrip("/").rpartition("/")[2]

    @property
    def scheme(self) -> str:
        """Return its scheme, such as "s3a"."""
        return self.partition(":")[0]


Source = Path | Url


def source_of(text: str) -> Source:
    """Return the input that a user named: a file of this machine, also as file://, or one that only Spark can reach."""
    scheme = _URL.match(text)
    if scheme is None:
        return Path(text)
    return Path(text[scheme.end() :]) if scheme[1].lower() == _HERE else Url(text.rstrip("/"))


class OnBadRows(StrEnum):
    """The treatment of bad rows of a snapshot or of loads."""

    REFUSE = "refuse"
    SET_ASIDE = "set-aside"


@frozen
class Sources:
    """The files that a plan is made from. Formats are detected from the content; a folder contains Parquet.

    Attributes:
        snapshot: The partitions and, if it has them, the brokers.
        loads: Sizes and rates of partitions; if two files have the same value, the later file takes precedence.
        brokers: A table that adds to the brokers of the snapshot, or overrides them.
        on_bad_rows: Whether bad rows of a snapshot or of loads are rejected, or set aside and counted.
        partial: Whether to plan for a snapshot of a part of a cluster, from which topics are hidden.
    """

    snapshot: Source
    loads: tuple[Source, ...] = ()
    brokers: Source | None = None
    on_bad_rows: OnBadRows = OnBadRows.REFUSE
    partial: bool = False

    @property
    def urls(self) -> list[Url]:
        """Return the sources that only Spark can reach."""
        return [source for source in (self.snapshot, *self.loads, self.brokers) if isinstance(source, Url)]


def refusal(partial: str) -> str:
    """Return why a plan is refused for a part of a cluster, given what the snapshot says of it."""
    return f"{partial}; a plan needs the whole: get the permission, or plan for what is visible with --partial"


def file_url(path: Path) -> str:
    """Return the URL of a file of this machine, also for a Spark with another default file system."""
    return f"file://{path.absolute()}"
