"""The partitions that controllers removed, of which Kafka's brokers have to be told one by one.

A broker of Kafka's knows a partition until it is sent with the leader -2. A controller that is elected after the
removal cannot know of it, nor does one send it to a broker that has registered since.
"""

from __future__ import annotations

from attrs import define, field

from simulator.safety.controllership import Controllership
from simulator.safety.partitions import PartitionChange
from transport.metadata import TopicPartition


@define
class Departures:
    """The last removal of each partition that does not exist: the zxid of its commit, and the controller epoch."""

    controllership: Controllership
    _removed: dict[TopicPartition, tuple[int, int]] = field(factory=dict, init=False)

    def changed(self, change: PartitionChange, zxid: int) -> None:
        """Record what a commit changed in a partition."""
        if change.after is None and change.is_a_controllers:
            self._removed[change.tp] = zxid, self.controllership.epoch
        else:
            self._removed.pop(change.tp, None)

    def must_be_known(self, tp: TopicPartition, broker_epoch: int) -> bool:
        """Return whether a broker that registered at an epoch has been told by now that a partition is gone."""
        zxid, epoch = self._removed.get(tp, (0, 0))
        return broker_epoch < zxid and epoch == self.controllership.epoch
