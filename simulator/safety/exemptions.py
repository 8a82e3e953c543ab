"""The rows of the store that are damaged on purpose, over which no invariant is checked."""

from __future__ import annotations

from typing import Final

from attrs import define, field

from transport.store import paths

_OF_TOPICS: Final = (paths.TOPICS, paths.TOPIC_CONFIGS, paths.REASSIGNMENTS, paths.DELETE_TOPICS)


@define
class Exemptions:
    """The exempt rows; a row of a topic exempts the whole topic."""

    _rows: set[str] = field(factory=set, init=False)
    _topics: set[str] = field(factory=set, init=False)

    def add(self, path: str) -> None:
        """Exempt the row of a path for the rest of the run."""
        self._rows.add(path)
        for parent in _OF_TOPICS:
            if path.startswith(f"{parent}/"):
                self._topics.add(path.removeprefix(f"{parent}/").partition("/")[0])

    def has(self, path: str) -> bool:
        """Return whether a row is exempt."""
        return path in self._rows

    def has_topic(self, name: str) -> bool:
        """Return whether a row of a topic is exempt."""
        return name in self._topics
