"""Check that a leader is elected from outside the ISR only by an administrator's request or where settings allow it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf
from typing import Final

import trio
from attrs import define, field

from simulator.safety.leadership import is_unclean
from simulator.safety.partitions import PartitionChange
from simulator.safety.registrations import STALE_SECONDS
from simulator.store.durable import Durable
from transport.dynamic_configs import BROKER_SETTINGS, UNCLEAN_LEADER_ELECTION_ENABLE
from transport.messages import ElectionType, ElectLeadersRequest
from transport.metadata import TopicPartition
from transport.settings import InvalidSetting
from transport.store import formats, paths
from transport.store.protocol import Check, Op

_ASKED_SECONDS: Final = 30.0
"""Seconds that a request may wait in a queue: as long as an admin client waits for the answer."""

_UNCLEAN: Final = BROKER_SETTINGS[UNCLEAN_LEADER_ELECTION_ENABLE]
_DEFAULT: Final = paths.broker_config(None)
_BELOW_TOPIC_CONFIGS: Final = f"{paths.TOPIC_CONFIGS}/"

_Value = bool | None
"""The setting of a topic or of the default; None inherits."""


@define
class _History:
    """The time until which a setting had each value; infinite for the current one."""

    until: dict[_Value, float] = field(factory=lambda: {None: inf})

    def becomes(self, value: _Value) -> None:
        now = trio.current_time()
        self.until = {old: min(until, now) for old, until in self.until.items()} | {value: inf}

    def had(self, value: _Value, since: float) -> bool:
        return self.until.get(value, -inf) >= since


@define
class UncleanElections:
    """The unclean elections that are allowed; `by_default` is the controllers' own setting.

    A permission remains valid for a while after it ends, because a controller reads it before it decides.
    """

    by_default: bool
    _asked: dict[TopicPartition | None, float] = field(factory=dict, init=False)
    """The time of the last request for an unclean election, by partition; None stands for all."""

    _settings: dict[str, _History] = field(factory=dict, init=False)

    def asked(self, request: ElectLeadersRequest) -> None:
        """Record an administrator's request for an unclean election."""
        if request.election_type is ElectionType.UNCLEAN:
            named = [None] if request.partitions is None else request.partitions
            self._asked |= dict.fromkeys(named, trio.current_time())

    def committed(self, ops: Sequence[Op], durable: Durable) -> None:
        """Record the settings that a commit alters, right after it took effect."""
        for op in ops:
            is_setting = op.path == _DEFAULT or op.path.startswith(_BELOW_TOPIC_CONFIGS)
            if is_setting and not isinstance(op, Check):
                self._settings.setdefault(op.path, _History()).becomes(_setting(op.path, durable))

    def changed(self, change: PartitionChange) -> Iterator[str]:
        """Check a controller's change of a partition."""
        before = change.before.leadership if change.before is not None and change.is_of_one_topic else None
        after = change.after.leadership if change.after is not None else None
        if not change.is_a_controllers or before is None or after is None or not is_unclean(before, after):
            return
        if not self._was_asked(change.tp) and not self._was_set(change.tp.topic):
            yield f"{change.tp}: broker {after.leader} leads from outside the ISR {before.isr}, which nothing allowed"

    def is_allowed(self, topic: str) -> bool:
        """Return whether the settings now allow an unclean election."""
        return self._allows(topic, inf)

    def _was_asked(self, tp: TopicPartition) -> bool:
        latest = max(self._asked.get(tp, -inf), self._asked.get(None, -inf))
        return latest >= trio.current_time() - _ASKED_SECONDS

    def _was_set(self, topic: str) -> bool:
        return self._allows(topic, trio.current_time() - STALE_SECONDS)

    def _allows(self, topic: str, since: float) -> bool:
        own = self._settings.get(paths.topic_config(topic), _History())
        default = self._settings.get(_DEFAULT, _History())
        if own.had(True, since):  # noqa: FBT003  a value of the setting
            return True
        inherited = default.had(True, since) or (self.by_default and default.had(None, since))  # noqa: FBT003
        return inherited and own.had(None, since)


def _setting(path: str, durable: Durable) -> _Value:
    znode = durable.tree.read(path)
    try:
        value = None if znode is None else formats.decode_config(path, znode.data).get(UNCLEAN_LEADER_ELECTION_ENABLE)
        return None if value is None else bool(_UNCLEAN.parse(value))
    except (formats.UndecodableZnode, InvalidSetting):
        # Controllers allow nothing where they cannot tell what is set.
        return False
