"""The ids of topics, by which brokers of Apache Kafka name them."""

from __future__ import annotations

from attrs import define, field


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
