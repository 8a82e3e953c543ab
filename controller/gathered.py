"""The lists that grow while an event waits in the queue: what comes later joins it, so one event of a kind suffices."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Final

from attrs import define, field

from transport.errors import ErrorCode
from transport.messages import LeaderAndIsrRequest, LeaderAndIsrResponse
from transport.metadata import TopicPartition

LOOKED_AT_TOGETHER: Final = 500
"""The most topics of one event. With 50 partitions each they take about 0.1 s, and other events wait that long."""

_LOG_VERDICTS: Final = {ErrorCode.NONE: True, ErrorCode.KAFKA_STORAGE_ERROR: False}


@define(eq=False)
class Outcomes:
    """A broker incarnation's latest answers on whether it can use the replicas that it leads or follows.

    They are kept until the event queue takes them. Until the first failure all replicas are usable, so successes are
    recorded only after one.
    """

    _latest: dict[tuple[str, TopicPartition], bool] = field(factory=dict, init=False)
    _has_failed: bool = field(default=False, init=False)

    def gather(self, request: LeaderAndIsrRequest, response: LeaderAndIsrResponse) -> bool:
        """Add an answer; return whether it must be processed. Only KAFKA_STORAGE_ERROR is an error of a log."""
        errors = {item.error for item in response.partitions}
        self._has_failed = self._has_failed or ErrorCode.KAFKA_STORAGE_ERROR in errors
        if not self._has_failed or errors.isdisjoint(_LOG_VERDICTS):
            return False
        topic_ids = {item.state.tp: item.state.topic_id for item in request.partitions}
        for item in response.partitions:
            topic_id = topic_ids.get(item.tp)
            if topic_id is not None and item.error in _LOG_VERDICTS:
                self._latest[topic_id, item.tp] = _LOG_VERDICTS[item.error]
        return True

    def take(self) -> dict[tuple[str, TopicPartition], bool]:
        """Remove and return the answers: by topic id and partition, whether the broker can use the replica."""
        latest, self._latest = self._latest, {}
        return latest


@define(eq=False)
class MoreTopics:
    """The topics that join a waiting event, until it is processed or dropped."""

    _names: dict[str, None] = field(factory=dict, init=False)
    _is_closed: bool = field(default=False, init=False)

    def __len__(self) -> int:
        return len(self._names)

    def add(self, name: str) -> bool:
        """Let a topic join; return whether there was time and room for it."""
        if self._is_closed or len(self._names) >= LOOKED_AT_TOGETHER - 1:
            return False
        self._names[name] = None
        return True

    def close(self) -> tuple[str, ...]:
        """Return the topics that have joined; no others will."""
        self._is_closed = True
        return tuple(self._names)


@define(eq=False)
class CaughtUp:
    """Partitions that are ready for phase B of their reassignment, until the event queue takes them."""

    _tps: dict[TopicPartition, None] = field(factory=dict, init=False)

    def add(self, tps: Iterable[TopicPartition]) -> None:
        """Add partitions."""
        self._tps.update(dict.fromkeys(tps))

    def __len__(self) -> int:
        return len(self._tps)

    def take(self, most: int) -> list[TopicPartition]:
        """Remove and return the partitions that have waited longest."""
        taken = list(islice(self._tps, most))
        for tp in taken:
            del self._tps[tp]
        return taken
