"""The rows that operators changed by hand, about which controllers may not know yet."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import define, field

from simulator.safety.partitions import PartitionChange
from transport.metadata import TopicPartition


@define
class ByHand:
    """The topics and the partition states that no controller has written since an operator did."""

    _topics: dict[str, None] = field(factory=dict, init=False)
    _states: dict[TopicPartition, None] = field(factory=dict, init=False)

    def has(self, tp: TopicPartition) -> bool:
        """Return whether a controller's view of a partition may rest on rows that an operator has overwritten since."""
        return tp.topic in self._topics or tp in self._states

    def has_state(self, tp: TopicPartition) -> bool:
        """Return whether an operator was the last to write a partition's state, and controllers may not know it."""
        return tp in self._states

    def took_office(self) -> None:
        """Forget the rows: a new controller reads them all."""
        self._topics.clear()
        self._states.clear()

    def wrote(self, changes: Iterable[PartitionChange]) -> None:
        """Record the changes of a commit, after they were judged.

        A controller that writes a row has read it since, because it names the version that it expects.
        """
        for change in changes:
            is_new_assignment = change.before is None or change.after is None or _is_moved(change)
            if change.is_a_controllers:
                if _is_new_state(change):
                    self._states.pop(change.tp, None)
                if is_new_assignment:
                    self._topics.pop(change.tp.topic, None)
            # A partition that was added by hand is known only as it is.
            elif change.before is not None:
                self._states[change.tp] = None
                if is_new_assignment:
                    self._topics[change.tp.topic] = None
            elif change.after is not None and change.after.leadership is not None:
                self._states[change.tp] = None


def _is_new_state(change: PartitionChange) -> bool:
    before, after = change.before, change.after
    return before is None or after is None or before.leadership != after.leadership


def _is_moved(change: PartitionChange) -> bool:
    assert change.before is not None
    assert change.after is not None
    return change.before.assignment != change.after.assignment
