"""Check what must not follow from records that an ACL keeps from being written or removed.

No id of producers is in two blocks. A marker deletes no topic that is newer. A replica that is a stray no longer,
because somebody has assigned it again, is not deleted by a controller that has loaded this.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from attrs import define, field

from simulator.safety.controllership import Controllership
from simulator.safety.exemptions import Exemptions
from simulator.safety.partitions import is_controller
from simulator.store.durable import Durable
from transport.messages import StopReplicaRequest
from transport.metadata import Stray
from transport.store import paths
from transport.store.protocol import Check, Create, Delete, Op

_DATED: Final = (f"{paths.TOPICS}/", f"{paths.DELETE_TOPICS}/")


@define
class ClosedRecords:
    """The blocks of ids that were given, the age of topics and markers, and the strays that were assigned again."""

    exempt: Exemptions
    controllership: Controllership
    _blocks: list[range] = field(factory=list, init=False)
    _created: dict[str, int] = field(factory=dict, init=False)
    """The zxid at which each znode of a topic or a marker was created, by path."""

    _assigned_again: dict[Stray, int] = field(factory=dict, init=False)
    """The strays that somebody has assigned, with the controller epoch then, until the assignment changes."""

    def given(self, block: range) -> Iterator[str]:
        """Check a block of ids that a broker was given."""
        for before in self._blocks:
            if block.start < before.stop and before.start < block.stop:
                yield f"ids {block.start} to {block.stop - 1} of producers were given, and {before.start} on before"
        self._blocks.append(block)

    def committed(self, host: str, ops: Sequence[Op], zxid: int) -> Iterator[str]:
        """Check that a topic which a controller removes is older than its marker."""
        for op in ops:
            if op.path.startswith(f"{paths.TOPICS}/") and not isinstance(op, Check):
                self._forget(op.path.removeprefix(f"{paths.TOPICS}/"))
            if isinstance(op, Create) and op.path.startswith(_DATED):
                self._created[op.path] = zxid
            elif isinstance(op, Delete) and is_controller(host) and op.path.startswith(f"{paths.TOPICS}/"):
                yield from self._removed(op.path.removeprefix(f"{paths.TOPICS}/"))

    def _forget(self, name: str) -> None:
        for stray in [stray for stray in self._assigned_again if stray.topic == name]:
            del self._assigned_again[stray]

    def _removed(self, name: str) -> Iterator[str]:
        # Znodes below a topic have longer paths, and no marker has such a name.
        marked, created = self._created.get(paths.delete_topic(name)), self._created.get(paths.topic(name))
        if marked is not None and created is not None and marked < created and not self.exempt.is_unreadable(name):
            yield f"topic {name} was deleted because of a marker that is older"

    def assigned_again(self, strays: Iterable[Stray]) -> None:
        """Record that somebody has just assigned strays past the controller: the next one loads them as replicas."""
        self._assigned_again.update(dict.fromkeys(strays, self.controllership.epoch))

    def ordered(self, broker_id: int, request: StopReplicaRequest, durable: Durable) -> Iterator[str]:
        """Check the replicas that a broker is ordered to delete."""
        for item in request.partitions if self._assigned_again else ():
            stray = Stray(item.topic_id, item.topic, item.partition, broker_id)
            knows = request.controller_epoch > self._assigned_again.get(stray, request.controller_epoch)
            if item.delete and knows and durable.tree.read(paths.delete_topic(item.topic)) is None:
                yield f"broker {broker_id} is ordered to delete {item.tp}, which has been assigned to it again"
