"""Check that a reassignment keeps its identity while it is in progress, across new targets and failovers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from attrs import define, field

from simulator.safety.exemptions import Exemptions
from simulator.store.durable import Durable
from transport.metadata import TopicPartition, number_in
from transport.store import paths
from transport.store.protocol import Op

_BELOW_TOPICS: Final = f"{paths.TOPICS}/"
_BELOW_REASSIGNMENTS: Final = f"{paths.REASSIGNMENTS}/"


@define
class Identities:
    """The topic id and the identity of each move, as of the last commit."""

    exempt: Exemptions
    _held: dict[TopicPartition, tuple[str, int]] = field(factory=dict, init=False)

    def committed(self, ops: Sequence[Op], durable: Durable) -> Iterator[str]:
        """Check the identities that a commit may have changed. Called right after the commit took effect."""
        for tp in self._touched(ops):
            before, now = self._held.pop(tp, None), _identity(tp, durable)
            if now is None:
                continue
            topic_id, czxid = now
            if before is not None and before[0] == topic_id and before[1] != czxid:
                yield f"the move of {tp} changed its identity from {before[1]} to {czxid or 'none'} before it ended"
            if czxid:
                self._held[tp] = topic_id, czxid

    def _touched(self, ops: Sequence[Op]) -> list[TopicPartition]:
        found: dict[TopicPartition, None] = {}
        for op in ops:
            if op.path.startswith(_BELOW_REASSIGNMENTS):
                name, _, number = op.path.removeprefix(_BELOW_REASSIGNMENTS).partition("/")
                if number_in(number) is not None:
                    found[TopicPartition(name, int(number))] = None
            elif op.path.startswith(_BELOW_TOPICS):
                name = op.path.removeprefix(_BELOW_TOPICS)
                found.update(dict.fromkeys(tp for tp in self._held if tp.topic == name))
        return [tp for tp in found if not self.exempt.has_topic(tp.topic)]


def _identity(tp: TopicPartition, durable: Durable) -> tuple[str, int] | None:
    """Return topic id and identity of a partition's move, 0 if it has none yet; None if the partition is not moving."""
    topic = durable.topic(tp.topic)
    assignment = None if topic is None else topic.partitions.get(tp.partition)
    if topic is None or assignment is None or not assignment.is_being_reassigned:
        return None
    znode = durable.tree.read(paths.reassignment(tp))
    return topic.topic_id or "", 0 if znode is None else znode.stat.czxid
