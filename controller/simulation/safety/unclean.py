"""Elections from outside the ISR: only where an administrator asks for one, or the settings allow it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf
from typing import Final

import trio
from attrs import define, field

from controller.simulation.durable import Durable
from controller.simulation.safety.leadership import is_unclean
from controller.simulation.safety.partitions import Change
from transport.messages import ElectionType, ElectLeadersRequest
from transport.metadata import TopicPartition
from transport.store import formats, paths
from transport.store.protocol import Op

_RECENT_SECONDS: Final = 60.0
"""How long a controller may go by what it was asked, or by settings that it has read."""

_SETTING: Final = "unclean.leader.election.enable"


@define
class UncleanElections:
    """Knows what was allowed; `by_default` is what controllers are started with."""

    by_default: bool
    _asked: dict[TopicPartition | None, float] = field(factory=dict, init=False)
    """When an unclean election was last asked for, by partition; None stands for all."""

    _altered: dict[str, float] = field(factory=dict, init=False)

    def asked(self, request: ElectLeadersRequest) -> None:
        """Take note of what an administrator asks a controller for."""
        if request.election_type is ElectionType.UNCLEAN:
            named = [None] if request.partitions is None else [TopicPartition(*item) for item in request.partitions]
            self._asked |= dict.fromkeys(named, trio.current_time())

    def committed(self, ops: Sequence[Op]) -> None:
        """Take note of settings that are altered."""
        for op in ops:
            if op.path.startswith((paths.TOPIC_CONFIGS, paths.BROKER_CONFIGS)):
                self._altered[op.path] = trio.current_time()

    def changed(self, change: Change, durable: Durable) -> Iterator[str]:
        """Judge a controller's change of a partition."""
        before = change.before.leadership if change.before is not None and change.is_of_one_topic else None
        after = change.after.leadership if change.after is not None else None
        if not change.is_a_controllers or before is None or after is None or not is_unclean(before, after):
            return
        if not self._was_asked(change.tp) and not self._is_set(change.tp.topic, durable):
            yield f"{change.tp}: broker {after.leader} leads from outside the ISR {before.isr}, as nobody allowed"

    def _was_asked(self, tp: TopicPartition) -> bool:
        latest = max(self._asked.get(tp, -inf), self._asked.get(None, -inf))
        return latest > -inf and latest >= trio.current_time() - _RECENT_SECONDS

    def _is_set(self, topic: str, durable: Durable) -> bool:
        """Whether the settings allow it, or changed just now."""
        value = str(self.by_default).lower()
        for path in (paths.broker_config(None), paths.topic_config(topic)):
            if path in self._altered and self._altered[path] >= trio.current_time() - _RECENT_SECONDS:
                return True
            znode = durable.tree.read(path)
            if znode is not None:
                value = formats.decode_config(path, znode.data).get(_SETTING, value)
        return value.strip().lower() == "true"
