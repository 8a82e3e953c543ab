"""The nodes, topics and partitions to which a scenario's events can refer."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

from simulator.settings import Settings


@frozen
class Names:
    """The names in a scenario, once its cluster and its topics are known."""

    settings: Settings = field(factory=Settings)
    topics: Mapping[str, int] = field(factory=dict)
    """The number of partitions of each topic, including topics created by events."""

    are_known: bool = True
    """False if they could not be read: then any name is accepted, so that other faults are reported."""

    are_checked: bool = True
    """False if requests may also name what does not exist."""

    def ids(self, *, brokers: bool, controllers: bool) -> tuple[int, ...]:
        """Return the ids of all brokers, of all controllers, or of both."""
        settings = self.settings
        return (*(settings.broker_ids if brokers else ()), *(settings.controller_ids if controllers else ()))

    def text(self, ids: tuple[int, ...]) -> str:
        """Return a list of the nodes, for messages."""
        kinds = {
            "brokers": [id_ for id_ in ids if id_ in self.settings.broker_ids],
            "controllers": [id_ for id_ in ids if id_ in self.settings.controller_ids],
        }
        return ", ".join(f"{kind} {_range(of)}" for kind, of in kinds.items() if of)

    def has_partition(self, name: str) -> bool:
        """Return whether a partition with that name exists."""
        return not (self.are_known and self.are_checked) or name in self.partitions

    @property
    def partitions(self) -> tuple[str, ...]:
        """Return the names of all partitions."""
        return tuple(f"{topic}-{number}" for topic, count in self.topics.items() for number in range(count))


def _range(ids: list[int]) -> str:
    is_gapless = ids == list(range(ids[0], ids[0] + len(ids)))
    return f"{ids[0]} to {ids[-1]}" if is_gapless else ", ".join(map(str, ids))
