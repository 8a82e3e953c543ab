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
    _edited: set[str] = field(factory=set, init=False)
    """The topics whose assignment was edited, and not yet written back by a controller."""

    _recreated: set[str] = field(factory=set, init=False)
    """The topics that were created again by hand, and not yet started by a controller."""

    _has_brokers: bool = field(default=False, init=False)

    def add(self, path: str) -> None:
        """Exempt the row of a path for the rest of the run."""
        self._rows.add(path)
        self._has_brokers = self._has_brokers or path.startswith(paths.BROKER_IDS)
        for parent in _OF_TOPICS:
            if path.startswith(f"{parent}/"):
                self._topics.add(path.removeprefix(f"{parent}/").partition("/")[0])

    def edited(self, topic: str) -> None:
        """Exempt a topic as soon as a controller takes office that may know nothing else than the edited assignment."""
        self._edited.add(topic)

    def recreated(self, topic: str) -> None:
        """Exempt a topic as soon as a controller takes office that may know nothing of the one before it.

        Nobody has brokers delete its data then, and they refuse those of the new topic.
        """
        self._edited.discard(topic)
        self._recreated.add(topic)

    def started(self, topic: str) -> None:
        """Record that a controller started the partitions of a topic, after it had recorded what the last one left."""
        self._recreated.discard(topic)

    def is_edited(self, topic: str) -> bool:
        """Return whether a topic's assignment was edited and has not been written back."""
        return topic in self._edited

    def took_office(self) -> None:
        """Exempt the topics whose changes by hand the last controller has not dealt with."""
        self._topics |= self._edited | self._recreated
        self._edited.clear()
        self._recreated.clear()

    def written_back(self, topic: str) -> None:
        """Record that a controller wrote a topic's assignment."""
        self._edited.discard(topic)

    def has(self, path: str) -> bool:
        """Return whether a row is exempt."""
        return path in self._rows

    @property
    def has_brokers(self) -> bool:
        """Whether a broker's registration is exempt."""
        return self._has_brokers

    def has_topic(self, name: str) -> bool:
        """Return whether a row of a topic is exempt."""
        return name in self._topics
