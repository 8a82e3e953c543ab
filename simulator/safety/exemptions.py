"""The rows of the store that are damaged on purpose, over which no invariant is checked.

Of topics with rows that controllers may only read, it is still checked that brokers are told what the store has.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from attrs import define, field

from transport.store import paths

_OF_TOPICS: Final = (paths.TOPICS, paths.TOPIC_CONFIGS, paths.REASSIGNMENTS, paths.DELETE_TOPICS)


@define
class Exemptions:
    """The exempt rows; a row of a topic exempts the whole topic."""

    _rows: set[str] = field(factory=set, init=False)
    _unreadable: set[str] = field(factory=set, init=False)
    """The exempt rows that controllers may take for others than they are, or for none."""

    _topics: set[str] = field(factory=set, init=False)
    _closed: set[str] = field(factory=set, init=False)
    """The topics with rows that controllers could not write, but read."""

    _are_all_closed: bool = field(default=False, init=False)

    _rollouts: set[str] = field(factory=set, init=False)
    """The rollouts with exempt rows."""

    _edited: set[str] = field(factory=set, init=False)
    """The topics whose assignment was edited, and not yet written back by a controller."""

    _recreated: set[str] = field(factory=set, init=False)
    """The topics that were created again by hand, and not yet started by a controller."""

    _has_brokers: bool = field(default=False, init=False)

    def add(self, path: str) -> None:
        """Exempt the row of a path for the rest of the run."""
        self._rows.add(path)
        self._unreadable.add(path)
        self._has_brokers = self._has_brokers or path.startswith(paths.BROKER_IDS)
        self._topics.update(_topic_of(path))
        self._rollouts.update(_rollout_of(path))

    def close(self, path: str) -> None:
        """Exempt the row of a path, which controllers may still read, from what requires them to write it."""
        self._rows.add(path)
        self._closed.update(_topic_of(path))
        # A move of any topic may have to record strays, or to recall them.
        self._are_all_closed = self._are_all_closed or path == paths.STRAYS

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

    def is_damaged(self, path: str) -> bool:
        """Return whether a row is exempt because its data may be anything, and not only closed to writes."""
        return path in self._unreadable

    @property
    def has_brokers(self) -> bool:
        """Whether a broker's registration is exempt."""
        return self._has_brokers

    def hides_storage_id(self, broker_id: int) -> bool:
        """Return whether controllers may not know a broker's last storage, and so trust an empty disk of it."""
        return paths.storage_id(broker_id) in self._unreadable

    def has_topic(self, name: str) -> bool:
        """Return whether a row of a topic is exempt, from all that is checked or from some of it."""
        return self._are_all_closed or name in self._topics or name in self._closed

    def has_rollout(self, name: str) -> bool:
        """Return whether a row of a rollout is exempt, so that it may be quarantined, or do what nobody has asked."""
        return name in self._rollouts

    @property
    def has_rollouts(self) -> bool:
        """Whether a row of any rollout is exempt: what it has throttled stays so until it is removed."""
        return bool(self._rollouts)

    def is_unreadable(self, name: str) -> bool:
        """Return whether controllers may take a row of a topic for another than it is, or for none."""
        return name in self._topics


def _topic_of(path: str) -> Iterator[str]:
    for parent in _OF_TOPICS:
        if path.startswith(f"{parent}/"):
            yield path.removeprefix(f"{parent}/").partition("/")[0]


def _rollout_of(path: str) -> Iterator[str]:
    if path.startswith(f"{paths.ROLLOUTS}/"):
        yield path.removeprefix(f"{paths.ROLLOUTS}/").partition("/")[0]
