"""The nodes, topics and partitions that a scenario's events can speak of."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

from simulator.settings import Settings


@frozen
class Names:
    """What there is, once the cluster and the topics of a scenario are known."""

    settings: Settings = field(factory=Settings)
    topics: Mapping[str, int] = field(factory=dict)
    """How many partitions each topic has, created at any time."""

    are_known: bool = True
    """False if they could not be read: then any name is taken, so that other faults show."""

    def has_node(self, id_: int) -> bool:
        """Whether there is a broker or a controller of that id."""
        return not self.are_known or id_ in self.nodes

    def has_broker(self, id_: int) -> bool:
        """Whether there is a broker of that id."""
        return not self.are_known or id_ in self.settings.broker_ids

    def has_partition(self, name: str) -> bool:
        """Whether there is a partition of that name."""
        return not self.are_known or name in self.partitions

    @property
    def nodes(self) -> tuple[int, ...]:
        """The ids of all brokers and controllers."""
        return (*self.settings.broker_ids, *self.settings.controller_ids)

    @property
    def partitions(self) -> tuple[str, ...]:
        """The names of all partitions."""
        return tuple(f"{topic}-{number}" for topic, count in self.topics.items() for number in range(count))
