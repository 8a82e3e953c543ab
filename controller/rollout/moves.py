"""The moves of a plan, as a rollout keeps them: a million of them have to fit into the memory of a controller."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct

from transport.metadata import OfPartition

UNKNOWN_SIZE: Final = -1

Replicas = tuple[int, ...]


class Move(OfPartition, Struct, frozen=True, gc=False):
    """The move of one partition. `size` is that of one replica in bytes, or UNKNOWN_SIZE.

    The collector does not look at them: it would take more than a tenth of a second for a million.
    """

    topic: str
    partition: int
    before: Replicas
    after: Replicas
    size: int = UNKNOWN_SIZE

    @property
    def adding(self) -> Replicas:
        """The brokers that receive a replica."""
        return tuple(broker for broker in self.after if broker not in self.before)

    @property
    def removing(self) -> Replicas:
        """The brokers that lose theirs."""
        return tuple(broker for broker in self.before if broker not in self.after)

    @property
    def bytes(self) -> int:
        """The bytes that it copies, as far as they are known."""
        return max(self.size, 0) * len(self.adding)

    @property
    def needs_room(self) -> bool:
        """Whether it takes room on disks, as far as it is known."""
        return self.bytes > 0

    @property
    def reversed(self) -> Move:
        """The move that takes it back."""
        return Move(self.topic, self.partition, self.after, self.before, self.size)


def interned(moves: Iterable[Move]) -> Iterator[Move]:
    """Yield moves that share what is equal among them: names, and lists of replicas."""
    seen: dict[object, object] = {}
    for move in moves:
        topic, before, after = (seen.setdefault(part, part) for part in (move.topic, move.before, move.after))
        yield Move(topic, move.partition, before, after, move.size)  # type: ignore[arg-type]
