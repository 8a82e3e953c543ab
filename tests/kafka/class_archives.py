"""Archives of the classes that Kafka's brokers load: with one, a JVM starts in two thirds of the processor time.

A broker that ends in order leaves the first one of its release beside the jars. A JVM takes none that does not fit it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from attrs import frozen

from transport.zookeeper_server import find_java

STOPPED_BY_SIGTERM: Final = 143
"""The exit code of a JVM that SIGTERM has ended in order; its archive is complete."""


@frozen
class ClassArchive:
    """The archive for the jars of a folder and the installed Java."""

    path: Path

    @classmethod
    def of(cls, jars: Path) -> ClassArchive:
        """Return that of a folder."""
        java = Path(find_java()).resolve()
        return cls(jars.with_name(f"{jars.name}-{java.stat().st_mtime_ns:x}.jsa"))

    @property
    def _part(self) -> Path:
        # The workers of one run have one parent; what a killed run leaves is in the way of no other.
        return self.path.with_suffix(f".{os.getppid()}")

    def options(self) -> list[str]:
        """Return the options of a JVM that uses the archive, if it exists."""
        return [f"-XX:SharedArchiveFile={self.path}"] if self.path.exists() else []

    def recording(self) -> list[str]:
        """Return the options of a JVM that writes the archive at its end; none if another does, or it exists."""
        try:
            if not self.path.exists():
                self._part.open("xb").close()
                return [f"-XX:ArchiveClassesAtExit={self._part}"]
        except OSError:  # another broker writes one, or nobody may
            pass
        return []

    def end(self, exit_code: int | None) -> None:
        """Keep the archive if its JVM has ended in order."""
        if exit_code == STOPPED_BY_SIGTERM and self._part.exists():
            self._part.rename(self.path)
        self._part.unlink(missing_ok=True)
