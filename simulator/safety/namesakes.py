"""Replicas that wait until their broker, one of Kafka's, has deleted the log of an earlier topic of the same name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from attrs import define, field

from simulator.safety.partitions import Partitions, is_controller
from transport.messages import PartitionState
from transport.metadata import Stray, TopicPartition
from transport.store import paths
from transport.store.protocol import Create, Delete, Op

_BELOW_STRAYS: Final = f"{paths.STRAYS}/"


@define
class Namesakes:
    """The strays in the store. Brokers of ours need not wait."""

    partitions: Partitions
    is_kafkas: bool
    _strays: dict[Stray, bool] = field(factory=dict, init=False)
    """Whether a controller has recorded each. Of others' it hears when the next one takes office."""

    _ever: dict[tuple[TopicPartition, int], dict[str, None]] = field(factory=dict, init=False)
    """The topic ids of all strays of a replica so far."""

    def committed(self, host: str, ops: Sequence[Op]) -> None:
        """Follow the records of a commit."""
        for op in ops if self.is_kafkas else ():
            if isinstance(op, (Create, Delete)) and op.path.startswith(_BELOW_STRAYS):
                stray = paths.parse_stray(op.path.removeprefix(_BELOW_STRAYS))
                if stray is not None and isinstance(op, Create):
                    self._ever.setdefault((stray.tp, stray.broker_id), {})[stray.topic_id] = None
                    self._strays[stray] = is_controller(host)
                elif stray is not None and is_controller(host):
                    self._strays.pop(stray, None)
                elif stray in self._strays:
                    self._strays[stray] = False

    def has_waited(self, state: PartitionState, broker_id: int) -> bool:
        """Return whether a replica had to wait at some time."""
        ids = self._ever.get((state.tp, broker_id), {})
        return any(topic_id != state.topic_id for topic_id in ids)

    def may_wait(self, tp: TopicPartition, broker_id: int) -> frozenset[bool]:
        """Return whether the replica of a partition on a broker waits, both if the controller may not know."""
        partition = self.partitions.get(tp)
        earlier = [
            is_known
            for stray, is_known in self._strays.items()
            if (stray.tp, stray.broker_id) == (tp, broker_id)
            and partition is not None
            and partition.topic_id != stray.topic_id
        ]
        if not earlier:
            return frozenset((False,))
        return frozenset((True,)) if any(earlier) else frozenset((True, False))
