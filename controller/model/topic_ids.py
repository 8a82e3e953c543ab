"""The ids of topics, by which brokers of Apache Kafka name them."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import define, field

from transport.metadata import Stray


@define
class TopicIds:
    """The ids of the known topics, and which topic has an id."""

    _ids: dict[str, str] = field(factory=dict)
    _names: dict[str, str] = field(factory=dict)

    def set(self, name: str, topic_id: str) -> None:
        """Give a topic its id, in place of an earlier one."""
        self.forget(name)
        self._ids[name] = topic_id
        self._names[topic_id] = name

    def forget(self, name: str) -> None:
        """Forget a topic."""
        self._names.pop(self._ids.pop(name, ""), None)

    def name_of(self, topic_id: str) -> str | None:
        """Return the name of the topic with an id, None if it is unknown."""
        return self._names.get(topic_id)

    def with_namesake(self, strays: Iterable[Stray]) -> list[Stray]:
        """Return those of the strays whose topic's name is now that of another topic."""
        return [stray for stray in strays if self._ids.get(stray.topic, stray.topic_id) != stray.topic_id]
