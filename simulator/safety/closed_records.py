"""Check what must not follow from records that an ACL keeps from being written or removed.

No id of producers is in two blocks. A marker deletes no topic that is newer. A replica that is a stray no longer,
because somebody has assigned it again, is not deleted once it is in the ISR.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from attrs import define, field

from simulator.safety.exemptions import Exemptions
from simulator.safety.partitions import is_controller
from simulator.store.durable import Durable
from transport.metadata import Stray, TopicPartition
from transport.store import paths
from transport.store.protocol import Create, Delete, Op

_DATED: Final = (f"{paths.TOPICS}/", f"{paths.DELETE_TOPICS}/")


@define
class ClosedRecords:
    """The blocks of ids that were given, the age of topics and markers, and the strays that were assigned again."""

    exempt: Exemptions
    _blocks: list[range] = field(factory=list, init=False)
    _created: dict[str, int] = field(factory=dict, init=False)
    """The zxid at which each znode of a topic or a marker was created, by path."""

    _assigned_again: set[Stray] = field(factory=set, init=False)

    def given(self, block: range) -> Iterator[str]:
        """Check a block of ids that a broker was given."""
        for before in self._blocks:
            if block.start < before.stop and before.start < block.stop:
                yield f"ids {block.start} to {block.stop - 1} of producers were given, and {before.start} on before"
        self._blocks.append(block)

    def committed(self, host: str, ops: Sequence[Op], zxid: int) -> Iterator[str]:
        """Check that a topic which a controller removes is older than its marker."""
        for op in ops:
            if isinstance(op, Create) and op.path.startswith(_DATED):
                self._created[op.path] = zxid
            elif isinstance(op, Delete) and is_controller(host) and op.path.startswith(f"{paths.TOPICS}/"):
                yield from self._removed(op.path.removeprefix(f"{paths.TOPICS}/"))

    def _removed(self, name: str) -> Iterator[str]:
        # Znodes below a topic have longer paths, and no marker has such a name.
        marked, created = self._created.get(paths.delete_topic(name)), self._created.get(paths.topic(name))
        if marked is not None and created is not None and marked < created and not self.exempt.is_unreadable(name):
            yield f"topic {name} was deleted because of a marker that is older"

    def assigned_again(self, stray: Stray) -> None:
        """Record that somebody has assigned a stray past the controller."""
        self._assigned_again.add(stray)

    def deleted(self, stray: Stray, durable: Durable) -> Iterator[str]:
        """Check a replica whose data a broker has just deleted, as ordered."""
        if stray not in self._assigned_again:
            return
        tp = TopicPartition(stray.topic, stray.partition)
        topic, leadership = durable.topic(stray.topic), durable.leadership(tp)
        is_marked = durable.tree.read(paths.delete_topic(stray.topic)) is not None
        if topic is None or leadership is None or is_marked or topic.topic_id != stray.topic_id:
            return
        if stray.broker_id in leadership.isr and stray.broker_id in topic.partitions[stray.partition].replicas:
            yield f"broker {stray.broker_id} deleted {tp}, which had been assigned again, and is in the ISR"
